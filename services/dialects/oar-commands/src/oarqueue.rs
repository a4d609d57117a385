//! `oarqueue` and `oarnotify`: queues are listed, added, removed, enabled and disabled (OAR-Q-13).

use super::{
    configuration::{config, configure},
    ended::{Ended, Failure, print},
    site::Site,
    words::{self, Known, Takes, Words},
};
use muster_cli::{connection::ConnectionOptions, stderr_line};
use muster_client::JobQuery;
use muster_oar::text::{is_name, shown};
use muster_schemas::cluster::{ClusterChange, ClusterConfig, QueueSpec, QueueSpecChange, Removed};

const OPTIONS: [Known; 15] = [
    ('l', "list", Takes::Nothing),
    ('e', "enable", Takes::Value),
    ('d', "disable", Takes::Value),
    ('E', "enable-all", Takes::Nothing),
    ('D', "disable-all", Takes::Nothing),
    ('\0', "add", Takes::Value),
    ('\0', "change", Takes::Value),
    ('\0', "remove", Takes::Value),
    ('\0', "add_queue", Takes::Value),
    ('\0', "remove_queue", Takes::Value),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
    ('v', "verbose", Takes::Nothing),
    ('\0', "enable_all", Takes::Nothing),
    ('\0', "disable_all", Takes::Nothing),
];
/// The attribute with the policy of a queue, as its administrator calls it.
const POLICY: &str = "oar.policy";
/// The policy of a queue without one: jobs go in their order.
const DEFAULT_POLICY: &str = "fifo";

/// Runs a command line of one of the two.
pub fn run(connection: &ConnectionOptions, tool: &str, line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    if words.has("help") {
        print(&format!(
            "usage: {tool} [-l] [-e QUEUE | -d QUEUE ...] [-E | -D] [--add NAME,PRIORITY,POLICY]\n       \
             [--change NAME,PRIORITY,POLICY] [--remove NAME]\n"
        ));
        return Ok(0);
    }
    if tool == "oarqueue"
        && let Some(word) = words.operands.first()
    {
        return Err(Failure::new(format_args!("expected an option, found '{}'", shown(word))));
    }
    let is_list = |name: &&'static str| words.has(name);
    let changing = ["enable", "disable", "enable-all", "disable-all", "enable_all", "disable_all", "add", "change"];
    let changes = changing.iter().chain(&["remove", "add_queue", "remove_queue"]).any(is_list);
    if !words.operands.is_empty() {
        // The name of an event for the scheduler of other systems, which has to be woken.
        stderr_line!("oarnotify: the scheduler needs no notice; nothing was changed");
    }
    if words.operands.is_empty() || changes || words.has("list") {
        let mut site = Site::open(connection)?;
        if changes {
            change(&mut site, &words)?;
        }
        if !changes || words.has("list") {
            print(&listed(&config(&mut site)?.queues));
        }
    }
    Ok(0)
}

/// The table of queues.
fn listed(queues: &[QueueSpec]) -> String {
    let one = |queue: &QueueSpec| {
        let policy = queue.attributes.get(POLICY).map_or(DEFAULT_POLICY, String::as_str);
        let state = if queue.started { "Active" } else { "notActive" };
        format!("{}\n\tpriority = {}\n\tpolicy = {policy}\n\tstate = {state}\n", queue.name, queue.priority)
    };
    queues.iter().map(one).collect()
}

/// All changes of a command line, or none.
fn change(site: &mut Site, words: &Words) -> Result<(), Failure> {
    let config = config(site)?;
    let mut said = Vec::new();
    let mut changed: Vec<QueueSpecChange> = Vec::new();
    for text in words.values("add").chain(words.values("add_queue")) {
        let new = described(text)?;
        if config.queues.iter().any(|queue| queue.name == new.name) {
            return Err(refused(format_args!("the queue {} exists", new.name)));
        }
        said.push(told("Adding", &new));
        changed.push(new);
    }
    for text in words.values("change") {
        let new = described(text)?;
        require_known(&config, &new.name)?;
        said.push(told("Changing", &new));
        changed.push(new);
    }
    let mut switch = |name: &str, is_on: bool| {
        changed.push(QueueSpecChange { name: name.to_owned(), started: Some(is_on), ..QueueSpecChange::default() });
    };
    for (option, is_on) in [("enable", true), ("disable", false)] {
        for name in words.values(option) {
            require_known(&config, name)?;
            switch(name, is_on);
            said.push(format!("{} queue {name}.", if is_on { "Enabling" } else { "Disabling" }));
        }
    }
    for (options, is_on) in [(["enable-all", "enable_all"], true), (["disable-all", "disable_all"], false)] {
        if options.iter().any(|name| words.has(name)) {
            config.queues.iter().for_each(|queue| switch(&queue.name, is_on));
            said.push(format!("{} all queues.", if is_on { "Enabling" } else { "Disabling" }));
        }
    }
    let removed: Vec<&str> = words.values("remove").chain(words.values("remove_queue")).collect();
    for name in &removed {
        require_known(&config, name)?;
        require_unused(site, &config, name)?;
        said.push(format!("Removing queue {name}."));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = changed.iter().find(|queue| !seen.insert(queue.name.clone())) {
        return Err(refused(format_args!("the queue {} is named twice", twice.name)));
    }
    for queue in &mut changed {
        // A change of attributes names all of them.
        let known = config.queues.iter().find(|known| known.name == queue.name);
        let mut all = known.map(|known| known.attributes.clone()).unwrap_or_default();
        all.extend(queue.attributes.take().unwrap_or_default());
        queue.attributes = Some(all);
    }
    let queues = removed.into_iter().map(str::to_owned).collect();
    let removed = Removed { queues, ..Removed::default() };
    configure(site, &ClusterChange { queues: changed, removed, ..ClusterChange::default() })?;
    print(&said.iter().fold(String::new(), |text, line| text + line + "\n"));
    Ok(())
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::new(format_args!("{why}; nothing was changed"))
}

fn require_known(config: &ClusterConfig, name: &str) -> Result<(), Failure> {
    let is_known = config.queues.iter().any(|queue| queue.name == name);
    is_known.then_some(()).ok_or_else(|| refused(format_args!("no queue is called '{}'", shown(name))))
}

/// A queue that goes has no jobs that are not over, and jobs without a queue do not go there.
fn require_unused(site: &mut Site, config: &ClusterConfig, name: &str) -> Result<(), Failure> {
    if name == config.settings.default_queue {
        return Err(refused(format_args!("{name} is the queue of jobs that name none")));
    }
    let query = JobQuery { queue: Some(name.to_owned()), limit: Some(1), ..JobQuery::default() };
    match site.client.jobs_page(&query)?.jobs.first() {
        Some(job) => Err(refused(format_args!("the queue {name} has jobs, among them {}", job.own_number()))),
        None => Ok(()),
    }
}

/// Reads `NAME,PRIORITY,POLICY`.
fn described(text: &str) -> Result<QueueSpecChange, Failure> {
    let mut parts = text.split(',').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let priority = parts.next().filter(|word| !word.is_empty()).map_or(Ok(0), str::parse::<i64>);
    let policy = parts.next().filter(|word| !word.is_empty()).unwrap_or(DEFAULT_POLICY);
    match (priority, parts.next()) {
        (Ok(priority), None) if is_name(name) && is_name(policy) => Ok(QueueSpecChange {
            name: name.to_owned(),
            priority: Some(priority),
            attributes: Some([(POLICY.to_owned(), policy.to_owned())].into()),
            ..QueueSpecChange::default()
        }),
        _ => Err(refused(format_args!("expected NAME,PRIORITY,POLICY, found '{}'", shown(text)))),
    }
}

fn told(verb: &str, queue: &QueueSpecChange) -> String {
    let policy = queue.attributes.as_ref().and_then(|all| all.get(POLICY)).map_or(DEFAULT_POLICY, String::as_str);
    format!("{verb} queue {} with priority {} and policy {policy}.", queue.name, queue.priority.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-Q-13
    #[test]
    fn queues_are_described_and_listed() {
        let new = described("fast, 7").expect("it is right");
        assert_eq!((new.name.as_str(), new.priority), ("fast", Some(7)));
        assert_eq!(told("Adding", &new), "Adding queue fast with priority 7 and policy fifo.");
        for text in ["", "a b,1", "a,x", "a,1,p,q", "a,1,p q"] {
            assert!(described(text).is_err(), "{text}");
        }
        let queue = QueueSpec { name: "long".into(), priority: 3, started: false, ..QueueSpec::default() };
        assert_eq!(listed(&[queue]), "long\n\tpriority = 3\n\tpolicy = fifo\n\tstate = notActive\n");
    }
}
