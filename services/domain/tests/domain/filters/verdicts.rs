//! The tables of verdicts, and the messages about them.

use super::support::{code, ended, filter};
use muster_domain::filters::verdict::{Answer, Attempt, activation};
use muster_schemas::filter::{ChainVerdict, FileAfter, FilterExit, FilterKind, FilterReport, FilterSpec};

fn absent() -> [FilterExit; 4] {
    let path = "/opt/site/licences".to_owned();
    [
        FilterExit::TimedOut,
        FilterExit::NotFound(path),
        FilterExit::NotRunnable("it is not executable".into()),
        FilterExit::RunnerLost,
    ]
}

fn licences() -> FilterSpec {
    FilterSpec { path: "/opt/site/licences".into(), ..filter("licences") }
}

fn with<T>(report: &FilterReport, say: impl FnOnce(Answer) -> T) -> T {
    say(Answer { filter: &licences(), limit_seconds: 15, report })
}

/// HPC-F-10
#[test]
fn submission_verdicts_are_those_of_the_table() {
    let failure = |exit: FilterExit| with(&ended(exit), |answer| answer.submission_failure());
    assert_eq!([failure(FilterExit::Code(0)), failure(FilterExit::Code(1))], [None, None]);
    for code in 2..=255 {
        let text = failure(FilterExit::Code(code)).expect("it fails");
        assert_eq!(
            text,
            format!("[SubmissionFilterFailed] submission filter 'licences' failed the job (exit code {code})")
        );
    }
    let codes = absent().map(|exit| failure(exit).expect("it fails").split(']').next().expect("a code").to_owned());
    let expected = ["TimedOut", "NotFound", "NotRunnable", "RunnerLost"].map(|code| format!("[SubmissionFilter{code}"));
    assert_eq!(codes, expected);
    let bad = FilterReport { file: FileAfter::Bad("the file is empty".into()), ..code(1) };
    assert!(with(&bad, |answer| !answer.passes(FilterKind::Submission)));
}

/// HPC-F-08
#[test]
fn a_death_by_signal_is_any_other_exit_code() {
    for attempt in [Attempt::Start, Attempt::Backfill, Attempt::Growth] {
        assert_eq!(activation(attempt, &FilterExit::Signal(9)), activation(attempt, &FilterExit::Code(5)));
    }
    let text = with(&ended(FilterExit::Signal(9)), |answer| answer.submission_failure());
    assert!(text.is_some_and(|text| text.ends_with("(exit code 137)")));
}

/// HPC-F-30
#[test]
fn activation_verdicts_of_queued_jobs_are_those_of_the_table() {
    use ChainVerdict::{Block, Fail, Hold, Pass, Reserve};
    let start = |exit: &FilterExit| activation(Attempt::Start, exit);
    for (code, verdict) in [(0, Pass), (1, Block), (2, Reserve), (3, Hold), (4, Fail)] {
        assert_eq!(start(&FilterExit::Code(code)), (verdict, None), "{code}");
    }
    for code in 5..=255 {
        assert_eq!(start(&FilterExit::Code(code)), (Reserve, Some("UndefinedFilterExitCode")), "{code}");
    }
    let warnings = ["TimedOut", "NotFound", "NotFound", "RunnerLost"];
    for (exit, warning) in absent().iter().zip(warnings) {
        let (verdict, code) = start(exit);
        assert_eq!((verdict, code), (Reserve, Some(format!("ActivationFilter{warning}").as_str())));
    }
}

/// HPC-F-33
#[test]
fn activation_verdicts_of_growing_jobs_are_those_of_the_table() {
    let growth = |exit: &FilterExit| activation(Attempt::Growth, exit);
    assert_eq!(growth(&FilterExit::Code(0)), (ChainVerdict::Pass, None));
    assert_eq!(growth(&FilterExit::Code(1)), (ChainVerdict::NotNow, None), "a plain no");
    for code in 2..=255 {
        let found = growth(&FilterExit::Code(code));
        assert_eq!(found, (ChainVerdict::NotNow, Some("UndefinedFilterExitCode")), "{code}");
    }
    assert!(absent().iter().all(|exit| growth(exit).0 == ChainVerdict::NotNow && growth(exit).1.is_some()));
}

/// HPC-F-37
#[test]
fn in_a_window_no_means_not_now() {
    use ChainVerdict::{Fail, Hold, NotNow, Pass};
    for (code, verdict) in [(0, Pass), (1, NotNow), (2, NotNow), (3, Hold), (4, Fail), (5, NotNow)] {
        assert_eq!(activation(Attempt::Backfill, &FilterExit::Code(code)).0, verdict, "{code}");
    }
    for exit in absent() {
        let (verdict, warning) = activation(Attempt::Backfill, &exit);
        assert_eq!((verdict, warning), (NotNow, activation(Attempt::Start, &exit).1));
    }
}

/// HPC-E-10
#[test]
fn messages_hold_what_they_must() {
    let failure = |exit: FilterExit| with(&ended(exit), |answer| answer.submission_failure()).unwrap_or_default();
    let [timed_out, not_found, not_runnable, lost] = absent().map(failure);
    assert_eq!(timed_out, "[SubmissionFilterTimedOut] submission filter 'licences' timed out after 15 s");
    assert_eq!(not_found, "[SubmissionFilterNotFound] submission filter 'licences' was not found: /opt/site/licences");
    assert_eq!(
        not_runnable,
        "[SubmissionFilterNotRunnable] submission filter 'licences' cannot be run: it is not executable"
    );
    assert_eq!(lost, "[SubmissionFilterRunnerLost] submission filter 'licences' got no answer from a runner");
    let text = with(&code(4), |answer| answer.activation_failure());
    assert_eq!(text, "[FailedByActivationFilter] the job was failed by activation filter 'licences'");
}

/// HPC-F-30, HPC-F-33
#[test]
fn warnings_name_filter_and_cause() {
    let warning = |attempt, exit: FilterExit| {
        with(&ended(exit), |answer| answer.activation_warning(attempt))
            .map(|warning| format!("{}: {}", warning.code, warning.text))
    };
    for (attempt, exit, expected) in [
        (
            Attempt::Start,
            FilterExit::Code(5),
            "UndefinedFilterExitCode: activation filter 'licences' answered with exit code 5, which has no meaning for a queued job",
        ),
        (
            Attempt::Growth,
            FilterExit::Code(3),
            "UndefinedFilterExitCode: activation filter 'licences' answered with exit code 3, which has no meaning for a growing job",
        ),
        (
            Attempt::Start,
            FilterExit::TimedOut,
            "ActivationFilterTimedOut: activation filter 'licences' timed out after 15 s",
        ),
        (
            Attempt::Backfill,
            FilterExit::NotRunnable("it is not executable".into()),
            "ActivationFilterNotFound: activation filter 'licences' cannot be run: it is not executable",
        ),
    ] {
        assert_eq!(warning(attempt, exit).as_deref(), Some(expected));
    }
    assert_eq!(warning(Attempt::Start, FilterExit::Code(2)), None);
}

/// HPC-F-54
#[test]
fn a_revert_that_does_not_exit_with_0_is_warned_of() {
    assert_eq!(with(&code(0), |answer| answer.revert_warning()), None);
    let warning = with(&code(3), |answer| answer.revert_warning()).expect("a warning");
    assert_eq!(
        (&*warning.code, &*warning.text),
        ("RevertFailed", "filter 'licences' could not be reverted: exit code 3")
    );
    assert!(absent().into_iter().all(|exit| with(&ended(exit), |answer| answer.revert_warning()).is_some()));
}

/// HPC-F-58
#[test]
fn only_an_unknown_end_of_a_filter_that_wants_it_is_rolled_back_without_a_pass() {
    let wants = FilterSpec { revert_on_unknown: true, ..licences() };
    let is_rolled_back = |exit: FilterExit| {
        Answer { filter: &wants, limit_seconds: 15, report: &ended(exit) }.is_rolled_back(FilterKind::Activation)
    };
    assert_eq!(absent().map(is_rolled_back), [true, false, false, true]);
    assert!(!is_rolled_back(FilterExit::Code(7)) && !is_rolled_back(FilterExit::Signal(9)));
}
