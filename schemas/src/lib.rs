//! Types that are sent over the bus or stored: ids, the job model, commands, events, node orders, their encoding, and
//! the public form of events.

pub mod accounts;
pub mod address;
pub mod binding;
pub mod cause;
pub mod cluster;
pub mod codec;
pub mod command;
pub mod content;
pub mod copies;
pub mod crontab;
pub mod domains;
pub mod event;
pub mod external_planner;
pub mod fair_tree;
pub mod fence;
pub mod filter;
pub mod filter_order;
pub mod fraction;
pub mod hosts;
pub mod ids;
pub mod job;
pub mod job_token;
pub mod node;
pub mod notify;
pub mod output;
pub mod plan;
pub mod policy;
pub mod public;
pub mod refusal;
pub mod resources;
pub mod scheduling;
pub mod shares;
pub mod step_io;
pub mod steps;
pub mod subjects;
pub mod tasks;
pub mod testing;
pub mod time;
pub mod trigger;
pub mod usage;
pub mod views;

pub use ids::{CommandId, JobId, NodeId, PartId, RunId, Sequence, StepId};
pub use time::Timestamp;
