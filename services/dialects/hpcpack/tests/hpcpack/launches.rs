//! What a task sees when it is launched.

use muster_dialect::Dialect as _;
use muster_hpcpack::HpcPack;
use muster_schemas::{
    JobId,
    event::{Owner, TraceContext},
    ids::{PartId, RunId, StepId},
    job::Launch,
    node::{LaunchOrder, OrderNode},
    resources::IndexSet,
};
use std::sync::Arc;

/// The file of nodes of a task on two nodes whose variable has these words.
fn node_file(step: u32, cores: &str) -> Option<String> {
    let node = |name: &str| OrderNode { name: name.into(), tasks: 1, component: 0, facts: None };
    let order = LaunchOrder {
        job: JobId::job(12),
        part: PartId::new(RunId(1), 0),
        step: StepId(step),
        name: "task".into(),
        owner: Owner { user: "ann".into(), uid: 1000, gid: 50 },
        account: None,
        queue: "default".into(),
        launch: Launch::default(),
        environment: [("MUSTER_TASK_CORES".to_owned(), cores.to_owned())].into(),
        working_directory: "/home/ann".into(),
        umask: None,
        nodes: Arc::new(vec![node("n1"), node("n2")]),
        node_index: 0,
        first_rank: 0,
        total_tasks: 2,
        cpus_per_task: 1,
        cores: IndexSet::new(),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        walltime_seconds: None,
        checkpoint: None,
        kill_grace_seconds: 10,
        trace: TraceContext::default(),
        access: None,
        dialect: Some("hpcpack".into()),
        group: None,
    };
    HpcPack.node_file(&order).map(|(variable, text)| {
        assert_eq!(variable, "MUSTER_TASK_NODEFILE");
        text
    })
}

/// SL-W-07: a task has a line for each of its cores.
#[test]
fn a_task_has_a_line_for_each_core() {
    assert_eq!(node_file(1, "n1:2,n2:1").as_deref(), Some("n1\nn1\nn2\n"));
    assert_eq!(node_file(0, "n1:2"), None, "the job itself has no tasks");
}

/// SL-W-07: whoever starts a step can set the variable to anything, and gets no file that is longer than that of a large task.
#[test]
fn a_step_cannot_make_its_file_of_nodes_long() {
    let long = format!("{}:65536", "n".repeat(20_000));
    assert_eq!(node_file(1, &format!("{long},n1:1")).as_deref(), Some("n1\n"));
    assert_eq!(node_file(1, "n1:99999999,n1:-1,n2:x,:1,n3:1,n1").map(|text| text.len()), Some(65_536 * 3));
}
