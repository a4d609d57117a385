//! States, clocks, ends, dependencies, and what a job finds when it starts.

use crate::support::{ids, s};
use muster_oar::{
    life::{
        clock::Clock,
        deletion::{self, Effect, Patience},
        launch::{self, Form, Launched, Message, NodeFile, Predictions},
        neutral::{self, Neutral},
        resubmission::{self, Asked, Cause, Ended, MINIMUM_RUN},
        state::State,
        suspension::{self, Site},
    },
    options::notify::Tag,
    planning::dependency::{self, Dependencies, Gate, Policy, Required},
    resources::{property::TYPE, value::Value},
};
use muster_schemas::job::{ExitStatus, JobState, Outcome};
use proptest::prelude::*;
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

/// OAR-J-02: only these moves happen; OAR-J-03: nothing moves what is final.
#[test]
fn only_these_moves_happen() {
    let table = [
        (State::Waiting, "Hold toLaunch toAckReservation toError Error"),
        (State::Hold, "Waiting Error"),
        (State::ToAckReservation, "Waiting Error"),
        (State::ToError, "Error"),
        (State::ToLaunch, "Launching Error"),
        (State::Launching, "Running Finishing Error"),
        (State::Running, "Suspended Finishing"),
        (State::Suspended, "Resuming Finishing"),
        (State::Resuming, "Running Suspended Finishing"),
        (State::Finishing, "Terminated Error"),
        (State::Terminated, ""),
        (State::Error, ""),
    ];
    assert_eq!(table.len(), State::ALL.len());
    for (from, to) in table {
        let allowed: BTreeSet<&str> = to.split_whitespace().collect();
        for target in State::ALL {
            let moved = from.moved(target);
            assert_eq!(moved.is_ok(), allowed.contains(target.word()), "{from} {target}");
            assert_eq!(moved.unwrap_or(from), if moved.is_ok() { target } else { from });
        }
        assert_eq!(from.is_final(), allowed.is_empty());
    }
    let refused = State::Error.moved(State::Running).expect_err("final");
    assert_eq!(refused.to_string(), "a job does not go from Error to Running");
}

fn told(state: JobState, outcome: Option<&Outcome>) -> Neutral<'_> {
    Neutral { state, outcome, is_held: false, is_unanswered: false, is_resuming: false, is_noop: false }
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
        assert_eq!(neutral::state(Neutral { is_noop: true, ..finished }), expected, "{outcome:?}");
    }
    assert_eq!(neutral::state(told(JobState::Finished, None)), State::Error);
    assert_eq!(neutral::wait_status(&Outcome::Failed(ExitStatus::Code(99))), Some(25_344));
    assert_eq!(neutral::wait_status(&Outcome::Failed(ExitStatus::Signal(9))), Some(9));
    assert_eq!(neutral::wait_status(&Outcome::Cancelled), None);
}

/// OAR-N-04: what each move tells the user (that each is told once waits for the live system).
#[test]
fn moves_tell_the_user() {
    for (from, to, tag) in [
        (State::Launching, State::Running, Some(Tag::Running)),
        (State::Resuming, State::Running, None),
        (State::Running, State::Suspended, Some(Tag::Suspended)),
        (State::Suspended, State::Resuming, Some(Tag::Resuming)),
        (State::Finishing, State::Terminated, Some(Tag::End)),
        (State::Finishing, State::Error, Some(Tag::Error)),
        (State::Waiting, State::Error, Some(Tag::Error)),
        (State::Waiting, State::Hold, None),
        (State::Running, State::Finishing, None),
    ] {
        assert_eq!(from.tag(to), tag, "{from} {to}");
    }
}

fn ended(cause: Cause, ran: i64) -> Ended {
    Ended {
        cause,
        ran,
        is_idempotent: true,
        is_interactive: false,
        is_reservation: false,
        is_on_front_host: false,
        is_replaced: false,
    }
}

const AGAIN: Cause = Cause::Itself { exit_code: Some(99) };

fn is_due(job: Ended) -> bool {
    resubmission::is_due(job, MINIMUM_RUN)
}

/// OAR-T-30, OAR-T-31, OAR-T-32: exit code 99 of an idempotent job that ran long enough gives one new job.
#[test]
fn exit_99_gives_one_new_job() {
    assert_eq!([60, 61].map(|ran| is_due(ended(AGAIN, ran))), [false, true]);
    for exit_code in [None, Some(0), Some(1), Some(98), Some(100)] {
        assert!(!is_due(ended(Cause::Itself { exit_code }, 3600)), "{exit_code:?}");
    }
    let long = ended(AGAIN, 3600);
    assert!(!is_due(Ended { is_idempotent: false, ..long }));
    assert!(!is_due(Ended { is_interactive: true, ..long }));
    assert!(!is_due(Ended { is_reservation: true, ..long }));
    assert!(!is_due(Ended { is_replaced: true, ..long }));
    assert!(!is_due(ended(Cause::Deleted, 3600)) && !is_due(ended(Cause::Walltime, 3600)));
    assert!(resubmission::is_due(ended(AGAIN, 11), 10));
}

/// W5, OAR-T-22: an idempotent job that makes way is made anew, whatever its age.
#[test]
fn w5_an_idempotent_job_that_makes_way_is_made_anew() {
    assert!(is_due(ended(Cause::MadeWay, 0)));
    assert!(!is_due(Ended { is_idempotent: false, ..ended(Cause::MadeWay, 3600) }));
    assert!(!is_due(Ended { is_replaced: true, ..ended(Cause::MadeWay, 3600) }));
}

/// OAR-J-20: a failed preparation gives a new job up to three times in a chain.
#[test]
fn a_failed_preparation_is_tried_again() {
    let failed = |chain| Ended { is_idempotent: false, ..ended(Cause::Preparation { chain }, 0) };
    assert_eq!([0, 1, 2, 3].map(|chain| is_due(failed(chain))), [true, true, true, false]);
    assert!(!is_due(Ended { is_on_front_host: true, ..failed(0) }));
    assert!(!is_due(Ended { is_interactive: true, ..failed(0) }));
    assert!(!is_due(Ended { is_reservation: true, ..failed(0) }));
}

/// OAR-J-22: which jobs can be submitted again on demand.
#[test]
fn jobs_are_submitted_again_on_demand() {
    let asked = Asked {
        is_interactive: false,
        is_reservation: false,
        state: State::Error,
        is_own: true,
        are_keys_in_use: false,
    };
    for state in State::ALL {
        let expected = matches!(state, State::Terminated | State::Error | State::Finishing);
        assert_eq!(resubmission::on_demand(Asked { state, ..asked }).is_ok(), expected, "{state}");
    }
    for (job, code) in [
        (Asked { is_interactive: true, ..asked }, -1),
        (Asked { is_reservation: true, state: State::Running, ..asked }, -1),
        (Asked { state: State::Running, is_own: false, ..asked }, -2),
        (Asked { is_own: false, are_keys_in_use: true, ..asked }, -3),
        (Asked { are_keys_in_use: true, ..asked }, -4),
    ] {
        assert_eq!(resubmission::on_demand(job), Err(code));
    }
}

/// W7, OAR-S-20, OAR-S-21: the signals of a deletion, and when the job is closed (signals and events wait for the live
/// system).
#[test]
fn w7_a_deletion_with_a_dead_node() {
    let (mut signals, mut closed, mut was_signalled) = (Vec::new(), None, false);
    for now in (0..400).step_by(10) {
        match deletion::step(0, was_signalled, now, Patience::default()) {
            deletion::Step::Terminate => {
                signals.push(now);
                was_signalled = true;
            }
            deletion::Step::Close => {
                closed = Some(now);
                break;
            }
            deletion::Step::Wait => {}
        }
    }
    let expected: Vec<i64> = [0].into_iter().chain((30..=300).step_by(10)).collect();
    assert_eq!((signals, closed), (expected, Some(310)));
    let nodes = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(deletion::suspected(&nodes(&["n1", "n2"]), &nodes(&["n2"]), true), nodes(&["n1"]));
    assert_eq!(deletion::suspected(&nodes(&["n1", "n2"]), &nodes(&["n2"]), false), nodes(&["n1", "n2"]));
}

/// OAR-S-08, OAR-S-22, OAR-S-25: the right to delete, and what a deletion comes to.
#[test]
fn the_right_to_delete() {
    let request = |state| deletion::Request { has_right: true, state, is_being_deleted: false, is_interactive: false };
    for (state, expected) in [
        (State::Waiting, Effect::Error),
        (State::Hold, Effect::Error),
        (State::Running, Effect::Ending),
        (State::Suspended, Effect::Ending),
        (State::Terminated, Effect::Nothing),
        (State::Error, Effect::Nothing),
    ] {
        assert_eq!(deletion::delete(request(state)), Ok(expected), "{state}");
        let other = deletion::Request { has_right: false, ..request(state) };
        assert_eq!(deletion::delete(other), Err(1));
    }
    let again = deletion::Request { is_being_deleted: true, ..request(State::Running) };
    assert_eq!(deletion::delete(again), Err(6));
    assert_eq!(["7", "0", "x", "-1", ""].map(deletion::id), [Ok(7), Err(4), Err(4), Err(4), Err(4)]);
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

/// W8, OAR-S-06, OAR-S-30: suspended time moves the limit and the signal (stopping processes waits for the live system).
#[test]
fn w8_suspended_time_moves_the_limit_and_the_signal() {
    let clock = |suspended: &[(i64, Option<i64>)]| Clock {
        start: 0,
        walltime: 1000,
        checkpoint: 100,
        suspended: suspended.to_vec(),
    };
    let whole = clock(&[(400, Some(610))]);
    assert_eq!((whole.suspended_until(700), whole.signal_at(700), whole.limit(700)), (210, Some(1110), 1210));
    let open = clock(&[(400, None)]);
    assert_eq!((open.suspended_until(500), open.limit(500), open.is_over(9000)), (100, 1100, false));
    assert!(!open.is_signal_due(false, 9000));
    assert_eq!((whole.is_signal_due(false, 1109), whole.is_signal_due(false, 1110)), (false, true));
}

/// OAR-S-23: at exactly the limit a job may still end by itself; OAR-S-33: the signal is sent once, at the start at the
/// earliest.
#[test]
fn the_limit_and_the_signal() {
    let clock = Clock { start: 50, walltime: 1000, checkpoint: 100, suspended: Vec::new() };
    assert_eq!((clock.is_over(1050), clock.is_over(1051)), (false, true));
    assert_eq!(
        (clock.is_signal_due(false, 949), clock.is_signal_due(false, 950), clock.is_signal_due(true, 950)),
        (false, true, false)
    );
    assert_eq!(Clock { checkpoint: 5000, ..clock.clone() }.signal_at(60), Some(50));
    assert_eq!(Clock { checkpoint: 0, ..clock }.signal_at(60), None);
}

/// OAR-S-01, OAR-S-02, OAR-S-03, OAR-C-12: who may hold, suspend and resume which jobs.
#[test]
fn hold_suspend_and_resume() {
    let request =
        suspension::Request { has_right: true, is_administrator: true, state: State::Running, is_on_front_host: false };
    let site = Site { has_isolation: true, users_may: false };
    let hold = |request, site, running_too| suspension::hold(request, site, running_too).map_err(|(status, _)| status);
    let resume = |request, site| suspension::resume(request, site).map_err(|(status, _)| status);
    let of = |state| suspension::Request { state, ..request };
    assert_eq!(hold(of(State::Waiting), site, false), Ok(State::Hold));
    assert_eq!(hold(of(State::Running), site, false), Err(1));
    assert_eq!(hold(of(State::Running), site, true), Ok(State::Suspended));
    assert_eq!(hold(of(State::Suspended), site, true), Err(1));
    assert_eq!(hold(suspension::Request { is_on_front_host: true, ..request }, site, true), Err(2));
    assert_eq!(hold(request, Site { has_isolation: false, ..site }, true), Err(1));
    let user = suspension::Request { is_administrator: false, ..request };
    assert_eq!(hold(user, site, true), Err(1));
    assert_eq!(hold(user, Site { users_may: true, ..site }, true), Ok(State::Suspended));
    assert_eq!(hold(suspension::Request { state: State::Waiting, ..user }, site, false), Ok(State::Hold));
    assert_eq!(hold(suspension::Request { has_right: false, ..of(State::Waiting) }, site, false), Err(1));
    assert_eq!(resume(of(State::Hold), site), Ok(State::Waiting));
    assert_eq!(resume(of(State::Suspended), site), Ok(State::Resuming));
    assert_eq!(resume(suspension::Request { state: State::Suspended, ..user }, site), Err(1));
    assert_eq!(resume(of(State::Running), site), Err(1));
    let set = |text: &str| ids(text).into_iter().collect::<BTreeSet<u32>>();
    assert!(!suspension::may_run_again(&set("1-8"), [&set("9-16"), &set("8")]));
    assert!(suspension::may_run_again(&set("1-8"), [&set("9-16")]));
}

/// OAR-S-05: resources of offered types are free while their job is suspended, others stay held.
#[test]
fn a_suspended_job_keeps_what_is_not_offered() {
    let mut table = s();
    table.add(&[(TYPE, Value::text("licence"))]).expect("a licence");
    let held = suspension::still_held(&table, &ids("1-4, 17").into_iter().collect(), &["default".to_owned()]);
    assert_eq!(held, BTreeSet::from([17]));
}

/// OAR-D-01, OAR-D-02, OAR-D-03, OAR-D-04, OAR-D-08: what a required job means under each policy.
#[test]
fn dependencies_under_each_policy() {
    let open = |required| {
        [Policy::Strict, Policy::Always, Policy::ErrorPasses]
            .map(|policy| dependency::gate(policy, 10, required, 0) == Gate::Open)
    };
    assert_eq!(open(Required::Alive { predicted_end: None }), [false; 3]);
    assert_eq!(open(Required::Alive { predicted_end: Some(5) }), [false; 3]);
    assert_eq!(open(Required::Terminated { exit_code: Some(0) }), [true; 3]);
    assert_eq!(open(Required::Terminated { exit_code: None }), [true; 3]);
    assert_eq!(open(Required::Terminated { exit_code: Some(3) }), [false, true, false]);
    assert_eq!(open(Required::Error), [false, true, true]);
    let why = |required| dependency::gate(Policy::Strict, 10, required, 0);
    assert_eq!(why(Required::Error), Gate::Closed("job 10, which must end before, is in Error".to_owned()));
    let failed = Required::Terminated { exit_code: Some(3) };
    assert_eq!(why(failed), Gate::Closed("job 10, which must end before, exited with 3".to_owned()));
}

/// OAR-D-06: a dependent is planned after the predicted end, with the guard; without prediction it has none.
#[test]
fn dependents_are_planned_after_the_predicted_end() {
    let gate = |end| dependency::gate(Policy::Always, 10, Required::Alive { predicted_end: end }, 60);
    assert_eq!(gate(Some(1000)), Gate::After(1060));
    assert_eq!(gate(None), Gate::Closed("job 10, which must end before, has no place in the plan".to_owned()));
    let all = |gates: &[Gate]| dependency::all(gates.iter().cloned());
    assert_eq!(all(&[]), Gate::Open);
    assert_eq!(all(&[Gate::After(5), Gate::Open, Gate::After(9)]), Gate::After(9));
    assert_eq!(all(&[Gate::After(5), Gate::Closed("x".to_owned()), Gate::Open]), Gate::Closed("x".to_owned()));
}

/// OAR-D-07: unknown jobs, the job itself and circles are refused.
#[test]
fn senseless_dependencies_are_refused() {
    let mut dependencies = Dependencies::default();
    let is_known = |job: u64| job < 100;
    assert_eq!(dependencies.add(2, &[1], &is_known), Ok(()));
    assert_eq!(dependencies.add(3, &[2, 1], &is_known), Ok(()));
    assert_eq!(dependencies.add(4, &[100], &is_known), Err("job 100 does not exist".to_owned()));
    assert_eq!(dependencies.add(4, &[4], &is_known), Err("job 4 cannot depend on itself".to_owned()));
    assert_eq!(dependencies.add(1, &[3], &is_known), Err("job 3 depends on job 1 already".to_owned()));
    assert_eq!((dependencies.of(1), dependencies.of(3)), (&[][..], &[2, 1][..]));
}

/// W10, OAR-D-05, OAR-T-30: a dependent follows the job that takes the place of the one it required.
#[test]
fn w10_exit_99_and_a_dependent() {
    for policy in [Policy::Strict, Policy::Always] {
        let mut dependencies = Dependencies::default();
        dependencies.add(11, &[10], &|job| job == 10).expect("known");
        assert!(is_due(ended(AGAIN, 3600)));
        dependencies.redirect(10, 12);
        assert_eq!(dependencies.of(11), [12]);
        let gate = |required| dependency::gate(policy, dependencies.of(11)[0], required, 0);
        assert!(matches!(gate(Required::Alive { predicted_end: None }), Gate::Closed(_)));
        assert_eq!(gate(Required::Terminated { exit_code: Some(0) }), Gate::Open);
    }
    assert!(!is_due(ended(AGAIN, 60)));
    let ended = Required::Terminated { exit_code: Some(99) };
    assert!(matches!(dependency::gate(Policy::Strict, 10, ended, 0), Gate::Closed(_)));
    assert_eq!(dependency::gate(Policy::Always, 10, ended, 0), Gate::Open);
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

/// OAR-J-14: one line for each resource of a node, sorted; OAR-J-05: the first node in the order of the choice.
#[test]
fn the_node_file_has_a_line_for_each_resource() {
    let mut table = s();
    table.add(&[(TYPE, Value::text("licence"))]).expect("a licence");
    let placement = ids("1-3, 5, 17").into_iter().collect();
    let lines = |form: &NodeFile| launch::node_file(&table, &placement, form);
    assert_eq!(lines(&NodeFile::default()), ["n1", "n1", "n1", "n2"]);
    assert_eq!(lines(&NodeFile { distinct: "cpu".to_owned(), ..NodeFile::default() }), ["n1", "n1", "n2"]);
    assert_eq!(lines(&NodeFile { field: "core".to_owned(), ..NodeFile::default() }), ["1", "2", "3", "5"]);
    assert_eq!(launch::nodes(&table, &[5, 1, 2, 6, 17]), ["n2", "n1"]);
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

/// OAR-J-09: a changed prediction is printed once.
#[test]
fn a_prediction_is_printed_once_for_each_change() {
    let mut predictions = Predictions::default();
    let printed = [Some(5), Some(5), Some(6), None, None, Some(6)].map(|start| predictions.is_news(start));
    assert_eq!(printed, [true, false, true, true, false, true]);
}

/// OAR-X-01, OAR-X-02: the name of an isolation group, and the processors that a value lists.
#[test]
fn isolation_groups_and_their_processors() {
    assert_eq!(launch::isolation_group("ann", 42), "ann_42");
    assert_eq!(launch::processors("1+4+8"), Some(BTreeSet::from([1, 4, 8])));
    assert_eq!(launch::processors("1, 4"), Some(BTreeSet::from([1, 4])));
    assert_eq!(["", "a", "1-4", "1+"].map(launch::processors), [None, None, None, None]);
}

proptest! {
    /// OAR-J-02: whatever is asked of a job, it makes allowed moves only, and ends where nothing moves it.
    #[test]
    fn jobs_make_allowed_moves_only(targets in proptest::collection::vec(0..12_usize, 0..40)) {
        let mut state = State::Waiting;
        for target in targets {
            let (before, to) = (state, State::ALL[target]);
            state = state.moved(to).unwrap_or(state);
            prop_assert!(state == before || before.next().contains(&state));
            prop_assert!(!before.is_final() || state == before);
        }
    }

    /// OAR-S-06: the clock stands still for exactly the suspended seconds.
    #[test]
    fn the_clock_stands_still_while_suspended(spans in proptest::collection::vec((1..50_i64, 1..50_i64), 0..6), now in 0..600_i64) {
        let mut at = 0;
        let suspended: Vec<(i64, Option<i64>)> = spans.iter().map(|(gap, length)| {
            let from = at + gap;
            at = from + length;
            (from, Some(at))
        }).collect();
        let counted = (0..now).filter(|second| suspended.iter().any(|(from, to)| from <= second && Some(*second) < *to)).count();
        let clock = Clock { start: 0, walltime: 100, checkpoint: 0, suspended };
        prop_assert_eq!(clock.suspended_until(now), counted as i64);
    }
}
