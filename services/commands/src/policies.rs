//! Policies by name or file, and the differences between two of them.

use crate::exit::{Failure, Status};
use muster_planner::policy_file;
use muster_schemas::policy::{BUILT_IN_POLICIES, LimitPer, Policy, words};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read as _,
    path::Path,
};

/// What each of the built-in policies does, for people.
pub const BUILT_IN: [(&str, &str); BUILT_IN_POLICIES.len()] = [
    ("fcfs", "queue priority, job priority, then first come first served; no job starts ahead of a waiting one"),
    ("easy", "the same order; jobs go around the first that waits if they do not delay it"),
    ("conservative", "the same order; every job that waits is promised a start, and jobs go around if they delay none"),
    ("spt", "shortest walltime first, backfill as in easy"),
    ("saf", "smallest walltime times processors first, backfill as in easy"),
    ("f1", "small, short and early jobs first, by the F1 formula, backfill as in easy"),
    ("wfp3", "jobs first that have waited long for their walltime, large ones before, backfill as in easy"),
    ("unicep", "jobs first that have waited long for their walltime and size, backfill as in easy"),
];

/// The named policy: a built-in one, else that of a file. `./easy` is a file even if a built-in policy has that name.
pub fn load(name_or_file: &str) -> Result<Policy, Failure> {
    let is_path = name_or_file.contains('/') || Path::new(name_or_file).exists();
    if Policy::built_in(name_or_file).is_none() && is_path { load_file(name_or_file) } else { built_in(name_or_file) }
}

/// The built-in policy of this name.
pub fn built_in(name: &str) -> Result<Policy, Failure> {
    Policy::built_in(name).ok_or_else(|| {
        let hint = match words::nearest(name, BUILT_IN_POLICIES) {
            Some(known) => format!("nearest is `{known}`"),
            None => format!("built in are {}", BUILT_IN_POLICIES.join(", ")),
        };
        let name = words::shorten(name);
        Failure::new(Status::NotFound, format!("`{name}` is neither a built-in policy nor a file; {hint}"))
    })
}

/// The policy of a file.
pub fn load_file(name: &str) -> Result<Policy, Failure> {
    let bytes = read(Path::new(name)).map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    read_policy(name, &bytes)
}

/// Whether the file is a policy file rather than a configuration: only a policy file states the version of its format.
pub fn is_policy_file(path: &Path) -> bool {
    read(path).is_ok_and(|bytes| policy_file::names_version(&String::from_utf8_lossy(&bytes)))
}

/// The queues that a policy names.
pub fn queues_of(policy: &Policy) -> BTreeSet<&str> {
    let limited = policy.limits.iter().filter_map(|limit| match limit.per {
        LimitPer::Queue => limit.name.as_deref(),
        _ => limit.queue.as_deref(),
    });
    policy.queues.keys().map(String::as_str).chain(limited).collect()
}

/// Parses the bytes of a policy file. All errors are reported at once.
fn read_policy(name: &str, bytes: &[u8]) -> Result<Policy, Failure> {
    policy_file::parse_bytes(bytes, name).map_err(|errors| {
        let mut errors = errors.into_iter();
        let Some(first) = errors.next() else { return Failure::failed(format!("cannot read {name}")) };
        let others: String = errors.map(|error| format!("\n{error}")).collect();
        Failure::in_file(format!("{name}:{}:{}", first.line, first.column), first.message + &others)
    })
}

/// The bytes of a file, up to the maximum length of a policy.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(policy_file::MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The differences, one line for each setting: `backfill.mode: "none" -> "easy"`.
pub fn changes(from: &Policy, to: &Policy) -> Vec<String> {
    let (from, to) = (settings(from), settings(to));
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let shown = |value: Option<&String>| value.map_or_else(|| "not set".to_owned(), Clone::clone);
    names
        .into_iter()
        .filter(|name| from.get(*name) != to.get(*name))
        .map(|name| format!("{name}: {} -> {}", shown(from.get(name)), shown(to.get(name))))
        .collect()
}

/// The settings of a policy as in its file, by `section.key`. Limits are numbered from 1.
fn settings(policy: &Policy) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let (mut section, mut limits) = (String::new(), 0);
    for line in policy_file::print(policy).lines() {
        if line == "[[limit]]" {
            limits += 1;
            section = format!("limit.{limits}.");
        } else if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{header}.");
        } else if let Some((key, value)) = line.split_once(" = ") {
            settings.insert(format!("{section}{key}"), value.to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::policy::{BackfillMode, Limit, OrderKey};

    #[test]
    fn every_built_in_policy_is_described() {
        assert_eq!(BUILT_IN.map(|(name, _)| name), BUILT_IN_POLICIES);
    }

    #[test]
    fn a_built_in_policy_goes_before_a_file_and_a_path_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("easy");
        std::fs::write(&file, "version = 1\norder = \"spt\"\n").unwrap();
        assert_eq!(load("easy").unwrap().backfill.mode, BackfillMode::Easy);
        assert_eq!(load(file.to_str().unwrap()).unwrap().order, [OrderKey::Spt]);
    }

    #[test]
    fn what_is_neither_a_policy_nor_a_file_is_told_with_the_nearest_name() {
        let failure = load("consrevative").unwrap_err();
        assert_eq!(failure.status, Status::NotFound);
        assert_eq!(
            failure.message,
            "`consrevative` is neither a built-in policy nor a file; nearest is `conservative`"
        );
        assert!(load("/nowhere/p.toml").unwrap_err().message.starts_with("cannot read /nowhere/p.toml: "));
        assert!(load("/dev/zero").unwrap_err().message.starts_with("/dev/zero:1:1: "));
    }

    #[test]
    fn all_errors_of_a_file_are_told() {
        let failure = read_policy("p.toml", b"version = 1\nordr = 1\nmax_starts = 0\n").unwrap_err();
        assert_eq!(failure.status, Status::Usage);
        let lines: Vec<&str> = failure.message.lines().collect();
        assert!(lines.len() == 2 && lines[0].starts_with("p.toml:2:1: ") && lines[1].starts_with("p.toml:3:14: "));
    }

    #[test]
    fn changes_name_each_setting_that_differs() {
        let fcfs = Policy::built_in("fcfs").unwrap();
        assert_eq!(changes(&fcfs, &fcfs), [""; 0]);
        let limit = Limit { max_nodes: Some(4), ..Limit::default() };
        let easy = Policy { limits: vec![limit], ..Policy::built_in("easy").unwrap() };
        assert_eq!(
            changes(&fcfs, &easy),
            [
                "backfill.candidates: not set -> \"queue_order\"",
                "backfill.mode: \"none\" -> \"easy\"",
                "backfill.require_walltime: not set -> false",
                "limit.1.max_nodes: not set -> 4",
                "limit.1.per: not set -> \"all\"",
                "name: \"fcfs\" -> \"easy\"",
            ]
        );
    }
}
