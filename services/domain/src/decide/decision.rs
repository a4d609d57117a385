//! Decisions and refusals.

use muster_schemas::{
    command::{Refusal, RefusalCode, Reply},
    event::Event,
};

pub(crate) fn one_if(wanted: bool, event: impl FnOnce() -> Event) -> Vec<Event> {
    if wanted { vec![event()] } else { Vec::new() }
}

/// The result of an accepted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The events, in order; empty if the command asks for what is already so.
    pub events: Vec<Event>,
    /// The answer to the client.
    pub reply: Reply,
}

impl Decision {
    pub(crate) fn done(events: Vec<Event>) -> Self {
        Self { events, reply: Reply::Done }
    }
}

pub(crate) fn refuse(code: RefusalCode, message: impl Into<String>) -> Refusal {
    Refusal::new(code, message)
}

pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
    refuse(RefusalCode::Invalid, message)
}

pub(crate) fn conflict(message: impl Into<String>) -> Refusal {
    refuse(RefusalCode::Conflict, message)
}

pub(crate) fn not_found(message: impl Into<String>) -> Refusal {
    refuse(RefusalCode::NotFound, message)
}
