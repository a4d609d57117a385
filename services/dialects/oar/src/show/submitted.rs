//! What `oarsub` prints.

/// The lines after a submission (OAR-C-03): the id of each job, and for an array the id of the first one as its own.
pub fn lines(jobs: &[u64], is_array: bool) -> String {
    let ids = jobs.iter().fold(String::new(), |out, job| out + &format!("OAR_JOB_ID={job}\n"));
    match jobs.first().filter(|_| is_array) {
        Some(first) => ids + &format!("OAR_ARRAY_ID={first}\n"),
        None => ids,
    }
}
