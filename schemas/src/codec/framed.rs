//! The body of a payload: bincode's numbers, texts and lists, with structs as blocks that can grow.
//!
//! - A struct, and a variant with named fields, is a *block*: the length of its fields in bytes, then the fields in
//!   their order. The outermost struct of a value has no length of its own, since the header has it.
//! - Fields at a block's end of which every byte is 0 are left out.
//! - Missing fields are read as zeros: no, 0, nothing, an empty text or list, the first variant.
//! - The rest of a block behind the last field known is skipped.
//!
//! So a field that is added at the end of a struct is one line where it is declared. Older bytes have zeros for it,
//! older programs skip it, and where it is not used the bytes, and digests of them, are as they were before. All else
//! is as bincode's standard configuration has it: variants by number, tuples and newtypes without any frame. These
//! cannot grow, but for variants that are added at the end.
//!
//! Decoding is bounded by the input: nothing is longer than what is left of the block that it is in, the items of lists
//! take at most [`MEMORY_FOR_EACH_BYTE`] times its memory, and named types lie at most [`MAX_DEPTH`] deep in each
//! other.

mod read;
mod write;

pub(super) use read::decode;
pub(super) use write::{digest, encode, encode_item};

use std::fmt;

/// So deep structs, enums and newtypes may lie in each other. Requests of nodes are the deepest: their text is JSON of
/// at most 128 levels.
const MAX_DEPTH: u32 = 160;

/// A struct of zeros is one byte, and may be hundreds in memory: items of lists have this much memory for each byte of
/// the body, so that few bytes from a stranger do not become very much.
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
