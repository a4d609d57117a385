//! What the check prints.

use crate::support::{at, checked, sources, zurich};
use muster_pbs_policy::{check::check, preset::Preset, report};

fn report(files: &[(&str, &str)], preset: Option<Preset>) -> String {
    let checked = check(&sources(files), preset);
    report::lines(&checked, &zurich(), at("2026-11-20T10:00:00", &zurich())).join("\n")
}

/// PBS-F-04, PBS-C-14, PBS-C-15: errors first, then warnings, then that nothing is put in force.
#[test]
fn errors_come_before_warnings() {
    let files = [("sched_config", "debug_level: 1\nby_queue: maybe\n"), ("holidays", "YEAR 1998\nweekday 2460 0\n")];
    assert_eq!(
        report(&files, None),
        "sched_config:2: column 11: expected true or false (token 'maybe')\n\
         holidays:2: column 9: expected the time at which prime time starts: 0000 to 2359, all or none (token '2460')\n\
         warning: sched_config:1: column 1: has no effect here (token 'debug_level')\n\
         2 errors, 1 warning: the policy cannot be put in force"
    );
}

/// PBS-P-23.
#[test]
fn a_reconstructed_preset_is_called_so() {
    let files = [("config", "BATCH_QUEUES a@h,b\nSUBMIT_QUEUE s\n"), ("holidays", "YEAR 2026\n")];
    for preset in Preset::ALL {
        let text = report(&files, Some(preset));
        assert!(text.contains(&format!("Preset\n  {}\n", preset.name())), "{text}");
        assert!(text.contains("  BATCH_QUEUES               a@h,b\n"), "{text}");
        assert_eq!(text.contains("reconstruction"), preset.is_reconstruction(), "{text}");
    }
}

/// PBS-T-05, PBS-T-09: files of other years.
#[test]
fn old_files_are_told() {
    let files = [
        ("sched_config", "muster_holidays_stale: ignore\n"),
        ("holidays", "YEAR 1998\n331 Nov 27 Thanksgiving\n"),
        ("dedicated_time", "11/20/2026 09:00 11/20/2026 11:00\n11/19/2026 09:00 11/19/2026 11:00\n"),
    ];
    let text = report(&files, None);
    for line in [
        "  the file is for 1998: its holidays do not count\n",
        "  prime at 2026-11-20 10:00, with no change to come\n",
        "  2026-11-19 09:00 to 2026-11-19 11:00 (over)\n",
        "  2026-11-20 09:00 to 2026-11-20 11:00 (open)",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

/// PBS-F-04: names from files cannot control a terminal.
#[test]
fn names_are_escaped() {
    let text = report(&[("resource_group", "a\u{1b}[2J 1 root 1\n")], None);
    assert!(text.contains("a\\u{1b}[2J") && !text.contains('\u{1b}'), "{text}");
    assert!(checked(&[("resource_group", "a\u{1b}[2J 1 root 1\n")]).policy.is_some());
}
