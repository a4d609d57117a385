//! Contents that orders name by their hash: fetched from the ledger once, and kept for a while for later orders.

use muster_bus::{BusError, LedgerClient};
use muster_schemas::{
    content::ContentHash,
    node::{FillError, NodeOrder, ShortOrder},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::OnceCell;

/// The most bytes of all kept contents; the most recently used one is kept whatever its size.
const KEPT_BYTES: usize = 16 << 20;
/// How long to ask for a content. After that the launch is dropped, and a heartbeat brings its order again.
const PATIENCE: Duration = Duration::from_secs(20);

type Bytes = Arc<[u8]>;

/// Why an order cannot be completed.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The ledger does not answer, or refuses it.
    #[error("a content that the order names cannot be fetched: {0}")]
    Bus(#[from] BusError),
    /// The bytes do not match the hash.
    #[error("what came as content {0:?} has another hash")]
    OtherHash(ContentHash),
    /// The content has another form.
    #[error(transparent)]
    Fill(#[from] FillError),
}

/// The contents of a node.
#[derive(Debug)]
pub struct Contents {
    ledger: LedgerClient,
    node: String,
    kept: Mutex<Kept>,
}

/// Most recently used first. A content is listed while it is fetched, so that it is fetched once.
type Kept = VecDeque<(ContentHash, Arc<OnceCell<Bytes>>)>;

impl Contents {
    /// No contents yet.
    pub fn new(ledger: LedgerClient, node: String) -> Self {
        Self { ledger: ledger.with_patience(PATIENCE), node, kept: Mutex::default() }
    }

    /// The complete order.
    ///
    /// # Errors
    /// A content that it names is not available.
    pub async fn fill(&self, short: ShortOrder) -> Result<NodeOrder, ContentError> {
        let mut contents = Vec::new();
        for hash in short.missing.hashes() {
            contents.push((hash, self.get(hash).await?));
        }
        let content = |wanted| contents.iter().find(|(hash, _)| *hash == wanted).map(|(_, bytes)| &**bytes);
        Ok(short.fill(content)?)
    }

    async fn get(&self, hash: ContentHash) -> Result<Bytes, ContentError> {
        let cell = self.cell(hash);
        let bytes = cell.get_or_try_init(|| self.fetch(hash)).await?.clone();
        self.drop_oldest();
        Ok(bytes)
    }

    async fn fetch(&self, hash: ContentHash) -> Result<Bytes, ContentError> {
        let bytes = self.ledger.content(&self.node, hash).await?;
        if ContentHash::of(&bytes) != hash {
            return Err(ContentError::OtherHash(hash));
        }
        Ok(bytes.into())
    }

    fn cell(&self, hash: ContentHash) -> Arc<OnceCell<Bytes>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| *known == hash);
        let found = at.and_then(|at| kept.remove(at)).unwrap_or_else(|| (hash, Arc::default()));
        let cell = Arc::clone(&found.1);
        kept.push_front(found);
        cell
    }

    /// Drops contents that could not be fetched and nobody waits for, and those beyond the limit.
    fn drop_oldest(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(_, cell)| cell.initialized() || Arc::strong_count(cell) > 1);
        let mut bytes = 0;
        let mut fits = |cell: &OnceCell<Bytes>| {
            bytes += cell.get().map_or(0, |bytes| bytes.len());
            bytes <= KEPT_BYTES
        };
        let count = kept.iter().take_while(|(_, cell)| fits(cell)).count();
        kept.truncate(count.max(1));
    }
}
