//! The bus between muster's services: one trait, [`Bus`], with two implementations of the same semantics.
//! [`LocalBus`] connects services inside one process, [`NatsBus`] connects processes and machines over NATS.
//!
//! The bus distributes, the ledger remembers: users of the bus read again from the ledger whatever the bus loses. On
//! top of the trait stands what most services need: [`LedgerClient`] for commands and queries, [`Feed`] for the log in
//! order and without gaps, [`Projection`] for the resulting state.

mod bus;
mod client;
mod error;
mod feed;
mod local;
mod log_id;
mod log_stream;
mod message;
mod nats;
mod pause;
mod projection;
mod queue;
pub mod rounds;
mod subject;
pub mod testing;
mod work;

pub use bus::{Bus, LogTail, SharedBus};
pub use client::LedgerClient;
pub use error::BusError;
pub use feed::Feed;
pub use local::LocalBus;
pub use log_id::LogId;
pub use log_stream::{LogItem, LogStream};
pub use message::{Message, PublicEvent, Published, Request, RequestStream, Subscription};
pub use nats::{NatsBus, NatsConfig, NatsRounds, RoundsHealth, StreamLimits};
pub use projection::{Projection, load_snapshot};
pub use queue::WorkQueue;
pub use work::{WorkItem, WorkStream};
