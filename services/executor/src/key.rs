//! The key of a launch on a node.

use muster_schemas::{PartId, StepId, node::LaunchOrder};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// One launch on a node: the part of a run, or a later step inside it. Written `12` for run 12, `12.3` for its step 3,
/// and `12+1.3` if that is in component 1; this is also the name of its folder in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// The part of the run.
    pub part: PartId,
    /// 0 for the job's own launch.
    pub step: StepId,
}

impl RunKey {
    /// Bytes of [`RunKey::to_bytes`].
    pub const BYTES: usize = 12;

    /// The launch of the job itself.
    pub const fn whole(part: PartId) -> Self {
        Self { part, step: StepId(0) }
    }

    /// The launch that an order is about.
    pub fn of(order: &LaunchOrder) -> Self {
        Self { part: order.part, step: order.step }
    }

    /// Whether it is a step inside a run rather than the run itself.
    pub const fn is_step(self) -> bool {
        self.step.0 != 0
    }

    /// A fixed-size form for the launch journal and the fork server's socket.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.part.to_number().to_le_bytes());
        bytes[8..].copy_from_slice(&self.step.0.to_le_bytes());
        bytes
    }

    /// The reverse of [`RunKey::to_bytes`].
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Self {
            part: PartId::from_number(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
            step: StepId(u32::from_le_bytes([i, j, k, l])),
        }
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_step() { write!(f, "{}.{}", self.part, self.step) } else { self.part.fmt(f) }
    }
}

/// The text does not name a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a run or step")]
pub struct NotAKey;

impl FromStr for RunKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (part, step) = text.split_once('.').unwrap_or((text, "0"));
        let key = Self { part: part.parse().map_err(|_| NotAKey)?, step: StepId(step.parse().map_err(|_| NotAKey)?) };
        if key.to_string() == text { Ok(key) } else { Err(NotAKey) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::RunId;

    #[test]
    fn text_and_bytes_go_round() {
        for (run, component, step, text) in [
            (12, 0, 0, "12"),
            (12, 0, 3, "12.3"),
            (12, 1, 3, "12+1.3"),
            ((1 << 48) - 1, 65_535, u32::MAX, "281474976710655+65535.4294967295"),
        ] {
            let key = RunKey { part: PartId::new(RunId(run), component), step: StepId(step) };
            assert_eq!(key.to_string(), text);
            assert_eq!(text.parse(), Ok(key));
            assert_eq!(RunKey::from_bytes(key.to_bytes()), key);
        }
    }

    #[test]
    fn only_the_canonical_text_is_a_key() {
        for text in
            ["", "12.0", "+1", "01", "1.2.3", "x", "12.", ".1", "order", "12+0", "12+01", "12+65536", "281474976710656"]
        {
            assert_eq!(text.parse::<RunKey>(), Err(NotAKey), "{text}");
        }
    }
}
