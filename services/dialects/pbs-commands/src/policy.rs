//! `muster pbs check DIR`: whether the policy files of a `sched_priv` folder could be put in force; and `muster pbs plan
//! DIR --state FILE`: what one cycle would do under them (PBS-C-15).

use super::ended::{Ended, Failure, print};
use muster_cli::{stderr_line, zone};
use muster_pbs_plan::{
    plan,
    state_file::{MOST_BYTES, StateFile},
};
use muster_pbs_policy::{
    check::check,
    findings::{Finding, escaped},
    folder,
    preset::Preset,
    report,
};
use muster_schemas::Timestamp;
use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

const USAGE: &str = "usage: muster pbs check [--preset sgi_origin|cray_t3e|ibm_sp|multitask] DIR";
/// The exit status for files with errors.
const POLICY_ERRORS: u8 = 2;
const PLAN_USAGE: &str =
    "usage: muster pbs plan [--preset sgi_origin|cray_t3e|ibm_sp|multitask] [--carried] [--dump] DIR --state FILE";
/// The exit status for a bad state file.
const BAD_STATE: u8 = 3;

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

/// The words of a dry run.
#[derive(Default)]
struct DryWords<'w> {
    preset: Option<Preset>,
    folder: Option<&'w str>,
    state: Option<&'w str>,
    /// Print what the next cycle has to be told, in place of the plan.
    is_carried: bool,
    /// Write the file that `SORTED_JOB_DUMPFILE` names.
    dumps: bool,
}

impl<'w> DryWords<'w> {
    fn read(words: &'w [String]) -> Option<Self> {
        let mut read = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--carried" => read.is_carried = true,
                "--dump" => read.dumps = true,
                "--preset" => read.preset = Some(Preset::parse(words.next()?)?),
                "--state" => read.state = Some(words.next()?),
                _ if word.starts_with('-') || read.folder.is_some() => return None,
                _ => read.folder = Some(word),
            }
        }
        Some(read)
    }
}

/// Runs one cycle on a state file. It asks no system, and changes nothing.
pub fn plan_dry(words: &[String]) -> Ended {
    let usage = || Failure { text: PLAN_USAGE.to_owned(), status: POLICY_ERRORS };
    let words = DryWords::read(words).ok_or_else(usage)?;
    let (folder, file) = words.folder.zip(words.state).ok_or_else(usage)?;
    let sources =
        folder::read(Path::new(folder)).map_err(|error| Failure { text: error.to_string(), status: POLICY_ERRORS })?;
    let shown = escaped(file);
    let bad = |error: &dyn std::fmt::Display| Failure { text: format!("{shown}: {error}"), status: BAD_STATE };
    let state = read(Path::new(file)).map_err(|error| bad(&error));
    let state = state.and_then(|bytes| StateFile::read(&bytes).map_err(|error| bad(&error)));
    let of_state = state.as_ref().map_or(Ok(None), |state| state.preset().map_err(|error| bad(&error)));
    let preset = words.preset.map_or(of_state, |preset| Ok(Some(preset)));
    // Mistakes in the policy are told first.
    let checked = check(&sources, *preset.as_ref().unwrap_or(&None));
    for warning in &checked.warnings {
        stderr_line!("muster pbs plan: warning: {}", warning.located());
    }
    let Some(tables) = checked.policy else {
        let errors: Vec<String> = checked.errors.iter().map(Finding::located).collect();
        return Err(Failure {
            text: format!("the policy cannot be followed\n{}", errors.join("\n")),
            status: POLICY_ERRORS,
        });
    };
    preset?;
    let dry = plan(&tables, &state?).map_err(|error| bad(&error))?;
    for warning in &dry.warnings {
        stderr_line!("muster pbs plan: warning: {}", escaped(warning));
    }
    if let Some(file) = tables.preset.as_ref().and_then(|preset| preset.sorted_job_dumpfile.as_deref()) {
        dump(file, &dry.order, words.dumps)?;
    }
    match (words.is_carried, dry.carried) {
        (false, _) => print(&dry.lines.iter().map(|line| escaped(line) + "\n").collect::<String>()),
        (true, carried) => {
            let json = serde_json::to_string(&carried.unwrap_or_default());
            print(&format!("{}\n", json.map_err(|error| bad(&error))?));
        }
    }
    Ok(0)
}

/// Writes the jobs in their order into the file of `SORTED_JOB_DUMPFILE` (PBS-P-03). A dry run changes nothing else, so it is asked
/// for: the file is one that somebody else's options name.
fn dump(file: &str, order: &[String], is_wanted: bool) -> Result<(), Failure> {
    if !is_wanted {
        stderr_line!("muster pbs plan: warning: config: SORTED_JOB_DUMPFILE is written with --dump only");
        return Ok(());
    }
    let text: String = order.iter().map(|job| escaped(job) + "\n").collect();
    let failed = |error| Failure { text: format!("cannot write {}: {error}", escaped(file)), status: 1 };
    std::fs::write(file, text).map_err(failed)
}

/// The bytes of a regular file, and one more than is read if it is too large.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe would keep the reader waiting, so it is not opened.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-P-03: the order of the jobs, here the shorter one first, is written to `SORTED_JOB_DUMPFILE`, if that is asked for.
    #[test]
    fn a_dry_run_writes_the_sorted_jobs() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("jobs");
        let config = format!("SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nSORTED_JOB_DUMPFILE {}\n", file.display());
        let state = r#"{
            "now": "2026-03-10T10:00:00", "tz": "UTC", "server": {"scheduler_policy": "sgi_origin"},
            "queues": [
                {"name": "submit", "type": "execution", "started": true},
                {"name": "batch", "type": "execution", "started": true, "enabled": true, "resources_max": {"ncpus": 8, "mem": "8gb"}}
            ],
            "jobs": [
                {"id": "1", "queue": "submit", "user": "ann", "state": "Q", "request": {"ncpus": 2, "walltime": "2:00:00"}},
                {"id": "2", "queue": "submit", "user": "ann", "state": "Q", "request": {"ncpus": 2, "walltime": "1:00:00"}}
            ]
        }"#;
        std::fs::write(folder.path().join("config"), config).expect("written");
        std::fs::write(folder.path().join("state.json"), state).expect("written");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let run = |option: Option<&str>| {
            let words = option.map(str::to_owned).into_iter();
            let words = words.chain([path(""), "--state".to_owned(), path("state.json")]);
            let Ok(status) = plan_dry(&words.collect::<Vec<_>>()) else { panic!("refused") };
            status
        };
        assert_eq!((run(None), file.exists()), (0, false));
        assert_eq!(run(Some("--dump")), 0);
        assert_eq!(std::fs::read_to_string(&file).expect("it is written"), "2\n1\n");
    }
}
