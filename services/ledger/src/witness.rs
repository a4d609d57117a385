//! The signed end of the log: a small file next to it that says, signed by the ledger's key, which record was durable.
//! The hash of that record covers everything before it, so nothing at or before it can be altered or removed unseen
//! without the key.

use crate::{
    from_hex, hex,
    log::{Hash, Head, Identity, Log, LogError},
    signing::{self, Signer},
};
use muster_schemas::{
    event::{SignatureBytes, uuid_bytes::UuidBytes},
    ids::Sequence,
    time::Timestamp,
};
use std::{fs, io, path::Path, time::Duration};

/// The longest span of records without a signature: the end is signed each second, and a checkpoint made each minute. A
/// longer span was not written by a ledger that runs as it should.
pub const LONGEST_UNSIGNED: Duration = Duration::from_secs(60);
/// The largest witness.
const MAX_BYTES: u64 = 4096;

/// A record that was durable once. A log without it has lost its end, or is another log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The record.
    pub sequence: Sequence,
    /// Its hash.
    pub hash: Hash,
    /// Whether the log may continue after it.
    pub end: End,
    cluster_id: UuidBytes,
    signature: SignatureBytes,
}

/// Whether a log continues after the record that a witness names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A ledger is writing it, or was killed.
    Open,
    /// The ledger stopped there: nothing can follow until the next start.
    Closed,
}

impl End {
    const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Open, Self::Closed].into_iter().find(|end| end.word() == word)
    }
}

/// Records at the end of a log that no signature covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsigned {
    /// How many.
    pub records: u64,
    /// The time of the first of them.
    pub since: Option<Timestamp>,
}

impl Witness {
    /// The witness of a record, signed.
    pub fn sign(cluster_id: UuidBytes, head: Head, end: End, signer: &Signer) -> Self {
        let Head { sequence, hash, .. } = head;
        let signature = signer.sign(text(cluster_id, sequence, &hash, end).as_bytes());
        Self { sequence, hash, end, cluster_id, signature }
    }

    /// Replaces the file with this one. After a crash of the machine, the file holds this or an earlier witness, whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("draft");
        fs::write(&draft, self.render())?;
        fs::File::open(&draft)?.sync_data()?;
        fs::rename(&draft, path)
    }

    /// Reads what [`Witness::store`] wrote; `None` if there is no file.
    ///
    /// # Errors
    /// If it cannot be read, or holds anything else: [`io::ErrorKind::InvalidData`].
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        use io::Read as _;
        let file = match crate::open_regular(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let parsed = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        parsed.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not what a ledger writes"))
    }

    pub(crate) fn render(&self) -> String {
        let signature = hex(&[self.signature.r, self.signature.s].concat());
        format!("{}signature {signature}\n", self.text())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let cluster_id = UuidBytes(*uuid::Uuid::parse_str(field("cluster")?).ok()?.as_bytes());
        let sequence = Sequence(field("sequence")?.parse().ok()?);
        let hash = from_hex(field("record")?)?.try_into().ok()?;
        let end = End::parse(field("end")?)?;
        let signature = signing::signature_from_hex(field("signature")?)?;
        let witness = Self { sequence, hash, end, cluster_id, signature };
        // Only one text is valid, so that every change of the file means something.
        (witness.render() == text).then_some(witness)
    }

    fn text(&self) -> String {
        text(self.cluster_id, self.sequence, &self.hash, self.end)
    }

    /// Checks that a log's key signed it, and that the log has its record, and none after it if it was closed there.
    ///
    /// # Errors
    /// [`LogError::Witness`] if not; otherwise as reading the log fails.
    pub(crate) fn check(&self, log: &Log, identity: &Identity) -> Result<(), LogError> {
        let objection = |detail: String| Err(LogError::Witness { folder: log.folder().to_owned(), detail });
        if self.cluster_id != identity.cluster_id {
            return objection("its witness belongs to another cluster".into());
        }
        if !signing::is_signed(&identity.public_key, self.text().as_bytes(), &self.signature) {
            return objection("its witness is not signed by the key of the log".into());
        }
        let (last, durable) = (log.head()?.sequence, self.sequence);
        if last < durable {
            let gone = durable.0 - last.0;
            return objection(format!(
                "it ends at record {last}, but record {durable} was durable once: {gone} records are gone"
            ));
        }
        if log.hash_of(durable)? != self.hash {
            return objection(format!("record {durable} is not the one that was durable once: history was rewritten"));
        }
        if self.end == End::Closed && last > durable {
            let added = last.0 - durable.0;
            return objection(format!("its ledger stopped at record {durable}; {added} records were added after that"));
        }
        Ok(())
    }
}

/// Checks a log against its witness, or against the lack of one; returns the witness if it can be believed. A log
/// without a record needs none.
///
/// # Errors
/// [`LogError::Witness`] if the log contradicts its witness.
pub(crate) fn check(found: io::Result<Option<Witness>>, log: &Log) -> Result<Option<Witness>, LogError> {
    let objection = |detail: String| Err(LogError::Witness { folder: log.folder().to_owned(), detail });
    let found = match found {
        Ok(found) => found,
        Err(error) => return objection(format!("its witness cannot be read: {error}")),
    };
    match (found, log.identity()?) {
        (Some(witness), Some(identity)) => witness.check(log, &identity).map(|()| Some(witness)),
        // The first start was interrupted: a log's witness exists before its first record.
        (Some(Witness { sequence: Sequence(1), .. }) | None, None) => Ok(None),
        (Some(witness), None) => {
            objection(format!("it has no record, but record {} was durable once", witness.sequence))
        }
        (None, Some(_)) => objection("its witness is missing".into()),
    }
}

/// The records of a log that ends at `last` after a signed one.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn unsigned(log: &Log, signed: Sequence, last: Sequence) -> Result<Unsigned, LogError> {
    let records = last.0.saturating_sub(signed.0);
    let since = if records == 0 { None } else { log.record(signed.next())?.map(|record| record.time) };
    Ok(Unsigned { records, since })
}

/// The objection to a record after a signed one that the index by job does not have; `None` if there is none. A ledger writes
/// both at once, so somebody else has added such a record.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn not_indexed(log: &Log, signed: Sequence, last: Sequence) -> Result<Option<String>, LogError> {
    for sequence in (signed.0 + 1..=last.0).map(Sequence) {
        let Some(job) = log.record(sequence)?.and_then(|record| record.event.job()) else { continue };
        if log.mark_of(job, sequence)?.is_none() {
            return Ok(Some(format!(
                "no signature covers its record {sequence} about job {job}, and its index by job does not have it: somebody else than \
                 the ledger has added it"
            )));
        }
    }
    Ok(None)
}

impl Unsigned {
    /// The objection to the number of records without a signature in a log that ends at this time; `None` if
    /// there is none.
    pub fn objection(&self, end: Timestamp) -> Option<String> {
        let since = self.since?;
        let longest = i64::try_from(LONGEST_UNSIGNED.as_micros()).unwrap_or(i64::MAX);
        (end.micros_since(since) > longest).then(|| {
            format!(
                "no signature covers its last {} records, since {since}, and a ledger leaves no more than {} s unsigned: its witness \
                 was put back to an earlier one, or could not be written",
                self.records,
                LONGEST_UNSIGNED.as_secs()
            )
        })
    }
}

/// The text that a witness's signature covers; `docs/audit.md` describes it.
fn text(cluster_id: UuidBytes, sequence: Sequence, hash: &Hash, end: End) -> String {
    format!("muster end 2\ncluster {cluster_id}\nsequence {sequence}\nrecord {}\nend {}\n", hex(hash), end.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_of_the_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        assert_eq!(Witness::load(&path).unwrap(), None);
        let signer = Signer::load_or_draft(&folder.path().join("key")).unwrap();
        let head = Head { sequence: Sequence(7), hash: [3; 32], time: Timestamp(5) };
        let witness = Witness::sign(UuidBytes([9; 16]), head, End::Open, &signer);
        witness.store(&path).unwrap();
        assert_eq!(Witness::load(&path).unwrap(), Some(witness));
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            fs::write(&path, &whole[..at]).unwrap();
            assert!(Witness::load(&path).is_err(), "cut to {at}");
            let mut altered = whole.clone();
            altered[at] ^= 1;
            fs::write(&path, &altered).unwrap();
            let still = Witness::load(&path).ok().flatten();
            let is_signed = still.is_some_and(|found| {
                signing::is_signed(&signer.public_key(), found.text().as_bytes(), &found.signature)
            });
            assert!(!is_signed, "altered at {at}");
        }
    }
}
