//! Configuration, nodes, and what the ledger records of itself.

use crate::support::*;
use muster_domain::{State, runs::runs_after_restore};
use muster_schemas::{
    JobId, RunId, Sequence,
    cluster::{
        ClusterChange, ClusterConfig, ClusterSettings, ClusterSettingsChange, NodeCondition, NodeSpecChange, QueueSpec,
        QueueSpecChange, Removed,
    },
    command::{Command, RefusalCode},
    event::{Actor, DeliveryResult, Event, SignatureBytes, uuid_bytes::UuidBytes},
    job::{Notification, Occasion, Sink},
    public::Names as _,
};

fn configure(config: &ClusterConfig) -> Command {
    Command::Configure { change: Box::new(config.clone().into()), keep_unnamed: false }
}

#[test]
fn a_configuration_becomes_the_events_that_lead_to_it() {
    let mut cluster = Cluster::new();
    let mut wanted = config();
    assert!(cluster.ok(&root(), configure(&wanted)).is_empty(), "it is so already");
    wanted.nodes.remove(1);
    wanted.nodes[0].cores = 16;
    wanted.nodes.push(node("node9", 2));
    wanted.queues.pop();
    wanted.licences.clear();
    wanted.settings.name = "blue".into();
    let events = cluster.ok(&root(), configure(&wanted));
    assert_eq!(events.len(), 6, "{events:?}");
    assert_eq!(cluster.state.node_by_name("node1").unwrap().free_cores.len(), 16);
    assert!(cluster.state.node_by_name("node2").is_none());
    assert_eq!(cluster.node_id("node9").0, 3, "numbers are never given twice");
    assert_eq!(cluster.state.licences().count(), 0);
    assert!(cluster.ok(&root(), configure(&wanted)).is_empty());
    cluster.assert_replays();
}

#[test]
fn keeping_what_is_not_named() {
    let mut cluster = Cluster::new();
    let more = ClusterChange { nodes: vec![node("node4", 1).into()], ..ClusterChange::default() };
    cluster.ok(&root(), keep(&more));
    assert_eq!((cluster.state.nodes().len(), cluster.state.queues().len()), (4, 2));
}

fn keep(change: &ClusterChange) -> Command {
    Command::Configure { change: Box::new(change.clone()), keep_unnamed: true }
}

/// A change that names one thing leaves all other settings, queues and nodes as they are.
#[test]
fn what_a_change_does_not_name_stays() {
    let mut wanted = config();
    wanted.settings.name = "alpha".into();
    wanted.settings.administrators = vec!["ada".into()];
    wanted.settings.operators = vec!["oper".into()];
    wanted.settings.kill_grace_seconds = 30;
    wanted.queues[0].users = vec!["ada".into()];
    wanted.queues[0].max_walltime_seconds = Some(3600);
    wanted.nodes[0].gpus = vec!["a100".into()];
    let mut cluster = Cluster::with(wanted.clone());
    let before = cluster.state.configuration();

    let licence = ClusterChange { licences: [("matlab".to_owned(), 2)].into(), ..ClusterChange::default() };
    assert_eq!(cluster.ok(&root(), keep(&licence)), [Event::LicenceSet { name: "matlab".into(), total: 2 }]);
    let mut licences = before.licences.clone();
    licences.insert("matlab".into(), 2);
    assert_eq!(cluster.state.configuration(), ClusterConfig { licences, ..before.clone() });
    assert_eq!(cluster.ok(&root(), keep(&ClusterChange::default())), []);

    let queue = QueueSpecChange { name: "default".into(), priority: Some(7), ..QueueSpecChange::default() };
    let node = NodeSpecChange { name: wanted.nodes[0].name.clone(), cores: Some(64), ..NodeSpecChange::default() };
    let settings = ClusterSettingsChange { name: Some("beta".into()), ..ClusterSettingsChange::default() };
    let change = ClusterChange { settings, queues: vec![queue], nodes: vec![node], ..ClusterChange::default() };
    cluster.ok(&root(), keep(&change));
    let now = cluster.state.configuration();
    let mut settings = before.settings.clone();
    settings.name = "beta".into();
    assert_eq!(now.settings, settings);
    let default = now.queues.iter().find(|queue| queue.name == "default").unwrap();
    assert_eq!(
        (default.priority, default.max_walltime_seconds, &default.users[..]),
        (7, Some(3600), &["ada".into()][..])
    );
    assert_eq!((now.nodes[0].cores, &now.nodes[0].gpus[..]), (64, &["a100".into()][..]));
    cluster.assert_replays();
}

/// A whole configuration without a list of users neither opens a queue to all users nor locks anyone out.
#[test]
fn lists_of_users_are_emptied_only_by_an_empty_list() {
    let mut wanted = config();
    wanted.settings.administrators = vec!["ada".into()];
    wanted.queues[0].users = vec!["ben".into()];
    let mut cluster = Cluster::with(wanted.clone());
    let apply = |change: ClusterChange| Command::Configure { change: Box::new(change), keep_unnamed: false };
    let whole = ClusterChange::from(wanted);
    let mut left_out = whole.clone();
    left_out.settings.administrators = None;
    let words = "administrators: not named, and the cluster has ada";
    cluster.refused(&root(), apply(left_out), RefusalCode::Invalid, words);
    let mut left_out = whole.clone();
    left_out.queues[0].users = None;
    cluster.refused(&root(), apply(left_out), RefusalCode::Invalid, "users: not named, and the cluster has ben");
    let mut said = whole;
    said.settings.administrators = Some(Vec::new());
    said.queues[0].users = Some(Vec::new());
    cluster.ok(&root(), apply(said));
    assert!(cluster.state.settings().administrators.is_empty());
}

/// The ledger's own user is added to the existing administrators.
#[test]
fn more_administrators_come_to_those_that_there_are() {
    let mut wanted = config();
    wanted.settings.administrators = vec!["ada".into()];
    let mut cluster = Cluster::with(wanted);
    let settings =
        ClusterSettingsChange { more_administrators: vec!["ben".into()], ..ClusterSettingsChange::default() };
    let change = ClusterChange { settings, ..ClusterChange::default() };
    cluster.ok(&Actor::Ledger, keep(&change));
    assert_eq!(cluster.state.settings().administrators, ["ada", "ben"]);
    assert_eq!(cluster.ok(&Actor::Ledger, keep(&change)), []);
}

#[test]
fn a_cluster_without_queues_gets_its_default_queue() {
    let settings = ClusterSettings { default_queue: "batch".into(), ..ClusterSettings::default() };
    let cluster = Cluster::with(ClusterConfig { settings, ..ClusterConfig::default() });
    assert!(cluster.state.queue("batch").is_some());
}

#[test]
fn what_is_in_use_stays() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 4);
    spec.components[0].queue = Some("other".into());
    let id = cluster.submit("ada", spec);
    cluster.start(id, &["node1"], 4);
    cluster.refused(&user("oper"), configure(&config()), RefusalCode::PermissionDenied, "administrators");
    let mut without_node = config();
    without_node.nodes.remove(0);
    cluster.refused(&root(), configure(&without_node), RefusalCode::Conflict, "job 1 runs on it");
    let mut smaller = config();
    smaller.nodes[0].cores = 3;
    cluster.refused(&root(), configure(&smaller), RefusalCode::Conflict, "smaller");
    let mut without_queue = config();
    without_queue.queues.pop();
    cluster.refused(&root(), configure(&without_queue), RefusalCode::Conflict, "1 jobs are in it");
}

#[test]
fn configurations_that_make_no_sense() {
    let mut cluster = Cluster::new();
    let mut check = |change: &dyn Fn(&mut ClusterConfig), words| {
        let mut wanted = config();
        change(&mut wanted);
        cluster.refused(&root(), configure(&wanted), RefusalCode::Invalid, words);
    };
    check(&|wanted| wanted.nodes.push(node("node1", 1)), "node `node1` is given twice");
    check(&|wanted| wanted.nodes.push(node("", 1)), "is empty");
    check(&|wanted| wanted.nodes.push(node("a,b", 1)), "`,`");
    check(&|wanted| wanted.nodes.push(node("x", 0)), "cores: 0");
    check(&|wanted| wanted.nodes.push(node("x", 70_000)), "65536");
    check(&|wanted| wanted.queues[0].nodes = vec!["nowhere".into()], "node `nowhere`");
    check(&|wanted| wanted.settings.default_queue = "nowhere".into(), "default_queue");
    check(&|wanted| wanted.settings.launch_timeout_seconds = 0, "launch_timeout_seconds");
}

/// A node knows when it is not fit for jobs; it decides about no other, and what an operator has said stays.
#[test]
fn a_node_can_drain_itself() {
    let mut cluster = Cluster::new();
    let drain = |nodes: &[&str], reason: &str, is_down| Command::DrainNodes {
        nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
        reason: reason.into(),
        is_down,
    };
    let own = executor("node1");
    for others in [&["node2"][..], &["node1", "node2"], &[]] {
        cluster.refused(&own, drain(others, "disk", false), RefusalCode::PermissionDenied, "only drain itself");
    }
    cluster.refused(&own, drain(&["node1"], "disk", true), RefusalCode::PermissionDenied, "operators");
    cluster.refused(&executor("node9"), drain(&["node9"], "disk", false), RefusalCode::NotFound, "node9");
    assert_eq!(cluster.ok(&own, drain(&["node1"], "disk", false)).len(), 1);
    assert!(!cluster.state.node_by_name("node1").unwrap().is_available());
    assert!(cluster.ok(&own, drain(&["node1"], "another disk", false)).is_empty(), "it is drained already");
    cluster.ok(&user("oper"), drain(&["node1"], "a fan", false));
    assert!(cluster.ok(&own, drain(&["node1"], "disk", false)).is_empty());
    assert_eq!(cluster.state.node_by_name("node1").unwrap().drained.as_deref(), Some("a fan"));
    cluster.assert_replays();
}

#[test]
fn drained_nodes_take_no_jobs() {
    let mut cluster = Cluster::new();
    let drain = |nodes: &[&str]| Command::DrainNodes {
        nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
        reason: "a fan".into(),
        is_down: false,
    };
    cluster.refused(&user("ada"), drain(&["node1"]), RefusalCode::PermissionDenied, "operators");
    cluster.refused(&user("oper"), drain(&["node1", "node7"]), RefusalCode::NotFound, "node7");
    assert_eq!(cluster.ok(&user("oper"), drain(&["node1", "node2", "node1"])).len(), 2);
    assert!(cluster.ok(&user("oper"), drain(&["node1"])).is_empty(), "it is drained already");
    assert!(!cluster.state.node_by_name("node1").unwrap().is_available());
    let resume = Command::ResumeNodes { nodes: vec!["node1".into(), "node3".into()] };
    assert_eq!(cluster.ok(&user("oper"), resume).len(), 1, "only one was drained");
    assert!(cluster.state.node_by_name("node1").unwrap().is_available());
}

#[test]
fn a_node_reports_is_lost_and_reports_again() {
    let mut cluster = Cluster::new();
    assert!(cluster.hello("node1", "boot1", &[]).is_empty(), "it is up already");
    let node = cluster.node_id("node1");
    cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "silence".into() });
    assert_eq!(cluster.state.node(node).unwrap().condition, NodeCondition::Lost("silence".into()));
    assert_eq!(cluster.hello("node1", "boot1", &[]).len(), 1);
    assert_eq!(cluster.state.node(node).unwrap().condition, NodeCondition::Up);
    let boot_id = "boot1".into();
    let unknown = Command::NodeHello { boot_id, parts: Vec::new(), highest_run: None, as_of: None };
    cluster.refused(&executor("node8"), unknown, RefusalCode::NotFound, "not part of the cluster");
}

#[test]
fn run_numbers_go_on_above_those_that_a_node_remembers() {
    let mut cluster = Cluster::new();
    let hello = |cluster: &mut Cluster, highest| {
        let (boot_id, highest_run) = ("boot1".into(), Some(RunId(highest)));
        cluster.ok(&executor("node1"), Command::NodeHello { boot_id, parts: Vec::new(), highest_run, as_of: None })
    };
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.allocate(id, &["node1"], 1);
    assert_eq!(hello(&mut cluster, run.0), [], "a run of this log");
    assert_eq!(hello(&mut cluster, 70_000), [Event::RunNumbersRaised { next: RunId(70_001) }]);
    assert_eq!(hello(&mut cluster, 70_000), []);
    let id = cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.allocate(id, &["node1"], 1), RunId(70_001));
    let raised = hello(&mut cluster, u64::MAX);
    assert!(
        matches!(raised[..], [Event::RunNumbersRaised { next }] if next < RunId(1 << 40)),
        "a node cannot use up the numbers: {raised:?}"
    );
}

/// After a restore of an older log no number is given that a node may remember, and the log has another id.
#[test]
fn run_numbers_go_on_far_ahead_after_a_restore() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    cluster.allocate(id, &["node1"], 1);
    let before = cluster.state.sequence();
    let first = cluster.state.log_id(before);
    for (number, next) in [(1_u8, 1_000_000_000), (2, 2_000_000_000)] {
        let next_run = runs_after_restore(&cluster.state);
        assert_eq!(next_run, RunId(next));
        let log_id = UuidBytes([number; 16]);
        let restored = Event::LogRestored { to: before, lost_to: None, log_id, backup: "backup".into(), next_run };
        cluster.append(&Actor::Ledger, vec![restored]);
        assert_eq!(cluster.state.restored().map(|(_, id)| id), Some(log_id));
        assert_eq!(cluster.state.log_id(cluster.state.sequence()), log_id);
        assert_eq!(cluster.state.next_run(), next_run);
    }
    assert_eq!(cluster.state.log_id(before), first, "records before stay what they were");
    let copy = State::from_snapshot_bytes(&cluster.state.to_snapshot_bytes().unwrap()).unwrap();
    assert_eq!(copy.digest(), cluster.state.digest());
}

#[test]
fn what_the_ledger_records_of_itself() {
    let mut cluster = Cluster::new();
    let signature = SignatureBytes { r: [1; 32], s: [2; 32] };
    let checkpoint = Command::Checkpoint { of: Sequence(1), state_digest: [0; 32], signature };
    let archived = Command::Archived { first: Sequence(1), last: Sequence(5), last_hash: [0; 32], file: "1-5".into() };
    for command in [checkpoint, archived, Command::Tick] {
        cluster.refused(&root(), command.clone(), RefusalCode::PermissionDenied, "the ledger itself");
        cluster.ok(&Actor::Ledger, command);
    }
    assert_eq!(cluster.state.archived(), Sequence(5));
}

#[test]
fn a_notification_ends_once() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.notifications =
        vec![Notification { on: Vec::new(), sink: Sink::Mail("ada@example.org".into()), spares_cancelled: false }];
    let id = cluster.submit("ada", spec);
    let done = |job: JobId, notification| Command::NotificationDone {
        job,
        of: Sequence(9),
        notification,
        occasion: Occasion::Started,
        result: DeliveryResult::Delivered,
    };
    cluster.refused(&user("ada"), done(id, 0), RefusalCode::PermissionDenied, "notifiers");
    let events = cluster.ok(&Actor::Notifier, done(id, 0));
    assert!(matches!(events.as_slice(), [Event::NotificationDone { .. }]));
    const BEYOND_ANY_LIST: u32 = 1_000;
    for command in [done(id, 0), done(id, BEYOND_ANY_LIST), done(JobId::job(99), 0)] {
        assert!(cluster.ok(&Actor::Notifier, command).is_empty());
    }
    // Mails about no job and those that the job did not ask for are on record too: other ledgers drop them then.
    for (job, notification) in [(JobId::job(0), 0), (id, u32::MAX)] {
        let events = cluster.ok(&Actor::Notifier, done(job, notification));
        assert!(matches!(events.as_slice(), [Event::NotificationDone { .. }]), "{events:?}");
    }
    cluster.assert_replays();
}

/// A removal by one administrator takes back nothing that another one changes meanwhile.
#[test]
fn a_removal_leaves_what_others_change_meanwhile() {
    let mut cluster = Cluster::new();
    let spare = QueueSpec { name: "spare".into(), ..QueueSpec::default() };
    let other = QueueSpec { name: "other".into(), ..QueueSpec::default() };
    let queues = vec![spare.into(), other.into()];
    let keeping = |change: ClusterChange| Command::Configure { change: Box::new(change), keep_unnamed: true };
    cluster.ok(&root(), keeping(ClusterChange { queues, ..ClusterChange::default() }));
    let gone = |name: &str| {
        let removed = Removed { queues: vec![name.into()], ..Removed::default() };
        keeping(ClusterChange { removed, ..ClusterChange::default() })
    };
    let removal = gone("spare");
    let faster = QueueSpecChange { name: "other".into(), priority: Some(7), ..QueueSpecChange::default() };
    cluster.ok(&root(), keeping(ClusterChange { queues: vec![faster], ..ClusterChange::default() }));
    cluster.ok(&root(), removal);
    assert!(cluster.state.queue("spare").is_none());
    assert_eq!(cluster.state.queue("other").map(|queue| queue.spec.priority), Some(7));
    cluster.refused(&root(), gone("spare"), RefusalCode::NotFound, "queue `spare` does not exist");
    cluster.assert_replays();
}
