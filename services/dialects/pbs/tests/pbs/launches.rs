//! What a job sees when it is launched.

use crate::support::submission;
use muster_dialect::{Dialect, Ending, Host};
use muster_pbs::{
    Pbs,
    environment::{HOSTS, hosts, node_file},
};
use muster_schemas::{
    JobId,
    event::{Owner, StopReason, TraceContext},
    ids::{PartId, RunId, StepId},
    node::{LaunchOrder, OrderNode},
    time::Timestamp,
    views::RunNodeView,
};
use nix::sys::resource::Resource;
use std::{collections::BTreeMap, sync::Arc};

fn order(line: &str, nodes: &[(&str, u32)]) -> LaunchOrder {
    let spec = submission(line).unwrap().spec;
    let node =
        |(name, tasks): &(&str, u32)| OrderNode { name: (*name).to_owned(), tasks: *tasks, component: 0, facts: None };
    let part = PartId::new(RunId(1), 0);
    LaunchOrder {
        job: JobId::job(123),
        part,
        step: StepId(0),
        name: spec.name.clone(),
        owner: Owner { user: "ann".into(), uid: 1000, gid: 50 },
        account: None,
        queue: "batch".into(),
        launch: spec.components[0].launch.clone(),
        environment: spec.environment,
        working_directory: spec.working_directory,
        umask: spec.umask,
        nodes: Arc::new(nodes.iter().map(node).collect()),
        node_index: 0,
        first_rank: 0,
        total_tasks: nodes.iter().map(|(_, tasks)| tasks).sum(),
        cpus_per_task: 1,
        cores: "0-3".parse().unwrap(),
        gpus: Default::default(),
        memory_bytes: 0,
        walltime_seconds: Some(3_600),
        checkpoint: None,
        kill_grace_seconds: 10,
        trace: TraceContext::default(),
        access: None,
        group: None,
        dialect: Some("pbs".into()),
    }
}

fn variables(order: &LaunchOrder, login: &[u8]) -> BTreeMap<String, String> {
    let login = |_: &str, _: u32| Ok(login.to_vec());
    Pbs.variables(order, &Host { now: Timestamp(0), login: &login }).set
}

#[test]
fn a_job_sees_its_identifier_its_size_and_its_place() {
    let seen = variables(&order("-N test -l select=3:ncpus=4:mpiprocs=2", &[("n1", 2), ("n2", 1)]), b"");
    for (name, value) in [
        ("PBS_JOBID", "123.pbs1"),
        ("PBS_JOBNAME", "test"),
        ("PBS_QUEUE", "batch"),
        ("PBS_O_QUEUE", "batch"),
        ("PBS_NUM_NODES", "2"),
        ("PBS_NUM_PPN", "2"),
        ("PBS_NP", "6"),
        ("PBS_NODENUM", "0"),
        ("PBS_TASKNUM", "1"),
        ("PBS_JOBDIR", "/home/ann"),
        ("PBS_WALLTIME", "3600"),
        ("NCPUS", "4"),
        ("OMP_NUM_THREADS", "4"),
        ("TMPDIR", "/tmp"),
    ] {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!seen.contains_key("PBS_ARRAYID"));
    let mut task = order("-J 0-9 -q fast", &[("n1", 1)]);
    task.job = JobId::task(123, 4);
    let seen = variables(&task, b"");
    let named = ["PBS_JOBID", "PBS_ARRAYID", "PBS_ARRAY_INDEX", "PBS_ARRAY_ID", "PBS_O_QUEUE"];
    assert_eq!(named.map(|name| seen[name].as_str()), ["123[4].pbs1", "4", "4", "123[].pbs1", "fast"]);
    let seen = variables(&order("-l select=1:ncpus=4:ompthreads=2 -V -v TMPDIR=/x", &[("n1", 1)]), b"");
    assert_eq!((seen["NCPUS"].as_str(), seen.get("TMPDIR")), ("2", None));
}

#[test]
fn the_node_file_has_a_line_for_each_process() {
    let order = order("-l select=3:ncpus=4:mpiprocs=2", &[("n1", 2), ("n2", 1)]);
    assert_eq!(node_file(&order), "n1\nn1\nn1\nn1\nn2\nn2\n");
    assert_eq!(node_file(&self::order("-l nodes=2:ppn=2", &[("a", 2), ("b", 2)])), "a\na\nb\nb\n");
    assert_eq!(node_file(&self::order("-l nodes=2", &[("a", 1), ("b", 1)])), "a\nb\n");
    assert_eq!(node_file(&self::order("-l select=2:ncpus=2:mpiprocs=2 -l place=pack", &[("a", 4)])), "a\na\na\na\n");
    // Without a plan, tasks are processes; a plan from hostile words is none.
    let mut odd = self::order("", &[("a", 2)]);
    odd.environment.insert("MUSTER_PBS_CHUNKS".into(), "4000000000:1:4000000000:1".into());
    assert_eq!(node_file(&odd), "a\na\n");
    // So is one that does not fit the tasks, because the job's size was changed.
    odd.environment.insert("MUSTER_PBS_CHUNKS".into(), "3:4:9:1".into());
    assert_eq!(node_file(&odd), "a\na\n");
}

#[test]
fn a_job_without_its_submitters_environment_gets_that_of_a_login() {
    let order = order("-v PATH=/mine", &[("n1", 1)]);
    let said = b"hello\nmuster-login-environment\0PATH=/login\0MODULEPATH=/m\0PWD=/\0_=env\0";
    let seen = variables(&order, said);
    assert_eq!((seen.get("PATH"), seen["MODULEPATH"].as_str(), seen.get("PWD")), (None, "/m", None));
    let silent = |_: &str, _: u32| Err("no shell".to_owned());
    let variables = Pbs.variables(&order, &Host { now: Timestamp(0), login: &silent });
    assert_eq!(variables.remark.as_deref(), Some("the environment of a login of ann is not loaded: no shell"));
    assert!(variables.set.contains_key("PBS_JOBID"));
    let never = |_: &str, _: u32| panic!("no login is wanted");
    Pbs.variables(&self::order("-V", &[("n1", 1)]), &Host { now: Timestamp(0), login: &never });
}

#[test]
fn processes_have_the_limits_of_the_request() {
    let limits = Pbs.soft_limits(&order("-l pcput=60,file=1kb", &[("n1", 1)]));
    assert_eq!(limits, [(Resource::RLIMIT_FSIZE, Some(1024)), (Resource::RLIMIT_CPU, Some(60))]);
    assert_eq!(Pbs.soft_limits(&order("", &[("n1", 1)])), []);
}

#[test]
fn a_job_that_reached_its_walltime_says_so() {
    let at: jiff::Zoned = "2026-11-20T10:00:00[UTC]".parse().unwrap();
    let order = order("", &[("n1", 1)]);
    let note = Pbs.end_note(&order, Ending::Walltime, &at);
    assert_eq!(note.as_deref(), Some("=>> PBS: job killed: walltime exceeded limit 01:00:00\n"));
    assert_eq!(Pbs.end_note(&order, Ending::Ordered(StopReason::Cancelled), &at), None);
}

/// The shell of an interactive job is launched on one node, and knows all of them.
#[test]
fn a_shell_in_a_job_knows_all_nodes_of_the_job() {
    let job = order("-l select=2:ncpus=2:mpiprocs=2+1:ncpus=1", &[("n1", 2), ("n2", 1)]);
    let node = |name: &str, cores: &str, tasks: u32| RunNodeView {
        node: name.to_owned(),
        component: 0,
        cores: cores.parse().unwrap(),
        gpus: Default::default(),
        memory_bytes: 0,
        tasks,
        exclusive: false,
        exit: None,
    };
    let text = hosts(&[node("n1", "0-3", 2), node("n2", "0", 1)], &job.environment).unwrap();
    assert_eq!(text, "n1/2,2 n2/1");
    let mut shell = order("-l select=2:ncpus=2:mpiprocs=2+1:ncpus=1", &[("n1", 1)]);
    assert_eq!(node_file(&shell), "n1\n");
    shell.environment.insert(HOSTS.to_owned(), text);
    assert_eq!(node_file(&shell), "n1\nn1\nn1\nn1\nn2\n");
    let seen = variables(&shell, b"");
    assert_eq!(
        (seen["PBS_NUM_NODES"].as_str(), seen["PBS_NP"].as_str(), seen["PBS_NUM_PPN"].as_str()),
        ("2", "5", "2")
    );
    for bad in ["n1", "n1/x", "/1", "n1/999999999", "n1/1  n2/1"] {
        shell.environment.insert(HOSTS.to_owned(), bad.to_owned());
        assert_eq!(node_file(&shell).lines().count(), 2, "{bad}: it is as on one node");
    }
    let many: Vec<RunNodeView> = (0..20_000).map(|number| node(&format!("node{number}"), "0", 1)).collect();
    assert_eq!(hosts(&many, &job.environment), None);
}
