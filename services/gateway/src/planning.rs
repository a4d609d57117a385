//! The planner's view of the present, kept between queries: building it from the state takes longer than most answers.

use crate::{error::ApiError, reader::Reader};
use muster_domain::State;
use muster_planner::projection::Projection;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

/// The most bytes of records by which it is updated. With more, building it from the state is faster.
const PAGE_BYTES: u32 = 1 << 20;
/// How long it is kept after a query.
const KEEP_TIME: Duration = Duration::from_secs(30);

/// The planner's projection of the present state. It is not updated while nobody asks.
#[derive(Default)]
pub(crate) struct Planning {
    /// With the time of its last use. A request that updates it holds the lock, and others wait for it.
    kept: Mutex<Option<(Instant, Arc<Projection>)>>,
}

impl Planning {
    /// The projection of the reader's present state. Answers use it as it is now: if it is updated meanwhile, they keep
    /// their own copy.
    pub(crate) async fn now(&self, reader: &Reader) -> Result<Arc<Projection>, ApiError> {
        let mut kept = self.kept.lock().await;
        let projection = match kept.take() {
            Some((_, projection)) => bring_forward(projection, reader).await?,
            None => None,
        };
        let projection = match projection {
            Some(projection) => projection,
            None => {
                let state = reader.projection().read(State::clone);
                work(|| Arc::new(Projection::of(state))).await?
            }
        };
        *kept = Some((Instant::now(), projection.clone()));
        Ok(projection)
    }

    /// Drops the projection when nobody has asked for it lately.
    pub(crate) async fn forget(&self) {
        loop {
            tokio::time::sleep(KEEP_TIME).await;
            let mut kept = self.kept.lock().await;
            kept.take_if(|(asked, _)| asked.elapsed() >= KEEP_TIME);
        }
    }
}

/// The projection updated to the reader's last record; `None` if the records are too many or unavailable.
async fn bring_forward(mut projection: Arc<Projection>, reader: &Reader) -> Result<Option<Arc<Projection>>, ApiError> {
    let known = projection.state().sequence();
    let target = reader.projection().sequence();
    if known == target {
        return Ok(Some(projection));
    }
    let Ok(records) = reader.replay(known.next(), PAGE_BYTES).await else { return Ok(None) };
    if records.last().is_none_or(|last| last.sequence < target) {
        return Ok(None);
    }
    let followed = work(move || {
        let following = Arc::make_mut(&mut projection);
        for record in records.iter().take_while(|record| record.sequence <= target) {
            if let Err(violation) = following.apply(record) {
                tracing::error!(%violation, "what the planner would do is found out from the beginning");
                return None;
            }
        }
        Some(projection)
    });
    followed.await
}

/// Runs slow work on a blocking thread.
pub(crate) async fn work<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::unavailable("the gateway is stopping"))
}
