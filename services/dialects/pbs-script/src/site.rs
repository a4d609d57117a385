//! The batch system as a scheduling program sees it.

use crate::action::{Action, Answer};
use muster_pbs_plan::state_file::{JobState, QueueState, State, StateFile};

/// A batch system. Everything that a program says reaches it as an [`Action`] after checks of form only: job names,
/// hosts
/// and values are still any text of a user.
pub trait Site {
    /// What there is (PBS-C-16), with the effects of the actions that were accepted.
    fn state(&self) -> &StateFile;

    /// Carries an action out, or refuses it. A refused action changes nothing (PBS-X-23).
    fn act(&mut self, action: &Action) -> Answer;

    /// The answer of a node's monitor to a query such as `loadave`; `None` if it has none.
    fn fact(&self, node: &str, query: &str) -> Option<String> {
        fact(self.state(), node, query)
    }
}

/// Whether a node is known by this name.
pub fn has_node(state: &StateFile, node: &str) -> bool {
    state.nodes.iter().any(|known| known.name == node)
}

/// What a state says about a node.
pub fn fact(state: &StateFile, node: &str, query: &str) -> Option<String> {
    let node = state.nodes.iter().find(|known| known.name == node)?;
    let load = |load: Option<muster_pbs_policy::values::Decimal>| load.map(shown_load);
    match query {
        "arch" => node.arch.clone(),
        "ideal_load" => load(node.ideal_load),
        "loadave" => load(node.loadave),
        "max_load" => load(node.max_load),
        "ncpus" => node.ncpus.map(|count| count.to_string()),
        "physmem" => node.physmem.clone(),
        "state" => node.state.clone(),
        "systime" => node.systime.map(|percent| percent.to_string()),
        _ => node.answers.get(query).cloned(),
    }
}

/// A load with a point in it, as programs expect it: `3.0`, `0.25`.
pub fn shown_load(load: muster_pbs_policy::values::Decimal) -> String {
    let text = load.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// Jobs in state Q in execution queues, in the order of the server (PBS-X-18).
pub fn selected(state: &StateFile) -> impl Iterator<Item = &JobState> {
    let execution: std::collections::BTreeSet<&str> =
        state.queues.iter().filter(|queue| is_execution(queue)).map(|queue| queue.name.as_str()).collect();
    state.jobs.iter().filter(move |job| job.state == State::Q && execution.contains(job.queue.as_str()))
}

/// Whether jobs are started from a queue.
pub fn is_execution(queue: &QueueState) -> bool {
    let kind = queue.kind.as_deref().unwrap_or_default().to_ascii_lowercase();
    !kind.is_empty() && "execution".starts_with(&kind)
}
