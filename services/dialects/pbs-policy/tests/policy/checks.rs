//! All files together.

use crate::support::{at, checked, shown, sources, zurich};
use muster_pbs_policy::{
    check::{FILES, check},
    folder::{self, FolderError},
    lines::{MOST_BYTES, MOST_LINES},
    mode::Mode,
    preset::Preset,
};
use std::{fs, os::unix::net::UnixListener};

/// W15: PBS-C-14, PBS-F-04, PBS-FS-02, PBS-T-06, PBS-T-09.
#[test]
fn six_errors_in_four_files_are_listed_in_order() {
    let sched_config = "# one\n# two\nby_queue: maybe\n\nsort_by: sortest_job_first\n\n\n\nhalf_life: 0\n";
    let files = [
        ("dedicated_time", "02/30/1998 10:00 03/01/1998 10:00\n"),
        ("holidays", "* one\nYEAR 1998\n* three\nweekday 0400 2460\n"),
        ("resource_group", "# one\nu1 60 grpX 5\n"),
        ("sched_config", sched_config),
    ];
    let checked = checked(&files);
    let places: Vec<String> =
        checked.errors.iter().map(|error| format!("{}:{} {}", error.file, error.line, error.token)).collect();
    assert_eq!(
        places,
        [
            "sched_config:3 maybe",
            "sched_config:5 sortest_job_first",
            "sched_config:9 0",
            "resource_group:2 grpX",
            "holidays:4 2460",
            "dedicated_time:1 02/30/1998",
        ]
    );
    assert_eq!((checked.policy.as_ref(), checked.exit_status()), (None, 2));
    assert_eq!(shown(&checked.warnings), Vec::<String>::new());
}

/// PBS-T-08, PBS-F-14: the mode of a cycle, and when the next one is due without any other reason.
#[test]
fn the_policy_knows_its_mode_and_the_next_change() {
    let files = [
        ("holidays", "YEAR 2026\nweekday 0800 1800\n"),
        ("dedicated_time", "11/20/2026 07:00 11/20/2026 09:00\n"),
        ("sched_config", "sort_by: no_sort prime\n"),
    ];
    let policy = crate::support::policy(&files);
    let zone = zurich();
    for (now, mode, next) in [
        ("2026-11-20T06:00:00", Mode::NonPrime, Some("2026-11-20T07:00:00")),
        ("2026-11-20T07:00:00", Mode::NonPrime, Some("2026-11-20T08:00:00")),
        ("2026-11-20T08:00:00", Mode::Prime, Some("2026-11-20T09:00:00")),
        ("2026-11-20T09:00:00", Mode::Prime, Some("2026-11-20T18:00:00")),
    ] {
        let time = at(now, &zone);
        assert_eq!(policy.mode(time, &zone), mode, "{now}");
        assert_eq!(policy.next_change(time, &zone), next.map(|next| at(next, &zone)), "{now}");
    }
    assert_eq!(checked(&files).exit_status(), 0);
    assert_eq!(
        checked(&[]).policy.and_then(|policy| policy.next_change(at("2026-11-20T06:00:00", &zone), &zone)),
        None
    );
}

/// PBS-C-14: one error in any file, and no table is given.
#[test]
fn an_error_in_any_file_gives_no_policy() {
    for (name, text) in [
        ("sched_config", "by_queue: maybe"),
        ("resource_group", "u1 60 grpX 5"),
        ("holidays", "weekday 0400"),
        ("dedicated_time", "tomorrow"),
        ("nodes", "n1 np=0"),
    ] {
        let checked = checked(&[(name, text)]);
        assert_eq!((checked.errors.len(), checked.policy), (1, None), "{name}");
    }
}

/// PBS-C-14: a missing file is no error, and an empty folder is a policy.
#[test]
fn missing_files_are_no_errors() {
    let checked = check(&[], None);
    assert!(checked.policy.is_some());
    let expected = [
        "sched_config: no such file: the policy that PBS ships is in force",
        "holidays: no such file: it is prime at all times",
    ];
    assert_eq!(shown(&checked.warnings), expected);
}

/// PBS-C-14: checksums of the bytes of each file.
#[test]
fn accepted_files_have_checksums() {
    let checked = checked(&[("dedicated_time", ""), ("sched_config", "abc # no policy\n"), ("usage", "left alone")]);
    let digests: Vec<(&str, &str)> =
        checked.digests.iter().map(|digest| (digest.file.as_str(), &digest.sha256[..16])).collect();
    assert_eq!(digests[1], ("dedicated_time", "e3b0c44298fc1c14"));
    assert_eq!((digests.len(), digests[0].0), (2, "sched_config"));
    assert!(checked.digests.iter().all(|digest| digest.sha256.len() == 64));
    let abc = crate::support::checked(&[("sched_config", "abc")]);
    assert_eq!(abc.digests[0].sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/// PBS-P-02: a preset's file is for presets, and a preset needs no options of fifo.
#[test]
fn only_presets_read_config() {
    let config = ("config", "BATCH_QUEUES a\nSUBMIT_QUEUE b\n");
    let fifo = checked(&[config, ("sched_config", ""), ("holidays", "YEAR 2026")]);
    assert_eq!(shown(&fifo.warnings), ["config: is not read: only presets have this file"]);
    let sgi = check(&sources(&[config, ("holidays", "YEAR 2026")]), Some(Preset::SgiOrigin));
    assert_eq!((shown(&sgi.warnings), sgi.policy.is_some()), (Vec::new(), true));
}

/// PBS-C-14: sizes have limits.
#[test]
fn files_that_are_too_large_are_not_read() {
    for name in ["sched_config", "resource_group", "holidays", "dedicated_time", "nodes"] {
        let large = "x".repeat(MOST_BYTES + 1);
        let expected = format!("{name}:1: the file is larger than 1048576 bytes, and is not read");
        assert_eq!(shown(&checked(&[(name, &large)]).errors), [expected]);
        let long = "\n".repeat(MOST_LINES);
        let expected = format!("{name}:1: the file has more than 50000 lines, and is not read");
        assert_eq!(shown(&checked(&[(name, &long)]).errors), [expected]);
        assert_eq!(checked(&[(name, &long[1..])]).errors, []);
    }
}

/// PBS-C-14: the files of a folder.
#[test]
fn a_folder_is_read_with_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("sched_config"), "by_queue: true\n").expect("written");
    fs::write(path("holidays"), "x".repeat(MOST_BYTES * 2)).expect("written");
    fs::write(path("usage"), "left alone").expect("written");
    let read = folder::read(folder.path()).expect("a folder");
    let sizes: Vec<(&str, usize)> = read.iter().map(|source| (source.name.as_str(), source.bytes.len())).collect();
    assert_eq!(sizes, [("sched_config", 15), ("holidays", MOST_BYTES + 1)]);
    assert_eq!(
        shown(&check(&read, None).errors),
        ["holidays:1: the file is larger than 1048576 bytes, and is not read"]
    );
    let _listener = UnixListener::bind(path("dedicated_time")).expect("a socket");
    assert!(matches!(folder::read(folder.path()), Err(FolderError::NoFile { file }) if file == path("dedicated_time")));
    let missing = folder::read(&path("missing")).expect_err("no folder");
    assert!(missing.to_string().contains("missing is not a folder with policy files: "), "{missing}");
    assert!(FILES.contains(&"config"));
}
