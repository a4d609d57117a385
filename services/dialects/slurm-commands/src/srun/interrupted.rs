//! How signals affect a step (SL-R-26), and what the end of its first task does (`--wait`).

use muster_cli::{interrupts::Interrupts, stderr_line, terminal};
use muster_client::{Client, ClientError, StepAddress};
use muster_schemas::{
    CommandId,
    resources::IndexSet,
    views::{StepEndRequest, StepSignalRequest},
};
use muster_slurm::{options::values::number, request::Settings, steps::StepPlan};
use nix::sys::signal::Signal;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Two interrupts within this time end the step.
const TWICE: Duration = Duration::from_secs(1);

/// What a single interrupt does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Single {
    /// It prints the state of the tasks.
    Reports,
    /// The tasks get it (`--disable-status`).
    IsPassedOn,
    /// It ends the step (`--quit-on-interrupt`).
    Ends,
}

impl Single {
    /// The count of interrupts with one more, after this many. A second one counts only if the one before is recent; who asks
    /// again later has done the same as with a first.
    const fn counted(self, before: u32, is_recent: bool) -> u32 {
        match before {
            0 if matches!(self, Self::Ends) => 2,
            0 => 1,
            1 if !is_recent => 1,
            more => more.saturating_add(1),
        }
    }
}

/// The current tasks of a step.
#[derive(Clone)]
pub struct Tasks {
    /// `JOB.STEP`.
    name: String,
    address: StepAddress,
    total: u32,
    /// How long after the first end of a task the others are ended.
    wait: Option<Duration>,
    now: Arc<Mutex<Now>>,
}

#[derive(Default)]
struct Now {
    ended: IndexSet,
    interrupted: Option<Instant>,
    interrupts: u32,
    client: Option<Client>,
}

impl Tasks {
    /// The tasks of a step that has just been launched.
    pub fn of(plan: &StepPlan, name: String, address: StepAddress) -> Self {
        let seconds = plan.leader().value("wait", number).filter(|seconds| *seconds > 0);
        Self {
            name,
            address,
            total: u32::try_from(plan.world.tasks.len()).unwrap_or(u32::MAX),
            wait: seconds.map(|seconds| Duration::from_secs(seconds.into())),
            now: Arc::default(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Directs signals to the tasks from now on.
    pub fn obey(&self, client: &Client, interrupts: &Interrupts, leader: &Settings) {
        self.now().client = Some(client.another());
        let single = match () {
            () if leader.is_set("quit-on-interrupt") => Single::Ends,
            () if leader.is_set("disable-status") => Single::IsPassedOn,
            () => Single::Reports,
        };
        let tasks = self.clone();
        interrupts.handle(move |signal| {
            let done = match signal {
                Signal::SIGINT => tasks.interrupt(single),
                Signal::SIGWINCH => tasks.resize(),
                other => tasks.pass_on(other),
            };
            if let Err(error) = done {
                stderr_line!("srun: error: {error}");
            }
        });
    }

    /// Notes the end of a task.
    pub fn has_ended(&self, rank: u32) {
        let is_first = {
            let mut now = self.now();
            let is_first = now.ended.is_empty();
            now.ended.insert(rank);
            is_first
        };
        if let Some(wait) = self.wait.filter(|_| is_first && self.total > 1) {
            let tasks = self.clone();
            thread::spawn(move || {
                thread::sleep(wait);
                tasks.end_late_ones(wait);
            });
        }
    }

    fn end_late_ones(&self, waited: Duration) {
        if self.now().ended.len() == u64::from(self.total) {
            return;
        }
        stderr_line!("srun: First task exited {}s ago", waited.as_secs());
        self.report();
        stderr_line!("srun: Terminating StepId={}", self.name);
        if let Err(error) = self.end(false) {
            stderr_line!("srun: error: {error}");
        }
    }

    /// A single interrupt does what the options say, by default it prints the state of the tasks. The next within a second
    /// interrupts and ends them, any further one ends them at once.
    fn interrupt(&self, single: Single) -> Result<(), ClientError> {
        let count = {
            let mut now = self.now();
            let recent = now.interrupted.is_some_and(|before| before.elapsed() <= TWICE);
            now.interrupted = Some(Instant::now());
            now.interrupts = single.counted(now.interrupts, recent);
            now.interrupts
        };
        match count {
            1 if single == Single::IsPassedOn => {
                stderr_line!("srun: sending Ctrl-C to StepId={}", self.name);
                self.pass_on(Signal::SIGINT)
            }
            1 => {
                stderr_line!("srun: interrupt (one more within 1 sec to abort)");
                self.report();
                Ok(())
            }
            2 => {
                stderr_line!("srun: sending Ctrl-C to StepId={}", self.name);
                self.pass_on(Signal::SIGINT)?;
                self.end(false)
            }
            _ => {
                stderr_line!("srun: forcing job termination");
                self.end(true)
            }
        }
    }

    fn report(&self) {
        let ended = self.now().ended.clone();
        let running = IndexSet::first_n(self.total).difference(&ended);
        for (ranks, state) in [(running, "running"), (ended, "exited")] {
            if !ranks.is_empty() {
                let tasks = if ranks.len() == 1 { "task" } else { "tasks" };
                stderr_line!("srun: StepId={} {tasks} {ranks}: {state}", self.name);
            }
        }
    }

    fn with_client(&self, act: impl FnOnce(&mut Client) -> Result<(), ClientError>) -> Result<(), ClientError> {
        let client = self.now().client.as_ref().map(Client::another);
        // There is a client as soon as there are signals.
        client.map_or(Ok(()), |mut client| match act(&mut client) {
            // The step has just ended.
            Err(error) if error.is_refusal() && !error.is_unavailable() => Ok(()),
            done => done,
        })
    }

    fn pass_on(&self, signal: Signal) -> Result<(), ClientError> {
        let request = StepSignalRequest { signal: signal as u8, component: None };
        let StepAddress { job, step, .. } = self.address;
        self.with_client(|client| client.signal_step(CommandId::new_now(), job, step, &request).map(drop))
    }

    fn end(&self, is_forced: bool) -> Result<(), ClientError> {
        let request = StepEndRequest { component: None, is_forced };
        let StepAddress { job, step, .. } = self.address;
        self.with_client(|client| client.end_step(CommandId::new_now(), job, step, &request).map(drop))
    }

    fn resize(&self) -> Result<(), ClientError> {
        let Some(size) = terminal::size() else { return Ok(()) };
        self.with_client(|client| client.resize_terminal(self.address, size))
    }
}

#[cfg(test)]
mod tests {
    use super::Single;

    /// SL-R-26: with `-X` every single interrupt goes to the tasks, however many there have been.
    #[test]
    fn interrupts_that_are_not_close_together_are_single_ones() {
        for single in [Single::Reports, Single::IsPassedOn] {
            assert_eq!(single.counted(0, false), 1);
            assert_eq!(single.counted(1, false), 1, "a second one, later");
            assert_eq!(single.counted(1, true), 2);
            assert_eq!(single.counted(2, false), 3, "the step is being ended");
        }
        assert_eq!(Single::Ends.counted(0, false), 2);
        assert_eq!(Single::Ends.counted(u32::MAX, true), u32::MAX);
    }
}
