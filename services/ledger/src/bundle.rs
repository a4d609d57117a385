//! Audit bundles: a range of the log as a file that a third party can verify without muster. Archives are bundles too,
//! compressed. `docs/audit.md` describes the format, `ops/verify-bundle` verifies it and shares no code with this.
//!
//! A bundle is lines of JSON: a header, one line for each record, a trailer. `payload` and `hash` prove the records;
//! `record` is the decoded form, for people, covered by the checksum and signature of the trailer.

use crate::{
    from_hex, hex,
    log::{Hash, Identity, LogError, NO_HASH, Stored},
    signing::{self, Signer, signature_from_hex, signature_hex},
};
use muster_schemas::{
    event::{Event, Record, uuid_bytes::UuidBytes},
    ids::Sequence,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::{BufRead, Write};

/// The version of the format.
pub const VERSION: u32 = 1;
/// The longest line of a bundle: the largest payload, in hexadecimal and decoded, with some room.
const MAX_LINE_BYTES: u64 = 2 << 30;

/// Why a bundle cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The operating system refused.
    #[error("the bundle cannot be written or read: {0}")]
    Io(#[from] std::io::Error),
    /// The underlying log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There is nothing to write.
    #[error("there is no record from {first} to {last} to export: the log ends at {head}")]
    NoSuchRange {
        /// The first record that was asked for.
        first: Sequence,
        /// The last record that was asked for, or the end of the log.
        last: Sequence,
        /// The last record of the log.
        head: Sequence,
    },
    /// The bundle would be signed, which vouches for the history, but the history does not verify.
    #[error("the history does not verify, and nothing of it is signed: {detail}")]
    Unverified {
        /// A description of the fault.
        detail: String,
    },
    /// A line is not what it should be.
    #[error("line {line} of the bundle: {detail}")]
    Malformed {
        /// Its number, from 1.
        line: u64,
        /// A description of the fault.
        detail: String,
    },
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The format's version: [`VERSION`].
    pub muster_audit: u32,
    /// The cluster, as a UUID.
    pub cluster_id: String,
    /// The public key of its checkpoints (Ed25519), in hexadecimal.
    pub public_key: String,
    /// Sequence of the first record.
    pub first: u64,
    /// Sequence of the last record.
    pub last: u64,
    /// Hash of the record before the first, in hexadecimal; zeros if there is none.
    pub previous_hash: String,
}

#[derive(Serialize, Deserialize)]
struct RecordLine {
    sequence: u64,
    hash: String,
    payload: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<CheckpointLine>,
    #[serde(skip_deserializing)]
    record: Option<Record>,
}

#[derive(Serialize, Deserialize)]
struct CheckpointLine {
    of: u64,
    record_hash: String,
    state_digest: String,
    signature: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trailer {
    records: u64,
    sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// The text that the signature of a bundle covers; `docs/audit.md` describes it.
fn bundle_text(header: &Header, sha256: &str) -> String {
    let Header { cluster_id, first, last, .. } = header;
    format!("muster bundle 1\ncluster {cluster_id}\nfirst {first}\nlast {last}\nsha256 {sha256}\n")
}

/// Writes a bundle.
pub struct Writer<W: Write> {
    output: W,
    header: Header,
    digest: Sha256,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a bundle of the records from `first` to `last`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(
        output: W,
        identity: &Identity,
        first: Sequence,
        last: Sequence,
        previous_hash: &Hash,
    ) -> Result<Self, BundleError> {
        let header = Header {
            muster_audit: VERSION,
            cluster_id: identity.cluster_id.to_string(),
            public_key: hex(&identity.public_key),
            first: first.0,
            last: last.0,
            previous_hash: hex(previous_hash),
        };
        let mut writer = Self { output, header: header.clone(), digest: Sha256::new(), records: 0 };
        writer.line(&header)?;
        Ok(writer)
    }

    /// Adds the next record. `hash_of` gives the hash of an earlier record, for checkpoints.
    ///
    /// # Errors
    /// If the record is damaged, or the bundle cannot be written.
    pub fn push(
        &mut self,
        stored: &Stored<'_>,
        hash_of: impl FnOnce(Sequence) -> Result<Hash, LogError>,
    ) -> Result<(), BundleError> {
        let record = stored.record()?;
        let checkpoint = match &record.event {
            Event::Checkpoint { of, state_digest, signature } => Some(CheckpointLine {
                of: of.0,
                record_hash: hex(&hash_of(*of)?),
                state_digest: hex(state_digest),
                signature: signature_hex(signature),
            }),
            _ => None,
        };
        let (hash, payload) = (hex(&stored.hash()), hex(stored.payload()));
        let line = RecordLine { sequence: stored.sequence.0, hash, payload, checkpoint, record: Some(record) };
        self.records += 1;
        self.line(&line)
    }

    /// Ends the bundle, signed if there is a key, and returns the output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, signer: Option<&Signer>) -> Result<W, BundleError> {
        let sha256 = hex(&std::mem::take(&mut self.digest).finalize());
        let text = bundle_text(&self.header, &sha256);
        let signature = signer.map(|signer| signature_hex(&signer.sign(text.as_bytes())));
        self.line(&Trailer { records: self.records, sha256, signature })?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), BundleError> {
        let mut line = serde_json::to_vec(value).map_err(std::io::Error::from)?;
        line.push(b'\n');
        self.digest.update(&line);
        self.output.write_all(&line)?;
        Ok(())
    }
}

/// Reads a bundle and checks its form, its chain and its checksum on the way.
pub struct Reader<R: BufRead> {
    input: R,
    header: Header,
    digest: Sha256,
    line: u64,
    last: Sequence,
    hash: Hash,
    text: Vec<u8>,
    value: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If it cannot be read or is not a header of a known version.
    pub fn new(input: R) -> Result<Self, BundleError> {
        let mut reader = Self {
            input,
            header: Header {
                muster_audit: 0,
                cluster_id: String::new(),
                public_key: String::new(),
                first: 0,
                last: 0,
                previous_hash: String::new(),
            },
            digest: Sha256::new(),
            line: 0,
            last: Sequence(0),
            hash: NO_HASH,
            text: Vec::new(),
            value: Vec::new(),
        };
        reader.read_line()?;
        let header: Header = reader.parse()?;
        if header.muster_audit != VERSION {
            return Err(reader.fault(format!("version {} is not known to this muster", header.muster_audit)));
        }
        let previous = from_hex(&header.previous_hash).and_then(|bytes| bytes.try_into().ok());
        reader.hash = previous.ok_or_else(|| reader.fault("`previous_hash` is no hash"))?;
        reader.last = Sequence(header.first.saturating_sub(1));
        reader.header = header;
        reader.digest.update(&reader.text);
        Ok(reader)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The identity of its log, as the header says.
    ///
    /// # Errors
    /// If the header's id or key is malformed.
    pub fn identity(&self) -> Result<Identity, BundleError> {
        let cluster_id = uuid::Uuid::parse_str(&self.header.cluster_id);
        let public_key = from_hex(&self.header.public_key).and_then(|key| key.try_into().ok());
        match (cluster_id, public_key) {
            (Ok(id), Some(public_key)) => Ok(Identity { cluster_id: UuidBytes(*id.as_bytes()), public_key }),
            _ => Err(self.fault("the header's cluster id or public key is malformed")),
        }
    }

    /// The hash of the record before the next one.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The next record as it was stored; `None` after the last, once the trailer was found to be true.
    ///
    /// # Errors
    /// If it cannot be read, or anything in it is not as it should be.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Stored<'_>>, BundleError> {
        self.read_line()?;
        if self.last.0 == self.header.last {
            return self.check_trailer().map(|()| None);
        }
        let line: RecordLine = self.parse()?;
        self.digest.update(&self.text);
        let sequence = self.last.next();
        if line.sequence != sequence.0 {
            return Err(self.fault(format!("record {} where record {sequence} should be", line.sequence)));
        }
        let payload = from_hex(&line.payload).ok_or_else(|| self.fault("`payload` is not hexadecimal"))?;
        self.value.clear();
        self.value.extend_from_slice(&self.hash);
        self.value.extend_from_slice(&payload);
        let hash = *blake3::hash(&self.value).as_bytes();
        if line.hash != hex(&hash) {
            return Err(self.fault(format!("the hash of record {sequence} is not that of its bytes")));
        }
        (self.last, self.hash) = (sequence, hash);
        Ok(Some(Stored { sequence, value: &self.value }))
    }

    fn check_trailer(&mut self) -> Result<(), BundleError> {
        let trailer: Trailer = self.parse()?;
        let sha256 = hex(&std::mem::take(&mut self.digest).finalize());
        if trailer.sha256 != sha256 {
            return Err(self.fault("the checksum is not that of the lines before"));
        }
        let records = self.last.next().0.saturating_sub(self.header.first);
        if trailer.records != records {
            return Err(self.fault(format!("{records} records, and not {}", trailer.records)));
        }
        let Some(signature) = trailer.signature else { return Ok(()) };
        let public_key = self.identity()?.public_key;
        let text = bundle_text(&self.header, &sha256);
        let signature = signature_from_hex(&signature);
        if !signature.is_some_and(|signature| signing::is_signed(&public_key, text.as_bytes(), &signature)) {
            return Err(self.fault("the signature is not the cluster's"));
        }
        Ok(())
    }

    fn read_line(&mut self) -> Result<(), BundleError> {
        use std::io::Read as _;
        self.text.clear();
        self.line += 1;
        (&mut self.input).take(MAX_LINE_BYTES).read_until(b'\n', &mut self.text)?;
        if self.text.last() == Some(&b'\n') { Ok(()) } else { Err(self.fault("the bundle is cut short here")) }
    }

    fn parse<'de, T: Deserialize<'de>>(&'de self) -> Result<T, BundleError> {
        serde_json::from_slice(&self.text).map_err(|error| self.fault(error.to_string()))
    }

    fn fault(&self, detail: impl Into<String>) -> BundleError {
        BundleError::Malformed { line: self.line, detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{
        codec,
        event::{Actor, TraceContext},
        ids::CommandId,
        time::Timestamp,
    };
    use std::sync::Arc;

    fn signer() -> (tempfile::TempDir, Signer) {
        let folder = tempfile::tempdir().unwrap();
        let signer = Signer::load_or_draft(&folder.path().join("key")).unwrap();
        (folder, signer)
    }

    /// A bundle of five records; the third is a checkpoint.
    fn bundle(signer: &Signer) -> Vec<u8> {
        let identity = Identity { cluster_id: UuidBytes([3; 16]), public_key: signer.public_key() };
        let mut writer = Writer::new(Vec::new(), &identity, Sequence(1), Sequence(5), &NO_HASH).unwrap();
        let mut value = NO_HASH.to_vec();
        for number in 1..=5 {
            let record = Record {
                sequence: Sequence(number),
                time: Timestamp(1),
                actor: Arc::new(Actor::Ledger),
                command: CommandId(uuid::Uuid::from_u128(7)),
                trace: TraceContext::default(),
                event: match number {
                    3 => Event::Checkpoint { of: Sequence(2), state_digest: [1; 32], signature: signer.sign(b"") },
                    _ => Event::QueueRemoved { name: format!("q{number}") },
                },
                epoch: 0,
            };
            codec::encode_into(&record, &mut value).unwrap();
            let stored = Stored { sequence: record.sequence, value: &value };
            writer.push(&stored, |_| Ok([2; 32])).unwrap();
            value = stored.hash().to_vec();
        }
        writer.finish(Some(signer)).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Record>, BundleError> {
        let mut reader = Reader::new(bytes)?;
        let mut records = Vec::new();
        while let Some(stored) = reader.next()? {
            records.push(stored.record()?);
        }
        Ok(records)
    }

    #[test]
    fn what_was_written_is_read() {
        let (_folder, signer) = signer();
        let records = read(&bundle(&signer)).unwrap();
        assert!(records.iter().map(|record| record.sequence.0).eq(1..=5));
    }

    #[test]
    fn a_change_of_any_byte_and_a_cut_anywhere_is_found() {
        let (_folder, signer) = signer();
        let whole = bundle(&signer);
        for at in 0..whole.len() {
            assert!(read(&whole[..at]).is_err(), "cut to {at}");
            for flip in [1, 0x20] {
                let mut altered = whole.clone();
                altered[at] ^= flip;
                // Upper-case digits in the trailer's own signature mean the same.
                let same = altered[at].to_ascii_lowercase() == whole[at] && whole[at].is_ascii_hexdigit();
                assert!(same || read(&altered).is_err(), "byte {at} altered by {flip}");
            }
        }
    }
}
