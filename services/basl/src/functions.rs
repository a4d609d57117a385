//! The predefined functions: names, parameters and results (PBS-X-09).

use crate::{
    getters::{Getter, Named},
    types::{Basic, Kind, Type},
};

/// A predefined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Getter(Getter, Kind, Basic),
    Named(Named, Kind, Basic),
    Plain(Plain, &'static [Type], Basic),
    Sort,
    QueJobFind,
    QueFilter,
}

/// Predefined functions with parameters like those of a program's own functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    AllServersGet,
    AllServersLocalHostGet,
    AllNodesGet,
    AllNodesLocalHostGet,
    ServerNodesQuery,
    ServerNodesReserve,
    ServerNodesRelease,
    JobAction,
    DatetimeGet,
    DatetimeToSecs,
}

const SERVER: Type = Type::object(Kind::Server);

const PLAIN: [(&str, Plain, &[Type], Basic); 10] = [
    ("AllServersGet", Plain::AllServersGet, &[], Basic::Set(Kind::Server)),
    ("AllServersLocalHostGet", Plain::AllServersLocalHostGet, &[], Basic::Object(Kind::Server)),
    ("AllNodesGet", Plain::AllNodesGet, &[], Basic::Set(Kind::CNode)),
    ("AllNodesLocalHostGet", Plain::AllNodesLocalHostGet, &[], Basic::Object(Kind::CNode)),
    ("ServerNodesQuery", Plain::ServerNodesQuery, &[SERVER, Type::STRING], Basic::Int),
    ("ServerNodesReserve", Plain::ServerNodesReserve, &[SERVER, Type::STRING, Type::INT], Basic::Int),
    ("ServerNodesRelease", Plain::ServerNodesRelease, &[SERVER, Type::INT], Basic::Int),
    ("JobAction", Plain::JobAction, &[Type::object(Kind::Job), Type::INT, Type::STRING], Basic::Int),
    ("datetimeGet", Plain::DatetimeGet, &[], Basic::DateTime),
    ("datetimeToSecs", Plain::DatetimeToSecs, &[Type::DATETIME], Basic::Int),
];

/// The predefined functions whose last parameters depend on their key function.
const KEYED: [(&str, Builtin); 3] =
    [("Sort", Builtin::Sort), ("QueJobFind", Builtin::QueJobFind), ("QueFilter", Builtin::QueFilter)];

/// The predefined function of a name.
pub(crate) fn builtin(name: &str) -> Option<Builtin> {
    let getter = || Getter::ALL.iter().find(|(known, ..)| *known == name);
    let named = || Named::ALL.iter().find(|(known, ..)| *known == name);
    let plain = || PLAIN.iter().find(|(known, ..)| *known == name);
    let keyed = || KEYED.iter().find(|(known, _)| *known == name).map(|(_, builtin)| *builtin);
    getter()
        .map(|(_, getter, kind, result)| Builtin::Getter(*getter, *kind, *result))
        .or_else(|| named().map(|(_, named, kind, result)| Builtin::Named(*named, *kind, *result)))
        .or_else(|| plain().map(|(_, plain, parameters, result)| Builtin::Plain(*plain, parameters, *result)))
        .or_else(keyed)
}

/// The names of all predefined functions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let getters = Getter::ALL.iter().map(|(name, ..)| *name);
    let named = Named::ALL.iter().map(|(name, ..)| *name);
    getters.chain(named).chain(PLAIN.iter().map(|(name, ..)| *name)).chain(KEYED.iter().map(|(name, _)| *name))
}
