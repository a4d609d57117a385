//! The first start after a restore. The restore leaves a mark beside the log; the ledger then records that the log was
//! restored, empties the log stream, which may hold records of the lost history, and removes the mark.

use crate::{
    fence::{nobody_else_answers, patiently},
    hex,
    log::{Hash, Head},
    opened::Opened,
    storage::{Layout, Storage},
    witness::End,
};
use anyhow::{Context as _, ensure};
use muster_bus::{LogTail, SharedBus};
use muster_domain::runs::runs_after_restore;
use muster_schemas::{
    event::{Actor, Event, Record, TraceContext, uuid_bytes::UuidBytes},
    ids::{CommandId, Sequence},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{fs, io, sync::Arc};

/// The largest mark.
const MAX_BYTES: u64 = 4096;

/// The mark of a log that was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mark {
    /// The last record of the backup.
    pub(crate) to: Sequence,
    /// Its hash, in hexadecimal digits.
    pub(crate) hash: String,
    /// The id of the log from now on.
    pub(crate) log_id: uuid::Uuid,
    /// The name of the backup.
    pub(crate) backup: String,
}

impl Mark {
    /// A mark for a log that ends at a record.
    pub(crate) fn new(to: Sequence, hash: &Hash, backup: &str) -> Self {
        Self { to, hash: hex(hash), log_id: uuid::Uuid::new_v4(), backup: backup.to_owned() }
    }

    fn load(layout: &Layout) -> io::Result<Option<Self>> {
        use io::Read as _;
        let file = match crate::open_regular(&layout.restored()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text)?;
        Ok(Some(serde_json::from_slice(&text)?))
    }
}

/// Records that the log was restored, if it was and this is not recorded yet.
///
/// # Errors
/// If the mark does not fit the log, another ledger answers on the bus, or the record cannot be written.
pub(crate) async fn begin(bus: &SharedBus, opened: Opened) -> anyhow::Result<Opened> {
    let path = opened.storage.layout().restored();
    let found = Mark::load(opened.storage.layout());
    let Some(mark) = found.with_context(|| format!("reading {}", path.display()))? else { return Ok(opened) };
    let identity = opened.storage.identity()?;
    nobody_else_answers(bus, &identity).await?;
    let tail = patiently("finding the end of the log stream", || bus.log_tail()).await?;
    let lost_to = match tail {
        LogTail::Record { log, last, .. } if log == identity.cluster_id.0 && last > mark.to => Some(last),
        _ => None,
    };
    let opened = tokio::task::spawn_blocking(move || note(opened, &mark, lost_to)).await??;
    if tail != LogTail::Empty {
        // Readers get from the ledger what the log has, and the rest is lost.
        patiently("emptying the log stream", || bus.clear_log()).await?;
    }
    Ok(opened)
}

/// Removes the mark, once this ledger writes the log stream.
///
/// # Errors
/// If it cannot be removed.
pub(crate) fn done(storage: &Storage) -> io::Result<()> {
    let path = storage.layout().restored();
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| crate::sync_folder_of(&path)),
    }
}

fn note(mut opened: Opened, mark: &Mark, lost_to: Option<Sequence>) -> anyhow::Result<Opened> {
    let log_id = UuidBytes(mark.log_id.into_bytes());
    if opened.state.restored().is_some_and(|(_, known)| known == log_id) {
        return Ok(opened);
    }
    let Head { sequence, hash, time } = opened.head;
    ensure!(
        sequence == mark.to && hex(&hash) == mark.hash,
        "{} says that the log beside it was restored up to record {}, but that log ends at record {sequence}: it is not the \
         one that was restored. Restore it again; or, if you put it there, remove the file",
        opened.storage.layout().restored().display(),
        mark.to
    );
    let record = Record {
        sequence: sequence.next(),
        time: Timestamp::now().max(time),
        actor: Arc::new(Actor::Ledger),
        command: CommandId::new_now(),
        trace: TraceContext::default(),
        event: Event::LogRestored {
            to: mark.to,
            lost_to,
            log_id,
            backup: mark.backup.clone(),
            next_run: runs_after_restore(&opened.state),
        },
        epoch: 0,
    };
    let log = opened.storage.log()?;
    let mut batch = log.batch(opened.head);
    batch.append(&record, None)?;
    opened.head = batch.commit().map_err(|(error, _)| error)?;
    opened.state.apply(&record)?;
    let cluster_id = opened.storage.identity()?.cluster_id;
    opened
        .storage
        .bear_witness(cluster_id, opened.head, End::Open, &opened.signer)
        .context("signing the end of the log")?;
    tracing::warn!(
        to = %mark.to, backup = mark.backup, log = %mark.log_id,
        "the log was restored from a backup: what was recorded after it is lost, and this is recorded"
    );
    Ok(opened)
}
