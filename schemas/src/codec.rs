//! The bytes of everything that is stored or sent inside the system. No other module names bincode.
//!
//! A payload is a header and a body:
//!
//! ```text
//! byte 0      codec id: 1 = bincode 2, standard configuration
//! byte 1      schema version
//! bytes 2-5   length of the body, little endian
//! bytes 6-9   CRC-32 of the body, little endian
//! bytes 10-   the body
//! ```
//!
//! The checksum is what finds damage: a damaged body mostly still decodes, to something else. Decoding is limited in
//! size, must consume the whole body, and never panics.

use serde::{Serialize, de::DeserializeOwned};

/// The only codec there is yet.
const CODEC_BINCODE: u8 = 1;
/// The newest schema version. Older ones are upcast in [`decode`] once there are any.
pub const SCHEMA_VERSION: u8 = 1;
/// Bytes of a header.
pub const HEADER_BYTES: usize = 10;
/// No payload is larger.
pub const MAX_BODY_BYTES: usize = 256 << 20;

/// Why bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Fewer bytes than the header says, or not even a header.
    #[error("cut short: {have} bytes of {want}")]
    CutShort {
        /// How many there are.
        have: usize,
        /// How many there should be.
        want: usize,
    },
    /// More bytes than the header says.
    #[error("{0} bytes too many")]
    TooLong(usize),
    /// Written by a newer muster, or not by muster.
    #[error("codec {codec} version {version} is not known to this muster")]
    UnknownVersion {
        /// The codec id found.
        codec: u8,
        /// The schema version found.
        version: u8,
    },
    /// The checksum does not fit the body.
    #[error("damaged: checksum {found:08x}, expected {expected:08x}")]
    Damaged {
        /// Of the body.
        found: u32,
        /// In the header.
        expected: u32,
    },
    /// The body is not a value of the type wanted.
    #[error("not decodable: {0}")]
    Malformed(String),
    /// The value cannot be encoded: too large.
    #[error("not encodable: {0}")]
    Unencodable(String),
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MAX_BODY_BYTES>()
}

/// Appends the payload of a value to a buffer that can be used again and again.
///
/// # Errors
/// [`CodecError::Unencodable`] if the value is larger than [`MAX_BODY_BYTES`]; the buffer is then as before.
pub fn encode_into<T: Serialize + ?Sized>(value: &T, buffer: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[CODEC_BINCODE, SCHEMA_VERSION, 0, 0, 0, 0, 0, 0, 0, 0]);
    let encoded = bincode::serde::encode_into_std_write(value, buffer, config());
    let encoded = encoded.map_err(|error| CodecError::Unencodable(error.to_string()));
    encoded.and_then(|_| seal(buffer, start)).inspect_err(|_| buffer.truncate(start))
}

/// Writes length and checksum of the body into the header at `start`; the body goes to the end of the buffer.
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

/// Encodes a value whose first field is a list, item by item: the payload is that of the whole value, which is never in
/// memory.
#[derive(Debug, Default)]
pub struct ListEncoder {
    items: u64,
    bytes: Vec<u8>,
}

impl ListEncoder {
    /// Appends an item of the list.
    ///
    /// # Errors
    /// [`CodecError::Unencodable`] if the list is larger than [`MAX_BODY_BYTES`].
    pub fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), CodecError> {
        self.append(item)?;
        self.items += 1;
        Ok(())
    }

    fn append<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CodecError> {
        let encoded = bincode::serde::encode_into_std_write(value, &mut self.bytes, config());
        encoded.map_err(|error| CodecError::Unencodable(error.to_string()))?;
        match self.bytes.len() {
            0..=MAX_BODY_BYTES => Ok(()),
            bytes => Err(CodecError::Unencodable(format!("{bytes} bytes, more than {MAX_BODY_BYTES}"))),
        }
    }

    /// The payload of the value that has the list and, behind it, the fields of a tuple.
    ///
    /// # Errors
    /// As [`encode_into`].
    pub fn finish<T: Serialize>(mut self, rest: &T) -> Result<Vec<u8>, CodecError> {
        self.append(rest)?;
        let mut buffer = Vec::with_capacity(self.bytes.len() + 2 * HEADER_BYTES);
        encode_into(&self.items, &mut buffer)?;
        buffer.extend_from_slice(&self.bytes);
        seal(&mut buffer, 0)?;
        Ok(buffer)
    }
}

/// BLAKE3 digest of the bytes of a value, without a header and whatever its size. Equal bytes mean equal values.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> [u8; 32] {
    let mut hasher = std::io::BufWriter::with_capacity(64 << 10, blake3::Hasher::new());
    let encoded = bincode::serde::encode_into_std_write(value, &mut hasher, bincode::config::standard());
    // Writing to a hasher cannot fail, and no type of ours has a form that the encoder refuses.
    encoded.expect("every stored type can be encoded");
    *hasher
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .expect("a hasher takes all bytes")
        .finalize()
        .as_bytes()
}

/// The first payload of the input, and what is behind it.
///
/// # Errors
/// [`CodecError::CutShort`] if the input is shorter than its first payload.
pub fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), CodecError> {
    let length = bytes.get(2..6).and_then(|word| word.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word));
    let want = HEADER_BYTES + length as usize;
    bytes.split_at_checked(want).ok_or(CodecError::CutShort { have: bytes.len(), want })
}

/// The value of a payload, which must be the whole input.
///
/// # Errors
/// Says what is wrong with the bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(CodecError::CutShort { have: bytes.len(), want: HEADER_BYTES });
    };
    if header[0] != CODEC_BINCODE || header[1] != SCHEMA_VERSION {
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
    let (value, used) =
        bincode::serde::decode_from_slice(rest, config()).map_err(|error| CodecError::Malformed(error.to_string()))?;
    if used != rest.len() {
        return Err(CodecError::Malformed(format!("{} bytes left over", rest.len() - used)));
    }
    Ok(value)
}
