//! Which ledger a node obeys. Of several ledgers one leads at a time, and each that begins to lead has a higher epoch. One
//! that was paused meanwhile does not know that it leads no longer: what it orders would end runs that the new leader has
//! started. So a node remembers the highest epoch, and refuses what comes with a lower one.

use crate::spool;
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The highest epoch that a node has obeyed, in its spool.
#[derive(Debug)]
pub struct Reign {
    node: String,
    spool: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    highest: u64,
    /// Whether the log tells of a refusal since this epoch began.
    has_told: bool,
}

impl Reign {
    /// Continues with what the spool remembers.
    ///
    /// # Errors
    /// If the spool cannot be read.
    pub fn continued(node: &str, spool: &Path) -> io::Result<Self> {
        let known = Known { highest: spool::epoch(spool)?, has_told: false };
        Ok(Self { node: node.to_owned(), spool: spool.to_owned(), known: Mutex::new(known) })
    }

    /// Whether to obey a ledger of this epoch. A higher one than before is remembered first.
    pub fn obeys(&self, epoch: u64) -> bool {
        // Each change is complete at once.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (node, highest) = (&self.node, known.highest);
        if epoch < highest {
            if !std::mem::replace(&mut known.has_told, true) {
                tracing::warn!(
                    node,
                    epoch,
                    highest,
                    "a ledger that no longer leads gives orders to this node, which are refused, now and later"
                );
            }
            return false;
        }
        if epoch > highest {
            *known = Known { highest: epoch, has_told: false };
            tracing::info!(node, epoch, "another ledger leads");
            if let Err(error) = spool::set_epoch(&self.spool, epoch) {
                tracing::warn!(node, epoch, %error, "the epoch of the ledger is remembered only until this executor ends");
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-EXE-7: a node obeys the highest epoch that it knows, also after a restart, and no lower one.
    #[test]
    fn a_node_obeys_the_highest_epoch_also_after_a_restart() {
        let spool = tempfile::tempdir().unwrap();
        let reign = Reign::continued("n1", spool.path()).unwrap();
        for (epoch, obeyed) in [(0, true), (3, true), (3, true), (2, false), (0, false), (4, true), (3, false)] {
            assert_eq!(reign.obeys(epoch), obeyed, "{epoch}");
        }
        let reign = Reign::continued("n1", spool.path()).unwrap();
        assert!(!reign.obeys(3) && reign.obeys(4));
    }

    #[test]
    fn a_damaged_epoch_is_told() {
        let spool = tempfile::tempdir().unwrap();
        std::fs::write(spool.path().join("epoch"), "four").unwrap();
        assert!(Reign::continued("n1", spool.path()).is_err());
    }
}
