//! One of several ledgers as a service: it follows until it leads, and follows again when it leads no longer.

use super::{
    close, copies, is_missing_or_empty, join, open, reign,
    reports::{Reporter, Standing},
};
use crate::{
    config::Config,
    fence::Fence,
    limits::TemplateLimits,
    log::{Head, Place, body::Body},
    notary::Notary,
    opened::Opened,
    replication::{Copies, Peers, Standby, Step, StreamFault},
    signing::Signer,
    storage::{Layout, StateAfter, Storage},
    tokens::JobTokens,
    witness::End as LogEnd,
};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use muster_bus::{
    Message, Request, SharedBus,
    rounds::{Keepers, Next, Position, Rounds},
};
use muster_schemas::{
    command::{Query, QueryAnswer, Refusal, RefusalCode},
    ids::Sequence,
    ledgers::LedgerRole,
    subjects,
    time::Timestamp,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
};
use tokio_util::sync::CancellationToken;

/// How long a ledger that follows waits for the next message before it looks whether it is to stop.
const WAIT: Duration = Duration::from_millis(100);
/// How long another ledger may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The largest page for another ledger.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// How often a ledger that leads looks which server leads the stream.
const STEER_EVERY: Duration = Duration::from_secs(10);
/// A ledger that lacks no more messages than this has caught up.
const FEW_MESSAGES: u64 = 16;
/// How often a ledger that has not read everything yet asks the stream for its end.
const ASK_FOR_LAG_EVERY: Duration = Duration::from_secs(1);
/// How often a stream that cannot be reached is asked again at the start.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What others are told of this ledger.
#[derive(Clone, Default)]
struct Told {
    standing: watch::Sender<Standing>,
    /// Up to where it has written its log while it follows.
    kept: watch::Sender<Option<Place>>,
}

/// A task that ends when this is dropped.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// While this ledger leads, keeps the lead of the stream off the server of its own host, which has the same name.
fn steer(mut keepers: Box<dyn Keepers>, name: String, told: Told) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut times = tokio::time::interval(STEER_EVERY);
        times.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            times.tick().await;
            if told.standing.borrow().role != LedgerRole::Leader {
                continue;
            }
            let (asked, host) = (keepers, name.clone());
            let asking = tokio::task::spawn_blocking(move || {
                let mut asked = asked;
                (asked.lead_elsewhere(&host), asked)
            });
            let Ok((outcome, back)) = asking.await else { return };
            keepers = back;
            match outcome {
                Ok(Some(server)) => {
                    tracing::info!(server, "another NATS server is to lead the stream than the one of this host");
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(error, "the lead of the stream cannot be moved now"),
            }
        }
    })
}

/// Runs one of several ledgers until `shutdown`; signals `ready` once it follows the stream. See
/// [`serve`](crate::serve).
///
/// # Errors
/// As [`serve`](crate::serve); also if the stream and the log do not belong together.
pub async fn serve_member(
    bus: SharedBus,
    config: Config,
    limits: Arc<dyn TemplateLimits>,
    rounds: Box<dyn Rounds>,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    config.check()?;
    let peers = Box::new(BusPeers { bus: Arc::clone(&bus), runtime: Handle::current() });
    let told = Told::default();
    let _steering = rounds.keepers().map(|keepers| AbortOnDrop(steer(keepers, config.name.clone(), told.clone())));
    let reporter = Reporter::start(&bus, &config.name, told.standing.clone());
    let copies = config.wait_for_standby.then(Copies::default);
    let talking = copies.as_ref().map(|copies| {
        let listening = copies::listen(Arc::clone(&bus), copies.clone());
        (AbortOnDrop(listening), AbortOnDrop(copies::tell(Arc::clone(&bus), told.kept.subscribe())))
    });
    let Some(begun) = begin(&config, rounds, peers, &shutdown).await? else { return Ok(()) };
    let storage = Arc::clone(&begun.0.storage);
    reporter.knows(&storage);
    let answering = answer_others(&bus, &config.name, &storage, &shutdown).await?;
    // Nobody waits if the receiver is gone.
    let _ = ready.send(());
    let outcome = follow_and_lead((&bus, &config, &limits), begun, (&told, copies), &shutdown).await;
    drop(talking);
    answering.abort();
    let _ = answering.await;
    reporter.stop().await;
    close(storage).await;
    outcome
}

/// Follows, leads, and follows again.
async fn follow_and_lead(
    (bus, config, limits): (&SharedBus, &Config, &Arc<dyn TemplateLimits>),
    (mut opened, mut rounds, mut peers): Begun,
    (told, copies): (&Told, Option<Copies>),
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let storage = Arc::clone(&opened.storage);
    let mut promoted = config.promoted;
    let mut holds_back = false;
    loop {
        let ends = (rounds, peers);
        let standby = Standby::new(opened, &config.name, ends, promoted.take(), Instant::now())?;
        let standby = if holds_back { standby.holding_back() } else { standby };
        let Followed::Leads(lead) = follow(standby, told.clone(), shutdown).await? else {
            return Ok(());
        };
        let (led, lead, others) = *lead;
        let lead = lead.with_copies(copies.clone());
        told.standing.send_replace(Standing { role: LedgerRole::Leader, epoch: lead.epoch(), lag: Some(0) });
        let over = reign((bus, config, limits), led, Some(lead), &mut None, shutdown).await?;
        holds_back = over.hands_over;
        match over.rounds {
            Some(stream) if over.follows && !shutdown.is_cancelled() => (rounds, peers) = (stream, others),
            _ => return over.outcome,
        }
        let (reopening, address) = (Arc::clone(&storage), config.public_address.clone());
        opened = tokio::task::spawn_blocking(move || open_again(reopening, address)).await??;
    }
}

type Begun = (Opened, Box<dyn Rounds>, Box<dyn Peers>);

/// Opens the data folder. A ledger without a log joins the cluster of the stream; on an empty stream it begins one.
async fn begin(
    config: &Config,
    rounds: Box<dyn Rounds>,
    peers: Box<dyn Peers>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<Begun>> {
    let (config, shutdown) = (config.clone(), shutdown.clone());
    tokio::task::spawn_blocking(move || begin_here(&config, rounds, peers, &shutdown)).await?
}

fn begin_here(
    config: &Config,
    mut rounds: Box<dyn Rounds>,
    mut peers: Box<dyn Peers>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Option<Begun>> {
    let restored = Layout::new(&config.data_dir).restored();
    if restored.exists() {
        bail!(
            "{} says that the log beside it was restored from a backup, which only a ledger without others can record: start it \
             once with `replication = \"alone\"` in `[ledger]`, and let it lead a new stream after that; nothing was changed",
            restored.display()
        );
    }
    if is_missing_or_empty(&Layout::new(&config.data_dir).log()) {
        loop {
            if shutdown.is_cancelled() {
                return Ok(None);
            }
            match first_record(&mut *rounds, &mut *peers) {
                Ok(Some(payload)) => {
                    let key = Layout::new(&config.data_dir).key();
                    if !key.exists() {
                        bail!(
                            "the stream {} has the history of a cluster, and this ledger has no key of it: copy the file `ledger.key` \
                             of another ledger of the cluster to {}, readable for the ledger alone, and start it again",
                            subjects::ROUNDS_STREAM,
                            key.display()
                        );
                    }
                    join(config, &payload)?;
                    break;
                }
                Ok(None) => break,
                Err(why) => {
                    tracing::warn!(why, "this ledger has no log yet, and waits for the stream of the others");
                    std::thread::sleep(ASK_AGAIN_AFTER);
                }
            }
        }
    }
    Ok(Some((open(config, Timestamp::now())?, rounds, peers)))
}

/// The first record of the cluster whose history the stream has; `None` if it is empty.
fn first_record(rounds: &mut dyn Rounds, peers: &mut dyn Peers) -> Result<Option<Vec<u8>>, String> {
    let info = rounds.info()?;
    if info.last == Position(0) {
        return Ok(None);
    }
    let message = match rounds.next(Position(info.first.0.saturating_sub(1)), WAIT) {
        Next::Message(_, message) => message,
        Next::Nothing | Next::Gone { .. } => return Err("the stream has no message at present".into()),
        Next::Strange(_, why) | Next::Unreachable(why) => return Err(why),
    };
    let page = match message.header.first {
        Sequence(1) => message.body,
        _ => peers.page(&message.header.ledger, Sequence(1))?,
    };
    let body = Body::read(&page).ok_or("the first record of the cluster cannot be read")?;
    body.records.first().map(|payload| Some(payload.to_vec())).ok_or_else(|| "the first record is missing".into())
}

/// What following has come to.
enum Followed {
    Stopped,
    Leads(Box<(Opened, crate::replication::Reign, Box<dyn Peers>)>),
}

/// Follows until this ledger leads, on a thread of its own.
async fn follow(standby: Standby, told: Told, shutdown: &CancellationToken) -> anyhow::Result<Followed> {
    let opened = standby.opened();
    let storage = Arc::clone(&opened.storage);
    let cluster_id = storage.identity()?.cluster_id;
    let signer: Arc<Signer> = Arc::clone(&opened.signer);
    storage.bear_witness(cluster_id, opened.head, LogEnd::Open, &signer).context("signing the end of the log")?;
    let (head_sender, head) = watch::channel(opened.head);
    let fence = Fence::of_the_writer();
    let witnessed = opened.head.sequence;
    let (written, signed_by) = (Arc::clone(&storage), Arc::clone(&signer));
    let notary = Notary { storage, signer, cluster_id, head, fence: fence.clone(), witnessed }
        .start()
        .context("starting the notary")?;
    let stop = shutdown.child_token();
    let (sender, mut followed) = oneshot::channel();
    std::thread::Builder::new()
        .name("muster-ledger".into())
        .spawn({
            let stop = stop.clone();
            move || drop(sender.send(follow_here(standby, &head_sender, &told, &stop)))
        })
        .context("starting the thread of a ledger that follows")?;
    let result = tokio::select! {
        result = &mut followed => result,
        error = fence.lost() => {
            stop.cancel();
            let _ = followed.await;
            return Err(error.into());
        }
    };
    let result = result.context("following the stream failed")?;
    notary.stop().await.context("signing the end of the log")?;
    let followed = result?;
    if let Followed::Leads(lead) = &followed {
        // The log is written on at once.
        written
            .bear_witness(cluster_id, lead.0.head, LogEnd::Open, &signed_by)
            .context("signing the end of the log")?;
    }
    Ok(followed)
}

fn follow_here(
    mut standby: Standby,
    head: &watch::Sender<Head>,
    told: &Told,
    stop: &CancellationToken,
) -> Result<Followed, StreamFault> {
    tracing::info!(last = %standby.head().sequence, "this ledger follows");
    let mut progress = Progress::default();
    loop {
        if stop.is_cancelled() {
            return Ok(Followed::Stopped);
        }
        let step = standby.step(Instant::now(), Timestamp::now(), WAIT)?;
        head.send_if_modified(|known| std::mem::replace(known, standby.head()) != standby.head());
        let present = progress.look(&mut standby, Instant::now());
        told.standing.send_if_modified(|known| std::mem::replace(known, present) != present);
        let place = standby.place();
        told.kept.send_if_modified(|known| std::mem::replace(known, place) != place);
        match step {
            Step::GoOn => {}
            Step::Wait(wait) => {
                // Messages are waited for where they come from.
                if wait <= WAIT {
                    std::thread::sleep(wait);
                }
            }
            Step::Leads => match standby.lead() {
                Ok(lead) => return Ok(Followed::Leads(Box::new(lead))),
                Err(back) => standby = *back,
            },
        }
    }
}

/// How far a ledger that follows has come.
#[derive(Default)]
struct Progress {
    has_caught_up: bool,
    lag: Option<u64>,
    /// When the stream was asked last.
    asked: Option<Instant>,
}

impl Progress {
    /// What the ledger does. The stream is asked for its end now and then, while there is always more to read.
    fn look(&mut self, standby: &mut Standby, now: Instant) -> Standing {
        if standby.is_at_end() {
            (self.has_caught_up, self.lag, self.asked) = (true, Some(0), Some(now));
        } else if self.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= ASK_FOR_LAG_EVERY) {
            (self.lag, self.asked) = (standby.lag(), Some(now));
            // Under load there is always something on its way.
            self.has_caught_up |= self.lag.is_some_and(|lag| lag <= FEW_MESSAGES);
        }
        let role = if self.has_caught_up { LedgerRole::Standby } else { LedgerRole::Joining };
        Standing { role, epoch: standby.epoch(), lag: self.lag }
    }
}

/// The log and the state at its end, after a reign.
fn open_again(storage: Arc<Storage>, public_address: Option<String>) -> anyhow::Result<Opened> {
    let head = storage.log()?.head()?;
    let StateAfter { state, .. } = storage.state_after(head.sequence)?;
    let signer = Arc::new(super::signer_of(&storage, &storage.identity()?)?);
    let tokens = Arc::new(JobTokens::new(&signer, public_address));
    Ok(Opened { storage, signer, tokens, state, head })
}

/// Answers the questions of other ledgers, whoever leads.
async fn answer_others(
    bus: &SharedBus,
    name: &str,
    storage: &Arc<Storage>,
    shutdown: &CancellationToken,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let mut requests = bus.serve(&subjects::ledger(name)).await.context("answering other ledgers")?;
    let (storage, shutdown) = (Arc::clone(storage), shutdown.clone());
    let max_bytes = MAX_PAGE_BYTES.min(bus.max_payload_bytes() / 2);
    Ok(tokio::spawn(async move {
        while let Some(Some(request)) = shutdown.run_until_cancelled(requests.next()).await {
            let storage = Arc::clone(&storage);
            let answer = move || answer_other(&storage, max_bytes, request);
            if let Err(error) = tokio::task::spawn_blocking(answer).await {
                tracing::error!(%error, "another ledger gets no answer");
            }
        }
    }))
}

fn answer_other(storage: &Storage, max_bytes: usize, request: Request) {
    let refused = |message: String| QueryAnswer::Refused(Refusal::new(RefusalCode::Invalid, message));
    let answer = match request.message.decode() {
        Ok(Query::Rounds { from, max_bytes: wanted }) => {
            let page = storage.log().and_then(|log| log.page_for_others(from, max_bytes.min(wanted as usize)));
            page.map_or_else(|error| refused(error.to_string()), QueryAnswer::Rounds)
        }
        Ok(_) => refused("this is asked of the ledger that leads".into()),
        Err(error) => refused(format!("the question cannot be understood: {error}")),
    };
    match Message::encode(&answer) {
        Ok(message) => request.reply(message),
        Err(error) => tracing::error!(%error, "another ledger gets no answer"),
    }
}

/// Other ledgers, over the bus.
struct BusPeers {
    bus: SharedBus,
    runtime: Handle,
}

impl Peers for BusPeers {
    fn page(&mut self, ledger: &str, from: Sequence) -> Result<Bytes, String> {
        let max_bytes = u32::try_from(MAX_PAGE_BYTES.min(self.bus.max_payload_bytes() / 2)).unwrap_or(u32::MAX);
        let question = Message::encode(&Query::Rounds { from, max_bytes }).map_err(|error| error.to_string())?;
        let subject = subjects::ledger(ledger);
        let asked = self.bus.request(&subject, question, ANSWER_WITHIN);
        let answer = self.runtime.block_on(asked).map_err(|error| error.to_string())?;
        match answer.decode() {
            Ok(QueryAnswer::Rounds(page)) => Ok(Bytes::from(page)),
            Ok(QueryAnswer::Refused(refusal)) => Err(refusal.message),
            Ok(_) => Err("it answers something else".into()),
            Err(error) => Err(error.to_string()),
        }
    }
}
