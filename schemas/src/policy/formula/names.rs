//! Names in formulas, for reading and printing.

use super::{Binary, Variable};

/// Variables by their names.
pub(super) const VARIABLES: [(&str, Variable); 12] = [
    ("submit", Variable::Submit),
    ("age0", Variable::Age0),
    ("wait", Variable::Wait),
    ("walltime", Variable::Walltime),
    ("procs", Variable::Procs),
    ("cores", Variable::Procs),
    ("nodes", Variable::Nodes),
    ("memory_bytes", Variable::MemoryBytes),
    ("gpus", Variable::Gpus),
    ("priority", Variable::Priority),
    ("queue_priority", Variable::QueuePriority),
    ("fair_share", Variable::FairShare),
];
/// Attributes that a trace gives to jobs; their names need no `attribute("...")`.
pub(super) const TRACE_ATTRIBUTES: [&str; 5] = ["application", "partition", "user", "group", "queue"];

/// Operators that stand between their operands, and how tightly they bind.
pub(super) const INFIX: [(&str, Binary, u8); 14] = [
    ("or", Binary::Or, 0),
    ("and", Binary::And, 1),
    ("==", Binary::Equal, 3),
    ("!=", Binary::NotEqual, 3),
    ("<", Binary::Less, 3),
    ("<=", Binary::LessOrEqual, 3),
    (">", Binary::Greater, 3),
    (">=", Binary::GreaterOrEqual, 3),
    ("+", Binary::Add, 4),
    ("-", Binary::Subtract, 4),
    ("*", Binary::Multiply, 5),
    ("/", Binary::Divide, 5),
    ("%", Binary::Remainder, 5),
    ("^", Binary::Power, 7),
];
