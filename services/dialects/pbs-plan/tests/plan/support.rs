//! What several tests need.

use muster_pbs_plan::{Dry, plan, state_file::StateFile};
use muster_pbs_policy::{
    check::{Policy, check},
    lines::Source,
    preset::Preset,
};

/// The example folder of the book, which has the files of the seed.
pub const SCHED_CONFIG: &str = include_str!("../../../../../docs/examples/pbs/sched_priv/sched_config");
pub const RESOURCE_GROUP: &str = include_str!("../../../../../docs/examples/pbs/sched_priv/resource_group");
pub const DEDICATED_TIME: &str = include_str!("../../../../../docs/examples/pbs/sched_priv/dedicated_time");
pub const STRICT_GROUP: &str = include_str!("../../../../../docs/examples/pbs/strict_priority/resource_group");

/// The tables of files without mistakes.
pub fn tables(files: &[(&str, &str)]) -> Policy {
    let sources: Vec<Source> = files.iter().map(|(name, text)| Source::new(name, text)).collect();
    let checked = check(&sources, None);
    checked.policy.unwrap_or_else(|| panic!("{:?}", checked.errors))
}

/// The tables of a preset's `config`, with holidays of a year that has none.
pub fn preset(preset: Preset, config: &str) -> Policy {
    let sources = [Source::new("config", config), Source::new("holidays", "YEAR 2026\n")];
    let checked = check(&sources, Some(preset));
    checked.policy.unwrap_or_else(|| panic!("{:?}", checked.errors))
}

/// The tables of a `sched_config`.
pub fn config(text: &str) -> Policy {
    tables(&[("sched_config", text)])
}

pub fn state(text: &str) -> StateFile {
    StateFile::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The dry run of a state.
pub fn dry(tables: &Policy, text: &str) -> Dry {
    plan(tables, &state(text)).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The lines of a plan, in short: `x4 START, x3 SERVER_RESOURCE:ncpus, x5 START -> large, - d1 DEDICATED_TIME`. The
/// numbers are in order.
pub fn lines(tables: &Policy, text: &str) -> String {
    let lines = dry(tables, text).lines;
    let short = lines.iter().enumerate().map(|(at, line)| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [number, "START", ..] => {
                assert_eq!(number, (at + 1).to_string());
                let words = words[2..].join(" ");
                match words.split_once(" -> ") {
                    Some((job, queue)) => format!("{job} START -> {queue}"),
                    None => format!("{words} START"),
                }
            }
            [number, "REJECT", job, code] => {
                assert_eq!(number, (at + 1).to_string());
                format!("{job} {code}")
            }
            [number, "WAIT", job, code] => {
                let is_numbered = number == (at + 1).to_string();
                assert!(is_numbered || number == "-", "{line}");
                format!("{}{job} {code}", if is_numbered { "" } else { "- " })
            }
            _ => panic!("{line}"),
        }
    });
    short.collect::<Vec<_>>().join(", ")
}

/// The jobs in the order in which they were looked at.
pub fn order(tables: &Policy, text: &str) -> String {
    let lines = dry(tables, text).lines;
    lines.iter().filter_map(|line| line.split(' ').nth(2)).collect::<Vec<_>>().join(" ")
}

/// A queue that starts jobs, with more members in front.
pub fn queue(name: &str, more: &str) -> String {
    format!(r#"{{{more} "name": "{name}", "type": "Execution", "started": true}}"#)
}

/// A job that waits, with more members in front and a request.
pub fn job(id: &str, queue: &str, user: &str, more: &str, request: &[(&str, &str)]) -> String {
    let resources: Vec<String> = request
        .iter()
        .filter(|(_, value)| *value != "-")
        .map(|(name, value)| format!(r#""{name}": "{value}""#))
        .collect();
    let request = resources.join(", ");
    format!(r#"{{{more} "id": "{id}", "queue": "{queue}", "user": "{user}", "state": "Q", "request": {{{request}}}}}"#)
}

/// A state with these members, queues and jobs.
pub fn file(members: &str, queues: &[String], jobs: &[String]) -> String {
    format!("{{{members}, \"queues\": [{}], \"jobs\": [{}]}}", queues.join(",\n"), jobs.join(",\n"))
}
