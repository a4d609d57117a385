//! Triggers: what hits them, when they fire, and what runs then.

use crate::support::*;
use muster_domain::notify::items;
use muster_schemas::{
    JobId, PartId,
    command::{Command, RefusalCode},
    event::{Actor, EndCause, Event},
    job::{ExitStatus, Sink},
    trigger::{NodeTurn, TriggerOn, TriggerSelection, TriggerSpec, WatchedNodes},
};

fn spec(on: TriggerOn) -> TriggerSpec {
    TriggerSpec { on, offset_seconds: 0, program: vec!["/bin/tell".into(), "it's".into()], is_permanent: false }
}

fn set(spec: TriggerSpec) -> Command {
    Command::SetTrigger { spec: Box::new(spec) }
}

fn all(turn: NodeTurn) -> TriggerOn {
    TriggerOn::Nodes { nodes: WatchedNodes::All, turn }
}

fn lose(cluster: &mut Cluster, name: &str) {
    let node = cluster.node_id(name);
    cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "silent".into() });
}

/// What fires within some seconds: the numbers of the triggers, and what their programs get.
fn fired(cluster: &mut Cluster, seconds: i64) -> Vec<(u32, String)> {
    let end = cluster.now.plus_seconds(seconds);
    let mut fired = Vec::new();
    while let Some(due) = cluster.state.next_timer().filter(|due| *due <= end) {
        cluster.now = cluster.now.max(due);
        let events = cluster.tick();
        assert!(!events.is_empty(), "a timer without an effect would be due for ever");
        assert!(fired.len() < 100, "it fires again and again");
        fired.extend(events.into_iter().filter_map(|event| match event {
            Event::TriggerFired { trigger, argument, .. } => Some((trigger, argument)),
            _ => None,
        }));
    }
    cluster.now = end;
    fired
}

fn set_count(cluster: &Cluster) -> usize {
    cluster.state.triggers().count()
}

#[test]
fn the_end_of_a_job_runs_a_program_of_who_asked_for_it_once() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 4));
    cluster.ok(&user("ada"), set(spec(TriggerOn::JobEnds(id))));
    cluster.ok(&root(), set(TriggerSpec { offset_seconds: 60, ..spec(TriggerOn::JobEnds(id)) }));
    cluster.start(id, &["node1"], 4);
    assert_eq!(fired(&mut cluster, 10), []);
    let run = cluster.state.job(id).and_then(|job| job.run()).expect("it runs");
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(fired(&mut cluster, 0), [(1, id.number.to_string())]);
    let record = cluster.log.last().expect("a log");
    let [item] = &items(&cluster.state, record)[..] else { panic!("one program runs") };
    assert_eq!(item.sink, Sink::Exec(format!(r"exec '/bin/tell' 'it'\''s' '{id}'")));
    assert_eq!((item.owner.user.as_str(), item.job, item.is_tried_once), ("ada", id, true));
    assert_eq!(fired(&mut cluster, 59), []);
    assert_eq!(fired(&mut cluster, 1), [(2, id.number.to_string())]);
    assert_eq!((set_count(&cluster), fired(&mut cluster, 100)), (0, Vec::new()));
    cluster.assert_replays();
}

#[test]
fn the_end_of_a_walltime_is_told_before_it_comes_and_not_of_jobs_that_end_earlier() {
    let mut cluster = Cluster::new();
    let submit = |cluster: &mut Cluster| {
        let mut limited = job(1, 2);
        limited.components[0].alternatives[0].walltime_seconds = Some(600);
        let id = cluster.submit("ada", limited);
        let soon = TriggerSpec { offset_seconds: -100, ..spec(TriggerOn::WalltimeEnds(id)) };
        cluster.ok(&user("ada"), set(soon));
        id
    };
    let (long, short) = (submit(&mut cluster), submit(&mut cluster));
    cluster.start(long, &["node1"], 2);
    let run = cluster.start(short, &["node2"], 2);
    assert_eq!(fired(&mut cluster, 400), []);
    cluster.end(run, "node2", ExitStatus::Code(0));
    assert_eq!(set_count(&cluster), 1, "a job that is over reaches no limit");
    assert_eq!(fired(&mut cluster, 99), []);
    assert_eq!(fired(&mut cluster, 1), [(1, long.number.to_string())]);
    assert_eq!(set_count(&cluster), 0);
    cluster.assert_replays();
}

#[test]
fn nodes_that_go_down_together_are_told_together() {
    let mut four = config();
    four.nodes.push(node("node4", 4));
    let mut cluster = Cluster::with(four);
    lose(&mut cluster, "node4");
    let permanent = TriggerSpec { is_permanent: true, ..spec(all(NodeTurn::Down)) };
    cluster.ok(&root(), set(permanent));
    cluster.ok(&user("ada"), set(spec(all(NodeTurn::Up))));
    let named = WatchedNodes::Named(vec!["node3".into()]);
    cluster.ok(&user("ada"), set(spec(TriggerOn::Nodes { nodes: named, turn: NodeTurn::Down })));
    lose(&mut cluster, "node1");
    cluster.pass(1);
    lose(&mut cluster, "node2");
    // One that was down before is not told of; another that is watched is not there yet.
    assert_eq!(fired(&mut cluster, 10), [(1, "node[1-2]".into())]);
    let down = |nodes: &[&str]| Command::DrainNodes {
        nodes: nodes.iter().map(ToString::to_string).collect(),
        reason: "smoke".into(),
        is_down: true,
    };
    cluster.ok(&user("oper"), down(&["node3"]));
    assert_eq!(fired(&mut cluster, 10), [(1, "node3".into()), (3, "node3".into())]);
    cluster.hello("node1", "again", &[]);
    cluster.ok(&user("oper"), Command::ResumeNodes { nodes: vec!["node3".into()] });
    assert_eq!(fired(&mut cluster, 10), [(2, "node[1,3]".into())]);
    assert_eq!(set_count(&cluster), 1, "only the permanent one is left");
    cluster.assert_replays();
}

#[test]
fn a_node_is_drained_when_its_last_job_has_left_and_idle_while_it_has_none() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 4));
    let run = cluster.start(id, &["node1"], 4);
    let node1 = || WatchedNodes::Named(vec!["node1".into()]);
    cluster.ok(&root(), set(spec(TriggerOn::Nodes { nodes: node1(), turn: NodeTurn::Drained })));
    let idle =
        TriggerOn::Nodes { nodes: WatchedNodes::Named(vec!["node1".into(), "node2".into()]), turn: NodeTurn::Idle };
    cluster.ok(&root(), set(TriggerSpec { offset_seconds: 100, is_permanent: true, ..spec(idle) }));
    let drain = Command::DrainNodes { nodes: vec!["node1".into()], reason: "later".into(), is_down: false };
    cluster.ok(&user("oper"), drain);
    assert_eq!(fired(&mut cluster, 99), []);
    let other = cluster.submit("ada", job(1, 4));
    let second = cluster.start(other, &["node2"], 4);
    assert_eq!(fired(&mut cluster, 50), [], "node2 was not idle for long enough");
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(fired(&mut cluster, 10), [(1, "node1".into())]);
    cluster.end(second, "node2", ExitStatus::Code(0));
    cluster.ok(&user("oper"), Command::ResumeNodes { nodes: vec!["node1".into()] });
    assert_eq!(fired(&mut cluster, 99), []);
    assert_eq!(fired(&mut cluster, 1), [(2, "node[1-2]".into())]);
    assert_eq!(fired(&mut cluster, 1_000), [], "it is told once");
    cluster.assert_replays();
}

#[test]
fn a_job_tells_of_its_nodes() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 4));
    cluster.start(id, &["node1", "node2"], 4);
    let of_job = TriggerOn::Nodes { nodes: WatchedNodes::OfJob(id), turn: NodeTurn::Down };
    cluster.ok(&user("ada"), set(TriggerSpec { is_permanent: true, ..spec(of_job.clone()) }));
    lose(&mut cluster, "node3");
    assert_eq!(fired(&mut cluster, 10), []);
    lose(&mut cluster, "node2");
    assert_eq!(fired(&mut cluster, 10), [(1, id.number.to_string())]);
    // The job ends with it, and the trigger with the job.
    let run = cluster.state.job(id).and_then(|job| job.run()).expect("it is being stopped");
    let exit = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
    cluster.ok(&executor("node1"), Command::NodeEnded { part: PartId::new(run, 0), exit });
    if !cluster.state.job(id).is_some_and(|job| job.is_finished()) {
        cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    }
    cluster.refused(&user("ada"), set(spec(of_job)), RefusalCode::Conflict, "is over");
    assert_eq!(set_count(&cluster), 0);
    cluster.assert_replays();
}

#[test]
fn triggers_are_for_those_who_may_set_them_and_cleared_by_who_has() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 4));
    let (ada, bob) = (user("ada"), user("bob"));
    cluster.refused(&bob, set(spec(TriggerOn::JobEnds(id))), RefusalCode::PermissionDenied, "");
    cluster.refused(&ada, set(spec(TriggerOn::JobEnds(JobId::job(99)))), RefusalCode::NotFound, "job 99");
    let nowhere = TriggerOn::Nodes { nodes: WatchedNodes::Named(vec!["nowhere".into()]), turn: NodeTurn::Up };
    cluster.refused(&ada, set(spec(nowhere)), RefusalCode::NotFound, "node `nowhere` does not exist");
    for program in [vec![], vec!["tell".to_owned()], vec!["/bin/tell".to_owned(), "a\0b".to_owned()]] {
        let wrong = TriggerSpec { program, ..spec(TriggerOn::JobEnds(id)) };
        cluster.refused(&ada, set(wrong), RefusalCode::Invalid, "program");
    }
    let late = TriggerSpec { offset_seconds: -32_001, ..spec(TriggerOn::JobEnds(id)) };
    cluster.refused(&ada, set(late), RefusalCode::Invalid, "offset_seconds");
    for _ in 0..100 {
        cluster.ok(&ada, set(spec(TriggerOn::JobEnds(id))));
    }
    cluster.refused(&ada, set(spec(all(NodeTurn::Up))), RefusalCode::LimitReached, "100 triggers of ada");
    let clear = |which| Command::ClearTriggers { which };
    let number = |trigger| TriggerSelection { trigger: Some(trigger), ..TriggerSelection::default() };
    cluster.refused(&bob, clear(number(7)), RefusalCode::PermissionDenied, "belongs to ada");
    cluster.refused(&ada, clear(number(777)), RefusalCode::NotFound, "no such trigger");
    cluster.refused(&ada, clear(TriggerSelection::default()), RefusalCode::Invalid, "which triggers");
    cluster.ok(&ada, clear(number(7)));
    cluster.ok(&bob, set(spec(all(NodeTurn::Up))));
    cluster.ok(&root(), clear(TriggerSelection { job: Some(id), ..TriggerSelection::default() }));
    let left: Vec<u32> = cluster.state.triggers().map(|(number, _)| number).collect();
    assert_eq!(left, [101]);
    cluster.assert_replays();
}
