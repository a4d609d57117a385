//! Files that nodes copy for jobs (PBS-G-01 to PBS-G-08).

use crate::support::*;
use muster_domain::{
    copies::CopyStage,
    notify::items,
    orders::{OrderSeed, Sketch, Sketches, follow_up, reconcile},
};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence,
    cluster::ClusterChange,
    command::{Command, JobSelection, RefusalCode},
    copies::{CopyDirection, CopyOrder, CopyReport, FileCopies, FileCopy},
    event::{Actor, Event, JobChange},
    filter::StagingSettings,
    job::{ExitStatus, Holds, JobSpec, JobState, Notification, Occasion, Outcome, Sink, WaitReason},
    node::NodeOrder,
    resources::IndexSet,
};

/// A job that needs a file, and leaves one.
fn staged() -> JobSpec {
    let file = |local: &str, remote: &str| FileCopy { local: local.into(), host: "fs".into(), remote: remote.into() };
    JobSpec {
        copies: FileCopies { before: vec![file("in", "/d/in")], after: vec![file("out", "/d/out")] },
        ..job(1, 1)
    }
}

fn only_in() -> JobSpec {
    let mut spec = staged();
    spec.copies.after.clear();
    spec
}

fn stage(cluster: &Cluster, id: JobId) -> CopyStage {
    cluster.state.job(id).and_then(|job| job.copies.as_ref()).expect("it has files to copy").stage
}

fn copy_of(cluster: &Cluster, id: JobId) -> Sequence {
    match stage(cluster, id) {
        CopyStage::Coming { copy, .. } | CopyStage::Leaving { copy, .. } => copy,
        other => panic!("nothing is being copied: {other:?}"),
    }
}

/// The node reports the result of what it copies for a job.
fn report(cluster: &mut Cluster, node: &str, id: JobId, failure: Option<&str>) -> Vec<Event> {
    let report = CopyReport { bytes: Some(512), milliseconds: 20, failure: failure.map(str::to_owned) };
    let copy = copy_of(cluster, id);
    cluster.ok(&executor(node), Command::NodeCopied { job: id, copy, report })
}

fn ahead(id: JobId, node: Option<&str>) -> Command {
    Command::CopyAhead { job: id, node: node.map(str::to_owned) }
}

/// The orders that follow from the last decision.
fn orders(cluster: &Cluster, count: usize) -> Vec<(NodeId, OrderSeed)> {
    let last = &cluster.log[cluster.log.len() - count..];
    last.iter().flat_map(|record| follow_up(&cluster.state, record)).collect()
}

fn copy_order(cluster: &Cluster, node: &str, seed: OrderSeed) -> CopyOrder {
    match Sketches::new(&cluster.state).sketch(cluster.node_id(node), seed) {
        Some(Sketch::Ready(NodeOrder::Copy(order))) => *order,
        other => panic!("this is no order to copy: {other:?}"),
    }
}

fn is_launch(seed: &OrderSeed) -> bool {
    matches!(seed, OrderSeed::Launch { .. })
}

fn reason(cluster: &Cluster, id: JobId) -> Option<WaitReason> {
    cluster.state.job(id).and_then(|job| cluster.state.gate_reason(job))
}

fn configure(cluster: &mut Cluster, staging: StagingSettings) {
    let change = Box::new(ClusterChange { staging: Some(staging), ..ClusterChange::default() });
    cluster.ok(&root(), Command::Configure { change, keep_unnamed: true });
}

/// PBS-G-01, PBS-G-08
#[test]
fn a_run_has_its_files_copied_first_and_starts_then() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", staged());
    assert_eq!(stage(&cluster, id), CopyStage::Wanted);
    let events = cluster.log.len();
    let run = cluster.allocate(id, &["node2"], 1);
    let node = cluster.node_id("node2");
    let began = Event::CopyingBegan { job: id, node, direction: CopyDirection::In, run: Some(run) };
    assert!(cluster.log[events..].iter().any(|record| record.event == began), "the change of its substate is an event");
    // It counts as running, and holds its nodes.
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Launching);
    assert_eq!(cluster.state.node(node).unwrap().free_cores.len(), 3);
    let seeds = orders(&cluster, cluster.log.len() - events);
    let [(at, seed)] = seeds[..] else { panic!("nothing but the copying is ordered: {seeds:?}") };
    assert_eq!(at, node);
    let order = copy_order(&cluster, "node2", seed);
    assert_eq!((order.run, order.owner.user.as_str(), order.direction), (Some(run), "ada", CopyDirection::In));
    assert_eq!(order.files, staged().copies.before);
    // The order is repeated until there is a result, and no launch with it. The launch has no time limit yet.
    assert_eq!(reconcile(&cluster.state, node, &[]), [seed]);
    cluster.pass(100_000);
    assert_eq!((cluster.state.next_timer(), cluster.tick()), (None, Vec::new()));
    let events = report(&mut cluster, "node2", id, None);
    let ended = Event::CopyingEnded { job: id, node, direction: CopyDirection::In, bytes: Some(512), milliseconds: 20 };
    assert_eq!(events, [ended]);
    let launches = orders(&cluster, 1);
    assert!(matches!(&launches[..], [(at, seed)] if *at == node && is_launch(seed)), "{launches:?}");
    assert!(reconcile(&cluster.state, node, &[]).iter().all(is_launch));
    assert!(cluster.state.next_timer() > Some(cluster.now), "the launch has its time limit from here on");
    // A second report says nothing new.
    let again = CopyReport { failure: Some("late".into()), ..CopyReport::default() };
    let copy = match seed {
        OrderSeed::Copy { copy, .. } => copy,
        other => panic!("{other:?}"),
    };
    assert_eq!(cluster.ok(&executor("node2"), Command::NodeCopied { job: id, copy, report: again }), []);
    cluster.assert_replays();
}

/// W16, its first half; PBS-G-03, PBS-G-04
#[test]
fn a_run_whose_files_cannot_be_copied_waits_half_an_hour() {
    let mut cluster = Cluster::new();
    let noon = cluster.now;
    let id = cluster.submit("ada", only_in());
    let run = cluster.allocate(id, &["node1"], 1);
    cluster.pass(20);
    let events = report(&mut cluster, "node1", id, Some("scp: /d/in: No such file"));
    let until = noon.plus_seconds(20 + 1_800);
    assert!(
        matches!(&events[..], [Event::CopyingFailed { until: Some(at), .. }, Event::RunEnded { run: ended, outcome: Outcome::Requeued, .. },
            Event::JobRequeued { .. }] if *at == until && *ended == run),
        "{events:?}"
    );
    assert_eq!(stage(&cluster, id), CopyStage::Failed);
    assert_eq!(reason(&cluster, id), Some(WaitReason::BeginTime(until)));
    assert_eq!(cluster.state.node_by_name("node1").unwrap().free_cores.len(), 4, "its nodes are free");
    // No policy looks at it.
    assert!(!cluster.is_waiting(id));
    // The mail goes to its owner, who asked for none.
    let record = &cluster.log[cluster.log.len() - 3];
    let [mail] = &items(&cluster.state, record)[..] else { panic!("one mail is sent") };
    assert_eq!((&mail.sink, mail.why.as_deref()), (&Sink::Mail("ada".into()), Some("scp: /d/in: No such file")));
    assert_eq!(mail.nodes, ["node1"]);
    assert!(cluster.refused_on(id, &["node1"], 1).contains("not before"), "no plan starts it");
    assert_eq!(cluster.state.next_timer(), Some(until));
    cluster.now = until.plus_micros(-1);
    assert_eq!(cluster.tick(), []);
    cluster.now = until;
    assert_eq!(cluster.tick(), [Event::JobEligible { job: id }]);
    assert!(Event::JobEligible { job: id }.plan_effect().can_change_plan(), "a cycle follows");
    assert_eq!(stage(&cluster, id), CopyStage::Wanted);
    assert!(cluster.is_waiting(id));
    let copies = cluster.state.job(id).unwrap().copies.clone().unwrap();
    assert_eq!(copies.failures, 1, "failures are counted");
    // The next run copies them again.
    cluster.allocate(id, &["node1"], 1);
    report(&mut cluster, "node1", id, None);
    cluster.assert_replays();
}

/// W16, its second half; PBS-G-02, PBS-G-03
#[test]
fn of_its_own_time_and_the_half_hour_the_later_counts() {
    // Its own time and the failure in seconds after 12:00, and when it may start.
    for (own, until) in [(3_600, 3_600), (600, 1_820)] {
        let mut cluster = Cluster::new();
        let noon = cluster.now;
        let mut spec = only_in();
        spec.components[0].begin = Some(noon.plus_seconds(own));
        let id = cluster.submit("ada", spec);
        cluster.ok(&user("oper"), ahead(id, None));
        cluster.pass(20);
        let events = report(&mut cluster, "node1", id, Some("no space left"));
        let until = noon.plus_seconds(until);
        assert!(matches!(events[..], [Event::CopyingFailed { until: Some(at), .. }] if at == until), "{events:?}");
        assert_eq!(reason(&cluster, id), Some(WaitReason::BeginTime(until)));
        cluster.assert_replays();
    }
}

/// PBS-G-02, PBS-G-06
#[test]
fn files_are_copied_ahead_while_the_job_stays_in_the_queue() {
    let mut cluster = Cluster::new();
    let (id, plain) = (cluster.submit("ada", only_in()), cluster.submit("ada", job(1, 1)));
    cluster.refused(&user("ada"), ahead(id, None), RefusalCode::PermissionDenied, "only operators");
    cluster.refused(&user("oper"), ahead(plain, None), RefusalCode::Conflict, "has no files to copy");
    cluster.refused(&user("oper"), ahead(id, Some("node9")), RefusalCode::NotFound, "node9");
    let (wide, many) = (JobSpec { copies: only_in().copies, ..job(2, 1) }, array(IndexSet::from_range(0, 3), None));
    let wide = cluster.submit("ada", wide);
    cluster.refused(&user("oper"), ahead(wide, Some("node1")), RefusalCode::Conflict, "several nodes");
    let many = cluster.submit("ada", JobSpec { copies: only_in().copies, ..many });
    cluster.refused(&user("oper"), ahead(many, None), RefusalCode::Conflict, "is an array");
    cluster.ok(&user("oper"), ahead(id, Some("node2")));
    let node = cluster.node_id("node2");
    // It holds nothing, and does not start meanwhile.
    assert_eq!(cluster.state.node(node).unwrap().free_cores.len(), 4);
    assert_eq!(reason(&cluster, id), Some(WaitReason::StagingIn(0)));
    cluster.refused(&user("oper"), ahead(id, None), RefusalCode::Conflict, "are being copied");
    assert_eq!(copy_order(&cluster, "node2", orders(&cluster, 1)[0].1).run, None);
    let events = report(&mut cluster, "node2", id, None);
    assert!(matches!(events[..], [Event::CopyingEnded { .. }]), "{events:?}");
    assert_eq!((stage(&cluster, id), reason(&cluster, id)), (CopyStage::In { node }, None));
    cluster.refused(&user("oper"), ahead(id, None), RefusalCode::Conflict, "are copied already");
    // A run elsewhere is refused. One there starts at once.
    assert!(cluster.refused_on(id, &["node1"], 1).contains("its files were copied to node `node2`"));
    let length = cluster.log.len();
    let run = cluster.allocate(id, &["node2"], 1);
    assert!(orders(&cluster, cluster.log.len() - length).iter().any(|(_, seed)| is_launch(seed)));
    // When it has run, the next run is free to be anywhere.
    cluster.ok(&executor("node2"), Command::NodeStarted { part: cluster.part(run, "node2") });
    let jobs = JobSelection::Ids(vec![id]);
    cluster.ok(&user("ada"), Command::Requeue { jobs, hold: false, delay_seconds: 0 });
    cluster.end(run, "node2", ExitStatus::Code(0));
    assert_eq!(stage(&cluster, id), CopyStage::Wanted);
    let request = &cluster.state.job(id).unwrap().lead().shape.alternatives[0].requests[0];
    assert!(request.nodes.is_empty(), "it asks for any node again: {request:?}");
    cluster.assert_replays();
}

/// PBS-G-02
#[test]
fn a_failure_ahead_leaves_nothing_bound() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", only_in());
    cluster.ok(&user("oper"), ahead(id, Some("node2")));
    let bound =
        |cluster: &Cluster| cluster.state.job(id).unwrap().lead().shape.alternatives[0].requests[0].nodes.clone();
    assert_eq!(bound(&cluster), ["node2"]);
    report(&mut cluster, "node2", id, Some("no"));
    assert_eq!(bound(&cluster), [""; 0]);
    // A node that is lost has failed too; the job can try another.
    cluster.now = cluster.now.plus_seconds(1_800);
    cluster.tick();
    cluster.ok(&user("oper"), ahead(id, Some("node3")));
    let node = cluster.node_id("node3");
    let events = cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "silent".into() });
    assert!(events.iter().any(|event| matches!(event, Event::CopyingFailed { .. })), "{events:?}");
    assert_eq!(
        (stage(&cluster, id), cluster.state.job(id).unwrap().copies.as_ref().unwrap().failures),
        (CopyStage::Failed, 2)
    );
    cluster.assert_replays();
}

/// A job that asks for something else is free to run elsewhere, where its files are copied again.
#[test]
fn a_new_request_is_not_bound_to_the_node_of_the_files() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", only_in());
    cluster.ok(&user("oper"), ahead(id, Some("node2")));
    report(&mut cluster, "node2", id, None);
    let alternatives = Some(job(1, 2).components.remove(0).alternatives);
    let change = JobChange { alternatives, ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change });
    let run = cluster.allocate(id, &["node1"], 2);
    assert!(matches!(stage(&cluster, id), CopyStage::Coming { run: Some(waits), .. } if waits == run));
    report(&mut cluster, "node1", id, None);
    cluster.assert_replays();
}

/// A job that is over needs no files, and its node is told so.
#[test]
fn what_is_copied_ahead_for_a_job_that_ends_is_ended() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", only_in());
    cluster.ok(&user("oper"), ahead(id, Some("node2")));
    let copy = copy_of(&cluster, id);
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    let node = cluster.node_id("node2");
    assert_eq!(orders(&cluster, events.len()), [(node, OrderSeed::StopCopy { job: id, copy })]);
    assert_eq!(reconcile(&cluster.state, node, &[]), []);
    cluster.assert_replays();
}

/// A run that is cancelled while its files are copied ends as any other; a report that comes later changes nothing.
#[test]
fn a_run_that_is_cancelled_meanwhile_is_over() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", staged());
    let run = cluster.allocate(id, &["node1"], 1);
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    assert!(orders(&cluster, events.len()).iter().all(|(_, seed)| matches!(seed, OrderSeed::Stop { .. })));
    let late = report(&mut cluster, "node1", id, Some("it was ended"));
    assert!(matches!(late[..], [Event::CopyingFailed { .. }]), "its end is on the way: {late:?}");
    let mut never = exit(ExitStatus::Code(0), muster_schemas::event::EndCause::Killed, cluster.now);
    (never.started, never.status) = (None, None);
    let part = cluster.part(run, "node1");
    let events = cluster.ok(&executor("node1"), Command::NodeEnded { part, exit: never });
    assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
    assert!(!events.iter().any(|event| matches!(event, Event::CopyingBegan { .. })), "it has no results: {events:?}");
    cluster.assert_replays();
}

/// PBS-G-04
#[test]
fn a_site_has_jobs_held_after_some_failures() {
    let mut cluster = Cluster::new();
    configure(
        &mut cluster,
        StagingSettings { copy_failures_before_hold: 2, copy_retry_seconds: 60, ..StagingSettings::default() },
    );
    let id = cluster.submit("ada", only_in());
    for failure in 1..=2 {
        cluster.allocate(id, &["node1"], 1);
        let events = report(&mut cluster, "node1", id, Some("no"));
        let held = events.iter().any(|event| matches!(event, Event::JobHeld { holds: Holds { system: true, .. }, .. }));
        assert_eq!(held, failure == 2, "{events:?}");
        cluster.pass(60);
        cluster.tick();
    }
    assert!(matches!(reason(&cluster, id), Some(WaitReason::Held(_))));
    cluster.assert_replays();
}

/// Results go after the end of a job that has run, and their failure is told by mail (PBS-G-08).
#[test]
fn results_are_copied_after_the_end() {
    for failure in [None, Some("quota")] {
        let mut cluster = Cluster::new();
        let mail = Notification { on: vec![Occasion::Ended], sink: Sink::Mail("a@b".into()), spares_cancelled: false };
        let id = cluster.submit("ada", JobSpec { notifications: vec![mail], ..staged() });
        let run = cluster.allocate(id, &["node3"], 1);
        report(&mut cluster, "node3", id, None);
        cluster.ok(&executor("node3"), Command::NodeStarted { part: cluster.part(run, "node3") });
        let events = cluster.end(run, "node3", ExitStatus::Code(3));
        assert_eq!(cluster.outcome(id), Some(Outcome::Failed(ExitStatus::Code(3))));
        let seeds = orders(&cluster, events.len());
        let copies: Vec<_> = seeds.into_iter().filter(|(_, seed)| matches!(seed, OrderSeed::Copy { .. })).collect();
        let [(node, seed)] = copies[..] else { panic!("results are copied once: {copies:?}") };
        assert_eq!(node, cluster.node_id("node3"));
        let order = copy_order(&cluster, "node3", seed);
        assert_eq!((order.direction, order.files), (CopyDirection::Out, staged().copies.after));
        assert_eq!(reconcile(&cluster.state, node, &[]), [seed]);
        report(&mut cluster, "node3", id, failure);
        assert_eq!(stage(&cluster, id), CopyStage::Out);
        let told = items(&cluster.state, cluster.log.last().unwrap());
        let to: Vec<_> = told.iter().map(|item| (&item.sink, item.why.as_deref())).collect();
        match failure {
            None => assert_eq!(to, []),
            Some(why) => assert_eq!(to, [(&Sink::Mail("a@b".into()), Some(why))]),
        }
        cluster.assert_replays();
    }
}

/// A job is not forgotten before the fate of its results is known, unless its node is lost.
#[test]
fn a_job_is_kept_while_its_results_are_copied() {
    for is_lost in [false, true] {
        let mut cluster = Cluster::new();
        let mut spec = staged();
        spec.copies.before.clear();
        let id = cluster.submit("ada", spec);
        let run = cluster.start(id, &["node1"], 1);
        cluster.end(run, "node1", ExitStatus::Code(0));
        let node = cluster.node_id("node1");
        if is_lost {
            cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "silent".into() });
        }
        cluster.pass(3_601);
        cluster.submit("ada", job(1, 1));
        assert_eq!(cluster.state.job(id).is_none(), is_lost);
        if !is_lost {
            report(&mut cluster, "node1", id, None);
            cluster.pass(3_601);
            cluster.submit("ada", job(1, 1));
            assert!(cluster.state.job(id).is_none(), "it is forgotten then");
        }
        cluster.assert_replays();
    }
}

/// Tasks of arrays have their files copied each for itself.
#[test]
fn each_task_of_an_array_has_its_files_copied() {
    let mut cluster = Cluster::new();
    let spec = JobSpec { copies: staged().copies, ..array(IndexSet::from_range(0, 1), None) };
    let id = cluster.submit("ada", spec);
    let task = JobId::task(id.number, 1);
    let run = cluster.allocate(task, &["node1"], 1);
    report(&mut cluster, "node1", task, Some("no"));
    assert_eq!(cluster.state.job(task).unwrap().run(), None::<RunId>);
    assert!(cluster.is_waiting(id), "the other task does not wait for it");
    assert_eq!(cluster.state.run(run), None);
    cluster.assert_replays();
}

/// Words of users become arguments of a program, and never options.
#[test]
fn files_that_would_be_options_are_refused() {
    let with = |file: FileCopy| {
        let copies = FileCopies { before: vec![file], after: Vec::new() };
        Command::Submit { jobs: vec![JobSpec { copies, ..job(1, 1) }] }
    };
    let fine = FileCopy { local: "a".into(), host: "u@fs-1.x_y".into(), remote: "b".into() };
    let mut cluster = Cluster::new();
    cluster.ok(&user("ada"), with(fine.clone()));
    for (wrong, words) in [
        (FileCopy { local: "-r".into(), ..fine.clone() }, "local"),
        (FileCopy { local: String::new(), ..fine.clone() }, "local"),
        (FileCopy { remote: "--rsh=sh".into(), ..fine.clone() }, "remote"),
        (FileCopy { remote: "a\nb".into(), ..fine.clone() }, "remote"),
        (FileCopy { host: "-oProxyCommand=sh".into(), ..fine.clone() }, "host"),
        (FileCopy { host: "a b".into(), ..fine.clone() }, "host"),
        (FileCopy { host: "a;b".into(), ..fine.clone() }, "host"),
        (FileCopy { host: "h".repeat(256), ..fine.clone() }, "host"),
        (FileCopy { local: "l".repeat(4_097), ..fine.clone() }, "local"),
    ] {
        cluster.refused(&user("ada"), with(wrong), RefusalCode::Invalid, words);
    }
    let copies = FileCopies { before: vec![fine; 1_001], after: Vec::new() };
    let many = Command::Submit { jobs: vec![JobSpec { copies, ..job(1, 1) }] };
    cluster.refused(&user("ada"), many, RefusalCode::Invalid, "copies.before");
}
