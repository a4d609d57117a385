//! What the stream really says: one history, whatever the ledgers think.

use muster_bus::rounds::{RoundKind, RoundMessage};
use std::collections::BTreeMap;

/// The history in the stream.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Hashes of records, by sequence. If a message has several records, only the last is known here.
    hashes: BTreeMap<u64, [u8; 32]>,
    last: u64,
    reign: Option<(u64, String)>,
    /// Whether that reign was ended by its ledger.
    is_over: bool,
    highest_epoch: u64,
    /// Claims that nobody may heed.
    void: Vec<(u64, String)>,
    pub(super) reigns: u64,
    /// Reigns that were ended by their ledgers.
    pub(super) handed_over: u64,
}

impl Truth {
    /// A history that begins with a log that ends here.
    pub(super) fn new(last: u64, hash: [u8; 32]) -> Self {
        Self { hashes: BTreeMap::from([(last, hash)]), last, ..Self::default() }
    }

    /// The last record.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Takes the next message of the stream.
    pub(super) fn see(&mut self, at: u64, message: &RoundMessage) -> Result<(), String> {
        let header = &message.header;
        let what = format!("message {at}, {} of {} in epoch {}", header.kind.name(), header.ledger, header.epoch);
        let is_next = header.first.0 == self.last + 1 && self.hashes.get(&self.last) == Some(&header.before);
        if header.kind == RoundKind::Claim {
            if !is_next {
                self.void.push((header.epoch, header.ledger.clone()));
                self.highest_epoch = self.highest_epoch.max(header.epoch);
                return Ok(());
            }
            if header.epoch <= self.highest_epoch {
                return Err(format!("{what}: there was epoch {} already", self.highest_epoch));
            }
            self.highest_epoch = header.epoch;
            self.reigns += 1;
            self.reign = Some((header.epoch, header.ledger.clone()));
            self.is_over = false;
        } else if self.void.contains(&(header.epoch, header.ledger.clone())) {
            return Err(format!("{what}: its claim came before everything in front of it was applied"));
        } else if self.reign.as_ref() != Some(&(header.epoch, header.ledger.clone())) {
            return Err(format!("{what}: the reign is {:?}", self.reign));
        } else if self.is_over {
            return Err(format!("{what}: the ledger has ended its reign"));
        } else if header.kind == RoundKind::Yield {
            self.is_over = true;
            self.handed_over += 1;
        }
        if !is_next {
            return Err(format!("{what}: it does not continue record {}", self.last));
        }
        if header.has_records() {
            self.last = header.last.0;
            self.hashes.insert(self.last, header.after);
        }
        Ok(())
    }

    /// Checks that a log that ends here is a prefix of the history. Ends within a message are not known.
    pub(super) fn check_prefix(&self, last: u64, hash: &[u8; 32]) -> Result<(), String> {
        match self.hashes.get(&last) {
            Some(known) if known == hash => Ok(()),
            Some(_) => Err(format!("its record {last} is another than in the stream")),
            None if last > self.last => Err(format!("it ends at record {last}, and the stream at {}", self.last)),
            None => Ok(()),
        }
    }
}
