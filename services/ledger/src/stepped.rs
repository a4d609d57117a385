//! The decide loop driven by hand, round by round, with the time as input: what a simulation needs to stop it anywhere.
//! It decides, writes and syncs exactly as the service does; what the service would tell the bus, it returns.

mod member;

pub use member::{Member, Role};

use crate::{
    beats::{Beats, Waiting},
    calls::{self, Offer},
    clock::Clock,
    config::Config,
    dispatch::OrderWriter,
    engine::Engine,
    fence::Fence,
    limits::NoLimits,
    log::{Head, LogError},
    opened::Opened,
    outbox::{self, Inlets},
    replication::Reign,
    service,
    storage::Storage,
    work::Work,
};
use muster_domain::nodes::Violation;
use muster_schemas::{
    Sequence, Timestamp,
    command::{Answer, CommandEnvelope},
    event::Commit,
    filter_order::{FilterOrder, RunnerBriefing, RunnerHeartbeat},
    node::{Briefing, Heartbeat, NodeOrder},
};
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Instant,
};
use tokio::sync::watch;

/// Something for the loop to decide. The number says which answer belongs to it.
pub enum Input {
    /// A command, of an actor who may use the way that it came.
    Command(usize, Box<CommandEnvelope>),
    /// A node is alive.
    Heartbeat(usize, Heartbeat),
    /// A filter-runner is alive.
    RunnerBeat(usize, RunnerHeartbeat),
}

/// The result of a round; all of it is on disk.
#[derive(Debug, Default)]
pub struct Output {
    /// Answers to commands, by number.
    pub answers: Vec<(usize, Answer)>,
    /// Answers to heartbeats, by number.
    pub beats: Vec<(usize, Briefing)>,
    /// Answers to signs of life of runners, by number.
    pub briefings: Vec<(usize, RunnerBriefing)>,
    /// For the log stream.
    pub commits: Vec<Arc<Commit>>,
    /// For nodes, by name.
    pub orders: Vec<(String, NodeOrder)>,
    /// For the work queues of filters: keys and calls.
    pub calls: Vec<(String, FilterOrder)>,
    /// Why the ledger has stopped, if it has decided something that cannot be true.
    pub violation: Option<Violation>,
}

/// A ledger without threads and without a bus.
pub struct Stepped {
    storage: Arc<Storage>,
    engine: Engine,
    inlets: Inlets,
    orders: OrderWriter,
    /// The answers, also those of an earlier round.
    output: Arc<Mutex<Output>>,
}

impl Stepped {
    /// Opens a data folder as the service does, at this time.
    ///
    /// # Errors
    /// As [`service::serve`](crate::serve), as far as it is about the folder.
    pub fn open(data_dir: &Path, now: Timestamp) -> anyhow::Result<Self> {
        // Nobody signs the end of the log meanwhile, and the time that passes is not that of a clock.
        let config = Config { data_dir: data_dir.to_owned(), accept_log_end: true, ..Config::default() };
        let opened = service::open(&config, now)?;
        Ok(Self::assemble(opened, None, now, Instant::now()))
    }

    /// The loop on an open log, and the time that it begins with.
    pub(crate) fn assemble(opened: Opened, reign: Option<Reign>, now: Timestamp, monotonic: Instant) -> Self {
        let (storage, head) = (Arc::clone(&opened.storage), opened.head);
        // The clock of the fence is not the one that is set here.
        let fence = Fence::of_epoch(opened.state.epoch(), None);
        let (outlets, inlets, letters) = outbox::channels(head, watch::channel(0).1, fence.clone());
        let orders =
            OrderWriter::new(letters, Arc::clone(&storage), (Arc::clone(&opened.tokens), Arc::default()), fence);
        let clock = Clock::stepped(head.time, now, monotonic);
        let engine = Engine::new(opened, Arc::new(NoLimits), clock, outlets, Arc::new(Beats::new()));
        let engine = match reign {
            Some(reign) => engine.leading(reign),
            None => engine,
        };
        Self { storage, engine, inlets, orders, output: Arc::default() }
    }

    /// One round at this time: everything given is decided together, written, and synced.
    pub fn round(&mut self, inputs: Vec<Input>, now: Timestamp) -> Output {
        let output = Arc::clone(&self.output);
        let (sender, inbox) = mpsc::channel();
        let mut beats = Vec::new();
        for input in inputs {
            match work(input, &output) {
                // The receiver is in scope, so it takes everything.
                Todo::Work(work) => drop(sender.send(work)),
                Todo::Beat(beat) => beats.push(beat),
            }
        }
        self.engine.step(&inbox, beats, now);
        let mut sent = Vec::new();
        // Here the writer has no thread of its own. It answers some of the reports, so it comes before the output is looked at.
        self.orders.catch_up(|node, order| sent.push((node.to_owned(), order)));
        let mut output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
        output.orders = sent;
        output.violation = self.engine.violation().cloned();
        let mut offers = Vec::new();
        self.inlets.drain(&mut output.commits, &mut offers);
        output.calls = offers.into_iter().filter_map(|offer| self.complete(offer)).collect();
        output
    }

    fn complete(&self, offer: Offer) -> Option<(String, FilterOrder)> {
        let order = calls::complete(offer.seed, &*self.storage.log().ok()?);
        order.map(|order| (offer.key, order)).map_err(|error| tracing::error!(%error, "a call cannot be made up")).ok()
    }

    /// When a round is due although nobody asks for anything.
    pub fn next_wake(&mut self) -> Timestamp {
        self.engine.next_wake()
    }

    /// The last record on disk.
    pub fn head(&self) -> Sequence {
        let Head { sequence, .. } = *self.inlets.head.borrow();
        sequence
    }

    /// The loop.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The loop, when it has ended.
    pub(crate) fn into_engine(self) -> Engine {
        self.engine
    }

    /// The digest of the state in memory.
    pub fn state_digest(&self) -> [u8; 32] {
        self.engine.state_digest()
    }

    /// Records from a sequence on, as the answer to a replay query.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn page(&self, from: Sequence, max_bytes: usize) -> Result<Commit, LogError> {
        self.storage.log()?.page(from, max_bytes)
    }

    /// Visits the stored bytes of all records from a sequence on: the hash of the record before, and the payload.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn each_stored(&self, from: Sequence, mut visit: impl FnMut(&[u8])) -> Result<(), LogError> {
        let log = self.storage.log()?;
        let mut entries = log.entries(from);
        while let Some(stored) = entries.next()? {
            visit(stored.value);
        }
        Ok(())
    }
}

/// What an input is for the loop.
enum Todo {
    Work(Work),
    Beat(Waiting),
}

fn work(input: Input, output: &Arc<Mutex<Output>>) -> Todo {
    let output = Arc::clone(output);
    let put = move |change: &dyn Fn(&mut Output)| change(&mut output.lock().unwrap_or_else(PoisonError::into_inner));
    match input {
        Input::Command(number, envelope) => Todo::Work(Work::Command(
            envelope,
            Box::new(move |answer: Answer| put(&|out| out.answers.push((number, answer.clone())))),
        )),
        Input::Heartbeat(number, heartbeat) => Todo::Beat((
            heartbeat,
            Box::new(move |briefing: Briefing| put(&|out| out.beats.push((number, briefing.clone())))),
        )),
        Input::RunnerBeat(number, heartbeat) => Todo::Work(Work::RunnerBeat(
            heartbeat,
            Box::new(move |briefing: RunnerBriefing| put(&|out| out.briefings.push((number, briefing.clone())))),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_domain::{Decision, State, decide_owned};
    use muster_schemas::{
        CommandId, JobId, NodeId, RunId,
        cluster::{ClusterConfig, QueueSpec},
        command::{Command, JobSelection, Refusal, RefusalCode, Reply},
        event::{Actor, Event, Owner, TraceContext},
        job::JobSpec,
        resources::{ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement},
    };
    use std::collections::BTreeMap;

    const NOW: Timestamp = Timestamp::from_unix_seconds(1_000_000);

    fn user() -> Actor {
        Actor::User(Owner { user: "root".into(), uid: 0, gid: 0 })
    }

    fn ask(ledger: &mut Stepped, actor: Actor, command: Command) -> Output {
        let trace = TraceContext::default();
        let envelope = CommandEnvelope { id: CommandId::new_now(), actor, trace, command };
        ledger.round(vec![Input::Command(0, Box::new(envelope))], NOW)
    }

    /// Who cancels gives both jobs the same core.
    fn books_twice(state: &State, actor: &Actor, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
        let Command::Cancel { .. } = command else { return decide_owned(state, actor, command, now) };
        let share = NodeShare {
            node: NodeId(0),
            cores: IndexSet::first_n(1),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            tasks: 1,
            exclusive: false,
        };
        let placement =
            Arc::new(Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] });
        let allocated =
            |number| Event::RunAllocated { job: JobId::job(number), run: RunId(number), placement: placement.clone() };
        Ok(Decision { events: vec![allocated(1), allocated(2)], reply: Reply::Done })
    }

    /// A queue and a node.
    fn configure(ledger: &mut Stepped) {
        let node = NodeSpec {
            name: "n1".into(),
            cores: 1,
            sockets: 1,
            memory_bytes: 0,
            gpus: Vec::new(),
            properties: BTreeMap::new(),
        };
        let queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
        let config = ClusterConfig { queues, nodes: vec![node], ..ClusterConfig::default() };
        ask(ledger, Actor::Ledger, Command::Configure { change: Box::new(config.into()), keep_unnamed: true });
    }

    /// M-LOG-16: what cannot be true is not written, and nothing after it.
    #[test]
    fn a_ledger_that_decides_what_cannot_be_true_stops_and_writes_none_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Stepped::open(folder.path(), NOW).unwrap();
        configure(&mut ledger);
        ask(&mut ledger, user(), Command::Submit { jobs: vec![JobSpec::default(), JobSpec::default()] });
        let head = ledger.head();
        ledger.engine.decide_by(books_twice);
        let cancel = Command::Cancel { jobs: JobSelection::Ids(vec![JobId::job(1)]) };
        let output = ask(&mut ledger, user(), cancel.clone());
        let violation = output.violation.expect("it stops").to_string();
        let told = format!("record {} (job.allocated)", head.0 + 2);
        assert!(
            violation.starts_with(&told) && violation.contains("node n1: run 2 takes cores 0, of which 1"),
            "{violation}"
        );
        let [(_, answer)] = &output.answers[..] else { panic!("{:?}", output.answers) };
        let refusal = answer.result.as_ref().expect_err("it is refused");
        assert!(refusal.code == RefusalCode::StorageFailed && refusal.message.contains(&violation), "{refusal}");
        // Nothing of it is on disk or on the bus, and nobody is answered any more.
        assert!(ledger.head() == head && output.commits.is_empty() && output.orders.is_empty());
        assert!(ask(&mut ledger, user(), cancel).answers.is_empty());
        drop(ledger);
        let again = Stepped::open(folder.path(), NOW).unwrap();
        assert_eq!(again.head(), head);
    }

    /// HPC-H-10: a hold that ran out while no ledger ran is over at its start.
    #[test]
    fn a_hold_that_ran_out_while_nothing_ran_is_released_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Stepped::open(folder.path(), NOW).unwrap();
        configure(&mut ledger);
        ask(&mut ledger, user(), Command::Submit { jobs: vec![JobSpec::default(), JobSpec::default()] });
        let until = |number: u64, seconds| Command::HoldUntil {
            jobs: JobSelection::Ids(vec![JobId::job(number)]),
            until: Some(NOW.plus_seconds(seconds)),
        };
        for (number, seconds) in [(1, 60), (2, 7200)] {
            let held = ask(&mut ledger, user(), until(number, seconds));
            assert!(held.answers[0].1.result.is_ok(), "{:?}", held.answers);
        }
        drop(ledger);
        let later = NOW.plus_seconds(3600);
        let mut ledger = Stepped::open(folder.path(), later).unwrap();
        assert!(ledger.next_wake() <= later, "there is something to do at once");
        let output = ledger.round(Vec::new(), later);
        let records = output.commits.iter().flat_map(|commit| &commit.records);
        let over: Vec<&Event> =
            records.map(|record| &record.event).filter(|event| matches!(event, Event::JobHoldEnded { .. })).collect();
        assert_eq!(over, [&Event::JobHoldEnded { job: JobId::job(1), is_over: true }]);
    }
}
