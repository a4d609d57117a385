//! `qselect`: the identifiers of the jobs that have all of some attributes.

use super::{
    ended::{Ended, print},
    site::Site,
};
use muster_client::JobQuery;
use muster_pbs::{
    queries::{is_selected, qselect},
    show,
};
use muster_schemas::{JobId, job::JobState};
use std::collections::BTreeSet;

/// How many jobs are asked for in one request.
const DETAILS_AT_A_TIME: usize = 500;

/// Runs a command line of `qselect`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = qselect(words, &site.now())?;
    if let Some(server) = request.destination.as_ref().and_then(|destination| destination.server.as_ref()) {
        site.require_server(server)?;
    }
    let states = if request.history || request.states.contains(['F', 'X', 'M', 'C']) {
        JobState::ALL.to_vec()
    } else {
        Vec::new()
    };
    let queue = request.destination.as_ref().and_then(|destination| destination.queue.clone());
    let query = JobQuery { queue, name: request.name.clone(), states, ..JobQuery::default() };
    let ids: Vec<JobId> = site.client.jobs(&query)?.jobs.into_iter().map(|view| view.id).collect();
    let asked: BTreeSet<JobId> = ids.iter().copied().collect();
    let mut text = String::new();
    for some in ids.chunks(DETAILS_AT_A_TIME) {
        let details = site.client.job_details(some, false)?.jobs;
        let sources = site.sources();
        for detail in details.iter().filter(|detail| asked.contains(&detail.job.id)) {
            let status = show::of_detail(detail, &sources);
            if is_selected(&status, &request) {
                text.push_str(&status.name);
                text.push('\n');
            }
        }
    }
    print(&text);
    Ok(0)
}
