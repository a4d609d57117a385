//! The constants that the language names. Their numbers are those of PBS.

use crate::{syntax::Constant, types::Kind};

/// Numbers of the constants that the interpreter itself uses.
pub(crate) mod number {
    pub(crate) const QUEUED: i64 = 1;
    pub(crate) const HELD: i64 = 2;
    pub(crate) const WAITING: i64 = 3;
    pub(crate) const RUNNING: i64 = 4;
    pub(crate) const EXITING: i64 = 5;
    pub(crate) const TRANSIT: i64 = 0;
    pub(crate) const SERVER_SCHED: i64 = 2;
    pub(crate) const QTYPE_E: i64 = 0;
    pub(crate) const QTYPE_R: i64 = 1;
    pub(crate) const CNODE_UNKNOWN: i64 = -2;
    pub(crate) const CNODE_OFFLINE: i64 = -1;
    pub(crate) const CNODE_DOWN: i64 = 0;
    pub(crate) const CNODE_FREE: i64 = 1;
    pub(crate) const CNODE_RESERVE: i64 = 2;
    pub(crate) const CNODE_INUSE_EXCLUSIVE: i64 = 3;
    pub(crate) const CNODE_INUSE_SHARED: i64 = 4;
    pub(crate) const CNODE_TIMESHARED: i64 = 5;
    pub(crate) const CNODE_CLUSTER: i64 = 6;
    pub(crate) const OP_EQ: i64 = 0;
    pub(crate) const OP_NEQ: i64 = 1;
    pub(crate) const OP_GT: i64 = 2;
    pub(crate) const OP_GE: i64 = 3;
    pub(crate) const OP_LT: i64 = 4;
    pub(crate) const OP_LE: i64 = 5;
    pub(crate) const OP_MAX: i64 = 6;
    pub(crate) const OP_MIN: i64 = 7;
    pub(crate) const ASC: i64 = 9;
    pub(crate) const DESC: i64 = 10;
}

const INTS: [(&str, i64); 47] = [
    ("SUCCESS", 1),
    ("FAIL", 0),
    ("TRUE", 1),
    ("FALSE", 0),
    ("SYNCRUN", 0),
    ("ASYNCRUN", 1),
    ("DELETE", 2),
    ("RERUN", 3),
    ("HOLD", 4),
    ("RELEASE", 5),
    ("SIGNAL", 6),
    ("MODIFYATTR", 7),
    ("MODIFYRES", 8),
    ("TRANSIT", number::TRANSIT),
    ("QUEUED", number::QUEUED),
    ("HELD", number::HELD),
    ("WAITING", number::WAITING),
    ("RUNNING", number::RUNNING),
    ("EXITING", number::EXITING),
    ("SERVER_ACTIVE", 0),
    ("SERVER_IDLE", 1),
    ("SERVER_SCHED", number::SERVER_SCHED),
    ("SERVER_TERM", 3),
    ("SERVER_TERMDELAY", 4),
    ("QTYPE_E", number::QTYPE_E),
    ("QTYPE_R", number::QTYPE_R),
    ("SCHED_DISABLED", 0),
    ("SCHED_ENABLED", 1),
    ("CNODE_UNKNOWN", number::CNODE_UNKNOWN),
    ("CNODE_OFFLINE", number::CNODE_OFFLINE),
    ("CNODE_DOWN", number::CNODE_DOWN),
    ("CNODE_FREE", number::CNODE_FREE),
    ("CNODE_RESERVE", number::CNODE_RESERVE),
    ("CNODE_INUSE_EXCLUSIVE", number::CNODE_INUSE_EXCLUSIVE),
    ("CNODE_INUSE_SHARED", number::CNODE_INUSE_SHARED),
    ("CNODE_TIMESHARED", number::CNODE_TIMESHARED),
    ("CNODE_CLUSTER", number::CNODE_CLUSTER),
    ("OP_EQ", number::OP_EQ),
    ("OP_NEQ", number::OP_NEQ),
    ("OP_LT", number::OP_LT),
    ("OP_LE", number::OP_LE),
    ("OP_GE", number::OP_GE),
    ("OP_GT", number::OP_GT),
    ("OP_MAX", number::OP_MAX),
    ("OP_MIN", number::OP_MIN),
    ("ASC", number::ASC),
    ("DESC", number::DESC),
];

/// The days from Sunday, which is 0.
pub(crate) const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const OBJECTS: [(&str, Kind); 4] =
    [("NOSERVER", Kind::Server), ("NOQUE", Kind::Que), ("NOJOB", Kind::Job), ("NOCNODE", Kind::CNode)];

const SETS: [(&str, Kind); 4] = [
    ("EMPTYSETSERVER", Kind::Server),
    ("EMPTYSETQUE", Kind::Que),
    ("EMPTYSETJOB", Kind::Job),
    ("EMPTYSETCNODE", Kind::CNode),
];

/// The constant of a name.
pub(crate) fn constant(name: &str) -> Option<Constant> {
    fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
        table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
    let day = || DAYS.iter().position(|day| *day == name).and_then(|day| u8::try_from(day).ok());
    named(&INTS, name)
        .map(Constant::Int)
        .or_else(|| day().map(Constant::Dayofweek))
        .or_else(|| named(&OBJECTS, name).map(Constant::Nothing))
        .or_else(|| named(&SETS, name).map(Constant::Empty))
        .or_else(|| (name == "NULLSTR").then_some(Constant::String(None)))
}

/// The name of what stands for no object of a kind.
pub(crate) fn nothing(kind: Kind) -> &'static str {
    OBJECTS.iter().find(|(_, of)| *of == kind).map_or("", |(name, _)| name)
}

/// The names of all constants.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let ints = INTS.iter().map(|(name, _)| *name);
    let objects = OBJECTS.iter().chain(&SETS).map(|(name, _)| *name);
    ints.chain(DAYS).chain(objects).chain(["NULLSTR"])
}

/// Words that cannot name a variable or a function, besides the constants.
pub(crate) const KEYWORDS: [&str; 39] = [
    "sched_main",
    "Void",
    "Int",
    "Float",
    "Dayofweek",
    "DateTime",
    "String",
    "Size",
    "Server",
    "Que",
    "Job",
    "CNode",
    "Set",
    "Range",
    "Fun",
    "while",
    "if",
    "else",
    "return",
    "print",
    "for",
    "foreach",
    "in",
    "switch",
    "case",
    "break",
    "continue",
    "exit",
    "default",
    "EQ",
    "NEQ",
    "LT",
    "LE",
    "GT",
    "GE",
    "AND",
    "OR",
    "MIN",
    "MAX",
];
