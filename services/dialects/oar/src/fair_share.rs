//! Fair share: the karma of users and projects (OAR-Q-12).

/// How much each part counts (`SCHEDULER_FAIRSHARING_*`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// The share of the project in the use.
    pub project: f64,
    /// The share of the user in the use.
    pub user: f64,
    /// The share of the user in what is asked for.
    pub asked: f64,
}

impl Default for Coefficients {
    fn default() -> Self {
        Self { project: 0.0, user: 2.0, asked: 1.0 }
    }
}

/// The sums of a queue's windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// What all jobs used.
    pub used: u64,
    /// What all jobs asked for.
    pub asked: u64,
    /// What the project's jobs used.
    pub used_by_project: u64,
    /// What the user's jobs used.
    pub used_by_user: u64,
    /// What the user's jobs asked for.
    pub asked_by_user: u64,
}

/// The shares that a user and a project should have, in percent; 0 if unset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Targets {
    /// The project's.
    pub project: f64,
    /// The user's.
    pub user: f64,
}

/// The karma: how far user and project are above their targets. Lower karma goes first. Empty sums count as 1.
pub fn karma(sums: Sums, targets: Targets, coefficients: Coefficients) -> f64 {
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let above = |share: f64, target: f64| share - target / 100.0;
    coefficients.project * above(share(sums.used_by_project, sums.used), targets.project)
        + coefficients.user * above(share(sums.used_by_user, sums.used), targets.user)
        + coefficients.asked * above(share(sums.asked_by_user, sums.asked), targets.user)
}

/// A karma as people see it.
pub fn shown(karma: f64) -> String {
    // A tiny negative number is no karma of its own.
    let rounded = format!("{karma:.3}");
    if rounded == "-0.000" { "0.000".to_owned() } else { rounded }
}
