//! Messages between the shim of a step and the PMIx server of its tasks (SL-W-05).
//!
//! The shim sends [`ToServer::Begin`] and starts the tasks with the variables of [`FromServer::Ready`]. For each
//! [`FromServer::Fence`] it sends one [`ToServer::Met`] or [`ToServer::Broken`], and for each task that ends one
//! [`ToServer::Ended`]. The server ends when the shim closes its side.
//!
//! Each message is a payload of [`codec`], whose header holds its length. Neither side may fill the other's memory: a
//! [`Decoder`] has a limit for a message.

use muster_schemas::{
    codec::{self, CodecError},
    content::ContentBytes,
    fence::MAX_CONTRIBUTION_BYTES,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, Read, Write},
    marker::PhantomData,
};

/// The longest message to the server, in bytes: what all nodes contribute to a fence.
pub const MAX_TO_SERVER_BYTES: usize = codec::MAX_BODY_BYTES;
/// The longest message from the server, in bytes: what one node contributes to a fence, and its frame. The variables of
/// 10,000 tasks are shorter.
pub const MAX_FROM_SERVER_BYTES: usize = MAX_CONTRIBUTION_BYTES + (1 << 10);
/// How much a [`Reader`] asks for at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// From the shim to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToServer {
    /// Serve the tasks of this program. The first message, and only that.
    Begin(Program),
    /// A fence is over.
    Met {
        /// The number of the fence.
        number: u32,
        /// What each node contributed, in the order of the nodes.
        contributions: Vec<ContentBytes>,
    },
    /// A fence cannot be: its tasks are told so.
    Broken {
        /// The number of the fence.
        number: u32,
        /// Why, for people.
        why: String,
    },
    /// A task of this node has ended.
    Ended {
        /// Its rank.
        rank: u32,
    },
}

/// A parallel program: the tasks of one step, over all its nodes and components.
///
/// A *node* here is a place with a server of its own. If two components share a machine, each has a server there: these
/// count as two nodes of the same name, and their tasks are not local peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The name of its namespace, which no other program of the cluster has: 1 to 255 bytes.
    pub namespace: String,
    /// The node of this server.
    pub node: u32,
    /// The name of each node, by its number. Each node has tasks.
    pub node_names: Vec<String>,
    /// The node of each rank.
    pub node_of_rank: Vec<u32>,
    /// The application number of each rank, from 0 without gaps: that of its component.
    pub app_of_rank: Vec<u32>,
    /// The user of the tasks.
    pub uid: u32,
    /// The group of the tasks.
    pub gid: u32,
    /// A folder that only this user can read, for the files by which tasks find the server. Tasks see it at the same
    /// path. The server does not remove it.
    pub temporary: String,
}

/// From the server to the shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromServer {
    /// Tasks can be started.
    Ready {
        /// The variables of each local rank.
        environments: Vec<(u32, Vec<(String, String)>)>,
    },
    /// All tasks of this node are in a fence over the whole program, which has other nodes.
    Fence {
        /// The number of the fence, from 0; the same on all nodes.
        number: u32,
        /// What this node contributes, at most [`MAX_CONTRIBUTION_BYTES`].
        contribution: ContentBytes,
    },
    /// A task has called `PMIx_Init`.
    Joined {
        /// Its rank.
        rank: u32,
    },
    /// A task has called `PMIx_Finalize`.
    Finalized {
        /// Its rank.
        rank: u32,
    },
    /// The program is over: a task asked for its end, or can no longer come to a fence. Sent once.
    Abort {
        /// The task that is the reason.
        rank: u32,
        /// The exit status that it asked for, if it did.
        status: Option<i32>,
        /// Why, for people.
        why: String,
    },
    /// The server cannot serve, and ends.
    Failed {
        /// Why, for people.
        why: String,
    },
    /// A task has called `PMIx_Spawn`, and is refused it.
    NoSpawn {
        /// Its rank.
        rank: u32,
    },
}

/// Takes messages out of bytes that arrive in pieces of any size.
#[derive(Debug)]
pub struct Decoder<T> {
    received: Vec<u8>,
    /// Where the first byte is that belongs to no message yet.
    start: usize,
    limit: usize,
    message: PhantomData<fn() -> T>,
}

impl Decoder<ToServer> {
    /// For the server.
    pub fn of_server() -> Self {
        Self::with_limit(MAX_TO_SERVER_BYTES)
    }
}

impl Decoder<FromServer> {
    /// For the shim.
    pub fn of_shim() -> Self {
        Self::with_limit(MAX_FROM_SERVER_BYTES)
    }
}

impl<T: DeserializeOwned> Decoder<T> {
    fn with_limit(limit: usize) -> Self {
        Self { received: Vec::new(), start: 0, limit, message: PhantomData }
    }

    /// Takes in bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.received.drain(..self.start);
        self.start = 0;
        self.received.extend_from_slice(bytes);
    }

    /// The next message; `None` if it is not complete.
    ///
    /// # Errors
    /// The bytes are no message, or one above the limit. Nothing after them can be understood.
    pub fn take(&mut self) -> Result<Option<T>, CodecError> {
        let bytes = &self.received[self.start..];
        let Some(header) = bytes.first_chunk::<{ codec::HEADER_BYTES }>() else { return Ok(None) };
        let length = u32::from_le_bytes([header[2], header[3], header[4], header[5]]) as usize;
        if length > self.limit {
            return Err(CodecError::Malformed(format!("a message of {length} bytes, more than {}", self.limit)));
        }
        let Some(message) = bytes.get(..codec::HEADER_BYTES + length) else { return Ok(None) };
        let decoded = codec::decode(message)?;
        self.start += message.len();
        Ok(Some(decoded))
    }
}

/// Reads messages, and waits for them.
#[derive(Debug)]
pub struct Reader<R, T> {
    source: R,
    decoder: Decoder<T>,
}

impl<R: Read, T: DeserializeOwned> Reader<R, T> {
    /// A reader of this source.
    pub fn new(source: R, decoder: Decoder<T>) -> Self {
        Self { source, decoder }
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// The source fails, ends within a message, or has something other than messages.
    pub fn read(&mut self) -> io::Result<Option<T>> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let message = self.decoder.take().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if message.is_some() {
                return Ok(message);
            }
            match self.source.read(&mut buffer) {
                Ok(0) if self.decoder.start == self.decoder.received.len() => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.decoder.feed(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The bytes of a message.
///
/// # Errors
/// It is larger than a message can be.
pub fn to_bytes<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    codec::encode(message).map_err(io::Error::other)
}

/// Writes a message whole, and waits until it is written.
///
/// # Errors
/// As [`to_bytes`], or the target fails.
pub fn write<T: Serialize>(mut target: impl Write, message: &T) -> io::Result<()> {
    target.write_all(&to_bytes(message)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<FromServer> {
        vec![
            FromServer::Ready { environments: vec![(3, vec![("PMIX_RANK".into(), "3".into())])] },
            FromServer::Joined { rank: 0 },
            FromServer::Fence { number: 7, contribution: ContentBytes(vec![0, 200, 255]) },
            FromServer::Abort { rank: 3, status: Some(-1), why: "it aborted the program".into() },
        ]
    }

    proptest::proptest! {
        #[test]
        fn messages_may_come_in_any_pieces(cuts in proptest::collection::vec(1usize..40, 1..20)) {
            let bytes: Vec<u8> = messages().iter().flat_map(|message| to_bytes(message).unwrap()).collect();
            let (mut decoder, mut taken, mut rest) = (Decoder::of_shim(), Vec::new(), bytes.as_slice());
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                decoder.feed(piece);
                while let Some(message) = decoder.take().unwrap() {
                    taken.push(message);
                }
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            proptest::prop_assert_eq!(taken, messages());
        }

        #[test]
        fn rubbish_is_an_error_or_too_short(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let mut decoder = Decoder::of_server();
            decoder.feed(&bytes);
            proptest::prop_assert!(!matches!(decoder.take(), Ok(Some(_))));
        }
    }

    #[test]
    fn a_message_above_the_limit_is_refused_before_it_has_arrived() {
        let mut header = to_bytes(&FromServer::Joined { rank: 0 }).unwrap();
        header[2..6].copy_from_slice(&(MAX_FROM_SERVER_BYTES as u32 + 1).to_le_bytes());
        let mut decoder = Decoder::of_shim();
        decoder.feed(&header[..codec::HEADER_BYTES]);
        assert!(decoder.take().is_err());
    }

    #[test]
    fn the_largest_contribution_is_a_message() {
        let fence =
            FromServer::Fence { number: u32::MAX, contribution: ContentBytes(vec![255; MAX_CONTRIBUTION_BYTES]) };
        let bytes = to_bytes(&fence).unwrap();
        assert!(bytes.len() - codec::HEADER_BYTES <= MAX_FROM_SERVER_BYTES);
    }

    #[test]
    fn a_source_that_ends_within_a_message_is_an_error() {
        let bytes = to_bytes(&ToServer::Ended { rank: 1 }).unwrap();
        let mut whole = Reader::new(bytes.as_slice(), Decoder::of_server());
        assert_eq!(whole.read().unwrap(), Some(ToServer::Ended { rank: 1 }));
        assert_eq!(whole.read().unwrap(), None);
        let mut cut = Reader::new(&bytes[..bytes.len() - 1], Decoder::of_server());
        assert!(cut.read().is_err());
    }
}
