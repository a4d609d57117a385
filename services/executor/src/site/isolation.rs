//! Groups of jobs that programs of the site make, read and fill, in place of the executor's own (OAR-X-05).
//!
//! The executor takes itself into the group of a job, starts the processes there, which therefore are in it from their birth,
//! and goes back to where it was. What it finds of a job without the site is what the process tree tells.

use super::{Isolation, SitePrograms, short, variables};
use crate::identity::Identity;
use muster_schemas::node::LaunchOrder;
use std::{path::Path, process::Command};

/// This process while it is in the group of a job.
#[must_use = "it has to leave"]
#[derive(Debug)]
pub struct Inside<'s> {
    site: &'s SitePrograms,
    order: &'s LaunchOrder,
    owner: &'s Identity,
    /// The group that it came from.
    before: String,
}

impl SitePrograms {
    /// Makes the group of a job on this node for these CPUs; none means any.
    ///
    /// # Errors
    /// Why the job cannot be isolated here, for people.
    pub fn make_group(&self, order: &LaunchOrder, owner: &Identity, cpus: &[u32]) -> Result<(), String> {
        let cpus = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        self.manage("create", order, owner, &[&cpus])
    }

    /// Removes the group of a job on this node with all processes in it.
    ///
    /// # Errors
    /// Why something of it stays, for people.
    pub fn remove_group(&self, order: &LaunchOrder, owner: &Identity) -> Result<(), String> {
        self.manage("remove", order, owner, &[])
    }

    fn manage(&self, verb: &str, order: &LaunchOrder, owner: &Identity, more: &[&str]) -> Result<(), String> {
        let Some(isolation) = &self.isolation else { return Ok(()) };
        let mut command = Command::new(&isolation.manager);
        command.args([verb, &group(order, owner), &order.job.to_string(), &owner.user]).args(more);
        self.ask("isolation manager", command, &variables(order, owner), || false).map(drop)
    }

    /// Takes this process into the group of a job; `None` if the site makes no groups.
    ///
    /// # Errors
    /// Why the job cannot be isolated here, for people; this process is where it was.
    pub fn enter_group<'s>(
        &'s self,
        order: &'s LaunchOrder,
        owner: &'s Identity,
    ) -> Result<Option<Inside<'s>>, String> {
        let Some(isolation) = &self.isolation else { return Ok(None) };
        let inside = Inside { site: self, order, owner, before: self.group_of_this(isolation, order, owner)? };
        let wanted = group(order, owner);
        match self.join(isolation, &wanted, order, owner) {
            Ok(()) => Ok(Some(inside)),
            Err(why) => {
                // The reason counts, and this process ends soon.
                drop(inside.leave());
                Err(why)
            }
        }
    }

    /// Has the site take this process into a group, and looks whether it is there.
    fn join(&self, isolation: &Isolation, group: &str, order: &LaunchOrder, owner: &Identity) -> Result<(), String> {
        let mut command = Command::new(&isolation.joiner);
        command.args([group, &std::process::id().to_string()]);
        self.ask("isolation joiner", command, &variables(order, owner), || false)?;
        let is = self.group_of_this(isolation, order, owner)?;
        let elsewhere = || format!("isolation joiner {}: the process is in {is}", isolation.joiner.display());
        if is == group { Ok(()) } else { Err(short(&elsewhere())) }
    }

    fn group_of_this(&self, isolation: &Isolation, order: &LaunchOrder, owner: &Identity) -> Result<String, String> {
        let mut command = Command::new(&isolation.reader);
        command.arg(std::process::id().to_string());
        let said = self.ask("isolation reader", command, &variables(order, owner), || false)?;
        let none = |reader: &Path| format!("isolation reader {} names no group", reader.display());
        if said.is_empty() { Err(none(&isolation.reader)) } else { Ok(said) }
    }
}

impl Inside<'_> {
    /// Takes this process back to where it was.
    ///
    /// # Errors
    /// Why it stays, for people.
    pub fn leave(self) -> Result<(), String> {
        let Some(isolation) = &self.site.isolation else { return Ok(()) };
        // In the job's group it would be ended with the job, and nobody would report the end.
        self.site.join(isolation, &self.before, self.order, self.owner)
    }
}

/// The name of the group of a job (OAR-X-01). Components of a job on one node have a group each.
fn group(order: &LaunchOrder, owner: &Identity) -> String {
    let component = order.nodes.get(order.node_index as usize).map_or(0, |node| node.component);
    let of_component = if component > 0 { format!("_{component}") } else { String::new() };
    format!("{}_{}{of_component}", owner.user, order.job)
}
