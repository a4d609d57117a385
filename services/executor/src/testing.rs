//! Orders for unit tests.

use crate::{
    cleaning::Cleaning,
    containment::{ContainmentMode, Hierarchies},
    identity::Identity,
    runtimes::RuntimeChoice,
    spool::SpooledOrder,
};
use muster_schemas::{
    JobId, PartId, RunId, StepId,
    event::{Owner, TraceContext},
    job::{Launch, Program},
    node::{LaunchOrder, OrderNode},
    resources::IndexSet,
};
use std::collections::BTreeMap;

/// An order of one task on the one node `n1`.
pub fn order(run: u64) -> LaunchOrder {
    LaunchOrder {
        job: JobId::job(run),
        part: PartId::new(RunId(run), 0),
        step: StepId(0),
        name: "test".into(),
        owner: Owner { user: "root".into(), uid: 0, gid: 0 },
        account: None,
        queue: "default".into(),
        launch: Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() },
        environment: BTreeMap::new(),
        working_directory: "/".into(),
        umask: None,
        nodes: vec![OrderNode { name: "n1".into(), tasks: 1, component: 0, facts: None }].into(),
        node_index: 0,
        first_rank: 0,
        total_tasks: 1,
        cpus_per_task: 1,
        cores: IndexSet::from_range(0, 0),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        walltime_seconds: None,
        checkpoint: None,
        kill_grace_seconds: 10,
        trace: TraceContext::default(),
        access: None,
        group: None,
        dialect: None,
    }
}

/// The order as it lies in a spool.
pub fn spooled(order: LaunchOrder) -> SpooledOrder {
    SpooledOrder {
        boot_id: "boot".into(),
        identity: Identity {
            user: "root".into(),
            uid: 0,
            gid: 0,
            groups: vec![0],
            home: "/root".into(),
            shell: "/bin/sh".into(),
        },
        hierarchies: Hierarchies::detect(ContainmentMode::Process, "test").expect("the process tree is always there"),
        cpus: vec![],
        open_files: 1024,
        tasks: None,
        pmix_program: None,
        gpus: Vec::new(),
        container_runtime: RuntimeChoice::Auto,
        site: None,
        cleaning: Cleaning::default(),
        order,
    }
}
