//! Archives that nobody needs any more are removed (OAR-K-08).

use crate::{agents::archives::Archives, reader::Reader};
use muster_bus::LedgerClient;
use muster_domain::State;
use muster_schemas::{
    JobId,
    command::{Query, QueryAnswer},
};
use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, SystemTime},
};

/// How often they are looked for.
const EVERY: Duration = Duration::from_secs(3_600);

/// Removes them from time to time.
pub(crate) async fn keep_tidy(archives: &Archives, reader: &Reader, ledger: &LedgerClient) {
    loop {
        let all = archives.clone();
        let unused = tokio::task::spawn_blocking(move || all.unused(SystemTime::now())).await.unwrap_or_default();
        for (uid, path) in unused {
            let is_needed = match uid {
                Some(uid) => is_needed(reader, ledger, uid, &path).await,
                None => false,
            };
            if !is_needed && let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!(%error, file = %path.display(), "an unused archive cannot be removed");
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Whether a job of the user that has not ended brings the archive. If that cannot be said, it counts as needed.
async fn is_needed(reader: &Reader, ledger: &LedgerClient, uid: u32, path: &Path) -> bool {
    let Some(sum) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let jobs: BTreeSet<JobId> = reader.projection().read(|state: &State| {
        let own = state.jobs().filter(|job| job.owner.uid == uid && !job.is_finished());
        own.map(|job| job.id.whole()).collect()
    });
    for job in jobs {
        match ledger.query(&Query::JobSpec { job }).await {
            Ok(QueryAnswer::JobSpec(spec)) => {
                let brings = |archive: &muster_schemas::job::StageIn| archive.sum == sum;
                if spec.components.iter().filter_map(|one| one.launch.stage_in.as_ref()).any(brings) {
                    return true;
                }
            }
            _ => return true,
        }
    }
    false
}
