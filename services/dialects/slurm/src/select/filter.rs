//! What `scancel` acts on if it is given filters, alone or beside ids (SL-M-17, SL-C-32).

use super::{Target, listed};
use crate::{
    job_id::JobPart,
    show::record::{ArrayTasks, JobRecord},
    words::State,
};
use muster_schemas::ids::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// Which jobs. All that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Login name, or number, of the owner.
    pub user: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The service class.
    pub qos: Option<String>,
    /// The job's name.
    pub name: Option<String>,
    /// In one of these states; empty means any.
    pub states: Vec<State>,
    /// Names of nodes, one of which it has; empty means any.
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

    /// Whether what a job asked for must be known.
    pub fn needs_details(&self) -> bool {
        self.qos.is_some() || self.wckey.is_some()
    }

    /// What `-v` says if nothing matches (SL-C-31).
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

/// What matches a filter and is not over. Of a job with components all of it if the leader matches; else the components
/// that match, if they run and `whole_hetjob` is not set (SL-M-17). Of an array only the tasks that match.
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

/// What filters leave of what an id means; `None` if that is all of it. The rule for components is that of [`matching`], also
/// among those that the number of a leader means.
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

/// The ids in the core: of tasks that have not started and share a line that of the array, unless only a part of that is
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
