//! Policies, reservations, closures and filters.

use super::{MAX_COUNT, MAX_NODE_NAMES, bytes, count, filter, identifier, invalid, name, number, path, shown, text};
use muster_schemas::{
    Timestamp,
    command::Refusal,
    filter::{FilterSpec, JobDocument},
    plan::{NodeClosure, ReservationSpec, ReservedNodes},
    policy::Policy,
};
use std::collections::BTreeSet;

/// Users or accounts of one reservation.
const MAX_HOLDERS: usize = 10_000;

/// A policy. Its queues, users and accounts do not have to exist.
pub(crate) fn policy(policy: &Policy) -> Result<(), Refusal> {
    let faults: Vec<String> = policy.faults().iter().map(ToString::to_string).collect();
    if faults.is_empty() { Ok(()) } else { invalid(format!("policy: {}", faults.join("; "))) }
}

/// A reservation, as far as it can be judged without the state.
pub(crate) fn reservation(spec: &ReservationSpec) -> Result<(), Refusal> {
    identifier("reservation.name", &spec.name)?;
    if spec.end <= spec.start {
        return invalid(format!("reservation.end: {} is not after the start, {}", spec.end, spec.start));
    }
    match &spec.nodes {
        ReservedNodes::Named(names) => {
            number("reservation.nodes: names", names.len() as u64, 1, MAX_NODE_NAMES as u64)?;
        }
        ReservedNodes::Count { count, filter: wanted, .. } => {
            number("reservation.nodes: count", u64::from(*count), 1, u64::from(MAX_COUNT))?;
            wanted.as_ref().map_or(Ok(()), |wanted| filter(wanted, 0))?;
        }
    }
    for (field, holders) in [("reservation.users", &spec.users), ("reservation.accounts", &spec.accounts)] {
        count(field, holders.len(), MAX_HOLDERS)?;
        holders.iter().try_for_each(|holder| name(field, holder))?;
        let distinct: BTreeSet<&String> = holders.iter().collect();
        if distinct.len() < holders.len() {
            return invalid(format!("{field}: a name is given twice"));
        }
    }
    Ok(())
}

/// The closures of a node.
pub(crate) fn closures(closures: &[NodeClosure], most: usize) -> Result<(), Refusal> {
    count("closures", closures.len(), most)?;
    for closure in closures {
        text("closures.reason", &closure.reason)?;
        if closure.until <= closure.from {
            return invalid(format!("closures.until: {} is not after from, {}", closure.until, closure.from));
        }
        if closure.until > Timestamp::MAX {
            return invalid(format!("closures.until: is later than {}", Timestamp::MAX));
        }
    }
    match closures.windows(2).find(|pair| pair[1].from < pair[0].until) {
        Some(pair) => invalid(format!(
            "closures: one begins at {} before the one ahead of it is over at {}",
            pair[1].from, pair[0].until
        )),
        None => Ok(()),
    }
}

/// Bytes of a description as it is kept: it is one record, and has to fit into one message of the bus (8 MB).
const MAX_DOCUMENT_BYTES: usize = 6 << 20;

/// A description of a job as somebody wrote it.
pub(crate) fn document(document: &JobDocument) -> Result<(), Refusal> {
    if !matches!(document.format.as_str(), "xml" | "json") {
        return invalid(format!("document.format: `{}` is neither `xml` nor `json`", shown(&document.format)));
    }
    bytes("document: as it is kept, compressed if it is so", document.bytes.len(), MAX_DOCUMENT_BYTES)
}

/// A filter: its path must be absolute; whether there is a program is up to the runners (HPC-F-72).
pub(crate) fn filter_spec(field: &str, spec: &FilterSpec) -> Result<(), Refusal> {
    name(&format!("{field}: a filter's name"), &spec.name)?;
    let named = || format!("{field}: filter `{}`: path", shown(&spec.name));
    path(&named(), &spec.path)?;
    if spec.path.starts_with('/') {
        return Ok(());
    }
    invalid(format!("{}: `{}` does not begin with `/`", named(), shown(&spec.path)))
}
