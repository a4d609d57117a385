//! Turns requests of `-l` into requests over the resource tree.

mod chunks;
mod conditions;
mod jobwide;
mod nodes;
mod size;

use super::{Settings, rules::Rules};
use crate::{
    chunks::MOST_LINES,
    refusal::Refusal,
    resources::{NodesSpec, Place, Select},
};
pub(super) use size::Size;

/// The size of a job.
///
/// # Errors
/// A request that cannot be read, is unknown, or does not go with the others.
pub(super) fn size(settings: &Settings, rules: &Rules) -> Result<Size, Refusal> {
    let find = |name: &str| settings.resources.iter().find(|request| request.name == name);
    let of_option = |wrong: Refusal| match wrong {
        Refusal::Value { option, word, why } => Refusal::value("-l", &word, format!("{option}: {why}")),
        other => other,
    };
    let place = match find("place") {
        Some(place) => Place::parse(&place.plain()).map_err(of_option)?,
        None => Place::default(),
    };
    let mut size = Size::default();
    match (find("select"), find("nodes")) {
        (Some(select), _) => {
            chunks::refuse_rivals(&settings.resources)?;
            let select = Select::parse(&select.value).map_err(of_option)?;
            chunks::place(&mut size, &select, &place)?;
            size.show("select", select.to_string());
        }
        (None, Some(nodes)) => {
            let spec = NodesSpec::parse(&nodes.plain()).map_err(of_option)?;
            nodes::place(&mut size, &spec, &settings.resources, rules)?;
            size.show("nodes", spec.to_string());
        }
        (None, None) => {
            let select = jobwide::select(&settings.resources)?;
            chunks::place(&mut size, &select, &place)?;
        }
    }
    if find("place").is_some() {
        size.show("place", place.to_string());
    }
    jobwide::add(&mut size, &settings.resources, rules)?;
    if !size.plan.is_bounded() {
        let (chunks, processes) = (size.plan.count(), size.plan.mpiprocs());
        let why = format!("at most {MOST_LINES} of each are taken");
        return Err(Refusal::value("-l", &format!("{chunks} chunks with {processes} processes"), why));
    }
    if settings.whole_nodes {
        size.make_exclusive();
    }
    size.show_totals();
    Ok(size)
}
