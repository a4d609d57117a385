//! The example folders of the book.

use crate::support::{at, shown, zurich};
use muster_pbs_policy::{check::check, folder, report};
use std::path::Path;

fn folder_of(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples/pbs").join(name)
}

/// PBS-C-14, PBS-F-02: the files that PBS ships can be put in force as they are.
#[test]
fn the_example_folders_are_policies() {
    let sources = folder::read(&folder_of("sched_priv")).expect("the example");
    let checked = check(&sources, None);
    assert_eq!(shown(&checked.errors), Vec::<String>::new());
    assert_eq!(checked.warnings.iter().map(|warning| warning.token.as_str()).collect::<Vec<_>>(), ["debug_level"]);
    let policy = checked.policy.expect("no errors");
    assert_eq!((policy.shares.members().len(), policy.holidays.holidays.len()), (18, 10));
    assert_eq!(policy.dedicated_time.periods.len(), 3);
    let strict = check(&folder::read(&folder_of("strict_priority")).expect("the example"), None);
    assert_eq!(shown(&strict.errors), Vec::<String>::new());
    assert_eq!(shown(&strict.warnings), ["holidays: no such file: it is prime at all times"]);
}

/// PBS-C-15: what the check of the example prints.
#[test]
fn the_report_of_the_example_says_what_is_in_force() {
    let checked = check(&folder::read(&folder_of("sched_priv")).expect("the example"), None);
    let lines = report::lines(&checked, &zurich(), at("1998-05-15T06:00:00", &zurich()));
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.contains("sha256")).collect();
    assert_eq!(lines.join("\n") + "\n", include_str!("report.txt"));
}
