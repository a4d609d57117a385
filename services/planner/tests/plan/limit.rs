//! The limit on the time of a pass.

use crate::world::{World, component, nodes};
use muster_planner::{
    PassLimit,
    projection::{Planned, Projection},
};
use muster_schemas::{
    JobId,
    command::{Command, Reply},
    event::Actor,
    job::{JobSpec, WaitReason},
    plan::ProposedPlan,
    policy::{Policy, Turns},
    resources::{Alternative, Request},
};
use std::{cell::Cell, collections::BTreeSet};

fn of_cores(cores: u32) -> JobSpec {
    let request = Request { tasks: Some(cores), ..Request::default() };
    let way = Alternative { requests: vec![request], walltime_seconds: Some(100), ..Alternative::default() };
    JobSpec { components: vec![component(vec![way])], working_directory: "/tmp".into(), ..JobSpec::default() }
}

fn policies() -> Vec<Policy> {
    let built_in = ["fcfs", "easy", "conservative"].map(|name| Policy::built_in(name).expect("it is built in"));
    let turns = Policy { turns: Some(Box::new(Turns::default())), ..Policy::default() };
    built_in.into_iter().chain([turns]).collect()
}

fn planned(world: &World, limit: PassLimit<'_>) -> Planned {
    Projection::of(world.state().clone()).plan_within(world.state().time(), &BTreeSet::new(), limit)
}

fn commit(world: &mut World, plan: ProposedPlan) {
    let reply = world.command(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    assert_eq!(reply, Ok(Reply::Planned(Vec::new())));
}

fn reason(world: &World, job: JobId) -> Option<WaitReason> {
    world.state().job(job).and_then(|job| world.state().wait_reason(job))
}

/// OAR-G-09: a pass whose time is over publishes what it has, says which jobs it left out, and leaves those waiting. It can be
/// repeated exactly without a clock.
#[test]
fn a_pass_that_takes_too_long_publishes_what_it_has() {
    for policy in policies() {
        let name = format!("{} {}", policy.name, policy.turns.is_some());
        let mut world = World::new(nodes(1, 40));
        world.set_policy(policy);
        let jobs: Vec<JobId> = (0..40).map(|_| world.submit(of_cores(1))).collect();
        let asked = Cell::new(0);
        let has_time = || asked.replace(asked.get() + 1) < 2;
        let cut = planned(&world, PassLimit::While(&has_time));
        assert!(cut.is_cut_short, "{name}");
        let looks = cut.plan.cut_after.expect("it has come to its limit");
        assert_eq!(planned(&world, PassLimit::Looks(looks)), cut, "{name}");
        let started: Vec<JobId> = cut.plan.starts.iter().map(|start| start.job).collect();
        assert!((1..40).contains(&started.len()), "{name}: {started:?}");
        assert_eq!(started, jobs[..started.len()], "{name}");
        commit(&mut world, cut.plan);
        let left_out: Vec<JobId> =
            jobs.iter().copied().filter(|job| reason(&world, *job) == Some(WaitReason::LeftOut)).collect();
        assert_eq!(left_out, jobs[started.len()..], "{name}");
        assert!(left_out.iter().all(|job| world.state().job(*job).is_some_and(|job| job.is_waiting())), "{name}");
        // Those that a pass leaves out again are known; what one comes to is left out no longer.
        let again = planned(&world, PassLimit::Looks(looks)).plan;
        let told: Vec<&WaitReason> = again.reasons.iter().map(|waiting| &waiting.reason).collect();
        assert!(!told.contains(&&WaitReason::LeftOut), "{name}: {told:?}");
        assert_eq!(world.settle().len(), left_out.len(), "{name}");
    }
}

/// OAR-G-09: jobs that a later pass comes to have their own reasons again, and a pass without a limit leaves nobody out.
#[test]
fn jobs_are_left_out_only_as_long_as_passes_do_not_come_to_them() {
    for policy in policies() {
        let name = format!("{} {}", policy.name, policy.turns.is_some());
        let mut world = World::new(nodes(1, 4));
        world.set_policy(policy);
        let running = world.submit(of_cores(4));
        assert_eq!(world.settle(), [running]);
        let jobs: Vec<JobId> = (0..6).map(|_| world.submit(of_cores(4))).collect();
        let cut = planned(&world, PassLimit::Looks(0));
        assert_eq!(cut.plan.cut_after, Some(0), "{name}");
        commit(&mut world, cut.plan);
        let is_left_out = |world: &World, job: &JobId| reason(world, *job) == Some(WaitReason::LeftOut);
        assert!(jobs.iter().all(|job| is_left_out(&world, job)), "{name}");
        let enough = planned(&world, PassLimit::Looks(1_000));
        assert_eq!((enough.is_cut_short, enough.plan.cut_after), (false, None), "{name}");
        assert_eq!(world.settle(), [], "{name}");
        let left: Vec<&JobId> = jobs.iter().filter(|job| is_left_out(&world, job)).collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}
