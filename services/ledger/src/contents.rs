//! Contents that orders name by their hash, kept for a while for the nodes that were sent such an order. A dropped
//! content returns when a heartbeat brings the order up again.

use muster_schemas::{
    codec::{self, CodecError},
    command::{Refusal, RefusalCode},
    content::{ContentAnswer, ContentBytes, ContentHash, ContentRequest},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Smaller contents are sent within the order: asking for them would cost more.
const LEAST_BYTES: usize = 8 << 10;
/// The most bytes that kept contents have together; the newest is kept whatever its size.
const KEPT_BYTES: usize = 64 << 20;
/// The largest part of a content in one message, so that others get their turn.
const MAX_PART_BYTES: usize = 512 << 10;

/// A content.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) hash: ContentHash,
    bytes: Arc<[u8]>,
}

impl Content {
    /// A value that is large enough to be sent by its hash; `None` for others.
    ///
    /// # Errors
    /// It is too large to be encoded.
    pub(crate) fn of<T: Serialize + ?Sized>(value: &T) -> Result<Option<Self>, CodecError> {
        let bytes = codec::encode(value)?;
        let is_large = bytes.len() >= LEAST_BYTES;
        Ok(is_large.then(|| Self { hash: ContentHash::of(&bytes), bytes: bytes.into() }))
    }
}

/// The contents that nodes can fetch.
pub(crate) struct Contents {
    inner: Mutex<Inner>,
    most_bytes: usize,
}

impl Default for Contents {
    fn default() -> Self {
        Self { inner: Mutex::default(), most_bytes: KEPT_BYTES }
    }
}

#[derive(Default)]
struct Inner {
    kept: HashMap<ContentHash, Kept>,
    /// Contents by last use, least recent first.
    by_use: BTreeMap<u64, ContentHash>,
    uses: u64,
    bytes: usize,
}

struct Kept {
    bytes: Arc<[u8]>,
    used: u64,
    /// The nodes that were sent an order naming it: only they may have it.
    nodes: HashSet<String>,
}

impl Contents {
    /// Lets a node have the content that an order to it names.
    pub(crate) fn offer(&self, content: &Content, node: &str) {
        let mut inner = self.inner();
        inner.keep(content, self.most_bytes);
        if let Some(kept) = inner.kept.get_mut(&content.hash)
            && !kept.nodes.contains(node)
        {
            kept.nodes.insert(node.to_owned());
        }
    }

    /// Answers a node, with at most `max_bytes`.
    pub(crate) fn answer(&self, request: &ContentRequest, max_bytes: usize) -> ContentAnswer {
        let bytes = self.inner().of_node(request);
        let Some(bytes) = bytes else {
            let message = format!("no order to node `{}` names such a content, or it is no longer kept", request.node);
            return ContentAnswer::Refused(Refusal::new(RefusalCode::NotFound, message));
        };
        let from = usize::try_from(request.offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = bytes.len().min(from.saturating_add(max_bytes.clamp(1, MAX_PART_BYTES)));
        ContentAnswer::Part { total_bytes: bytes.len() as u64, part: ContentBytes(bytes[from..to].to_vec()) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn of_node(&mut self, request: &ContentRequest) -> Option<Arc<[u8]>> {
        let kept = self.kept.get(&request.hash).filter(|kept| kept.nodes.contains(&request.node))?;
        let bytes = Arc::clone(&kept.bytes);
        self.touch(request.hash);
        Some(bytes)
    }

    fn keep(&mut self, content: &Content, most_bytes: usize) {
        if self.kept.contains_key(&content.hash) {
            return self.touch(content.hash);
        }
        self.bytes += content.bytes.len();
        let kept = Kept { bytes: Arc::clone(&content.bytes), used: 0, nodes: HashSet::new() };
        self.kept.insert(content.hash, kept);
        self.touch(content.hash);
        while self.bytes > most_bytes && self.kept.len() > 1 {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.bytes -= self.kept.remove(&oldest).map_or(0, |kept| kept.bytes.len());
        }
    }

    fn touch(&mut self, hash: ContentHash) {
        let Some(kept) = self.kept.get_mut(&hash) else { return };
        self.uses += 1;
        self.by_use.remove(&std::mem::replace(&mut kept.used, self.uses));
        self.by_use.insert(self.uses, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(byte: u8, length: usize) -> Content {
        Content::of(&vec![byte; length]).unwrap().expect("it is large")
    }

    fn ask(contents: &Contents, node: &str, hash: ContentHash, offset: u64) -> Option<(u64, Vec<u8>)> {
        match contents.answer(&ContentRequest { node: node.to_owned(), hash, offset }, usize::MAX) {
            ContentAnswer::Part { total_bytes, part } => Some((total_bytes, part.0)),
            ContentAnswer::Refused(refusal) => {
                assert_eq!(refusal.code, RefusalCode::NotFound);
                None
            }
        }
    }

    #[test]
    fn what_is_small_goes_with_the_order() {
        assert!(Content::of("small").unwrap().is_none());
        assert!(Content::of(&"x".repeat(LEAST_BYTES)).unwrap().is_some());
    }

    #[test]
    fn a_node_gets_what_its_own_orders_name_and_nothing_else() {
        let contents = Contents::default();
        let (one, other) = (content(1, 10_000), content(2, 10_000));
        contents.offer(&one, "n1");
        contents.offer(&other, "n2");
        contents.offer(&other, "n3");
        let whole = |content: &Content| Some((content.bytes.len() as u64, content.bytes.to_vec()));
        assert_eq!(ask(&contents, "n1", one.hash, 0), whole(&one));
        assert_eq!(ask(&contents, "n2", other.hash, 0), whole(&other));
        assert_eq!(ask(&contents, "n3", other.hash, 0), whole(&other));
        for (node, hash) in [("n1", other.hash), ("n2", one.hash), ("n4", one.hash), ("n1", ContentHash::of(b"no"))] {
            assert_eq!(ask(&contents, node, hash, 0), None);
        }
    }

    #[test]
    fn a_large_content_comes_in_parts() {
        let contents = Contents::default();
        let large = content(3, 2 * MAX_PART_BYTES + 5);
        contents.offer(&large, "n1");
        let mut bytes = Vec::new();
        while let Some((total, part)) = ask(&contents, "n1", large.hash, bytes.len() as u64) {
            assert!(part.len() <= MAX_PART_BYTES);
            bytes.extend(part);
            if bytes.len() as u64 == total {
                break;
            }
        }
        assert_eq!(ContentHash::of(&bytes), large.hash);
        assert_eq!(ask(&contents, "n1", large.hash, u64::MAX), Some((large.bytes.len() as u64, Vec::new())));
    }

    /// The least recently used goes first, and the newest stays, however large.
    #[test]
    fn only_so_much_is_kept() {
        let contents = Contents { most_bytes: 100_000, ..Contents::default() };
        let third = 33_000;
        let all: Vec<Content> = (0..3).map(|byte| content(byte, third)).collect();
        all.iter().for_each(|content| contents.offer(content, "n1"));
        assert!(ask(&contents, "n1", all[0].hash, 0).is_some());
        contents.offer(&content(4, third), "n1");
        let kept = |content: &Content| ask(&contents, "n1", content.hash, 0).is_some();
        assert_eq!(all.iter().map(kept).collect::<Vec<_>>(), [true, false, true]);
        let huge = content(5, 100_001);
        contents.offer(&huge, "n1");
        assert!(kept(&huge) && !all.iter().any(kept));
        let inner = contents.inner();
        assert_eq!((inner.kept.len(), inner.by_use.len()), (1, 1));
    }
}
