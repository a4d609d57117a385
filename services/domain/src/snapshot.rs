//! The bytes of a state, and its digest.

use crate::state::{
    Accounts, Core, State,
    altered::Altered,
    components::SingleEnds,
    numbers::Numbers,
    planning::{Additions, BackfillPasses, Further},
    sessions::Sessions,
    staging::Staging,
};
use muster_schemas::codec::{self, CodecError};
use std::sync::Arc;

impl State {
    /// All of the state as bytes. Equal states have equal bytes.
    ///
    /// # Errors
    /// If it is larger than the codec allows.
    pub fn to_snapshot_bytes(&self) -> Result<Vec<u8>, CodecError> {
        let mut bytes = codec::encode(&self.stored_core())?;
        let (additions, further, ends) = (self.additions(), self.further(), self.single_ends());
        let staging = self.staging_book();
        let has_numbers = self.numbers != Numbers::default();
        let has_altered = has_numbers || self.altered != Altered::default();
        let has_accounts = has_altered || self.accounts != Accounts::default();
        let has_passes = has_accounts || *self.passes != BackfillPasses::default();
        let has_staging = has_passes || staging != Staging::default();
        let has_ends = has_staging || ends != SingleEnds::default();
        let has_sessions = has_ends || self.sessions != Sessions::default();
        let has_further = has_sessions || further != Further::default();
        if has_further || additions != Additions::default() {
            codec::encode_into(&additions, &mut bytes)?;
        }
        if has_further {
            codec::encode_into(&further, &mut bytes)?;
        }
        if has_sessions {
            codec::encode_into(&self.sessions, &mut bytes)?;
        }
        if has_ends {
            codec::encode_into(&ends, &mut bytes)?;
        }
        if has_staging {
            codec::encode_into(&staging, &mut bytes)?;
        }
        if has_passes {
            codec::encode_into(&*self.passes, &mut bytes)?;
        }
        if has_accounts {
            codec::encode_into(&self.accounts, &mut bytes)?;
        }
        if has_altered {
            codec::encode_into(&self.altered, &mut bytes)?;
        }
        if has_numbers {
            codec::encode_into(&self.numbers, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// The state of a snapshot.
    ///
    /// # Errors
    /// If the bytes are damaged, or not those of a state.
    pub fn from_snapshot_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        let (core, additions) = codec::split(bytes)?;
        let mut core: Core = codec::decode(core)?;
        for job in core.jobs.values_mut() {
            for component in &mut job.components {
                let shape = core.shapes.get(component.shape.id);
                let missing = || CodecError::Malformed(format!("job {} has an unknown request shape", job.id));
                component.shape = shape.ok_or_else(missing)?.clone();
            }
            if job.components.is_empty() {
                return Err(CodecError::Malformed(format!("job {} has no component", job.id)));
            }
        }
        let mut state = Self { core, ..Self::default() };
        if !additions.is_empty() {
            let (additions, further) = codec::split(additions)?;
            state.restore(codec::decode(additions)?);
            if !further.is_empty() {
                let (further, sessions) = codec::split(further)?;
                state.restore_further(codec::decode(further)?);
                if !sessions.is_empty() {
                    let (sessions, ends) = codec::split(sessions)?;
                    state.sessions = codec::decode(sessions)?;
                    if !ends.is_empty() {
                        let (ends, staging) = codec::split(ends)?;
                        state.restore_single_ends(codec::decode(ends)?);
                        if !staging.is_empty() {
                            let (staging, passes) = codec::split(staging)?;
                            state.restore_staging(codec::decode(staging)?);
                            if !passes.is_empty() {
                                let (passes, accounts) = codec::split(passes)?;
                                state.passes = Arc::new(codec::decode(passes)?);
                                if !accounts.is_empty() {
                                    let (accounts, altered) = codec::split(accounts)?;
                                    state.accounts = codec::decode(accounts)?;
                                    if !altered.is_empty() {
                                        let (altered, numbers) = codec::split(altered)?;
                                        state.altered = codec::decode(altered)?;
                                        if !numbers.is_empty() {
                                            state.numbers = codec::decode(numbers)?;
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        state.share_again();
        state.rebuild_index();
        state.forget_singletons_ahead();
        Ok(state)
    }

    /// BLAKE3 over all of the state: two states are the same exactly if their digests are, on any machine and whether
    /// they were folded from the log or read from a snapshot.
    pub fn digest(&self) -> [u8; 32] {
        let core = self.stored_core();
        let (additions, further, ends) = (self.additions(), self.further(), self.single_ends());
        let staging = self.staging_book();
        let before_accounts = (&core, &additions, &further, &self.sessions, &ends, &staging, &*self.passes);
        if self.numbers != Numbers::default() {
            codec::digest(&(before_accounts, &self.accounts, &self.altered, &self.numbers))
        } else if self.altered != Altered::default() {
            codec::digest(&(before_accounts, &self.accounts, &self.altered))
        } else if self.accounts != Accounts::default() {
            codec::digest(&(before_accounts, &self.accounts))
        } else if *self.passes != BackfillPasses::default() {
            codec::digest(&before_accounts)
        } else if staging != Staging::default() {
            codec::digest(&(&core, &additions, &further, &self.sessions, &ends, &staging))
        } else if ends != SingleEnds::default() {
            codec::digest(&(&core, &additions, &further, &self.sessions, &ends))
        } else if self.sessions != Sessions::default() {
            codec::digest(&(&core, &additions, &further, &self.sessions))
        } else if further != Further::default() {
            codec::digest(&(&core, &additions, &further))
        } else if additions == Additions::default() {
            codec::digest(&core)
        } else {
            codec::digest(&(&core, &additions))
        }
    }

    /// Lets equal values of different jobs share memory again, as they did before they were stored.
    fn share_again(&mut self) {
        let pools = &mut self.pools;
        for job in self.core.jobs.values_mut() {
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
