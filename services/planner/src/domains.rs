//! How demands ask for planning domains.

use crate::model::Demand;
use std::sync::Arc;

/// The first character of the names by which demands ask for domains; no reservation has a name with it.
const MARK: char = '\u{1}';

/// The name by which a demand asks for a domain in place of a reservation.
pub fn key(domain: &str) -> Arc<str> {
    format!("{MARK}{domain}").into()
}

/// The domain that a demand asks for in place of this reservation.
pub(crate) fn domain_of(reservation: &str) -> Option<&str> {
    reservation.strip_prefix(MARK)
}

/// The name by which a demand asks for a domain, if it does. All components of a job are in the same.
pub(crate) fn asked(demand: &Demand) -> Option<&Arc<str>> {
    let named = demand.components.first()?.reservation.as_ref()?;
    domain_of(named).map(|_| named)
}

/// A job that opens a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// The name by which demands ask for the domain: see [`key`].
    pub key: Arc<str>,
    /// Whether no job starts on what it holds: it does not run yet, is suspended or being stopped.
    pub is_shut: bool,
}
