//! Decides which waiting jobs start where: a pure library, without clock, input or output, and without durable state.
//!
//! A cycle is [`Engine::pass`], a pipeline of four stages:
//!
//! - order: the keys of the policy, formulas among them;
//! - gate: the obstacles to planning a job, mostly known from the state, and limits of queues and of the policy;
//! - place ([`place`]): over nodes, cores, memory, GPUs and licences, all components together, now or at the first
//!   moment at which they fit;
//! - commit: the starts, promises and reasons go to the ledger as one command ([`projection::Projection::plan`]), which
//!   checks them against its state.
//!
//! A [`projection::Projection`] keeps an engine in step with the log. The rest of the library puts other questions to
//! the same engine: simulation of traces, predicted starts, what-if, explanations, decision replay.
//!
//! Two jobs that want a whole node each, and one node: the first starts, the second waits for the end of the first.
//!
//! ```
//! use muster_planner::{
//!     Engine,
//!     model::{ComponentDemand, Demand, Holder, QueuedJob},
//! };
//! use muster_schemas::{
//!     JobId, NodeId, Timestamp,
//!     cluster::QueueSpec,
//!     policy::Policy,
//!     resources::{Alternative, NodeSpec, Request},
//! };
//! use std::{
//!     collections::{BTreeMap, BTreeSet},
//!     sync::Arc,
//! };
//!
//! let mut engine = Engine::new(Arc::new(Policy::built_in("easy").unwrap())).unwrap();
//! engine.set_queue(&QueueSpec { name: "default".into(), ..QueueSpec::default() });
//! let node = NodeSpec {
//!     name: "n1".into(),
//!     cores: 4,
//!     sockets: 1,
//!     memory_bytes: 8 << 30,
//!     gpus: Vec::new(),
//!     properties: BTreeMap::new(),
//! };
//! engine.set_node(NodeId(1), Arc::new(node), true);
//!
//! let four_cores = Request { tasks: Some(4), ..Request::default() };
//! let hour = Alternative { requests: vec![four_cores], walltime_seconds: Some(3600), ..Alternative::default() };
//! let component = ComponentDemand {
//!     queue: "default".into(),
//!     reservation: None,
//!     deadline: None,
//!     alternatives: [hour].into(),
//! };
//! let demand = Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 });
//! let ann = Arc::new(Holder { user: "ann".into(), group: 1000, account: None, charges: Vec::new(), marks: None });
//! let now = Timestamp(0);
//! for number in [1, 2] {
//!     engine.enqueue(QueuedJob {
//!         id: JobId::job(number),
//!         tasks: None,
//!         demand: demand.clone(),
//!         holder: ann.clone(),
//!         priority: 0,
//!         is_list: false,
//!         arrival: now,
//!         attributes: None,
//!         slot: None,
//!         activation: None,
//!     });
//! }
//!
//! let plan = engine.pass(now, &BTreeSet::new());
//! assert_eq!(plan.starts.len(), 1);
//! assert_eq!(plan.starts[0].job, JobId::job(1));
//! assert_eq!(plan.reasons[0].job, JobId::job(2)); // and why it waits
//! ```

pub mod chart;
mod class;
pub mod domains;
pub mod energy;
mod engine;
pub mod explain;
pub mod forecast;
pub mod free;
mod limits;
mod machine;
pub mod model;
pub mod pass;
pub mod place;
pub mod policy_file;
pub mod predict;
pub mod projection;
mod queue;
mod resize;
pub mod routes;
mod search;
mod sharers;
pub mod simulate;
mod timeline;
pub mod timetable;
pub mod verify;
pub mod whatif;

pub use class::Size;
pub use engine::Engine;
pub use pass::PassLimit;

/// A policy that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy's order: {0}")]
pub struct PolicyError(pub muster_schemas::policy::formula::FormulaError);
