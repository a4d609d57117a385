//! Refusals, word for word.

use muster_schemas::job::ExitStatus;
use muster_slurm::{
    getopt::Wrong,
    messages::{
        AllocationEvent, EndCause, ExitStatuses, Refusal, Rejection, end_note, submitted, wait_status, would_start,
    },
    options::Command,
};

fn lines(command: Command, rejection: Rejection) -> Vec<String> {
    let refusal = Refusal::Rejected(rejection);
    assert_eq!(refusal.exit_status(ExitStatuses::default()), 1);
    refusal.lines(command)
}

/// SL-C-09.
#[test]
fn rejections_of_a_batch_job() {
    let failed = |text: &str| format!("sbatch: error: Batch job submission failed: {text}");
    let told = |rejection| lines(Command::Sbatch, rejection);
    assert_eq!(
        told(Rejection::Partition("nope".into())),
        ["sbatch: error: invalid partition specified: nope".to_owned(), failed("Invalid partition name specified")]
    );
    assert_eq!(
        told(Rejection::Memory),
        [
            "sbatch: error: Memory specification can not be satisfied".to_owned(),
            failed("Requested node configuration is not available")
        ]
    );
    for (rejection, text) in [
        (Rejection::Reservation, "Requested reservation is invalid"),
        (Rejection::Feature, "Invalid feature specification"),
        (Rejection::Licence, "Invalid license specification"),
        (Rejection::NodeName, "Invalid node name specified"),
        (Rejection::NodeConfiguration, "Requested node configuration is not available"),
        (Rejection::Dependency, "Job dependency problem"),
        (Rejection::Array, "Invalid job array specification"),
        (Rejection::Permission, "Access/permission denied"),
        (Rejection::Account, "Invalid account or account/partition combination specified"),
        (Rejection::Qos, "Invalid qos specification"),
        (Rejection::Nice, "Invalid --nice value"),
    ] {
        assert_eq!(told(rejection), [failed(text)]);
    }
}

/// SL-L-04: the limit comes first.
#[test]
fn a_limit_is_told_before_the_rejection() {
    assert_eq!(
        lines(Command::Sbatch, Rejection::Policy(Some("AssocMaxSubmitJobLimit".into()))),
        [
            "sbatch: error: AssocMaxSubmitJobLimit",
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        ]
    );
}

/// SL-S-12, SL-S-21: a filter's message precedes the line with the rejection.
#[test]
fn a_filters_message_goes_first() {
    let told = lines(Command::Sbatch, Rejection::Filter("1: no GPUs today".into()));
    let rejected = "sbatch: error: Batch job submission failed: Job rejected by a submission filter";
    assert_eq!(told, ["sbatch: error: 1: no GPUs today", rejected]);
}

/// SL-C-21, SL-C-22: each command has its own words.
#[test]
fn each_command_tells_of_a_rejection_in_its_own_way() {
    assert_eq!(
        lines(Command::Salloc, Rejection::Feature),
        ["salloc: error: Job submit/allocate failed: Invalid feature specification"]
    );
    assert_eq!(
        lines(Command::Srun, Rejection::Feature),
        ["srun: error: Unable to allocate resources: Invalid feature specification"]
    );
}

/// SL-E-11: `SLURM_EXIT_ERROR=77 sbatch -p nope ...` exits 77.
#[test]
fn the_exit_status_of_errors_can_be_chosen() {
    let refusal = Refusal::Rejected(Rejection::Partition("nope".into()));
    let chosen = |name: &'static str, value: &str| {
        ExitStatuses::from_variables(|asked| (asked == name).then(|| value.to_owned()))
    };
    assert_eq!(refusal.exit_status(chosen("SLURM_EXIT_ERROR", "77")), 77);
    assert_eq!(Refusal::Option(Wrong::UnknownOption("x".into())).exit_status(chosen("SLURM_EXIT_ERROR", "77")), 77);
    for ignored in ["", "x", "0", "256", "-1"] {
        assert_eq!(refusal.exit_status(chosen("SLURM_EXIT_ERROR", ignored)), 1, "{ignored}");
    }
    let no_room = Refusal::Rejected(Rejection::NotImmediately);
    assert_eq!(no_room.exit_status(chosen("SLURM_EXIT_IMMEDIATE", "5")), 5);
    assert_eq!(no_room.exit_status(chosen("SLURM_EXIT_ERROR", "5")), 1);
}

/// SL-C-08, SL-R-04.
#[test]
fn other_refusals() {
    assert_eq!(
        Refusal::ArgumentsWithWrap.lines(Command::Sbatch),
        ["sbatch: error: Script arguments not permitted with --wrap option"]
    );
    assert_eq!(Refusal::ArgumentsWithWrap.exit_status(ExitStatuses::default()), 1);
    assert_eq!(Refusal::NoCommand.lines(Command::Srun), ["srun: fatal: No command given to execute."]);
}

/// SL-C-08, SL-S-11, SL-S-19.
#[test]
fn a_submitted_job_is_told_by_its_leader() {
    let text = |cluster, parsable, quiet| submitted(93, cluster, parsable, quiet);
    assert_eq!(text(None, false, false).as_deref(), Some("Submitted batch job 93"));
    assert_eq!(text(Some("beta"), false, false).as_deref(), Some("Submitted batch job 93 on cluster beta"));
    assert_eq!(text(None, true, false).as_deref(), Some("93"));
    assert_eq!(text(Some("beta"), true, true).as_deref(), Some("93;beta"));
    assert_eq!(text(None, false, true), None);
}

/// EX-11, SL-S-16, SL-C-21, SL-C-22.
#[test]
fn an_allocation_is_told_step_by_step() {
    let lines = |heterogeneous, waited| {
        let events = AllocationEvent::before_command(heterogeneous, waited);
        events.iter().filter_map(|event| event.line(Command::Salloc, 11741)).collect::<Vec<_>>()
    };
    let all = [
        "salloc: Pending job allocation 11741",
        "salloc: job 11741 queued and waiting for resources",
        "salloc: job 11741 has been allocated resources",
        "salloc: Granted job allocation 11741",
    ];
    assert_eq!(lines(true, false), all);
    assert_eq!(lines(false, true), all);
    assert_eq!(lines(false, false), all[3..]);
    let line = |event: AllocationEvent, command| event.line(command, 7);
    assert_eq!(line(AllocationEvent::Relinquished, Command::Salloc).unwrap(), "salloc: Relinquishing job allocation 7");
    assert_eq!(line(AllocationEvent::Revoked, Command::Salloc).unwrap(), "salloc: Job allocation 7 has been revoked.");
    assert_eq!(line(AllocationEvent::Queued, Command::Srun).unwrap(), "srun: job 7 queued and waiting for resources");
    assert_eq!(line(AllocationEvent::Granted, Command::Srun), None);
}

/// SL-C-10, SL-S-24.
#[test]
fn a_test_tells_when_the_job_would_start() {
    assert_eq!(
        would_start(Command::Sbatch, 5, "2026-11-20T10:00:00", 1, "nid00001", Some("debug")),
        "sbatch: Job 5 to start at 2026-11-20T10:00:00 using 1 processors on nodes nid00001 in partition debug"
    );
    assert_eq!(
        would_start(Command::Sbatch, 5, "2026-11-20T10:00:00", 5, "nid[00001-00003]", None),
        "sbatch: Job 5 to start at 2026-11-20T10:00:00 using 5 processors on nid[00001-00003]"
    );
}

/// SL-C-10.
#[test]
fn a_test_tells_why_the_job_would_be_refused() {
    let told = |rejection: Rejection| rejection.of_test(Command::Sbatch);
    assert_eq!(
        told(Rejection::NodeConfiguration),
        ["allocation failure: Requested node configuration is not available"]
    );
    assert_eq!(
        told(Rejection::Partition("nope".into())),
        ["sbatch: error: invalid partition specified: nope", "allocation failure: Invalid partition name specified"]
    );
}

/// SL-C-11.
#[test]
fn waiting_ends_with_the_jobs_status() {
    use ExitStatus::{Code, Signal};
    assert_eq!(wait_status(&[Some(Code(3))]), 3);
    assert_eq!(wait_status(&[Some(Signal(9))]), 1);
    assert_eq!(wait_status(&[None]), 1);
    assert_eq!(wait_status(&[Some(Code(0)), Some(Code(7)), Some(Code(2))]), 7);
}

/// SL-C-30
#[test]
fn a_script_that_was_ended_says_when_where_and_why() {
    let note = |cause| end_note("JOB 7", "nid00001", crate::support::ago(0), &jiff::tz::TimeZone::UTC, cause);
    let line =
        |why: &str| format!("slurmstepd: error: *** JOB 7 ON nid00001 CANCELLED AT 2026-11-20T08:20:00{why} ***\n");
    assert_eq!(note(EndCause::Cancelled), line(""));
    assert_eq!(note(EndCause::TimeLimit), line(" DUE TO TIME LIMIT"));
    assert_eq!(note(EndCause::Requeue), line(" DUE TO JOB REQUEUE"));
}
