//! Dependencies between jobs.

use std::collections::BTreeMap;

/// When a job that another one requires lets it start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It must be Terminated with exit code 0 (OAR-D-02).
    #[default]
    Strict,
    /// It must have ended (OAR-D-03).
    Always,
    /// It must be in Error, or Terminated with exit code 0 (OAR-D-04).
    ErrorPasses,
}

/// How far a required job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    /// It has not ended; the end is predicted if it is planned or runs.
    Alive {
        /// When it will end.
        predicted_end: Option<i64>,
    },
    /// It is Terminated. An interactive job that ended normally has no exit code.
    Terminated {
        /// The exit code.
        exit_code: Option<i32>,
    },
    /// It is in Error.
    Error,
}

/// What a required job means for the start of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing.
    Open,
    /// It starts at this time or later.
    After(i64),
    /// It is not planned, for this reason.
    Closed(String),
}

/// What the job with this id means for one that requires it.
pub fn gate(policy: Policy, id: u64, required: Required, guard: i64) -> Gate {
    let closed = |why: &str| Gate::Closed(format!("job {id}, which must end before, {why}"));
    match (required, policy) {
        (Required::Alive { predicted_end: Some(end) }, _) => Gate::After(end.saturating_add(guard)),
        (Required::Alive { predicted_end: None }, _) => closed("has no place in the plan"),
        (Required::Terminated { exit_code }, _) if exit_code.unwrap_or(0) == 0 => Gate::Open,
        (_, Policy::Always) | (Required::Error, Policy::ErrorPasses) => Gate::Open,
        (Required::Terminated { exit_code }, _) => closed(&format!("exited with {}", exit_code.unwrap_or(0))),
        (Required::Error, Policy::Strict) => closed("is in Error"),
    }
}

/// What several required jobs mean together.
pub fn all(gates: impl IntoIterator<Item = Gate>) -> Gate {
    gates.into_iter().fold(Gate::Open, |all, one| match (all, one) {
        (Gate::Closed(why), _) | (_, Gate::Closed(why)) => Gate::Closed(why),
        (Gate::After(one), Gate::After(other)) => Gate::After(one.max(other)),
        (Gate::After(time), Gate::Open) | (Gate::Open, Gate::After(time)) => Gate::After(time),
        (Gate::Open, Gate::Open) => Gate::Open,
    })
}

/// Which job each job replaces, and the dependencies that follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    requires: BTreeMap<u64, Vec<u64>>,
}

impl Dependencies {
    /// Adds a job with the jobs that must end before.
    ///
    /// # Errors
    /// A required job that is unknown, the job itself, or a circle (OAR-D-07), as a sentence. Nothing is added then.
    pub fn add(&mut self, job: u64, requires: &[u64], is_known: &dyn Fn(u64) -> bool) -> Result<(), String> {
        for required in requires {
            if *required == job {
                return Err(format!("job {job} cannot depend on itself"));
            }
            if !is_known(*required) {
                return Err(format!("job {required} does not exist"));
            }
            if self.leads_to(*required, job) {
                return Err(format!("job {required} depends on job {job} already"));
            }
        }
        self.requires.insert(job, requires.to_vec());
        Ok(())
    }

    /// The jobs that must end before a job.
    pub fn of(&self, job: u64) -> &[u64] {
        self.requires.get(&job).map_or(&[], Vec::as_slice)
    }

    /// Lets every dependency on a job point to the one that replaces it (OAR-D-05).
    pub fn redirect(&mut self, old: u64, new: u64) {
        for required in self.requires.values_mut().flatten().filter(|required| **required == old) {
            *required = new;
        }
    }

    fn leads_to(&self, from: u64, to: u64) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        let mut left = vec![from];
        while let Some(job) = left.pop() {
            if job == to {
                return true;
            }
            if seen.insert(job) {
                left.extend(self.of(job));
            }
        }
        false
    }
}
