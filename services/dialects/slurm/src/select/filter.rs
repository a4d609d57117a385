//! The targets of `scancel` with filters, alone or with ids (SL-M-17, SL-C-32).

use super::{Target, listed};
use crate::{
    job_id::JobPart,
    show::record::{ArrayTasks, JobRecord},
    words::State,
};
use muster_schemas::ids::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// A filter for jobs. All given conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// The owner's login name or number.
    pub user: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The service class.
    pub qos: Option<String>,
    /// The job's name.
    pub name: Option<String>,
    /// The states, one of which it must have; empty means any.
    pub states: Vec<State>,
    /// The nodes, one of which it must have; empty means any.
    pub nodes: BTreeSet<String>,
    /// The reservation.
    pub reservation: Option<String>,
    /// The key for accounting.
    pub wckey: Option<String>,
}

impl JobFilter {
    /// Whether a line matches.
    pub fn takes(&self, record: &JobRecord) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        let user = is(&self.user, &record.user) || is(&self.user, &record.person.uid.to_string());
        user && is(&self.partition, &record.partition)
            && is(&self.account, record.account.as_deref().unwrap_or_default())
            && is(&self.qos, record.qos())
            && is(&self.name, &record.name)
            && is(&self.reservation, record.reservation.as_deref().unwrap_or_default())
            && is(&self.wckey, record.request().wckey.as_deref().unwrap_or_default())
            && (self.states.is_empty() || record.state.is_in(&self.states))
            && (self.nodes.is_empty() || record.nodes.iter().any(|node| self.nodes.contains(node)))
    }

    /// Whether it needs the details of jobs.
    pub fn needs_details(&self) -> bool {
        self.qos.is_some() || self.wckey.is_some()
    }

    /// The output of `-v` if nothing matches (SL-C-31).
    pub fn nothing_matches(&self) -> String {
        let texts = [
            ("account", &self.account),
            ("jobname", &self.name),
            ("partition", &self.partition),
            ("qos", &self.qos),
            ("reservation", &self.reservation),
            ("user", &self.user),
            ("wckey", &self.wckey),
        ];
        let mut filters: Vec<String> =
            texts.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?))).collect();
        filters.extend(self.states.iter().map(|state| format!("state={state}")));
        if !self.nodes.is_empty() {
            let names: Vec<&String> = self.nodes.iter().collect();
            filters.push(format!("nodelist={}", crate::hostlist::compress_sorted(&names)));
        }
        format!("No active jobs match ALL job filters, including: {}", filters.join(", "))
    }
}

/// The unfinished jobs that match a filter. A job with components is a target as a whole if its leader matches;
/// otherwise its running components that match are, unless `whole_hetjob` is set (SL-M-17). Only matching tasks of an
/// array are.
pub fn matching(filter: &JobFilter, records: &[JobRecord], whole_hetjob: bool) -> Vec<Target> {
    let mut targets: BTreeMap<JobId, BTreeSet<Option<u32>>> = BTreeMap::new();
    let (taken, left): (Vec<&JobRecord>, Vec<&JobRecord>) =
        records.iter().filter(|record| !record.state.is_finished()).partition(|record| filter.takes(record));
    let divided: BTreeSet<u64> = left.into_iter().map(JobRecord::array_number).collect();
    for record in taken {
        match &record.het {
            None => {
                let ids = ids(record, divided.contains(&record.array_number()));
                targets.extend(ids.into_iter().map(|id| (id, BTreeSet::from([None]))));
            }
            Some(het) if het.offset == 0 => {
                targets.entry(JobId::job(het.leader)).or_default().insert(None);
            }
            Some(het) if record.state.is_placed() && !whole_hetjob => {
                targets.entry(JobId::job(het.leader)).or_default().insert(Some(het.offset));
            }
            Some(_) => {}
        }
    }
    let whole_or_parts = |(job, components): (JobId, BTreeSet<Option<u32>>)| {
        let is_whole = components.contains(&None);
        let parts = components.into_iter().filter(move |component| component.is_none() || !is_whole);
        parts.map(move |component| Target { job, component })
    };
    targets.into_iter().flat_map(whole_or_parts).collect()
}

/// The part of an id's targets that filters leave; `None` if that is all. The rule for components is that of
/// [`matching`], also for those that a leader's number includes.
pub fn left_of(part: &JobPart, filter: &JobFilter, records: &[JobRecord], whole_hetjob: bool) -> Option<Vec<Target>> {
    if *filter == JobFilter::default() {
        return None;
    }
    let mut named = listed(part, records);
    named.retain(|record| !record.state.is_finished());
    let is_leader = |record: &&JobRecord| record.het.as_ref().is_some_and(|het| het.offset == 0);
    let is_all = match named.iter().find(is_leader) {
        Some(leader) => filter.takes(leader),
        None => !named.is_empty() && named.iter().all(|record| filter.takes(record)),
    };
    (!is_all).then(|| matching(filter, &named, whole_hetjob))
}

/// The ids in the core: waiting tasks that share a line have that of the array, unless only a part of the line is
/// meant.
fn ids(record: &JobRecord, is_divided: bool) -> Vec<JobId> {
    match record.array.as_ref().map(|array| (array.number, &array.tasks)) {
        Some((number, ArrayTasks::One(index))) => vec![JobId::task(number, *index)],
        Some((number, ArrayTasks::Waiting(waiting))) if is_divided => {
            waiting.iter().map(|index| JobId::task(number, index)).collect()
        }
        Some((number, ArrayTasks::Waiting(_))) => vec![JobId::job(number)],
        None => vec![JobId::job(record.number)],
    }
}
