//! Random histories with filters that answer at random: no proposal of the planner is refused, the ledger's invariants
//! hold after every command (the world checks them), and the log gives the same decisions again.

use crate::{
    driver::{balanced, queued},
    world::{Wanted, World, cores},
};
use muster_schemas::{
    JobId,
    command::{Command, JobSelection},
    filter::{ActivationOrdering, FilterExit},
    scheduling::{Preemption, SchedulingSettings},
};
use proptest::{prelude::*, sample::select};

#[derive(Clone, Debug)]
struct Arrival {
    second: i64,
    wanted: Wanted,
    /// The answers of its filter, if it has one.
    answers: Option<Vec<(i64, u8)>>,
}

prop_compose! {
    fn arrivals()(
        second in 0_i64..300,
        min in 1_u32..4,
        more in 0_u32..5,
        minutes in 1_i64..6,
        priority in select(vec![1000_i64, 2000, 2000, 3000]),
        tasks in select(vec![0_u32, 0, 6, 30]),
        answers in prop::option::weighted(0.6, prop::collection::vec((0_i64..16, select(vec![0_u8, 0, 0, 1, 2, 3, 4, 9])), 1..4)),
    ) -> Arrival {
        Arrival { second, wanted: Wanted { min, max: min + more, minutes, priority, tasks }, answers }
    }
}

fn modes() -> impl Strategy<Value = SchedulingSettings> {
    let preemption = || select(vec![Preemption::None, Preemption::Graceful, Preemption::Immediate]);
    let mode = select(vec![queued(), balanced(), SchedulingSettings::default()]);
    (mode, preemption(), any::<bool>(), any::<bool>()).prop_map(|(settings, preemption, by_task, by_growth)| {
        SchedulingSettings {
            preemption: Some(preemption),
            balanced_preemption: Some(preemption),
            task_preemption: Some(by_task),
            growth_by_preemption: Some(by_growth),
            ..settings
        }
    })
}

/// HPC-F-90: a growth that is refused because its job was cancelled is recorded as such, and not as a start.
#[test]
fn a_refused_growth_is_planned_again_by_the_replay() {
    let mut world = World::new(3, SchedulingSettings { growth: Some(false), ..queued() });
    world.submit(&Wanted { minutes: 1, ..cores(4, 4) });
    let low = world.submit(&Wanted { tasks: 24, ..cores(1, 6) });
    world.to(70);
    assert_eq!(world.size(low), 2, "it may not grow");
    world.set(queued());
    let refused = world.plan_while(Command::Cancel { jobs: JobSelection::Ids(vec![low]) });
    assert_eq!(refused.iter().map(|refused| refused.job).collect::<Vec<_>>(), [low]);
    world.to(600);
    let again = world.verdict();
    assert!(again.decisions > 0 && again.out_of_reach == 0, "{again:?}");
    assert_eq!(again.differences, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// HPC-F-31, HPC-F-35, HPC-F-82, HPC-F-84, HPC-S-12: the planner's proposals are never refused, so it starts no job
    /// that is blocked, held back, or being asked, and takes nothing that is kept for others.
    #[test]
    fn what_is_proposed_is_never_refused(
        settings in modes(),
        ordering in select(vec![ActivationOrdering::Strict, ActivationOrdering::Relaxed]),
        mut arrivals in prop::collection::vec(arrivals(), 1..14),
    ) {
        arrivals.sort_by_key(|arrival| arrival.second);
        let mut world = World::new(3, settings);
        world.set_ordering(ordering);
        let mut jobs: Vec<JobId> = Vec::new();
        for Arrival { second, wanted, answers } in arrivals {
            world.to(second);
            jobs.push(match answers {
                None => world.submit(&wanted),
                Some(answers) => {
                    let answers = answers.into_iter().map(|(seconds, code)| (seconds, FilterExit::Code(code)));
                    world.submit_filtered(&wanted, answers.collect())
                }
            });
        }
        world.to(1200);
        for job in jobs {
            let known = world.state().job(job).expect("nothing is forgotten so soon");
            let waits = known.is_waiting().then(|| world.reason(job));
            prop_assert!(waits != Some(None), "job {job} waits without a reason");
        }
        let again = world.verdict();
        prop_assert!(again.decisions > 0 && again.out_of_reach == 0, "{again:?}");
        prop_assert_eq!(again.differences, []);
    }
}
