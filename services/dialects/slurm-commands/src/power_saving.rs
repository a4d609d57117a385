//! `muster slurm energy`: the section `[energy]` of a configuration file from the words of `slurm.conf`.

use super::ended::print;
use muster_cli::stderr_line;
use muster_slurm::power_saving;
use std::{fs::File, io::Read as _};

const USAGE: &str = "usage: muster slurm energy FILE\n       FILE is /etc/slurm/slurm.conf; - is standard input";
/// The longest file that is read, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Runs a command line of `muster slurm energy`; returns the exit status.
pub(crate) fn run(words: &[String]) -> u8 {
    let [file] = words else {
        stderr_line!("{USAGE}");
        return 2;
    };
    let name = file.escape_debug().to_string();
    let mut text = String::new();
    let read = match file.as_str() {
        "-" => std::io::stdin().take(MOST_BYTES + 1).read_to_string(&mut text),
        path => File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text)),
    };
    match read {
        Err(error) => {
            stderr_line!("muster slurm energy: {}: {error}", name);
            return 1;
        }
        Ok(bytes) if bytes as u64 > MOST_BYTES => {
            stderr_line!("muster slurm energy: {}: is longer than {MOST_BYTES} bytes", name);
            return 1;
        }
        Ok(_) => {}
    }
    let saving = power_saving::energy(&text, &name);
    for warning in &saving.warnings {
        stderr_line!("{}", warning.chars().map(|char| if char.is_control() { '?' } else { char }).collect::<String>());
    }
    if saving.section.is_empty() {
        stderr_line!("muster slurm energy: {}: no SuspendProgram and no ResumeProgram, so no node sleeps", name);
    }
    print(&saving.section);
    0
}
