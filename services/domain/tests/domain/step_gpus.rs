//! Steps share out the GPUs of their job.

use crate::{support::*, written::tasks_order};
use muster_schemas::{
    JobId, PartId, RunId, StepId,
    cluster::ClusterConfig,
    command::{Command, RefusalCode, Reply},
    event::{Actor, EndCause, Event},
    job::ExitStatus,
    node::{GpuFault, GpuReport},
    plan::Start,
    resources::{Gpus, IndexSet, Per, Placement},
    steps::{GpuBinding, StepGroup, StepPlace, StepProgram, StepSpec},
};

fn set(text: &str) -> IndexSet {
    text.parse().expect("a set")
}

/// A job with four GPUs on node1, two of them of model `big`, and with two on node2.
fn running() -> (Cluster, JobId, RunId) {
    let mut nodes = config().nodes;
    nodes[0].gpus = ["old", "small", "big", "small", "big"].map(str::to_owned).into();
    nodes[1].gpus = vec!["small".into(); 2];
    let mut cluster = Cluster::with(ClusterConfig { nodes, ..config() });
    let id = cluster.submit("ada", job(2, 4));
    let mut placement = cluster.placement(&["node1", "node2"], 4);
    placement.components[0].shares[0].gpus = set("1-4");
    placement.components[0].shares[1].gpus = set("0-1");
    let run = cluster.state.next_run();
    let refused = cluster.run(&Actor::Planner, commit(vec![Start { job: id, placement }]));
    assert!(matches!(&refused, Ok((_, Reply::Planned(none))) if none.is_empty()), "{refused:?}");
    for node in ["node1", "node2"] {
        cluster.ok(&executor(node), Command::NodeStarted { part: cluster.part(run, node) });
    }
    (cluster, id, run)
}

/// A step with a task of one core on each of these nodes, which asks for GPUs.
fn step(nodes: &[&str], gpus: Option<(u32, Per)>) -> StepSpec {
    let places = nodes.iter().zip(0..);
    let places = places.map(|(node, rank)| StepPlace {
        node: (*node).into(),
        ranks: IndexSet::from_range(rank, rank),
        cores: None,
    });
    let ranks = IndexSet::first_n(nodes.len() as u32);
    let group = StepGroup {
        places: places.collect(),
        programs: vec![StepProgram { ranks, argv: vec!["true".into()] }],
        gpus: gpus.map(|(count, per)| Gpus { count, per, model: None }),
        ..StepGroup::default()
    };
    StepSpec { groups: vec![group], ..StepSpec::default() }
}

fn of_model(model: &str, mut spec: StepSpec) -> StepSpec {
    spec.groups[0].gpus.as_mut().expect("it asks for some").model = Some(model.into());
    spec
}

fn launch(job: JobId, spec: StepSpec) -> Command {
    Command::LaunchStep { job, spec: Box::new(spec) }
}

/// The number of a step that is launched now, and its own GPUs on each of its nodes.
fn launched(cluster: &mut Cluster, job: JobId, spec: StepSpec) -> (StepId, Vec<Option<String>>) {
    let (events, reply) = cluster.run(&user("ada"), launch(job, spec)).expect("it fits");
    let Reply::Step { step, .. } = reply else { panic!("{reply:?}") };
    let [Event::StepLaunched { shares, .. }] = &events[..] else { panic!("{events:?}") };
    (step, shares.iter().map(|share| Some(share.gpus.as_ref()?.to_string())).collect())
}

fn own(gpus: &[&str]) -> Vec<Option<String>> {
    gpus.iter().map(|gpus| Some((*gpus).to_owned())).collect()
}

fn end(cluster: &mut Cluster, run: RunId, step: StepId, node: &str) {
    let exit = exit(ExitStatus::Code(0), EndCause::Itself, cluster.now);
    let part: PartId = cluster.part(run, node);
    cluster.ok(&executor(node), Command::NodeStepEnded { part, step, exit, statuses: Vec::new() });
}

#[test]
fn a_step_that_asks_for_gpus_gets_the_lowest_that_no_other_step_has() {
    let (mut cluster, id, run) = running();
    let (first, gpus) = launched(&mut cluster, id, step(&["node1"], Some((1, Per::Node))));
    assert_eq!(gpus, own(&["1"]));
    let (_, gpus) = launched(&mut cluster, id, step(&["node1", "node2"], Some((2, Per::Task))));
    assert_eq!(gpus, own(&["2-3", "0-1"]));
    let two = || step(&["node1"], Some((2, Per::Node)));
    cluster.refused(&user("ada"), launch(id, two()), RefusalCode::Busy, "has 1 that are free of other steps");
    end(&mut cluster, run, first, "node1");
    assert_eq!(launched(&mut cluster, id, two()).1, own(&["1,4"]));
    cluster.assert_replays();
}

/// A step has GPUs of several models beside each other, if the job has them.
#[test]
fn a_step_has_gpus_of_several_models() {
    let (mut cluster, id, _) = running();
    let two = |more: u32| {
        let mut spec = of_model("big", step(&["node1"], Some((1, Per::Node))));
        spec.groups[0].more_gpus = vec![Gpus { count: more, per: Per::Node, model: Some("small".into()) }];
        spec
    };
    assert_eq!(launched(&mut cluster, id, two(1)).1, own(&["1-2"]));
    cluster.refused(&user("ada"), launch(id, two(2)), RefusalCode::Busy, "2 GPUs of model small are wanted");
    assert_eq!(launched(&mut cluster, id, two(1)).1, own(&["3-4"]));
    let mut twice = two(1);
    twice.groups[0].more_gpus[0].model = Some("big".into());
    cluster.refused(&user("ada"), launch(id, twice), RefusalCode::Invalid, "model `big` is named twice");
    cluster.assert_replays();
}

/// As in Slurm: who does not ask has them all and keeps nobody from any, who asks for none has none, and who overlaps
/// others shares theirs.
#[test]
fn a_step_that_asks_for_none_or_not_at_all_keeps_no_other_from_gpus() {
    let (mut cluster, id, run) = running();
    let (silent, gpus) = launched(&mut cluster, id, step(&["node1"], None));
    assert_eq!(gpus, [None]);
    let (none, gpus) = launched(&mut cluster, id, step(&["node1"], Some((0, Per::Node))));
    assert_eq!(gpus, own(&[""]));
    let (all, gpus) = launched(&mut cluster, id, step(&["node1"], Some((4, Per::Node))));
    assert_eq!(gpus, own(&["1-4"]));
    let overlapping = StepSpec { overlaps: true, ..step(&["node1"], Some((3, Per::Node))) };
    assert_eq!(launched(&mut cluster, id, overlapping).1, own(&["1-3"]));
    let node = cluster.node_id("node1");
    let given = |step: StepId, launched: &StepSpec| {
        let spec = job(2, 4);
        let order = tasks_order(&cluster.state, cluster.part(run, "node1"), node, step, &spec, launched);
        order.expect("it has tasks there").0.gpus.to_string()
    };
    let (asks, bare) = (step(&["node1"], Some((4, Per::Node))), step(&["node1"], None));
    assert_eq!([given(silent, &bare), given(none, &asks), given(all, &asks)], ["1-4", "", "1-4"]);
}

#[test]
fn gpus_for_a_whole_group_are_dealt_out_over_its_nodes() {
    let (mut cluster, id, _) = running();
    let both = |count| step(&["node1", "node2"], Some((count, Per::Request)));
    assert_eq!(launched(&mut cluster, id, both(2)).1, own(&["1", "0"]));
    assert_eq!(launched(&mut cluster, id, both(3)).1, own(&["2-3", "1"]), "as long as the nodes have any");
    cluster.refused(&user("ada"), launch(id, both(2)), RefusalCode::Busy, "has 1 that are free");
    cluster.refused(&user("ada"), launch(id, both(7)), RefusalCode::LimitReached, "groups.gpus: 7 GPUs are wanted");
}

#[test]
fn only_gpus_of_the_model_count() {
    let (mut cluster, id, _) = running();
    let (small, big) =
        (of_model("small", step(&["node1"], Some((1, Per::Node)))), step(&["node1"], Some((2, Per::Node))));
    assert_eq!(launched(&mut cluster, id, of_model("big", big.clone())).1, own(&["2,4"]));
    assert_eq!(launched(&mut cluster, id, small).1, own(&["1"]));
    let ada = user("ada");
    cluster.refused(&ada, launch(id, of_model("big", big.clone())), RefusalCode::Busy, "2 GPUs of model big");
    let three = step(&["node1"], Some((3, Per::Node)));
    cluster.refused(&ada, launch(id, of_model("big", three)), RefusalCode::LimitReached, "component 0 of job 1 has 2");
    cluster.refused(&ada, launch(id, of_model("old", big)), RefusalCode::LimitReached, "has 0");
}

#[test]
fn requests_for_gpus_have_limits() {
    let (mut cluster, id, _) = running();
    let refused = |cluster: &mut Cluster, change: &dyn Fn(&mut StepGroup), words: &str| {
        let mut spec = step(&["node1"], Some((1, Per::Node)));
        change(&mut spec.groups[0]);
        cluster.refused(&user("ada"), launch(id, spec), RefusalCode::Invalid, words);
    };
    let per = |per| Some(Gpus { count: 1, per, model: None });
    refused(&mut cluster, &|group| group.gpus = per(Per::Core), "groups.gpus.per");
    refused(&mut cluster, &|group| group.gpus = per(Per::Gpu), "groups.gpus.per");
    refused(&mut cluster, &|group| group.gpu_binding = Some(GpuBinding::PerTask(0)), "groups.gpu_binding");
    refused(&mut cluster, &|group| group.gpu_binding = Some(GpuBinding::Listed(Vec::new())), "groups.gpu_binding");
    refused(&mut cluster, &|group| group.gpu_binding = Some(GpuBinding::Listed(vec![set("0"); 1001])), "1001");
}

/// What the executor of node1 says of its GPUs.
fn checked(cluster: &mut Cluster, found: u32, faults: &[(u32, &str)]) -> Vec<Event> {
    let faults = faults.iter().map(|(gpu, why)| (*gpu, (*why).to_owned())).collect();
    cluster.ok(&executor("node1"), Command::NodeGpusChecked { report: GpuReport { found, faults } })
}

#[test]
fn a_gpu_out_of_service_is_in_the_log_once_and_given_to_no_job() {
    let (mut cluster, first, _) = running();
    assert_eq!(checked(&mut cluster, 5, &[]), [], "all is well, as it was thought");
    let events = checked(&mut cluster, 4, &[(1, "it is lost"), (7, "no GPU of this node")]);
    let fault = |gpu, why: &str| GpuFault { gpu, why: why.into() };
    let faults = vec![fault(1, "it is lost"), fault(4, "it is not there, the node has 4 of 5")];
    let node = cluster.node_id("node1");
    assert_eq!(events, [Event::NodeGpusChecked { node, faults: faults.clone() }]);
    assert_eq!(checked(&mut cluster, 4, &[(1, "it is lost")]), [], "that is known");
    assert!(cluster.state.job(first).unwrap().run().is_some(), "who has one keeps it");

    let end = cluster.state.job(first).unwrap().run().unwrap();
    for node in ["node1", "node2"] {
        cluster.end(end, node, ExitStatus::Code(0));
    }
    let id = cluster.submit("ada", job(1, 1));
    let mut placement = cluster.placement(&["node1"], 1);
    placement.components[0].shares[0].gpus = set("0-1");
    let start = |placement: &Placement| commit(vec![Start { job: id, placement: placement.clone() }]);
    let Ok((_, Reply::Planned(refused))) = cluster.run(&Actor::Planner, start(&placement)) else { panic!("a plan") };
    assert_eq!(refused[0].reason, "node node1: GPU 1 is out of service: it is lost");
    checked(&mut cluster, 5, &[]);
    let Ok((_, Reply::Planned(refused))) = cluster.run(&Actor::Planner, start(&placement)) else { panic!("a plan") };
    assert_eq!(refused, []);
    cluster.assert_replays();
}

#[test]
fn what_a_node_says_of_gpus_that_it_has_not_is_short() {
    let (mut cluster, ..) = running();
    let events = checked(&mut cluster, 5, &[(0, &"x".repeat(100_000))]);
    let [Event::NodeGpusChecked { faults, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(faults[0].why.len(), 200);
    let (bare, refusal) = (user("ada"), RefusalCode::PermissionDenied);
    cluster.refused(&bare, Command::NodeGpusChecked { report: GpuReport::default() }, refusal, "");
}
