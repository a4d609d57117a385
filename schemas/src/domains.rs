//! Names of planning domains: the resources of running jobs on which other jobs are planned.

use crate::{ids::JobId, job::JobType};
use std::borrow::Cow;

/// The domain that a job of these types opens. Without a name of its own, it is called like the job's number.
pub fn opened(types: &[JobType], own: JobId) -> Option<Cow<'_, str>> {
    types.iter().find_map(|kind| match kind {
        JobType::Container => Some(Cow::Owned(own.to_string())),
        JobType::OpensDomain(name) => Some(Cow::Borrowed(name.as_str())),
        _ => None,
    })
}

/// The domain that a job of these types runs in.
pub fn entered(types: &[JobType]) -> Option<Cow<'_, str>> {
    types.iter().find_map(|kind| match kind {
        JobType::Inner(job) => Some(Cow::Owned(job.to_string())),
        JobType::InDomain(name) => Some(Cow::Borrowed(name.as_str())),
        _ => None,
    })
}

/// The type of a job that runs in the domain with this name, or in that of the job with this number.
pub fn entering(domain: &str) -> JobType {
    match domain.parse().ok().filter(|_| domain.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(number) => JobType::Inner(JobId::job(number)),
        None => JobType::InDomain(domain.to_owned()),
    }
}

/// The type of a job that opens a domain, with this name if there is one.
pub fn opening(name: Option<&str>) -> JobType {
    name.map_or(JobType::Container, |name| JobType::OpensDomain(name.to_owned()))
}
