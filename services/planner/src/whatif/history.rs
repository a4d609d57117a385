//! The part of a log that does not follow from the planner's decisions, and the outcome of each job.

use muster_domain::State;
use muster_schemas::{
    JobId, RunId, Timestamp,
    cluster::ClusterSettings,
    command::{Command, JobSelection},
    event::{Actor, Event, Record, Replay},
    job::{JobSpec, Launch, Outcome, Program},
    resources::{IndexSet, Placement},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The part of a log that is replayed, taken from its records in order.
#[derive(Debug, Default)]
pub struct History {
    /// Records before this belong to the state from which the replay begins.
    pub(super) from: Timestamp,
    /// Only jobs that were submitted before this are compared.
    to: Timestamp,
    /// The cluster when the replay begins.
    pub(super) beginning: State,
    /// Input from outside since then, in order.
    pub(super) inputs: Vec<Input>,
    /// Jobs and tasks that ran, or wait, by id; an array stands for those of its tasks that never ran.
    pub(super) jobs: BTreeMap<JobId, PastJob>,
    /// The last record's time.
    pub(super) end: Timestamp,
    /// The job of a run, and the number of the run within the job.
    runs: BTreeMap<RunId, (JobId, usize)>,
    arrays: BTreeSet<u64>,
}

/// An input from outside.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub time: Timestamp,
    pub actor: Arc<Actor>,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// It happens whatever the state is.
    Event(Event),
    /// Its result depends on the state.
    Command(Box<Command>),
}

fn command(command: Command) -> What {
    What::Command(Box::new(command))
}

/// The log's facts about a job.
#[derive(Clone, Debug, Default)]
pub(super) struct PastJob {
    pub user: Arc<str>,
    pub queue: Arc<str>,
    pub submitted: Timestamp,
    pub runs: Vec<PastRun>,
    /// A start of it was refused.
    pub was_refused: bool,
}

/// The log's facts about a run.
#[derive(Clone, Debug)]
pub(super) struct PastRun {
    pub allocated: Timestamp,
    /// When and how it ended, if it has.
    pub ended: Option<(Timestamp, Outcome)>,
    pub cores: u64,
    /// The processor time that it used, in microseconds.
    pub cpu_time_micros: u64,
}

impl PastJob {
    /// When it first had its resources.
    pub fn start(&self) -> Option<Timestamp> {
        self.runs.first().map(|run| run.allocated)
    }
}

impl History {
    /// A replay that begins at `from` (the beginning of the log if none is given) and compares jobs that were submitted
    /// before `to`.
    pub fn new(from: Option<Timestamp>, to: Option<Timestamp>) -> Self {
        Self { from: from.unwrap_or(Timestamp::MIN), to: to.unwrap_or(Timestamp::MAX), ..Self::default() }
    }

    /// The next record of the log.
    pub fn add(&mut self, record: &Record) {
        self.end = record.time;
        self.note_outcome(record);
        if record.time < self.from {
            // The ledger has accepted it.
            let _ = self.beginning.apply(record);
        } else if let Some(what) = self.input(record) {
            self.inputs.push(Input { time: record.time, actor: record.actor.clone(), what });
        }
    }

    /// Whether the outcome of a job is compared: it was submitted in time, and had not started when the replay begins.
    pub(super) fn is_compared(&self, job: &PastJob) -> bool {
        job.submitted < self.to && job.start().is_none_or(|start| start >= self.from)
    }

    /// The job, or for an unknown task its array.
    pub(super) fn job(&self, id: JobId) -> Option<&PastJob> {
        self.jobs.get(&id).or_else(|| self.jobs.get(&id.whole()))
    }

    /// The job of a run in the log, and the number of the run within the job.
    pub(super) fn run(&self, id: RunId) -> Option<(JobId, usize)> {
        self.runs.get(&id).copied()
    }

    /// Notes when jobs came, started and ended; whether events of the record's kind tell that.
    fn note_outcome(&mut self, record: &Record) -> bool {
        match &record.event {
            // Such jobs are not compared.
            Event::JobSubmitted { intake: Some(_), .. } => {}
            Event::JobSubmitted { job, owner, spec, intake: None } => {
                let queue = spec.components.first().and_then(|component| component.queue.as_deref());
                let past = PastJob {
                    user: owner.user.as_str().into(),
                    queue: queue.unwrap_or_default().into(),
                    submitted: record.time,
                    ..PastJob::default()
                };
                self.jobs.insert(*job, past);
                if spec.array.is_some() {
                    self.arrays.insert(job.number);
                }
            }
            Event::RunAllocated { job, run, placement } => self.note_run(*job, *run, placement, record.time),
            Event::RunEnded { run, outcome, usage, .. } => {
                let of_run = self.runs.get(run).and_then(|(job, number)| self.jobs.get_mut(job)?.runs.get_mut(*number));
                if let Some(past) = of_run {
                    past.ended = Some((record.time, outcome.clone()));
                    past.cpu_time_micros = usage.cpu_time_micros;
                }
            }
            Event::StartRefused { job, .. } => self.note_refused(*job),
            Event::Planned { plan } => plan.refused.iter().for_each(|job| self.note_refused(*job)),
            _ => return false,
        }
        true
    }

    fn note_run(&mut self, job: JobId, run: RunId, placement: &Placement, time: Timestamp) {
        if !self.jobs.contains_key(&job)
            && let Some(whole) = self.jobs.get(&job.whole())
        {
            // A task comes into being with its first run.
            let task = PastJob { runs: Vec::new(), ..whole.clone() };
            self.jobs.insert(job, task);
        }
        let Some(past) = self.jobs.get_mut(&job) else { return };
        self.runs.insert(run, (job, past.runs.len()));
        past.runs.push(PastRun { allocated: time, ended: None, cores: cores(placement), cpu_time_micros: 0 });
    }

    fn note_refused(&mut self, job: JobId) {
        if let Some(past) = self.jobs.get_mut(&job) {
            past.was_refused = true;
        }
    }

    /// What a record brings in from outside, if it is not a consequence.
    fn input(&self, record: &Record) -> Option<What> {
        match record.event.replay() {
            Replay::Happens => Some(What::Event(awake(&record.event))),
            Replay::Asked => self.asked(record),
            Replay::Left => None,
        }
    }

    /// What somebody asked for, so that a record came of it.
    fn asked(&self, record: &Record) -> Option<What> {
        let is_user = matches!(*record.actor, Actor::User(_));
        let event = &record.event;
        Some(match event {
            Event::JobSubmitted { job, owner, spec, intake: None } => What::Event(Event::JobSubmitted {
                job: *job,
                owner: owner.clone(),
                spec: Arc::new(without_launch(spec)),
                intake: None,
            }),
            Event::ReservationRemoved { .. } if is_user => What::Event(event.clone()),
            Event::NodeLost { node, reason } => command(Command::NodeSilent { node: *node, reason: reason.clone() }),
            Event::JobHeld { job, holds, reason } if is_user => {
                command(Command::Hold { jobs: only(*job), holds: *holds, reason: reason.clone() })
            }
            Event::JobReleased { job, holds } if is_user => {
                command(Command::Release { jobs: only(*job), holds: *holds })
            }
            Event::ComponentHeld { job, component, holds, reason } if is_user => {
                let jobs = JobSelection::Component { job: *job, component: *component };
                command(Command::Hold { jobs, holds: *holds, reason: reason.clone() })
            }
            Event::ComponentReleased { job, component, holds } if is_user => {
                let jobs = JobSelection::Component { job: *job, component: *component };
                command(Command::Release { jobs, holds: *holds })
            }
            // The part that is granted at once follows from the request.
            Event::JobModified { change, .. } if change.increase.and(change.walltime_seconds).is_some() => return None,
            Event::JobModified { job, change } if is_user => {
                command(Command::Modify { jobs: only(*job), change: change.as_ref().clone() })
            }
            Event::ClassChanged { job, component, class } if is_user => {
                let jobs = match component {
                    Some(component) => JobSelection::Component { job: *job, component: *component },
                    None => only(*job),
                };
                command(Command::ChangeClass { jobs, class: class.clone() })
            }
            Event::JobFinished { job, outcome: Outcome::Cancelled } if is_user && self.waits(*job) => {
                command(Command::Cancel { jobs: only(*job) })
            }
            Event::TasksFinished { job, indices, outcome: Outcome::Cancelled } if is_user => {
                command(Command::Cancel { jobs: JobSelection::Ids(tasks(*job, indices)) })
            }
            Event::JobRequeued { job, .. } if is_user && !self.ended_just_now(*job, record.time) => {
                command(Command::Requeue { jobs: only(*job), hold: false, delay_seconds: 0 })
            }
            _ => return None,
        })
    }

    /// Whether the job is no array and has no run that could have led to its end.
    fn waits(&self, job: JobId) -> bool {
        let is_array = job.index.is_none() && self.arrays.contains(&job.number);
        let last_run = self.jobs.get(&job).and_then(|past| past.runs.last());
        !is_array && last_run.is_none_or(|run| matches!(run.ended, Some((_, Outcome::Requeued | Outcome::NodeLost(_)))))
    }

    /// Whether the job is put back because a run of it has just ended, rather than after its end.
    fn ended_just_now(&self, job: JobId, now: Timestamp) -> bool {
        let last_run = self.jobs.get(&job).and_then(|past| past.runs.last());
        last_run.and_then(|run| run.ended.as_ref()).is_some_and(|(ended, _)| *ended == now)
    }
}

/// How many cores a placement holds.
pub(super) fn cores(placement: &Placement) -> u64 {
    placement.shares().map(|share| share.cores.len()).sum()
}

fn only(job: JobId) -> JobSelection {
    JobSelection::Ids(vec![job])
}

fn tasks(array: JobId, indices: &IndexSet) -> Vec<JobId> {
    indices.iter().map(|index| JobId::task(array.number, index)).collect()
}

/// The job without what only its processes need: scripts and environments would fill the memory.
fn without_launch(spec: &JobSpec) -> JobSpec {
    let mut spec = JobSpec { environment: BTreeMap::new(), ..spec.clone() };
    for component in &mut spec.components {
        let program = match &component.launch.program {
            Program::None => Program::None,
            Program::Script { .. } => Program::Script { text: String::new(), args: Vec::new() },
            Program::Tasks { .. } => Program::Tasks { argv: Vec::new() },
        };
        component.launch =
            Launch { program, kill_grace_seconds: component.launch.kill_grace_seconds, ..Launch::default() };
    }
    spec
}

/// An event as it happens where no node sleeps.
fn awake(event: &Event) -> Event {
    match event {
        Event::SettingsChanged { settings } if settings.energy.is_some() => {
            let settings = ClusterSettings { energy: None, ..(**settings).clone() };
            Event::SettingsChanged { settings: Arc::new(settings) }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{
        event::Concern,
        testing::{assert_handles, samples},
    };

    #[test]
    fn outcomes_are_noted_of_what_the_table_of_events_says() {
        assert_handles(Concern::Outcomes, |record| History::default().note_outcome(record));
    }

    /// The samples are what a user did, with what makes it something that was asked for.
    #[test]
    fn what_somebody_asked_for_is_asked_for_again() {
        for mut record in samples() {
            match &mut record.event {
                Event::JobSubmitted { intake, .. } => *intake = None,
                Event::JobFinished { outcome, .. } => *outcome = Outcome::Cancelled,
                _ => {}
            }
            let is_input = History::default().input(&record).is_some();
            assert_eq!(is_input, record.event.replay() != Replay::Left, "{:?}", record.event);
        }
    }
}
