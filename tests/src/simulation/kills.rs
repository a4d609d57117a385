//! Chooses what stops, and when: at random, and with filters also at calls of a phase that the seed chooses, since
//! chance alone would rarely hit an activation or a rollback.

use super::{
    Happening, SECOND, World,
    aims::{Blow, Step, Victim},
    chains::Phase,
    ledger::Crash,
    network::Party,
};
use muster_schemas::{Timestamp, filter::CallId};
use rand::Rng;

impl World {
    /// From here on aims at calls of this phase.
    pub(super) fn take_aim(&mut self, phase: Phase) {
        self.aims.insert(phase, Blow::any(&mut self.random));
    }

    /// A call has reached a step, where it stays for about this many microseconds.
    pub(super) fn call_reaches(&mut self, step: Step, call: CallId, runner: usize, micros: i64) {
        let phase = Phase::of_call(call);
        let Some(Blow::Soon(at, victim)) = self.aims.get(&phase).copied() else { return };
        if at == step {
            self.aims.remove(&phase);
            let pause = self.random.random_range(0..micros);
            self.agenda.after(pause, Happening::Strike { victim, phase, runner });
        }
    }

    /// Where the ledger crashes in the next round, and the phase at which that is aimed.
    pub(super) fn crash_of_round(&mut self) -> Option<(Crash, Option<Phase>)> {
        if !self.troubled {
            return None;
        }
        let phase = self.ledger.waiting_calls().map(Phase::of_call).max();
        if let Some((phase, Blow::Round(crash))) = phase.and_then(|phase| Some((phase, *self.aims.get(&phase)?))) {
            self.aims.remove(&phase);
            return Some((crash, Some(phase)));
        }
        Crash::perhaps(&mut self.random).map(|crash| (crash, None))
    }

    /// Hits the victim that was aimed at.
    pub(super) fn strike(&mut self, victim: Victim, phase: Phase, runner: usize) {
        if !self.troubled {
            return;
        }
        let back_after = self.random.random_range(SECOND / 20..5 * SECOND);
        match victim {
            Victim::Ledger => {
                if self.ledger.is_up() {
                    self.ledger.stop();
                    self.ledger_stopped(Some(phase), back_after);
                }
            }
            Victim::Planner => self.stop_planner(Some(phase), back_after),
            Victim::Executor => {
                let node = self.random.random_range(0..self.nodes.len());
                self.stop_executor(node, Some(phase));
                self.agenda.after(back_after, Happening::ExecutorReturns(node));
            }
            Victim::Runner => self.stop_runner(runner, back_after),
        }
        self.aim_again(phase);
    }

    /// After a hit the world gets some rest, so that chains reach a point where they can be hit again: the more there
    /// is to hit, the longer.
    fn aim_again(&mut self, phase: Phase) {
        let longest = match phase {
            Phase::Submission => 50 * SECOND,
            Phase::Activation => SECOND,
            Phase::Rollback => SECOND / 4,
        };
        let pause = self.random.random_range(SECOND / 20..longest);
        self.agenda.after(pause, Happening::TakeAim(phase));
    }

    /// The ledger has stopped.
    pub(super) fn ledger_stopped(&mut self, aimed_at: Option<Phase>, back_after: i64) {
        self.count_kill(aimed_at);
        self.agenda.after(back_after, Happening::LedgerReturns);
    }

    /// The ledger has stopped in a round.
    pub(super) fn ledger_crashed(&mut self, aimed_at: Option<Phase>, is_torn: bool) {
        self.report.torn_writes += u64::from(is_torn);
        let longest = if aimed_at.is_some() { 5 } else { 20 };
        let back_after = self.random.random_range(SECOND / 20..longest * SECOND);
        self.ledger_stopped(aimed_at, back_after);
        if let Some(phase) = aimed_at {
            self.aim_again(phase);
        }
    }

    fn stop_planner(&mut self, aimed_at: Option<Phase>, back_after: i64) {
        self.planner.stop();
        self.count_kill(aimed_at);
        self.agenda.after(back_after, Happening::PlannerReturns);
    }

    pub(super) fn stop_executor(&mut self, node: usize, aimed_at: Option<Phase>) {
        self.nodes[node].stops();
        self.drop_waiting(node);
        // A node that is gone does not ask; when it returns it asks again, under the same ids.
        self.network.open.retain(|_, (party, _)| *party != Party::Node(node));
        self.count_kill(aimed_at);
    }

    fn stop_runner(&mut self, runner: usize, back_after: i64) {
        let asked = self.network.open.values().any(|(party, _)| *party == Party::Runner(runner));
        self.report.crashes += 1;
        if asked || !self.runners[runner].is_idle() {
            self.report.kills.of_runners += 1;
        } else {
            self.report.kills.count(self.truth.chains(), None);
        }
        self.runners[runner].stops();
        self.network.open.retain(|_, (party, _)| *party != Party::Runner(runner));
        self.agenda.after(back_after, Happening::RunnerReturns(runner));
    }

    /// Counts a stop of anything but a runner.
    fn count_kill(&mut self, aimed_at: Option<Phase>) {
        self.report.crashes += 1;
        self.report.kills.count(self.truth.chains(), aimed_at);
    }

    /// Stops something, and lets it come back.
    pub(super) fn trouble(&mut self) {
        if !self.troubled {
            return;
        }
        let back_after = self.random.random_range(SECOND / 10..15 * SECOND);
        if !self.runners.is_empty() && self.random.random_range(0..2) == 0 {
            let runner = self.random.random_range(0..self.runners.len());
            let back_after = self.random.random_range(SECOND / 10..40 * SECOND);
            self.stop_runner(runner, back_after);
        }
        if self.random.random_range(0..3) == 0 {
            self.stand_still();
        }
        match self.random.random_range(0..10) {
            0..=2 => self.stop_planner(None, back_after),
            3..=6 => {
                let node = self.random.random_range(0..self.nodes.len());
                self.stop_executor(node, None);
                self.agenda.after(back_after, Happening::ExecutorReturns(node));
            }
            7 => {
                let node = self.random.random_range(0..self.nodes.len());
                self.stop_executor(node, None);
                self.nodes[node].reboots(Timestamp(self.agenda.now));
                // Some nodes stay away for longer than the ledger waits.
                self.agenda.after(back_after * 3, Happening::ExecutorReturns(node));
            }
            _ => self.network.cut_until = self.agenda.now + back_after,
        }
        let pause = self.random.random_range(SECOND..6 * SECOND);
        self.agenda.after(pause, Happening::Trouble);
    }
}
