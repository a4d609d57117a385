//! The process management interface (PMI), versions 1 and 2: how the processes of a parallel program learn their rank
//! and their number, and exchange the addresses at which they reach each other (SL-W-04).
//!
//! Each process has a socket to a [`Server`] on its node. Processes *put* pairs of key and value, and meet in a *fence*:
//! when all of them are in it, everybody can *get* what anybody has put. Across nodes, servers exchange what their
//! processes have put; how it travels is not their business: [`Effect::Fence`] hands it out, [`Server::fenced`] takes in
//! what comes from all nodes.
//!
//! Everything here is pure: bytes in, bytes out. What processes send is hostile: messages, keys, values and their sums
//! have limits, and whoever exceeds them is cut off.

mod layout;
mod pairs;
mod server;
mod version_one;
mod version_two;
mod wire;

pub use layout::Layout;
pub use pairs::{BadPairs, Pairs};
pub use server::{Effect, Server};

/// The longest key, in bytes, that processes are told to use.
pub const MAX_KEY_BYTES: usize = 64;
/// The longest value, in bytes, that processes are told to use.
pub const MAX_VALUE_BYTES: usize = 1_024;
/// The longest message of a process, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// The most that the processes of a node can put before a fence, keys and values together, in bytes.
pub const MAX_PUT_BYTES: usize = 32 << 20;
/// The most that a server keeps of all processes of the program, in bytes of memory. Pairs are never removed.
pub const MAX_KEPT_BYTES: usize = 256 << 20;
