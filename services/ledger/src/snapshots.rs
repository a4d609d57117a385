//! Snapshots of the state: files that make a restart and a look at the past fast. Losing them loses nothing.
//!
//! ```text
//! bytes 0-7     "MUSTERSN"
//! bytes 8-11    layout, 2
//! bytes 12-19   sequence of the record that the state is after
//! bytes 20-51   hash of that record
//! bytes 52-83   BLAKE3 of the body
//! bytes 84-147  the ledger's signature of all that is before
//! bytes 148-155 length of the body
//! bytes 156-    the body: the domain's snapshot bytes
//! ```
//!
//! Numbers are little endian. A snapshot is a state without the records that led to it, so it is believed only if the
//! ledger signed it. One that is cut short, altered or not signed is skipped with a warning, and made again.

use crate::{
    log::{Hash, Identity},
    signing::{self, Signer},
};
use muster_schemas::{
    event::{SignatureBytes, uuid_bytes::UuidBytes},
    ids::Sequence,
};
use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

const MAGIC: &[u8; 8] = b"MUSTERSN";
const LAYOUT: u32 = 2;
const HEADER_BYTES: usize = 156;
const EXTENSION: &str = "snapshot";
/// Snapshots whose bodies stay in memory while they are read part by part.
const BODIES_IN_PARTS: usize = 2;
/// A reader that has not asked for the next part for this long no longer wants it.
const BETWEEN_PARTS: Duration = Duration::from_secs(30);

/// The snapshots of one log.
pub struct Snapshots {
    folder: PathBuf,
    /// The snapshots checked since this program started, and whether they can be used.
    known: Mutex<BTreeMap<Sequence, bool>>,
    /// Bodies that are being read part by part.
    in_parts: Mutex<VecDeque<InParts>>,
}

/// A body that is being read part by part.
struct InParts {
    sequence: Sequence,
    /// When a part was last asked for.
    asked: Instant,
    body: Arc<Vec<u8>>,
}

/// A complete, signed snapshot.
pub struct Snapshot {
    /// The last record in the state.
    pub sequence: Sequence,
    /// The hash of that record.
    pub record_hash: Hash,
    /// The domain's snapshot bytes.
    pub body: Vec<u8>,
}

struct Header {
    sequence: Sequence,
    record_hash: Hash,
    body_digest: Hash,
    signature: SignatureBytes,
    body_bytes: u64,
}

impl Snapshots {
    /// The snapshots in a folder, which need not exist.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), known: Mutex::default(), in_parts: Mutex::default() }
    }

    /// Sequences of all that exist and are not known to be bad, in order.
    pub fn list(&self) -> Vec<Sequence> {
        let known = self.known();
        self.all().into_iter().filter(|sequence| known.get(sequence) != Some(&false)).collect()
    }

    /// The snapshots found to be bad, in order.
    pub fn bad(&self) -> Vec<Sequence> {
        self.known().iter().filter(|(_, is_good)| !**is_good).map(|(sequence, _)| *sequence).collect()
    }

    /// Whether a snapshot was found to be good.
    pub fn is_known_good(&self, sequence: Sequence) -> bool {
        self.known().get(&sequence) == Some(&true)
    }

    /// Notes whether a snapshot can be used.
    pub fn note(&self, sequence: Sequence, is_good: bool) {
        self.known().insert(sequence, is_good);
    }

    fn all(&self) -> Vec<Sequence> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let sequence = |path: PathBuf| {
            let is_snapshot = path.extension().is_some_and(|extension| extension == EXTENSION);
            is_snapshot.then(|| path.file_stem()?.to_str()?.parse().ok().map(Sequence)).flatten()
        };
        // Nobody writes to a pipe of that name: reading it would wait for ever.
        let files = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let mut all: Vec<_> = files.filter_map(|entry| sequence(entry.path())).collect();
        all.sort_unstable();
        all
    }

    /// Reads a snapshot that the ledger of this log made.
    ///
    /// # Errors
    /// If it cannot be read; [`io::ErrorKind::InvalidData`] or [`io::ErrorKind::UnexpectedEof`] if the ledger did not
    /// write it like this.
    pub fn read(&self, sequence: Sequence, identity: &Identity) -> io::Result<Snapshot> {
        let mut file = fs::File::open(self.path(sequence))?;
        let header = read_header(&mut file)?;
        let found = file.metadata()?.len().saturating_sub(HEADER_BYTES as u64);
        if header.sequence != sequence {
            return Err(invalid(format!("it is of record {}", header.sequence)));
        }
        if header.body_bytes != found {
            return Err(invalid(format!("{found} bytes of {}", header.body_bytes)));
        }
        let Header { record_hash, body_digest, signature, .. } = header;
        let text = signing::snapshot_text(identity.cluster_id, sequence, &record_hash, &body_digest);
        if !signing::is_signed(&identity.public_key, text.as_bytes(), &signature) {
            return Err(invalid("it is not signed by the key of the log"));
        }
        let mut body = Vec::with_capacity(usize::try_from(found).map_err(io::Error::other)?);
        file.read_to_end(&mut body)?;
        if *blake3::hash(&body).as_bytes() != body_digest {
            return Err(invalid("wrong checksum"));
        }
        Ok(Snapshot { sequence, record_hash, body })
    }

    /// At most `max_bytes` of the body of a snapshot from an offset on, and the body's total size. The file is read and
    /// checked once for all parts: it may have been altered since it was found to be good.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn part(
        &self,
        sequence: Sequence,
        identity: &Identity,
        offset: u64,
        max_bytes: usize,
    ) -> io::Result<(Vec<u8>, u64)> {
        let body = match self.in_parts(sequence) {
            Some(body) if offset > 0 => body,
            _ => Arc::new(self.read(sequence, identity)?.body),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(body.len());
        let to = from.saturating_add(max_bytes).min(body.len());
        if to < body.len() {
            self.keep_for_parts(sequence, Arc::clone(&body));
        }
        Ok((body[from..to].to_vec(), body.len() as u64))
    }

    /// Takes out a body that is being read. Bodies that nobody asks for any more are dropped.
    fn in_parts(&self, sequence: Sequence) -> Option<Arc<Vec<u8>>> {
        let mut bodies = self.in_parts.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.retain(|kept| kept.asked.elapsed() < BETWEEN_PARTS);
        let at = bodies.iter().position(|kept| kept.sequence == sequence)?;
        bodies.remove(at).map(|kept| kept.body)
    }

    fn keep_for_parts(&self, sequence: Sequence, body: Arc<Vec<u8>>) {
        let mut bodies = self.in_parts.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.retain(|kept| kept.sequence != sequence);
        bodies.truncate(BODIES_IN_PARTS - 1);
        bodies.push_front(InParts { sequence, asked: Instant::now(), body });
    }

    /// Signs and stores a snapshot, whole or not at all. An existing one is replaced.
    ///
    /// # Errors
    /// If it cannot be written; it may leave a draft, which the next one replaces.
    pub fn store(&self, snapshot: &Snapshot, cluster_id: UuidBytes, signer: &Signer) -> io::Result<()> {
        let Snapshot { sequence, record_hash, body } = snapshot;
        // Not the folders above it: if the ledger's folder was removed, it is not made again.
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = self.path(*sequence);
        let draft = path.with_extension("draft");
        let body_digest = *blake3::hash(body).as_bytes();
        let text = signing::snapshot_text(cluster_id, *sequence, record_hash, &body_digest);
        let SignatureBytes { r, s } = signer.sign(text.as_bytes());
        let mut file = fs::File::create(&draft)?;
        file.write_all(MAGIC)?;
        file.write_all(&LAYOUT.to_le_bytes())?;
        file.write_all(&sequence.0.to_le_bytes())?;
        for hash in [record_hash, &body_digest, &r, &s] {
            file.write_all(hash)?;
        }
        file.write_all(&(body.len() as u64).to_le_bytes())?;
        file.write_all(body)?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        crate::sync_folder_of(&path)?;
        self.note(*sequence, true);
        Ok(())
    }

    /// Removes the snapshots that [`is_kept`] does not want.
    pub fn thin_out(&self, every: u64, dense: u64) {
        let all = self.all();
        let Some(&newest) = all.last() else { return };
        for sequence in all.into_iter().filter(|&sequence| !is_kept(sequence, newest, every, dense)) {
            self.known().remove(&sequence);
            if let Err(error) = fs::remove_file(self.path(sequence)) {
                tracing::warn!(%sequence, %error, "an old snapshot cannot be removed");
            }
        }
    }

    fn path(&self, sequence: Sequence) -> PathBuf {
        self.folder.join(format!("{:020}.{EXTENSION}", sequence.0))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<Sequence, bool>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_header(file: &mut fs::File) -> io::Result<Header> {
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact(&mut bytes)?;
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let hash = |at: usize| bytes[at..].first_chunk().copied().unwrap_or_default();
    if bytes[..8] != *MAGIC || bytes[8..12] != LAYOUT.to_le_bytes() {
        return Err(invalid("unknown snapshot layout"));
    }
    let signature = SignatureBytes { r: hash(84), s: hash(116) };
    Ok(Header {
        sequence: Sequence(word(12)),
        record_hash: hash(20),
        body_digest: hash(52),
        signature,
        body_bytes: word(148),
    })
}

fn invalid(detail: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, detail.into())
}

/// Whether a snapshot is kept: all of the newest `dense`, then every second one, and for each doubling of the age half
/// as many. A snapshot that is dropped now would also be dropped at any later time.
pub fn is_kept(sequence: Sequence, newest: Sequence, every: u64, dense: u64) -> bool {
    let every = every.max(1);
    let (place, age) = (sequence.0 / every, (newest.0 - sequence.0) / every);
    let mut spacing = 1;
    while age >= dense.saturating_mul(spacing) && spacing < 1 << 40 {
        spacing *= 2;
    }
    place.is_multiple_of(spacing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, process};

    struct Kept {
        snapshots: Snapshots,
        signer: Signer,
        identity: Identity,
        _folder: tempfile::TempDir,
    }

    fn kept() -> Kept {
        let folder = tempfile::tempdir().unwrap();
        let signer = Signer::load_or_draft(&folder.path().join("key")).unwrap();
        let identity = Identity { cluster_id: UuidBytes([5; 16]), public_key: signer.public_key() };
        Kept { snapshots: Snapshots::new(&folder.path().join("snapshots")), signer, identity, _folder: folder }
    }

    impl Kept {
        fn store(&self, sequence: u64) {
            let body = vec![sequence as u8; 1000];
            let snapshot = Snapshot { sequence: Sequence(sequence), record_hash: [7; 32], body };
            self.snapshots.store(&snapshot, self.identity.cluster_id, &self.signer).unwrap();
        }

        fn read(&self, sequence: u64) -> io::Result<Snapshot> {
            self.snapshots.read(Sequence(sequence), &self.identity)
        }
    }

    /// A snapshot that is cut short is skipped, never trusted (M-LOG-12).
    #[test]
    fn a_snapshot_is_read_whole_and_in_parts() {
        let kept = kept();
        assert!(kept.snapshots.list().is_empty());
        for sequence in [20, 10] {
            kept.store(sequence);
        }
        assert_eq!(kept.snapshots.list(), [Sequence(10), Sequence(20)]);
        let found = kept.read(20).unwrap();
        assert_eq!((found.sequence, found.record_hash, found.body), (Sequence(20), [7; 32], vec![20; 1000]));
        let (part, total) = kept.snapshots.part(Sequence(20), &kept.identity, 900, 400).unwrap();
        assert_eq!((part.len(), total), (100, 1000));
        kept.snapshots.note(Sequence(20), false);
        assert_eq!((kept.snapshots.list(), kept.snapshots.bad()), (vec![Sequence(10)], vec![Sequence(20)]));
        kept.store(20);
        assert_eq!((kept.snapshots.list().len(), kept.snapshots.bad().len()), (2, 0), "made again");
    }

    /// M-LOG-12
    #[test]
    fn a_snapshot_cut_short_anywhere_or_altered_is_skipped() {
        let kept = kept();
        kept.store(20);
        let path = kept.snapshots.path(Sequence(20));
        let whole = fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(13) {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(kept.read(20).is_err(), "cut to {length}");
        }
        for at in (0..whole.len()).step_by(7).chain(0..HEADER_BYTES) {
            let mut altered = whole.clone();
            altered[at] ^= 4;
            fs::write(&path, &altered).unwrap();
            assert!(kept.read(20).is_err(), "altered at {at}");
        }
    }

    /// Only a file is a snapshot: reading a pipe would wait for ever.
    #[test]
    fn a_pipe_or_folder_is_no_snapshot() {
        let kept = kept();
        kept.store(20);
        let made = process::Command::new("mkfifo").arg(kept.snapshots.path(Sequence(30))).status();
        assert!(made.expect("there is mkfifo").success());
        fs::create_dir(kept.snapshots.path(Sequence(40))).unwrap();
        assert_eq!(kept.snapshots.list(), [Sequence(20)]);
    }

    /// A forged state with a correct checksum: only the key's owner can sign it.
    #[test]
    fn a_snapshot_of_another_key_or_cluster_is_an_error() {
        let kept = kept();
        kept.store(20);
        let other = Kept { signer: Signer::load_or_draft(&kept._folder.path().join("other")).unwrap(), ..self::kept() };
        let path = kept.snapshots.path(Sequence(20));
        other.store(20);
        fs::copy(other.snapshots.path(Sequence(20)), &path).unwrap();
        assert!(kept.read(20).is_err_and(|error| error.to_string().contains("not signed")));
        let elsewhere = Identity { cluster_id: UuidBytes([6; 16]), ..kept.identity };
        kept.store(20);
        assert!(kept.snapshots.read(Sequence(20), &elsewhere).is_err());
    }

    #[test]
    fn old_snapshots_thin_out_and_stay_thinned() {
        let mut kept: BTreeSet<u64> = BTreeSet::new();
        for place in 1..=2000_u64 {
            kept.insert(place);
            kept.retain(|&old| is_kept(Sequence(old * 50), Sequence(place * 50), 50, 8));
            for age in 0..8.min(place) {
                assert!(kept.contains(&(place - age)), "{place} - {age}");
            }
        }
        assert!(kept.len() < 8 * 9, "{kept:?}");
        assert!(kept.first().is_some_and(|&first| first <= 1024), "{kept:?}");
    }
}
