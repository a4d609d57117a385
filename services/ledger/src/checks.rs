//! Checks of jobs that no filter judges. They are made here, so that a cluster without filters needs no filter-runner,
//! but outside the decide loop, since a dialect takes long to check a large description.

use crate::{
    calls::{self, Offer},
    handle::EngineHandle,
    limits::TemplateLimits,
    storage::Storage,
    work::own,
};
use muster_schemas::{
    command::{Answer, CallOutcome, CallReport, Command, RefusalCode},
    filter_order::{FilterOrder, FilterWork},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// The number of checks made at a time.
const AT_A_TIME: usize = 4;
/// The pause before a result that the decide loop could not take is sent to it again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Makes checks.
#[derive(Clone)]
pub(crate) struct Checks {
    storage: Arc<Storage>,
    limits: Arc<dyn TemplateLimits>,
    engine: EngineHandle,
    permits: Arc<Semaphore>,
    /// Ends calls that are still open. A ledger that starts offers every call again.
    stop: CancellationToken,
}

impl Checks {
    pub(crate) fn new(
        storage: Arc<Storage>,
        limits: Arc<dyn TemplateLimits>,
        engine: EngineHandle,
        stop: CancellationToken,
    ) -> Self {
        Self { storage, limits, engine, permits: Arc::new(Semaphore::new(AT_A_TIME)), stop }
    }

    /// Begins the checks that need no runner. The remaining offers are for runners.
    pub(crate) fn take(&self, offers: Vec<Offer>) -> Vec<Offer> {
        let makes_any = self.limits.makes_checks();
        let (own, rest): (Vec<Offer>, Vec<Offer>) =
            offers.into_iter().partition(|offer| makes_any && offer.seed.is_lone_check());
        for offer in own {
            let (checks, stop) = (self.clone(), self.stop.clone());
            tokio::spawn(async move { stop.run_until_cancelled(checks.make(offer)).await });
        }
        rest
    }

    async fn make(self, offer: Offer) {
        let Ok(_permit) = self.permits.acquire().await else { return };
        let (storage, limits) = (Arc::clone(&self.storage), Arc::clone(&self.limits));
        match tokio::task::spawn_blocking(move || check(&storage, &*limits, offer)).await {
            Ok(Some(report)) => self.tell(report).await,
            // The log already has the reason.
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "a job could not be checked"),
        }
    }

    /// Tells the decide loop until it accepts the report.
    async fn tell(&self, report: CallReport) {
        let call = report.call;
        let envelope = own(Command::ReportCalls { reports: vec![report], has_others: false });
        loop {
            let (sender, answer) = oneshot::channel::<Answer>();
            self.engine.command(Box::new(envelope.clone()), Box::new(move |answer| drop(sender.send(answer))));
            match answer.await.map(|answer| answer.result) {
                Ok(Ok(_)) | Err(_) => return,
                Ok(Err(refusal)) if refusal.code == RefusalCode::Unavailable => tokio::time::sleep(AGAIN_AFTER).await,
                Ok(Err(refusal)) => {
                    tracing::error!(%call, "what the check of a job came to is refused: {refusal}");
                    return;
                }
            }
        }
    }
}

/// The result of a check; `None` if its records cannot be read.
fn check(storage: &Storage, limits: &dyn TemplateLimits, offer: Offer) -> Option<CallReport> {
    let order = storage.log().and_then(|log| calls::complete(offer.seed, &log));
    let FilterOrder { call, attempt, job, work } = match order {
        Ok(order) => order,
        Err(error) => {
            tracing::error!(%error, key = offer.key, "the check of a job cannot be made up");
            return None;
        }
    };
    let FilterWork::Validate { templates, default_template, now } = work else { return None };
    let outcome = match limits.check(&job, &templates, default_template.as_deref(), now) {
        Ok(validated) => CallOutcome::Validated(Box::new(validated)),
        Err(why) => CallOutcome::Refused(why),
    };
    Some(CallReport { call, attempt, outcome })
}
