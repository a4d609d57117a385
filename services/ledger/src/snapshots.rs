//! Snapshots of the state: files that make a restart and a look at the past fast. Losing them loses nothing.
//!
//! ```text
//! bytes 0-7     "MUSTERSN"
//! bytes 8-11    layout, 1
//! bytes 12-19   sequence of the record that the state is after
//! bytes 20-51   hash of that record
//! bytes 52-83   BLAKE3 of bytes 0-51 and the body
//! bytes 84-91   length of the body
//! bytes 92-     the body: the domain's snapshot bytes
//! ```
//!
//! Numbers are little endian. A snapshot that is cut short or altered is skipped with a warning.

use crate::log::Hash;
use muster_schemas::ids::Sequence;
use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

const MAGIC: &[u8; 8] = b"MUSTERSN";
const LAYOUT: u32 = 1;
const HEADER_BYTES: usize = 92;
const EXTENSION: &str = "snapshot";

/// The snapshots of one log.
pub struct Snapshots {
    folder: PathBuf,
    /// Those whose checksum was found to be right since this program started.
    checked: Mutex<BTreeSet<Sequence>>,
}

/// A snapshot that is whole.
pub struct Snapshot {
    /// The state is as after this record.
    pub sequence: Sequence,
    /// The hash of that record.
    pub record_hash: Hash,
    /// The domain's snapshot bytes.
    pub body: Vec<u8>,
}

struct Header {
    sequence: Sequence,
    record_hash: Hash,
    checksum: Hash,
    body_bytes: u64,
}

impl Snapshots {
    /// Those in a folder, which need not exist.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), checked: Mutex::default() }
    }

    /// Sequences of all that are there, good or bad, in order.
    pub fn list(&self) -> BTreeSet<Sequence> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return BTreeSet::new() };
        let sequence = |path: PathBuf| {
            let is_snapshot = path.extension().is_some_and(|extension| extension == EXTENSION);
            is_snapshot.then(|| path.file_stem()?.to_str()?.parse().ok().map(Sequence)).flatten()
        };
        entries.filter_map(Result::ok).filter_map(|entry| sequence(entry.path())).collect()
    }

    /// The newest whole snapshot at or before a sequence. Others are skipped with a warning.
    pub fn newest(&self, at_or_before: Sequence) -> Option<Snapshot> {
        self.list().range(..=at_or_before).rev().find_map(|&sequence| self.load(sequence))
    }

    fn load(&self, sequence: Sequence) -> Option<Snapshot> {
        match self.read(sequence) {
            Ok(snapshot) => {
                self.checked().insert(sequence);
                Some(snapshot)
            }
            Err(error) => {
                tracing::warn!(snapshot = %self.path(sequence).display(), %error, "skipping a snapshot that is not whole");
                None
            }
        }
    }

    fn read(&self, sequence: Sequence) -> io::Result<Snapshot> {
        let mut file = fs::File::open(self.path(sequence))?;
        let header = read_header(&mut file)?;
        let found = file.metadata()?.len().saturating_sub(HEADER_BYTES as u64);
        if header.sequence != sequence || header.body_bytes != found {
            return Err(invalid(format!("{found} bytes of {}", header.body_bytes)));
        }
        let mut body = Vec::with_capacity(usize::try_from(found).map_err(io::Error::other)?);
        file.read_to_end(&mut body)?;
        let snapshot = Snapshot { sequence, record_hash: header.record_hash, body };
        if checksum(&snapshot) != header.checksum {
            return Err(invalid("wrong checksum"));
        }
        Ok(snapshot)
    }

    /// Part of the newest whole snapshot at or before a sequence: its sequence, at most `max_bytes` from an offset on,
    /// and how many bytes it has in all.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn part(
        &self,
        at_or_before: Sequence,
        offset: u64,
        max_bytes: usize,
    ) -> io::Result<Option<(Sequence, Vec<u8>, u64)>> {
        let listed = self.list();
        let whole = |sequence: &&Sequence| self.checked().contains(sequence) || self.load(**sequence).is_some();
        let Some(&sequence) = listed.range(..=at_or_before).rev().find(whole) else { return Ok(None) };
        let mut file = fs::File::open(self.path(sequence))?;
        let header = read_header(&mut file)?;
        file.seek(SeekFrom::Start((HEADER_BYTES as u64).saturating_add(offset)))?;
        let mut part = Vec::new();
        file.take(max_bytes as u64).read_to_end(&mut part)?;
        Ok(Some((sequence, part, header.body_bytes)))
    }

    /// Stores a snapshot: whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written; a draft may be left, which the next one replaces.
    pub fn store(&self, snapshot: &Snapshot) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let path = self.path(snapshot.sequence);
        let draft = path.with_extension("draft");
        let mut file = fs::File::create(&draft)?;
        file.write_all(&header_start(snapshot))?;
        file.write_all(&checksum(snapshot))?;
        file.write_all(&(snapshot.body.len() as u64).to_le_bytes())?;
        file.write_all(&snapshot.body)?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        crate::sync_folder_of(&path)
    }

    /// Removes those that [`is_kept`] does not want.
    pub fn thin_out(&self, every: u64, dense: u64) {
        let listed = self.list();
        let Some(&newest) = listed.last() else { return };
        for sequence in listed.into_iter().filter(|&sequence| !is_kept(sequence, newest, every, dense)) {
            self.checked().remove(&sequence);
            if let Err(error) = fs::remove_file(self.path(sequence)) {
                tracing::warn!(%sequence, %error, "an old snapshot cannot be removed");
            }
        }
    }

    fn path(&self, sequence: Sequence) -> PathBuf {
        self.folder.join(format!("{:020}.{EXTENSION}", sequence.0))
    }

    fn checked(&self) -> std::sync::MutexGuard<'_, BTreeSet<Sequence>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The header up to the checksum.
fn header_start(snapshot: &Snapshot) -> [u8; 52] {
    let mut header = [0; 52];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&LAYOUT.to_le_bytes());
    header[12..20].copy_from_slice(&snapshot.sequence.0.to_le_bytes());
    header[20..].copy_from_slice(&snapshot.record_hash);
    header
}

fn checksum(snapshot: &Snapshot) -> Hash {
    *blake3::Hasher::new().update(&header_start(snapshot)).update(&snapshot.body).finalize().as_bytes()
}

fn read_header(file: &mut fs::File) -> io::Result<Header> {
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact(&mut bytes)?;
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let hash = |at: usize| bytes[at..].first_chunk().copied().unwrap_or_default();
    if bytes[..8] != *MAGIC || bytes[8..12] != LAYOUT.to_le_bytes() {
        return Err(invalid("not a snapshot of a layout that is known"));
    }
    Ok(Header { sequence: Sequence(word(12)), record_hash: hash(20), checksum: hash(52), body_bytes: word(84) })
}

fn invalid(detail: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, detail.into())
}

/// Whether a snapshot is kept: the newest `dense` all, then every second one, and for each doubling of the age half
/// as many. What is dropped once would be dropped ever after.
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

    fn snapshots() -> (tempfile::TempDir, Snapshots) {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(&folder.path().join("snapshots"));
        (folder, snapshots)
    }

    fn store(snapshots: &Snapshots, sequence: u64) {
        let body = vec![sequence as u8; 1000];
        snapshots.store(&Snapshot { sequence: Sequence(sequence), record_hash: [7; 32], body }).unwrap();
    }

    #[test]
    fn the_newest_before_a_sequence_is_found_whole_and_in_parts() {
        let (_folder, snapshots) = snapshots();
        assert!(snapshots.newest(Sequence(u64::MAX)).is_none());
        for sequence in [10, 20, 30] {
            store(&snapshots, sequence);
        }
        let found = snapshots.newest(Sequence(29)).unwrap();
        assert_eq!((found.sequence, found.record_hash, found.body), (Sequence(20), [7; 32], vec![20; 1000]));
        assert!(snapshots.newest(Sequence(9)).is_none());
        let (sequence, part, total) = snapshots.part(Sequence(29), 900, 400).unwrap().unwrap();
        assert_eq!((sequence, part.len(), total), (Sequence(20), 100, 1000));
        assert!(snapshots.part(Sequence(9), 0, 400).unwrap().is_none());
    }

    /// A snapshot that is cut short is skipped, never trusted (M-LOG-12).
    #[test]
    fn a_snapshot_cut_short_anywhere_or_altered_is_skipped() {
        let (_folder, snapshots) = snapshots();
        store(&snapshots, 10);
        store(&snapshots, 20);
        let path = snapshots.path(Sequence(20));
        let whole = fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(13) {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(snapshots.newest(Sequence(25)).unwrap().sequence, Sequence(10), "cut to {length}");
        }
        for at in (0..whole.len()).step_by(7) {
            let mut altered = whole.clone();
            altered[at] ^= 4;
            fs::write(&path, &altered).unwrap();
            assert_eq!(snapshots.newest(Sequence(25)).unwrap().sequence, Sequence(10), "altered at {at}");
        }
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
