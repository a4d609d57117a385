//! Nodes taken out of service, further changes of jobs, changes of reservations, and messages to jobs.

use crate::{support::*, written::launch_order};
use muster_domain::{
    State,
    orders::{OrderSeed, follow_up},
};
use muster_schemas::{
    JobId, PartId, Timestamp,
    command::{Command, RefusalCode},
    event::{Actor, DeliveryResult, Event, JobChange, OutputFiles, StopReason},
    job::{ArraySpec, ExitStatus, JobSpec, Notification, Occasion, Outcome, RequeuePolicy, Sink},
    plan::{ReservationSpec, ReservedNodes},
};
use std::collections::BTreeMap;

fn names(nodes: &[&str]) -> Vec<String> {
    nodes.iter().map(|name| (*name).to_owned()).collect()
}

fn take_down(nodes: &[&str]) -> Command {
    Command::DrainNodes { nodes: names(nodes), reason: "bad disk".into(), is_down: true }
}

fn drain(nodes: &[&str]) -> Command {
    Command::DrainNodes { nodes: names(nodes), reason: "bad disk".into(), is_down: false }
}

/// SL-C-38: runs on a node that is taken down are stopped as if the node were lost, and their jobs wait again if they
/// may.
#[test]
fn a_node_that_is_taken_down_stops_its_jobs_and_those_of_others_go_on() {
    let mut cluster = Cluster::new();
    let mut again = job(2, 1);
    again.requeue = RequeuePolicy { on_node_lost: true, ..RequeuePolicy::default() };
    let (both, once, other) =
        (cluster.submit("ada", again), cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    let wide = cluster.start(both, &["node1", "node2"], 1);
    let narrow = cluster.start(once, &["node1"], 1);
    cluster.start(other, &["node3"], 1);
    cluster.refused(&user("ada"), take_down(&["node1"]), RefusalCode::PermissionDenied, "operators");
    cluster.refused(&user("oper"), take_down(&["node9"]), RefusalCode::NotFound, "node9");
    let events = cluster.ok(&user("oper"), take_down(&["node1", "node2"]));
    let stops = |job, run| Event::RunStopping { job, run, reason: StopReason::NodeLost, grace_seconds: None };
    let stopping: Vec<&Event> = events.iter().filter(|event| matches!(event, Event::RunStopping { .. })).collect();
    assert_eq!(stopping, [&stops(both, wide), &stops(once, narrow)], "each once, and no other");
    let id = cluster.node_id("node1");
    assert!(!cluster.state.node(id).unwrap().is_available());
    let taken = cluster.state.taken_out(id).expect("it is known who did");
    assert_eq!((&*taken.by, taken.at, taken.is_down), ("oper", cluster.now, true));
    assert!(cluster.ok(&user("oper"), take_down(&["node1"])).is_empty(), "it is down already");
    cluster.end(narrow, "node1", ExitStatus::Signal(15));
    let why = "node1 was taken down: bad disk";
    assert_eq!(cluster.outcome(once), Some(Outcome::NodeLost(why.into())));
    cluster.end(wide, "node1", ExitStatus::Signal(15));
    cluster.end(wide, "node2", ExitStatus::Signal(15));
    assert!(cluster.is_waiting(both), "it may be started again");
    assert!(cluster.outcome(other).is_none());
    cluster.assert_replays();
}

/// SL-C-38
#[test]
fn a_node_is_drained_and_down_by_turns_until_it_is_resumed() {
    let mut cluster = Cluster::new();
    let is_down = |cluster: &Cluster| cluster.state.taken_out(cluster.node_id("node1")).map(|taken| taken.is_down);
    cluster.ok(&user("oper"), drain(&["node1"]));
    assert_eq!(is_down(&cluster), Some(false));
    cluster.ok(&root(), take_down(&["node1"]));
    assert_eq!(is_down(&cluster), Some(true));
    cluster.ok(&user("oper"), drain(&["node1"]));
    assert_eq!(is_down(&cluster), Some(false));
    cluster.ok(&user("oper"), Command::ResumeNodes { nodes: names(&["node1"]) });
    assert_eq!(is_down(&cluster), None);
    assert!(cluster.state.node_by_name("node1").unwrap().is_available());
    cluster.assert_replays();
}

/// A log from before the actor of a drain was recorded still gives the same digest.
#[test]
fn a_state_without_such_changes_has_the_bytes_that_it_had_before() {
    let mut cluster = Cluster::new();
    let before = (cluster.state.digest(), cluster.state.to_snapshot_bytes().unwrap());
    cluster.ok(&user("oper"), drain(&["node1"]));
    let with = cluster.state.to_snapshot_bytes().unwrap();
    assert_eq!(State::from_snapshot_bytes(&with).unwrap(), cluster.state);
    cluster.ok(&user("oper"), Command::ResumeNodes { nodes: names(&["node1"]) });
    let after = State::from_snapshot_bytes(&before.1).unwrap();
    assert_eq!(after.digest(), before.0);
    assert!(with.len() > before.1.len());
}

fn alter(job: JobId, change: JobChange) -> Command {
    Command::Modify { jobs: ids(&[job]), change }
}

fn reservation(name: &str, node: &str, from: i64, to: i64, now: Timestamp) -> ReservationSpec {
    ReservationSpec {
        name: name.into(),
        start: now.plus_seconds(from),
        end: now.plus_seconds(to),
        nodes: ReservedNodes::Named(names(&[node])),
        users: names(&["ada"]),
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    }
}

/// SL-C-36
#[test]
fn a_waiting_job_gets_another_reservation_deadline_and_attributes() {
    let mut cluster = Cluster::new();
    let now = cluster.now;
    let made = reservation("r1", "node1", 0, 600, now);
    cluster.ok(&user("oper"), Command::Reserve { reservation: Box::new(made) });
    let id = cluster.submit("ada", job(1, 1));
    let attributes = [("slurm.0.comment".to_owned(), "later".to_owned())].into();
    let change = JobChange {
        reservation: Some("r1".into()),
        deadline: Some(now.plus_seconds(100)),
        requeue_on_node_lost: Some(true),
        attributes,
        ..JobChange::default()
    };
    cluster.refused(&user("bob"), alter(id, change.clone()), RefusalCode::PermissionDenied, "ada");
    let nowhere = JobChange { reservation: Some("r2".into()), ..JobChange::default() };
    cluster.refused(&user("ada"), alter(id, nowhere), RefusalCode::NotFound, "r2");
    let late = JobChange { deadline: Some(now.plus_seconds(-1)), ..JobChange::default() };
    cluster.refused(&user("ada"), alter(id, late), RefusalCode::Invalid, "deadline");
    cluster.ok(&user("ada"), alter(id, change));
    let altered = cluster.state.job(id).unwrap();
    let extras = altered.lead().extras.as_ref().unwrap();
    assert_eq!(extras.reservation.as_deref(), Some("r1"));
    assert!(altered.extras.as_ref().unwrap().requeue.on_node_lost);
    let kept: Vec<(&str, &str)> = cluster.state.altered_attributes(id).collect();
    assert_eq!(kept, [("slurm.0.comment", "later")]);
    let none = JobChange { reservation: Some(String::new()), ..JobChange::default() };
    cluster.ok(&user("ada"), alter(id, none));
    let extras = cluster.state.job(id).unwrap().lead().extras.clone().unwrap();
    assert_eq!(extras.reservation, None);
    cluster.pass(101);
    cluster.tick();
    assert_eq!(cluster.outcome(id), Some(Outcome::DeadlineMissed), "the new deadline counts");
    cluster.assert_replays();
}

/// SL-C-36: the comment of operators is theirs alone, with whatever program it is set.
#[test]
fn only_operators_set_what_operators_note() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let attributes: BTreeMap<String, String> = [("slurm.0.admin-comment".to_owned(), "approved".to_owned())].into();
    let change = JobChange { attributes: attributes.clone(), ..JobChange::default() };
    cluster.refused(&user("ada"), alter(id, change.clone()), RefusalCode::PermissionDenied, "slurm.0.admin-comment");
    let spec = JobSpec { attributes, ..job(1, 1) };
    let submission = Command::Submit { jobs: vec![spec.clone()] };
    cluster.refused(&user("ada"), submission, RefusalCode::PermissionDenied, "slurm.0.admin-comment");
    let described = Command::SubmitDocument { spec: Box::new(spec), intake: Box::default() };
    cluster.refused(&user("ada"), described, RefusalCode::PermissionDenied, "slurm.0.admin-comment");
    cluster.ok(&user("oper"), alter(id, change));
    let kept: Vec<(&str, &str)> = cluster.state.altered_attributes(id).collect();
    assert_eq!(kept, [("slurm.0.admin-comment", "approved")]);
    cluster.assert_replays();
}

/// SL-M-08
#[test]
fn of_a_running_job_only_attributes_and_what_becomes_of_it_change() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.start(id, &["node1"], 1);
    let later = Some(cluster.now.plus_seconds(900));
    let deadline = JobChange { deadline: later, ..JobChange::default() };
    cluster.refused(&user("ada"), alter(id, deadline), RefusalCode::Conflict, "no longer waits");
    let again = JobChange { requeue_on_node_lost: Some(true), ..JobChange::default() };
    cluster.ok(&user("ada"), alter(id, again.clone()));
    cluster.ok(&root(), take_down(&["node1"]));
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert!(cluster.is_waiting(id), "it may be started again now");
    let unknown = JobChange { component: Some(3), ..again };
    cluster.refused(&user("ada"), alter(id, unknown), RefusalCode::Invalid, "component");
}

/// PBS-C-09: mails change at any time, and files for output as long as a job waits; a change names no programs, which run as the owner.
#[test]
fn mails_and_output_files_are_changed() {
    let mut cluster = Cluster::new();
    let mail = |address: &str| Notification {
        on: vec![Occasion::Ended],
        sink: Sink::Mail(address.into()),
        spares_cancelled: false,
    };
    let program = Notification { sink: Sink::Exec("true".into()), ..mail("") };
    let mut spec = job(1, 1);
    spec.notifications = vec![mail("old@x"), program.clone()];
    let id = cluster.submit("ada", spec.clone());
    let mails = |mails: Vec<Notification>| JobChange { mails: Some(mails), ..JobChange::default() };
    let files = OutputFiles { stdout: Some("/data/%A.out".into()), stderr: None };
    let output = JobChange { output: Some(files.clone()), ..JobChange::default() };
    cluster.refused(&user("bob"), alter(id, output.clone()), RefusalCode::PermissionDenied, "ada");
    cluster.refused(&user("ada"), alter(id, mails(vec![program.clone()])), RefusalCode::Invalid, "names a program");
    cluster.refused(&user("ada"), alter(id, mails(vec![mail("-oX@x")])), RefusalCode::Invalid, "address");
    let empty = OutputFiles { stdout: Some("a\0b".into()), stderr: None };
    let bad = JobChange { output: Some(empty), ..JobChange::default() };
    cluster.refused(&user("ada"), alter(id, bad), RefusalCode::Invalid, "output.stdout");
    cluster.ok(&user("ada"), alter(id, JobChange { output: Some(files.clone()), ..mails(vec![mail("new@x")]) }));
    let kept = |cluster: &Cluster| cluster.state.job(id).unwrap().notifications().to_vec();
    assert_eq!(kept(&cluster), [program.clone(), mail("new@x")]);
    assert_eq!(cluster.state.altered_output(id), Some(&files));
    let run = cluster.start(id, &["node1"], 1);
    let order = launch_order(&cluster.state, PartId::new(run, 0), cluster.node_id("node1"), &spec).unwrap();
    assert_eq!((order.launch.stdout.as_deref(), order.launch.stderr), (Some("/data/%A.out"), None));
    cluster.refused(&user("ada"), alter(id, output), RefusalCode::Conflict, "no longer waits");
    cluster.ok(&user("ada"), alter(id, mails(Vec::new())));
    assert_eq!(kept(&cluster), [program]);
    // The program's notice about the start bears the number that it had then.
    let (of, occasion, result) = (cluster.state.sequence(), Occasion::Started, DeliveryResult::Delivered);
    let done = Command::NotificationDone { job: id, of, notification: 1, occasion, result };
    assert_eq!(cluster.ok(&Actor::Notifier, done.clone()).len(), 1);
    assert_eq!(cluster.ok(&Actor::Notifier, done), [], "it ends once");
    let before = State::from_snapshot_bytes(&cluster.state.to_snapshot_bytes().unwrap()).unwrap();
    assert_eq!(before, cluster.state);
    cluster.assert_replays();
}

/// An array whose tasks have all started still sends other mails.
#[test]
fn the_mails_of_an_array_change_for_all_of_it() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.array = Some(ArraySpec { indices: "0-1".parse().unwrap(), max_running: None });
    let id = cluster.submit("ada", spec);
    let change = JobChange { mails: Some(Vec::new()), ..JobChange::default() };
    let one = JobId::task(id.number, 1);
    cluster.refused(&user("ada"), alter(one, change.clone()), RefusalCode::Conflict, "belong to all tasks");
    for index in 0..2 {
        cluster.start(JobId::task(id.number, index), &["node1"], 1);
    }
    cluster.ok(&user("ada"), alter(id, change));
    cluster.assert_replays();
}

/// Both changes or neither.
#[test]
fn a_change_that_is_refused_in_part_changes_nothing() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let again = JobChange { requeue_on_node_lost: Some(true), ..JobChange::default() };
    let nowhere = JobChange { queue: Some("nowhere".into()), ..again.clone() };
    cluster.refused(&user("ada"), alter(id, nowhere), RefusalCode::NotFound, "nowhere");
    let events = cluster.ok(&user("ada"), alter(id, JobChange { priority: Some(7), ..again }));
    assert!(matches!(events[..], [Event::JobModified { .. }]), "{events:?}");
    cluster.assert_replays();
}

/// SL-C-33: a message goes to the node of the script.
#[test]
fn something_is_said_to_a_running_job() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 1));
    let tell = |text: &str| Command::TellJobs { jobs: ids(&[id]), text: text.into() };
    cluster.refused(&user("ada"), tell("hello"), RefusalCode::Conflict, "does not run");
    let run = cluster.start(id, &["node2", "node3"], 1);
    cluster.refused(&user("bob"), tell("hello"), RefusalCode::PermissionDenied, "ada");
    cluster.refused(&user("ada"), tell(""), RefusalCode::Invalid, "text");
    cluster.refused(&user("ada"), tell(&"x".repeat(1025)), RefusalCode::Invalid, "1024");
    let events = cluster.ok(&user("oper"), tell("hello"));
    assert_eq!(events, [Event::JobTold { job: id, run, text: "hello".into() }]);
    let record = cluster.log.last().unwrap();
    let order = OrderSeed::Tell { part: PartId::new(run, 0), told_sequence: record.sequence };
    assert_eq!(follow_up(&cluster.state, record), [(cluster.node_id("node2"), order)]);
    cluster.assert_replays();
}

/// SL-C-33
#[test]
fn a_reservation_becomes_something_else() {
    let mut cluster = Cluster::new();
    let now = cluster.now;
    let change = |spec: ReservationSpec| Command::ChangeReservation { reservation: Box::new(spec) };
    let first = reservation("r1", "node1", 60, 600, now);
    cluster.refused(&user("oper"), change(first.clone()), RefusalCode::NotFound, "r1");
    for (name, node) in [("r1", "node1"), ("r2", "node2")] {
        let spec = Box::new(reservation(name, node, 60, 600, now));
        cluster.ok(&user("oper"), Command::Reserve { reservation: spec });
    }
    cluster.refused(&user("ada"), change(first.clone()), RefusalCode::PermissionDenied, "operators");
    assert!(cluster.ok(&user("oper"), change(first)).is_empty(), "it is so already");
    cluster.refused(&user("oper"), change(reservation("r1", "node2", 60, 600, now)), RefusalCode::Conflict, "r2");
    cluster.refused(&user("oper"), change(reservation("r1", "node1", -60, 0, now)), RefusalCode::Invalid, "passed");
    let longer = reservation("r1", "node3", 30, 900, now);
    cluster.ok(&user("oper"), change(longer.clone()));
    let kept = cluster.state.reservation("r1").unwrap();
    assert_eq!(*kept.spec, longer);
    assert_eq!(kept.nodes.iter().copied().collect::<Vec<_>>(), [cluster.node_id("node3")]);
    cluster.assert_replays();
}

/// A reservation by count keeps its nodes when something else about it changes.
#[test]
fn a_reservation_by_count_keeps_its_nodes() {
    let mut cluster = Cluster::new();
    let now = cluster.now;
    let nodes = ReservedNodes::Count { count: 1, filter: None, queue: None };
    let spec = ReservationSpec { nodes, ..reservation("r1", "node1", 60, 600, now) };
    cluster.ok(&user("oper"), Command::Reserve { reservation: Box::new(spec.clone()) });
    let node = cluster.node_id("node2");
    let plan = muster_schemas::plan::ProposedPlan {
        reservations: vec![("r1".into(), vec![node])],
        ..muster_schemas::plan::ProposedPlan::default()
    };
    cluster.ok(&muster_schemas::event::Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    let longer = ReservationSpec { end: now.plus_seconds(900), ..spec };
    cluster.ok(&user("oper"), Command::ChangeReservation { reservation: Box::new(longer) });
    let kept = cluster.state.reservation("r1").unwrap();
    assert_eq!((kept.spec.end, kept.nodes.iter().copied().collect::<Vec<_>>()), (now.plus_seconds(900), vec![node]));
}
