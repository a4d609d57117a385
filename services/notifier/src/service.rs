//! The notifier as a service: takes notifications from the work queue and completes each.

use crate::{Config, DeliveryError, command, mail::Mailer, message};
use anyhow::Context as _;
use muster_bus::{LedgerClient, SharedBus, WorkItem, WorkQueue};
use muster_dialect::Dialects;
use muster_schemas::{
    CommandId, Timestamp,
    command::{Command, CommandEnvelope},
    event::{Actor, DeliveryResult},
    job::Sink,
    notify::NotifyItem,
};
use muster_telemetry::{
    metrics::{self, Counter, KeyValue},
    trace,
};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{sync::Semaphore, sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

static ATTEMPTS: LazyLock<Counter<u64>> = LazyLock::new(|| {
    metrics::counter("muster_notification_attempts_total", "Attempts to deliver a notification, by sink and result.")
});

/// Delivers notifications until `shutdown`. It aborts deliveries in progress then, and the next worker on the queue
/// repeats them. `ready` is told once the notifier takes items.
///
/// # Errors
/// The settings for mail cannot be used, or the bus is closed.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    dialects: Dialects,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mailer = Mailer::new(&config.mail, config.supervisor.clone()).context("mail cannot be sent")?;
    let slots = Arc::new(Semaphore::new(config.max_deliveries.clamp(1, 1000)));
    let mut items = bus.worker(&WorkQueue::NOTIFY).await.context("the notifier cannot work on its queue")?;
    let notifier = Arc::new(Notifier { ledger: LedgerClient::new(bus), mailer, config, dialects });
    let _ = ready.send(());
    let mut deliveries = JoinSet::new();
    let work = async {
        loop {
            // The semaphore is never closed.
            let Ok(slot) = slots.clone().acquire_owned().await else { break };
            let Some(item) = items.next().await else { break };
            let notifier = notifier.clone();
            deliveries.spawn(async move {
                notifier.work_on(item).await;
                drop(slot);
            });
            while deliveries.try_join_next().is_some() {}
        }
    };
    shutdown.run_until_cancelled(work).await;
    Ok(())
}

/// The claim on an item is renewed this often, well before the queue would give it to another worker.
const CLAIM_EVERY: Duration = Duration::from_secs(10);

struct Notifier {
    ledger: LedgerClient,
    mailer: Mailer,
    config: Config,
    /// Provides the subjects of mail.
    dialects: Dialects,
}

impl Notifier {
    async fn work_on(&self, work: WorkItem) {
        match work.message.decode::<NotifyItem>() {
            Ok(item) => {
                let span = trace::in_trace(tracing::debug_span!("notify", job = %item.job), work.message.trace);
                self.work_on_item(work, item).instrument(span).await;
            }
            Err(error) => {
                tracing::error!(key = work.key, %error, "dropping a notification that cannot be read");
                acknowledge(work).await;
            }
        }
    }

    async fn work_on_item(&self, work: WorkItem, item: NotifyItem) {
        let mut claims = tokio::time::interval(CLAIM_EVERY);
        let mut ending = std::pin::pin!(self.bring_to_end(&item, work.deliveries));
        let end = loop {
            tokio::select! {
                end = &mut ending => break end,
                _ = claims.tick() => {
                    if let Err(error) = work.in_progress().await {
                        tracing::debug!(job = %item.job, %error, "the notification may be delivered twice");
                    }
                }
            }
        };
        match end {
            End::Told => acknowledge(work).await,
            End::Again(pause) => {
                if let Err(error) = work.retry_after(pause).await {
                    tracing::debug!(job = %item.job, %error, "the notification will come again by itself");
                }
            }
        }
    }

    /// Makes one attempt to deliver and tells the ledger the result, unless there will be another attempt.
    async fn bring_to_end(&self, item: &NotifyItem, attempts: u64) -> End {
        let result = match self.deliver(item).await {
            Ok(()) => {
                count(item, "delivered");
                DeliveryResult::Delivered
            }
            Err(error) => {
                let (pause, result) = match &error {
                    DeliveryError::Permanent(_) => (None, "refused"),
                    DeliveryError::Temporary(_) => {
                        (self.pause(item, attempts).filter(|_| !item.is_tried_once), "failed")
                    }
                };
                count(item, result);
                tracing::info!(job = %item.job, attempts, ?pause, "a notification was not delivered: {error}");
                if let Some(pause) = pause {
                    return End::Again(pause);
                }
                let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
                DeliveryResult::GivenUp { attempts, error: shortened(error.to_string()) }
            }
        };
        self.tell(item, result).await;
        End::Told
    }

    async fn deliver(&self, item: &NotifyItem) -> Result<(), DeliveryError> {
        if let Some(program) = &item.program {
            if Timestamp::now() >= program.until {
                return Err(DeliveryError::Permanent("the order is too old: the program was not run".into()));
            }
            let order = command::of_site(item, program)?;
            return command::run(&self.config.supervisor, &order, self.config.command.max_output_bytes).await;
        }
        match &item.sink {
            Sink::Mail(address) => {
                let subject = message::subject(item, self.dialects);
                self.mailer.send(item, &subject, address).await
            }
            Sink::Exec(text) => {
                let order = command::of_owner(&self.config.command, item, text)?;
                command::run(&self.config.supervisor, &order, self.config.command.max_output_bytes).await
            }
        }
    }

    fn pause(&self, item: &NotifyItem, attempts: u64) -> Option<Duration> {
        let age = u64::try_from(Timestamp::now().micros_since(item.time)).unwrap_or(0);
        self.config.retry.pause(attempts, Duration::from_micros(age), rand::random())
    }

    /// Tells the ledger until it has answered: a delivery that it does not know of would be repeated.
    async fn tell(&self, item: &NotifyItem, result: DeliveryResult) {
        let envelope = CommandEnvelope {
            id: CommandId::derived(&[b"notification", item.key().as_bytes()]),
            actor: Actor::Notifier,
            trace: trace::current_context().unwrap_or_default(),
            command: Command::NotificationDone {
                job: item.job,
                of: item.of,
                notification: item.notification,
                occasion: item.occasion,
                result,
            },
        };
        loop {
            match self.ledger.send(&envelope).await.map(|answer| answer.result) {
                Ok(Ok(_)) => return,
                Ok(Err(refusal)) => {
                    return tracing::warn!(job = %item.job, "the ledger does not record a notification: {refusal}");
                }
                Err(error) => tracing::warn!(job = %item.job, %error, "telling the ledger of a notification again"),
            }
        }
    }
}

/// What happens to an item.
enum End {
    /// The ledger knows the result.
    Told,
    /// There is another attempt after this pause.
    Again(Duration),
}

async fn acknowledge(work: WorkItem) {
    let key = work.key.clone();
    if let Err(error) = work.ack().await {
        tracing::debug!(key, %error, "a notification that is done comes once more");
    }
}

fn count(item: &NotifyItem, result: &'static str) {
    let sink = match item.sink {
        _ if item.program.is_some() => "program",
        Sink::Mail(_) => "mail",
        Sink::Exec(_) => "exec",
    };
    ATTEMPTS.add(1, &[KeyValue::new("sink", sink), KeyValue::new("result", result)]);
}

/// The most bytes of an error in the log.
const MAX_ERROR_BYTES: usize = 4096;

fn shortened(mut error: String) -> String {
    let end = (0..=MAX_ERROR_BYTES.min(error.len())).rev().find(|end| error.is_char_boundary(*end));
    error.truncate(end.unwrap_or(0));
    error
}
