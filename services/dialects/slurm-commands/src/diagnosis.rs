//! `sdiag` (SL-P-06).

use super::{Ended, print, site::Site, wanted};
use muster_slurm::{
    queries::sdiag::parse,
    show::sdiag::{Diagnosis, sdiag, statistics_data},
};

/// Runs a command line of `sdiag`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let Some(format) = wanted(site, parse(words)?) else { return Ok(0) };
    let statistics = site.client.statistics().map_err(|error| site.failure(&error))?;
    let diagnosis = Diagnosis::of(&statistics);
    let text = match format {
        None => sdiag(&diagnosis, &site.clock),
        Some(format) => site.with_asker(words, |asker, clock| {
            format.text(&asker.one("statistics", statistics_data(&diagnosis, clock)))
        })?,
    };
    print(&text);
    Ok(0)
}
