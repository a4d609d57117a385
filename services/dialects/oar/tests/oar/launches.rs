//! What a job sees when it is launched.

use muster_dialect::Dialect as _;
use muster_oar::{
    Oar,
    dialect::{FRONT, hosts},
};
use muster_schemas::{
    JobId,
    event::{Owner, TraceContext},
    ids::{PartId, RunId, StepId},
    job::Launch,
    node::{LaunchOrder, NodeFacts, OrderNode},
    resources::{IndexSet, PropertyValue},
    views::RunNodeView,
};
use std::sync::Arc;

fn cores(text: &str) -> IndexSet {
    text.parse().expect("a set")
}

/// A node of a run; some cores of a node with ten cores on four sockets.
fn node(name: &str, component: u32, of_job: &str, before: u64) -> OrderNode {
    let properties = [
        ("Switch", PropertyValue::Text("it's s1".into())),
        ("mem", PropertyValue::Number(64)),
        ("gpu", PropertyValue::Flag(true)),
        ("deploy", PropertyValue::Flag(true)),
        ("note", PropertyValue::Text("two\nlines".into())),
    ];
    let facts = NodeFacts {
        properties: properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        cores: cores(of_job),
        all_cores: 10,
        sockets: 4,
        cores_before: before * 10,
        sockets_before: before * 4,
    };
    OrderNode { name: name.into(), tasks: 1, component, facts: Some(Box::new(facts)) }
}

fn order(nodes: Vec<OrderNode>, environment: &[(&str, &str)]) -> LaunchOrder {
    LaunchOrder {
        job: JobId::job(12),
        part: PartId::new(RunId(1), 0),
        step: StepId(0),
        name: "job".into(),
        owner: Owner { user: "ann".into(), uid: 1000, gid: 50 },
        account: None,
        queue: "default".into(),
        launch: Launch::default(),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        working_directory: "/home/ann".into(),
        umask: None,
        nodes: Arc::new(nodes),
        node_index: 0,
        first_rank: 0,
        total_tasks: 1,
        cpus_per_task: 1,
        cores: cores("0-1"),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        walltime_seconds: Some(3_600),
        checkpoint: None,
        kill_grace_seconds: 10,
        trace: TraceContext::default(),
        access: None,
        group: None,
        dialect: Some("oar".into()),
    }
}

/// OAR-J-15: a line for each core, with the numbers that it has among those of all nodes and without properties of the system; a
/// quote is doubled, and what would break a line is left out.
#[test]
fn the_file_of_properties_has_a_line_for_each_core() {
    let file = Oar.property_file(&order(vec![node("n3", 0, "9", 2), node("n1", 0, "2-3", 0)], &[]));
    let line = |core: u64, cpu: u64, node: &str| {
        format!(
            "core = '{core}', cpu = '{cpu}', gpu = 'YES', host = '{node}', mem = '64', network_address = '{node}', \
             resource_id = '{core}', switch = 'it''s s1'\n"
        )
    };
    // Sockets of three, three, two and two cores.
    let lines = [line(3, 1, "n1"), line(4, 2, "n1"), line(30, 12, "n3")];
    assert_eq!(file, Some(lines.concat()));
    let resources = muster_oar::show::printed::read(&lines.concat()).expect("oarprint reads it");
    assert_eq!((resources.len(), resources[0]["switch"].as_str()), (3, "it's s1"));
    let unknown = OrderNode { facts: None, ..node("n1", 0, "0", 0) };
    assert_eq!(Oar.property_file(&order(vec![unknown], &[])), None, "nothing is known about its node");
    assert_eq!(Oar.property_file_variable(), Some("OAR_RESOURCE_PROPERTIES_FILE"));
}

/// OAR-T-50, OAR-T-60: the host on which a command runs apart from its nodes is in no file about them.
#[test]
fn a_host_apart_is_no_node_of_the_job() {
    let nodes = || vec![node("front", 0, "0", 0), node("n1", 1, "0-1", 1)];
    let count = [("MUSTER_NODE_CORES", "2x2"), (FRONT, "1")];
    let apart = order(nodes(), &count);
    assert_eq!(Oar.node_file(&apart).map(|(_, text)| text), Some("n1\nn1\n".to_owned()));
    assert_eq!(Oar.property_file(&apart).map(|text| text.lines().count()), Some(2));
    let together = order(nodes(), &count[..1]);
    assert_eq!(Oar.node_file(&together).map(|(_, text)| text), Some("front\nfront\nn1\nn1\n".to_owned()));
    let view = |node: &str, component| RunNodeView {
        node: node.into(),
        component,
        cores: cores("0-1"),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
        exit: None,
    };
    let run = [view("front", 0), view("n1", 1)];
    assert_eq!(hosts(&run, true).as_deref(), Some("n1/2"));
    assert_eq!(hosts(&run, false).as_deref(), Some("front/2 n1/2"));
}
