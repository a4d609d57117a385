//! A look at the ends of RocksDB's own files before it reads them.
//!
//! RocksDB writes its write-ahead log and its manifest as records in blocks of 32 KiB, each behind a head of seven bytes: checksum,
//! length, kind. Records of the kinds for files that are used again have a longer head, and its reader never comes back from one
//! that the end of the file cuts short. The log of a ledger has no such records, but damage can look like one.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

const BLOCK_BYTES: u64 = 32 << 10;
const HEAD_BYTES: usize = 7;
/// Kinds of records in files that are used again.
const REUSED: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// Whether the last block of a file has a record of a kind that is only in files that are used again: then it is damaged.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn is_damaged(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length - length % BLOCK_BYTES))?;
    let mut block = Vec::new();
    file.read_to_end(&mut block)?;
    Ok(has_reused(&block))
}

fn has_reused(mut block: &[u8]) -> bool {
    while let Some((head, rest)) = block.split_first_chunk::<HEAD_BYTES>() {
        let [.., low, high, kind] = *head;
        if REUSED.contains(&kind) {
            return true;
        }
        match rest.get(usize::from(u16::from_le_bytes([low, high]))..) {
            Some(behind) => block = behind,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_le_bytes();
        [&[1, 2, 3, 4], &length[..], &[kind], content].concat()
    }

    /// F15: damage that RocksDB's reader would not come back from.
    #[test]
    fn records_of_files_that_are_used_again_are_damage() {
        let whole = [record(1, b"one"), record(1, b""), record(2, b"three")].concat();
        assert!(!has_reused(&whole));
        for cut in 0..whole.len() {
            assert!(!has_reused(&whole[..cut]), "a file that was being written when the power failed");
        }
        assert!(!has_reused(&[whole.clone(), vec![0; 100]].concat()), "room that was not used yet");
        let damaged = [whole, vec![0x4d, 1, 0x1f, 0x15, 0xd8, 0x2d, 8, 0x7d, 0x8d, 0xbc]].concat();
        assert!(has_reused(&damaged));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("MANIFEST-000005");
        std::fs::write(&path, [vec![8; 32 << 10], damaged].concat()).unwrap();
        assert!(is_damaged(&path).unwrap());
    }
}
