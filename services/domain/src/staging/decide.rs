//! Staging for jobs: when the staging program is called, and what its answers mean (SL-B-01, SL-B-02, SL-B-08).

use crate::{
    filters::{Chain, chain::warned, verdict::Answer},
    jobs::Job,
    state::State,
};
use muster_schemas::{
    JobId,
    event::{Actor, Event},
    filter::{CallId, ChainFilter, ChainSpec, ChainVerdict, FilterForm, FilterKind, FilterSpec, JobWarning},
    job::{ComponentStaging, Holds},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Starts the staging that is due now, up to a maximum. Staging for jobs that end in the same decision comes later.
pub(crate) fn due(state: &State, ended: &BTreeSet<JobId>, most: usize) -> Vec<Event> {
    let mut number = state.next_chain();
    let mut events = Vec::new();
    let ready = state.index.staging_ready.iter().filter(|id| !ended.contains(id));
    for job in ready.filter_map(|id| state.job(*id)) {
        let Some(kind) = state.staging_now(job) else { continue };
        if events.len() >= most {
            break;
        }
        match foreign_buffer(state, job).filter(|_| kind == FilterKind::StageIn) {
            Some(why) => events.extend(failed(job, number, 0, &why)),
            None => events.extend(began(state, job, kind, number)),
        }
        number += 1;
    }
    events
}

/// Starts a call for each component that has something to stage, one after the other.
fn began(state: &State, job: &Job, kind: FilterKind, number: u64) -> Option<Event> {
    let settings = state.staging_settings();
    let path = settings.program.as_ref()?;
    let filter = |component: u32| ChainFilter {
        spec: FilterSpec {
            name: format!("component {component}"),
            path: path.clone(),
            form: FilterForm::Exec,
            revert_on_unknown: false,
        },
        program_hash: state.filters.program_hashes.get(path).cloned(),
        component: Some(component),
    };
    let filters = job.staged_components().iter().map(|staged| filter(staged.component)).collect();
    let limit_seconds = match kind {
        FilterKind::StageOut => settings.stage_out_timeout_seconds,
        _ => settings.stage_in_timeout_seconds,
    };
    let chain = Arc::new(ChainSpec { number, kind, filters, limit_seconds, offer: None });
    Some(Event::FilterChainStarted { job: job.id, chain })
}

/// Why a persistent buffer cannot be created or removed: it belongs to another user. Jobs of an administrator may
/// create and remove any buffer.
fn foreign_buffer(state: &State, job: &Job) -> Option<String> {
    let owner = |name: &str| state.staging.buffers.get(name).map(|buffer| buffer.owner.as_str());
    job.staged_components().into_iter().find_map(|component| foreign_of(state, job, component, owner))
}

/// Like [`foreign_buffer`], for one component.
fn foreign_of<'a>(
    state: &State,
    job: &Job,
    component: &ComponentStaging,
    owner: impl Fn(&str) -> Option<&'a str>,
) -> Option<String> {
    if state.is_administrator(&Actor::User((*job.owner).clone())) {
        return None;
    }
    let is_foreign = |name: &&String| owner(name).is_some_and(|owner| *owner != job.owner.user);
    let made = component.creates.iter().find(is_foreign).map(|name| (name, "make"));
    let removed = || component.destroys.iter().find(is_foreign).map(|name| (name, "remove"));
    let (name, what) = made.or_else(removed)?;
    Some(format!("it is to {what} the persistent buffer `{name}`, which belongs to another user"))
}

/// The owners of the persistent buffers created by the answers of one command.
#[derive(Default)]
pub(crate) struct Made(BTreeMap<String, String>);

impl Made {
    /// A component was staged in. Returns why this does not count, if another user has meanwhile created a buffer that
    /// it creates or removes.
    pub(crate) fn staged_in(&mut self, state: &State, job: &Job, position: u32) -> Option<String> {
        let component = job.staged_components().into_iter().nth(position as usize)?;
        let owner = |name: &str| {
            let known = state.staging.buffers.get(name).map(|buffer| &buffer.owner);
            known.or_else(|| self.0.get(name)).map(String::as_str)
        };
        let overtaken = foreign_of(state, job, component, owner);
        if overtaken.is_none() {
            for name in component.creates.iter().filter(|name| !state.staging.buffers.contains_key(*name)) {
                self.0.entry(name.clone()).or_insert_with(|| job.owner.user.clone());
            }
        }
        overtaken
    }
}

/// The events that follow from an answer of the staging program.
pub(crate) fn verdict(job: &Job, chain: &Chain, call: CallId, answer: &Answer) -> Vec<Event> {
    let failure = answer.staging_failure();
    let is_last = call.position + 1 >= chain.end();
    let passed = || {
        let (kind, number) = (chain.spec.kind, chain.spec.number);
        is_last.then_some(Event::FilterChainPassed { job: job.id, kind, chain: number })
    };
    match (chain.spec.kind, failure) {
        (FilterKind::StageIn, Some(why)) => failed(job, chain.spec.number, call.position, &why),
        // What the other components leave is staged out nevertheless.
        (_, Some(text)) => {
            let warning = JobWarning { code: "StageOutFailed".to_owned(), text };
            warned(job.id, vec![warning]).chain(passed()).collect()
        }
        (_, None) => passed().into_iter().collect(),
    }
}

/// The files of a job could not be staged in: it is held until an administrator releases it, then staging is tried
/// again.
pub(crate) fn failed(job: &Job, number: u64, position: u32, why: &str) -> Vec<Event> {
    let kind = FilterKind::StageIn;
    let added = Holds { system: true, ..Holds::default() };
    let (verdict, message) = (ChainVerdict::Hold, why.to_owned());
    vec![
        Event::FilterChainFailed { job: job.id, kind, chain: number, verdict, position, message },
        Event::FilterRollbackCompleted { job: job.id, kind, chain: number },
        Event::JobHeld { job: job.id, holds: added, reason: format!("staging in failed: {why}") },
    ]
}
