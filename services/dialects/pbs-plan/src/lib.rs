//! The dry run of a PBS scheduler: one cycle of the planner on the policy files of a folder and a state in a file
//! (PBS-C-15, PBS-C-16). It does no I/O and looks at no clock, so the same files give the same lines (PBS-C-12).
//!
//! ```
//! use muster_pbs_plan::{plan, state_file::StateFile};
//! use muster_pbs_policy::check::check;
//!
//! let state = r#"{
//!     "now": "1998-03-10T10:00:00", "tz": "UTC",
//!     "server": {"resources_available": {"ncpus": 4}},
//!     "queues": [{"name": "batch", "type": "execution", "started": true}],
//!     "jobs": [
//!         {"id": "1", "queue": "batch", "user": "ann", "state": "Q", "request": {"ncpus": 4, "cput": "2:00:00"}},
//!         {"id": "2", "queue": "batch", "user": "bob", "state": "Q", "request": {"ncpus": 2, "cput": "1:00:00"}}
//!     ]
//! }"#;
//! let state = StateFile::read(state.as_bytes())?;
//! let tables = check(&[], None).policy.expect("no files, no mistakes");
//! assert_eq!(plan(&tables, &state)?.lines, ["1 START 2", "2 WAIT 1 SERVER_RESOURCE:ncpus"]);
//! # Ok::<(), muster_pbs_plan::state_file::StateError>(())
//! ```

mod code;
pub mod moment;
mod nodes;
pub mod resources;
mod scene;
pub mod state_file;

pub use code::code;
pub use scene::Carried;

use muster_pbs_policy::{check::Policy, engine};
use muster_schemas::{JobId, resources::IndexSet};
use scene::Scene;
use state_file::{StateError, StateFile};
use std::collections::BTreeMap;

/// What a dry run says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dry {
    /// A line for each job, in the order in which they were looked at, then those of queues that were not looked at.
    pub lines: Vec<String>,
    /// The jobs that were looked at, in that order.
    pub order: Vec<String>,
    /// Options and facts that the plan does not follow.
    pub warnings: Vec<String>,
    /// The reservations of the cycle, under a preset: the job, the queue, and the time in seconds since 1970.
    pub reservations: Vec<(String, String, i64)>,
    /// What the state of the next cycle has of this one, under a preset.
    pub carried: Option<Carried>,
}

/// Plans one cycle.
///
/// # Errors
/// If the state makes no sense.
pub fn plan(tables: &Policy, state: &StateFile) -> Result<Dry, StateError> {
    let unused = if tables.preset.is_some() { Vec::new() } else { engine::without_effect(&tables.sched_config) };
    let mut warnings: Vec<String> = unused
        .into_iter()
        .map(|(option, reason)| format!("sched_config: {option} has no effect here: {reason}"))
        .collect();
    let mut scene = Scene::new(tables, state)?;
    warnings.append(&mut scene.warnings);
    let (plan, looks) = scene.engine.pass_traced(scene.now);
    let places: BTreeMap<JobId, String> = plan.starts.iter().map(|start| (start.job, scene.shown(start))).collect();
    let targets: BTreeMap<JobId, &str> =
        plan.routed.targets.iter().map(|(job, queue)| (*job, queue.as_str())).collect();
    let numbers: BTreeMap<JobId, (&str, &IndexSet)> =
        plan.routed.numbers.iter().map(|(job, host, numbers)| (*job, (host.as_str(), numbers))).collect();
    let reruns = scene.reruns.iter().zip(1..).map(|(job, number)| format!("{number} START {}", scene.name(*job)));
    let mut lines: Vec<String> = reruns.collect();
    let mut order: Vec<String> = scene.reruns.iter().map(|job| scene.name(*job).to_owned()).collect();
    let mut others: Vec<(usize, JobId, String)> = std::mem::take(&mut scene.others);
    for look in looks {
        let name = scene.name(look.job);
        let number = lines.len() + 1;
        if look.refusal.as_ref().is_none_or(|refusal| refusal.had_turn()) {
            order.push(name.to_owned());
        }
        match &look.refusal {
            None => {
                let numbers = numbers.get(&look.job).map(|(host, numbers)| format!(" {host}:{numbers}"));
                let place = numbers.as_ref().or(places.get(&look.job)).map_or("", String::as_str);
                let queue = targets.get(&look.job).filter(|queue| scene.queue_name(look.job) != **queue);
                let queue = queue.map_or_else(String::new, |queue| format!(" -> {queue}"));
                lines.push(format!("{number} START {name}{place}{queue}"));
            }
            Some(refusal) if refusal.had_turn() => {
                lines.push(format!("{number} {} {name} {}", code::verdict(refusal), code(refusal)));
            }
            Some(refusal) => others.push((scene.queue_of(look.job), look.job, code(refusal))),
        }
    }
    others.sort();
    lines.extend(others.into_iter().map(|(_, job, code)| format!("- WAIT {} {code}", scene.name(job))));
    let promised = plan.routed.promised.iter();
    let reservations =
        promised.map(|one| (scene.name(one.job).to_owned(), one.queue.clone(), one.start.unix_seconds()));
    let reservations = reservations.collect();
    let carried = tables.preset.as_ref().map(|config| scene.carried(config, &plan));
    Ok(Dry { lines, order, warnings, reservations, carried })
}
