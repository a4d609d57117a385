//! `qselect`: the identifiers of the jobs that have all of some attributes.

use super::{
    ended::{Ended, Failure, print},
    site::Site,
};
use muster_client::JobQuery;
use muster_pbs::{
    attributes::{Attributes, names},
    queries::{Comparison, SelectRequest, qselect},
    show,
    value::{Size, parse_seconds},
};
use muster_schemas::{JobId, job::JobState, resources::Relation, views::JobDetail};
use std::cmp::Ordering;

/// How many jobs are asked for in one request.
const DETAILS_AT_A_TIME: usize = 500;

/// Runs a command line of `qselect`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = qselect(words, &site.now())?;
    let states = if request.history { JobState::ALL.to_vec() } else { Vec::new() };
    let queue = request.destination.as_ref().and_then(|destination| destination.queue.clone());
    let query = JobQuery { queue, name: request.name.clone(), states, ..JobQuery::default() };
    let views = site.client.jobs(&query)?.jobs;
    let ids: Vec<JobId> = views
        .iter()
        .filter(|view| request.users.is_empty() || request.users.contains(&view.owner))
        .filter(|view| request.states.is_empty() || request.states.contains(show::job_state(view, site.flavour)))
        .filter(|view| request.tasks || view.id.index.is_none())
        .filter(|view| !request.only_arrays || view.array.is_some() || view.id.index.is_some())
        .map(|view| view.id)
        .collect();
    let mut text = String::new();
    for some in ids.chunks(DETAILS_AT_A_TIME) {
        for detail in site.client.job_details(some, false)?.jobs {
            if ids.binary_search(&detail.job.id).is_ok() && is_wanted(&request, &detail)? {
                text.push_str(&site.id_of_view(&detail.job).to_string());
                text.push('\n');
            }
        }
    }
    print(&text);
    Ok(0)
}

fn is_wanted(request: &SelectRequest, detail: &JobDetail) -> Result<bool, Failure> {
    let SelectRequest { begin, account, holds, resources, priority, project, rerunnable, .. } = request;
    let (spec, kept) = (&detail.spec, Attributes(&detail.spec.attributes));
    let Some(component) = spec.components.first() else { return Ok(false) };
    let set = component.holds.union(detail.job.holds);
    let has_holds = |letters: &String| match letters.as_str() {
        "n" => set.is_empty(),
        letters => {
            letters.contains('u') == set.user
                && letters.contains('o') == set.operator
                && letters.contains('s') == set.system
        }
    };
    let begins =
        |(relation, at): &(Relation, _)| component.begin.is_some_and(|begin| holds_for(*relation, begin.cmp(at)));
    let is_so = begin.as_ref().is_none_or(begins)
        && account.as_ref().is_none_or(|account| component.account.as_ref() == Some(account))
        && project.as_deref().is_none_or(|project| kept.get(names::PROJECT) == Some(project))
        && holds.as_ref().is_none_or(has_holds)
        && priority.is_none_or(|(relation, wanted)| holds_for(relation, component.priority.unwrap_or(0).cmp(&wanted)))
        && rerunnable.is_none_or(|wanted| spec.requeue.on_node_lost == wanted);
    if !is_so {
        return Ok(false);
    }
    for wanted in resources {
        if !has(kept, wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a job asked for a resource as a comparison wants it. One that was not asked for is not comparable.
fn has(kept: Attributes<'_>, wanted: &Comparison) -> Result<bool, Failure> {
    let Some(asked) = kept.resource(&wanted.name) else { return Ok(false) };
    Ok(holds_for(wanted.relation, compared(asked, &wanted.value)))
}

/// Times, sizes and numbers are compared as such, everything else as text.
fn compared(asked: &str, wanted: &str) -> Ordering {
    let seconds = parse_seconds(asked).zip(parse_seconds(wanted)).map(|(one, other)| one.cmp(&other));
    let sizes = || Size::parse(asked).zip(Size::parse(wanted)).map(|(one, other)| one.bytes().cmp(&other.bytes()));
    seconds.or_else(sizes).unwrap_or_else(|| asked.cmp(wanted))
}

fn holds_for(relation: Relation, ordering: Ordering) -> bool {
    match relation {
        Relation::Equal => ordering.is_eq(),
        Relation::NotEqual => ordering.is_ne(),
        Relation::GreaterOrEqual => ordering.is_ge(),
        Relation::Greater => ordering.is_gt(),
        Relation::LessOrEqual => ordering.is_le(),
        Relation::Less => ordering.is_lt(),
    }
}
