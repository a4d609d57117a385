//! The launch journal: which runs this node has ever begun to launch, on disk before the first process of each exists.
//!
//! It keeps a run from being started twice when an order comes again late: after a crash of the machine in the middle
//! of a launch, or long after the run's folder is gone. It remembers at least the last [`ENTRIES`] launches, in two
//! files that take turns. A file is filled with zeros before its first use, so that an entry overwrites existing data:
//! such a write reaches the disk without a commit of the file system's own journal, which would cost five times as
//! much.

use crate::key::RunKey;
use muster_schemas::RunId;
use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The number of launches in a file.
pub const ENTRIES: usize = 32_768;
const ENTRY_BYTES: usize = 16;
const HEADER_BYTES: usize = 16;
const MAGIC: [u8; 8] = *b"mlaunch1";
const NAMES: [&str; 2] = ["launched.0", "launched.1"];

/// The journal of one spool.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    current: Page,
    previous: HashSet<RunKey>,
    entries_per_page: usize,
}

#[derive(Debug)]
struct Page {
    file: File,
    /// Pages are numbered; number n is in file n modulo 2.
    number: u64,
    known: HashSet<RunKey>,
    used: usize,
}

impl Journal {
    /// Reads the journal of a spool, or begins it.
    ///
    /// # Errors
    /// If the files cannot be read or created.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Self::open_with(folder, ENTRIES)
    }

    fn open_with(folder: &Path, entries_per_page: usize) -> io::Result<Self> {
        let mut pages: Vec<Page> =
            NAMES.iter().filter_map(|name| Page::read(&folder.join(name)).transpose()).collect::<io::Result<_>>()?;
        pages.sort_by_key(|page| page.number);
        let (current, previous) = match (pages.pop(), pages.pop()) {
            (Some(current), previous) => (current, previous.map(|page| page.known).unwrap_or_default()),
            (None, _) => (Page::begin(folder, 0, entries_per_page)?, HashSet::new()),
        };
        Ok(Self { folder: folder.to_owned(), current, previous, entries_per_page })
    }

    /// Whether the launch is known to have begun.
    pub fn contains(&self, key: RunKey) -> bool {
        self.current.known.contains(&key) || self.previous.contains(&key)
    }

    /// The highest run that it remembers.
    pub fn highest_run(&self) -> Option<RunId> {
        self.current.known.iter().chain(&self.previous).map(|key| key.part.run()).max()
    }

    /// Records launches; they are on disk when it returns.
    ///
    /// # Errors
    /// If the disk does not take them; then none of them may be started.
    pub fn record(&mut self, keys: &[RunKey]) -> io::Result<()> {
        for part in keys.chunks(self.entries_per_page) {
            if self.current.used + part.len() > self.entries_per_page {
                let next = Page::begin(&self.folder, self.current.number + 1, self.entries_per_page)?;
                self.previous = std::mem::replace(&mut self.current, next).known;
            }
            self.current.append(part)?;
        }
        Ok(())
    }
}

impl Page {
    /// The page in a file; `None` if there is no file, or its creation was cut short before any entry.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some((header, entries)) = bytes.split_at_checked(HEADER_BYTES) else { return Ok(None) };
        let Some(number) = header.strip_prefix(&MAGIC).and_then(|number| number.try_into().ok()) else {
            return Ok(None);
        };
        let known: HashSet<RunKey> = entries.chunks_exact(ENTRY_BYTES).map_while(entry_key).collect();
        let used = entries.chunks_exact(ENTRY_BYTES).map_while(entry_key).count();
        Ok(Some(Self { file: open_synced(path)?, number: u64::from_le_bytes(number), known, used }))
    }

    /// A fresh page. The header is written last, so that an unfinished page does not count.
    fn begin(folder: &Path, number: u64, entries: usize) -> io::Result<Self> {
        let path = folder.join(NAMES[(number % 2) as usize]);
        let file = open_synced(&path)?;
        file.write_all_at(&vec![0; HEADER_BYTES + entries * ENTRY_BYTES], 0)?;
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..].copy_from_slice(&number.to_le_bytes());
        file.write_all_at(&header, 0)?;
        File::open(folder)?.sync_all()?;
        Ok(Self { file, number, known: HashSet::new(), used: 0 })
    }

    fn append(&mut self, keys: &[RunKey]) -> io::Result<()> {
        let bytes: Vec<u8> = keys.iter().flat_map(|key| entry(*key)).collect();
        self.file.write_all_at(&bytes, (HEADER_BYTES + self.used * ENTRY_BYTES) as u64)?;
        self.used += keys.len();
        self.known.extend(keys);
        Ok(())
    }
}

/// Every write returns when it is on disk.
fn open_synced(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_DSYNC)
        .open(path)
}

fn entry(key: RunKey) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..RunKey::BYTES].copy_from_slice(&key.to_bytes());
    let checksum = checksum(&bytes[..RunKey::BYTES]);
    bytes[RunKey::BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn entry_key(bytes: &[u8]) -> Option<RunKey> {
    let (key, sum) = bytes.split_first_chunk::<{ RunKey::BYTES }>()?;
    (sum == checksum(key).to_le_bytes()).then(|| RunKey::from_bytes(*key))
}

/// FNV-1a: enough to distinguish an entry from zeros and from half an entry.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::PartId;

    fn keys(numbers: std::ops::Range<u64>) -> Vec<RunKey> {
        numbers.map(|number| RunKey::whole(PartId::new(RunId(number), 0))).collect()
    }

    #[test]
    fn remembers_across_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        journal.record(&keys(1..4)).unwrap();
        journal.record(&keys(9..10)).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        for key in keys(1..4) {
            assert!(journal.contains(key));
        }
        assert!(journal.contains(RunKey::whole(PartId::new(RunId(9), 0))));
        assert!(!journal.contains(RunKey::whole(PartId::new(RunId(4), 0))));
        assert_eq!(journal.highest_run(), Some(RunId(9)));
    }

    #[test]
    fn remembers_at_least_a_page_when_it_turns() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open_with(folder.path(), 8).unwrap();
        for first in (1..100).step_by(3) {
            journal.record(&keys(first..first + 3)).unwrap();
            let reopened = Journal::open_with(folder.path(), 8).unwrap();
            for key in keys(first.saturating_sub(5).max(1)..first + 3) {
                assert!(journal.contains(key) && reopened.contains(key), "{key} after {first}");
            }
        }
        assert!(!journal.contains(RunKey::whole(PartId::new(RunId(1), 0))));
    }

    #[test]
    fn takes_more_than_a_page_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open_with(folder.path(), 8).unwrap();
        journal.record(&keys(1..21)).unwrap();
        assert!(journal.contains(RunKey::whole(PartId::new(RunId(20), 0))));
    }

    #[test]
    fn a_torn_entry_ends_the_page() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        journal.record(&keys(1..3)).unwrap();
        let file = OpenOptions::new().write(true).open(folder.path().join(NAMES[0])).unwrap();
        file.write_all_at(&[7; 5], (HEADER_BYTES + 2 * ENTRY_BYTES) as u64).unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        assert!(journal.contains(RunKey::whole(PartId::new(RunId(2), 0))));
        journal.record(&keys(5..6)).unwrap();
        assert!(Journal::open(folder.path()).unwrap().contains(RunKey::whole(PartId::new(RunId(5), 0))));
    }

    #[test]
    fn a_page_cut_short_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAMES[0]), [0; 100]).unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        journal.record(&keys(1..2)).unwrap();
        assert!(Journal::open(folder.path()).unwrap().contains(RunKey::whole(PartId::new(RunId(1), 0))));
    }
}
