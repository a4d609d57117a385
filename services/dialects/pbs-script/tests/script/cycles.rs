//! Triggers and reasons.

use super::support::{TEN, bench, site, started};
use muster_pbs_script::{
    cycles::{Begun, Cycles},
    scheduler::Hour,
    trigger::Command,
};
use proptest::prelude::*;

fn begin(cycles: &mut Cycles, now: i64) -> Option<(Command, Vec<Command>)> {
    cycles.begin(now).map(|Begun { reason, triggers, .. }| (reason, triggers))
}

/// PBS-C-01: names and numbers.
#[test]
fn commands_have_the_names_and_numbers_of_pbs() {
    let all = [
        (Command::Null, "SCH_SCHEDULE_NULL", 0),
        (Command::New, "SCH_SCHEDULE_NEW", 1),
        (Command::Term, "SCH_SCHEDULE_TERM", 2),
        (Command::Time, "SCH_SCHEDULE_TIME", 3),
        (Command::Recyc, "SCH_SCHEDULE_RECYC", 4),
        (Command::Cmd, "SCH_SCHEDULE_CMD", 5),
        (Command::Configure, "SCH_CONFIGURE", 7),
        (Command::Quit, "SCH_QUIT", 8),
        (Command::Ruleset, "SCH_RULESET", 9),
        (Command::First, "SCH_SCHEDULE_FIRST", 10),
        (Command::Error, "SCH_ERROR", -1),
    ];
    for (command, name, number) in all {
        assert_eq!((command.name(), command.number()), (name, number));
        assert_eq!(serde_json::to_string(&command).expect("JSON"), format!("\"{name}\""));
    }
}

/// PBS-C-01, PBS-C-07: no cycle without a trigger; the clock is one, from the start of the previous cycle of any
/// reason.
#[test]
fn cycles_need_a_trigger() {
    let mut cycles = Cycles::new(true, 0);
    assert_eq!(begin(&mut cycles, TEN), Some((Command::First, vec![Command::First])));
    cycles.end(0);
    assert_eq!(cycles.due(), Some(TEN + 600));
    assert_eq!(begin(&mut cycles, TEN + 599), None);
    cycles.note(Command::New);
    assert_eq!(begin(&mut cycles, TEN + 599), Some((Command::New, vec![Command::New])));
    cycles.end(0);
    assert_eq!(begin(&mut cycles, TEN + 1198), None);
    assert_eq!(begin(&mut cycles, TEN + 1199), Some((Command::Time, vec![Command::Time])));
    cycles.end(0);
    cycles.set_iteration(30);
    assert_eq!(begin(&mut cycles, TEN + 1229), Some((Command::Time, vec![Command::Time])));
    assert_eq!(cycles.seq(), 4);
    cycles.end(0);
    cycles.note(Command::Configure);
    cycles.note(Command::Quit);
    assert_eq!(begin(&mut cycles, TEN + 1230), None);
    // A clock that was set back does not stop the cluster.
    assert_eq!(begin(&mut cycles, TEN), Some((Command::Time, vec![Command::Time])));
}

/// PBS-C-02: one start, and only one, brings another cycle.
#[test]
fn exactly_one_start_brings_another_cycle() {
    let mut cycles = Cycles::new(true, 0);
    for (started, next) in [(1, Some(Command::Recyc)), (1, Some(Command::Recyc)), (2, None), (0, None)] {
        cycles.note(Command::Cmd);
        cycles.begin(TEN).expect("a cycle");
        cycles.end(started);
        assert_eq!(begin(&mut cycles.clone(), TEN).map(|(reason, _)| reason), next, "after {started}");
        if next.is_some() {
            cycles.begin(TEN).expect("the cycle after one start");
            cycles.end(0);
        }
    }
}

/// PBS-C-03: while scheduling is off nothing is remembered; setting it true is a trigger, also if it was true.
#[test]
fn scheduling_can_be_switched_off() {
    let mut cycles = Cycles::new(false, 7);
    cycles.note(Command::New);
    assert_eq!((begin(&mut cycles, TEN), cycles.due()), (None, None));
    cycles.set_scheduling(true);
    assert_eq!(begin(&mut cycles, TEN), Some((Command::Cmd, vec![Command::Cmd])));
    assert_eq!(cycles.seq(), 8);
    // A cycle in progress ends by itself, and has no successor.
    cycles.set_scheduling(false);
    cycles.end(1);
    assert_eq!((begin(&mut cycles, TEN + 6000), cycles.due()), (None, None));
    cycles.set_scheduling(true);
    cycles.set_scheduling(true);
    assert_eq!(begin(&mut cycles, TEN + 6000), Some((Command::Cmd, vec![Command::Cmd, Command::Time])));
}

/// PBS-C-06: one cycle at a time; triggers meanwhile are merged into one, whose reason is the first in the order.
#[test]
fn triggers_during_a_cycle_are_merged() {
    let mut cycles = Cycles::new(true, 0);
    cycles.begin(TEN).expect("the first cycle");
    for trigger in [Command::New, Command::Term, Command::New, Command::Time] {
        cycles.note(trigger);
    }
    assert_eq!((begin(&mut cycles, TEN), cycles.due(), cycles.is_running()), (None, None, true));
    cycles.end(1);
    let all = vec![Command::Term, Command::New, Command::Time, Command::Recyc];
    assert_eq!(begin(&mut cycles, TEN + 1), Some((Command::Term, all)));
    cycles.end(0);
    for (trigger, rest) in [
        (Command::Recyc, Command::Time),
        (Command::New, Command::Recyc),
        (Command::Cmd, Command::Term),
        (Command::First, Command::Cmd),
    ] {
        cycles.note(rest);
        cycles.note(trigger);
        let expected = if trigger == Command::Recyc { Command::Time } else { trigger };
        assert_eq!(begin(&mut cycles, TEN + 1).map(|(reason, _)| reason), Some(expected));
        cycles.end(0);
    }
}

/// PBS-C-06: a cycle that a trigger asked for and that failed is made again.
#[test]
fn no_trigger_is_lost_to_a_failure() {
    let mut bench = bench("external:/nowhere/at/all", &[]);
    let mut site = site(&["1"]);
    let report = bench.cycle(TEN, &mut site);
    assert!(report.end.is_failure(), "{report:?}");
    assert_eq!(bench.scheduler.due(), Some(TEN + 1));
    assert_eq!(bench.scheduler.step(Hour::prime(TEN), &mut site), None);
    assert_eq!(bench.cycle(TEN + 1, &mut site).begun.triggers, [Command::First]);
    assert_eq!(started(&report), Vec::<&str>::new());
}

fn trigger() -> impl Strategy<Value = Command> {
    prop::sample::select(vec![Command::New, Command::Term, Command::Cmd, Command::First, Command::Time])
}

proptest! {
    /// PBS-C-06: whatever happens when, each trigger is in exactly the next cycle.
    #[test]
    fn each_trigger_is_in_the_next_cycle(steps in prop::collection::vec((0_u8..3, trigger(), 0_usize..3), 1..60)) {
        let mut cycles = Cycles::new(true, 0);
        let (mut open, mut seq) = (vec![Command::First], 0);
        for (step, trigger, started) in steps {
            match step {
                0 => {
                    cycles.note(trigger);
                    open.push(trigger);
                }
                1 if !cycles.is_running() => match cycles.begin(TEN) {
                    Some(begun) => {
                        seq += 1;
                        prop_assert_eq!(begun.seq, seq);
                        prop_assert!(begun.triggers.contains(&begun.reason));
                        prop_assert!(open.iter().all(|trigger| begun.triggers.contains(trigger)));
                        prop_assert!(begun.triggers.iter().all(|trigger| open.contains(trigger)));
                        open.clear();
                    }
                    None => prop_assert!(open.is_empty()),
                },
                _ if cycles.is_running() => {
                    cycles.end(started);
                    if started == 1 {
                        open.push(Command::Recyc);
                    }
                }
                _ => {}
            }
        }
    }
}
