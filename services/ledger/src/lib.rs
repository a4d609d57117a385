//! The ledger: the log in RocksDB, the decide loop in front of it, and what follows from the log: snapshots, signed
//! checkpoints, audit bundles, archives, and the outbox to the bus.
//!
//! [`serve`] runs it as a service. [`verify_folder`] and [`export()`] work on a data folder, even while a ledger is
//! running.

pub mod archive;
pub mod backup;
mod beats;
pub mod bundle;
mod calls;
mod causes;
mod checks;
mod clock;
mod config;
mod contents;
mod descriptions;
mod dispatch;
mod engine;
pub mod export;
mod fence;
mod handle;
mod intake;
mod keeper;
mod lead;
pub mod limits;
mod liveness;
pub mod log;
mod metrics;
mod names;
mod notary;
mod opened;
mod outbox;
mod queries;
mod refusals;
pub mod replication;
mod restored;
pub mod retention;
pub mod room;
mod runners;
mod service;
pub mod signing;
pub mod snapshots;
pub mod stepped;
pub mod storage;
mod tokens;
pub mod verify;
pub mod witness;
mod work;

pub use config::{Config, Replication};
pub use export::export;
pub use service::{serve, serve_member};
pub use verify::verify_folder;

use std::{fmt::Write as _, io, path::Path};

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// The user that this process acts as.
pub(crate) fn own_user() -> u32 {
    // SAFETY: the call has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

/// Makes a rename within the folder of `path` durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| std::fs::File::open(folder)?.sync_all())
}

/// Opens a file for reading, but no pipe or device, which would be read without end.
///
/// # Errors
/// If it cannot be opened; [`io::ErrorKind::InvalidData`] if it is not a regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<std::fs::File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
    }
    std::fs::File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_both_ways() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&hex(&bytes)).unwrap(), bytes);
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("+f"), None);
        assert_eq!(from_hex("0g"), None);
    }
}
