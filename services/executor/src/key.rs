//! What names a launch on a node.

use muster_schemas::{RunId, StepId};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// One launch on a node: a run, or a later step inside it. Written `12` for run 12 and `12.3` for its step 3, which is also
/// the name of its folder in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// The run.
    pub run: RunId,
    /// 0 for what the job itself launches.
    pub step: StepId,
}

impl RunKey {
    /// Bytes of [`RunKey::to_bytes`].
    pub const BYTES: usize = 12;

    /// What the job itself launches.
    pub const fn whole(run: RunId) -> Self {
        Self { run, step: StepId(0) }
    }

    /// Whether it is a step inside a run rather than the run.
    pub const fn is_step(self) -> bool {
        self.step.0 != 0
    }

    /// A fixed-size form for the launch journal and the fork server's socket.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.run.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.step.0.to_le_bytes());
        bytes
    }

    /// The reverse of [`RunKey::to_bytes`].
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Self {
            run: RunId(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
            step: StepId(u32::from_le_bytes([i, j, k, l])),
        }
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_step() { write!(f, "{}.{}", self.run, self.step) } else { self.run.fmt(f) }
    }
}

/// The text does not name a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a run or step")]
pub struct NotAKey;

impl FromStr for RunKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (run, step) = text.split_once('.').unwrap_or((text, "0"));
        let key =
            Self { run: RunId(run.parse().map_err(|_| NotAKey)?), step: StepId(step.parse().map_err(|_| NotAKey)?) };
        if key.to_string() == text { Ok(key) } else { Err(NotAKey) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_go_round() {
        for (run, step, text) in
            [(12, 0, "12"), (12, 3, "12.3"), (u64::MAX, u32::MAX, "18446744073709551615.4294967295")]
        {
            let key = RunKey { run: RunId(run), step: StepId(step) };
            assert_eq!(key.to_string(), text);
            assert_eq!(text.parse(), Ok(key));
            assert_eq!(RunKey::from_bytes(key.to_bytes()), key);
        }
    }

    #[test]
    fn only_the_canonical_text_is_a_key() {
        for text in ["", "12.0", "+1", "01", "1.2.3", "x", "12.", ".1", "order"] {
            assert_eq!(text.parse::<RunKey>(), Err(NotAKey), "{text}");
        }
    }
}
