//! Archives of the files of jobs on nodes whose agent asks for its orders (OAR-K-07, OAR-K-11).
//!
//! An archive is one of tar, plain or compressed by gzip. It holds files and folders and nothing else. Whoever unpacks one
//! trusts nothing in it: it is [checked](check) as a whole before the first file is written, and no name leads out of the
//! folder that it is unpacked in.

mod entries;
mod pack;
mod unpack;

pub use entries::{Limits, inside};
pub use pack::{Known, changed, files_of, pack};
pub use unpack::{check, unpack, unpack_if_asked};

use std::{
    fs::File,
    io::{self, Read as _, Seek as _},
};

/// The first argument that makes a program of muster unpack the archive at its standard input, in the folder that is the
/// second argument. The third is the most bytes.
pub const UNPACK: &str = "unpack-archive";
/// The exit status of that program for an archive that is refused.
pub const REFUSED: u8 = 2;

/// Why an archive cannot be made or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It holds something that it must not hold: what, for people. Nothing was written.
    #[error("the archive is refused: {0}")]
    Refused(String),
    /// The files cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl ArchiveError {
    pub(crate) fn refused<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self::Refused(why.into()))
    }

    pub(crate) fn about(what: &str, error: io::Error) -> Self {
        Self::Io(io::Error::new(error.kind(), format!("{what}: {error}")))
    }
}

/// The BLAKE3 hash of a file, in hexadecimal digits, and its size in bytes.
///
/// # Errors
/// The file cannot be read.
pub fn sum_of(file: &mut File) -> io::Result<(String, u64)> {
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            file.rewind()?;
            return Ok((hasher.finalize().to_hex().to_string(), bytes));
        }
        hasher.update(&buffer[..read]);
        bytes += read as u64;
    }
}

/// Whether an archive is compressed by gzip, by its first bytes.
///
/// # Errors
/// The file cannot be read.
pub fn is_gzip(file: &mut File) -> io::Result<bool> {
    file.rewind()?;
    let mut magic = Vec::with_capacity(2);
    file.take(2).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(magic == [0x1f, 0x8b])
}
