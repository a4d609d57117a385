//! Values to bytes.

use super::{EIGHT_BYTES, FOUR_BYTES, Failure, MAX_DEPTH, ONE_BYTE, TWO_BYTES};
use bincode::{
    Encode,
    enc::{EncoderImpl, write::Writer},
    error::EncodeError,
};
use serde::ser::{self, Serialize, Serializer};

/// Number of bytes to collect for the hasher.
const HASHED_AT_ONCE: usize = 64 << 10;

/// Appends the body of a value.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> Result<(), Failure> {
    value.serialize(&mut Encoder { bytes, hashed: 0, hasher: None, depth: 0, open: 0, is_root: true })
}

/// Appends a value as it appears inside another.
pub(crate) fn encode_item<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> Result<(), Failure> {
    value.serialize(&mut Encoder { bytes, hashed: 0, hasher: None, depth: 0, open: 0, is_root: false })
}

/// The digest of the body of a value. Lists in the outermost struct are hashed in parts, so that the body is never in
/// memory as a whole.
pub(crate) fn digest<T: Serialize + ?Sized>(value: &T) -> Result<blake3::Hash, Failure> {
    let (mut bytes, mut hasher) = (Vec::with_capacity(2 * HASHED_AT_ONCE), blake3::Hasher::new());
    let hashing = Some(&mut hasher);
    value.serialize(&mut Encoder {
        bytes: &mut bytes,
        hashed: 0,
        hasher: hashing,
        depth: 0,
        open: 0,
        is_root: true,
    })?;
    hasher.update(&bytes);
    Ok(hasher.finalize())
}

struct Encoder<'a> {
    bytes: &'a mut Vec<u8>,
    /// Number of bytes already given to the hasher.
    hashed: usize,
    hasher: Option<&'a mut blake3::Hasher>,
    depth: u32,
    /// Number of blocks whose length is not written yet.
    open: u32,
    /// Whether the next struct is the outermost.
    is_root: bool,
}

/// The buffer that bincode writes to.
struct Plain<'a>(&'a mut Vec<u8>);

impl Writer for Plain<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

impl Encoder<'_> {
    #[inline]
    fn put<T: Encode + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        Ok(value.encode(&mut EncoderImpl::new(Plain(self.bytes), bincode::config::standard()))?)
    }

    /// Writes a number as bincode does. Most are one byte, and every field, list and variant has one.
    #[inline]
    fn number(&mut self, value: u64) {
        match value {
            0..=250 => self.bytes.push(value as u8),
            251..=0xffff => self.wide_number(TWO_BYTES, 2, value),
            0x1_0000..=0xffff_ffff => self.wide_number(FOUR_BYTES, 4, value),
            _ => self.wide_number(EIGHT_BYTES, 8, value),
        }
    }

    fn wide_number(&mut self, mark: u8, wide: usize, value: u64) {
        let mut bytes = [mark; 9];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        self.bytes.extend_from_slice(&bytes[..=wide]);
    }

    #[inline]
    fn text(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn position(&self) -> usize {
        self.hashed + self.bytes.len()
    }

    /// Whether anything but zeros was written since a position.
    #[inline]
    fn has_meaning_since(&self, position: usize) -> bool {
        // Only bytes of lists with items are given to the hasher, and the number of items is not 0.
        position < self.hashed || self.bytes[position - self.hashed..].iter().any(|byte| *byte != 0)
    }

    /// Gives the collected bytes to the hasher, unless a length before them is not written yet.
    #[inline]
    fn item_done(&mut self) {
        if self.open == 0
            && self.bytes.len() >= HASHED_AT_ONCE
            && let Some(hasher) = &mut self.hasher
        {
            hasher.update(self.bytes);
            self.hashed += self.bytes.len();
            self.bytes.clear();
        }
    }

    fn enter(&mut self) -> Result<(), Failure> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Failure::too_deep()) } else { Ok(()) }
    }

    fn list(&mut self, items: Option<usize>) -> Result<(), Failure> {
        self.is_root = false;
        let items = items.ok_or_else(|| Failure::new("a list whose length is not known before"))?;
        self.number(items as u64);
        Ok(())
    }

    /// Writes the length of a block at its position, where one byte is reserved for it.
    fn close(&mut self, at: usize) {
        let length = self.bytes.len() - at - 1;
        let (mark, wide) = match length as u64 {
            0..=250 => (length as u8, 0),
            251..=0xffff => (TWO_BYTES, 2),
            0x1_0000..=0xffff_ffff => (FOUR_BYTES, 4),
            _ => (EIGHT_BYTES, 8),
        };
        debug_assert!(wide > 0 || mark <= ONE_BYTE);
        self.bytes[at] = mark;
        if wide > 0 {
            let end = self.bytes.len();
            self.bytes.resize(end + wide, 0);
            self.bytes.copy_within(at + 1..end, at + 1 + wide);
            self.bytes[at + 1..at + 1 + wide].copy_from_slice(&(length as u64).to_le_bytes()[..wide]);
        }
    }
}

/// A struct that is being written.
struct Block<'s, 'a> {
    encoder: &'s mut Encoder<'a>,
    /// Where its length goes, unless it is the outermost.
    at: Option<usize>,
    /// The end of the last field that is not all zeros.
    kept: usize,
}

impl<'s, 'a> Block<'s, 'a> {
    fn open(encoder: &'s mut Encoder<'a>) -> Result<Self, Failure> {
        encoder.enter()?;
        let at = if std::mem::take(&mut encoder.is_root) {
            None
        } else {
            encoder.bytes.push(0);
            encoder.open += 1;
            Some(encoder.bytes.len() - 1)
        };
        let kept = encoder.position();
        Ok(Self { encoder, at, kept })
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let before = self.encoder.position();
        value.serialize(&mut *self.encoder)?;
        if self.encoder.has_meaning_since(before) {
            self.kept = self.encoder.position();
        }
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        self.encoder.bytes.truncate(self.kept - self.encoder.hashed);
        if let Some(at) = self.at {
            self.encoder.close(at);
            self.encoder.open -= 1;
        }
        self.encoder.depth -= 1;
        Ok(())
    }
}

/// A value without its own frame.
struct Flat<'s, 'a> {
    encoder: &'s mut Encoder<'a>,
    /// Whether a named type ends with it.
    is_named: bool,
}

impl Flat<'_, '_> {
    /// Writes a part of a tuple. It may be the zeros of a field, so the hasher gets it with the rest of the field.
    #[inline]
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        value.serialize(&mut *self.encoder)
    }

    /// Writes an item of a list.
    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.part(value)?;
        self.encoder.item_done();
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        self.encoder.depth -= u32::from(self.is_named);
        Ok(())
    }
}

macro_rules! as_bincode {
    ($($name:ident: $type:ty),+ $(,)?) => {
        $(
            #[inline]
            fn $name(self, value: $type) -> Result<(), Failure> {
                self.put(&value)
            }
        )+
    };
}

impl<'s, 'a> Serializer for &'s mut Encoder<'a> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = Flat<'s, 'a>;
    type SerializeTuple = Flat<'s, 'a>;
    type SerializeTupleStruct = Flat<'s, 'a>;
    type SerializeTupleVariant = Flat<'s, 'a>;
    type SerializeMap = Flat<'s, 'a>;
    type SerializeStruct = Block<'s, 'a>;
    type SerializeStructVariant = Block<'s, 'a>;

    as_bincode! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
    }

    #[inline]
    fn serialize_u16(self, value: u16) -> Result<(), Failure> {
        self.number(u64::from(value));
        Ok(())
    }

    #[inline]
    fn serialize_u32(self, value: u32) -> Result<(), Failure> {
        self.number(u64::from(value));
        Ok(())
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<(), Failure> {
        self.number(value);
        Ok(())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Failure> {
        self.text(value.as_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Failure> {
        self.text(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Failure> {
        self.bytes.push(0);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failure> {
        self.is_root = false;
        self.bytes.push(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Failure> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Failure> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Result<(), Failure> {
        self.enter()?;
        self.number(u64::from(index));
        self.depth -= 1;
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Failure> {
        self.enter()?;
        value.serialize(&mut *self)?;
        self.depth -= 1;
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        self.is_root = false;
        self.enter()?;
        self.number(u64::from(index));
        value.serialize(&mut *self)?;
        self.depth -= 1;
        Ok(())
    }

    fn serialize_seq(self, items: Option<usize>) -> Result<Self::SerializeSeq, Failure> {
        self.list(items)?;
        Ok(Flat { encoder: self, is_named: false })
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Failure> {
        self.is_root = false;
        Ok(Flat { encoder: self, is_named: false })
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Failure> {
        self.is_root = false;
        self.enter()?;
        Ok(Flat { encoder: self, is_named: true })
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Failure> {
        self.is_root = false;
        self.enter()?;
        self.number(u64::from(index));
        Ok(Flat { encoder: self, is_named: true })
    }

    fn serialize_map(self, items: Option<usize>) -> Result<Self::SerializeMap, Failure> {
        self.list(items)?;
        Ok(Flat { encoder: self, is_named: false })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Failure> {
        Block::open(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Failure> {
        self.is_root = false;
        self.number(u64::from(index));
        Block::open(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! block {
    ($($access:ident),+) => {
        $(impl ser::$access for Block<'_, '_> {
            type Ok = ();
            type Error = Failure;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Failure> {
                self.field(value)
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), Failure> {
                Err(skipped(name))
            }

            fn end(self) -> Result<(), Failure> {
                Block::end(self)
            }
        })+
    };
}

block!(SerializeStruct, SerializeStructVariant);

/// Refuses a conditionally skipped field: the next field would be read in its place.
#[cold]
fn skipped(name: &str) -> Failure {
    Failure::new(format!("the field `{name}` of a stored type is skipped now and then"))
}

macro_rules! flat {
    ($($access:ident::$write:ident by $item:ident),+ $(,)?) => {
        $(impl ser::$access for Flat<'_, '_> {
            type Ok = ();
            type Error = Failure;

            #[inline]
            fn $write<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
                self.$item(value)
            }

            fn end(self) -> Result<(), Failure> {
                Flat::end(self)
            }
        })+
    };
}

flat! {
    SerializeSeq::serialize_element by item,
    SerializeTuple::serialize_element by part,
    SerializeTupleStruct::serialize_field by part,
    SerializeTupleVariant::serialize_field by part,
}

impl ser::SerializeMap for Flat<'_, '_> {
    type Ok = ();
    type Error = Failure;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.part(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.item(value)
    }

    fn end(self) -> Result<(), Failure> {
        Flat::end(self)
    }
}
