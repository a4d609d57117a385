//! The command language of `qmgr`: `create`, `set`, `unset`, `delete`, `list`, `print` and `active` for the server, its
//! queues and its nodes.

mod command;
mod object;
mod parse;

pub use command::{Change, Command, ObjectKind, ObjectName, Operation, Verb};
pub use object::{Object, Setting, list, print};
pub use parse::{SyntaxError, Written, parse, script};
