//! The encoding of everything that is stored or sent inside the system. No other module names bincode.
//!
//! A payload is a header and a body:
//!
//! ```text
//! byte 0      codec id: 2 = blocks of bincode's numbers, texts and lists (see below)
//! byte 1      schema version
//! bytes 2-5   length of the body, little endian
//! bytes 6-9   CRC-32 of the body, little endian
//! bytes 10-   the body
//! ```
//!
//! The checksum detects damage, because a damaged body usually still decodes, to another value. Decoding is limited in
//! size, must consume the whole body, and never panics.
//!
//! ```
//! use muster_schemas::{JobId, codec};
//!
//! let bytes = codec::encode(&JobId::task(12, 3))?;
//! assert_eq!(codec::decode::<JobId>(&bytes)?, JobId::task(12, 3));
//!
//! let mut damaged = bytes;
//! *damaged.last_mut().unwrap() ^= 1;
//! assert!(codec::decode::<JobId>(&damaged).is_err());
//! # Ok::<(), codec::CodecError>(())
//! ```
//!
//! # Shapes that grow
//!
//! In a body, every struct is a block of known length (`codec/framed.rs`). Add fields at the end of a struct or of a
//! variant with named fields, and variants at the end of an enum; nothing else is needed. Missing fields are read as
//! zeros: `None`, 0, `false`, an empty text or list, the first variant. So a new field must mean "as before" when it is
//! zero; if zero means something else, make it an `Option`. Never remove or move a field, change its type, or skip it
//! conditionally (`skip_serializing_if`): encoding refuses that.
//!
//! Any other change needs a new [`SCHEMA_VERSION`]. The types of the previous version are then copied to a module
//! `stored::vN`, each with a `From` into the current type, and [`decode`] reads a body by the version in its header.

mod framed;

use framed::Failure;
use serde::{Serialize, de::DeserializeOwned};

/// The only codec.
const CODEC_FRAMED: u8 = 2;
/// The newest schema version. [`decode`] upcasts older ones once there are any.
pub const SCHEMA_VERSION: u8 = 1;
/// What a ledger of this version of muster may write and send. It rises with each kind of event, command or message
/// that an older version cannot read although the schema version is the same. Added fields do not raise it.
pub const FEATURE_LEVEL: u32 = 8;
/// The lowest feature level of a ledger that this version of muster can work with: what it sends, and does not store, may have
/// another shape since.
pub const OLDEST_FEATURE_LEVEL: u32 = 2;
/// Size of a header, in bytes.
pub const HEADER_BYTES: usize = 10;
/// Maximum size of a body, in bytes.
pub const MAX_BODY_BYTES: usize = 256 << 20;

/// The version of this muster: of the release, and what it reads and writes, such as `0.1.0+1.2`.
pub fn version() -> String {
    format!("{}+{SCHEMA_VERSION}.{FEATURE_LEVEL}", env!("CARGO_PKG_VERSION"))
}

/// Why a payload cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Fewer bytes than the header says, or not even a header.
    #[error("cut short: {have} bytes of {want}")]
    CutShort {
        /// Number of bytes present.
        have: usize,
        /// Number of bytes expected.
        want: usize,
    },
    /// More bytes than the header says.
    #[error("{0} bytes too many")]
    TooLong(usize),
    /// Written by another version of muster, or not by muster.
    #[error("codec {codec} version {version} is not known to this muster: {}", other_muster(*codec, *version))]
    UnknownVersion {
        /// The codec id found.
        codec: u8,
        /// The schema version found.
        version: u8,
    },
    /// The checksum does not match the body.
    #[error("damaged: checksum {found:08x}, expected {expected:08x}")]
    Damaged {
        /// The checksum of the body.
        found: u32,
        /// The checksum in the header.
        expected: u32,
    },
    /// The body is not a value of the expected type.
    #[error("not decodable: {0}")]
    Malformed(String),
    /// The value cannot be encoded: too large.
    #[error("not encodable: {0}")]
    Unencodable(String),
}

/// What to do about bytes of another version.
fn other_muster(codec: u8, version: u8) -> &'static str {
    if (codec, version) > (CODEC_FRAMED, SCHEMA_VERSION) {
        "a newer one wrote it, upgrade this one"
    } else {
        "an older one wrote it, upgrade that one"
    }
}

impl CodecError {
    fn unencodable(failure: Failure) -> Self {
        Self::Unencodable(failure.to_string())
    }
}

/// Appends the payload of a value to a reusable buffer.
///
/// # Errors
/// [`CodecError::Unencodable`] if the value is larger than [`MAX_BODY_BYTES`], or is not of a type that can be stored.
/// The buffer is then unchanged.
pub fn encode_into<T: Serialize + ?Sized>(value: &T, buffer: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[CODEC_FRAMED, SCHEMA_VERSION, 0, 0, 0, 0, 0, 0, 0, 0]);
    let encoded = framed::encode(value, buffer).map_err(CodecError::unencodable);
    encoded.and_then(|()| seal(buffer, start)).inspect_err(|_| buffer.truncate(start))
}

/// Writes length and checksum of the body into the header at `start`; the body extends to the end of the buffer.
fn seal(buffer: &mut [u8], start: usize) -> Result<(), CodecError> {
    let body_bytes = buffer.len() - start - HEADER_BYTES;
    if body_bytes > MAX_BODY_BYTES {
        return Err(CodecError::Unencodable(format!("{body_bytes} bytes, more than {MAX_BODY_BYTES}")));
    }
    let checksum = crc32fast::hash(&buffer[start + HEADER_BYTES..]);
    buffer[start + 2..start + 6].copy_from_slice(&(body_bytes as u32).to_le_bytes());
    buffer[start + 6..start + 10].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The payload of a value.
///
/// # Errors
/// As [`encode_into`].
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut buffer = Vec::with_capacity(256);
    encode_into(value, &mut buffer)?;
    Ok(buffer)
}

/// Space before the items, for the header and the longest encoded number of items.
const FRONT_BYTES: usize = HEADER_BYTES + 9;

/// Encodes a struct whose first field is a list, item by item: the payload is that of the whole struct, which is never
/// in memory as a whole.
#[derive(Debug)]
pub struct ListEncoder {
    items: u64,
    /// The bytes before the items are known only at the end: the space for them is in front, so that nothing has to be
    /// moved then.
    bytes: Vec<u8>,
}

impl Default for ListEncoder {
    fn default() -> Self {
        Self { items: 0, bytes: vec![0; FRONT_BYTES] }
    }
}

impl ListEncoder {
    /// Appends an item of the list.
    ///
    /// # Errors
    /// [`CodecError::Unencodable`] if the list is larger than [`MAX_BODY_BYTES`].
    pub fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), CodecError> {
        framed::encode_item(item, &mut self.bytes).map_err(CodecError::unencodable)?;
        self.items += 1;
        match self.bytes.len() - FRONT_BYTES {
            0..=MAX_BODY_BYTES => Ok(()),
            bytes => Err(CodecError::Unencodable(format!("{bytes} bytes, more than {MAX_BODY_BYTES}"))),
        }
    }

    /// The payload of the struct that has the list followed by the fields of another struct: a buffer, and the offset
    /// where the payload begins.
    ///
    /// # Errors
    /// As [`encode_into`].
    pub fn finish<T: Serialize>(mut self, rest: &T) -> Result<(Vec<u8>, usize), CodecError> {
        framed::encode(rest, &mut self.bytes).map_err(CodecError::unencodable)?;
        let mut front = encode(&self.items)?;
        if self.items == 0 && self.bytes.len() == FRONT_BYTES {
            // A struct of zeros has no bytes.
            front.truncate(HEADER_BYTES);
        }
        let start = FRONT_BYTES - front.len();
        self.bytes[start..FRONT_BYTES].copy_from_slice(&front);
        seal(&mut self.bytes, start)?;
        Ok((self.bytes, start))
    }
}

/// BLAKE3 digest of the body of a value, whatever its size. Equal bytes mean equal values.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> [u8; 32] {
    // The encoder accepts all of our types.
    *framed::digest(value).expect("every stored type can be encoded").as_bytes()
}

/// The value of a payload, which must be the whole input.
///
/// # Errors
/// Says what is wrong with the bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(CodecError::CutShort { have: bytes.len(), want: HEADER_BYTES });
    };
    if header[0] != CODEC_FRAMED || header[1] != SCHEMA_VERSION {
        return Err(CodecError::UnknownVersion { codec: header[0], version: header[1] });
    }
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (length, expected) = (word(2) as usize, word(6));
    if rest.len() < length {
        return Err(CodecError::CutShort { have: rest.len(), want: length });
    }
    if rest.len() > length {
        return Err(CodecError::TooLong(rest.len() - length));
    }
    let found = crc32fast::hash(rest);
    if found != expected {
        return Err(CodecError::Damaged { found, expected });
    }
    framed::decode(rest).map_err(|failure| CodecError::Malformed(failure.to_string()))
}
