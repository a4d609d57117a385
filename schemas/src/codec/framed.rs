//! The body of a payload: bincode's numbers, texts and lists, with structs as growable blocks.
//!
//! - A struct, and a variant with named fields, is a *block*: the length of its fields in bytes, then the fields in
//!   their order. The outermost struct of a value has no length of its own, since the header has it.
//! - Fields at the end of a block are left out if all their bytes are 0.
//! - Missing fields are read as zeros: `false`, 0, `None`, an empty text or list, the first variant.
//! - The rest of a block after the last known field is skipped.
//!
//! So a new field at the end of a struct takes one line, in its declaration. Older bytes have zeros for it, older
//! programs skip it, and while it is unused, the bytes and their digests stay the same. Everything else follows
//! bincode's standard configuration: variants by number, tuples and newtypes without a frame. These cannot grow, except
//! by variants added at the end.
//!
//! Decoding is bounded by the input: nothing is longer than the rest of its block, list items take at most
//! [`MEMORY_FOR_EACH_BYTE`] times the memory of the input, and named types nest at most [`MAX_DEPTH`] deep.

mod read;
mod write;

pub(super) use read::decode;
pub(super) use write::{digest, encode, encode_item};

use std::fmt;

/// Maximum nesting of structs, enums and newtypes. Requests of nodes are the deepest: their text is JSON of at most 128
/// levels.
const MAX_DEPTH: u32 = 160;

/// Memory allowed for list items, for each byte of the body. A struct of zeros is one byte but may take hundreds in
/// memory; the limit keeps a small message from a stranger from growing very large.
const MEMORY_FOR_EACH_BYTE: usize = 64;
/// Memory allowed for any body.
const MEMORY_BYTES: usize = 16 << 20;

/// Lengths up to this are one byte, as bincode writes numbers.
const ONE_BYTE: u8 = 250;
/// Marks a number of two bytes.
const TWO_BYTES: u8 = 251;
/// Marks a number of four bytes.
const FOUR_BYTES: u8 = 252;
/// Marks a number of eight bytes.
const EIGHT_BYTES: u8 = 253;

/// Why a value cannot be written or read.
#[derive(Debug)]
pub(super) struct Failure(Box<str>);

impl Failure {
    fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    #[cold]
    fn too_deep() -> Self {
        Self::new("types lie too deep in each other")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl serde::ser::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl serde::de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl From<bincode::error::EncodeError> for Failure {
    #[cold]
    fn from(error: bincode::error::EncodeError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<bincode::error::DecodeError> for Failure {
    #[cold]
    fn from(error: bincode::error::DecodeError) -> Self {
        Self::new(error.to_string())
    }
}
