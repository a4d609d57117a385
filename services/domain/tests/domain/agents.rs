//! Nodes whose agent asks for its orders (OAR-K).

use crate::support::*;
use muster_domain::requests::node_serves;
use muster_schemas::{
    agent::LEAVING,
    cluster::{ClusterSettings, NodeCondition},
    command::{Command, RefusalCode},
    event::Event,
    job::{JobSpec, Program, StageIn},
    resources::{NodeFilter, NodeSpec, PropertyValue, Relation, Request},
};

fn far(name: &str) -> NodeSpec {
    NodeSpec { properties: [(NodeSpec::PULL.to_owned(), PropertyValue::Flag(true))].into(), ..node(name, 4) }
}

fn pulled(nodes: u32) -> JobSpec {
    let mut spec = job(nodes, 1);
    spec.components[0].alternatives[0].requests[0].filter = Some(NodeFilter::Has(NodeSpec::PULL.into()));
    spec
}

fn join(name: &str) -> Command {
    Command::AgentJoins { node: Box::new(node(name, 2)) }
}

/// OAR-K-05: a request is served by such nodes if it asks for them in any case, and by the others otherwise.
#[test]
fn requests_are_for_such_nodes_or_for_others() {
    let has = NodeFilter::Has(NodeSpec::PULL.into());
    let other = NodeFilter::Has("gpu".into());
    let is = |flag| NodeFilter::Compare {
        property: NodeSpec::PULL.into(),
        relation: Relation::Equal,
        value: PropertyValue::Flag(flag),
    };
    for (filter, asks) in [
        (None, false),
        (Some(has.clone()), true),
        (Some(is(true)), true),
        (Some(is(false)), false),
        (Some(NodeFilter::Not(Box::new(has.clone()))), false),
        (Some(NodeFilter::Not(Box::new(other.clone()))), false),
        (Some(NodeFilter::Any(vec![has.clone(), other.clone()])), false),
        (Some(NodeFilter::Any(vec![])), false),
        (Some(NodeFilter::All(vec![NodeFilter::Any(vec![has.clone(), is(true)])])), true),
    ] {
        let request = Request { filter: filter.clone(), ..Request::default() };
        assert_eq!(node_serves(&far("far"), &request), asks, "{filter:?}");
        let is_near = !asks && !matches!(filter, Some(NodeFilter::Any(_))) && filter != Some(is(false));
        assert_eq!(node_serves(&node("near", 4), &request), is_near, "{filter:?}");
    }
    let named = Request { nodes: vec!["far".into()], ..Request::default() };
    assert!(!node_serves(&far("far"), &named), "naming it is not enough");
}

/// OAR-K-05: such a job has one component on one node, and a command.
#[test]
fn a_job_for_such_a_node_has_one() {
    let mut config = config();
    config.nodes.extend([far("far1"), far("far2")]);
    let mut cluster = Cluster::with(config);
    cluster.submit("ada", pulled(1));
    let mut refused = |spec: JobSpec, words: &str| {
        cluster.refused(&user("ada"), Command::Submit { jobs: vec![spec] }, RefusalCode::Invalid, words);
    };
    refused(pulled(2), "one of them");
    let mut tasks = pulled(1);
    tasks.components[0].alternatives[0].requests[0].path.clear();
    tasks.components[0].alternatives[0].requests[0].tasks = Some(2);
    tasks.components[0].alternatives[0].requests[0].tasks_per_node = Some(1);
    refused(tasks, "one of them");
    let mut both = pulled(1);
    let request = both.components[0].alternatives[0].requests[0].clone();
    both.components[0].alternatives[0].requests.push(request);
    refused(both, "one of them");
    let mut shell = pulled(1);
    shell.components[0].launch.program = Program::None;
    refused(shell, "no shell");
    let mut two = pulled(1);
    two.components.push(job(1, 1).components[0].clone());
    refused(two, "only one");
    let mut brings = pulled(1);
    brings.components[0].launch.stage_in = Some(StageIn { sum: "../../etc".into(), bytes: 1, is_gzip: false });
    refused(brings, "is not a BLAKE3 hash");
}

/// OAR-K-04: an agent makes its node if the settings say so, and no other.
#[test]
fn agents_make_their_nodes_if_they_may() {
    let mut cluster = Cluster::new();
    cluster.refused(&executor("far"), join("far"), RefusalCode::PermissionDenied, "not part of the cluster");
    let mut config = config();
    config.settings = ClusterSettings { agents_make_nodes: true, ..config.settings };
    let mut cluster = Cluster::with(config);
    cluster.refused(&executor("far"), join("other"), RefusalCode::PermissionDenied, "only its own agent");
    cluster.refused(&user("ada"), join("ada"), RefusalCode::PermissionDenied, "only its own agent");
    cluster.refused(&executor("node1"), join("node1"), RefusalCode::PermissionDenied, "no agent asks");
    let events = cluster.ok(&executor("far"), join("far"));
    assert!(
        matches!(&events[..], [Event::NodeAdded { spec, .. }] if spec.is_pulled() && spec.cores == 2),
        "{events:?}"
    );
    assert_eq!(cluster.ok(&executor("far"), join("far")), [], "once is enough");
    cluster.hello("far", "boot", &[]);
    assert_eq!(cluster.state.node_by_name("far").expect("it was made").condition, NodeCondition::Up);
}

/// OAR-K-10: an agent that comes back puts its node into service again, unless an operator has taken it out.
#[test]
fn nodes_come_back_with_their_agent() {
    let mut config = config();
    config.nodes.push(far("far"));
    let mut cluster = Cluster::with(config);
    let nodes = || vec!["far".to_owned()];
    let drain = |reason: &str| Command::DrainNodes { nodes: nodes(), reason: reason.into(), is_down: false };
    let resume = || Command::ResumeNodes { nodes: nodes() };
    assert_eq!(cluster.ok(&executor("far"), resume()), []);
    cluster.ok(&executor("far"), drain(LEAVING));
    cluster.refused(&executor("node1"), resume(), RefusalCode::PermissionDenied, "only resume itself");
    assert!(matches!(cluster.ok(&executor("far"), resume())[..], [Event::NodeResumed { .. }]));
    cluster.ok(&root(), drain("a new disk"));
    assert_eq!(cluster.ok(&executor("far"), resume()), [], "an operator's reason stays");
}

/// OAR-K-01, OAR-K-03: the launch of a job waits for the agent's next question.
#[test]
fn launches_wait_for_the_agent() {
    let mut config = config();
    config.settings =
        ClusterSettings { launch_timeout_seconds: 10, agent_lost_after_seconds: Some(50), ..config.settings };
    config.nodes.push(far("far"));
    let mut cluster = Cluster::with(config);
    let job = cluster.submit("ada", pulled(1));
    let command = cluster.start_command(job, &["far"], 1);
    cluster.ok(&muster_schemas::event::Actor::Planner, command);
    cluster.pass(49);
    assert_eq!(cluster.tick(), []);
    cluster.pass(2);
    assert!(!cluster.tick().is_empty(), "now it is late");
}
