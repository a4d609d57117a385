//! The tables of verdicts, with the ledger's own rules.

use crate::{
    driver::{ABOVE_NORMAL, BELOW_NORMAL, balanced, queued},
    world::{Answer, Wanted, World, cores},
};
use muster_schemas::{
    JobId,
    filter::FilterExit,
    job::{Outcome, WaitReason},
    scheduling::{Preemption, SchedulingSettings},
};

struct Scene {
    world: World,
    one: JobId,
    two: JobId,
    three: JobId,
    four: JobId,
}

/// four dual-core nodes; J1 with its filter, J2, J3; J4 arrives in second 5. Runs up to that second.
fn scene(settings: SchedulingSettings, answer: Answer) -> Scene {
    let none = Some(Preemption::None);
    let settings =
        SchedulingSettings { preemption: none, balanced_preemption: none, backfill_look_ahead: Some(0), ..settings };
    let mut world = World::new(4, settings);
    let one = world.submit_filtered(&cores(2, 4), vec![answer]);
    let two = world.submit(&cores(2, 2));
    let three = world.submit(&Wanted { priority: BELOW_NORMAL, ..cores(2, 2) });
    world.to(4);
    let four = world.submit_at(5, &Wanted { priority: ABOVE_NORMAL, ..cores(2, 2) });
    world.to(5);
    Scene { world, one, two, three, four }
}

fn code(code: u8) -> Answer {
    (1, FilterExit::Code(code))
}

impl Scene {
    fn runs(&self) -> [bool; 4] {
        [self.one, self.two, self.three, self.four].map(|job| self.world.is_running(job))
    }

    fn lacks_resources(&self, job: JobId) -> bool {
        matches!(self.world.reason(job), Some(WaitReason::Resources(_)))
    }

    fn waits_for_its_filter(&self) -> bool {
        matches!(self.world.reason(self.one), Some(WaitReason::ActivationFilter(_)))
    }

    fn counts(&self) -> Vec<u64> {
        self.world.asked.iter().map(|(.., parameters)| parameters.count).collect()
    }
}

/// X-5, verdict 0.
#[test]
fn a_job_that_passes_starts_on_what_it_was_offered() {
    let mut scene = scene(queued(), code(0));
    let (_, _, told) = &scene.world.asked[0];
    assert_eq!((told.count, told.index, told.backfill, told.current), (4, 1, false, 0));
    assert_eq!((told.planner_epoch, told.backfill_enabled), (1, false));
    assert_eq!(scene.runs(), [true, true, true, false]);
    assert_eq!(scene.world.size(scene.one), 4);
    assert!(scene.lacks_resources(scene.four));
    scene.world.to(302);
    assert!(scene.world.is_running(scene.four));
}

/// X-5, verdict 1; HPC-F-31, HPC-F-34.
#[test]
fn a_job_that_blocks_keeps_its_priority_and_below_from_starting() {
    let mut scene = scene(queued(), code(1));
    assert_eq!(scene.runs(), [false, false, false, true]);
    assert!(scene.waits_for_its_filter());
    for job in [scene.two, scene.three] {
        assert_eq!(scene.world.reason(job), Some(WaitReason::BlockedByJob(scene.one)));
    }
    scene.world.to(35);
    assert_eq!(scene.world.asked_at(scene.one), [0, 11, 22, 33]);
    assert_eq!(scene.counts(), [4; 4]);
}

/// X-5, verdict 2; HPC-F-35, HPC-F-36.
#[test]
fn a_job_that_reserves_keeps_what_it_was_offered() {
    let mut scene = scene(queued(), code(2));
    assert_eq!(scene.runs(), [false, true, true, false]);
    assert_eq!(scene.world.kept(scene.one), 4);
    assert!(scene.waits_for_its_filter() && scene.lacks_resources(scene.four));
    scene.world.to(12);
    assert_eq!(scene.world.asked_at(scene.one), [0, 11]);
}

/// X-5, verdict 2 in balanced mode.
#[test]
fn in_balanced_mode_the_least_is_reserved() {
    let scene = scene(balanced(), code(2));
    assert_eq!(scene.runs(), [false, true, true, true]);
    assert_eq!((scene.world.kept(scene.one), scene.counts()), (2, vec![2]));
}

/// X-5, verdict 3; HPC-H-03, HPC-H-05.
#[test]
fn a_job_that_is_held_is_asked_again_when_the_hold_is_over() {
    let mut scene = scene(queued(), code(3));
    assert_eq!(scene.runs(), [false, true, true, true]);
    assert!(matches!(scene.world.reason(scene.one), Some(WaitReason::HeldUntil { .. })));
    scene.world.to(900);
    assert_eq!(scene.world.asked_at(scene.one), [0]);
    scene.world.to(901);
    assert_eq!((scene.world.asked_at(scene.one), scene.counts()), (vec![0, 901], vec![4, 4]));
}

/// X-5, verdict 4.
#[test]
fn a_job_that_fails_gives_back_what_it_was_offered() {
    let scene = scene(queued(), code(4));
    assert_eq!(scene.runs(), [false, true, true, true]);
    let finished = scene.world.state().job(scene.one).and_then(|job| job.finished());
    let Some(Outcome::Refused(text)) = finished.map(|finished| &finished.outcome) else { panic!("{finished:?}") };
    assert!(text.starts_with("[FailedByActivationFilter]"), "{text}");
}

/// X-5, verdict 5.
#[test]
fn an_undefined_code_reserves_with_a_warning() {
    let scene = scene(queued(), code(5));
    assert_eq!(scene.runs(), [false, true, true, false]);
    assert_eq!(
        (scene.world.kept(scene.one), scene.world.warnings(scene.one)),
        (4, vec!["UndefinedFilterExitCode".into()])
    );
}

/// X-5, timed out.
#[test]
fn a_filter_that_takes_too_long_reserves_with_a_warning() {
    let mut scene = scene(queued(), (15, FilterExit::TimedOut));
    assert_eq!(scene.runs(), [false, false, false, true]);
    scene.world.to(15);
    assert_eq!(scene.runs(), [false, true, false, true]);
    assert_eq!(
        (scene.world.kept(scene.one), scene.world.warnings(scene.one)),
        (4, vec!["ActivationFilterTimedOut".into()])
    );
    scene.world.to(26);
    assert_eq!(scene.world.asked_at(scene.one), [0, 25]);
}

/// X-5, not found.
#[test]
fn a_filter_that_is_not_there_reserves_with_a_warning() {
    let mut scene = scene(queued(), (0, FilterExit::NotFound("/filters/license".into())));
    assert_eq!(scene.runs(), [false, true, true, false]);
    assert_eq!(scene.world.kept(scene.one), 4);
    assert!(scene.world.warnings(scene.one).contains(&"ActivationFilterNotFound".into()));
    scene.world.to(11);
    assert_eq!(scene.world.asked_at(scene.one), [0, 10]);
}

/// HPC-B-13, HPC-B-15, HPC-F-37: a job's filter is told that the start is backfill, and the job does not start if the
/// answer comes too late for it to be over in time.
#[test]
fn a_start_around_another_job_waits_for_its_verdict_only_so_long() {
    for (seconds, starts) in [(10, true), (11, false)] {
        let settings = SchedulingSettings { preemption: Some(Preemption::None), ..queued() };
        let mut world = World::new(2, settings);
        world.submit(&Wanted { minutes: 6, ..cores(2, 2) });
        world.to(50);
        let first = world.submit(&cores(4, 4));
        let around = world.submit_filtered(&cores(1, 2), vec![(seconds, FilterExit::Code(0))]);
        world.to(50);
        let (second, job, told) = world.asked[0];
        assert_eq!((second, job, told.backfill, told.count, told.index), (50, around, true, 2, 2));
        world.to(61);
        assert_eq!((world.is_running(around), world.is_running(first)), (starts, false));
        world.to(360);
        assert!(world.is_running(first), "it starts when it was foreseen to");
    }
}

/// HPC-F-37: a refused backfill blocks and reserves nothing; the next job may try.
#[test]
fn a_no_to_a_start_around_another_job_only_means_not_now() {
    for code in [1, 2, 9] {
        let mut world = World::new(2, SchedulingSettings { preemption: Some(Preemption::None), ..queued() });
        world.submit(&Wanted { minutes: 6, ..cores(2, 2) });
        world.to(0);
        world.submit(&cores(4, 4));
        let one = world.submit_filtered(&cores(2, 2), vec![(1, FilterExit::Code(code))]);
        let two = world.submit(&cores(2, 2));
        world.to(1);
        assert_eq!((world.is_running(one), world.is_running(two), world.kept(one)), (false, true, 0), "code {code}");
        assert_eq!(world.state().queue_block(), None);
    }
}

/// two dual-core nodes; J1 runs on two cores with waiting tasks, and two come free while J2 waits for them. Runs
/// up to the verdict in second 61.
fn growing(exit: FilterExit) -> (World, JobId, JobId) {
    let mut world = World::new(2, queued());
    let blocker = world.submit(&Wanted { minutes: 1, ..cores(2, 2) });
    world.to(0);
    let answers = vec![(0, FilterExit::Code(0)), (1, exit)];
    let one = world.submit_filtered(&Wanted { tasks: 100, minutes: 60, ..cores(2, 4) }, answers);
    let two = world.submit(&cores(2, 2));
    world.to(59);
    assert_eq!((world.size(one), world.is_running(two), world.is_running(blocker)), (2, false, true));
    world.to(60);
    let (second, job, told) = world.asked.last().copied().expect("growth is offered");
    assert_eq!((second, job, told.count, told.current, told.index), (60, one, 2, 2, 0));
    assert!(world.chain(one).is_some() && !world.is_running(two));
    world.to(61);
    (world, one, two)
}

/// X-6, verdict 0 (HPC-S-11).
#[test]
fn a_job_grows_if_its_filters_pass() {
    let (world, one, two) = growing(FilterExit::Code(0));
    assert_eq!((world.size(one), world.is_running(two)), (4, false));
}

/// X-6, all other results; HPC-F-33.
#[test]
fn a_job_that_may_not_grow_goes_on_and_others_start() {
    let rows = [
        (FilterExit::Code(1), None),
        (FilterExit::Code(2), Some("UndefinedFilterExitCode")),
        (FilterExit::Code(3), Some("UndefinedFilterExitCode")),
        (FilterExit::Code(4), Some("UndefinedFilterExitCode")),
        (FilterExit::Code(5), Some("UndefinedFilterExitCode")),
        (FilterExit::TimedOut, Some("ActivationFilterTimedOut")),
        (FilterExit::NotFound("/filters/license".into()), Some("ActivationFilterNotFound")),
    ];
    for (exit, warning) in rows {
        let (mut world, one, two) = growing(exit.clone());
        assert_eq!((world.size(one), world.is_running(one), world.is_running(two)), (2, true, true), "{exit}");
        assert_eq!(world.warnings(one).first().map(String::as_str), warning, "{exit}");
        world.to(70);
        assert_eq!(world.asked.len(), 2, "{exit}: asked again before 10 s are over");
    }
}
