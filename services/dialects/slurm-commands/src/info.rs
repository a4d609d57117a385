//! `sinfo` (SL-C-28, SL-C-29).

use super::{Ended, print, shown, site::Site, wanted};
use muster_client::Moment;
use muster_slurm::{
    queries::{
        Failure, check_nodes,
        sinfo::{Sinfo, parse},
    },
    show::sinfo::{data, list, list_reservations},
};
use std::time::Duration;

/// Runs a command line of `sinfo`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    command.verbose.iter().for_each(|line| print(&format!("{line}\n")));
    loop {
        print(&text(site, &command, words)?);
        let Some(seconds) = command.iterate_seconds else { return Ok(0) };
        std::thread::sleep(Duration::from_secs(seconds));
        site.clock.now = muster_schemas::Timestamp::now();
    }
}

fn text(site: &mut Site, command: &Sinfo, words: &[String]) -> Result<String, Failure> {
    if command.reservations {
        let page = site.client.reservations(Moment::Now).map_err(|error| site.failure(&error))?;
        return Ok(list_reservations(&page.reservations, command.overview.no_header, &site.clock));
    }
    let nodes = shown::nodes(site)?;
    let partitions = shown::partitions(site)?;
    check_nodes("sinfo", &command.overview.nodes, |name| nodes.iter().any(|node| node.name == name))?;
    if let Some(format) = command.data {
        let told = site.with_asker(words, |asker, clock| data(&partitions, &nodes, &command.overview, asker, clock))?;
        return told.map(|document| format.text(&document)).map_err(|error| Failure::error("sinfo", error));
    }
    list(&partitions, &nodes, &command.overview, &site.clock).map_err(|error| Failure::error("sinfo", error))
}
