//! What other ledgers need of a commit: records and answers as they are stored, so that every ledger's log has the same
//! bytes, and notifications that are done. What else a commit holds follows from its records.
//!
//! ```text
//! version (1 byte), then three lists, each with a count (4 bytes):
//!   records             size (4 bytes), codec payload
//!   answers             command key (32 bytes), size (4 bytes), stored value
//!   notifications done  record (8 bytes), number (4 bytes)
//! ```
//!
//! Numbers are big endian.

use muster_schemas::ids::Sequence;

const VERSION: u8 = 1;

/// A body in preparation.
#[derive(Debug, Default)]
pub(crate) struct BodyWriter {
    records: List,
    answers: List,
    done: List,
}

#[derive(Debug, Default)]
struct List {
    count: u32,
    bytes: Vec<u8>,
}

impl List {
    fn item(&mut self, parts: [&[u8]; 2]) {
        self.count += 1;
        parts.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
    }
}

/// Sizes are far below this: the codec allows 256 MiB.
fn size(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes()
}

impl BodyWriter {
    pub(crate) fn record(&mut self, payload: &[u8]) {
        self.records.item([&size(payload), payload]);
    }

    pub(crate) fn answer(&mut self, command: &[u8; 32], value: &[u8]) {
        self.answers.item([command, &size(value)]);
        self.answers.bytes.extend_from_slice(value);
    }

    pub(crate) fn done(&mut self, of: Sequence, number: u32) {
        self.done.item([&of.0.to_be_bytes(), &number.to_be_bytes()]);
    }

    /// Its size so far, in bytes; 0 if there is nothing in it.
    pub(crate) fn len(&self) -> usize {
        self.records.bytes.len() + self.answers.bytes.len() + self.done.bytes.len()
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.len() + 13);
        body.push(VERSION);
        for list in [self.records, self.answers, self.done] {
            body.extend_from_slice(&list.count.to_be_bytes());
            body.extend_from_slice(&list.bytes);
        }
        body
    }
}

/// A body, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Body<'a> {
    /// Payloads of records, in order.
    pub(crate) records: Vec<&'a [u8]>,
    /// Keys of commands, and the stored answers.
    pub(crate) answers: Vec<([u8; 32], &'a [u8])>,
    /// Notifications that are done: the record that they are about, and their number.
    pub(crate) done: Vec<(Sequence, u32)>,
}

impl<'a> Body<'a> {
    /// Reads a body; `None` if it is not one. An empty one has nothing in it.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let mut rest = Rest(bytes);
        if rest.take::<1>()? != [VERSION] {
            return None;
        }
        // Nothing is allocated for a count that the bytes cannot hold.
        let mut body = Self::default();
        for _ in 0..rest.number()? {
            body.records.push(rest.sized()?);
        }
        for _ in 0..rest.number()? {
            body.answers.push((rest.take()?, rest.sized()?));
        }
        for _ in 0..rest.number()? {
            body.done.push((Sequence(u64::from_be_bytes(rest.take()?)), rest.number()?));
        }
        rest.0.is_empty().then_some(body)
    }
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let size = usize::try_from(self.number()?).ok()?;
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_it_was_written_and_no_other_way() {
        let mut writer = BodyWriter::default();
        writer.record(b"one");
        writer.record(b"");
        writer.answer(&[7; 32], b"yes");
        writer.done(Sequence(9), 2);
        let bytes = writer.finish();
        let body = Body::read(&bytes).unwrap();
        assert_eq!(body.records, [&b"one"[..], b""]);
        assert_eq!((body.answers, body.done), (vec![([7; 32], &b"yes"[..])], vec![(Sequence(9), 2)]));
        for length in 1..bytes.len() {
            assert_eq!(Body::read(&bytes[..length]), None, "cut short to {length}");
        }
        assert_eq!(Body::read(&[&bytes[..], b"x"].concat()), None);
        assert_eq!(Body::read(&[2]), None);
        assert_eq!(Body::read(&[VERSION, 255, 255, 255, 255]), None);
        assert_eq!(Body::read(&[]), Some(Body::default()));
    }
}
