//! Invariants that hold after every record, for tests and simulations. A violation is a bug in this crate.

mod ensure;

pub(crate) use ensure::ensure;

use crate::{
    components,
    dependencies::invariants::singletons,
    filters,
    index::Index,
    jobs::invariants::{array, shapes},
    nesting::invariants::nested,
    nodes::{
        self,
        invariants::{Users, licences, queues},
    },
    planning::invariants::planning,
    runs::invariants::runs_and_jobs,
    state::State,
    steps, tasks,
};

/// Checks everything.
///
/// # Panics
/// If an invariant is violated; the message names it.
pub fn assert_invariants(state: &State) {
    if let Err(violation) = check(state) {
        panic!("after record {}: {violation}", state.sequence());
    }
}

/// Checks everything.
///
/// # Errors
/// The first violation.
pub fn check(state: &State) -> Result<(), String> {
    index(state)?;
    let users = Users::of(state);
    state.nodes().try_for_each(|node| nodes::invariants::node(state, &users, node))?;
    nested(state)?;
    runs_and_jobs(state)?;
    licences(state)?;
    queues(state)?;
    state.jobs().try_for_each(|job| array(state, job))?;
    singletons(state)?;
    planning(state)?;
    filters::invariants::check(state)?;
    tasks::invariants::check(state)?;
    steps::invariants::check(state)?;
    components::invariants::check(state)?;
    shapes(state)
}

fn index(state: &State) -> Result<(), String> {
    let expected = Index::of(state);
    ensure(state.index == expected, || format!("the index is {:?}\nbut should be {expected:?}", state.index))
}
