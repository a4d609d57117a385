//! The bytes of a state, and its digest.

use crate::state::State;
use muster_schemas::codec::{self, CodecError};

impl State {
    /// The whole state as bytes. Equal states have equal bytes.
    ///
    /// # Errors
    /// If it is larger than the codec allows.
    pub fn to_snapshot_bytes(&self) -> Result<Vec<u8>, CodecError> {
        codec::encode(self)
    }

    /// The state of a snapshot.
    ///
    /// # Errors
    /// If the bytes are damaged, or are not those of a state.
    pub fn from_snapshot_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut state: Self = codec::decode(bytes)?;
        state.give_shapes()?;
        state.share_again();
        state.power.restore_fails();
        state.rebuild_index();
        Ok(state)
    }

    /// BLAKE3 over the whole state: two states are the same exactly if their digests are, on any machine, and whether
    /// they were derived from the log or read from a snapshot.
    pub fn digest(&self) -> [u8; 32] {
        codec::digest(self)
    }

    /// Restores the shapes of components from their stored ids.
    fn give_shapes(&mut self) -> Result<(), CodecError> {
        for job in self.jobs.values_mut() {
            for component in &mut job.components {
                let shape = self.shapes.get(component.shape.id);
                let missing = || CodecError::Malformed(format!("job {} has an unknown request shape", job.id));
                component.shape = shape.ok_or_else(missing)?.clone();
            }
            if job.components.is_empty() {
                return Err(CodecError::Malformed(format!("job {} has no component", job.id)));
            }
        }
        Ok(())
    }

    /// Lets equal values of different jobs share memory again, as before they were stored.
    fn share_again(&mut self) {
        let pools = &mut self.pools;
        for job in self.jobs.values_mut() {
            job.owner = pools.owners.share(job.owner.clone());
            job.name = pools.text.share(job.name.clone());
            job.planner_reason = job.planner_reason.take().map(|reason| pools.reasons.share(reason));
            for component in &mut job.components {
                component.queue = pools.text.share(component.queue.clone());
                component.account = component.account.take().map(|account| pools.text.share(account));
            }
        }
    }
}
