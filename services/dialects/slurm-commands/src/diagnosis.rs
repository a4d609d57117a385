//! `sdiag` (SL-P-06).

use super::{Ended, print, site::Site, wanted};
use muster_slurm::{
    queries::sdiag::parse,
    show::sdiag::{Diagnosis, sdiag},
};

/// Runs a command line of `sdiag`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let Some(()) = wanted(site, parse(words)?) else { return Ok(0) };
    let statistics = site.client.statistics().map_err(|error| site.failure(&error))?;
    print(&sdiag(&Diagnosis::of(&statistics), &site.clock));
    Ok(0)
}
