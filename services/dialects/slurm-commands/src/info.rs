//! `sinfo` (SL-C-28, SL-C-29).

use super::{Ended, print, shown, site::Site, wanted};
use muster_client::Moment;
use muster_slurm::{
    queries::{
        Failure, check_nodes,
        sinfo::{Sinfo, parse},
    },
    show::sinfo::{json, list, list_reservations},
};
use std::time::Duration;

/// Runs a command line of `sinfo`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site.tool, request) else { return Ok(0) };
    loop {
        print(&text(site, &command)?);
        let Some(seconds) = command.iterate_seconds else { return Ok(0) };
        std::thread::sleep(Duration::from_secs(seconds));
        site.clock.now = muster_schemas::Timestamp::now();
    }
}

fn text(site: &mut Site, command: &Sinfo) -> Result<String, Failure> {
    if command.reservations {
        let page = site.client.reservations(Moment::Now).map_err(|error| site.failure(&error))?;
        return Ok(list_reservations(&page.reservations, command.overview.no_header, &site.clock));
    }
    let nodes = shown::nodes(site)?;
    let partitions = shown::partitions(site)?;
    check_nodes("sinfo", &command.overview.nodes, |name| nodes.iter().any(|node| node.name == name))?;
    if command.json {
        return Ok(format!("{:#}\n", json(env!("CARGO_PKG_VERSION"), &partitions, &nodes)));
    }
    list(&partitions, &nodes, &command.overview, &site.clock).map_err(|error| Failure::error("sinfo", error))
}
