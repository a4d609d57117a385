//! The command language of `qmgr`: `create`, `set`, `unset`, `delete`, `list`, `print` and `active` for the server, its
//! queues and its nodes, and what commands do to the cluster's configuration.

mod command;
mod difference;
mod edit;
mod limits;
mod nodes;
mod object;
mod parse;
mod problem;
mod queues;
mod routes;
mod run_limits;
mod scheduling;
mod servers;
mod values;

pub use command::{Change, Command, HELP, ObjectKind, ObjectName, Operation, Verb};
pub use difference::difference;
pub use edit::{Edit, Wrong, edit};
pub use limits::{DEFAULTS, amount, created, limits_of, new_limits};
pub use nodes::{Service, listed_node, node};
pub use object::{Object, Printed, Setting, list, only, print};
pub use parse::{SyntaxError, Written, parse, script};
pub use queues::{listed_queue, queue};
pub use routes::limits as limits_of_jobs;
pub use scheduling::{schedule_iteration, scheduler_policy, time_zone};
pub use servers::{listed_server, server};
pub use values::EACH_ONE;
