//! The standard streams of steps on their way between tasks and clients.
//!
//! On each node of a step, the output of all its tasks is one sequence of *frames*, addressed by byte offsets, which
//! never change: an interrupted reader continues at its last offset. Input is one sequence of bytes, addressed in the
//! same way, so that bytes sent twice count once.

use crate::{
    ids::{PartId, StepId},
    job::ExitStatus,
    steps::TerminalSize,
};
use serde::{Deserialize, Serialize};

/// Size of the head of a frame, in bytes: rank (4, little endian), kind (1), length of the content (4, little endian).
const HEAD_BYTES: usize = 9;
/// Maximum size of a frame's content, in bytes.
pub const MAX_CONTENT_BYTES: usize = 64 << 10;
/// Maximum number of bytes of output in one request.
pub const MAX_READ_BYTES: u32 = 1 << 20;
/// Maximum number of bytes of input in one request.
pub const MAX_WRITE_BYTES: usize = 1 << 20;
/// The offset for a reader that wants only new output.
pub const AT_END: u64 = u64::MAX;

/// A piece of the output of a step's tasks on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The task.
    pub rank: u32,
    /// Its content.
    pub content: Content<'a>,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Bytes of its standard output, or of its terminal.
    Output(&'a [u8]),
    /// Bytes of its standard error.
    Error(&'a [u8]),
    /// It has ended; nothing more comes from it.
    Ended(ExitStatus),
}

impl<'a> Frame<'a> {
    /// Appends the frame's bytes. Content beyond [`MAX_CONTENT_BYTES`] is split into several frames.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        match self.content {
            Content::Output(content) => self.append_parts(1, content, bytes),
            Content::Error(content) => self.append_parts(2, content, bytes),
            Content::Ended(ExitStatus::Code(code)) => self.append_parts(3, &[code], bytes),
            Content::Ended(ExitStatus::Signal(signal)) => self.append_parts(4, &[signal], bytes),
        }
    }

    fn append_parts(&self, kind: u8, content: &[u8], bytes: &mut Vec<u8>) {
        for part in content.chunks(MAX_CONTENT_BYTES) {
            bytes.extend_from_slice(&self.rank.to_le_bytes());
            bytes.push(kind);
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        }
    }

    /// The first frame and its length in bytes; `None` if it is not complete yet.
    ///
    /// # Errors
    /// The bytes are no frame.
    pub fn first_of(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, NoFrame> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [a, b, c, d, kind, e, f, g, h] = *head;
        let length = u32::from_le_bytes([e, f, g, h]) as usize;
        if length > MAX_CONTENT_BYTES {
            return Err(NoFrame);
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let content = match (kind, content) {
            (1, content) => Content::Output(content),
            (2, content) => Content::Error(content),
            (3, [code]) => Content::Ended(ExitStatus::Code(*code)),
            (4, [signal]) => Content::Ended(ExitStatus::Signal(*signal)),
            _ => return Err(NoFrame),
        };
        Ok(Some((Self { rank: u32::from_le_bytes([a, b, c, d]), content }, HEAD_BYTES + length)))
    }
}

/// The bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the output of a step is damaged")]
pub struct NoFrame;

/// A request to a node about the streams of its part of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoRequest {
    /// The part of the run on the node.
    pub part: PartId,
    /// The step.
    pub step: StepId,
    /// The request.
    pub ask: IoAsk,
}

/// A request about streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoAsk {
    /// Output from an offset on. The answer comes when there is some, or after a time.
    Read {
        /// Identifies the reader: a later request of the same reader ends the wait of an earlier one.
        reader: u64,
        /// The offset; [`AT_END`] means new output only.
        from: u64,
        /// Everything before this has arrived at its destination and need not be kept; `None` for readers that only
        /// watch.
        acknowledged: Option<u64>,
        /// Maximum number of bytes.
        max_bytes: u32,
        /// Maximum time to wait for output.
        wait_millis: u32,
    },
    /// Input at an offset.
    Write {
        /// Where it begins.
        offset: u64,
        /// The bytes; those that the node already has are skipped.
        bytes: Vec<u8>,
        /// Whether nothing comes after it.
        is_last: bool,
    },
    /// The client's terminal has this size.
    Resize(TerminalSize),
}

/// The answer of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoReply {
    /// Output.
    Output {
        /// Where it begins: later than requested if that was acknowledged before.
        from: u64,
        /// The bytes; both ends can be inside a frame.
        bytes: Vec<u8>,
        /// Whether this is the end of the output.
        is_last: bool,
    },
    /// The node has input up to this offset: less than was sent if it has no room for more at the moment.
    Input(u64),
    /// The request was executed.
    Done,
    /// The node does not know the step: it has not arrived yet, or is gone.
    Unknown,
}

/// Output of a step, as a gateway returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPage {
    /// The output so far: at most one part for each node, or for each component on a shared node.
    pub parts: Vec<OutputPart>,
    /// Number of such parts that the step has.
    pub nodes: u32,
}

/// Output of a step on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPart {
    /// The node's index in the step, from 0.
    pub node: u32,
    /// Where the bytes begin.
    pub from: u64,
    /// The bytes; both ends can be inside a frame.
    pub bytes: Vec<u8>,
    /// Whether this is the end of the node's output.
    pub is_last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> Vec<(u32, String)> {
        let mut read = Vec::new();
        while let Some((frame, length)) = Frame::first_of(bytes).unwrap() {
            read.push((frame.rank, format!("{:?}", frame.content)));
            bytes = &bytes[length..];
        }
        read
    }

    #[test]
    fn frames_are_read_as_they_were_written_wherever_the_bytes_are_cut() {
        let frames = [
            Frame { rank: 7, content: Content::Output(b"one") },
            Frame { rank: 70_000, content: Content::Error(b"two") },
            Frame { rank: 0, content: Content::Ended(ExitStatus::Code(3)) },
            Frame { rank: 1, content: Content::Ended(ExitStatus::Signal(9)) },
        ];
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.append_to(&mut bytes));
        let all = read(&bytes);
        assert_eq!(all, frames.map(|frame| (frame.rank, format!("{:?}", frame.content))));
        for cut in 0..bytes.len() {
            assert!(all.starts_with(&read(&bytes[..cut])), "cut at {cut}");
        }
    }

    #[test]
    fn long_content_is_divided_and_rubbish_is_refused() {
        let content = vec![b'x'; MAX_CONTENT_BYTES + 1];
        let mut bytes = Vec::new();
        Frame { rank: 1, content: Content::Output(&content) }.append_to(&mut bytes);
        assert_eq!(read(&bytes).len(), 2);
        assert_eq!(Frame::first_of(&[0xff; 32]), Err(NoFrame));
        assert_eq!(Frame::first_of(&[0, 0, 0, 0, 9, 0, 0, 0, 0]), Err(NoFrame));
    }
}
