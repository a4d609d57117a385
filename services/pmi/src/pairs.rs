//! Pairs of key and value on their way between the servers of a program.

use std::collections::BTreeMap;

/// Pairs, by key.
pub type Pairs = BTreeMap<String, String>;

/// The bytes are no pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPairs;

/// Each text is its length (4 bytes, little endian) and its bytes.
pub(crate) fn to_bytes(pairs: &Pairs) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pairs.iter().map(|(key, value)| key.len() + value.len() + 8).sum());
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// The reverse.
///
/// # Errors
/// The bytes are no pairs.
pub(crate) fn from_bytes(mut bytes: &[u8]) -> Result<Pairs, BadPairs> {
    let mut pairs = Pairs::new();
    while !bytes.is_empty() {
        let key = text(&mut bytes)?;
        pairs.insert(key, text(&mut bytes)?);
    }
    Ok(pairs)
}

fn text(bytes: &mut &[u8]) -> Result<String, BadPairs> {
    let (length, rest) = bytes.split_first_chunk().ok_or(BadPairs)?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(BadPairs)?;
    *bytes = rest;
    str::from_utf8(text).map(str::to_owned).map_err(|_| BadPairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn pairs_survive_the_way(pairs in proptest::collection::btree_map(".*", ".*", 0..8)) {
            proptest::prop_assert_eq!(from_bytes(&to_bytes(&pairs)), Ok(pairs));
        }

        #[test]
        fn rubbish_is_refused_or_read_but_never_a_panic(bytes in proptest::collection::vec(0u8.., 0..64)) {
            let _ = from_bytes(&bytes);
        }
    }

    #[test]
    fn half_a_pair_is_none() {
        let bytes = to_bytes(&Pairs::from([("key".to_owned(), "value".to_owned())]));
        for end in 1..bytes.len() {
            assert_eq!(from_bytes(&bytes[..end]), Err(BadPairs), "cut at {end}");
        }
    }
}
