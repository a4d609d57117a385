//! Backups of a running ledger, and their restore.
//!
//! A folder of backups has one folder for each:
//!
//! ```text
//! NAME/manifest.json      what the backup holds: written last, so a folder without it is no backup
//! NAME/ledger/log/        the log as it was at one moment
//! NAME/ledger/witness     the signed end of that log
//! NAME/ledger/snapshots/
//! NAME/ledger/archive/
//! NAME/ledger.key         only if it was asked for
//! NAME.draft/             a backup that was cut off; the next one removes it
//! ```
//!
//! So a backup is a data folder that can be verified where it is. Files that an earlier backup has are not copied again:
//! they are other names of the same file.

mod files;
mod make;
mod manifest;
mod point;
mod restore;

pub use make::{Made, Options, make};
pub use manifest::{Backups, Kept, Listed, Manifest, list};
pub(crate) use point::listen;
pub use restore::{Restored, restore};

use crate::{
    bundle::BundleError,
    log::LogError,
    storage::Storage,
    verify::{Progress, Verification},
};
use muster_schemas::ids::Sequence;
use std::path::Path;

/// What a backup or a restore is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Copying or checking files: bytes done, and bytes in all.
    Files(u64, u64),
    /// Verifying records: the last good one, and the last one there is.
    Records(Sequence, Sequence),
}

/// Verifies the log of a backup as `muster audit verify` does, from its first record or, if archives of earlier ones
/// were moved elsewhere, from the first that a snapshot precedes. Returns the first record that was verified.
///
/// # Errors
/// If it does not verify, or cannot be read.
fn verify(folder: &Path, progress: &mut dyn FnMut(Step)) -> anyhow::Result<Sequence> {
    let storage = Storage::open_read_only(folder)?;
    let from = first_to_verify(&storage)?;
    let tell = |report: &Progress| progress(Step::Records(report.verified, report.last));
    let report = Verification::begin(&storage, from)?.advance(&storage, u64::MAX, tell)?;
    match report.fault {
        Some(fault) => anyhow::bail!("after record {} of {}: {fault}", report.verified, report.last),
        None => Ok(from),
    }
}

fn first_to_verify(storage: &Storage) -> Result<Sequence, BundleError> {
    let first = storage.log()?.first()?;
    let mut next = Sequence(1);
    while let Some(archive) = storage.archives().holding(next).filter(|_| next < first) {
        next = archive.last.next();
    }
    if next >= first {
        return Ok(Sequence(1));
    }
    let usable = storage.snapshots().list().into_iter().find(|snapshot| snapshot.next() >= first);
    let missing = || LogError::Archived { sequence: next, folder: storage.archives().folder().to_owned() };
    Ok(usable.ok_or_else(missing)?.next())
}
