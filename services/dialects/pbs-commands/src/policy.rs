//! `muster pbs check DIR`: whether the policy files of a `sched_priv` folder could be put in force (PBS-C-15).

use super::ended::{Ended, Failure, print};
use muster_cli::zone;
use muster_pbs_policy::{check::check, folder, preset::Preset, report};
use muster_schemas::Timestamp;
use std::path::Path;

const USAGE: &str = "usage: muster pbs check [--preset sgi_origin|cray_t3e|ibm_sp|multitask] DIR";
/// The exit status for files with errors.
const POLICY_ERRORS: u8 = 2;

/// Checks a folder. It asks no system, and changes nothing.
pub fn run(words: &[String]) -> Ended {
    let usage = || Failure { text: USAGE.to_owned(), status: POLICY_ERRORS };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (preset, folder) = match words[..] {
        [folder] if !folder.starts_with('-') => (None, folder),
        ["--preset", name, folder] => (Some(Preset::parse(name).ok_or_else(usage)?), folder),
        _ => return Err(usage()),
    };
    let sources =
        folder::read(Path::new(folder)).map_err(|error| Failure { text: error.to_string(), status: POLICY_ERRORS })?;
    let checked = check(&sources, preset);
    let mut text = report::lines(&checked, &zone::of_process(), Timestamp::now().to_jiff()).join("\n");
    text.push('\n');
    print(&text);
    Ok(if checked.policy.is_some() { 0 } else { POLICY_ERRORS })
}
