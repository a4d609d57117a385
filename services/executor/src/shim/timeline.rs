//! When a run is warned, ended and killed. Pure: time comes in as a reading of a monotonic clock.

use muster_schemas::node::LaunchOrder;
use std::time::Duration;

/// An action that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send this signal to all processes, so that they save their state.
    Checkpoint(u8),
    /// Warn with this signal that the end is near.
    Warn(u8),
    /// Ask all processes to end: SIGTERM.
    Terminate,
    /// End them.
    Kill,
}

/// The times of a run. Suspension pauses the walltime, but not the time after the decision to end the run.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// How long it has run before `running_since`.
    ran: Duration,
    /// `None` while it is suspended.
    running_since: Option<Duration>,
    walltime: Option<Duration>,
    /// Pending actions before the end, and how long before it.
    ahead: Vec<(Due, Duration)>,
    grace: Duration,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// It may save its state until then.
    TerminateAt(Duration),
    KillAt(Duration),
    Killed,
}

impl Timeline {
    /// The times of a run that starts now.
    pub fn new(order: &LaunchOrder, now: Duration) -> Self {
        let warning = order.launch.warning.map(|ahead| (Due::Warn(ahead.signal), ahead.seconds_before_end));
        let checkpoint = order.checkpoint.map(|ahead| (Due::Checkpoint(ahead.signal), ahead.seconds_before_end));
        let ahead = [warning, checkpoint].into_iter().flatten();
        Self {
            ran: Duration::ZERO,
            running_since: Some(now),
            walltime: order.walltime_seconds.map(Duration::from_secs),
            ahead: ahead.map(|(due, seconds)| (due, Duration::from_secs(seconds.into()))).collect(),
            grace: Duration::from_secs(order.kill_grace_seconds.into()),
            ending: Ending::No,
        }
    }

    /// Whether it has been decided that the run ends.
    pub fn is_ending(&self) -> bool {
        self.ending != Ending::No
    }

    /// Whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        self.running_since.is_none()
    }

    /// The next due action; ask until there is none.
    pub fn due(&mut self, now: Duration) -> Option<Due> {
        match self.ending {
            Ending::No => self.due_by_walltime(now),
            // A run without time to end is not asked to: the effect would be chance.
            Ending::TerminateAt(at) if now >= at && self.grace.is_zero() => {
                self.ending = Ending::Killed;
                Some(Due::Kill)
            }
            Ending::TerminateAt(at) if now >= at => {
                self.ending = Ending::KillAt(now.saturating_add(self.grace));
                Some(Due::Terminate)
            }
            Ending::KillAt(at) if now >= at => {
                self.ending = Ending::Killed;
                Some(Due::Kill)
            }
            _ => None,
        }
    }

    fn due_by_walltime(&mut self, now: Duration) -> Option<Due> {
        let left = self.left(now)?;
        if left.is_zero() {
            self.ending = Ending::KillAt(now.saturating_add(self.grace));
            return Some(Due::Terminate);
        }
        let next = self.ahead.iter().position(|(_, before)| left <= *before)?;
        Some(self.ahead.remove(next).0)
    }

    /// The time until something is due; `None` if nothing is.
    pub fn wait(&self, now: Duration) -> Option<Duration> {
        match self.ending {
            Ending::Killed => None,
            Ending::TerminateAt(at) | Ending::KillAt(at) => Some(at.saturating_sub(now)),
            Ending::No if self.is_suspended() => None,
            Ending::No => {
                let left = self.left(now)?;
                let first_ahead = self.ahead.iter().map(|(_, before)| left.saturating_sub(*before)).min();
                Some(first_ahead.unwrap_or(left).min(left))
            }
        }
    }

    /// The remaining walltime.
    fn left(&self, now: Duration) -> Option<Duration> {
        Some(self.walltime?.saturating_sub(self.has_run(now)))
    }

    fn has_run(&self, now: Duration) -> Duration {
        self.ran + self.running_since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// Pauses the walltime.
    pub fn suspend(&mut self, now: Duration) {
        self.ran = self.has_run(now);
        self.running_since = None;
    }

    /// Continues the walltime.
    pub fn resume(&mut self, now: Duration) {
        self.running_since.get_or_insert(now);
    }

    /// Sets another walltime, from the start of the run.
    pub fn set_walltime(&mut self, walltime_seconds: Option<u64>) {
        self.walltime = walltime_seconds.map(Duration::from_secs);
    }

    /// Ends the run: SIGTERM after `saving`, in which it may save its state, and SIGKILL after `grace`; without grace
    /// only SIGKILL. A run that is already ending can only end sooner.
    pub fn stop(&mut self, now: Duration, saving: Duration, grace: Duration) {
        let terminate_at = now.saturating_add(saving);
        let kill_at = terminate_at.saturating_add(grace);
        match self.ending {
            Ending::No => {
                self.ending = Ending::TerminateAt(terminate_at);
                self.grace = grace;
            }
            Ending::TerminateAt(at) => {
                self.ending = Ending::TerminateAt(at.min(terminate_at));
                self.grace = self.grace.min(grace);
            }
            Ending::KillAt(at) => self.ending = Ending::KillAt(at.min(kill_at)),
            Ending::Killed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::job::{Checkpoint, WarningSignal};

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn timeline(walltime_seconds: Option<u64>) -> Timeline {
        let mut order = crate::testing::order(1);
        order.walltime_seconds = walltime_seconds;
        order.kill_grace_seconds = 10;
        order.launch.warning = Some(WarningSignal { signal: 10, seconds_before_end: 20 });
        order.checkpoint = Some(Checkpoint { signal: 12, seconds_before_end: 50 });
        Timeline::new(&order, at(1000))
    }

    /// OAR-S-23, OAR-S-33: the signal comes once, and the end at the walltime.
    #[test]
    fn warns_terminates_and_kills_in_order() {
        let mut timeline = timeline(Some(100));
        let mut seen = vec![];
        let mut now = at(1000);
        while let Some(wait) = timeline.wait(now) {
            now += wait;
            while let Some(due) = timeline.due(now) {
                seen.push((now.as_secs() - 1000, due));
            }
        }
        assert_eq!(seen, [(50, Due::Checkpoint(12)), (80, Due::Warn(10)), (100, Due::Terminate), (110, Due::Kill)]);
    }

    /// OAR-S-33: a signal that is to come earlier than the start comes at the start, once.
    #[test]
    fn a_signal_comes_at_the_start_at_the_earliest() {
        let mut timeline = timeline(Some(40));
        assert_eq!(timeline.wait(at(1000)), Some(at(0)));
        assert_eq!(timeline.due(at(1000)), Some(Due::Checkpoint(12)));
        assert_eq!((timeline.due(at(1000)), timeline.wait(at(1000))), (None, Some(at(20))));
    }

    #[test]
    fn without_walltime_nothing_is_ever_due() {
        let mut timeline = timeline(None);
        assert_eq!(timeline.wait(at(1_000_000)), None);
        assert_eq!(timeline.due(at(1_000_000)), None);
    }

    /// Suspended time does not use up the walltime (OAR-S-06).
    #[test]
    fn suspension_holds_the_walltime() {
        let mut timeline = timeline(Some(100));
        timeline.suspend(at(1040));
        assert_eq!(timeline.wait(at(5000)), None);
        assert_eq!(timeline.due(at(5000)), None);
        timeline.suspend(at(5000));
        timeline.resume(at(6000));
        timeline.resume(at(6001));
        assert_eq!(timeline.wait(at(6000)), Some(at(10)));
        assert_eq!(timeline.due(at(6010)), Some(Due::Checkpoint(12)));
    }

    /// OAR-S-06, W8: suspended for 210 s of a walltime of 1000 s, a job is asked to save its state at 1110 and ends at 1210.
    #[test]
    fn the_worked_example_of_a_suspension() {
        let mut order = crate::testing::order(300);
        order.walltime_seconds = Some(1000);
        order.checkpoint = Some(Checkpoint { signal: 12, seconds_before_end: 100 });
        let mut timeline = Timeline::new(&order, at(0));
        timeline.suspend(at(400));
        // It is to continue at 500, and does at 610.
        timeline.resume(at(610));
        assert_eq!(timeline.wait(at(610)), Some(at(500)));
        assert_eq!((timeline.due(at(1109)), timeline.due(at(1110))), (None, Some(Due::Checkpoint(12))));
        assert_eq!((timeline.due(at(1209)), timeline.due(at(1210))), (None, Some(Due::Terminate)));
    }

    #[test]
    fn a_longer_walltime_counts_from_the_start() {
        let mut timeline = timeline(Some(100));
        assert_eq!(timeline.due(at(1050)), Some(Due::Checkpoint(12)));
        timeline.set_walltime(Some(1000));
        assert_eq!(timeline.wait(at(1050)), Some(at(930)));
        timeline.set_walltime(Some(10));
        assert_eq!(timeline.due(at(1050)), Some(Due::Terminate));
    }

    #[test]
    fn a_stop_without_grace_kills_and_asks_nobody() {
        let mut timeline = timeline(None);
        timeline.stop(at(1000), at(5), at(0));
        assert_eq!(timeline.due(at(1004)), None);
        assert_eq!(timeline.due(at(1005)), Some(Due::Kill));
        assert_eq!((timeline.due(at(1005)), timeline.wait(at(1005))), (None, None));
    }

    /// OAR-T-23: the end comes after the time to save.
    #[test]
    fn a_stop_gives_time_to_save_and_a_second_one_only_shortens() {
        let mut timeline = timeline(None);
        timeline.stop(at(1000), at(30), at(10));
        assert!(timeline.is_ending());
        assert_eq!(timeline.due(at(1029)), None);
        timeline.stop(at(1005), at(0), at(60));
        assert_eq!(timeline.due(at(1005)), Some(Due::Terminate));
        timeline.stop(at(1006), at(0), at(100));
        assert_eq!(timeline.wait(at(1006)), Some(at(9)));
        timeline.stop(at(1006), at(0), at(2));
        assert_eq!(timeline.due(at(1008)), Some(Due::Kill));
        assert_eq!(timeline.wait(at(1008)), None);
    }
}
