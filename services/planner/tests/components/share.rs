//! Components of a job on nodes that they share (SL-P-07).

use crate::{
    HOUR, MINUTE, backfill_passes, expected, on, pass, places, reason, reference_cluster, together,
    world::{GIB, World, job, node, queue, user},
};
use muster_planner::projection::Projection;
use muster_schemas::{
    JobId, NodeId,
    command::{Command, JobSelection, Reply},
    event::Actor,
    job::{JobSpec, WaitReason},
    policy::Policy,
    resources::{Gpus, IndexSet, Memory, NodeShare, Per, Request, Sharing},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn sharing(policy: Policy, share_nodes: bool) -> Policy {
    let mut policy = policy;
    policy.backfill.components.share_nodes = share_nodes;
    policy
}

fn built_in(name: &str) -> Policy {
    sharing(Policy::built_in(name).expect("it is built in"), true)
}

/// This many nodes with four cores, 2 GiB per core and two GPUs.
fn cluster(policy: &Policy, nodes: u32) -> World {
    let nodes = (1..=nodes).map(|number| node(&format!("n{number}"), 4, 2)).collect();
    let mut world = World::new(policy, nodes, vec![queue("default")]);
    world.wait(1);
    world
}

/// Components with these numbers of cores, each on one node, for ten minutes.
fn cores(counts: &[u32]) -> JobSpec {
    together(counts.iter().map(|count| wanting(*count, |_| {})))
}

/// A component with this many cores on one node and further wishes.
fn wanting(cores: u32, more: impl FnOnce(&mut Request)) -> JobSpec {
    let mut request = Request { tasks: Some(1), cpus_per_task: cores, ..Request::default() };
    more(&mut request);
    job(request, 10 * MINUTE as u64)
}

fn shares(world: &World, job: JobId) -> Vec<NodeShare> {
    let run = world.state().run(world.job(job).run().expect("it runs")).expect("it is known");
    run.placement.shares().cloned().collect()
}

fn core_sets(world: &World, job: JobId) -> Vec<String> {
    shares(world, job).iter().map(|share| share.cores.to_string()).collect()
}

/// SL-P-07: each has its own node as long as there is one, and otherwise the rest of another's.
#[test]
fn components_share_a_node_only_where_they_do_not_fit_otherwise() {
    let mut world = cluster(&built_in("easy"), 3);
    let apart = world.submit(cores(&[1, 1]));
    assert_eq!(pass(&mut world).0, [apart]);
    assert_eq!(places(&world, apart), [["n1"], ["n2"]]);
    let larger = world.submit(cores(&[4]));
    assert_eq!(pass(&mut world).0, [larger]);
    assert_eq!(places(&world, larger), [["n3"]]);
    // Two nodes have three cores each, so two components have one each, and the third has the rest of the first.
    let shared = world.submit(cores(&[1, 2, 1]));
    assert_eq!(pass(&mut world).0, [shared]);
    assert_eq!(places(&world, shared), [["n1"], ["n1"], ["n2"]]);
    assert_eq!(core_sets(&world, shared), ["3", "1-2", "1"]);
}

/// SL-P-07: without the setting nothing changes, and a job that only fits with sharing is told that it never fits.
#[test]
fn without_the_setting_no_node_is_shared() {
    for share_nodes in [false, true] {
        // Requests that are plainly too large are refused.
        let mut world = cluster(&sharing(Policy::default(), true), 1);
        let job = world.submit(cores(&[1, 1]));
        let policy = Box::new(sharing(Policy::default(), share_nodes));
        world.must(&Actor::Ledger, Command::SetPolicy { policy });
        assert_eq!(pass(&mut world).0, if share_nodes { vec![job] } else { Vec::new() });
        let never = matches!(reason(&world, job), Some(WaitReason::NeverFits(_)));
        assert_eq!(never, !share_nodes);
    }
}

/// SL-P-07: a job that only fits on shared nodes waits while they are in use, and then starts.
#[test]
fn who_fits_only_on_shared_nodes_is_not_told_that_he_never_does() {
    let mut world = cluster(&sharing(Policy::built_in("fcfs").unwrap(), true), 1);
    let before = world.submit(cores(&[2]));
    assert_eq!(pass(&mut world).0, [before]);
    let (waits, too_large) = (world.submit(cores(&[2, 1])), world.submit(cores(&[2, 3])));
    assert_eq!(pass(&mut world).0, []);
    assert_eq!(reason(&world, waits), Some(WaitReason::Resources("cores".into())));
    assert!(matches!(reason(&world, too_large), Some(WaitReason::NeverFits(_))));
    world.end(before);
    assert_eq!(pass(&mut world).0, [waits]);
    assert_eq!(places(&world, waits), [["n1"], ["n1"]]);
}

/// SL-P-07: components that need most of a node are placed first, so that small ones find room beside them.
#[test]
fn small_components_find_room_beside_large_ones() {
    let mut world = cluster(&built_in("easy"), 2);
    let job = world.submit(cores(&[1, 2, 3, 2]));
    assert_eq!(pass(&mut world).0, [job]);
    assert_eq!(places(&world, job), [["n1"], ["n2"], ["n1"], ["n2"]]);
    assert_eq!(core_sets(&world, job), ["3", "0-1", "0-2", "2-3"]);
}

/// SL-P-07: memory and GPUs are counted as exactly as cores.
#[test]
fn no_memory_and_no_gpu_is_given_twice() {
    let memory =
        |gibibytes: u64| wanting(1, |request| request.memory = Some(Memory { bytes: gibibytes * GIB, per: Per::Node }));
    let gpus = |count| wanting(1, |request| request.gpus = Some(Gpus { count, per: Per::Node, model: None }));
    for (parts, fits) in [
        ([memory(4), memory(4)], true),
        ([memory(4), memory(5)], false),
        ([gpus(1), gpus(1)], true),
        ([gpus(1), gpus(2)], false),
        ([memory(8), gpus(2)], true),
    ] {
        let mut world = cluster(&built_in("easy"), 1);
        let job = world.submit(together(parts));
        assert_eq!(pass(&mut world).0, if fits { vec![job] } else { Vec::new() });
        assert_eq!(matches!(reason(&world, job), Some(WaitReason::NeverFits(_))), !fits);
        if fits {
            let [one, other] = &shares(&world, job)[..] else { panic!("two shares") };
            assert!(one.cores.intersection(&other.cores).is_empty() && one.gpus.intersection(&other.gpus).is_empty());
        }
    }
}

/// SL-P-07: a node that a component wants exclusively is not shared with another component of the job.
#[test]
fn a_node_that_a_component_wants_for_itself_is_not_shared() {
    for kind in [Sharing::Exclusive, Sharing::WholeNodes] {
        let alone = || wanting(1, |request| request.sharing = kind);
        let small = || wanting(1, |_| {});
        for parts in [vec![alone(), small()], vec![small(), alone()], vec![small(), alone(), small(), alone()]] {
            let mut world = cluster(&built_in("easy"), u32::try_from(parts.len()).unwrap() / 2);
            let submit = Command::Submit { jobs: vec![together(parts)] };
            let refused = world.command(&user("ada"), submit).expect_err("it never fits");
            assert!(refused.message.contains("nodes together"), "{refused:?}");
        }
        let mut world = cluster(&built_in("easy"), 2);
        let job = world.submit(together([small(), alone(), small()]));
        assert_eq!(pass(&mut world).0, [job]);
        assert_eq!(places(&world, job), [["n2"], ["n1"], ["n2"]]);
    }
}

/// SL-P-07: a reservation for components on a shared node is kept, and the rest of the node is free for others.
#[test]
fn backfilling_keeps_what_components_are_to_share() {
    for name in ["easy", "conservative"] {
        let mut world = cluster(&built_in(name), 1);
        let runs = world.submit(wanting(2, |_| {}));
        assert_eq!(pass(&mut world).0, [runs]);
        let zero = world.now;
        let waits = world.submit(cores(&[1, 2]));
        let long = |cores| job(Request { tasks: Some(cores), ..Request::default() }, HOUR as u64);
        let (fits, too_large) = (world.submit(long(1)), world.submit(long(1)));
        assert_eq!(pass(&mut world).0, [fits]);
        let start = zero.plus_seconds(10 * MINUTE);
        assert_eq!(reason(&world, waits), Some(WaitReason::Reserved { start }), "{name}");
        assert!(!world.has_started(too_large), "{name}: it would keep a core that is reserved");
        world.now = start;
        world.end(runs);
        assert_eq!(pass(&mut world).0, [waits], "{name}");
        // Core 2 has the job that keeps running. The job with the promise has another one, and each its own.
        let cores = core_sets(&world, waits);
        assert_eq!(cores, if name == "easy" { ["3", "0-1"] } else { ["0", "1,3"] }, "{name}");
    }
}

/// SL-P-07, SL-P-12: an explanation names a shared node once.
#[test]
fn a_shared_node_is_shown_once() {
    let mut world = cluster(&built_in("conservative"), 1);
    let runs = world.submit(wanting(2, |_| {}));
    assert_eq!(pass(&mut world).0, [runs]);
    let waits = world.submit(cores(&[1, 2]));
    assert_eq!(pass(&mut world).0, []);
    let promise = world.explain(waits).promise.expect("it has one");
    let nodes: Vec<_> = promise.nodes.iter().map(|node| (node.node.as_str(), node.cores)).collect();
    assert_eq!(nodes, [("n1", 3)]);
}

/// SL-P-07, SL-P-03: components are expected on a node together if no other one is free as early.
#[test]
fn a_pass_of_backfill_expects_components_on_shared_nodes() {
    for share_nodes in [false, true] {
        let mut world = reference_cluster(&sharing(backfill_passes(), share_nodes));
        let zero = world.now;
        let runs = [on(8, 120), on(11, 60)].map(|spec| world.submit(spec));
        assert_eq!(pass(&mut world).0, runs);
        let two = || wanting(2, |request| request.nodes = vec!["nid00010".into(), "nid00011".into()]);
        let job = world.submit(together([two(), two(), on(8, 10)]));
        assert_eq!(pass(&mut world).0, []);
        let second = if share_nodes { 0 } else { 10 * MINUTE };
        assert_eq!(expected(&world, job, zero), [Some(0), Some(second), Some(2 * HOUR)]);
        // In the end each has its own node.
        world.now = zero.plus_seconds(2 * HOUR);
        runs.into_iter().for_each(|run| world.end(run));
        assert_eq!(pass(&mut world).0, [job]);
        assert_eq!(places(&world, job), [["nid00010"], ["nid00011"], ["nid00008"]]);
    }
}

/// SL-P-07: the ledger refuses a placement on shared nodes under a policy without sharing.
#[test]
fn a_placement_on_shared_nodes_is_refused_under_another_policy() {
    let mut world = cluster(&built_in("easy"), 1);
    world.submit(cores(&[1, 1]));
    let plan = world.plan().plan;
    assert_eq!(plan.starts.len(), 1);
    let policy = Box::new(sharing(built_in("easy"), false));
    world.must(&Actor::Ledger, Command::SetPolicy { policy });
    let reply = world.must(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    let Reply::Planned(refused) = reply else { panic!("{reply:?}") };
    assert!(refused[0].reason.contains("the policy lets none share it"), "{refused:?}");
}

/// A component of a random job: cores, GPUs, GiB, and whether it wants its node exclusively.
type Part = (u32, u32, u64, bool);

fn part((cores, gpus, gibibytes, alone): Part) -> JobSpec {
    wanting(cores, |request| {
        request.memory = Some(Memory { bytes: gibibytes * GIB, per: Per::Node });
        request.gpus = (gpus > 0).then_some(Gpus { count: gpus, per: Per::Node, model: None });
        request.sharing = if alone { Sharing::Exclusive } else { Sharing::Shared };
    })
}

/// Panics if any resource is given twice, or a node is shared that a job wants exclusively.
fn assert_exact(world: &World) {
    let mut of_nodes: BTreeMap<NodeId, Vec<NodeShare>> = BTreeMap::new();
    for share in world.state().runs().flat_map(|run| run.placement.shares()) {
        of_nodes.entry(share.node).or_default().push(share.clone());
    }
    for (id, shares) in of_nodes {
        let spec = world.state().node(id).expect("it is known").spec.clone();
        let all = |of: fn(&NodeShare) -> &IndexSet| shares.iter().fold(IndexSet::new(), |all, one| all.union(of(one)));
        let sum = |of: fn(&NodeShare) -> u64| shares.iter().map(of).sum::<u64>();
        assert_eq!(all(|share| &share.cores).len(), sum(|share| share.cores.len()), "a core twice: {shares:?}");
        assert_eq!(all(|share| &share.gpus).len(), sum(|share| share.gpus.len()), "a GPU twice: {shares:?}");
        assert!(IndexSet::first_n(spec.cores).contains_all(&all(|share| &share.cores)));
        assert!(sum(|share| share.memory_bytes) <= spec.memory_bytes, "too much memory: {shares:?}");
        assert!(shares.len() == 1 || shares.iter().all(|share| !share.exclusive), "not alone: {shares:?}");
    }
}

/// Whether a job would start on the nodes as they are if no components may share any.
fn starts_apart(world: &World, job: JobId) -> bool {
    let mut apart = world.clone();
    let policy = Box::new(sharing(Policy::clone(world.state().policy()), false));
    apart.must(&Actor::Ledger, Command::SetPolicy { policy });
    apart.plan().plan.starts.iter().any(|start| start.job == job)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// SL-P-07: for any request, nothing is given twice, nodes are shared only by jobs that would not start at once
    /// otherwise, and the same state gives the same plan.
    #[test]
    fn what_components_share_is_counted_exactly(
        nodes in 1_u32..4,
        jobs in prop::collection::vec(
            prop::collection::vec((1_u32..4, 0_u32..2, 0_u64..5, prop::bool::weighted(0.1)), 1..5),
            1..6,
        ),
        name in prop::sample::select(vec!["fcfs", "easy", "conservative"]),
    ) {
        let mut world = cluster(&built_in(name), nodes);
        for parts in jobs {
            let spec = together(parts.iter().copied().map(part));
            // Requests that are plainly too large are refused.
            let reply = world.command(&user("ada"), Command::Submit { jobs: vec![spec] });
            let Ok(Reply::Submitted(jobs)) = reply else { continue };
            let job = jobs[0];
            let plan = world.plan().plan;
            let anew = Projection::of(world.state().clone()).plan(world.now, &BTreeSet::new()).plan;
            prop_assert_eq!(&plan, &anew);
            let is_apart = starts_apart(&world, job);
            let starts = pass(&mut world).0.contains(&job);
            prop_assert!(starts || !is_apart, "it would start without sharing");
            assert_exact(&world);
            if starts {
                let of_job: Vec<NodeId> = shares(&world, job).iter().map(|share| share.node).collect();
                let is_shared = of_job.iter().collect::<BTreeSet<_>>().len() < of_job.len();
                prop_assert_eq!(is_shared, !is_apart, "{:?}", of_job);
            } else {
                // It is not in the way of the next one.
                world.must(&user("ada"), Command::Cancel { jobs: JobSelection::Ids(vec![job]) });
            }
        }
    }
}
