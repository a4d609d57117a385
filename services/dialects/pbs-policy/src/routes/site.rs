//! What a site says beside its policy files.

use crate::{
    dedicated::DedicatedTime,
    engine::{Limits, Range},
    outages::{Outages, short_name},
    preset::{PresetConfig, QueueName},
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The machine of queues that name no host, if the site has several.
const NO_HOST: &str = "no host";

/// The server, queues and hosts of a site.
#[derive(Clone, Debug)]
pub struct Site {
    /// The limits of the server.
    pub server: Limits,
    /// The queues in the order of their creation, each with its limits.
    pub queues: Vec<(String, Limits)>,
    /// The hosts by their short names in lower case.
    pub hosts: BTreeMap<String, Host>,
    /// The number of nodes that jobs can have as a whole, if there are any.
    pub whole_nodes: Option<u32>,
    /// What was said of outages, by the short name of the host or system that was asked about. `None` for an answer that
    /// did not come or cannot be read.
    pub outages: BTreeMap<String, Option<Outages>>,
    /// The groups that have used more than their allocation, by their numbers.
    pub over_allocation: Vec<u32>,
    /// The moment for which the policy is made: what is enforced from some date on is so from then on.
    pub now: Timestamp,
    /// The time for which local hours are computed.
    pub range: Range,
}

/// A host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its processors.
    pub processors: u32,
    /// Its nodes, if it declares them: then jobs get some by their numbers.
    pub nodes: Option<u32>,
    /// Its memory, if it is known.
    pub memory_kilobytes: Option<u64>,
}

impl Site {
    /// A queue's limits.
    pub fn queue(&self, name: &str) -> Option<&Limits> {
        self.queues.iter().find(|(known, _)| known == name).map(|(_, limits)| limits)
    }

    /// The machine on which the jobs of a queue run: the host that it names, or the only one.
    pub fn machine_of(&self, queue: &QueueName) -> String {
        match (&queue.host, self.hosts.len()) {
            (Some(host), _) => short_name(host),
            (None, 1) => self.hosts.keys().next().cloned().unwrap_or_default(),
            (None, _) => NO_HOST.to_owned(),
        }
    }

    /// The hosts and systems about which `DEDICATED_TIME_COMMAND` is asked: those on which jobs run, and that whose outages
    /// hold for all (PBS-P-14). None if outages do not count now.
    pub fn asked(&self, config: &PresetConfig) -> BTreeSet<String> {
        if !config.enforce_dedicated_time.holds(self.now, &self.range.zone) {
            return BTreeSet::new();
        }
        let lists = [&config.batch_queues, &config.external_queues, &config.dedicated_queues];
        let hosts = lists.into_iter().flatten().map(|queue| self.machine_of(queue)).filter(|host| host != NO_HOST);
        hosts.chain(config.system_name.as_deref().map(short_name)).collect()
    }

    /// The outages of a host or system, as the answer to the question about it has them; `None` if they are not known. No
    /// question means no outages.
    pub fn outages_of(&self, name: &str) -> Option<DedicatedTime> {
        match self.outages.get(name) {
            None => Some(DedicatedTime::default()),
            Some(answer) => answer.as_ref().map(|outages| outages.get(name).cloned().unwrap_or_default()),
        }
    }
}
