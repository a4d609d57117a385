//! What agents and gateways tell each other (OAR-K-02). An agent runs on a node that no order reaches: it asks for its
//! orders, over HTTP. All of it is JSON, and data only.

use crate::{
    codec,
    event::NodeExit,
    ids::{PartId, RunId},
    node::{Mark, NodeOrder},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How often an agent asks by default, in seconds.
pub const PERIOD_SECONDS: u32 = 30;
/// Why a node is out of service whose agent was told to quit. Its agent puts it back into service when it asks again.
pub const LEAVING: &str = "its agent leaves";
/// The request in the record of what an agent did wrong.
pub const AGENT_NOTE: &str = "agent";
/// The most bytes of one piece of an archive.
pub const PIECE_BYTES: usize = 1 << 20;
/// The most parts of runs that an agent can hold.
pub const MAX_PARTS: usize = 4_096;

/// An agent asks for its orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentPull {
    /// The name of its node.
    pub host: String,
    /// Changes when the machine boots.
    pub boot_id: String,
    /// Whether it was told to quit: the node gets no new job.
    #[serde(default)]
    pub is_leaving: bool,
    /// Cores of the node, for a node that is made.
    pub cores: u32,
    /// Memory of the node in bytes, for a node that is made.
    pub memory_bytes: u64,
    /// The parts of runs that it holds: they are being prepared, run, or have ended and their end is not reported.
    #[serde(default)]
    #[schema(value_type = Vec<u64>)]
    pub parts: Vec<PartId>,
    /// The highest run that it remembers.
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    pub highest_run: Option<RunId>,
    /// The last mark that it got, unless it has forgotten its runs since.
    #[serde(default)]
    pub as_of: Option<AgentMark>,
}

/// A moment in the life of the ledger. Agents send back the one of the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentMark {
    /// The session of the ledger.
    pub session: i64,
    /// The last record at that moment.
    pub sequence: u64,
}

impl From<Mark> for AgentMark {
    fn from(mark: Mark) -> Self {
        Self { session: mark.session.0, sequence: mark.sequence.0 }
    }
}

impl From<AgentMark> for Mark {
    fn from(mark: AgentMark) -> Self {
        Self { session: crate::Timestamp(mark.session), sequence: crate::Sequence(mark.sequence) }
    }
}

/// The cluster of a gateway, for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentCluster {
    /// Its id, in hexadecimal digits.
    pub cluster: String,
    /// The [`codec::FEATURE_LEVEL`] of its ledger.
    pub feature_level: u32,
}

/// The answer to [`AgentPull`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentOrders {
    /// The moment of the answer, for the next question.
    pub mark: Option<AgentMark>,
    /// What to launch: commands with their folders, output files and staged files.
    pub launch: Vec<AgentOrder>,
    /// The parts to end.
    pub kill: Vec<AgentOrder>,
    /// Other orders about parts: signals, and parts that are to be forgotten.
    pub other: Vec<AgentOrder>,
    /// The epoch of the ledger that orders it; absent if there is only one. A lower epoch than that of an
    /// earlier answer comes from a ledger that no longer leads: such an answer must not be obeyed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
}

/// Whether a field is left out: it is 0.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An order, about a part of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentOrder {
    /// The part.
    #[schema(value_type = u64)]
    pub part: PartId,
    /// The order, for programs that are not muster: what is launched, with its folder and its files.
    #[schema(value_type = Object)]
    pub order: serde_json::Value,
    /// The same in the encoding of muster's executors, in hexadecimal digits.
    pub coded: String,
}

impl AgentOrder {
    /// An order as it is sent.
    ///
    /// # Errors
    /// It is too large.
    pub fn new(part: PartId, order: &NodeOrder) -> Result<Self, codec::CodecError> {
        let readable = serde_json::to_value(order).unwrap_or_default();
        Ok(Self { part, order: readable, coded: to_hex(&codec::encode(order)?) })
    }

    /// The order; `None` if it is not one.
    pub fn decode(&self) -> Option<NodeOrder> {
        codec::decode(&from_hex(&self.coded)?).ok()
    }
}

/// A part of a run has started or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentReport {
    /// The name of the agent's node.
    pub host: String,
    /// The part.
    #[schema(value_type = u64)]
    pub part: PartId,
    /// How it ended; `None`: it has started.
    pub ended: Option<NodeExit>,
    /// The files that it has left, which were sent before.
    #[serde(default)]
    pub output: Option<AgentOutput>,
}

/// The archive of the files that a job has left on its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentOutput {
    /// The BLAKE3 hash of its bytes, in hexadecimal digits.
    pub sum: String,
    /// Its size, in bytes.
    pub bytes: u64,
}

/// A piece of an archive has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArchiveProgress {
    /// How many bytes have arrived: the next piece begins there.
    pub bytes: u64,
}

/// An archive that a gateway keeps for a user (OAR-K-08).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownArchive {
    /// What jobs name it by; `None` if the gateway has not all of it.
    pub archive: Option<crate::job::StageIn>,
    /// How many of its bytes are there.
    pub bytes: u64,
}

/// Bytes as hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of hexadecimal digits; `None` if the text is something else.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Whether a text can be the BLAKE3 hash of something, in small hexadecimal digits.
pub fn is_sum(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-K-02: what an agent gets is the order, whole.
    #[test]
    fn orders_come_as_they_were_sent() {
        let part = PartId::from_number(12);
        let order = NodeOrder::Stop { part, reason: crate::event::StopReason::Cancelled, grace_seconds: 3 };
        let sent = AgentOrder::new(part, &order).expect("it is small");
        assert_eq!(sent.order["stop"]["grace_seconds"], 3);
        let json = serde_json::to_string(&sent).expect("JSON");
        let come: AgentOrder = serde_json::from_str(&json).expect("what was sent");
        assert_eq!(come.decode(), Some(order));
        assert_eq!(AgentOrder { coded: "zz".into(), ..come }.decode(), None);
    }

    proptest::proptest! {
        #[test]
        fn digits_stand_for_bytes(bytes: Vec<u8>, text: String) {
            proptest::prop_assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
            let _ = (from_hex(&text), is_sum(&text));
        }
    }
}
