//! Checks RocksDB's own files before it reads them.
//!
//! RocksDB writes its write-ahead log and its manifest as records in blocks of 32 KiB, each after a head of seven
//! bytes: checksum, length, kind. At a record of a kind for recycled files, or at the end of the file after one, its
//! reader loops for ever. The log of a ledger has no such records, but damage can look like one.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

const BLOCK_BYTES: usize = 32 << 10;
const HEAD_BYTES: usize = 7;
/// Kinds of records in recycled files.
const REUSED: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// Whether a file has a record of a kind that occurs only in recycled files: then it is damaged.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn is_damaged(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    loop {
        block.clear();
        let length = file.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        if has_reused(&block) {
            return Ok(true);
        }
        if length < BLOCK_BYTES {
            return Ok(false);
        }
    }
}

/// Steps from head to head like RocksDB's reader, which leaves a block at a length that exceeds it and at unused room.
fn has_reused(mut block: &[u8]) -> bool {
    while let Some((head, rest)) = block.split_first_chunk::<HEAD_BYTES>() {
        let [.., low, high, kind] = *head;
        if REUSED.contains(&kind) {
            return true;
        }
        let length = usize::from(u16::from_le_bytes([low, high]));
        match rest.get(length..) {
            Some(behind) if (kind, length) != (0, 0) => block = behind,
            _ => return false,
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

    fn is_damaged_with(blocks: &[Vec<u8>]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("MANIFEST-000005");
        std::fs::write(&path, blocks.concat()).unwrap();
        is_damaged(&path).unwrap()
    }

    /// F15: damage that would hang RocksDB's reader, in any block.
    #[test]
    fn records_of_files_that_are_used_again_are_damage() {
        let whole = [record(1, b"one"), record(1, b""), record(2, b"three")].concat();
        assert!(!has_reused(&whole));
        for cut in 0..whole.len() {
            assert!(!has_reused(&whole[..cut]), "a file that was being written when the power failed");
        }
        let room = vec![0; 100];
        assert!(!has_reused(&[whole.clone(), room.clone()].concat()), "room that was not used yet");
        let damaged = [whole.clone(), vec![0x4d, 1, 0x1f, 0x15, 0xd8, 0x2d, 8, 0x7d, 0x8d, 0xbc]].concat();
        assert!(has_reused(&damaged));
        assert!(!has_reused(&[whole, room, damaged.clone()].concat()), "nobody reads what is behind such room");

        let full = |begin: &[u8]| {
            let rest = BLOCK_BYTES - begin.len() - HEAD_BYTES;
            [begin, &record(1, &vec![7; rest])].concat()
        };
        let last = record(1, b"last");
        assert!(!is_damaged_with(&[full(&[]), full(&record(1, b"a")), last.clone()]));
        assert!(!is_damaged_with(&[full(&[]), full(&[])]));
        assert!(is_damaged_with(&[full(&[]), damaged]));
        for kind in REUSED {
            let begin = [record(1, b"good"), record(kind, b"bad")].concat();
            assert!(is_damaged_with(&[full(&begin), full(&[]), last.clone()]), "kind {kind} in the first block");
        }
    }
}
