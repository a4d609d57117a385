//! The layout of the database.

use muster_schemas::{
    event::{Concern, Event},
    ids::{JobId, Sequence},
};

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// The hash before the first record.
pub const NO_HASH: Hash = [0; 32];
/// The newest layout of the folder that this program knows.
pub const FORMAT_VERSION: u32 = 1;

pub(super) const RECORDS: &str = "records";
pub(super) const BY_JOB: &str = "by_job";
pub(super) const COMMANDS: &str = "commands";
pub(super) const CHECKPOINTS: &str = "checkpoints";
pub(super) const NOTICES: &str = "notices";
pub(super) const META: &str = "meta";
pub(super) const FAMILIES: [&str; 6] = [RECORDS, BY_JOB, COMMANDS, CHECKPOINTS, NOTICES, META];

/// Marks in `by_job` a record that holds the complete job. Older programs did not write it.
pub(super) const DESCRIBES: &[u8] = &[1];

/// Name in `meta` of the layout's version: `u32`.
pub(super) const META_FORMAT: &[u8] = b"format";
/// Name in `meta` of the cluster's id and public key: 16 and 32 bytes.
pub(super) const META_IDENTITY: &[u8] = b"identity";
/// Name in `meta` of the last record whose public event the bus has: `u64`.
pub(super) const META_PUBLISHED: &[u8] = b"published";

/// Name in `meta` of the place in the stream of rounds that the last record has: see [`super::Place`].
pub(super) const META_PLACE: &[u8] = b"place";

pub(super) fn job_key(job: JobId, sequence: Sequence) -> [u8; 24] {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&job.number.to_be_bytes());
    key[8..16].copy_from_slice(&job.index.map_or(0, |index| u64::from(index) + 1).to_be_bytes());
    key[16..].copy_from_slice(&sequence.0.to_be_bytes());
    key
}

pub(super) fn notice_key(of: Sequence, number: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&of.0.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The big-endian number at the start of a key.
pub(super) fn number(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Whether a record of this event has all of a job.
pub(crate) fn describes(event: &Event) -> bool {
    event.concerns(Concern::Descriptions)
}
