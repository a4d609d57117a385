//! Result files, holds, and the names of codes.

use crate::support::codes;
use muster_hpcpack::{
    codes::Code,
    hold,
    result_file::{HoldUntil, MOST_BYTES, ResultFile},
};
use muster_schemas::time::Timestamp;

fn at(text: &str) -> Timestamp {
    serde_json::from_value(text.into()).expect(text)
}

/// HPC-F-66
#[test]
fn result_files_give_a_hold_and_a_message() {
    let file = ResultFile::read(b"hold-until=+600\n\nmessage= two seats = too few \r\n");
    assert_eq!(file.hold_until, Some(HoldUntil::After(600)));
    assert_eq!(file.message.as_deref(), Some("two seats = too few"));
    assert_eq!(file.warnings, []);
    assert_eq!(HoldUntil::After(600).time(at("2026-11-20T08:00:00Z")), at("2026-11-20T08:10:00Z"));
    let file = ResultFile::read(b"hold-until=2026-11-20T09:30:00+01:00");
    assert_eq!(file.hold_until, Some(HoldUntil::At(at("2026-11-20T08:30:00Z"))));
    assert_eq!(ResultFile::read(b""), ResultFile::default());
}

/// HPC-F-66
#[test]
fn unknown_keys_and_bad_values_are_warned_of() {
    let long =
        format!("colour=red\nhold-until=soon\nhold-until=+1.5\nnothing\nmessage={}\nmessage=kept", "x".repeat(201));
    let file = ResultFile::read(long.as_bytes());
    assert_eq!((file.hold_until, file.message.as_deref()), (None, Some("kept")));
    assert_eq!(codes(&file.warnings), [Code::ResultFileNotValid; 5]);
    assert!(
        file.warnings[1].text.contains("line 2") && file.warnings[1].text.contains("`soon`"),
        "{}",
        file.warnings[1]
    );
    let endless = vec![b'\n'; MOST_BYTES + 1];
    assert_eq!(codes(&ResultFile::read(&endless).warnings), [Code::ResultFileNotValid]);
    let binary: Vec<u8> = (0..=255).collect();
    assert!(!ResultFile::read(&binary).warnings.is_empty());
}

/// HPC-H-02
#[test]
fn the_default_hold_has_bounds() {
    let range = hold::DEFAULT_DURATION_RANGE;
    assert!(!range.contains(&59) && range.contains(&60) && range.contains(&604_800) && !range.contains(&604_801));
}

/// HPC-H-07
#[test]
fn users_hold_until_a_time_or_for_minutes() {
    let now = at("2026-11-20T08:00:00Z");
    let parse = |text: &str| hold::parse(text, now).map_err(|refusal| refusal.code);
    assert_eq!(parse("30"), Ok(Some(at("2026-11-20T08:30:00Z"))));
    assert_eq!(parse("2026-11-21T00:00:00Z"), Ok(Some(at("2026-11-21T00:00:00Z"))));
    assert_eq!([parse(""), parse("0")], [Ok(None), Ok(None)]);
    for text in ["2026-11-20T08:00:00Z", "2020-01-01T00:00:00Z", "soon", "-5", "1.5"] {
        assert_eq!(parse(text), Err(Code::HoldUntilNotValid), "{text}");
    }
    assert_eq!(parse("2027-11-20T08:00:00Z"), Ok(Some(at("2027-11-20T08:00:00Z"))));
    for text in ["2027-11-20T08:00:01Z", "525601", "99999999999"] {
        assert_eq!(parse(text), Err(Code::HoldUntilTooLong), "{text}");
    }
}

/// HPC-E-10
#[test]
fn codes_have_the_names_of_the_specification() {
    let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    for name in [
        "PriorityNotValid",
        "PriorityConflict",
        "RunTimeNotValid",
        "RunTimeExpired",
        "SizeNotValid",
        "ClusterTooSmall",
        "UnusedSizeAttribute",
        "JobXmlNotValid",
        "UnknownJobTerm",
        "TemplateValueTooSmall",
        "TemplateValueTooLarge",
        "TemplateValueInvalid",
        "TemplateRequiredValueMissing",
        "TemplateDenied",
        "TemplateNotFound",
        "Preempted",
        "SubmissionFilterFailed",
        "SubmissionFilterTimedOut",
        "SubmissionFilterNotFound",
        "SubmissionFilterNotRunnable",
        "SubmissionFilterBadOutput",
        "SubmissionFilterRunnerLost",
        "FilterFileChangesIgnored",
        "TaskChangesIgnored",
        "ReadOnlyChangesIgnored",
        "FailedByActivationFilter",
        "UndefinedFilterExitCode",
        "ActivationFilterTimedOut",
        "ActivationFilterNotFound",
        "ActivationFilterRunnerLost",
        "RevertFailed",
        "HoldUntilNotValid",
        "HoldUntilTooLong",
        "HoldWrongState",
        "BackfillRunTimeFixed",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}
