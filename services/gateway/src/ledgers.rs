//! What several ledgers that keep one history report of themselves. It is heard over the bus all the time, so that it can
//! be told also while none of them leads.

use muster_bus::{BusError, Published, SharedBus};
use muster_schemas::{
    Timestamp,
    ledgers::{LedgerReport, LedgerRole, LedgerView, LedgersPage, MAX_LEDGER_NAME_BYTES},
    subjects,
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// A ledger that reports nothing for this long has stopped. It reports once a second.
const SILENT_AFTER: Duration = Duration::from_secs(5);
/// After this time each ledger that there is has reported.
const ALL_REPORT_WITHIN: Duration = Duration::from_millis(1500);
/// No cluster has more.
const MOST_LEDGERS: usize = 64;
/// The pause before listening is tried again.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The last report of each ledger.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    reports: Mutex<BTreeMap<String, Heard>>,
    /// Since when reports are heard.
    listening: watch::Sender<Option<Instant>>,
}

#[derive(Clone, Debug)]
struct Heard {
    report: LedgerReport,
    at: Instant,
    time: Timestamp,
}

impl Ledgers {
    /// Hears reports for ever.
    pub(crate) async fn listen(&self, bus: &SharedBus) {
        loop {
            match bus.subscribe(subjects::LEDGER_REPORTS).await {
                Ok(mut reports) => {
                    self.listening.send_if_modified(|since| {
                        let is_first = since.is_none();
                        *since = since.or(Some(Instant::now()));
                        is_first
                    });
                    while let Some(published) = reports.next().await {
                        self.note(&published, Instant::now(), Timestamp::now());
                    }
                }
                Err(BusError::Closed) => return,
                Err(error) => tracing::debug!(%error, "reports of ledgers cannot be heard yet"),
            }
            tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
        }
    }

    /// The ledgers as they have reported, once all of them can have done so.
    pub(crate) async fn page(&self) -> LedgersPage {
        let mut listening = self.listening.subscribe();
        let since = listening.wait_for(Option::is_some);
        // A bus that lets nobody listen shows no ledgers.
        let since = tokio::time::timeout(ALL_REPORT_WITHIN, since).await;
        let since = since.ok().and_then(|since| since.ok().and_then(|since| *since));
        if let Some(since) = since {
            tokio::time::sleep_until((since + ALL_REPORT_WITHIN).into()).await;
        }
        self.page_at(Instant::now())
    }

    fn page_at(&self, now: Instant) -> LedgersPage {
        let view = |Heard { report, at, time }: &Heard| {
            let is_silent = now.saturating_duration_since(*at) >= SILENT_AFTER;
            let LedgerReport { name, role, epoch, last, lag } = report.clone();
            let (role, lag) = if is_silent { (LedgerRole::Stopped, None) } else { (role, lag) };
            LedgerView { name, role, epoch, last, lag, reported: *time }
        };
        LedgersPage { ledgers: self.reports().values().map(view).collect() }
    }

    fn note(&self, published: &Published, now: Instant, time: Timestamp) {
        let Ok(report) = published.message.decode::<LedgerReport>() else {
            return tracing::debug!(subject = published.subject, "a report of a ledger cannot be understood");
        };
        if report.name.is_empty()
            || report.name.len() > MAX_LEDGER_NAME_BYTES
            || subjects::ledger_report(&report.name) != published.subject
        {
            return tracing::warn!(subject = published.subject, "a ledger reports under another name");
        }
        let mut reports = self.reports();
        if reports.len() >= MOST_LEDGERS && !reports.contains_key(&report.name) {
            let oldest = reports.iter().min_by_key(|(_, heard)| heard.at).map(|(name, _)| name.clone());
            oldest.and_then(|name| reports.remove(&name));
        }
        reports.insert(report.name.clone(), Heard { report, at: now, time });
    }

    fn reports(&self) -> MutexGuard<'_, BTreeMap<String, Heard>> {
        // Each report is complete.
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_bus::Message;
    use muster_schemas::Sequence;

    fn published(name: &str, subject: &str) -> Published {
        let (role, last) = (LedgerRole::Standby, Sequence(7));
        let report = LedgerReport { name: name.to_owned(), role, epoch: 3, last, lag: Some(1) };
        Published { subject: subjects::ledger_report(subject), message: Message::encode(&report).unwrap() }
    }

    /// M-LOG-19: a ledger that no longer reports has stopped, and none speaks for another one.
    #[test]
    fn silent_ledgers_have_stopped() {
        let (ledgers, now) = (Ledgers::default(), Instant::now());
        ledgers.note(&published("head1", "head1"), now, Timestamp(1));
        ledgers.note(&published("head2", "head2"), now + SILENT_AFTER / 2, Timestamp(2));
        ledgers.note(&published("head3", "head2"), now, Timestamp(3));
        let damaged = Published { subject: subjects::ledger_report("head4"), message: Message::new("?") };
        ledgers.note(&damaged, now, Timestamp(4));
        let page = ledgers.page_at(now + SILENT_AFTER);
        let told: Vec<_> = page.ledgers.iter().map(|ledger| (&ledger.name[..], ledger.role, ledger.lag)).collect();
        assert_eq!(told, [("head1", LedgerRole::Stopped, None), ("head2", LedgerRole::Standby, Some(1))]);
    }

    #[test]
    fn the_number_of_ledgers_is_bounded() {
        let (ledgers, now) = (Ledgers::default(), Instant::now());
        for number in 0..MOST_LEDGERS as u32 * 2 {
            let name = format!("head{number}");
            ledgers.note(&published(&name, &name), now + Duration::from_millis(number.into()), Timestamp(1));
        }
        let page = ledgers.page_at(now);
        assert_eq!(page.ledgers.len(), MOST_LEDGERS);
        assert!(page.ledgers.iter().all(|ledger| ledger.name != "head0"));
    }
}
