//! Stored records, and the chain that they form.

use super::{Hash, LogError, NO_HASH};
use crate::hex;
use muster_schemas::{
    codec::{self, CodecError},
    event::{Record, uuid_bytes::UuidBytes},
    ids::Sequence,
    time::Timestamp,
};

const HASH_BYTES: usize = 32;

/// The last record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its sequence; 0 if the log is empty.
    pub sequence: Sequence,
    /// Its hash.
    pub hash: Hash,
    /// Its time.
    pub time: Timestamp,
}

impl Head {
    /// The head of an empty log.
    pub const EMPTY: Self = Self { sequence: Sequence(0), hash: NO_HASH, time: Timestamp(i64::MIN) };
}

/// The identity of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Distinguishes this log from every other.
    pub cluster_id: UuidBytes,
    /// The public key that checkpoints are signed with.
    pub public_key: [u8; 32],
}

/// A record as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// Its key.
    pub sequence: Sequence,
    /// Its bytes: the hash of the previous record, and the payload.
    pub value: &'a [u8],
}

impl<'a> Stored<'a> {
    /// The hash of the previous record.
    ///
    /// # Errors
    /// [`LogError::DamagedRecord`] if the value is too short for one.
    pub fn previous_hash(&self) -> Result<Hash, LogError> {
        let head = self.value.first_chunk::<HASH_BYTES>();
        head.copied().ok_or_else(|| self.damaged("shorter than a hash"))
    }

    /// The codec payload of the record.
    pub fn payload(&self) -> &'a [u8] {
        self.value.get(HASH_BYTES..).unwrap_or_default()
    }

    /// The hash of this record.
    pub fn hash(&self) -> Hash {
        *blake3::hash(self.value).as_bytes()
    }

    /// The record.
    ///
    /// # Errors
    /// [`LogError::DamagedRecord`] if the payload is damaged or its sequence is not that of its key;
    /// [`LogError::OtherForm`] if another muster with a different stored form wrote it.
    pub fn record(&self) -> Result<Record, LogError> {
        let record: Record = codec::decode(self.payload()).map_err(|error| match error {
            CodecError::UnknownVersion { .. } => LogError::OtherForm { sequence: self.sequence, detail: error },
            error => self.damaged(error),
        })?;
        if record.sequence != self.sequence {
            return Err(self.damaged(format_args!("it says that it is record {}", record.sequence)));
        }
        Ok(record)
    }

    fn damaged(&self, detail: impl ToString) -> LogError {
        LogError::DamagedRecord { sequence: self.sequence, detail: detail.to_string() }
    }
}

/// Checks a hash; the error names the record.
///
/// # Errors
/// [`LogError::DamagedRecord`] if it differs.
pub fn check_link(stored: &Stored<'_>, previous: &Hash) -> Result<(), LogError> {
    let found = stored.previous_hash()?;
    if found == *previous {
        return Ok(());
    }
    Err(stored.damaged(format_args!(
        "it follows a record with hash {}, but the record before it has {}: one of them was altered",
        hex(&found),
        hex(previous)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log in another stored form is not called damaged.
    #[test]
    fn a_record_in_another_form_is_told_as_that() {
        let value = [&[0; HASH_BYTES][..], &[1, 1], &[0; 8]].concat();
        let told = Stored { sequence: Sequence(7), value: &value }.record().unwrap_err();
        assert!(matches!(told, LogError::OtherForm { sequence: Sequence(7), .. }), "{told}");
        assert!(told.to_string().contains("a form that this muster does not read: codec 1 version 1"), "{told}");
    }
}
