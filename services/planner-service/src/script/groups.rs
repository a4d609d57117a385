//! Groups by the names that this host has for them.

use muster_pbs_plan::state_file::JobState;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// How long a name counts: looking one up can take seconds.
const KEPT: Duration = Duration::from_secs(60);

/// Names of groups that were looked up.
#[derive(Debug, Default)]
pub(super) struct Groups {
    names: BTreeMap<u32, String>,
    since: Option<Instant>,
}

impl Groups {
    /// Gives the groups of jobs their names in place of their numbers. A group without a name keeps its number.
    pub fn name(&mut self, jobs: &mut [JobState], now: Instant) {
        self.name_with(jobs, now, muster_names::group_name);
    }

    fn name_with(&mut self, jobs: &mut [JobState], now: Instant, look_up: impl Fn(u32) -> Option<String>) {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= KEPT) {
            (self.since, self.names) = (Some(now), BTreeMap::new());
        }
        for group in jobs.iter_mut().filter_map(|job| job.group.as_mut()) {
            let Ok(number) = group.parse::<u32>() else { continue };
            let name =
                self.names.entry(number).or_insert_with(|| look_up(number).unwrap_or_else(|| number.to_string()));
            group.clone_from(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// PBS-X-09: programs see the names of groups, which are looked up once a minute.
    #[test]
    fn groups_have_names_that_are_looked_up_once_a_minute() {
        let asked = Cell::new(0);
        let look_up = |number| {
            asked.set(asked.get() + 1);
            (number == 100).then(|| "users".to_owned())
        };
        let job = |group: &str| JobState { group: Some(group.into()), ..JobState::default() };
        let (mut groups, start) = (Groups::default(), Instant::now());
        for (seconds, times) in [(0, 2), (59, 2), (60, 4)] {
            let mut jobs = [job("100"), job("7"), job("100"), JobState::default()];
            groups.name_with(&mut jobs, start + Duration::from_secs(seconds), look_up);
            let names = jobs.map(|job| job.group.unwrap_or_default());
            assert_eq!(names, ["users", "7", "users", ""]);
            assert_eq!(asked.get(), times, "after {seconds} s");
        }
    }
}
