//! Exporting the log for people who do not trust this program; see [`crate::bundle`].

use crate::{
    archive::Archives,
    bundle::{BundleError, Writer},
    log::{Hash, LogError, NO_HASH},
    signing::Signer,
    storage::Storage,
    verify::Verification,
};
use muster_schemas::ids::Sequence;
use std::{io::Write, path::Path};

/// Facts about an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The first record.
    pub first: Sequence,
    /// The last record.
    pub last: Sequence,
    /// Whether the bundle is signed; it is if the cluster's key can be read.
    pub signed: bool,
}

/// Writes the records of a data folder from `first` to `last` (0: to the end) as a bundle, even while a ledger is
/// running. Archived records come from the archives. If the bundle is signed, the history was verified from `first` on.
///
/// # Errors
/// If a record is missing or damaged, or the output fails; [`BundleError::Unverified`] if the bundle would be signed
/// but the history does not verify.
pub fn export(
    data_dir: &Path,
    first: Sequence,
    last: Sequence,
    output: impl Write,
    mut progress: impl FnMut(Sequence),
) -> Result<Exported, BundleError> {
    let storage = Storage::open_read_only(data_dir)?;
    let head = storage.log()?.head()?.sequence;
    let first = Sequence(first.0.max(1));
    let last = if last.0 == 0 { head } else { Sequence(last.0.min(head.0)) };
    if first > last {
        return Err(BundleError::NoSuchRange { first, last, head });
    }
    let identity = storage.identity()?;
    let signer = Signer::load(&storage.layout().key()).ok();
    if signer.is_some() {
        verify(&storage, first)?;
    }
    let previous = hash_of(&storage, Sequence(first.0 - 1))?;
    let mut writer = Writer::new(output, &identity, first, last, &previous)?;
    storage.read(first, last, |stored| {
        writer.push(stored, |of| hash_of(&storage, of))?;
        if stored.sequence.0.is_multiple_of(10_000) {
            progress(stored.sequence);
        }
        Ok(())
    })?;
    writer.finish(signer.as_ref())?;
    Ok(Exported { first, last, signed: signer.is_some() })
}

fn verify(storage: &Storage, first: Sequence) -> Result<(), BundleError> {
    let verified = Verification::begin(storage, first)?.advance(storage, u64::MAX, |_| {})?;
    match verified.fault {
        Some(fault) => Err(BundleError::Unverified { detail: fault.to_string() }),
        None => Ok(()),
    }
}

/// The hash of a record, in the log or in an archive.
fn hash_of(storage: &Storage, sequence: Sequence) -> Result<Hash, LogError> {
    match storage.log()?.hash_of(sequence) {
        Err(LogError::DamagedRecord { .. }) => hash_in_archives(storage.archives(), sequence),
        found => found,
    }
}

fn hash_in_archives(archives: &Archives, sequence: Sequence) -> Result<Hash, LogError> {
    let missing = || LogError::Archived { sequence, folder: archives.folder().to_owned() };
    let archive = archives.holding(sequence).ok_or_else(missing)?;
    let mut hash = NO_HASH;
    let read = archive.read(|stored| {
        if stored.sequence == sequence {
            hash = stored.hash();
        }
        Ok(())
    });
    read.map(|_| hash).map_err(|error| LogError::DamagedRecord { sequence, detail: error.to_string() })
}
