//! The books after given histories.

use muster_accounting::Books;
use muster_schemas::{
    CommandId, JobId, NodeId, RunId, Sequence, Timestamp,
    event::{Actor, EndCause, Event, JobChange, NodeExit, NodePart, Owner, Record, TraceContext, Validated},
    job::{Component, JobSpec, Outcome, Usage},
    resources::{Alternative, ComponentPlacement, IndexSet, NodeShare, Placement},
    usage::{UsageAmounts, UsageDimension, UsageQuery},
};
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use std::sync::Arc;

/// Records in order, as a ledger would make them.
#[derive(Default)]
struct History {
    records: Vec<Record>,
}

impl History {
    fn add(&mut self, seconds: i64, event: Event) {
        let sequence = Sequence(self.records.len() as u64 + 1);
        self.records.push(Record {
            sequence,
            time: Timestamp::from_unix_seconds(seconds),
            actor: Arc::new(Actor::Ledger),
            command: CommandId::derived(&[&sequence.0.to_le_bytes()]),
            trace: TraceContext::default(),
            event,
            epoch: 0,
        });
    }

    fn submit(&mut self, seconds: i64, job: u64, user: &str, account: Option<&str>, walltime: Option<u64>) {
        let component = Component {
            queue: Some("default".into()),
            account: account.map(str::to_owned),
            alternatives: vec![Alternative { walltime_seconds: walltime, ..Alternative::default() }],
            ..Component::default()
        };
        let spec = Arc::new(JobSpec { components: vec![component], ..JobSpec::default() });
        let owner = Arc::new(Owner { user: user.into(), uid: 1000, gid: 1000 });
        self.add(seconds, Event::JobSubmitted { job: JobId::job(job), owner, spec, intake: None });
    }

    fn allocate(&mut self, seconds: i64, job: JobId, run: u64, cores: u32) {
        let share = NodeShare {
            node: NodeId(0),
            cores: IndexSet::first_n(cores),
            gpus: IndexSet::first_n(1),
            memory_bytes: 0,
            tasks: 1,
            exclusive: false,
        };
        let component = ComponentPlacement { alternative: 0, shares: vec![share] };
        let placement = Arc::new(Placement { components: vec![component] });
        self.add(seconds, Event::RunAllocated { job, run: RunId(run), placement });
    }

    fn start(&mut self, seconds: i64, job: JobId, run: u64) {
        self.add(seconds, Event::RunStarted { job, run: RunId(run), node: NodeId(0), component: 0 });
    }

    fn end(&mut self, seconds: i64, job: JobId, run: u64, outcome: Outcome) {
        self.end_measured(seconds, job, run, outcome, None);
    }

    /// The node's clock is an hour ahead: only the difference between its times counts.
    fn end_measured(&mut self, seconds: i64, job: JobId, run: u64, outcome: Outcome, lasted: Option<i64>) {
        let ended = Timestamp::from_unix_seconds(seconds + 3600);
        let exit = NodeExit {
            status: None,
            cause: EndCause::Itself,
            usage: Usage::default(),
            started: lasted.map(|seconds| ended.plus_seconds(-seconds)),
            ended,
        };
        let last = Some(NodePart { node: NodeId(0), component: 0, exit });
        let usage = Usage { cpu_time_micros: 5, peak_memory_bytes: 1, ..Usage::default() };
        self.add(seconds, Event::RunEnded { job, run: RunId(run), last, outcome, usage });
    }

    fn books(&self, window_seconds: u64) -> Books {
        let mut books = Books::new(window_seconds);
        for record in &self.records {
            assert_eq!(books.unknown_job(record), None);
            books.apply(record);
        }
        books
    }
}

fn by(dimensions: &[UsageDimension]) -> UsageQuery {
    UsageQuery { by: dimensions.to_vec(), ..UsageQuery::default() }
}

fn total(books: &Books, now: i64) -> UsageAmounts {
    // Sums all rows with all keys, so that nothing can hide between rows.
    let rows = books.answer(&UsageQuery::default(), Timestamp::from_unix_seconds(now)).rows;
    rows.into_iter().fold(UsageAmounts::default(), |mut sum, row| {
        sum += row.amounts;
        sum
    })
}

const SECOND: u128 = 1_000_000;

/// Used and requested time are cut at the borders of windows (OAR-A-02). They are those of cores, whatever else a run has
/// (OAR-A-07).
#[test]
fn a_run_that_spans_windows_is_divided_between_them() {
    let mut history = History::default();
    let job = JobId::job(1);
    history.submit(0, 1, "ada", Some("physics"), Some(300));
    history.allocate(50, job, 1, 4);
    history.start(60, job, 1);
    history.end(130, job, 1, Outcome::Completed);
    let answer = history.books(100).answer(&by(&[UsageDimension::Window]), Timestamp::from_unix_seconds(1000));
    let used: Vec<_> = answer.rows.iter().map(|row| row.amounts.used_core_micros / SECOND).collect();
    let asked: Vec<_> = answer.rows.iter().map(|row| row.amounts.asked_core_micros / SECOND).collect();
    assert_eq!(used, [40 * 4, 30 * 4, 0, 0]);
    assert_eq!(asked, [40 * 4, 100 * 4, 100 * 4, 60 * 4]);
    let last = &answer.rows[1].amounts;
    assert_eq!((last.completed_runs, last.cpu_time_micros, last.used_gpu_micros), (1, 5, 30 * SECOND));
}

#[test]
fn a_running_job_counts_up_to_now_and_without_walltime_asks_for_what_it_uses() {
    let mut history = History::default();
    let job = JobId::job(1);
    history.submit(0, 1, "ada", None, None);
    history.allocate(0, job, 1, 2);
    history.start(10, job, 1);
    let books = history.books(86_400);
    assert_eq!(total(&books, 40).used_core_micros, 60 * SECOND);
    assert_eq!(total(&books, 40).asked_core_micros, 60 * SECOND);
    assert_eq!(total(&books, 5).used_core_micros, 0, "a clock behind the log gives nothing, not less");
}

#[test]
fn a_run_whose_start_was_reported_late_counts_what_its_node_measured() {
    for (allocated, started, lasted, expected) in
        [(10, 20, 5, 5), (10, 20, 0, 0), (10, 15, 3, 5), (18, 20, 5, 2), (10, 20, -7, 0)]
    {
        let mut history = History::default();
        let job = JobId::job(1);
        history.submit(0, 1, "ada", None, Some(60));
        history.allocate(allocated, job, 1, 2);
        history.start(started, job, 1);
        history.end_measured(20, job, 1, Outcome::Completed, Some(lasted));
        let used = total(&history.books(86_400), 100).used_core_micros;
        assert_eq!(used, expected * 2 * SECOND, "allocated {allocated}, started {started}, lasted {lasted}");
    }
}

fn part(cores: u32) -> Arc<Placement> {
    let share = NodeShare {
        node: NodeId(1),
        cores: IndexSet::first_n(cores),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
    };
    Arc::new(Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] })
}

/// HPC-S-09, HPC-S-10
#[test]
fn a_run_that_grows_and_shrinks_counts_what_it_had_when() {
    let mut history = History::default();
    let job = JobId::job(1);
    history.submit(0, 1, "ada", None, Some(100));
    history.allocate(0, job, 1, 2);
    history.start(0, job, 1);
    history.add(10, Event::RunGrown { job, run: RunId(1), added: part(2) });
    assert_eq!(total(&history.books(3600), 15).used_core_micros, (2 * 10 + 4 * 5) * SECOND, "while it runs");
    history.add(30, Event::RunShrunk { job, run: RunId(1), removed: part(1) });
    history.end_measured(50, job, 1, Outcome::Completed, Some(50));
    let amounts = total(&history.books(20), 50);
    assert_eq!(amounts.used_core_micros, (2 * 10 + 4 * 20 + 3 * 20) * SECOND);
    assert_eq!(amounts.asked_core_micros, (2 * 10 + 4 * 20 + 3 * 70) * SECOND);
    assert_eq!((amounts.used_gpu_micros, amounts.started_runs), (50 * SECOND, 1));
}

#[test]
fn a_job_with_a_description_is_charged_as_it_was_checked() {
    let mut history = History::default();
    let job = JobId::job(1);
    let spec = |account: &str| JobSpec {
        components: vec![Component { account: Some(account.into()), ..Component::default() }],
        ..JobSpec::default()
    };
    let owner = Arc::new(Owner { user: "ada".into(), uid: 1000, gid: 1000 });
    let intake = Some(Arc::default());
    history.add(0, Event::JobSubmitted { job, owner, spec: Arc::new(spec("first")), intake });
    let validated = Validated { spec: spec("checked"), ..Validated::default() };
    history.add(1, Event::JobValidated { job, validated: Arc::new(validated) });
    history.allocate(2, job, 1, 1);
    history.start(2, job, 1);
    let rows = history
        .books(3600)
        .answer(&by(&[UsageDimension::User, UsageDimension::Account]), Timestamp::from_unix_seconds(3));
    let payers: Vec<_> = rows.rows.iter().map(|row| (row.user.as_deref(), row.account.as_deref())).collect();
    assert_eq!(payers, [(Some("ada"), Some("checked"))]);
}

/// A job that never started counts nothing (OAR-A-03).
#[test]
fn a_run_that_never_started_uses_nothing() {
    let mut history = History::default();
    let job = JobId::job(1);
    history.submit(0, 1, "ada", None, Some(60));
    history.allocate(0, job, 1, 2);
    history.end(30, job, 1, Outcome::LaunchFailed("no such user".into()));
    let sum = total(&history.books(100), 1000);
    assert_eq!((sum.used_core_micros, sum.asked_core_micros, sum.started_runs, sum.other_runs), (0, 0, 0, 1));
}

#[test]
fn tasks_are_charged_to_their_array_and_changes_count() {
    let mut history = History::default();
    history.submit(0, 1, "ada", Some("physics"), Some(60));
    let task = JobId::task(1, 7);
    history.allocate(0, task, 1, 1);
    history.start(0, task, 1);
    let change = JobChange { walltime_seconds: Some(90), ..JobChange::default() };
    history.add(10, Event::JobModified { job: task, change: Arc::new(change) });
    let change = JobChange { account: Some("maths".into()), ..JobChange::default() };
    history.add(10, Event::JobModified { job: JobId::job(1), change: Arc::new(change) });
    history.end(20, task, 1, Outcome::Completed);
    let task = JobId::task(1, 8);
    history.allocate(20, task, 2, 1);
    history.start(20, task, 2);
    history.end(30, task, 2, Outcome::Requeued);
    let answer = history.books(100).answer(&by(&[UsageDimension::Account]), Timestamp::from_unix_seconds(1000));
    let rows: Vec<_> = answer
        .rows
        .iter()
        .map(|row| {
            let amounts = &row.amounts;
            (row.account.as_deref(), amounts.used_core_seconds(), amounts.asked_core_seconds(), amounts.other_runs)
        })
        .collect();
    assert_eq!(rows, [(Some("maths"), 10, 60, 1), (Some("physics"), 20, 90, 0)]);
}

#[test]
fn questions_select_and_sum_up() {
    let mut history = History::default();
    for (job, user) in [(1, "ada"), (2, "bob"), (3, "ada")] {
        history.submit(0, job, user, None, None);
        history.allocate(0, JobId::job(job), job, 1);
        history.start(0, JobId::job(job), job);
    }
    for job in 1..=3 {
        history.end(150, JobId::job(job), job, Outcome::Completed);
    }
    let books = history.books(100);
    let now = Timestamp::from_unix_seconds(1000);
    let answer = books.answer(&by(&[UsageDimension::User]), now);
    let rows: Vec<_> = answer.rows.iter().map(|row| (row.user.as_deref(), row.amounts.used_core_seconds())).collect();
    assert_eq!(rows, [(Some("ada"), 300), (Some("bob"), 150)]);
    assert!(answer.rows.iter().all(|row| row.window_start.is_none() && row.queue.is_none()));
    let second = UsageQuery { from: Some(Timestamp::from_unix_seconds(100)), user: Some("ada".into()), ..by(&[]) };
    let rows = books.answer(&second, now).rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].window_start, Some(Timestamp::from_unix_seconds(100)));
    assert_eq!(rows[0].amounts.used_core_seconds(), 100);
    let nobody = UsageQuery { user: Some("eve".into()), ..UsageQuery::default() };
    assert!(books.answer(&nobody, now).rows.is_empty());
}

#[test]
fn a_job_that_was_over_and_starts_again_is_learnt_from_its_history() {
    let mut history = History::default();
    history.submit(0, 1, "ada", None, None);
    history.add(5, Event::JobFinished { job: JobId::job(1), outcome: Outcome::Cancelled });
    let mut books = history.books(100);
    let past = std::mem::take(&mut history.records);
    history.allocate(10, JobId::job(1), 1, 1);
    let allocated = history.records.remove(0);
    assert_eq!(books.unknown_job(&allocated), Some(JobId::job(1)));
    books.learn(&past);
    assert_eq!(books.unknown_job(&allocated), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_failure_persistence(FileFailurePersistence::WithSource("regressions")))]

    /// For any length of windows, their sum is the total of the runs.
    #[test]
    fn the_sum_over_windows_is_the_total_of_the_runs(
        runs in prop::collection::vec((1_u32..64, 0_i64..100_000, 0_i64..50_000, prop::option::of(0_u64..200_000)), 1..20),
        window_seconds in 1_u64..200_000,
    ) {
        let mut history = History::default();
        let (mut used, mut asked) = (0, 0);
        for (number, (cores, start, elapsed, walltime)) in (1..).zip(&runs) {
            let job = JobId::job(number);
            history.submit(*start, number, if number % 2 == 0 { "ada" } else { "bob" }, None, *walltime);
            history.allocate(*start, job, number, *cores);
            history.start(*start, job, number);
            history.end(start + elapsed, job, number, Outcome::Completed);
            used += u128::from(*cores) * elapsed.unsigned_abs() as u128 * SECOND;
            asked += u128::from(*cores) * u128::from(walltime.unwrap_or(elapsed.unsigned_abs())) * SECOND;
        }
        let sum = total(&history.books(window_seconds), 10_000_000);
        prop_assert_eq!(sum.used_core_micros, used);
        prop_assert_eq!(sum.asked_core_micros, asked);
        prop_assert_eq!(sum.completed_runs, runs.len() as u64);
        prop_assert_eq!(sum.started_runs, runs.len() as u64);
    }
}
