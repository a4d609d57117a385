//! Bytes to values.

use super::{Failure, MAX_DEPTH, MEMORY_BYTES, MEMORY_FOR_EACH_BYTE, ONE_BYTE};
use bincode::{
    Decode,
    de::{DecoderImpl, read::Reader},
    error::DecodeError,
};
use serde::{
    Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, Visitor, value::U32Deserializer},
};

/// The value of a body, which must be the whole input.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let memory = MEMORY_BYTES.saturating_add(bytes.len().saturating_mul(MEMORY_FOR_EACH_BYTE));
    let mut decoder = Decoder { bytes, is_absent: false, is_root: true, depth: 0, memory };
    let value = T::deserialize(&mut decoder)?;
    match decoder.bytes.len() {
        0 => Ok(value),
        left => Err(Failure::new(format!("{left} bytes left over"))),
    }
}

struct Decoder<'de> {
    /// The rest of the innermost block.
    bytes: &'de [u8],
    /// Whether an absent field is being read, as zeros.
    is_absent: bool,
    /// Whether the next struct is the outermost.
    is_root: bool,
    depth: u32,
    /// The memory left for list items.
    memory: usize,
}

impl Reader for Decoder<'_> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), DecodeError> {
        if self.is_absent {
            bytes.fill(0);
            return Ok(());
        }
        let Some((read, rest)) = self.bytes.split_at_checked(bytes.len()) else {
            return Err(DecodeError::UnexpectedEnd { additional: bytes.len() - self.bytes.len() });
        };
        bytes.copy_from_slice(read);
        self.bytes = rest;
        Ok(())
    }

    #[inline]
    fn peek_read(&mut self, length: usize) -> Option<&[u8]> {
        self.bytes.get(..length)
    }

    #[inline]
    fn consume(&mut self, length: usize) {
        self.bytes = self.bytes.get(length..).unwrap_or_default();
    }
}

impl<'de> Decoder<'de> {
    #[inline]
    fn get<T: Decode<()>>(&mut self) -> Result<T, Failure> {
        Ok(T::decode(&mut DecoderImpl::new(self, bincode::config::standard(), ()))?)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Failure> {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                Ok(*byte)
            }
            None if self.is_absent => Ok(0),
            None => Err(Failure::new("cut short")),
        }
    }

    /// An unsigned number. Most are one byte.
    #[inline]
    fn number(&mut self) -> Result<u64, Failure> {
        match self.bytes.split_first() {
            Some((byte, rest)) if *byte <= ONE_BYTE => {
                self.bytes = rest;
                Ok(u64::from(*byte))
            }
            _ => self.get(),
        }
    }

    /// A length, which never exceeds the remaining bytes.
    #[inline]
    fn length(&mut self) -> Result<usize, Failure> {
        let length = self.number()?;
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len() => Ok(length),
            _ => Err(Failure::new(format!("a length of {length} where {} bytes are left", self.bytes.len()))),
        }
    }

    /// Counts the memory of an item.
    #[inline]
    fn spend(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.memory.checked_sub(bytes);
        self.memory = left.ok_or_else(|| Failure::new("lists with more memory than so few bytes can mean"))?;
        Ok(())
    }

    #[inline]
    fn take(&mut self) -> Result<&'de [u8], Failure> {
        let length = self.length()?;
        let (taken, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Ok(taken)
    }

    fn text(&mut self) -> Result<&'de str, Failure> {
        std::str::from_utf8(self.take()?).map_err(|error| Failure::new(error.to_string()))
    }

    /// Reads a named type.
    #[inline]
    fn named<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        if self.depth == MAX_DEPTH {
            return Err(Failure::too_deep());
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Reads a struct: exactly its block.
    #[inline]
    fn block<V: Visitor<'de>>(&mut self, fields: usize, visitor: V) -> Result<V::Value, Failure> {
        let is_root = std::mem::take(&mut self.is_root);
        let block = if is_root { std::mem::take(&mut self.bytes) } else { self.take()? };
        let rest = std::mem::replace(&mut self.bytes, block);
        let value = visitor.visit_seq(Items { decoder: self, left: fields, are_fields: true })?;
        self.bytes = rest;
        Ok(value)
    }
}

/// The fields of a struct, or the items of a list or a tuple.
struct Items<'d, 'de> {
    decoder: &'d mut Decoder<'de>,
    left: usize,
    /// Whether they are the fields of a struct, where those at the end can be absent.
    are_fields: bool,
}

impl<'de> Items<'_, 'de> {
    /// Reads the next one with `seed`, if there is one more.
    #[inline]
    fn next<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if !self.are_fields {
            self.decoder.spend(size_of::<T::Value>())?;
        } else if self.decoder.bytes.is_empty() {
            let before = std::mem::replace(&mut self.decoder.is_absent, true);
            let value = seed.deserialize(&mut *self.decoder)?;
            self.decoder.is_absent = before;
            return Ok(Some(value));
        }
        seed.deserialize(&mut *self.decoder).map(Some)
    }
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = Failure;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        self.next(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Items<'_, 'de> {
    type Error = Failure;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        self.next(seed)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        self.decoder.spend(size_of::<V::Value>())?;
        seed.deserialize(&mut *self.decoder)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The content after the number of a variant.
struct Variant<'d, 'de>(&'d mut Decoder<'de>);

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Failure;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Failure> {
        let index = self.0.number()?;
        let index = u32::try_from(index).map_err(|_| Failure::new(format!("there is no variant {index}")))?;
        let index: U32Deserializer<Failure> = de::IntoDeserializer::into_deserializer(index);
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        Ok(())
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failure> {
        seed.deserialize(self.0)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_seq(Items { decoder: self.0, left: length, are_fields: false })
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Failure> {
        self.0.block(fields.len(), visitor)
    }
}

macro_rules! as_bincode {
    ($($name:ident: $visit:ident),+ $(,)?) => {
        $(
            #[inline]
            fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
                visitor.$visit(self.get()?)
            }
        )+
    };
}

impl<'de> Deserializer<'de> for &mut Decoder<'de> {
    type Error = Failure;

    as_bincode! {
        deserialize_bool: visit_bool,
        deserialize_i8: visit_i8,
        deserialize_i16: visit_i16,
        deserialize_i32: visit_i32,
        deserialize_i64: visit_i64,
        deserialize_i128: visit_i128,
        deserialize_u16: visit_u16,
        deserialize_u32: visit_u32,
        deserialize_u128: visit_u128,
        deserialize_f32: visit_f32,
        deserialize_f64: visit_f64,
        deserialize_char: visit_char,
    }

    #[inline]
    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_u8(self.byte()?)
    }

    #[inline]
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_u64(self.number()?)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Failure> {
        Err(Failure::new("bytes do not say what they are"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_any(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_any(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_str(self.text()?)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_bytes(self.take()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_bytes(self.take()?)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.is_root = false;
        match self.byte()? {
            0 => visitor.visit_none(),
            1 => visitor.visit_some(self),
            other => Err(Failure::new(format!("{other} where 0 or 1 says whether there is something"))),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Failure> {
        self.named(|decoder| visitor.visit_newtype_struct(decoder))
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.is_root = false;
        let left = self.length()?;
        visitor.visit_seq(Items { decoder: self, left, are_fields: false })
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Failure> {
        self.is_root = false;
        visitor.visit_seq(Items { decoder: self, left: length, are_fields: false })
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.is_root = false;
        self.named(|decoder| visitor.visit_seq(Items { decoder, left: length, are_fields: false }))
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.is_root = false;
        let left = self.length()?;
        visitor.visit_map(Items { decoder: self, left, are_fields: false })
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.named(|decoder| decoder.block(fields.len(), visitor))
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.is_root = false;
        self.named(|decoder| visitor.visit_enum(Variant(decoder)))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
