//! States, signals, and what a job finds when it starts.

use crate::support::s;
use muster_oar::life::{
    deletion,
    launch::{self, Form, Launched, Message},
    neutral::{self, Neutral},
    state::State,
};
use muster_schemas::job::{ExitStatus, JobState, Outcome};
use std::collections::BTreeSet;

/// OAR-J-01: the states, as front ends spell them; OAR-C-08: their letters.
#[test]
fn states_have_their_words_and_letters() {
    let words = State::ALL.map(State::word).join(" ");
    assert_eq!(
        words,
        "Waiting Hold toLaunch toError toAckReservation Launching Running Suspended Resuming Finishing Terminated Error"
    );
    assert_eq!(State::ALL.map(State::letter).iter().collect::<String>(), "WHLEWLRSSFTE");
    assert_eq!(State::ALL.map(|state| State::named(state.word())), State::ALL.map(Some));
}

fn told(state: JobState, outcome: Option<&Outcome>) -> Neutral<'_> {
    Neutral {
        state,
        outcome,
        is_held: false,
        is_unanswered: false,
        is_resuming: false,
        is_noop: false,
        is_pulled: false,
        has_run: true,
    }
}

/// OAR-K-06: the command of a job of an agent's node ended by itself if it exited, and not if a signal ended it.
#[test]
fn a_signal_ends_a_job_of_an_agent_in_error() {
    for (status, expected) in [(ExitStatus::Code(3), State::Terminated), (ExitStatus::Signal(9), State::Error)] {
        let outcome = Outcome::Failed(status);
        let job = Neutral { is_pulled: true, ..told(JobState::Finished, Some(&outcome)) };
        assert_eq!(neutral::state(job), expected, "{status:?}");
    }
}

/// OAR-J-01, OAR-J-04, OAR-T-70: the state of a job follows from muster's description of it.
#[test]
fn states_follow_from_the_neutral_description() {
    let plain = |state| neutral::state(told(state, None));
    assert_eq!(
        JobState::ALL[..6].iter().map(|state| plain(*state).word()).collect::<Vec<_>>(),
        ["Waiting", "Waiting", "Launching", "Running", "Suspended", "Finishing"]
    );
    let held = Neutral { is_held: true, ..told(JobState::Held, None) };
    let unanswered = Neutral { is_unanswered: true, ..told(JobState::Queued, None) };
    let resuming = Neutral { is_resuming: true, ..told(JobState::Suspended, None) };
    assert_eq!(
        [held, unanswered, resuming].map(neutral::state),
        [State::Hold, State::ToAckReservation, State::Resuming]
    );
    for (outcome, state) in [
        (Outcome::Completed, State::Terminated),
        (Outcome::Failed(ExitStatus::Code(3)), State::Terminated),
        (Outcome::Failed(ExitStatus::Signal(11)), State::Terminated),
        (Outcome::Cancelled, State::Error),
        (Outcome::TimedOut, State::Error),
        (Outcome::Preempted, State::Error),
        (Outcome::LaunchFailed(String::new()), State::Error),
        (Outcome::NodeLost(String::new()), State::Error),
        (Outcome::Refused(String::new()), State::Error),
    ] {
        let finished = told(JobState::Finished, Some(&outcome));
        assert_eq!(neutral::state(finished), state, "{outcome:?}");
        let is_end_of_noop = matches!(outcome, Outcome::Cancelled | Outcome::TimedOut);
        let expected = if is_end_of_noop { State::Terminated } else { state };
        let noop = Neutral { is_noop: true, ..finished };
        assert_eq!(neutral::state(noop), expected, "{outcome:?}");
        let never_ran = if is_end_of_noop { State::Error } else { expected };
        assert_eq!(neutral::state(Neutral { has_run: false, ..noop }), never_ran, "{outcome:?}");
    }
    let declared = told(JobState::Finished, Some(&Outcome::DeclaredFinished));
    assert_eq!(neutral::state(declared), State::Terminated);
    assert_eq!(neutral::state(Neutral { has_run: false, ..declared }), State::Error);
    assert_eq!(neutral::state(told(JobState::Finished, None)), State::Error);
    assert_eq!(neutral::wait_status(&Outcome::Failed(ExitStatus::Code(99))), Some(25_344));
    assert_eq!(neutral::wait_status(&Outcome::Failed(ExitStatus::Signal(9))), Some(9));
    assert_eq!(neutral::wait_status(&Outcome::Cancelled), None);
}

/// OAR-S-31, OAR-S-32: to which jobs a signal can be sent.
#[test]
fn signals_go_to_running_jobs() {
    let request =
        deletion::Request { has_right: true, state: State::Running, is_being_deleted: false, is_interactive: false };
    assert_eq!(deletion::signal(request), Ok(()));
    assert_eq!(deletion::signal(deletion::Request { state: State::Suspended, ..request }), Err(5));
    assert_eq!(deletion::signal(deletion::Request { is_interactive: true, ..request }), Err(7));
    assert_eq!(deletion::signal(deletion::Request { has_right: false, ..request }), Err(1));
}

/// OAR-J-13: the variables of a job.
#[test]
fn a_job_has_its_variables() {
    let job = Launched {
        job: 42,
        array: 40,
        index: 3,
        user: "ann".to_owned(),
        name: "run".to_owned(),
        project: "bio".to_owned(),
        directory: "/home/ann".to_owned(),
        walltime: 7830,
        node_file: "/tmp/nodes".to_owned(),
        property_file: "/tmp/properties".to_owned(),
        stdout: "/home/ann/OAR.run.42.stdout".to_owned(),
        stderr: "/home/ann/OAR.run.42.stderr".to_owned(),
    };
    let variables = launch::variables(&job);
    for (names, value) in [
        ("OAR_JOBID OAR_JOB_ID", "42"),
        ("OAR_ARRAYID OAR_ARRAY_ID", "40"),
        ("OAR_ARRAYINDEX OAR_ARRAY_INDEX", "3"),
        ("OAR_USER", "ann"),
        ("OAR_JOB_NAME", "run"),
        ("OAR_PROJECT_NAME", "bio"),
        ("OAR_NODEFILE OAR_NODE_FILE OAR_FILE_NODES OAR_RESOURCE_FILE", "/tmp/nodes"),
        ("OAR_RESOURCE_PROPERTIES_FILE", "/tmp/properties"),
        ("OAR_WORKDIR OAR_O_WORKDIR OAR_WORKING_DIRECTORY", "/home/ann"),
        ("OAR_STDOUT", "/home/ann/OAR.run.42.stdout"),
        ("OAR_STDERR", "/home/ann/OAR.run.42.stderr"),
        ("OAR_JOB_WALLTIME", "2:10:30"),
        ("OAR_JOB_WALLTIME_SECONDS", "7830"),
    ] {
        for name in names.split(' ') {
            assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
        }
    }
    assert_eq!(variables.len(), 21);
}

/// OAR-X-01: the name of an isolation group, as `oarstat` shows it.
#[test]
fn isolation_groups_have_names() {
    assert_eq!(launch::isolation_group("ann", 42), "ann_42");
}

/// OAR-J-15: one line for each resource, without the properties of the system.
#[test]
fn the_property_file_has_the_properties_of_the_site() {
    let lines = launch::property_file(&s(), &BTreeSet::from([1, 9]));
    assert_eq!(lines[0], "core = '1', cpu = 'c1', network_address = 'n1', resource_id = '1', switch = 's1'");
    assert_eq!(lines.len(), 2);
}

/// OAR-J-23: the message of a job.
#[test]
fn the_message_of_a_job() {
    let message = Message {
        resources: 8,
        walltime: 3600,
        form: Form::Batch,
        name: "",
        queue: None,
        project: "",
        types: &[],
        remark: "Karma=1.000",
    };
    assert_eq!(launch::message(&message), "R=8,W=1:0:0,J=B (Karma=1.000)");
    let types = ["besteffort".to_owned(), "idempotent".to_owned()];
    let full = Message {
        form: Form::Reservation,
        name: "run",
        queue: Some("night"),
        project: "bio",
        types: &types,
        ..message
    };
    assert_eq!(launch::message(&full), "R=8,W=1:0:0,J=R,N=run,Q=night,P=bio,T=besteffort|idempotent (Karma=1.000)");
}
