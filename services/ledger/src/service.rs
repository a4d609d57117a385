//! The ledger as a service.

mod copies;
mod member;
mod reports;

pub use member::serve_member;

use crate::{
    backup,
    beats::{self, Beats},
    checks::Checks,
    clock::Clock,
    config::{Config, Replication},
    contents::Contents,
    dispatch::OrderWriter,
    engine::Engine,
    fence::{Fence, FenceError, Guard},
    handle::EngineHandle,
    intake,
    keeper::Keeper,
    lead::Ended,
    limits::TemplateLimits,
    log::{Head, Identity, Log, LogError},
    names::Names,
    notary::Notary,
    opened::Opened,
    outbox::{self, Keys},
    queries::Queries,
    replication::Reign,
    restored, retention,
    signing::{self, Signer},
    storage::{Layout, StateAfter, Storage},
    tokens::JobTokens,
    witness::{self, End as LogEnd, Unsigned, Witness},
    work::{Work, own},
};
use anyhow::{Context as _, bail, ensure};
use muster_bus::{SharedBus, rounds::Rounds};
use muster_domain::nodes::Violation;
use muster_schemas::{
    cluster::ClusterChange,
    command::{Answer, Command, RefusalCode},
    event::{Actor, Event, Record, TraceContext, uuid_bytes::UuidBytes},
    ids::{CommandId, Sequence},
    time::Timestamp,
};
use std::{
    path::Path,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The most commands that wait for the decide loop; others must be repeated.
pub(crate) const WAITING_COMMANDS: usize = 4096;
/// How long a stop waits for the bus to get what it does not have yet.
const TELL_WITHIN: Duration = Duration::from_secs(3);
/// How long a stop waits for queries that are being answered.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// The pause before the configuration is offered again to a ledger that may not take it yet.
const CONFIGURE_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Runs the ledger until `shutdown`; signals `ready` once it answers. A clean stop signs the state. `limits` reads
/// those of job templates.
///
/// # Errors
/// If the data folder cannot be used: in use, damaged, from a newer program, another cluster's key; if the configured
/// cluster is refused; if the bus cannot be used or holds records that the log has lost, or another ledger answers
/// there. Also if another ledger took this one's place on the bus, or the decide loop ended by itself.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    limits: Arc<dyn TemplateLimits>,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    config.check()?;
    ensure!(config.replication == Replication::Alone, "`replication` is `stream`: this ledger is one of several");
    let opening = config.clone();
    let opened = tokio::task::spawn_blocking(move || open(&opening, Timestamp::now())).await??;
    let opened = restored::begin(&bus, opened).await?;
    let storage = Arc::clone(&opened.storage);
    let over = reign((&bus, &config, &limits), opened, None, &mut Some(ready), &shutdown).await?;
    close(storage).await;
    over.outcome
}

/// A reign that is over.
pub(crate) struct Over {
    /// Whether the service may continue, as a ledger that follows.
    pub(crate) follows: bool,
    /// Whether another ledger is to lead first.
    pub(crate) hands_over: bool,
    /// The stream of rounds, if there was one.
    pub(crate) rounds: Option<Box<dyn Rounds>>,
    /// The result of the service if it does not continue.
    pub(crate) outcome: anyhow::Result<()>,
}

/// Decides and serves until `shutdown`, or until this ledger leads no longer. `lead` is the reign of one of several.
pub(crate) async fn reign(
    (bus, config, limits): (&SharedBus, &Config, &Arc<dyn TemplateLimits>),
    opened: Opened,
    lead: Option<Reign>,
    ready: &mut Option<oneshot::Sender<()>>,
    shutdown: &CancellationToken,
) -> anyhow::Result<Over> {
    let (storage, signer, head) = (Arc::clone(&opened.storage), Arc::clone(&opened.signer), opened.head);
    let restored = opened.state.restored();
    let tokens = Arc::clone(&opened.tokens);
    let is_member = lead.is_some();
    let fence = Fence::of_epoch(opened.state.epoch(), lead.as_ref().map(|lead| lead.lease().clone()));
    // One of several has claimed its place already, and has to prove at once that it still leads.
    let entered = match is_member {
        false => Some(Guard::enter(bus, &storage, head.sequence, fence.clone()).await?),
        true => None,
    };
    let names_now = Names::of(&opened.state);

    let (outlets, inlets, letters) = outbox::channels(head, bus.losses(), fence.clone());
    let contents = Arc::new(Contents::default());
    let orders =
        OrderWriter::new(letters, Arc::clone(&storage), (Arc::clone(&tokens), Arc::clone(&contents)), fence.clone());
    let head_now = inlets.head.clone();
    let (inbox, work) = mpsc::sync_channel(WAITING_COMMANDS);
    let beats = Arc::new(Beats::new());
    let handle = EngineHandle::new(inbox, Arc::clone(&beats), head_now.clone(), fence.clone());
    let clock = Clock::new(head.time);
    let told = CancellationToken::new();
    let checks = Checks::new(Arc::clone(&storage), Arc::clone(limits), handle.clone(), told.clone());
    let engine = Engine::new(opened, Arc::clone(limits), clock, outlets, Arc::clone(&beats));
    let engine = match lead {
        Some(lead) => engine.leading(lead),
        None => engine,
    };
    let mut engine = run_engine(engine, work)?;

    let (guard, stream_end) = match entered {
        Some(entered) => entered,
        None => Guard::enter(bus, &storage, head.sequence, fence.clone()).await?,
    };
    restored::done(&storage).context("noting that the log was restored")?;
    let events_end = outbox::events_end(bus, &storage, head.sequence, restored).await?;
    let names = match events_end == head.sequence {
        true => names_now,
        false => names_at(&storage, events_end).await?,
    };
    let sources = (checks, orders, Keys::of(restored));
    let outbox = outbox::start(bus, &storage, inlets, sources, (guard, stream_end), (events_end, names), &told)
        .context("starting the ledger's order writer")?;
    let configured = configure(&handle, config.cluster.clone()).await;
    if !is_member {
        configured?;
    } else if let Err(error) = configured {
        tracing::warn!(error = format!("{error:#}"), "the configuration of the cluster is not applied");
    }

    let notary = Notary {
        storage: Arc::clone(&storage),
        signer: Arc::clone(&signer),
        cluster_id: storage.identity()?.cluster_id,
        head: head_now.clone(),
        fence: fence.clone(),
        witnessed: head.sequence,
    };
    let notary = notary.start().context("starting the ledger's notary")?;

    let queries = Queries::new(
        (Arc::clone(&storage), tokens),
        handle.clone(),
        head_now.clone(),
        fence.clone(),
        bus.max_payload_bytes(),
    );
    let queries = Arc::new(queries);
    let closing = shutdown.child_token();
    let intake = intake::start(bus, &fence, &handle, &queries, &contents, &closing).await?;
    let looking = tokio::spawn({
        let (bus, closing) = (Arc::clone(bus), closing.clone());
        async move { closing.run_until_cancelled(beats::look_after_bus(bus, &beats)).await }
    });
    let backups = backup::listen(&storage, &signer, &fence, &closing);
    let keeper = Keeper {
        storage: Arc::clone(&storage),
        signer,
        engine: handle.clone(),
        config: config.clone(),
        unsigned: Mutex::default(),
    };
    let keeper = tokio::spawn(keeper.run(head_now.clone(), closing.clone()));
    if let Some(ready) = ready.take() {
        // Nobody waits if the receiver is gone.
        let _ = ready.send(());
    }

    let end = tokio::select! {
        () = shutdown.cancelled() => End::Asked,
        error = fence.lost() => End::Fenced(error),
        ended = &mut engine => match ended {
            Ok(Err(violation)) => End::Violated(violation),
            Ok(Ok((ended, Some(rounds)))) => End::LeadsNoMore(ended, rounds),
            Ok(Ok(_)) | Err(_) => End::Unexpected,
        },
    };
    closing.cancel();
    intake.wait().await;
    keeper.await?;
    looking.await?;
    if let Some(backups) = backups {
        backups.wait().await;
    }
    if matches!(end, End::Violated(_) | End::Unexpected | End::Fenced(_) | End::LeadsNoMore(..)) {
        // The bus must get nothing more from this ledger.
        told.cancel();
    }
    let rounds = match end {
        End::Violated(violation) => return Err(LogError::Contradiction(violation).into()),
        End::Unexpected => bail!("the ledger's decide loop ended unexpectedly"),
        End::LeadsNoMore(ended, rounds) => {
            outbox.wait().await;
            let signed = notary.stop().await;
            return Ok(match ended {
                Ended::LogFailed(why) => {
                    let outcome = Err(anyhow::anyhow!("the log cannot be used: {why}"));
                    Over { follows: false, hands_over: false, rounds: None, outcome }
                }
                Ended::SteppedDown | Ended::HandsOver(_) | Ended::Stopped => Over {
                    follows: signed.is_ok(),
                    hands_over: matches!(ended, Ended::HandsOver(_)),
                    rounds: Some(rounds),
                    outcome: signed.context("signing the end of the log"),
                },
            });
        }
        End::Asked | End::Fenced(_) => {
            handle.stop();
            let (_, rounds) =
                engine.await.context("the ledger's decide loop failed")?.map_err(LogError::Contradiction)?;
            rounds
        }
    };
    if tokio::time::timeout(TELL_WITHIN, outbox.wait()).await.is_err() {
        tracing::info!("the bus will get the last records at the next start");
    }
    told.cancel();
    outbox.wait().await;
    let signed = notary.stop().await;
    drop(queries);
    Ok(match end {
        // Another of several ledgers writes the stream that readers follow: this one follows.
        End::Fenced(FenceError::AnotherWrites) if is_member => {
            Over { follows: true, hands_over: false, rounds, outcome: Ok(()) }
        }
        End::Fenced(error) => Over { follows: false, hands_over: false, rounds, outcome: Err(error.into()) },
        _ => {
            let outcome = signed.context("signing the end of the log");
            Over { follows: false, hands_over: false, rounds, outcome }
        }
    })
}

/// Why the decide loop has ended, and the stream of rounds if it had one.
type EngineEnd = (Ended, Option<Box<dyn Rounds>>);

/// Why the service ends.
enum End {
    /// It was asked to.
    Asked,
    /// Another ledger has taken its place on the bus.
    Fenced(FenceError),
    /// It is one of several, and leads no longer.
    LeadsNoMore(Ended, Box<dyn Rounds>),
    /// The decide loop decided something that cannot be true.
    Violated(Violation),
    /// The decide loop ended by itself.
    Unexpected,
}

/// Closes the log once the queries being answered have ended, so that another ledger can open it.
async fn close(storage: Arc<Storage>) {
    let deadline = tokio::time::Instant::now() + CLOSE_WITHIN;
    while Arc::strong_count(&storage) > 1 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Opens the data folder, with an initialised log, and computes the state at its end.
pub(crate) fn open(config: &Config, now: Timestamp) -> anyhow::Result<Opened> {
    let layout = Layout::new(&config.data_dir);
    let kept = retention::Commands::seconds(config.command_retention_seconds);
    let is_begun = is_missing_or_empty(&layout.log());
    if is_begun {
        // Before anything is created.
        refuse_beside_old(config, &layout)?;
        make_log(config, &layout, kept, now)?;
    }
    let storage = Storage::open_as_is(&config.data_dir, kept)?;
    if storage.log()?.identity()?.is_none() {
        // The first start of an older program was interrupted.
        begin(&*storage.log()?, config, &layout, now)?;
    } else if config.new_log && !is_begun {
        tracing::warn!("there is a log: --new-log has no effect, and is best left out");
    }
    let signer = signer_of(&storage, &storage.identity()?)?;
    let head = storage.log()?.head()?;
    heed_witness(&storage, config, head)?;
    let StateAfter { state, hash } = storage.state_after(head.sequence)?;
    ensure!(hash == head.hash, "record {} is not the one that the records before it lead to", head.sequence);
    storage
        .bear_witness(storage.identity()?.cluster_id, head, LogEnd::Open, &signer)
        .context("signing the end of the log")?;
    let tokens = Arc::new(JobTokens::new(&signer, config.public_address.clone()));
    Ok(Opened { storage: Arc::new(storage), signer: Arc::new(signer), tokens, state, head })
}

/// Refuses a log that contradicts its witness, and reports records that no signature covers.
fn heed_witness(storage: &Storage, config: &Config, head: Head) -> anyhow::Result<()> {
    let heeded = storage.witness().and_then(|witness| {
        let signed = witness.map_or(Sequence(0), |witness| witness.sequence);
        let log = storage.log()?;
        let unsigned = witness::unsigned(&log, signed, head.sequence)?;
        let objection = match unsigned.objection(head.time) {
            None => witness::not_indexed(&log, signed, head.sequence)?,
            objection => objection,
        };
        match objection {
            Some(detail) => Err(LogError::Witness { folder: log.folder().to_owned(), detail }),
            None => Ok(unsigned),
        }
    });
    match heeded {
        Ok(Unsigned { records, since: Some(since) }) => {
            tracing::warn!(records, %since, "no signature covers the last records, because the ledger was not stopped cleanly; continuing after them");
        }
        Ok(_) => {}
        Err(error @ LogError::Witness { .. }) if config.accept_log_end => {
            tracing::warn!(%error, "continuing from the present end of the log (--accept-log-end)");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub(crate) fn is_missing_or_empty(folder: &Path) -> bool {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Refuses to begin a log where there was one: its key, or another trace of a cluster, exists.
fn refuse_beside_old(config: &Config, layout: &Layout) -> anyhow::Result<()> {
    let traces = config.traces.iter().cloned().chain([layout.key()]);
    let found: Vec<String> = traces.filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    if config.new_log || found.is_empty() {
        return Ok(());
    }
    bail!(
        "there is no log in {}, but {} of an earlier one: the log was lost. Put it back from its backup; or, to begin a new cluster \
         that knows nothing of the old one and numbers its jobs from 1, start the ledger once with --new-log. Nothing was changed",
        layout.log().display(),
        found.join(", ")
    )
}

/// The key that an existing log was begun with.
pub(crate) fn signer_of(storage: &Storage, identity: &Identity) -> anyhow::Result<Signer> {
    let (key, log) = (storage.layout().key(), storage.layout().log());
    signing::adopt(&key, &identity.public_key)?;
    let (key_shown, log_shown) = (key.display(), log.display());
    if !key.try_exists().with_context(|| format!("the ledger's key {key_shown}"))? {
        bail!("the key {key_shown} of the log in {log_shown} is missing: put it back from its backup");
    }
    let signer = Signer::load(&key)?;
    ensure!(
        signer.public_key() == identity.public_key,
        "{key_shown} is not the key of the log in {log_shown}: put back the key that the log was begun with"
    );
    Ok(signer)
}

/// Creates a log under another name, and renames it once it has its first record: a first start that is killed leaves
/// either no log or a whole one. [`signer_of`] then puts its key in its place.
fn make_log(config: &Config, layout: &Layout, kept: retention::Commands, now: Timestamp) -> anyhow::Result<()> {
    make_log_with(layout, kept, |log| begin(log, config, layout, now))
}

/// Begins the log of a further ledger of a cluster with that cluster's first record, as another ledger has stored it. Its key
/// has to be there already: it is what makes this ledger one of the cluster.
pub(crate) fn join(config: &Config, payload: &[u8]) -> anyhow::Result<()> {
    let layout = Layout::new(&config.data_dir);
    let kept = retention::Commands::seconds(config.command_retention_seconds);
    make_log_with(&layout, kept, |log| take_first_record(log, &layout, payload))
}

/// Makes a log unless there is one: its content is written to a draft, which is renamed once it is complete.
fn make_log_with(
    layout: &Layout,
    kept: retention::Commands,
    write: impl FnOnce(&Log) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (log, draft) = (layout.log(), layout.log_draft());
    let in_use = || LogError::InUse(log.clone());
    // Of two that begin at once only one continues: it would remove what the other one creates.
    let Some(_only) = layout.lock_to_begin()? else { return Err(in_use().into()) };
    if !is_missing_or_empty(&log) {
        return Ok(());
    }
    let failed = || format!("making the log {}", log.display());
    match std::fs::remove_dir_all(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(failed),
        _ => {}
    }
    write(&Log::open(&draft, kept)?)?;
    std::fs::rename(&draft, &log).with_context(failed)?;
    crate::sync_folder_of(&log).with_context(failed)
}

/// Stores the first record of the cluster that this ledger joins.
fn take_first_record(log: &Log, layout: &Layout, payload: &[u8]) -> anyhow::Result<()> {
    let signer = Signer::load(&layout.key())?;
    let mut batch = log.batch(Head::EMPTY);
    let record = batch.append_stored(payload)?;
    let Event::ClusterInitialised { cluster_id, public_key } = record.event else {
        bail!("the first record of the cluster is none that begins a log");
    };
    ensure!(
        public_key == signer.public_key(),
        "{} is not the key of the cluster whose ledgers use this stream: put the file `ledger.key` of another ledger there",
        layout.key().display()
    );
    Witness::sign(cluster_id, batch.head(), LogEnd::Open, &signer)
        .store(&layout.witness())
        .context("signing the end of the log")?;
    batch.commit().map_err(|(error, _)| error)?;
    Ok(())
}

/// Begins a log: writes its first record. The witness exists before that: where there is a log, there is a witness. The
/// key stays a draft until the log is in its place: where there is a key, there was a log.
fn begin(log: &Log, config: &Config, layout: &Layout, now: Timestamp) -> anyhow::Result<()> {
    refuse_beside_old(config, layout)?;
    if !config.new_log && !config.accept_log_end {
        witness::check(Witness::load(&layout.witness()), log)?;
    }
    let signer = Signer::load_or_draft(&layout.key())?;
    initialise(log, layout, &signer, now)
}

/// Writes the first record.
fn initialise(log: &Log, layout: &Layout, signer: &Signer, now: Timestamp) -> anyhow::Result<()> {
    let cluster_id = UuidBytes(*uuid::Uuid::new_v4().as_bytes());
    let record = Record {
        sequence: Sequence(1),
        time: now,
        actor: Arc::new(Actor::Ledger),
        command: CommandId::new_now(),
        trace: TraceContext::default(),
        event: Event::ClusterInitialised { cluster_id, public_key: signer.public_key() },
        epoch: 0,
    };
    let mut batch = log.batch(Head::EMPTY);
    batch.append(&record, None)?;
    Witness::sign(cluster_id, batch.head(), LogEnd::Open, signer)
        .store(&layout.witness())
        .context("signing the end of the log")?;
    batch.commit().map_err(|(error, _)| error)?;
    Ok(())
}

async fn names_at(storage: &Arc<Storage>, sequence: Sequence) -> anyhow::Result<Names> {
    let storage = Arc::clone(storage);
    let after = tokio::task::spawn_blocking(move || storage.state_after(sequence)).await??;
    Ok(Names::of(&after.state))
}

/// Starts the decide loop on its own thread; the receiver resolves when the thread has ended, with an error if it
/// panicked.
fn run_engine(
    engine: Engine,
    work: mpsc::Receiver<Work>,
) -> anyhow::Result<oneshot::Receiver<Result<EngineEnd, Violation>>> {
    let (ended, end) = oneshot::channel();
    std::thread::Builder::new()
        .name("muster-ledger".into())
        .spawn(move || {
            let _ = ended.send(engine.run(&work));
        })
        .context("starting the ledger's decide loop")?;
    Ok(end)
}

async fn configure(engine: &EngineHandle, cluster: Option<ClusterChange>) -> anyhow::Result<()> {
    let Some(change) = cluster else { return Ok(()) };
    let command = Command::Configure { change: Box::new(change), keep_unnamed: true };
    loop {
        let (sender, answer) = oneshot::channel::<Answer>();
        engine.command(Box::new(own(command.clone())), Box::new(move |answer| drop(sender.send(answer))));
        let answer = answer.await.context("the ledger's decide loop ended")?;
        match answer.result {
            // The bus has just been interrupted.
            Err(refusal) if refusal.code == RefusalCode::Unavailable => tokio::time::sleep(CONFIGURE_AGAIN_AFTER).await,
            result => return result.map(drop).context("the configuration of the cluster is refused"),
        }
    }
}
