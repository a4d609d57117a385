//! `squeue` (SL-C-23 to C-27).

use super::{Ended, print, shown, site::Site, wanted};
use muster_slurm::{
    queries::{
        Failure, check_nodes,
        squeue::{Squeue, parse},
    },
    select::{of_squeue, of_steps},
    show::{
        record::JobRecord,
        squeue::{States, choose, document, list, list_steps},
    },
};
use std::time::Duration;

/// Runs a command line of `squeue`.
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

fn text(site: &mut Site, command: &Squeue, words: &[String]) -> Result<String, Failure> {
    let bad = |error: &dyn std::fmt::Display| Failure::error("squeue", error);
    let wanted = &command.listing.filter.nodes;
    if !wanted.is_empty() {
        let nodes = shown::nodes(site)?;
        check_nodes("squeue", wanted, |name| nodes.iter().any(|node| node.name == name))?;
    }
    if let Some(ids) = &command.steps {
        let steps = of_steps(ids, shown::running_steps(site)?);
        return list_steps(steps, &command.listing, &site.clock).map_err(|error| bad(&error));
    }
    let records = records(site, command)?;
    if let Some(format) = command.data {
        let chosen = choose(records, &command.listing, &site.clock).map_err(|error| bad(&error))?;
        return site.with_asker(words, |asker, clock| format.text(&document(&chosen, asker, clock.now)));
    }
    list(records, &command.listing, &site.clock).map_err(|error| bad(&error))
}

fn records(site: &mut Site, command: &Squeue) -> Result<Vec<JobRecord>, Failure> {
    let filter = &command.listing.filter;
    let views = match command.ids.as_slice() {
        [] => site.current(filter.only_user(), filter.only_name(), filter.states != States::Unfinished)?,
        ids => site.named(ids)?,
    };
    let records = site.records(views, command.data.is_some() || command.listing.is_detailed())?;
    of_squeue(&command.ids, records)
}
