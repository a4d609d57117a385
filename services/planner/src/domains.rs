//! How demands ask for planning domains, and for reservations that need not be all that they use.

use crate::model::Demand;
use std::sync::Arc;

/// The first character of the names by which demands ask for domains; no reservation has a name with it.
const MARK: char = '\u{1}';

/// The name by which a demand asks for a domain in place of a reservation.
pub fn key(domain: &str) -> Arc<str> {
    format!("{MARK}{domain}").into()
}

/// The first character of the names by which demands ask for nodes of these reservations beside others, and between them.
const OPEN: char = '\u{2}';

/// The name by which a demand asks for all nodes but those of other reservations than these; `None` without any.
pub fn beside<'n>(names: impl Iterator<Item = &'n str>) -> Option<Arc<str>> {
    let all: String = names.flat_map(|name| [OPEN.encode_utf8(&mut [0; 4]).to_owned(), name.to_owned()]).collect();
    (!all.is_empty()).then(|| all.into())
}

/// The reservations whose nodes a demand may have beside others, if it asks so in place of one reservation.
pub(crate) fn open_in(reservation: &str) -> Option<impl Iterator<Item = &str> + Clone> {
    Some(reservation.strip_prefix(OPEN)?.split(OPEN))
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
