//! `muster basl check FILE`: whether a scheduling program could be put in force (PBS-X-01).

use super::ended::{Ended, Failure, print};
use muster_basl::{Fault, Program};

const USAGE: &str = "usage: muster basl check FILE";
/// The exit status for a program with errors.
const ERRORS: u8 = 2;

/// Checks a program. It asks no system, and runs nothing.
pub fn run(words: &[String]) -> Ended {
    let failed = |text: String| Failure { text, status: ERRORS };
    let [verb, file] = words else { return Err(failed(USAGE.to_owned())) };
    if verb != "check" {
        return Err(failed(USAGE.to_owned()));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed(format!("{file}: {error}")))?;
    match Program::check(file, &text) {
        Ok(_) => {
            print(&format!("{file}: the program can be put in force\n"));
            Ok(0)
        }
        Err(faults) => {
            let lines: Vec<String> = faults.iter().map(Fault::located).collect();
            print(&format!("{}\n", lines.join("\n")));
            Ok(ERRORS)
        }
    }
}
