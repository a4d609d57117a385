//! Which jobs a request means.

use super::{
    operands::{Destination, Operand},
    qstat::StatRequest,
    select::{Comparison, SelectRequest},
};
use crate::{
    flavour::Flavour,
    show::{Status, job_state},
    value::{Size, parse_seconds},
};
use muster_schemas::{job::JobState, resources::Relation, views::JobView};

/// Whether `qstat` lists a job. A job that an operand names is listed whatever its state.
pub fn is_listed(view: &JobView, request: &StatRequest, flavour: Flavour) -> bool {
    let is_named = |operand: &Operand| match operand {
        Operand::Job(id) => id.jobs().any(|job| job == view.id || (request.tasks && job == view.id.whole())),
        Operand::Destination(_) => false,
    };
    if request.operands.iter().any(is_named) {
        return true;
    }
    let is_in = |operand: &Operand| match operand {
        Operand::Job(_) => false,
        Operand::Destination(Destination { queue, .. }) => queue.as_ref().is_none_or(|queue| *queue == view.queue),
    };
    let is_over = view.state == JobState::Finished;
    let is_hidden_over = is_over
        && match flavour {
            Flavour::PbsPro => !request.history,
            Flavour::Torque => request.without_complete,
        };
    let is_hidden_task = view.id.index.is_some() && !request.tasks;
    let letter = job_state(view, flavour);
    (request.operands.is_empty() || request.operands.iter().any(is_in))
        && !is_hidden_over
        && !is_hidden_task
        && (request.states.is_empty() || request.states.contains(letter))
        && (request.users.is_empty() || request.users.contains(&view.owner))
        && (!request.only_arrays || view.array.is_some())
}

/// Whether `qselect` prints a job, given with all its details.
pub fn is_selected(job: &Status, request: &SelectRequest) -> bool {
    let text = |name: &str| job.get(name).unwrap_or_default();
    let state = text("job_state").chars().next().unwrap_or('?');
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == text(name));
    let owner = text("Job_Owner").split('@').next().unwrap_or_default();
    let in_queue = |destination: &Destination| destination.queue.as_ref().is_none_or(|queue| queue == text("queue"));
    let in_priority = |(relation, wanted): &(Relation, i64)| {
        text("Priority").parse::<i64>().is_ok_and(|priority| holds(*relation, priority, *wanted))
    };
    let at_time = |(relation, wanted): &(Relation, muster_schemas::time::Timestamp)| {
        job.time("Execution_Time").is_some_and(|at| holds(*relation, at, *wanted))
    };
    let may_be_over = request.history || request.states.contains(['F', 'X', 'M', 'C']) || !"FXMC".contains(state);
    let is_task = job.name.contains('[') && !job.name.contains("[]");
    may_be_over
        && (!is_task || request.tasks)
        && (!request.only_arrays || job.name.contains("[]"))
        && (request.states.is_empty() || request.states.contains(state))
        && (request.users.is_empty() || request.users.iter().any(|user| user == owner))
        && is(&request.name, "Job_Name")
        && is(&request.account, "Account_Name")
        && is(&request.project, "project")
        && request.destination.as_ref().is_none_or(in_queue)
        && request.priority.as_ref().is_none_or(in_priority)
        && request.begin.as_ref().is_none_or(at_time)
        && request
            .times
            .iter()
            .all(|(name, relation, wanted)| job.time(name).is_some_and(|at| holds(*relation, at, *wanted)))
        && request.rerunnable.is_none_or(|wanted| (text("Rerunable") == "True") == wanted)
        && request.holds.as_ref().is_none_or(|wanted| wanted.chars().all(|hold| text("Hold_Types").contains(hold)))
        && request.resources.iter().all(|comparison| compares(job, comparison))
}

fn compares(job: &Status, comparison: &Comparison) -> bool {
    let Some(has) = job.resource("Resource_List", &comparison.name) else { return false };
    match (amount(has), amount(&comparison.value)) {
        (Some(has), Some(wanted)) => holds(comparison.relation, has, wanted),
        _ => holds(comparison.relation, has, comparison.value.as_str()),
    }
}

/// A number, seconds, or kilobytes.
fn amount(text: &str) -> Option<u64> {
    let is_size = text.ends_with(|c: char| c.is_ascii_alphabetic());
    if is_size { Size::parse(text).map(Size::kilobytes) } else { parse_seconds(text) }
}

fn holds<T: PartialOrd>(relation: Relation, one: T, other: T) -> bool {
    match relation {
        Relation::Equal => one == other,
        Relation::NotEqual => one != other,
        Relation::Less => one < other,
        Relation::LessOrEqual => one <= other,
        Relation::Greater => one > other,
        Relation::GreaterOrEqual => one >= other,
    }
}
