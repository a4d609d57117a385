//! The jobs that a command line means: by ids, by arrays, by a filter.

use super::{
    cluster::Cluster,
    ended::Failure,
    jobs::{self, LIVE},
    site::Site,
};
use muster_client::JobQuery;
use muster_oar::show::{jobs::Job, query};
use muster_schemas::{
    JobId,
    job::JobState,
    views::{JobDetail, JobView},
};

/// How many jobs are asked for in one request.
const AT_A_TIME: usize = 500;

/// The jobs with these ids that exist.
pub fn by_ids(site: &mut Site, ids: &[u64]) -> Result<Vec<JobDetail>, Failure> {
    let ids: Vec<JobId> = ids.iter().map(|id| JobId::job(*id)).collect();
    let mut found: Vec<JobDetail> = Vec::new();
    for some in ids.chunks(AT_A_TIME) {
        found.extend(site.client.job_details(some, false)?.jobs);
    }
    Ok(found)
}

/// Jobs in these states, of one user or of all.
pub fn listed(site: &mut Site, user: Option<&str>, states: &[JobState]) -> Result<Vec<JobView>, Failure> {
    let query = JobQuery { user: user.map(str::to_owned), states: states.to_vec(), ..JobQuery::default() };
    Ok(site.client.jobs(&query)?.jobs)
}

/// The jobs of an array, the first of which gives it its id. Their ids follow each other.
pub fn of_array(site: &mut Site, array: u64) -> Result<Vec<JobDetail>, Failure> {
    let cluster = Cluster::default();
    let (mut found, mut next) = (Vec::new(), array);
    loop {
        let ids: Vec<u64> = (next..next.saturating_add(AT_A_TIME as u64)).collect();
        let mut details = by_ids(site, &ids)?;
        details.retain(|detail| jobs::detailed(detail, &cluster, Vec::new()).array == array);
        let is_last = details.len() < AT_A_TIME;
        found.append(&mut details);
        if is_last {
            return Ok(found);
        }
        next = next.saturating_add(AT_A_TIME as u64);
    }
}

/// The live jobs that a filter matches, with their details. A filter that names a state or a time of an end is asked about
/// the jobs that are over too.
pub fn by_filter(site: &mut Site, text: &str, cluster: &Cluster) -> Result<Vec<(JobDetail, Job)>, Failure> {
    let filter = query::read(text).map_err(|mistake| Failure::new(format_args!("--sql, {mistake}")))?;
    let over = ["state", "stop_time", "exit_code", "job_id", "array_id"];
    let states = if over.iter().any(|field| filter.mentions(field)) { &JobState::ALL[..] } else { &LIVE[..] };
    let ids: Vec<u64> = listed(site, None, states)?.iter().map(JobView::own_number).collect();
    let all = by_ids(site, &ids)?.into_iter().map(|detail| {
        let job = jobs::detailed(&detail, cluster, Vec::new());
        (detail, job)
    });
    Ok(all.filter(|(_, job)| filter.matches(&query::values(job))).collect())
}
