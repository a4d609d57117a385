//! The cause of a record follows from the records before it, wherever the reading begins (HPC-E-01).

use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    cause::{Causes, RecordsByJob, Remembered},
    event::{Actor, Event, Owner, Record, TraceContext},
};
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use std::convert::Infallible;

/// Records in order.
#[derive(Default)]
struct Log(Vec<Record>);

impl Log {
    /// Adds the events of a command.
    fn add(&mut self, actor: &Actor, events: Vec<Event>) {
        let command = CommandId::derived(&[&self.0.len().to_le_bytes()]);
        for event in events {
            let sequence = Sequence(self.0.len() as u64 + 1);
            let trace = TraceContext::default();
            self.0.push(Record {
                sequence,
                time: Timestamp(0),
                actor: actor.clone().into(),
                command,
                trace,
                event,
                epoch: 0,
            });
        }
    }

    /// The cause of each record, for a reader that begins at this place.
    fn causes_from(&self, place: usize) -> Vec<Option<u64>> {
        let mut causes = Causes::default();
        let cause = |record| causes.of(record, self).unwrap_or_else(|error| match error {}).map(|cause| cause.0);
        self.0[place..].iter().map(cause).collect()
    }

    /// The same for a reader that looks nothing up; `None` where that is not enough.
    fn remembered_from(&self, place: usize) -> Vec<Option<Option<u64>>> {
        let mut causes = Causes::default();
        let cause = |record| causes.of(record, &Remembered).ok().map(|cause| cause.map(|cause| cause.0));
        self.0[place..].iter().map(cause).collect()
    }

    /// Whether a command begins at this place.
    fn begins_command(&self, place: usize) -> bool {
        place == 0 || self.0[place - 1].command != self.0[place].command
    }
}

impl RecordsByJob for Log {
    type Error = Infallible;

    fn last_before(&self, job: JobId, before: Sequence) -> Result<Option<Sequence>, Infallible> {
        let mut newest = self.0.iter().rev();
        let found = newest.find(|record| record.sequence < before && record.event.job() == Some(job));
        Ok(found.map(|record| record.sequence))
    }
}

fn user() -> Actor {
    Actor::User(Owner { user: "anna".into(), uid: 1000, gid: 1000 })
}

fn on(job: u64) -> Event {
    Event::JobQueued { job: JobId::job(job) }
}

fn on_task(job: u64, index: u32) -> Event {
    Event::JobQueued { job: JobId::task(job, index) }
}

fn on_nothing() -> Event {
    Event::QueueRemoved { name: "old".into() }
}

#[test]
fn what_a_person_does_follows_from_the_first_record_of_the_command() {
    let mut log = Log::default();
    log.add(&user(), vec![on(1), on(2), on(1), on_nothing()]);
    log.add(&user(), vec![on(1)]);
    assert_eq!(log.causes_from(0), [None, Some(1), Some(1), Some(1), None]);
}

#[test]
fn what_a_worker_does_to_a_job_follows_from_what_happened_to_the_job() {
    let mut log = Log::default();
    log.add(&user(), vec![on(1)]);
    log.add(&user(), vec![on(2)]);
    // One command about two jobs, such as a plan: each job has its own story.
    log.add(&Actor::Planner, vec![on(2), on(2), on(1), on(1), on_nothing()]);
    log.add(&Actor::Runner("r1".into()), vec![on(1), on(1)]);
    log.add(&Actor::Ledger, vec![on_nothing()]);
    let of_plan = [Some(2), Some(3), Some(1), Some(5), Some(3)];
    assert_eq!(log.causes_from(2), [&of_plan[..], &[Some(6), Some(8), None]].concat());
}

#[test]
fn what_happened_to_an_array_leads_to_what_happens_to_its_tasks() {
    let mut log = Log::default();
    log.add(&user(), vec![on(1)]);
    log.add(&Actor::Planner, vec![on_task(1, 7), on_task(1, 8)]);
    log.add(&user(), vec![on(1)]);
    let node = Actor::Executor("n1".into());
    log.add(&node, vec![on_task(1, 7), on(1), on_task(1, 8)]);
    assert_eq!(log.causes_from(1), [Some(1), Some(1), None, Some(4), Some(4), Some(6)]);
}

#[test]
fn who_looks_nothing_up_knows_what_led_to_records_of_jobs_that_it_has_seen() {
    let mut log = Log::default();
    log.add(&user(), vec![on(1), on(2)]);
    log.add(&user(), vec![on(3)]);
    log.add(&Actor::Planner, vec![on(1), on(1), on(3), on_nothing()]);
    log.add(&Actor::Planner, vec![on(1), on(2)]);
    let of_job_1 = [None, Some(Some(4))];
    let of_the_rest = [Some(Some(3)), Some(Some(4)), Some(Some(5)), None];
    assert_eq!(log.remembered_from(2), [&[Some(None)][..], &of_job_1, &of_the_rest].concat());
}

fn commands() -> impl Strategy<Value = Vec<(u8, Vec<(u8, u8)>)>> {
    let events = prop::collection::vec((0..5_u8, 0..3_u8), 1..6);
    prop::collection::vec((0..3_u8, events), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(FileFailurePersistence::WithSource("regressions")))]

    #[test]
    fn it_does_not_matter_where_the_reading_begins(commands in commands()) {
        let mut log = Log::default();
        for (actor, events) in commands {
            let actor = match actor {
                0 => user(),
                1 => Actor::Planner,
                _ => Actor::Runner("r1".into()),
            };
            let event = |(job, index): (u8, u8)| match (job, index) {
                (0, _) => on_nothing(),
                (job, 0) => on(job.into()),
                (job, index) => on_task(job.into(), index.into()),
            };
            log.add(&actor, events.into_iter().map(event).collect());
        }
        let all = log.causes_from(0);
        for place in (0..log.0.len()).filter(|place| log.begins_command(*place)) {
            prop_assert_eq!(&log.causes_from(place), &all[place..]);
            for (remembered, cause) in log.remembered_from(place).into_iter().zip(&all[place..]) {
                prop_assert!(remembered.is_none_or(|remembered| remembered == *cause));
            }
        }
        for (record, cause) in log.0.iter().zip(all) {
            prop_assert!(cause.is_none_or(|cause| cause < record.sequence.0));
        }
    }
}
