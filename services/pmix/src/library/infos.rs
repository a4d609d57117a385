//! Facts as an array of `pmix_info_t`, with all that it points to.

use super::types::{
    self, ByteObject, Data, DataArray, Info, TYPE_BOOL, TYPE_DATA_ARRAY, TYPE_INFO, TYPE_RANK, TYPE_REGEX, TYPE_STRING,
    TYPE_UINT16, TYPE_UINT32,
};
use crate::facts::{Fact, Value};
use std::ffi::CString;

/// An array for the library. It only reads it, and has to be done with it before this is dropped.
pub struct Infos {
    infos: Vec<Info>,
    /// What the array points to. Each is on the heap by itself, so the pointers stay right when this grows or moves.
    texts: Vec<CString>,
    maps: Vec<Vec<u8>>,
    inner: Vec<(Infos, Box<DataArray>)>,
}

impl Infos {
    /// The array of these facts; `None` if one of them holds a text with a zero byte.
    pub fn new(facts: &[Fact]) -> Option<Self> {
        let mut infos =
            Self { infos: Vec::with_capacity(facts.len()), texts: Vec::new(), maps: Vec::new(), inner: Vec::new() };
        for fact in facts {
            infos.push(fact)?;
        }
        Some(infos)
    }

    /// The array and its length, for a call of the library.
    pub fn as_raw(&mut self) -> (*mut Info, usize) {
        (self.infos.as_mut_ptr(), self.infos.len())
    }

    fn push(&mut self, fact: &Fact) -> Option<()> {
        let mut data = Data { largest: [std::ptr::null_mut(); 3] };
        let kind = match &fact.value {
            Value::Flag(flag) => {
                data.flag = *flag;
                TYPE_BOOL
            }
            Value::Short(number) => {
                data.uint16 = *number;
                TYPE_UINT16
            }
            Value::Number(number) => {
                data.uint32 = *number;
                TYPE_UINT32
            }
            Value::Rank(rank) => {
                data.uint32 = *rank;
                TYPE_RANK
            }
            Value::Text(text) => {
                let text = CString::new(text.as_str()).ok()?;
                data.string = text.as_ptr().cast_mut();
                self.texts.push(text);
                TYPE_STRING
            }
            Value::Map(bytes) => {
                let mut bytes = bytes.clone();
                data.bytes = ByteObject { bytes: bytes.as_mut_ptr().cast(), size: bytes.len() };
                self.maps.push(bytes);
                TYPE_REGEX
            }
            Value::Facts(facts) => {
                data.array = self.push_inner(facts)?;
                TYPE_DATA_ARRAY
            }
        };
        let value = types::Value { kind, data };
        self.infos.push(Info { key: types::key_of(fact.key)?, flags: 0, value });
        Some(())
    }

    fn push_inner(&mut self, facts: &[Fact]) -> Option<*mut DataArray> {
        let mut inner = Self::new(facts)?;
        let (array, size) = inner.as_raw();
        let mut array = Box::new(DataArray { kind: TYPE_INFO, size, array: array.cast() });
        let pointer = &raw mut *array;
        self.inner.push((inner, array));
        Some(pointer)
    }
}
