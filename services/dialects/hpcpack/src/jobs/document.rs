//! Stored descriptions: the bytes, compressed if there are many (HPC-J-46).

use crate::{
    codes::Code,
    description::{DescriptionError, Format, MOST_BYTES},
};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use muster_schemas::filter::JobDocument;
use std::io::{Read as _, Write as _};

/// Smaller descriptions are not compressed.
const LEAST_COMPRESSED_BYTES: usize = 4 << 10;
/// The largest stored description, in bytes: it must fit into one record together with the job.
pub const MOST_STORED_BYTES: usize = 3 << 20;

impl Format {
    /// The word for it in a [`JobDocument`].
    pub const fn word(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Json => "json",
        }
    }

    /// The format for this word.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Xml, Self::Json].into_iter().find(|format| format.word() == word)
    }
}

/// Packs the bytes of a description for storage.
pub fn pack(format: Format, bytes: &[u8]) -> JobDocument {
    let compressed = (bytes.len() >= LEAST_COMPRESSED_BYTES).then(|| compress(bytes)).flatten();
    let is_compressed = compressed.is_some();
    let bytes = compressed.unwrap_or_else(|| bytes.to_vec());
    JobDocument { format: format.word().to_owned(), is_compressed, bytes: bytes.into() }
}

/// The compressed bytes, if there are fewer of them.
fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().filter(|compressed| compressed.len() < bytes.len())
}

/// The bytes of a stored description, as received or written, and their format.
///
/// # Errors
/// `JobXmlNotValid`: an unknown format, bytes that cannot be decompressed, or more than [`MOST_BYTES`] of them.
pub fn unpack(document: &JobDocument) -> Result<(Format, Vec<u8>), DescriptionError> {
    let not_valid = |text: String| DescriptionError::new(Code::JobXmlNotValid, text);
    let format = Format::named(&document.format)
        .ok_or_else(|| not_valid(format!("a description in the unknown format `{}`", document.format)))?;
    if !document.is_compressed {
        return Ok((format, document.bytes.to_vec()));
    }
    let mut bytes = Vec::new();
    let mut decoder = GzDecoder::new(&*document.bytes).take(MOST_BYTES as u64 + 1);
    decoder.read_to_end(&mut bytes).map_err(|error| not_valid(format!("it cannot be decompressed: {error}")))?;
    if bytes.len() > MOST_BYTES {
        return Err(not_valid(format!("larger than {} MiB", MOST_BYTES >> 20)));
    }
    Ok((format, bytes))
}
