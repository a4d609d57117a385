//! What `qstat`, `pbsnodes` and `tracejob` print about jobs, queues, servers and nodes.
//!
//! As in the originals, everything becomes a [`Status`] first: the name of a thing with its attributes. Layouts take
//! their columns from these.

mod alternate;
mod cells;
mod full;
mod jobs;
mod list;
mod nodes;
mod places;
mod printed;
mod queues;
mod servers;
mod states;
mod status;
mod trace;
mod xml;

pub use alternate::{Alternate, Units, alternate};
pub(crate) use cells::printable;
pub use full::{Header, dsv, json, text};
pub use jobs::{Sources, of_detail, of_task, of_view};
pub use list::{List, list, list_of_views};
pub use nodes::{NodeJob, NodeTable, marked, node_line, node_state, node_table, node_text, of_node};
pub(crate) use nodes::{exact_size, property};
pub use printed::printed;
pub use queues::{of_queue, queue_limits, queues};
pub use servers::{ServerFacts, ServerState, of_server, servers};
pub use states::{Counts, job_state};
pub use status::{Attribute, Kind, Status, Value};
pub use trace::{TraceEvent, trace};
pub use xml::xml;
