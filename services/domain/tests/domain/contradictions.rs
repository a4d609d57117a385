//! Records that contradict what is free and used are reported, whatever decided them: M-DOM-8.

use crate::support::*;
use muster_domain::{State, nodes::Violation};
use muster_schemas::{
    CommandId, JobId, NodeId, RunId,
    event::{Actor, Event, Record, TraceContext},
    job::{JobSpec, JobType, Outcome, Usage},
    resources::{IndexSet, Placement},
};
use std::sync::Arc;

/// The report about a record that no decision would produce.
#[track_caller]
fn told(cluster: &Cluster, event: Event) -> String {
    let (before, mut state) = (cluster.state.digest(), cluster.state.clone());
    let violation = apply(&mut state, event).expect_err("it is told");
    assert_eq!(violation.record, cluster.state.sequence().next());
    assert_eq!(cluster.state.digest(), before);
    violation.to_string()
}

fn apply(state: &mut State, event: Event) -> Result<(), Violation> {
    state.apply(&Record {
        sequence: state.sequence().next(),
        time: state.time(),
        actor: Arc::new(Actor::Planner),
        command: CommandId::derived(&[]),
        trace: TraceContext::default(),
        event,
        epoch: 0,
    })
}

/// Cores and memory of node1.
fn on_node1(cluster: &Cluster, cores: &str, memory_bytes: u64) -> Placement {
    let mut placement = cluster.placement(&["node1"], 0);
    let share = &mut placement.components[0].shares[0];
    (share.cores, share.memory_bytes) = (cores.parse().expect("cores"), memory_bytes);
    placement
}

fn allocated(job: JobId, run: RunId, placement: Placement) -> Event {
    Event::RunAllocated { job, run, placement: Arc::new(placement) }
}

/// A job that runs on the cores 0 and 1 of node1, and one that waits.
fn world() -> (Cluster, (JobId, RunId), JobId) {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 2));
    let run = cluster.start(first, &["node1"], 2);
    let second = cluster.submit("ada", job(1, 2));
    (cluster, (first, run), second)
}

/// M-DOM-8.
#[test]
fn a_record_that_books_a_node_twice_is_told_with_the_node_and_the_numbers() {
    let (cluster, _, waits) = world();
    let next = cluster.state.next_run();
    let message = told(&cluster, allocated(waits, next, on_node1(&cluster, "1-2", 0)));
    let record = cluster.state.sequence().next();
    assert_eq!(
        message,
        format!(
            "record {record} (job.allocated) contradicts what is free and used: node node1: run {next} takes cores 1-2, of \
             which 1 are not free"
        )
    );
    let much = told(&cluster, allocated(waits, next, on_node1(&cluster, "2", 9 * GIB)));
    let missing = GIB;
    assert!(much.contains(&format!("of which {missing} are not free")), "{much}");
    let mut with_gpu = on_node1(&cluster, "2", 0);
    with_gpu.components[0].shares[0].gpus = IndexSet::first_n(1);
    let gpu = told(&cluster, allocated(waits, next, with_gpu));
    assert!(gpu.contains("takes GPUs 0, of which 1 are not free"), "{gpu}");
    let mut state = cluster.state.clone();
    apply(&mut state, allocated(waits, next, on_node1(&cluster, "2-3", 8 * GIB))).expect("that is free");
}

/// M-DOM-8, OAR-G-05: nothing is used twice inside a run that opened a planning domain, nor more than it holds.
#[test]
fn a_record_that_uses_something_twice_inside_a_run_is_told() {
    let mut cluster = Cluster::new();
    let container = cluster.submit("ada", JobSpec { types: vec![JobType::Container], ..job(1, 2) });
    let outer = cluster.start(container, &["node1"], 2);
    let inner = JobSpec { types: vec![JobType::Inner(container)], ..job(1, 1) };
    let [first, second] = ["bob", "ada"].map(|user| cluster.submit(user, inner.clone()));
    let next = cluster.state.next_run();
    let mut state = cluster.state.clone();
    apply(&mut state, allocated(first, next, on_node1(&cluster, "0", 0))).expect("that is free inside");
    cluster.state = state;
    let twice = told(&cluster, allocated(second, RunId(next.0 + 1), on_node1(&cluster, "0-1", 0)));
    let words = format!("run {} takes cores 0-1 inside run {outer}, of which 1 are not free there", RunId(next.0 + 1));
    assert!(twice.contains(&words), "{twice}");
    let much = told(&cluster, allocated(second, RunId(next.0 + 1), on_node1(&cluster, "1", 9 * GIB)));
    assert!(much.contains(&format!("inside run {outer}, of which")), "{much}");
    let mut whole = on_node1(&cluster, "1", 0);
    whole.components[0].shares[0].exclusive = true;
    let alone = told(&cluster, allocated(second, RunId(next.0 + 1), whole));
    assert!(alone.contains(&format!("is not alone inside run {outer}")), "{alone}");
    let mut state = cluster.state.clone();
    apply(&mut state, allocated(second, RunId(next.0 + 1), on_node1(&cluster, "1", 0))).expect("that is free inside");
}

#[test]
fn a_run_does_not_begin_twice_and_gives_back_what_it_has() {
    let (cluster, (running, run), _) = world();
    let again = told(&cluster, allocated(running, run, on_node1(&cluster, "2-3", 0)));
    assert!(again.contains("has its resources already"), "{again}");
    let shrunk = |cores: &str| Event::RunShrunk { job: running, run, removed: Arc::new(on_node1(&cluster, cores, 0)) };
    let more = told(&cluster, shrunk("1-2"));
    assert!(more.contains("node1") || more.contains("node 0"), "{more}");
    assert!(more.contains("gives back cores 1-2") && more.contains("and has cores 0-1"), "{more}");
}

#[test]
fn a_node_that_is_used_does_not_go_or_become_too_small() {
    let (cluster, ..) = world();
    let node1 = cluster.node_id("node1");
    let removed = told(&cluster, Event::NodeRemoved { node: node1 });
    assert!(removed.contains("node node1: it is removed, and 1 runs have shares of it"), "{removed}");
    let added = told(&cluster, Event::NodeAdded { node: node1, spec: Arc::new(node("node1", 4)) });
    assert!(added.contains("added a second time"), "{added}");
    let smaller = told(&cluster, Event::NodeChanged { node: node1, spec: Arc::new(node("node1", 1)) });
    assert!(smaller.contains("node node1: 2 cores, 0 GPUs and 0 bytes are used"), "{smaller}");
    let mut state = cluster.state.clone();
    apply(&mut state, Event::NodeChanged { node: node1, spec: Arc::new(node("node1", 2)) }).expect("it is enough");
    apply(&mut state, Event::NodeRemoved { node: NodeId(node1.0 + 1) }).expect("nothing of it is used");
}

#[test]
fn a_run_does_not_continue_on_cores_that_another_has() {
    let (mut cluster, (first, run), second) = world();
    cluster.ok(&user("oper"), muster_schemas::command::Command::Suspend { jobs: ids(&[first]) });
    let other = cluster.start(second, &["node1"], 2);
    let both = told(&cluster, Event::JobResumed { job: first, run });
    assert!(both.contains("node node1: 2 cores belong to two runs, and neither lends them"), "{both}");
    let over =
        Event::RunEnded { job: second, run: other, last: None, outcome: Outcome::Cancelled, usage: Usage::default() };
    let mut state = cluster.state.clone();
    apply(&mut state, over).expect("the other is over");
    apply(&mut state, Event::JobResumed { job: first, run }).expect("nobody has its cores");
}
