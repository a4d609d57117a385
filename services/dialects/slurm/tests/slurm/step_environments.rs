//! The variables of the tasks of steps.

use muster_slurm::{
    environment::{ComponentFacts, JobFacts, StepFacts, StepPart, of_task},
    steps::World,
};
use std::collections::BTreeMap;

fn component(number: u64, nodes: &[&str]) -> ComponentFacts {
    ComponentFacts {
        number,
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        cpus: vec![1; nodes.len()],
        tasks: vec![1; nodes.len()],
        ..ComponentFacts::default()
    }
}

fn job(second: &[&str]) -> JobFacts {
    JobFacts { components: vec![component(11741, &["nid00001"]), component(11742, second)], ..JobFacts::default() }
}

/// The variables of every task of a step over some components, one task on each node.
fn tasks(job: &JobFacts, components: &[u32]) -> Vec<BTreeMap<String, String>> {
    let nodes = |offset: &u32| job.components[*offset as usize].nodes.clone();
    let parts: Vec<(Vec<String>, Vec<Vec<u32>>)> = components
        .iter()
        .map(|offset| (nodes(offset), (0..nodes(offset).len() as u32).map(|task| vec![task]).collect()))
        .collect();
    let world = World::join(&parts);
    let part =
        |offset: &u32| StepPart { component: *offset, cpus: vec![1; nodes(offset).len()], ..StepPart::default() };
    let step = StepFacts { job, step: 3, parts: components.iter().map(part).collect(), world: &world };
    (0..world.tasks.len() as u32).map(|rank| of_task(&step, rank)).collect()
}

/// EX-12, SL-E-05, SL-E-06: over several components the step looks like one job.
#[test]
fn tasks_over_several_components_see_one_world() {
    let all = tasks(&job(&["nid00002", "nid00003"]), &[0, 1]);
    assert_eq!(all.len(), 3);
    for (rank, variables) in all.iter().enumerate() {
        for (name, value) in [
            ("SLURM_JOB_ID", "11741"),
            ("SLURM_JOB_NODELIST", "nid[00001-00003]"),
            ("SLURM_NTASKS", "3"),
            ("SLURM_NPROCS", "3"),
            ("SLURM_NNODES", "3"),
            ("SLURM_JOB_NUM_NODES", "3"),
            ("SLURM_JOB_CPUS_PER_NODE", "1(x3)"),
            ("SLURM_TASKS_PER_NODE", "1(x3)"),
            ("SLURM_LOCALID", "0"),
        ] {
            assert_eq!(variables[name], value, "{name}");
        }
        assert_eq!((&variables["SLURM_PROCID"], &variables["SLURM_NODEID"]), (&rank.to_string(), &rank.to_string()));
    }
    let apart = tasks(&job(&["nid00011", "nid00012"]), &[0, 1]);
    assert_eq!(apart[0]["SLURM_JOB_NODELIST"], "nid[00001,00011-00012]");
    assert_eq!(apart[2]["SLURMD_NODENAME"], "nid00012");
}

/// EX-11, SL-E-02: the number without suffix is the leader's in every step.
#[test]
fn the_job_number_is_the_leaders_in_every_step() {
    let job = job(&["nid00002", "nid00003"]);
    let on_second = tasks(&job, &[1]);
    assert_eq!(on_second.iter().map(|task| task["SLURM_JOB_ID"].as_str()).collect::<Vec<_>>(), ["11741", "11741"]);
    assert!(on_second.iter().all(|task| task["SLURM_JOB_ID_HET_GROUP_1"] == "11742"));
    assert_eq!(tasks(&job, &[0])[0]["SLURM_JOB_ID_HET_GROUP_0"], "11741");
}

/// SL-E-07: on one component the node list and the counts are that component's.
#[test]
fn a_step_on_one_component_sees_that_component() {
    let variables = &tasks(&job(&["nid00002", "nid00003"]), &[1])[1];
    for (name, value) in [
        ("SLURM_JOB_NODELIST", "nid[00002-00003]"),
        ("SLURM_JOB_NUM_NODES", "2"),
        ("SLURM_NTASKS", "2"),
        ("SLURM_STEP_ID", "3"),
        ("SLURM_STEPID", "3"),
        ("SLURM_STEP_NODELIST", "nid[00002-00003]"),
        ("SLURM_STEP_NUM_NODES", "2"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_STEP_TASKS_PER_NODE", "1(x2)"),
        ("SLURM_GTIDS", "1"),
        ("SLURMD_NODENAME", "nid00003"),
    ] {
        assert_eq!(variables[name], value, "{name}");
    }
}

/// SL-E-05: a node shared by components appears once in the merged list.
#[test]
fn a_node_of_two_components_stands_once_in_the_list() {
    let all = tasks(&job(&["nid00001", "nid00002"]), &[0, 1]);
    assert_eq!(all[1]["SLURM_JOB_NODELIST"], "nid[00001-00002]");
    assert_eq!(all[1]["SLURM_JOB_CPUS_PER_NODE"], "2,1");
    assert_eq!((all[1]["SLURM_NODEID"].as_str(), all[1]["SLURM_LOCALID"].as_str()), ("0", "1"));
    assert_eq!(all[0]["SLURM_GTIDS"], "0,1");
}

/// SL-E-05: a rank that the step does not have has no variables.
#[test]
fn there_are_no_variables_beyond_the_last_rank() {
    let world = World::default();
    let job = job(&["nid00002"]);
    assert!(of_task(&StepFacts { job: &job, step: 0, parts: Vec::new(), world: &world }, 0).is_empty());
}

/// SL-E-05: the distribution in force, also if nobody asked for one.
#[test]
fn tasks_know_how_they_are_distributed() {
    let job = job(&["nid00002"]);
    assert_eq!(tasks(&job, &[0])[0]["SLURM_DISTRIBUTION"], "block");
    let world = World::join(&[(vec!["nid00001".to_owned()], vec![vec![0]])]);
    let of = |text: &str| {
        let part = StepPart { distribution: Some(text.to_owned()), cpus: vec![1], ..StepPart::default() };
        let step = StepFacts { job: &job, step: 0, parts: vec![part], world: &world };
        of_task(&step, 0)["SLURM_DISTRIBUTION"].clone()
    };
    assert_eq!([of("cyclic"), of("*:*"), of("cyclic:*,nopack")], ["cyclic", "block:cyclic", "cyclic:cyclic,nopack"]);
}
