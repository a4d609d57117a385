//! The relay between the executor of this process and the gateway.

use crate::{
    Config,
    cache::{Cache, may_pass},
    local::localised,
    server::Server,
    work::Work,
};
use anyhow::Context as _;
use muster_bus::{Message, Request, RequestStream, SharedBus};
use muster_client::ClientError;
use muster_names::User;
use muster_schemas::{
    PartId, RunId, Sequence, Timestamp,
    agent::{AgentPull, AgentReport, from_hex},
    command::{Answer, Command, CommandEnvelope, QueryAnswer, Refusal, RefusalCode, Reply},
    event::{EndCause, NodeExit, Owner, StopReason},
    job::Usage,
    node::{Briefing, Heartbeat, LaunchOrder, Mark, NodeOrder, OrderEnvelope},
    subjects,
    views::ErrorCode,
};
use nix::unistd::{Gid, Uid};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};
use tokio::{sync::watch, task::AbortHandle};

/// How soon a gateway that is away is asked again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// An order that the executor does not have after this time is handed to it again.
const HANDED_AGAIN: Duration = Duration::from_secs(5);
/// How often unused files are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(30);
/// Time from SIGTERM to SIGKILL when jobs end because the agent ends.
const END_GRACE_SECONDS: u32 = 5;
/// The most ends of parts that are remembered.
const MAX_ENDS: usize = 10_000;

/// The agent's side of the conversation.
#[derive(Clone, Debug)]
pub struct Relay(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: Config,
    server: Server,
    bus: SharedBus,
    work: Work,
    cache: Cache,
    account: Owner,
    state: Mutex<State>,
    /// The number of parts that are here.
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    parts: BTreeMap<PartId, Stage>,
    /// Parts whose end is being reported, or was.
    ends: BTreeMap<PartId, End>,
    boot_id: String,
    is_leaving: bool,
    is_ending: bool,
    was_accepted: bool,
    refusal: Option<String>,
    /// The highest epoch of a ledger whose orders came here.
    epoch: u64,
}

#[derive(Debug)]
enum Stage {
    /// Its folder is being made.
    Preparing(Option<AbortHandle>),
    /// The executor has its order since.
    Handed(Instant),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    BeingReported,
    Settled,
}

impl Relay {
    /// Serves the executor of `config.node` on a bus of this process, and continues what an earlier agent left.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub async fn start(bus: SharedBus, config: Config) -> anyhow::Result<Self> {
        let uid = Uid::effective();
        let user = User::numbered(uid.as_raw()).with_context(|| format!("user number {uid} has no name"))?.name;
        let relay = Self(Arc::new(Shared {
            server: Server::new(config.server.clone()),
            work: Work::open(config.folder.join("jobs"), config.max_archive_bytes)?,
            cache: Cache::open(config.folder.join("cache"), config.keep)?,
            account: Owner { user, uid: uid.as_raw(), gid: Gid::effective().as_raw() },
            state: Mutex::default(),
            count: watch::Sender::new(0),
            bus,
            config,
        }));
        let node = &relay.0.config.node;
        for subject in [subjects::command_node(node), subjects::heartbeat(node), subjects::HEAD.to_owned()] {
            let requests = relay.0.bus.serve(&subject).await?;
            tokio::spawn(relay.clone().serve(requests));
        }
        for (order, is_ready) in relay.0.work.found() {
            match is_ready {
                true => relay.note_handed(order.part),
                false => relay.prepare(order, true),
            }
        }
        tokio::spawn(relay.clone().tidy());
        Ok(relay)
    }

    /// The node takes no new job from now on (OAR-K-10).
    pub async fn leave(&self) {
        self.state().is_leaving = true;
        if let Err(error) = self.pull(BTreeSet::new(), None, None).await {
            tracing::warn!(%error, "the gateway does not know yet that this agent leaves");
        }
    }

    /// The jobs here are ended (OAR-K-10).
    pub async fn end_jobs(&self) {
        let mut handed = Vec::new();
        let mut preparing = Vec::new();
        {
            let mut state = self.state();
            (state.is_leaving, state.is_ending) = (true, true);
            for (part, stage) in &state.parts {
                match stage {
                    Stage::Preparing(task) => {
                        task.iter().for_each(AbortHandle::abort);
                        preparing.push(*part);
                    }
                    Stage::Handed(_) => handed.push(*part),
                }
            }
        }
        for part in preparing {
            self.clone().finish(part, never_ran(EndCause::Killed)).await;
        }
        for part in handed {
            let (reason, grace_seconds) = (StopReason::NodeLost, END_GRACE_SECONDS);
            self.order(NodeOrder::Stop { part, reason, grace_seconds }).await;
        }
    }

    /// Waits until no job is here, and the gateway knows how each has ended.
    pub async fn idle(&self) {
        let mut count = self.0.count.subscribe();
        // The sender lives as long as this.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    /// Why the gateway refuses this agent, if it has never accepted it.
    pub fn refusal(&self) -> Option<String> {
        let state = self.state();
        state.refusal.clone().filter(|_| !state.was_accepted)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_handed(&self, part: PartId) {
        let mut state = self.state();
        state.parts.insert(part, Stage::Handed(Instant::now()));
        self.0.count.send_replace(state.parts.len());
    }

    async fn tidy(self) {
        loop {
            tokio::time::sleep(TIDY_EVERY.min(self.0.config.keep.max(Duration::from_secs(1)))).await;
            self.0.cache.tidy(SystemTime::now());
        }
    }

    async fn serve(self, mut requests: RequestStream) {
        while let Some(request) = requests.next().await {
            let relay = self.clone();
            tokio::spawn(async move { relay.answer(request).await });
        }
    }

    /// A request that is dropped is sent again.
    async fn answer(&self, request: Request) {
        if request.subject == subjects::HEAD {
            return self.head(request).await;
        }
        if let Ok(beat) = request.message.decode::<Heartbeat>()
            && request.subject == subjects::heartbeat(&self.0.config.node)
        {
            self.state().boot_id = beat.boot_id;
            let known = beat.parts.into_iter().collect();
            return match self.pull(known, beat.highest_run, beat.as_of).await {
                Ok(briefing) => reply(request, &briefing),
                Err(error) => tracing::debug!(%error, "the gateway does not answer"),
            };
        }
        let Ok(CommandEnvelope { command, .. }) = request.message.decode() else { return };
        let result = match command {
            Command::NodeHello { boot_id, parts, highest_run, as_of } => {
                self.state().boot_id = boot_id;
                match self.pull(parts.into_iter().collect(), highest_run, as_of).await {
                    Ok(briefing) => Ok(Reply::NodeOrders(briefing)),
                    Err(ClientError::Refused(body)) => Err(Refusal::new(RefusalCode::PermissionDenied, body.message)),
                    Err(error) => return tracing::debug!(%error, "the gateway does not answer"),
                }
            }
            Command::NodeEnded { part, exit } => match self.ended(part, exit).await {
                true => Ok(Reply::Done),
                false => return,
            },
            // The start was reported when the order came.
            _ => Ok(Reply::Done),
        };
        reply(request, &Answer { sequence: Sequence(0), result });
    }

    async fn head(&self, request: Request) {
        let cluster = match self.0.server.cluster().await {
            Ok(cluster) => cluster,
            Err(error) => return self.note_refusal(&error),
        };
        let Some(cluster_id) = from_hex(&cluster.cluster).and_then(|bytes| bytes.try_into().ok()) else { return };
        let (first, last, last_hash) = (Sequence(1), Sequence(0), [0; 32]);
        let feature_level = cluster.feature_level;
        reply(request, &QueryAnswer::Head { last, first, cluster_id, last_hash, feature_level });
    }

    fn note_refusal(&self, error: &ClientError) {
        if error.is_refusal() && !error.is_unavailable() {
            self.state().refusal = Some(error.to_string());
        }
        tracing::warn!(%error, "the gateway does not answer");
    }

    /// Asks for orders. `known` is what the executor has.
    async fn pull(
        &self,
        known: BTreeSet<PartId>,
        highest_run: Option<RunId>,
        as_of: Option<Mark>,
    ) -> Result<Briefing, ClientError> {
        let Config { node, cores, memory_bytes, .. } = &self.0.config;
        let (pull, stale) = {
            let mut state = self.state();
            for part in &known {
                if !state.ends.contains_key(part) {
                    state.parts.entry(*part).or_insert_with(|| Stage::Handed(Instant::now()));
                }
            }
            self.0.count.send_replace(state.parts.len());
            let is_stale = |(part, stage): &(&PartId, &Stage)| {
                let is_old = matches!(stage, Stage::Handed(since) if since.elapsed() > HANDED_AGAIN);
                is_old && !known.contains(part) && !state.ends.contains_key(part)
            };
            let stale: Vec<PartId> = state.parts.iter().filter(is_stale).map(|(part, _)| *part).collect();
            let pull = AgentPull {
                host: node.clone(),
                boot_id: state.boot_id.clone(),
                is_leaving: state.is_leaving,
                cores: *cores,
                memory_bytes: *memory_bytes,
                parts: known.iter().chain(state.parts.keys()).copied().collect::<BTreeSet<_>>().into_iter().collect(),
                highest_run,
                as_of: as_of.map(Into::into),
            };
            (pull, stale)
        };
        let answer = self.0.server.pull(pull).await.inspect_err(|error| self.note_refusal(error))?;
        let epoch = answer.epoch;
        {
            let mut state = self.state();
            state.was_accepted = true;
            if epoch < state.epoch {
                // The ledger that sent it no longer leads. The executor says so.
                return Ok(Briefing { epoch, ..Briefing::default() });
            }
            state.epoch = epoch;
        }
        for part in stale {
            self.hand(part).await;
        }
        let mut orders = Vec::new();
        for order in answer.launch.iter().filter_map(|order| order.decode()) {
            orders.extend(self.launch(order));
        }
        for order in answer.kill.iter().filter_map(|order| order.decode()) {
            self.forget_preparing(&order);
            orders.push(order);
        }
        orders.extend(answer.other.iter().filter_map(|order| order.decode()));
        Ok(Briefing { mark: answer.mark.map(Into::into), orders, epoch })
    }

    /// A job to launch: its folder is made first. Returns the order if the executor had it before.
    fn launch(&self, order: NodeOrder) -> Option<NodeOrder> {
        let NodeOrder::Launch { order, .. } = order else { return None };
        let (is_leaving, is_handed, is_known) = {
            let state = self.state();
            let stage = state.parts.get(&order.part);
            let is_known = stage.is_some() || state.ends.contains_key(&order.part);
            (state.is_leaving, matches!(stage, Some(Stage::Handed(_))), is_known)
        };
        match (is_handed, is_known || is_leaving) {
            (true, _) => Some(self.local(&order)),
            (false, true) => None,
            (false, false) => {
                self.prepare(*order, false);
                None
            }
        }
    }

    fn local(&self, order: &LaunchOrder) -> NodeOrder {
        localised(order, &self.0.work.files(order.part), &self.0.account).into()
    }

    /// Makes the folder of a job in the background, then hands its order to the executor.
    fn prepare(&self, order: LaunchOrder, was_begun: bool) {
        let part = order.part;
        let mut state = self.state();
        state.parts.insert(part, Stage::Preparing(None));
        self.0.count.send_replace(state.parts.len());
        let relay = self.clone();
        let task = tokio::spawn(async move { relay.make_ready(order, was_begun).await });
        // The task may be further already: it waits for this lock.
        state.parts.insert(part, Stage::Preparing(Some(task.abort_handle())));
    }

    async fn make_ready(self, order: LaunchOrder, was_begun: bool) {
        let part = order.part;
        let work = self.0.work.clone();
        let kept = order.clone();
        let begun = blocking(move || if was_begun { Ok(()) } else { work.begin(&kept) }).await;
        let ready = match begun {
            Ok(()) => self.bring(&order).await,
            Err(error) => Err(error),
        };
        match ready {
            Ok(true) => {
                self.note_handed(part);
                self.hand(part).await;
            }
            Ok(false) => self.drop_part(part),
            Err(error) => {
                tracing::warn!(%part, error = format!("{error:#}"), "a job cannot be prepared");
                let why = format!("{error:#}").chars().take(500).collect();
                self.finish(part, never_ran(EndCause::LaunchFailed(why))).await;
            }
        }
    }

    /// Reports that the job is here, and brings its files. Returns whether the job still is to run.
    async fn bring(&self, order: &LaunchOrder) -> anyhow::Result<bool> {
        let part = order.part;
        let report = AgentReport { host: self.0.config.node.clone(), part, ended: None, output: None };
        if !self.tell(report).await {
            return Ok(false);
        }
        let archive = match &order.launch.stage_in {
            None => None,
            Some(wanted) => {
                let mut pause = FIRST_PAUSE;
                loop {
                    match self.0.cache.get(&self.0.server, part, wanted).await {
                        Err(error) if may_pass(&error) => wait(&mut pause).await,
                        fetched => break Some(fetched.context("the files of the job cannot be fetched")?),
                    }
                }
            }
        };
        let work = self.0.work.clone();
        blocking(move || work.fill(part, archive)).await.context("the folder of the job cannot be filled")?;
        Ok(true)
    }

    /// Hands an order to the executor, which obeys it once.
    async fn hand(&self, part: PartId) {
        if let Some(order) = self.0.work.order(part) {
            self.order(self.local(&order)).await;
        }
    }

    async fn order(&self, order: NodeOrder) {
        let epoch = self.state().epoch;
        let message = match Message::encode(&OrderEnvelope { order, epoch }) {
            Ok(message) => message,
            Err(error) => return tracing::error!(%error, "an order cannot be handed on"),
        };
        let subject = subjects::node_orders(&self.0.config.node);
        if let Err(error) = self.0.bus.publish(&subject, message).await {
            tracing::warn!(%error, "an order is lost; it comes again");
        }
    }

    /// An order to end a job that is being prepared prevents its start (OAR-K-09).
    fn forget_preparing(&self, order: &NodeOrder) {
        let NodeOrder::Stop { part, .. } = order else { return };
        let mut state = self.state();
        if let Some(Stage::Preparing(task)) = state.parts.get(part) {
            task.iter().for_each(AbortHandle::abort);
            state.parts.remove(part);
            self.0.count.send_replace(state.parts.len());
            self.0.work.remove(*part);
        }
    }

    /// The executor reports an end. Returns whether the gateway knows.
    async fn ended(&self, part: PartId, exit: NodeExit) -> bool {
        match self.state().ends.get(&part) {
            Some(End::Settled) => return true,
            Some(End::BeingReported) => return false,
            None => {}
        }
        // The executor may lose its patience; the report continues.
        let finishing = tokio::spawn(self.clone().finish(part, exit));
        finishing.await.is_ok()
    }

    /// Sends what a job has left, reports its end, and removes its folder.
    async fn finish(self, part: PartId, exit: NodeExit) {
        if self.state().ends.insert(part, End::BeingReported).is_some() {
            return;
        }
        let output = match exit.cause {
            // Whoever ends a job does not want its files (OAR-K-09).
            EndCause::Killed | EndCause::LaunchFailed(_) => None,
            _ => self.send_left(part).await,
        };
        let host = self.0.config.node.clone();
        let report = AgentReport { host, part, ended: Some(exit), output };
        self.tell(report).await;
        self.drop_part(part);
    }

    /// Nothing of a part is here any more.
    fn drop_part(&self, part: PartId) {
        self.0.work.remove(part);
        let mut state = self.state();
        if state.ends.len() >= MAX_ENDS {
            state.ends.retain(|_, end| *end == End::BeingReported);
        }
        state.ends.insert(part, End::Settled);
        state.parts.remove(&part);
        self.0.count.send_replace(state.parts.len());
    }

    /// Sends what a job has left. What cannot be sent is lost, and its job ends all the same.
    async fn send_left(&self, part: PartId) -> Option<muster_schemas::agent::AgentOutput> {
        let mut pause = FIRST_PAUSE;
        loop {
            let work = self.0.work.clone();
            let archive = match blocking(move || work.pack(part)).await {
                Ok(archive) => archive?,
                Err(error) => {
                    tracing::error!(%part, error = format!("{error:#}"), "the files of a job are lost");
                    return None;
                }
            };
            match self.0.server.send(part, archive).await {
                Ok(output) => return Some(output),
                Err(error) if error.may_pass() => wait(&mut pause).await,
                Err(error) => {
                    tracing::error!(%part, %error, "the files of a job are not taken");
                    return None;
                }
            }
        }
    }

    /// Reports until the gateway has it. Returns whether it still wanted to know.
    async fn tell(&self, mut report: AgentReport) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.0.server.report(report.clone()).await {
                Ok(()) => return true,
                Err(error) => error,
            };
            let part = report.part;
            match error.code() {
                Some(ErrorCode::NotFound) => return false,
                // The archive is not there as a whole.
                Some(ErrorCode::Conflict) if report.output.is_some() => report.output = self.send_left(part).await,
                Some(_) if !error.is_unavailable() && report.output.is_some() => {
                    tracing::error!(%part, %error, "the files of a job are not taken");
                    report.output = None;
                }
                Some(ErrorCode::Unavailable | ErrorCode::StorageFailed | ErrorCode::Unauthenticated) | None => {
                    tracing::debug!(%part, %error, "a report has not arrived");
                    wait(&mut pause).await;
                }
                Some(_) => {
                    tracing::warn!(%part, %error, "a report is refused");
                    return false;
                }
            }
        }
    }
}

fn never_ran(cause: EndCause) -> NodeExit {
    NodeExit { status: None, cause, usage: Usage::default(), started: None, ended: Timestamp::now() }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await.context("this agent ends")?
}

async fn wait(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(LONGEST_PAUSE);
}

fn reply<T: Serialize>(request: Request, answer: &T) {
    match Message::encode(answer) {
        Ok(message) => request.reply(message),
        Err(error) => tracing::error!(%error, "an answer cannot be handed on"),
    }
}
