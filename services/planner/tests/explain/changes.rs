//! Suggested changes work, and asking for them changes nothing.

use crate::world::{GIB, World, job_of, node, queue, user};
use muster_planner::projection::Projection;
use muster_schemas::{
    JobId,
    cluster::QueueSpec,
    command::Command,
    job::{ArraySpec, JobSpec},
    policy::Policy,
    resources::{Alternative, Count, Gpus, IndexSet, Level, LevelCount, Memory, Per, Request},
    views::ReasonView,
};
use proptest::prelude::*;

const POLICIES: [&str; 8] = ["fcfs", "easy", "conservative", "spt", "saf", "f1", "wfp3", "unicep"];

fn request() -> impl Strategy<Value = Request> {
    let nodes = prop_oneof![Just(None), (1..=3_u32).prop_map(Some)];
    let memory = prop_oneof![2 => Just(None), 1 => (1..=12_u64).prop_map(Some)];
    (nodes, 1..=8_u32, 1..=3_u32, memory, 0..=1_u32).prop_map(|(nodes, tasks, cpus_per_task, memory, gpus)| Request {
        path: nodes.map(|nodes| LevelCount { level: Level::Node, count: Count::exactly(nodes) }).into_iter().collect(),
        tasks: Some(tasks.max(nodes.unwrap_or(1))),
        cpus_per_task,
        memory: memory.map(|gibibytes| Memory { bytes: gibibytes * GIB, per: Per::Node }),
        gpus: (gpus > 0).then_some(Gpus { count: gpus, per: Per::Node, model: None }),
        ..Request::default()
    })
}

fn spec() -> impl Strategy<Value = JobSpec> {
    let walltime = prop_oneof![4 => (10..5000_u64).prop_map(Some), 1 => Just(None)];
    let alternative = (request(), walltime).prop_map(|(request, walltime_seconds)| Alternative {
        requests: vec![request],
        walltime_seconds,
        ..Alternative::default()
    });
    let array = prop_oneof![5 => Just(None), 1 => (2..5_u32).prop_map(Some)];
    (prop::collection::vec(alternative, 1..=2), array, 0..2_usize).prop_map(|(alternatives, array, queue)| {
        let mut spec = job_of(alternatives);
        spec.components[0].queue = Some(["default", "fast"][queue].into());
        spec.array = array.map(|tasks| ArraySpec { indices: IndexSet::first_n(tasks), max_running: Some(3) });
        spec
    })
}

fn world(policy: &str) -> World {
    let policy = Policy::built_in(policy).expect("it is built in");
    let fast =
        QueueSpec { priority: 5, max_running_jobs: Some(3), nodes: vec!["n1".into(), "n2".into()], ..queue("fast") };
    let nodes = vec![node("n1", 4, 1), node("n2", 8, 0), node("n3", 6, 1)];
    World::new(&policy, nodes, vec![queue("default"), fast])
}

/// Jobs one after the other, with plans between, until some wait.
fn lived(policy: &str, jobs: Vec<(JobSpec, u8)>) -> World {
    let mut world = world(policy);
    for (spec, seconds) in jobs {
        world.wait(i64::from(seconds));
        let owner = user_of(&spec);
        // A job that could never run is refused.
        let _ = world.command(&user(owner), Command::Submit { jobs: vec![spec] });
        world.settle();
    }
    world
}

fn user_of(spec: &JobSpec) -> &'static str {
    if spec.array.is_some() { "bob" } else { "ada" }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_suggested_change_starts_the_job(
        policy in prop::sample::select(&POLICIES[..]),
        jobs in prop::collection::vec((spec(), 0..60_u8), 4..14),
    ) {
        let world = lived(policy, jobs);
        let waiting: Vec<JobId> = world.state().jobs().filter(|job| job.is_waiting()).map(|job| job.id).collect();
        let before = world.plan();
        for id in waiting {
            if world.has_started(id) {
                continue;
            }
            let explanation = world.explain(id);
            prop_assert!(!explanation.starts_now, "the last plan started all it could");
            let told = before.plan.reasons.iter().find(|waiting| waiting.job == id);
            if let Some(told) = told {
                prop_assert_eq!(&explanation.reason, &ReasonView::from(&told.reason));
            }
            for change in explanation.changes {
                let mut changed = world.clone();
                changed.modify(id, change.change.clone()).expect("what is suggested is allowed");
                changed.step();
                prop_assert!(changed.has_started(id), "{:?} does not start job {}", change, id);
            }
        }
        prop_assert_eq!(world.plan(), before.clone(), "asking changed the engine");
        let anew = Projection::of(world.state().clone()).plan(world.now, &Default::default());
        prop_assert_eq!(anew, before);
    }

    #[test]
    fn the_same_question_gets_the_same_answer(
        policy in prop::sample::select(&POLICIES[..]),
        jobs in prop::collection::vec((spec(), 0..60_u8), 4..10),
    ) {
        let world = lived(policy, jobs);
        let mut anew = world.clone();
        anew.projection = Projection::of(world.state().clone());
        for job in world.state().jobs().filter(|job| job.is_waiting()) {
            prop_assert_eq!(world.explain(job.id), anew.explain(job.id));
        }
    }
}
