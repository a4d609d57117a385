//! One alternative of a component: its licences, and its requests with or without a layout of the nodes.

use super::{Scope, layout::place_together, place_anywhere};
use crate::free::{Free, Undo};
use muster_schemas::resources::{Alternative, ComponentPlacement};

/// Places one alternative of a component and takes its resources from `free`; `None`, with nothing taken, if it does
/// not fit.
pub fn place_alternative<'a>(
    free: &mut Free<'a>,
    scope: &Scope,
    number: u32,
    alternative: &Alternative,
    undo: &mut Undo<'a>,
) -> Option<ComponentPlacement> {
    if alternative.licences.iter().any(|(name, count)| free.licence(name) < *count) {
        return None;
    }
    let mut own_undo = Undo::default();
    let placement = match alternative.has_layout() {
        true => place_together(free, scope, number, alternative, &mut own_undo)?,
        false => place_anywhere(free, scope, number, alternative, &mut own_undo)?,
    };
    free.take_licences(&alternative.licences, &mut own_undo);
    undo.append(own_undo);
    Some(placement)
}
