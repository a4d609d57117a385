//! What one of several ledgers reports of itself, for people who look after them.

use crate::storage::Storage;
use muster_bus::{Message, SharedBus};
use muster_schemas::{
    ids::Sequence,
    ledgers::{LedgerReport, LedgerRole},
    subjects,
};
use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle, time::MissedTickBehavior};

/// How often it reports, besides at each change of what it does.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// What a ledger does at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) role: LedgerRole,
    pub(crate) epoch: u64,
    pub(crate) lag: Option<u64>,
}

/// Reports until it is stopped.
pub(crate) struct Reporter {
    bus: SharedBus,
    name: String,
    standing: watch::Sender<Standing>,
    /// Its log, once there is one. Whoever closes it need not wait for reports.
    storage: Arc<OnceLock<Weak<Storage>>>,
    task: JoinHandle<()>,
}

impl Reporter {
    /// Reports from now on what `standing` says.
    pub(crate) fn start(bus: &SharedBus, name: &str, standing: watch::Sender<Standing>) -> Self {
        let (bus, name, storage) = (Arc::clone(bus), name.to_owned(), Arc::default());
        let task = tokio::spawn(report(Arc::clone(&bus), name.clone(), Arc::clone(&storage), standing.subscribe()));
        Self { bus, name, standing, storage, task }
    }

    /// Reports the end of this log too.
    pub(crate) fn knows(&self, storage: &Arc<Storage>) {
        // The first one stays: there is only one.
        let _ = self.storage.set(Arc::downgrade(storage));
    }

    /// The last report: this ledger stops.
    pub(crate) async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
        let standing = Standing { role: LedgerRole::Stopped, lag: None, ..*self.standing.borrow() };
        tell(&self.bus, &self.name, &self.storage, standing).await;
    }
}

async fn report(
    bus: SharedBus,
    name: String,
    storage: Arc<OnceLock<Weak<Storage>>>,
    mut standing: watch::Receiver<Standing>,
) {
    let mut times = tokio::time::interval(REPORT_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = times.tick() => {}
            changed = standing.changed() => if changed.is_err() { return },
        }
        let now = *standing.borrow_and_update();
        tell(&bus, &name, &storage, now).await;
    }
}

async fn tell(bus: &SharedBus, name: &str, storage: &OnceLock<Weak<Storage>>, standing: Standing) {
    let storage = storage.get().and_then(Weak::upgrade);
    let head = move || storage.and_then(|storage| storage.log().ok()?.head().ok());
    let head = tokio::task::spawn_blocking(head).await.ok().flatten();
    let Standing { role, epoch, lag } = standing;
    let last = head.map_or(Sequence(0), |head| head.sequence);
    let report = LedgerReport { name: name.to_owned(), role, epoch, last, lag };
    let told = match Message::encode(&report) {
        Ok(message) => bus.publish(&subjects::ledger_report(name), message).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = told {
        // The next report follows soon.
        tracing::debug!(error, "a report of this ledger is lost");
    }
}
