//! Shells in running jobs: `oarsub -C`.

use super::state::State;

/// The exit status of a refusal.
const REFUSED: u8 = 20;
/// The exit status for a job without command.
const NOOP: u8 = 17;

/// A job that a caller may connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub job: u64,
    /// Its state.
    pub state: State,
    /// Whether the caller owns it or is an administrator.
    pub has_right: bool,
    /// Whether the caller owns it.
    pub is_own: bool,
    /// Whether it has no command.
    pub is_noop: bool,
}

/// The job that a shell is opened in (OAR-J-12): the one that is named, else the caller's only running one.
///
/// # Errors
/// The exit status, and why.
pub fn choose(named: Option<u64>, jobs: &[Candidate]) -> Result<u64, (u8, String)> {
    let Some(id) = named else {
        let mut running = jobs.iter().filter(|job| job.is_own && job.state == State::Running && !job.is_noop);
        return match (running.next(), running.next()) {
            (Some(job), None) => Ok(job.job),
            (None, _) => Err((REFUSED, "no job of yours runs".to_owned())),
            (Some(_), Some(_)) => Err((REFUSED, "several jobs of yours run: name one".to_owned())),
        };
    };
    let Some(job) = jobs.iter().find(|job| job.job == id) else {
        return Err((REFUSED, format!("job {id} does not exist")));
    };
    if !job.has_right {
        return Err((REFUSED, format!("job {id} belongs to somebody else")));
    }
    if job.is_noop {
        return Err((NOOP, format!("job {id} has the type noop: it has no shell")));
    }
    if job.state != State::Running {
        return Err((REFUSED, format!("job {id} is {}, not Running", job.state)));
    }
    Ok(id)
}
