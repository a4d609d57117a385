//! The fold: what the records say about usage.

use crate::{
    charges::{Charge, Charges, Payer, SharedCharges, changed, charges_of},
    windows::Windows,
};
use muster_schemas::{
    CommandId, JobId, RunId, Sequence, Timestamp,
    event::{Event, JobChange, NodeExit, Record},
    job::{JobSpec, Outcome, Usage},
    resources::{ComponentPlacement, Placement},
    usage::{UsageAmounts, UsageAnswer, UsageDimension, UsageQuery, UsageRow},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Usage in windows, as after some record of the log.
///
/// A run counts from the record of its last node's start to the record of its end, including suspensions: others can
/// use its cores then, but nothing else that it holds. If the node that ended last measured more, as it does for short
/// runs whose start and end are reported together, that counts, as far as the run had its resources that long. A run
/// that never started counts no time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Books {
    windows: Windows,
    sequence: Sequence,
    /// Distinguishes the last counted record from others that have or had its sequence.
    last: Option<(Timestamp, CommandId)>,
    amounts: BTreeMap<(Timestamp, Payer), UsageAmounts>,
    /// Jobs and arrays that are not over, and tasks that were changed singly.
    jobs: BTreeMap<JobId, Charges>,
    runs: BTreeMap<RunId, OpenRun>,
    #[serde(skip)]
    shared: SharedCharges,
}

/// A run that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenRun {
    job: JobId,
    parts: Vec<OpenPart>,
    allocated: Timestamp,
    started: Option<Timestamp>,
}

impl OpenRun {
    /// Moves the start if the node that ended last, at `end`, measured a longer time than the records tell.
    fn trust_measure(&mut self, end: Timestamp, exit: &NodeExit) {
        let (Some(told), Some(began)) = (self.started, exit.started) else { return };
        let measured = Timestamp(end.0.saturating_sub(exit.ended.micros_since(began).max(0)));
        self.started = Some(told.min(measured).max(self.allocated));
    }
}

/// The holdings of a run for one component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenPart {
    to: Payer,
    cores: u64,
    gpus: u64,
    walltime_seconds: Option<u64>,
}

impl Books {
    /// Empty books with windows of this many seconds, from 1 to 100 years.
    pub fn new(window_seconds: u64) -> Self {
        Self {
            windows: Windows::of_seconds(window_seconds),
            sequence: Sequence(0),
            last: None,
            amounts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            shared: SharedCharges::default(),
        }
    }

    /// How long a window is.
    pub fn window_seconds(&self) -> u64 {
        self.windows.seconds()
    }

    /// The last record that is counted.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The job whose submission must be learnt ([`Books::learn`]) before the record can be counted: one that was over
    /// and is started again.
    pub fn unknown_job(&self, record: &Record) -> Option<JobId> {
        match &record.event {
            Event::RunAllocated { job, .. } if self.charges(*job).is_none() => Some(job.whole()),
            _ => None,
        }
    }

    /// Learns the payers of a job from past records, and counts nothing.
    pub fn learn(&mut self, history: &[Record]) {
        for record in history {
            self.learn_charges(&record.event);
        }
    }

    /// Counts a record.
    pub fn apply(&mut self, record: &Record) {
        self.apply_event(record);
        self.sequence = record.sequence;
        self.last = Some((record.time, record.command));
    }

    /// Whether this is the last record that is counted.
    pub fn end_with(&self, record: &Record) -> bool {
        self.sequence == record.sequence && self.last == Some((record.time, record.command))
    }

    /// Takes in whom a job is charged to; whether events of this kind say that.
    fn learn_charges(&mut self, event: &Event) -> bool {
        match event {
            Event::JobSubmitted { job, owner, spec, .. } => self.charge(*job, &owner.user, spec),
            Event::JobConfigured { job, spec, .. } => self.charge_anew(*job, spec),
            Event::JobValidated { job, validated } => self.charge_anew(*job, &validated.spec),
            Event::JobModified { job, change } => {
                if let Some(charges) = self.charges(*job) {
                    let charges = self.shared.share(changed(charges, change));
                    self.change_runs(*job, change);
                    self.jobs.insert(*job, charges);
                }
            }
            _ => return false,
        }
        true
    }

    /// Counts what an event says; whether events of its kind say anything of usage.
    fn apply_event(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::RunAllocated { job, run, placement } => {
                let charges = self.charges(*job).cloned().unwrap_or_default();
                let open =
                    OpenRun { job: *job, parts: parts(&charges, placement), allocated: record.time, started: None };
                self.runs.insert(*run, open);
            }
            Event::RunStarted { run, .. } => self.start(*run, record.time),
            Event::RunGrown { run, added, .. } => self.resize(*run, added, record.time, u64::saturating_add),
            Event::RunShrunk { run, removed, .. } => self.resize(*run, removed, record.time, u64::saturating_sub),
            Event::RunEnded { run, last, outcome, usage, .. } => {
                if let (Some(run), Some(last)) = (self.runs.get_mut(run), last) {
                    run.trust_measure(record.time, &last.exit);
                }
                self.end(*run, record.time, outcome, usage);
            }
            Event::JobFinished { job, .. } => {
                self.jobs.remove(job);
            }
            event => return self.learn_charges(event),
        }
        true
    }

    fn charge(&mut self, job: JobId, user: &str, spec: &JobSpec) {
        let charges = self.shared.share(charges_of(user, spec));
        self.jobs.insert(job, charges);
    }

    /// A job changed before it was in the queue; its owner stays the same.
    fn charge_anew(&mut self, job: JobId, spec: &JobSpec) {
        let user = self.charges(job).and_then(|charges| charges.first()).map(|charge| charge.to.user.clone());
        if let Some(user) = user {
            self.charge(job, &user, spec);
        }
    }

    /// A run grows or shrinks: its previous holdings count up to now, and it continues as if it started now with the
    /// rest of its walltime, in whole seconds.
    fn resize(&mut self, run: RunId, part: &Placement, time: Timestamp, change: fn(u64, u64) -> u64) {
        let Some(run) = self.runs.get_mut(&run) else { return };
        if let Some(started) = run.started {
            let mut before = run.clone();
            before.parts.iter_mut().for_each(|part| part.walltime_seconds = None);
            add_run_time(self.windows, &before, time, |key, amounts| *self.amounts.entry(key).or_default() += amounts);
            let elapsed = u64::try_from(time.micros_since(started)).unwrap_or(0) / 1_000_000;
            for part in &mut run.parts {
                part.walltime_seconds = part.walltime_seconds.map(|seconds| seconds.saturating_sub(elapsed));
            }
            run.started = Some(time);
            // Its nodes measure the whole run, which no longer counts.
            run.allocated = time;
        }
        for (held, placed) in run.parts.iter_mut().zip(&part.components) {
            held.cores = change(held.cores, placed.shares.iter().map(|share| share.cores.len()).sum());
            held.gpus = change(held.gpus, placed.shares.iter().map(|share| share.gpus.len()).sum());
        }
    }

    /// The charges of a job; those of its array for a task without its own.
    fn charges(&self, job: JobId) -> Option<&Charges> {
        self.jobs.get(&job).or_else(|| self.jobs.get(&job.whole()))
    }

    /// A new walltime of a running job changes what it has asked for.
    fn change_runs(&mut self, job: JobId, change: &JobChange) {
        if change.walltime_seconds.is_none() {
            return;
        }
        let concerned = |run: &OpenRun| run.job == job || run.job.whole() == job;
        for run in self.runs.values_mut().filter(|run| concerned(run)) {
            let parts = (0..).zip(&mut run.parts);
            parts
                .filter(|(number, _)| change.component.is_none_or(|component| component == *number))
                .for_each(|(_, part)| part.walltime_seconds = change.walltime_seconds);
        }
    }

    fn start(&mut self, run: RunId, time: Timestamp) {
        let Some(run) = self.runs.get_mut(&run) else { return };
        run.started = Some(time);
        if let Some(lead) = run.parts.first() {
            self.amounts.entry((self.windows.start_of(time), lead.to.clone())).or_default().started_runs += 1;
        }
    }

    fn end(&mut self, run: RunId, time: Timestamp, outcome: &Outcome, usage: &Usage) {
        let Some(run) = self.runs.remove(&run) else { return };
        add_run_time(self.windows, &run, time, |key, amounts| *self.amounts.entry(key).or_default() += amounts);
        if let Some(lead) = run.parts.first() {
            let amounts = self.amounts.entry((self.windows.start_of(time), lead.to.clone())).or_default();
            amounts.cpu_time_micros += u128::from(usage.cpu_time_micros);
            amounts.count_end(outcome);
        }
    }

    /// Answers a question, with what running jobs have used up to `now`.
    pub fn answer(&self, query: &UsageQuery, now: Timestamp) -> UsageAnswer {
        let mut rows: BTreeMap<RowKey, UsageAmounts> = BTreeMap::new();
        let mut add = |(start, payer): (Timestamp, Payer), amounts: UsageAmounts| {
            if self.is_asked_for(query, start, &payer) {
                *rows.entry(RowKey::new(query, start, payer)).or_default() += amounts;
            }
        };
        for ((start, payer), amounts) in &self.amounts {
            add((*start, payer.clone()), *amounts);
        }
        for run in self.runs.values() {
            add_run_time(self.windows, run, now, &mut add);
        }
        UsageAnswer {
            sequence: self.sequence,
            window_seconds: self.windows.seconds(),
            rows: rows.into_iter().map(|(key, amounts)| key.row(amounts)).collect(),
        }
    }

    fn is_asked_for(&self, query: &UsageQuery, start: Timestamp, payer: &Payer) -> bool {
        query.from.is_none_or(|from| self.windows.end_of(start) > from)
            && query.to.is_none_or(|to| start < to)
            && query.user.as_ref().is_none_or(|user| *user == payer.user)
            && query.account.as_ref().is_none_or(|account| payer.account.as_ref() == Some(account))
            && query.queue.as_ref().is_none_or(|queue| *queue == payer.queue)
    }
}

/// The holdings in a placement, by component.
fn parts(charges: &[Charge], placement: &Placement) -> Vec<OpenPart> {
    let part = |(charge, component): (&Charge, &ComponentPlacement)| OpenPart {
        to: charge.to.clone(),
        cores: component.shares.iter().map(|share| share.cores.len()).sum(),
        gpus: component.shares.iter().map(|share| share.gpus.len()).sum(),
        walltime_seconds: charge.walltimes.get(component.alternative as usize).copied().flatten(),
    };
    charges.iter().zip(&placement.components).map(part).collect()
}

/// Divides the time asked for and used by a run that lasts until `end` among the windows.
fn add_run_time(
    windows: Windows,
    run: &OpenRun,
    end: Timestamp,
    mut add: impl FnMut((Timestamp, Payer), UsageAmounts),
) {
    let Some(started) = run.started else { return };
    for part in &run.parts {
        for (start, micros) in windows.divide(started, end) {
            let amounts = UsageAmounts {
                used_core_micros: u128::from(micros) * u128::from(part.cores),
                used_gpu_micros: u128::from(micros) * u128::from(part.gpus),
                ..UsageAmounts::default()
            };
            add((start, part.to.clone()), amounts);
        }
        let asked_end = part
            .walltime_seconds
            .map_or(end, |seconds| started.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)));
        for (start, micros) in windows.divide(started, asked_end) {
            let asked_core_micros = u128::from(micros) * u128::from(part.cores);
            add((start, part.to.clone()), UsageAmounts { asked_core_micros, ..UsageAmounts::default() });
        }
    }
}

/// The key of a row in an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    window_start: Option<Timestamp>,
    user: Option<String>,
    account: Option<String>,
    queue: Option<String>,
}

impl RowKey {
    fn new(query: &UsageQuery, start: Timestamp, payer: Payer) -> Self {
        let told_apart = |dimension| query.by.is_empty() || query.by.contains(&dimension);
        Self {
            window_start: told_apart(UsageDimension::Window).then_some(start),
            user: told_apart(UsageDimension::User).then_some(payer.user),
            account: payer.account.filter(|_| told_apart(UsageDimension::Account)),
            queue: told_apart(UsageDimension::Queue).then_some(payer.queue),
        }
    }

    fn row(self, amounts: UsageAmounts) -> UsageRow {
        let Self { window_start, user, account, queue } = self;
        UsageRow { window_start, user, account, queue, amounts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn the_books_count_what_the_table_of_events_says() {
        assert_handles(Concern::Usage, |record| Books::new(3600).apply_event(record));
    }
}
