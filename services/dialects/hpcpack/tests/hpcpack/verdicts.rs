//! The tables of verdicts, the messages, result files and holds.

use crate::support::codes;
use muster_hpcpack::{
    changes::BadOutput,
    codes::Code,
    description::values::JobState,
    hold,
    result_file::{HoldUntil, MOST_BYTES, ResultFile},
    run_time::RunTime,
    verdict::{ActivationAction, Attempt, Call, CallResult, SubmissionAction, activation, submission},
};
use muster_schemas::time::Timestamp;

const NOT_CODES: [CallResult; 4] =
    [CallResult::TimedOut, CallResult::NotFound, CallResult::NotRunnable, CallResult::RunnerLost];

fn call(result: CallResult) -> Call<'static> {
    Call { name: "licences", path: "/opt/site/licences", limit_seconds: 15, result, reason: "it is not executable" }
}

/// HPC-F-10
#[test]
fn submission_verdicts_are_those_of_the_table() {
    assert_eq!(submission(CallResult::Exited(0)), SubmissionAction::Pass);
    assert_eq!(submission(CallResult::Exited(1)), SubmissionAction::TakeChanges);
    for code in 2..=255 {
        assert_eq!(
            submission(CallResult::Exited(code)),
            SubmissionAction::Fail(Code::SubmissionFilterFailed),
            "{code}"
        );
    }
    assert_eq!(submission(CallResult::Signaled(9)), SubmissionAction::Fail(Code::SubmissionFilterFailed));
    assert_eq!(
        NOT_CODES.map(submission),
        [
            Code::SubmissionFilterTimedOut,
            Code::SubmissionFilterNotFound,
            Code::SubmissionFilterNotRunnable,
            Code::SubmissionFilterRunnerLost,
        ]
        .map(SubmissionAction::Fail)
    );
}

/// HPC-F-08
#[test]
fn a_death_by_signal_is_any_other_exit_code() {
    assert_eq!(CallResult::Signaled(15).exit_code(), Some(143));
    assert_eq!(CallResult::Exited(255).exit_code(), Some(255));
    assert_eq!(CallResult::TimedOut.exit_code(), None);
    for attempt in [Attempt::Start, Attempt::Backfill, Attempt::Growth] {
        assert_eq!(activation(attempt, CallResult::Signaled(9)), activation(attempt, CallResult::Exited(5)));
    }
}

/// HPC-F-58
#[test]
fn only_time_outs_and_lost_runners_leave_it_unknown_what_was_done() {
    assert_eq!(NOT_CODES.map(CallResult::is_unknown), [true, false, false, true]);
    assert!(!CallResult::Exited(7).is_unknown() && !CallResult::Signaled(9).is_unknown());
}

/// HPC-F-30
#[test]
fn activation_verdicts_of_queued_jobs_are_those_of_the_table() {
    use ActivationAction::{Block, Fail, Hold, Pass, Reserve};
    let start = |result| activation(Attempt::Start, result);
    for (code, action) in [(0, Pass), (1, Block), (2, Reserve), (3, Hold), (4, Fail)] {
        assert_eq!(start(CallResult::Exited(code)), (action, None), "{code}");
    }
    for code in 5..=255 {
        assert_eq!(start(CallResult::Exited(code)), (Reserve, Some(Code::UndefinedFilterExitCode)), "{code}");
    }
    let warnings = [
        Code::ActivationFilterTimedOut,
        Code::ActivationFilterNotFound,
        Code::ActivationFilterNotFound,
        Code::ActivationFilterRunnerLost,
    ];
    assert_eq!(NOT_CODES.map(start), warnings.map(|code| (Reserve, Some(code))));
}

/// HPC-F-33
#[test]
fn activation_verdicts_of_growing_jobs_are_those_of_the_table() {
    use ActivationAction::{NotNow, Pass};
    let growth = |result| activation(Attempt::Growth, result);
    assert_eq!(growth(CallResult::Exited(0)), (Pass, None));
    for code in 2..=255 {
        assert_eq!(growth(CallResult::Exited(code)), (NotNow, Some(Code::UndefinedFilterExitCode)), "{code}");
    }
    let warnings = [
        Code::ActivationFilterTimedOut,
        Code::ActivationFilterNotFound,
        Code::ActivationFilterNotFound,
        Code::ActivationFilterRunnerLost,
    ];
    assert_eq!(NOT_CODES.map(growth), warnings.map(|code| (NotNow, Some(code))));
}

/// HPC-F-33
#[test]
fn one_is_a_plain_no_to_growth() {
    assert_eq!(activation(Attempt::Growth, CallResult::Exited(1)), (ActivationAction::NotNow, None));
}

/// HPC-F-37
#[test]
fn in_a_window_no_means_not_now() {
    use ActivationAction::{Fail, Hold, NotNow, Pass};
    let backfill = |result| activation(Attempt::Backfill, result);
    for (code, action) in [(0, Pass), (1, NotNow), (2, NotNow), (3, Hold), (4, Fail)] {
        assert_eq!(backfill(CallResult::Exited(code)), (action, None), "{code}");
    }
    for result in [CallResult::Exited(5), CallResult::Signaled(11)].into_iter().chain(NOT_CODES) {
        let (action, warning) = backfill(result);
        assert_eq!(action, NotNow, "{result}");
        assert_eq!(warning, activation(Attempt::Start, result).1, "{result}");
    }
}

/// HPC-E-10
#[test]
fn messages_hold_what_they_must() {
    let failure = |result| call(result).submission_failure().map(|failure| failure.to_string());
    for (result, message) in [
        (CallResult::Exited(7), "[SubmissionFilterFailed] submission filter 'licences' failed the job (exit code 7)"),
        (
            CallResult::Signaled(9),
            "[SubmissionFilterFailed] submission filter 'licences' failed the job (exit code 137)",
        ),
        (CallResult::TimedOut, "[SubmissionFilterTimedOut] submission filter 'licences' timed out after 15 s"),
        (
            CallResult::NotFound,
            "[SubmissionFilterNotFound] submission filter 'licences' was not found: /opt/site/licences",
        ),
        (
            CallResult::NotRunnable,
            "[SubmissionFilterNotRunnable] submission filter 'licences' cannot be run: it is not executable",
        ),
        (
            CallResult::RunnerLost,
            "[SubmissionFilterRunnerLost] submission filter 'licences' got no answer from a runner",
        ),
    ] {
        assert_eq!(failure(result).as_deref(), Some(message));
    }
    assert_eq!([failure(CallResult::Exited(0)), failure(CallResult::Exited(1))], [None, None]);
    assert_eq!(
        call(CallResult::Exited(1)).bad_output(&BadOutput::Empty).to_string(),
        "[SubmissionFilterBadOutput] submission filter 'licences' gave an invalid job description: the file is empty"
    );
    assert_eq!(
        call(CallResult::Exited(4)).activation_failure(Attempt::Start).map(|failure| failure.to_string()).as_deref(),
        Some("[FailedByActivationFilter] the job was failed by activation filter 'licences'")
    );
    assert_eq!(call(CallResult::Exited(4)).activation_failure(Attempt::Growth), None);
    assert_eq!(RunTime::expired(60).to_string(), "[RunTimeExpired] the run time of 60 s is over");
    assert_eq!(Code::Preempted.message("by job 7"), "[Preempted] by job 7");
}

/// HPC-F-30
#[test]
fn activation_warnings_name_filter_and_cause() {
    let warning = |attempt, result| call(result).activation_warning(attempt).map(|warning| warning.to_string());
    for (attempt, result, expected) in [
        (
            Attempt::Start,
            CallResult::Exited(5),
            "[UndefinedFilterExitCode] activation filter 'licences' answered with exit code 5, which has no meaning for a queued job",
        ),
        (
            Attempt::Growth,
            CallResult::Exited(3),
            "[UndefinedFilterExitCode] activation filter 'licences' answered with exit code 3, which has no meaning for a growing job",
        ),
        (
            Attempt::Start,
            CallResult::TimedOut,
            "[ActivationFilterTimedOut] activation filter 'licences' timed out after 15 s",
        ),
        (
            Attempt::Backfill,
            CallResult::NotRunnable,
            "[ActivationFilterNotFound] activation filter 'licences' cannot be run: it is not executable",
        ),
    ] {
        assert_eq!(warning(attempt, result).as_deref(), Some(expected));
    }
    assert_eq!(warning(Attempt::Start, CallResult::Exited(2)), None);
}

/// HPC-F-54
#[test]
fn a_revert_that_does_not_exit_with_0_is_warned_of() {
    assert_eq!(call(CallResult::Exited(0)).revert_warning(), None);
    let warning = call(CallResult::Exited(3)).revert_warning().expect("a warning");
    assert_eq!(warning.to_string(), "[RevertFailed] filter 'licences' could not be reverted: exit code 3");
    assert!(NOT_CODES.iter().all(|result| call(*result).revert_warning().is_some()));
}

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

/// HPC-H-03
#[test]
fn a_hold_without_a_future_time_takes_the_default_duration() {
    let now = at("2026-11-20T08:00:00Z");
    for given in [None, Some(now), Some(at("2026-11-20T07:59:59Z"))] {
        assert_eq!(hold::after_verdict(now, given, 900), at("2026-11-20T08:15:00Z"));
    }
}

/// HPC-H-04
#[test]
fn a_hold_with_a_future_time_takes_it_exactly() {
    let (now, later) = (at("2026-11-20T08:00:00Z"), at("2026-11-20T08:00:00.000001Z"));
    assert_eq!(hold::after_verdict(now, Some(later), 900), later);
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

/// HPC-H-07
#[test]
fn only_jobs_that_have_not_started_can_be_held() {
    let before = JobState::ALL.iter().position(|state| *state == JobState::Running).expect("a state");
    for (index, state) in JobState::ALL.iter().enumerate() {
        let held = hold::check_state(*state).map_err(|refusal| refusal.code);
        assert_eq!(held, if index < before { Ok(()) } else { Err(Code::HoldWrongState) }, "{state}");
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
    assert!(Code::RevertFailed.is_warning() && Code::UnusedSizeAttribute.is_warning());
    assert!(!Code::Preempted.is_warning() && !Code::PriorityNotValid.is_warning());
}
