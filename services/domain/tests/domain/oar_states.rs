//! The states of jobs as OAR knows them follow one another as OAR says.

use crate::{
    properties::{Step, play_changed, step},
    support::*,
};
use muster_domain::{State as Jobs, jobs::Job};
use muster_oar::life::{
    neutral::{self, Neutral},
    state::State::{self, *},
};
use muster_schemas::{
    JobId,
    command::{Command, RefusalCode},
    event::{Actor, Event, Record},
    job::{Holds, JobSpec, JobType, Program},
    plan::{PlannedSlot, ProposedPlan, SlotSpec},
};
use proptest::{
    prelude::*,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The states that may follow a state.
const fn moves(from: State) -> &'static [State] {
    match from {
        Waiting => &[Hold, ToLaunch, ToAckReservation, ToError, Error],
        Hold => &[Waiting, Error],
        ToAckReservation => &[Waiting, Error],
        ToError => &[Error],
        ToLaunch => &[Launching, Error],
        Launching => &[Running, Finishing, Error],
        Running => &[Suspended, Finishing],
        Suspended => &[Resuming, Finishing],
        Resuming => &[Running, Suspended, Finishing],
        Finishing => &[Terminated, Error],
        Terminated | Error => &[],
    }
}

/// What one record takes a job through: it is promised, placed and launched at once, and continues at once if its cores are
/// free.
const AT_ONCE: [&[State]; 4] = [
    &[Waiting, ToLaunch, Launching],
    &[ToAckReservation, Waiting, ToLaunch, Launching],
    &[Suspended, Resuming, Running],
    &[Hold, Waiting, ToAckReservation],
];

fn is_allowed(from: State, to: State) -> bool {
    let is_move = |from: State, to: State| moves(from).contains(&to);
    let is_chain = |chain: &&[State]| chain.first() == Some(&from) && chain.last() == Some(&to);
    is_move(from, to)
        || AT_ONCE
            .iter()
            .filter(|chain| is_chain(chain))
            .any(|chain| chain.windows(2).all(|two| is_move(two[0], two[1])))
}

/// The state of a job, as `oarstat` tells it.
fn of(jobs: &Jobs, job: &Job) -> State {
    let outcome = job.finished().map(|finished| &finished.outcome);
    let last = job.last_run.as_ref().filter(|run| run.started.is_some() && Some(&run.outcome) == outcome);
    neutral::state(Neutral {
        state: jobs.job_state(job),
        outcome,
        is_held: !job.holds().is_empty(),
        is_unanswered: job.types().contains(&JobType::FixedStart) && job.slot.is_none(),
        is_resuming: job.run().and_then(|run| jobs.run(run)).is_some_and(|run| run.is_resuming()),
        is_noop: job.types().contains(&JobType::Noop),
        is_pulled: false,
        has_run: last.is_some(),
    })
}

/// Follows a log, record by record.
#[derive(Default)]
struct Watch {
    jobs: Option<Jobs>,
    last: BTreeMap<JobId, State>,
    seen: BTreeSet<(State, State)>,
}

impl Watch {
    /// The moves of the jobs that are no arrays, which OAR does not have.
    fn follow(&mut self, record: &Record) {
        let jobs = self.jobs.get_or_insert_with(Jobs::new);
        jobs.apply(record).unwrap();
        let waits_again = match record.event {
            Event::JobRequeued { job, .. } => Some(job),
            _ => None,
        };
        for job in jobs.jobs().filter(|job| job.array.is_none() && job.id.index.is_none()) {
            let now = of(jobs, job);
            let Some(before) = self.last.insert(job.id, now).filter(|before| *before != now) else { continue };
            if waits_again == Some(job.id) {
                // Another run under the same number is another job of OAR.
                assert!(matches!(before, Finishing | Terminated | Error), "job {}: {before} to {now}", job.id);
                assert!(matches!(now, Waiting | Hold | ToAckReservation), "job {}: {before} to {now}", job.id);
                continue;
            }
            assert!(is_allowed(before, now), "job {}: {before} to {now} by {:?}", job.id, record.event);
            self.seen.insert((before, now));
        }
    }
}

/// Some jobs are reservations, and some have no command.
fn with_types_of_oar(cluster: &Cluster, command: Command) -> Command {
    let Command::Submit { mut jobs } = command else { return command };
    let turn = cluster.log.len() % 4;
    for spec in &mut jobs {
        let may = spec.types.is_empty() && spec.components.len() == 1 && spec.array.is_none();
        match turn {
            0 if may => {
                spec.types = vec![JobType::Noop];
                spec.components[0].launch.program = Program::None;
            }
            1 if may => *spec = reservation(cluster, spec.clone(), 3),
            _ => {}
        }
    }
    Command::Submit { jobs }
}

/// A job that starts this many seconds from now and runs for a minute.
fn reservation(cluster: &Cluster, mut spec: JobSpec, after: i64) -> JobSpec {
    spec.types = vec![JobType::FixedStart];
    // No job of OAR has some; one whose copies fail is held.
    spec.copies = Default::default();
    spec.components[0].begin = Some(cluster.now.plus_seconds(after));
    spec.components[0].deadline = None;
    spec.components[0].alternatives[0].walltime_seconds = Some(60);
    spec
}

fn watched(steps: &[Step]) -> BTreeSet<(State, State)> {
    let (mut watch, mut read) = (Watch::default(), 0);
    let see = |cluster: &Cluster| {
        cluster.log[read..].iter().for_each(|record| watch.follow(record));
        read = cluster.log.len();
    };
    play_changed(steps, with_types_of_oar, see);
    watch.seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    /// OAR-J-02: whatever happens in whatever order, the state of a job makes only the moves that OAR knows, and an order that
    /// is refused leaves everything as it was.
    #[test]
    fn jobs_make_only_the_moves_of_oar(steps in prop::collection::vec(step(), 1..200)) {
        watched(&steps);
    }
}

/// OAR-J-02: the histories above reach the moves that the system makes often.
#[test]
fn random_histories_make_most_moves() {
    let mut runner = TestRunner::deterministic();
    let histories = prop::collection::vec(step(), 200);
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        seen.extend(watched(&histories.new_tree(&mut runner).expect("the generator rejects nothing").current()));
    }
    for wanted in [
        (Waiting, Hold),
        (Hold, Waiting),
        (Waiting, Launching),
        (Waiting, Error),
        (ToAckReservation, Waiting),
        (Launching, Running),
        (Launching, Finishing),
        (Running, Suspended),
        (Running, Finishing),
        (Suspended, Running),
        (Suspended, Finishing),
        (Finishing, Terminated),
        (Finishing, Error),
    ] {
        assert!(seen.contains(&wanted), "{} to {} never came up: {seen:?}", wanted.0, wanted.1);
    }
}

fn state(cluster: &Cluster, job: JobId) -> State {
    of(&cluster.state, cluster.state.job(job).unwrap())
}

/// OAR-J-02: each order that would lead elsewhere is refused, and the state stays.
#[test]
fn orders_that_lead_elsewhere_are_refused() {
    let mut cluster = Cluster::new();
    let oper = user("oper");
    let suspend = |job| Command::Suspend { jobs: ids(&[job]) };
    let resume = |job| Command::Resume { jobs: ids(&[job]) };
    let user_hold = Holds { user: true, ..Holds::default() };
    let hold = |job| Command::Hold { jobs: ids(&[job]), holds: user_hold, reason: "because".into() };
    let release = |job| Command::Release { jobs: ids(&[job]), holds: user_hold };
    let refused = |cluster: &mut Cluster, job, commands: Vec<Command>, words: &str| {
        let before = (state(cluster, job), cluster.log.len(), cluster.state.digest());
        for command in commands {
            cluster.refused(&oper, command, RefusalCode::Conflict, words);
            assert_eq!((state(cluster, job), cluster.log.len(), cluster.state.digest()), before);
        }
    };
    let id = cluster.submit("ada", job(1, 1));
    assert_eq!(state(&cluster, id), Waiting);
    refused(&mut cluster, id, vec![suspend(id), resume(id)], "");
    cluster.ok(&oper, hold(id));
    assert_eq!(state(&cluster, id), Hold);
    refused(&mut cluster, id, vec![suspend(id), resume(id)], "");
    assert!(!cluster.is_waiting(id), "nobody starts it");
    cluster.ok(&oper, release(id));
    let run = cluster.allocate(id, &["node1"], 1);
    assert_eq!(state(&cluster, id), Launching);
    refused(&mut cluster, id, vec![suspend(id), resume(id), release(id)], "");
    cluster.ok(&executor("node1"), Command::NodeStarted { part: cluster.part(run, "node1") });
    assert_eq!(state(&cluster, id), Running);
    refused(&mut cluster, id, vec![resume(id), release(id)], "");
    cluster.ok(&oper, suspend(id));
    assert_eq!(state(&cluster, id), Suspended);
    let other = cluster.submit("ada", job(1, 4));
    let other_run = cluster.start(other, &["node1"], 4);
    cluster.ok(&oper, resume(id));
    assert_eq!(state(&cluster, id), Resuming, "another job has its core");
    refused(&mut cluster, id, vec![release(id)], "");
    cluster.end(other_run, "node1", muster_schemas::job::ExitStatus::Code(0));
    cluster.tick();
    assert_eq!(state(&cluster, id), Running);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    assert_eq!(state(&cluster, id), Finishing);
    refused(&mut cluster, id, vec![suspend(id), resume(id)], "");
    cluster.end(run, "node1", muster_schemas::job::ExitStatus::Signal(15));
    assert_eq!(state(&cluster, id), Error);
    refused(&mut cluster, id, vec![suspend(id), resume(id), release(id), hold(id)], "");
    assert_eq!(state(&cluster, other), Terminated);
}

/// OAR-J-02: a reservation that nobody has accepted is not held; once it is accepted, it waits.
#[test]
fn a_reservation_is_accepted_before_it_is_held() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, job(1, 2), 100);
    let id = cluster.submit("ada", spec);
    assert_eq!(state(&cluster, id), ToAckReservation);
    let hold = || Command::Hold {
        jobs: ids(&[id]),
        holds: Holds { user: true, ..Holds::default() },
        reason: "because".into(),
    };
    cluster.refused(&user("ada"), hold(), RefusalCode::Conflict, "no plan has promised yet");
    assert_eq!(state(&cluster, id), ToAckReservation);
    let placement = Arc::new(cluster.placement(&["node1"], 2));
    let slot = Some(SlotSpec { start: cluster.now.plus_seconds(100), placement });
    let plan = ProposedPlan {
        seen: cluster.state.sequence(),
        at: cluster.now,
        slots: vec![PlannedSlot { job: id, slot }],
        ..ProposedPlan::default()
    };
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    assert_eq!(state(&cluster, id), Waiting);
    cluster.ok(&user("ada"), hold());
    assert_eq!(state(&cluster, id), Hold);
}

/// OAR-J-02: a job without a command that never ran is in Error, also if an earlier run of it had started.
#[test]
fn a_job_that_holds_resources_and_never_ran_is_in_error() {
    let mut cluster = Cluster::new();
    let noop = || {
        let mut spec = JobSpec { types: vec![JobType::Noop], ..job(1, 1) };
        spec.components[0].launch.program = Program::None;
        spec
    };
    let (never, ran, again) =
        (cluster.submit("ada", noop()), cluster.submit("ada", noop()), cluster.submit("ada", noop()));
    let run = cluster.start(ran, &["node1"], 1);
    let first = cluster.start(again, &["node2"], 1);
    cluster.ok(&root(), Command::Requeue { jobs: ids(&[again]), hold: false, delay_seconds: 0 });
    cluster.end(first, "node2", muster_schemas::job::ExitStatus::Signal(15));
    assert_eq!(state(&cluster, again), Waiting);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[never, ran, again]) });
    cluster.end(run, "node1", muster_schemas::job::ExitStatus::Signal(15));
    assert_eq!([never, ran, again].map(|job| state(&cluster, job)), [Error, Terminated, Error]);
}
