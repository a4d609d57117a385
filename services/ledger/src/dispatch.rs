//! Orders to nodes: the domain says which follow from a record, the log has what they launch. The decide loop makes
//! sketches of them; a separate thread, the *order writer*, reads the log and does what takes long for a wide run, in
//! the order of the sketches. Answers to reports of nodes that hold orders take the same way.
//!
//! The loop never waits for the writer. If too many orders are waiting, those of a round are dropped. Heartbeats of
//! their nodes bring them up again; until there is room, heartbeats stay unanswered and greetings are refused.

use crate::{
    contents::{Content, Contents},
    descriptions::described_by,
    fence::Fence,
    log::LogError,
    storage::Storage,
    tokens::JobTokens,
    work::ReplyTo,
};
use muster_domain::{
    nodes::Node,
    orders::{Sketch, StepRecord, StepSketch},
};
use muster_schemas::{
    PartId,
    cluster::NodeCondition,
    command::{Answer, Refusal, RefusalCode, Reply},
    content::Missing,
    event::{Event, Record},
    ids::Sequence,
    job::{Component, JobSpec, Program},
    node::{Briefing, Mark, NodeOrder, OrderNode, ShortOrder},
    resources::NodeSpec,
    tasks::TaskList,
};
use serde::Serialize;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

/// The writer gets no more while this many orders wait. The orders of a round are taken or dropped as a whole, so that
/// a run on very many nodes can be launched.
const WAITING_ORDERS: usize = 65_536;
/// The number of records kept after reading. Orders about one job mostly come together, and its record can be long.
const KEPT_RECORDS: usize = 4;

/// Whether the log knows that a node is up since this boot, so that a heartbeat changes nothing.
pub(crate) fn is_up(node: &Node, boot_id: &str) -> bool {
    node.condition == NodeCondition::Up && node.boot_id == boot_id
}

/// Where the answer to a report of a node goes.
pub(crate) enum ReplyToNode {
    Heartbeat(ReplyTo<Briefing>),
    /// The answer rests on this record.
    Greeting(ReplyTo<Answer>, Sequence),
}

impl ReplyToNode {
    /// Tells a node what to do.
    pub(crate) fn brief(self, briefing: Briefing) {
        match self {
            Self::Heartbeat(reply) => reply(briefing),
            Self::Greeting(reply, sequence) => {
                reply(Answer { sequence, result: Ok(Reply::NodeOrders(briefing)) });
            }
        }
    }

    /// A refused heartbeat gets no answer: the node soon sends the next one.
    pub(crate) fn refuse(self, refusal: Refusal) {
        match self {
            Self::Heartbeat(_) => {}
            Self::Greeting(reply, sequence) => reply(Answer { sequence, result: Err(refusal) }),
        }
    }
}

/// A message from the decide loop to the order writer.
enum Letter {
    /// Orders that follow from records.
    Orders(Vec<(Arc<NodeSpec>, Sketch)>),
    /// The answer to a report of a node, true at this moment.
    Briefing(ReplyToNode, Arc<NodeSpec>, Mark, Vec<Sketch>),
}

impl Letter {
    fn orders(&self) -> usize {
        match self {
            Self::Orders(orders) => orders.len(),
            Self::Briefing(.., orders) => orders.len(),
        }
    }
}

/// The decide loop's end.
pub(crate) struct Desk {
    letters: mpsc::Sender<Letter>,
    waiting: Arc<AtomicUsize>,
}

/// The order writer's end.
pub(crate) struct Letters {
    letters: mpsc::Receiver<Letter>,
    waiting: Arc<AtomicUsize>,
}

/// Both ends.
pub(crate) fn desk() -> (Desk, Letters) {
    let (sender, letters) = mpsc::channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    (Desk { letters: sender, waiting: Arc::clone(&waiting) }, Letters { letters, waiting })
}

impl Desk {
    /// Sends orders.
    pub(crate) fn order(&self, orders: Vec<(Arc<NodeSpec>, Sketch)>) {
        let count = orders.len();
        if count > 0 && self.put(Letter::Orders(orders)).is_err() {
            tracing::warn!(orders = count, "more orders wait than can be sent; heartbeats will bring them up again");
        }
    }

    /// Answers a report of a node.
    pub(crate) fn brief(&self, reply: ReplyToNode, node: Arc<NodeSpec>, mark: Mark, orders: Vec<Sketch>) {
        if let Err(Letter::Briefing(reply, ..)) = self.put(Letter::Briefing(reply, node, mark, orders)) {
            let message = "more orders wait than the ledger can send; try again";
            reply.refuse(Refusal::new(RefusalCode::Unavailable, message));
        }
    }

    fn put(&self, letter: Letter) -> Result<(), Letter> {
        if self.waiting.load(Ordering::Relaxed) >= WAITING_ORDERS {
            return Err(letter);
        }
        let orders = letter.orders();
        self.waiting.fetch_add(orders, Ordering::Relaxed);
        self.letters.send(letter).map_err(|mpsc::SendError(letter)| {
            self.waiting.fetch_sub(orders, Ordering::Relaxed);
            letter
        })
    }
}

/// The log, as the order writer reads it. Each read stands alone: nothing held between them keeps the log from being
/// reopened.
pub(crate) trait ReadRecord {
    /// The record of a sequence, if the log has it.
    ///
    /// # Errors
    /// It cannot be read.
    fn record(&self, sequence: Sequence) -> Result<Option<Record>, LogError>;
}

impl ReadRecord for Arc<Storage> {
    fn record(&self, sequence: Sequence) -> Result<Option<Record>, LogError> {
        self.log()?.record(sequence)
    }
}

/// Turns sketches into orders and passes them on, one after the other.
pub(crate) struct OrderWriter<R = Arc<Storage>> {
    letters: Letters,
    records: Records<R>,
    tokens: Arc<JobTokens>,
    contents: Arc<Contents>,
    fence: Fence,
}

impl<R: ReadRecord> OrderWriter<R> {
    /// A writer that puts what orders name by hash into `contents`.
    pub(crate) fn new(
        letters: Letters,
        log: R,
        (tokens, contents): (Arc<JobTokens>, Arc<Contents>),
        fence: Fence,
    ) -> Self {
        Self { letters, records: Records::new(log), tokens, contents, fence }
    }

    /// The epoch that its orders carry.
    pub(crate) fn epoch(&self) -> u64 {
        self.fence.epoch()
    }

    /// Waits for messages of the decide loop and passes orders to `send`, with the names of their nodes. Returns when
    /// the loop has ended and everything is passed on, or when `send` returns `false`.
    pub(crate) fn run(mut self, mut send: impl FnMut(&str, NodeOrder) -> bool) {
        while let Ok(letter) = self.letters.letters.recv() {
            if !self.write(letter, &mut send) {
                return;
            }
        }
    }

    /// Passes on everything that has arrived.
    pub(crate) fn catch_up(&mut self, mut send: impl FnMut(&str, NodeOrder)) {
        while let Ok(letter) = self.letters.letters.try_recv() {
            self.write(letter, &mut |node, order| {
                send(node, order);
                true
            });
        }
    }

    fn write(&mut self, letter: Letter, send: &mut impl FnMut(&str, NodeOrder) -> bool) -> bool {
        let waited = letter.orders();
        let goes_on = match letter {
            Letter::Orders(orders) => {
                orders.into_iter().all(|(node, sketch)| match self.complete(&node.name, sketch) {
                    // The fence is checked for each order: there can be many, and each takes a while.
                    Some(order) if self.fence.objection().is_none() => send(&node.name, order),
                    _ => true,
                })
            }
            Letter::Briefing(reply, node, mark, orders) => {
                let orders = orders.into_iter().filter_map(|sketch| self.complete(&node.name, sketch)).collect();
                match self.fence.objection() {
                    None => reply.brief(Briefing { mark: Some(mark), orders, epoch: self.fence.epoch() }),
                    Some(refusal) => reply.refuse(refusal),
                }
                true
            }
        };
        self.letters.waiting.fetch_sub(waited, Ordering::Relaxed);
        goes_on
    }

    /// `None` if there is nothing left to do, or the log cannot say what to launch: the node's heartbeats bring it up
    /// again.
    fn complete(&mut self, node: &str, sketch: Sketch) -> Option<NodeOrder> {
        let whole = self.records.complete(sketch).unwrap_or_else(|error| {
            tracing::error!(%error, "the submission to launch cannot be read");
            None
        });
        let Whole { order, contents } = whole?;
        let order = self.tokens.give(order);
        let named: Vec<&Content> =
            [&contents.environment, &contents.script, &contents.nodes].into_iter().flatten().collect();
        if named.is_empty() {
            return Some(order);
        }
        named.into_iter().for_each(|content| self.contents.offer(content, node));
        Some(NodeOrder::ByHash(Box::new(ShortOrder { order, missing: contents.missing() })))
    }
}

/// An order with the contents that it names by hash.
struct Whole {
    order: NodeOrder,
    contents: Large,
}

impl From<NodeOrder> for Whole {
    fn from(order: NodeOrder) -> Self {
        Self { order, contents: Large::default() }
    }
}

/// Large values that an order is sent without.
#[derive(Clone, Debug, Default)]
struct Large {
    environment: Option<Content>,
    script: Option<Content>,
    nodes: Option<Content>,
}

impl Large {
    fn missing(&self) -> Missing {
        let hash = |content: &Option<Content>| content.as_ref().map(|content| content.hash);
        Missing { environment: hash(&self.environment), script: hash(&self.script), nodes: hash(&self.nodes) }
    }
}

/// The records that orders need.
struct Records<R> {
    log: R,
    jobs: Kept<Sequence, Arc<JobRecord>>,
    steps: Kept<Sequence, Arc<Launched>>,
    /// Lists of nodes, which all parts of a run or step share.
    nodes: Kept<ByAddress, Option<Content>>,
}

/// A job from a record, without its large values.
struct JobRecord {
    spec: JobSpec,
    tasks: Option<Arc<TaskList>>,
    environment: Option<Content>,
    /// The script of each component.
    scripts: Vec<Option<Content>>,
}

impl JobRecord {
    fn of(record: Option<Record>, sequence: Sequence) -> Result<Self, LogError> {
        let (spec, tasks) = described_by(record, sequence)?;
        let mut spec = Arc::unwrap_or_clone(spec);
        let environment = taken(&mut spec.environment)?;
        let script = |component: &mut Component| match &mut component.launch.program {
            Program::Script { text, .. } => taken(text),
            _ => Ok(None),
        };
        let scripts = spec.components.iter_mut().map(script).collect::<Result<_, _>>()?;
        Ok(Self { spec, tasks, environment, scripts })
    }
}

/// The content of the record of a step's launch.
struct Launched {
    record: StepRecord,
    /// Its own environment, if it is large.
    environment: Option<Content>,
}

/// Takes a value out if it is large enough to be sent by its hash.
fn taken<T: Serialize + Default>(value: &mut T) -> Result<Option<Content>, LogError> {
    let content = Content::of(value).map_err(LogError::Unencodable)?;
    if content.is_some() {
        *value = T::default();
    }
    Ok(content)
}

/// A list of nodes, identified by its address, which stays valid as long as this is kept.
#[derive(Clone)]
struct ByAddress(Arc<Vec<OrderNode>>);

impl PartialEq for ByAddress {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<R: ReadRecord> Records<R> {
    fn new(log: R) -> Self {
        Self { log, jobs: Kept::default(), steps: Kept::default(), nodes: Kept::default() }
    }

    fn complete(&mut self, sketch: Sketch) -> Result<Option<Whole>, LogError> {
        match sketch {
            Sketch::Ready(order) => Ok(Some(order.into())),
            Sketch::Launch { part, nodes, submitted } => {
                let job = self.job(submitted)?;
                let Some(order) = part.launch_order(&nodes, &job.spec) else { return Ok(None) };
                let component = order.nodes.get(order.node_index as usize).map(|node| node.component as usize);
                let is_script = matches!(order.launch.program, Program::Script { .. });
                let script = component.filter(|_| is_script).and_then(|component| job.scripts.get(component)?.clone());
                let contents = Large { environment: job.environment.clone(), script, nodes: None };
                self.without_nodes(order.into(), contents).map(Some)
            }
            Sketch::Hold { part, nodes, submitted } => {
                let job = self.job(submitted)?;
                let Some(order) = part.hold_order(&nodes, &job.spec) else { return Ok(None) };
                let contents = Large { environment: job.environment.clone(), ..Large::default() };
                self.without_nodes(NodeOrder::Hold(Box::new(order)), contents).map(Some)
            }
            Sketch::Step { part, step: StepSketch { step, at, share }, submitted, started } => {
                let job = self.job(submitted)?;
                let launched = self.step(started)?;
                let order = part.tasks_order((step, at), &share, &job.spec, &launched.record);
                let of_job = || job.environment.clone().filter(|_| !launched.record.has_environment());
                let contents = Large { environment: launched.environment.clone().or_else(of_job), ..Large::default() };
                order.map(|order| self.without_nodes(order, contents)).transpose()
            }
            Sketch::Task { part, task, listed } => {
                let job = self.job(listed)?;
                let tasks = job.tasks.as_ref().ok_or_else(|| damaged(listed, "it should list tasks"))?;
                let Some(order) = task.order(&part, &job.spec, tasks) else { return Ok(None) };
                let contents = Large { environment: job.environment.clone(), ..Large::default() };
                Ok(Some(Whole { order: order.into(), contents }))
            }
            Sketch::Tell { part, told } => Ok(Some(self.tell(part, told)?.into())),
        }
    }

    /// Takes the list of nodes out of an order if it is large.
    fn without_nodes(&mut self, mut order: NodeOrder, contents: Large) -> Result<Whole, LogError> {
        let mut nodes = None;
        if let Some(launch) = order.launch_mut() {
            let list = ByAddress(Arc::clone(&launch.nodes));
            nodes = self.nodes.get(&list, || Content::of(&*list.0).map_err(LogError::Unencodable))?;
            if nodes.is_some() {
                launch.nodes = Arc::default();
            }
        }
        Ok(Whole { order, contents: Large { nodes, ..contents } })
    }

    fn job(&mut self, sequence: Sequence) -> Result<Arc<JobRecord>, LogError> {
        let log = &self.log;
        self.jobs.get(&sequence, || JobRecord::of(log.record(sequence)?, sequence).map(Arc::new))
    }

    fn step(&mut self, started: Sequence) -> Result<Arc<Launched>, LogError> {
        let log = &self.log;
        self.steps.get(&started, || match log.record(started)?.map(|record| record.event) {
            Some(Event::StepLaunched { spec, .. }) => {
                let mut spec = Arc::unwrap_or_clone(spec);
                let environment = spec.environment.as_mut().map(taken).transpose()?.flatten();
                Ok(Arc::new(Launched { record: StepRecord::new(spec), environment }))
            }
            _ => Err(damaged(started, "it should be the launch of a step")),
        })
    }

    fn tell(&self, part: PartId, told: Sequence) -> Result<NodeOrder, LogError> {
        match self.log.record(told)?.map(|record| record.event) {
            Some(Event::JobTold { text, .. }) => Ok(NodeOrder::Tell { part, text }),
            _ => Err(damaged(told, "it should be something said to a job")),
        }
    }
}

fn damaged(sequence: Sequence, detail: &str) -> LogError {
    LogError::DamagedRecord { sequence, detail: detail.into() }
}

/// The most recent results, newest first.
struct Kept<K, T> {
    found: VecDeque<(K, T)>,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self { found: VecDeque::new() }
    }
}

impl<K: Clone + PartialEq, T: Clone> Kept<K, T> {
    fn get(&mut self, key: &K, find: impl FnOnce() -> Result<T, LogError>) -> Result<T, LogError> {
        let at = self.found.iter().position(|(known, _)| known == key);
        let found = match at.and_then(|at| self.found.remove(at)) {
            Some(found) => found,
            None => (key.clone(), find()?),
        };
        let value = found.1.clone();
        self.found.truncate(KEPT_RECORDS - 1);
        self.found.push_front(found);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fence::FenceError,
        signing::Signer,
        stepped::{Input, Stepped},
    };
    use muster_domain::{
        State,
        orders::{Sketches, follow_up},
    };
    use muster_schemas::{
        NodeId, RunId, Timestamp,
        cluster::{ClusterConfig, QueueSpec},
        command::{Command, CommandEnvelope, Start},
        content::{ContentAnswer, ContentRequest},
        event::{Actor, Owner, TraceContext},
        ids::CommandId,
        job::{Component, JobSpec, Launch, Program},
        plan::ProposedPlan,
        resources::{
            Alternative, ComponentPlacement, Count, IndexSet, Level, LevelCount, NodeShare, Placement, Request,
        },
        steps::{StepGroup, StepPlace, StepProgram, StepSpec},
    };
    use std::{cell::RefCell, collections::BTreeMap, rc::Rc, sync::Mutex};

    const NODES: u32 = 3;

    /// Records in memory, which count how often each is read.
    #[derive(Clone)]
    struct Counted {
        records: Rc<Vec<Record>>,
        reads: Rc<RefCell<BTreeMap<Sequence, usize>>>,
    }

    impl ReadRecord for Counted {
        fn record(&self, sequence: Sequence) -> Result<Option<Record>, LogError> {
            *self.reads.borrow_mut().entry(sequence).or_default() += 1;
            Ok(self.records.iter().find(|record| record.sequence == sequence).cloned())
        }
    }

    fn tokens(folder: &std::path::Path) -> Arc<JobTokens> {
        let path = folder.join("key");
        let signer = Signer::load_or_draft(&path).unwrap();
        crate::signing::adopt(&path, &signer.public_key()).unwrap();
        Arc::new(JobTokens::new(&signer, None))
    }

    fn writer<R: ReadRecord>(log: R) -> (Desk, OrderWriter<R>, Fence, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let (desk, letters) = desk();
        let fence = Fence::of_the_writer();
        let writer = OrderWriter::new(letters, log, (tokens(folder.path()), Arc::default()), fence.clone());
        (desk, writer, fence, folder)
    }

    fn empty() -> Counted {
        Counted { records: Rc::default(), reads: Rc::default() }
    }

    fn part(run: u64) -> PartId {
        PartId::new(RunId(run), 0)
    }

    fn node(name: &str) -> Arc<NodeSpec> {
        let gpus = Vec::new();
        let properties = BTreeMap::new();
        Arc::new(NodeSpec { name: name.into(), cores: 4, sockets: 1, memory_bytes: 1 << 30, gpus, properties })
    }

    const MARK: Mark = Mark { session: Timestamp::MIN, sequence: Sequence(9) };

    fn user() -> Actor {
        Actor::User(Owner { user: "root".into(), uid: 0, gid: 0 })
    }

    /// A log in which a job on all nodes was launched, started, and launched a step of its own there.
    fn history(folder: &std::path::Path, environment: &BTreeMap<String, String>) -> Vec<Record> {
        let now = Timestamp::from_unix_seconds(1_000_000);
        let mut ledger = Stepped::open(folder, now).unwrap();
        let mut ask = |actor: Actor, command: Command| {
            let trace = TraceContext::default();
            let envelope = CommandEnvelope { id: CommandId::new_now(), actor, trace, command };
            let output = ledger.round(vec![Input::Command(0, Box::new(envelope))], now);
            let [(_, answer)] = <[_; 1]>::try_from(output.answers).expect("one answer");
            answer.result.expect("accepted")
        };
        let names = || (0..NODES).map(|number| format!("n{number}"));
        let config = ClusterConfig {
            queues: vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }],
            nodes: names().map(|name| (*node(&name)).clone()).collect(),
            ..ClusterConfig::default()
        };
        ask(Actor::Ledger, Command::Configure { change: Box::new(config.into()), keep_unnamed: true });
        for name in names() {
            let hello = Command::NodeHello { boot_id: "boot".into(), parts: vec![], highest_run: None, as_of: None };
            ask(Actor::Executor(name), hello);
        }
        let count = Count::exactly(NODES);
        let request = Request { path: vec![LevelCount { level: Level::Node, count }], ..Request::default() };
        let component = Component {
            launch: Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() },
            alternatives: vec![Alternative { requests: vec![request], ..Alternative::default() }],
            ..Component::default()
        };
        let spec = JobSpec { components: vec![component], environment: environment.clone(), ..JobSpec::default() };
        ask(user(), Command::Submit { jobs: vec![spec] });
        let share = |node| NodeShare {
            node: NodeId(node),
            cores: IndexSet::first_n(4),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            tasks: 1,
            exclusive: false,
        };
        let shares = (0..NODES).map(share).collect();
        let placement = Placement { components: vec![ComponentPlacement { alternative: 0, shares }] };
        let job = muster_schemas::JobId::job(1);
        let plan = ProposedPlan { starts: vec![Start { job, placement }], ..ProposedPlan::default() };
        ask(Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
        for name in names() {
            ask(Actor::Executor(name), Command::NodeStarted { part: part(1) });
        }
        let place = |(rank, node)| {
            let ranks = IndexSet::from_range(rank, rank);
            StepPlace { node, ranks, cores: None }
        };
        let group = StepGroup {
            places: (0..).zip(names()).map(place).collect(),
            programs: vec![StepProgram { ranks: IndexSet::from_range(0, NODES - 1), argv: vec!["true".into()] }],
            ..StepGroup::default()
        };
        let spec = StepSpec { groups: vec![group], ..StepSpec::default() };
        ask(user(), Command::LaunchStep { job, spec: Box::new(spec) });
        ledger.page(Sequence(1), 1 << 20).unwrap().records
    }

    /// However many nodes a job or a step is launched on, its record is read and decoded once, and again only if others
    /// were launched meanwhile.
    #[test]
    fn a_record_is_read_once_for_all_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let records = history(&folder.path().join("log"), &BTreeMap::new());
        let log = Counted { records: Rc::new(records), reads: Rc::default() };
        let (desk, mut writer, _fence, _folder) = writer(log.clone());
        hand_over(&log, &desk);
        let sequence = |is_meant: fn(&Event) -> bool| {
            log.records.iter().find(|record| is_meant(&record.event)).expect("it happened").sequence
        };
        let submitted = sequence(|event| matches!(event, Event::JobSubmitted { .. }));
        let launched = sequence(|event| matches!(event, Event::StepLaunched { .. }));
        let mut sent = Vec::new();
        writer.catch_up(|node, order| {
            let kind = match order {
                NodeOrder::Launch { order, tasks } => {
                    let kind = if tasks.is_some() { "step" } else { "run" };
                    (kind, order.node_index, order.access.is_some())
                }
                other => panic!("{other:?}"),
            };
            sent.push((node.to_owned(), kind));
        });
        let all =
            ["run", "step"].iter().flat_map(|kind| (0..NODES).map(move |at| (format!("n{at}"), (*kind, at, true))));
        assert_eq!(sent, all.collect::<Vec<_>>());
        let once = [(submitted, 1), (launched, 1)];
        assert_eq!(*log.reads.borrow(), BTreeMap::from(once));
    }

    /// Hands over the orders that follow from each record.
    fn hand_over(log: &Counted, desk: &Desk) {
        let mut state = State::new();
        for record in &*log.records {
            state.apply(record).unwrap();
            let mut sketches = Sketches::new(&state);
            let sketch = |(node, seed)| Some((state.node(node)?.spec.clone(), sketches.sketch(node, seed)?));
            desk.order(follow_up(&state, record).into_iter().filter_map(sketch).collect());
        }
    }

    /// Large values go by their hash, the same for all nodes; each node that was sent such an order can fetch them, and
    /// no other.
    #[test]
    fn what_is_large_goes_by_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        let environment: BTreeMap<_, _> = (0..200).map(|at| (format!("LONG_{at}"), "x".repeat(100))).collect();
        let records = history(&folder.path().join("log"), &environment);
        let log = Counted { records: Rc::new(records), reads: Rc::default() };
        let (desk, mut writer, _fence, _folder) = writer(log.clone());
        hand_over(&log, &desk);
        let mut sent = Vec::new();
        writer.catch_up(|node, order| match order {
            NodeOrder::ByHash(short) => sent.push((node.to_owned(), *short)),
            other => panic!("{other:?}"),
        });
        assert_eq!(sent.len(), 2 * NODES as usize, "the run and the step");
        let hash = sent[0].1.missing.environment.expect("it is large");
        let fetch = |node: &str| {
            let request = ContentRequest { node: node.to_owned(), hash, offset: 0 };
            match writer.contents.answer(&request, usize::MAX) {
                ContentAnswer::Part { part, .. } => Ok(part.0),
                ContentAnswer::Refused(refusal) => Err(refusal.code),
            }
        };
        assert_eq!(fetch("n9"), Err(RefusalCode::NotFound));
        for (node, short) in sent {
            assert_eq!(short.missing, Missing { environment: Some(hash), script: None, nodes: None });
            let bytes = fetch(&node).expect("its order names it");
            let order = short.fill(|asked| (asked == hash).then_some(&*bytes)).expect("it is what was meant");
            let launch = order.launch().expect("it launches");
            assert!(environment.iter().all(|(name, value)| launch.environment.get(name) == Some(value)));
        }
    }

    #[test]
    fn what_was_read_last_is_kept() {
        let mut kept: Kept<Sequence, u64> = Kept::default();
        let mut reads = Vec::new();
        for sequence in [1, 1, 2, 1, 3, 4, 1, 5, 2, 1] {
            let read = || {
                reads.push(sequence);
                Ok(sequence * 10)
            };
            assert_eq!(kept.get(&Sequence(sequence), read).unwrap(), sequence * 10);
        }
        assert_eq!(reads, [1, 2, 3, 4, 5, 2], "the one that was not asked for the longest has gone");
        assert!(kept.get(&Sequence(9), || Err(LogError::Closed)).is_err());
        assert_eq!(kept.get(&Sequence(9), || Ok(90)).unwrap(), 90, "a read that failed is tried again");
    }

    /// Orders and answers leave in the order in which they arrived.
    #[test]
    fn the_order_is_kept() {
        let (desk, mut writer, ..) = writer(empty());
        let out = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &str| out.lock().unwrap().push(what.to_owned());
        let order = |node_name: &str, order| desk.order(vec![(node(node_name), Sketch::Ready(order))]);
        order("n1", NodeOrder::Suspend { part: part(1) });
        let answers = Arc::clone(&out);
        let reply = move |briefing: Briefing| {
            answers.lock().unwrap().push(format!("{:?} {:?}", briefing.mark, briefing.orders));
        };
        let resume = NodeOrder::Resume { part: part(1) };
        desk.brief(ReplyToNode::Heartbeat(Box::new(reply)), node("n1"), MARK, vec![Sketch::Ready(resume.clone())]);
        order("n2", NodeOrder::Forget { part: part(2) });
        writer.catch_up(|node, order| note(&format!("{node} {order:?}")));
        let wanted = [
            format!("n1 {:?}", NodeOrder::Suspend { part: part(1) }),
            format!("{:?} {:?}", Some(MARK), [resume]),
            format!("n2 {:?}", NodeOrder::Forget { part: part(2) }),
        ];
        assert_eq!(*out.lock().unwrap(), wanted);
    }

    fn greeting() -> (ReplyToNode, Arc<Mutex<Option<Answer>>>) {
        let answer = Arc::new(Mutex::new(None));
        let note = Arc::clone(&answer);
        let reply = move |answer| *note.lock().unwrap() = Some(answer);
        (ReplyToNode::Greeting(Box::new(reply), Sequence(7)), answer)
    }

    fn refusal(answer: &Mutex<Option<Answer>>) -> Option<RefusalCode> {
        answer.lock().unwrap().as_ref().and_then(|answer| answer.result.as_ref().err()).map(|refusal| refusal.code)
    }

    fn many(count: usize) -> Vec<(Arc<NodeSpec>, Sketch)> {
        let node = node("n1");
        (0..count).map(|run| (node.clone(), Sketch::Ready(NodeOrder::Forget { part: part(run as u64) }))).collect()
    }

    /// While too many orders wait, reports are refused and orders dropped; the decide loop does not wait. One launch is
    /// taken as a whole, however wide.
    #[test]
    fn a_full_desk_takes_nothing_and_waits_for_nobody() {
        let (desk, mut writer, ..) = writer(empty());
        desk.order(many(WAITING_ORDERS - 1));
        desk.order(many(WAITING_ORDERS));
        desk.order(many(5));
        let one = || vec![Sketch::Ready(NodeOrder::Resume { part: part(1) })];
        let (reply, answer) = greeting();
        desk.brief(reply, node("n1"), MARK, one());
        assert_eq!(refusal(&answer), Some(RefusalCode::Unavailable));
        let beaten = Arc::new(Mutex::new(0));
        let note = Arc::clone(&beaten);
        desk.brief(ReplyToNode::Heartbeat(Box::new(move |_| *note.lock().unwrap() += 1)), node("n1"), MARK, one());
        let mut sent = 0;
        writer.catch_up(|_, _| sent += 1);
        assert_eq!(sent, 2 * WAITING_ORDERS - 1);
        assert_eq!(*beaten.lock().unwrap(), 0, "it has no answer");
        // There is room again.
        let (reply, answer) = greeting();
        desk.brief(reply, node("n1"), MARK, one());
        desk.order(many(5));
        writer.catch_up(|_, _| sent += 1);
        assert_eq!(sent, 2 * WAITING_ORDERS + 4);
        assert!(answer.lock().unwrap().as_ref().is_some_and(|answer| answer.result.is_ok()));
    }

    /// A ledger that may no longer answer does not send the orders that it still holds.
    #[test]
    fn a_ledger_that_has_lost_its_place_sends_nothing() {
        let (desk, mut writer, fence, _folder) = writer(empty());
        let (reply, answer) = greeting();
        desk.order(many(2));
        desk.brief(reply, node("n1"), MARK, vec![Sketch::Ready(NodeOrder::Resume { part: part(1) })]);
        fence.lose(FenceError::AnotherWrites);
        writer.catch_up(|_, order| panic!("{order:?}"));
        assert_eq!(refusal(&answer), Some(RefusalCode::Unavailable));
    }

    /// The decide loop continues without an order writer.
    #[test]
    fn nobody_waits_for_a_writer_that_has_gone() {
        let (desk, writer, ..) = writer(empty());
        drop(writer);
        let (reply, answer) = greeting();
        desk.order(many(2));
        desk.brief(reply, node("n1"), MARK, vec![Sketch::Ready(NodeOrder::Resume { part: part(1) })]);
        assert_eq!(refusal(&answer), Some(RefusalCode::Unavailable));
    }
}
