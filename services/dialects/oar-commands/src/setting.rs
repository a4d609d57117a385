//! `oarnodesetting`, `oarremoveresource` and `oar_resources_add`: nodes come, go, and change their state and properties
//! while the system runs.

use super::{
    cluster::{CORE, CPU, Cluster, HOST, MARK},
    configuration::{config, configure, declared, with_properties},
    ended::{Ended, Failure, print},
    site::Site,
    words::{self, Known, Takes, Words},
};
use muster_cli::{connection::ConnectionOptions, stderr_line, values::parse_size};
use muster_client::Moment;
use muster_oar::{
    predicate,
    resources::{
        property::{self, BESTEFFORT, CPUSET, DEPLOY, DESKTOP_COMPUTING, NODE},
        setting,
        state::State,
        value::Value,
    },
    text::{decimal, is_name, shown},
};
use muster_schemas::{
    CommandId, JobId,
    cluster::{ClusterChange, NodeSpecChange, Removed},
    command::JobSelection,
    energy::{PowerPhase, PowerRule},
    job::JobType,
    resources::{NodeSpec, PropertyValue},
    views::{DrainRequest, JobsRequest, NodeStateWord, NodeView, ResumeNodesRequest},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    time::{Duration, Instant},
};

const OPTIONS: [Known; 12] = [
    ('a', "add", Takes::Nothing),
    ('h', "hostname", Takes::Value),
    ('r', "resource", Takes::Value),
    ('\0', "sql", Takes::Value),
    ('s', "state", Takes::Value),
    ('p', "property", Takes::Value),
    ('m', "maintenance", Takes::Value),
    ('d', "drain", Takes::Value),
    ('n', "no-wait", Takes::Nothing),
    ('\0', "last-property-value", Takes::Value),
    ('\0', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oarnodesetting [-r RESOURCE | -h NODE | --sql FILTER ...] [-s STATE] [-m on|off] [-d on|off]\n\
                     \u{20}                     [-p NAME=VALUE | -p NAME! ...] [-n]\n       \
                     oarnodesetting -a -h NODE [-p cores=N] [-p cpus=N] [-p memory=SIZE] [-p NAME=VALUE ...]\n";
/// The memory of a new node for each of its cores, if none is named.
const MEMORY_PER_CORE: u64 = 1 << 30;
/// How often nodes are looked at while their jobs end.
const PAUSE: Duration = Duration::from_millis(200);
/// How long their jobs may take to end.
const PATIENCE: Duration = Duration::from_secs(600);
/// Properties of the single resources of other systems, which this one numbers itself.
const NUMBERED: [&str; 5] = [CPU, CORE, HOST, CPUSET, "thread"];

/// Runs a command line of `oarnodesetting`.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    if let Some(word) = words.operands.first() {
        return Err(Failure::new(format_args!("expected an option, found '{}'", shown(word))));
    }
    if words.has("last-property-value") {
        return Err(Failure::new("--last-property-value is not supported; `muster events --kind node` has all values"));
    }
    if words.has("add") {
        return add(&mut Site::open(connection)?, &words);
    }
    let change = Change::of(&words)?;
    if !["resource", "hostname", "sql"].iter().any(|name| words.has(name)) {
        return Err(Failure::new(USAGE.trim_end()));
    }
    let mut site = Site::open(connection)?;
    let nodes = meant(&mut site, &words)?;
    if nodes.is_empty() {
        return Err(Failure::new("no resource is meant; nothing was changed"));
    }
    change.properties(&mut site, &words, &nodes)?;
    change.states(&mut site, &nodes)?;
    Ok(0)
}

/// The names of the nodes that are meant. Settings here are those of nodes, so resources mean their node, all of it.
fn meant(site: &mut Site, words: &Words) -> Result<BTreeSet<String>, Failure> {
    let cluster = site.cluster()?;
    let mut nodes = BTreeSet::new();
    for name in words.values("hostname") {
        let is_known = cluster.nodes.iter().any(|node| node.name == name);
        let unknown = || Failure::new(format_args!("no node is called '{}'; nothing was changed", shown(name)));
        nodes.insert(is_known.then(|| name.to_owned()).ok_or_else(unknown)?);
    }
    let mut chosen = BTreeSet::new();
    for word in words.values("resource") {
        let id = decimal::<u32>(word).filter(|id| cluster.table.resource(*id).is_some());
        let unknown = || Failure::new(format_args!("resource '{}' does not exist; nothing was changed", shown(word)));
        chosen.insert(id.ok_or_else(unknown)?);
    }
    if let Some(text) = words.value("sql") {
        let filter = predicate::read(text, cluster.table.fields());
        let filter = filter.map_err(|mistake| Failure::new(format_args!("--sql, {mistake}")))?;
        chosen.extend(cluster.table.resources().filter(|one| filter.matches(one.values())).map(|one| one.id()));
    }
    nodes.extend(whole_nodes(&cluster, &chosen)?);
    Ok(nodes)
}

/// The nodes of resources, each of which must be among them with all its resources.
fn whole_nodes(cluster: &Cluster, chosen: &BTreeSet<u32>) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for node in &cluster.nodes {
        let own: Vec<u32> = (node.first..node.first.saturating_add(node.cores)).collect();
        let count = own.iter().filter(|id| chosen.contains(id)).count();
        match count {
            0 => {}
            count if count == own.len() => names.push(node.name.clone()),
            count => {
                return Err(Failure::new(format_args!(
                    "settings are those of whole nodes, and {count} of the {} resources of {} are named (`-h {}` names \
                     all); nothing was changed",
                    own.len(),
                    node.name,
                    node.name
                )));
            }
        }
    }
    Ok(names)
}

/// A change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Change {
    state: Option<State>,
    maintenance: Option<bool>,
    drain: Option<bool>,
    waits: bool,
}

impl Change {
    fn of(words: &Words) -> Result<Self, Failure> {
        let wrong = |word: &str| {
            Failure::new(format_args!("expected Alive, Absent, Suspected or Dead, found '{}'", shown(word)))
        };
        let state = words.value("state").map(|word| State::named(word).ok_or_else(|| wrong(word))).transpose()?;
        let switch = |name: &str| words.value(name).map(setting::switch).transpose().map_err(Failure::new);
        let change =
            Self { state, maintenance: switch("maintenance")?, drain: switch("drain")?, waits: !words.has("no-wait") };
        let given = [change.state.is_some(), change.maintenance.is_some(), change.drain.is_some()];
        match given.into_iter().filter(|is_given| *is_given).count() {
            0 if !words.has("property") => Err(Failure::new("nothing is to be changed; `--help` lists the options")),
            0 | 1 => Ok(change),
            _ => Err(Failure::new("-s, -m and -d set the state of a node: give one of them")),
        }
    }

    /// OAR-R-22: each value is an event of its node.
    fn properties(&self, site: &mut Site, words: &Words, nodes: &BTreeSet<String>) -> Result<(), Failure> {
        if !words.has("property") {
            return Ok(());
        }
        let config = config(site)?;
        let mut cluster = site.cluster()?;
        cluster.declare(&declared(&config));
        let settings =
            words.values("property").map(|text| one_setting(text, &cluster)).collect::<Result<Vec<_>, _>>()?;
        let mut specs: Vec<_> = config.nodes.into_iter().filter(|spec| nodes.contains(&spec.name)).collect();
        for spec in &mut specs {
            for (name, value) in &settings {
                spec.properties.retain(|known, _| !known.eq_ignore_ascii_case(name));
                spec.properties.extend(value.clone().map(|value| (name.clone(), value)));
            }
        }
        configure(site, &with_properties(specs))?;
        for (name, value) in &settings {
            let value = value.as_ref().map_or_else(|| "NULL".to_owned(), muster_oar::resources::value::property_text);
            print(&format!("Set property {name} to {value} on {}\n", listed(nodes)));
        }
        Ok(())
    }

    /// OAR-R-19, OAR-R-21
    fn states(&self, site: &mut Site, nodes: &BTreeSet<String>) -> Result<(), Failure> {
        let (word, ends_jobs) = match (self.state, self.maintenance, self.drain) {
            (Some(State::Alive), ..) | (_, Some(false), _) | (_, _, Some(false)) => return self.resume(site, nodes),
            (Some(state), ..) => (state.word(), state.ends_jobs()),
            (_, Some(true), _) => ("Maintenance", true),
            (_, _, Some(true)) => ("Drain", false),
            (None, None, None) => return Ok(()),
        };
        let awake = match self.state {
            Some(State::Absent) => without_sleepers(site, nodes)?,
            _ => nodes.clone(),
        };
        let nodes = &awake;
        if nodes.is_empty() {
            return Ok(());
        }
        let request =
            DrainRequest { nodes: nodes.iter().cloned().collect(), reason: format!("{MARK}{word}"), is_down: false };
        site.client.drain(CommandId::new_now(), &request)?;
        print(&format!("{} --> {word}\n", listed(nodes)));
        if ends_jobs {
            let jobs = end_jobs(site, nodes)?;
            if self.waits && !jobs.is_empty() {
                wait_for_end(site, nodes, &jobs)?;
            }
        }
        Ok(())
    }

    fn resume(&self, site: &mut Site, nodes: &BTreeSet<String>) -> Result<(), Failure> {
        // A node that serves jobs already stays as it is.
        let views = site.client.nodes(Moment::Now)?.nodes;
        let is_out = |view: &&NodeView| nodes.contains(&view.spec.name) && view.state == NodeStateWord::Drained;
        let nodes: Vec<String> = views.iter().filter(is_out).map(|view| view.spec.name.clone()).collect();
        if !nodes.is_empty() {
            site.client.resume_nodes(CommandId::new_now(), &ResumeNodesRequest { nodes: nodes.clone() })?;
            print(&format!("{} --> Alive\n", nodes.join(", ")));
        }
        Ok(())
    }
}

/// The nodes that do not sleep. A node that tells at its halt that it is absent has been put to sleep, and stays as it is: one that
/// is out of service would never be woken (OAR-E-10).
fn without_sleepers(site: &mut Site, nodes: &BTreeSet<String>) -> Result<BTreeSet<String>, Failure> {
    let sleeps = |view: &NodeView| {
        view.power.is_some_and(|power| matches!(power.phase, PowerPhase::FallingAsleep | PowerPhase::Asleep))
    };
    let views = site.client.nodes(Moment::Now)?.nodes;
    let asleep = views.iter().filter(|view| nodes.contains(&view.spec.name) && sleeps(view));
    let asleep: BTreeSet<String> = asleep.map(|view| view.spec.name.clone()).collect();
    if !asleep.is_empty() {
        print(&format!("{} --> StandBy\n", listed(&asleep)));
    }
    Ok(nodes.difference(&asleep).cloned().collect())
}

fn listed(nodes: &BTreeSet<String>) -> String {
    nodes.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Properties of the model that are yes or no.
const FLAGS: [&str; 3] = [PowerRule::SLEEPS, PowerRule::WAKES, NodeSpec::PULL];

/// A setting in the model's terms, under the name that nodes have.
fn one_setting(text: &str, cluster: &Cluster) -> Result<(String, Option<PropertyValue>), Failure> {
    let (name, value) = setting::property(text, &cluster.table).map_err(Failure::new)?;
    let is_word_of_nodes = [BESTEFFORT, DEPLOY, DESKTOP_COMPUTING, CPUSET].contains(&name.as_str());
    if !is_word_of_nodes && (NUMBERED.contains(&name.as_str()) || property::is_built_in(&name)) {
        let instead = match name.as_str() {
            property::STATE => "-s sets it",
            property::DRAIN => "-d sets it",
            property::AVAILABLE_UPTO => "-m takes a node out for good",
            _ => "the system sets it itself",
        };
        return Err(Failure::new(format_args!("{name} cannot be set: {instead}; nothing was changed")));
    }
    // A node whose agent asks has a property of the model.
    let name = if name == DESKTOP_COMPUTING { NodeSpec::PULL.to_owned() } else { name };
    let known = cluster.properties.get(&name);
    let are_flags = FLAGS.contains(&name.as_str())
        || known.is_some_and(|known| {
            !known.values.is_empty() && known.values.iter().all(|value| matches!(value, PropertyValue::Flag(_)))
        });
    let value = value.map(|value| match value {
        Value::Integer(number) => PropertyValue::Number(number),
        Value::Text(text) if are_flags && text == "YES" => PropertyValue::Flag(true),
        Value::Text(text) if are_flags && text == "NO" => PropertyValue::Flag(false),
        Value::Text(text) => PropertyValue::Text(text),
    });
    Ok((known.map_or(name, |known| known.name.clone()), value))
}

/// Deletes the jobs on nodes, but not those for which nothing is done there (OAR-R-19).
fn end_jobs(site: &mut Site, nodes: &BTreeSet<String>) -> Result<Vec<JobId>, Failure> {
    let ids: BTreeSet<JobId> = jobs_on(site, nodes)?;
    let ids: Vec<JobId> = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(ids);
    }
    let details = site.client.job_details(&ids, false)?.jobs;
    let stays = |types: &str| types.lines().any(|word| word == "cosystem" || word.starts_with("cosystem="));
    let ending: Vec<JobId> = details
        .iter()
        .filter(|detail| !detail.spec.types.contains(&JobType::Noop))
        .filter(|detail| !detail.spec.attributes.get(super::lower::keys::TYPES).is_some_and(|types| stays(types)))
        .map(|detail| detail.job.id)
        .collect();
    for job in &ending {
        // One that is over meanwhile is no failure.
        let request = JobsRequest { jobs: JobSelection::Ids(vec![*job]) };
        match site.client.cancel(CommandId::new_now(), &request) {
            Ok(_) => print(&format!("Deleting the job = {job}\n")),
            Err(error) if error.is_refusal() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(ending)
}

fn jobs_on(site: &mut Site, nodes: &BTreeSet<String>) -> Result<BTreeSet<JobId>, Failure> {
    let views = site.client.nodes(Moment::Now)?.nodes;
    let meant = views.iter().filter(|view| nodes.contains(&view.spec.name));
    Ok(meant.flat_map(|view| view.jobs.iter().copied()).collect())
}

fn wait_for_end(site: &mut Site, nodes: &BTreeSet<String>, jobs: &[JobId]) -> Result<(), Failure> {
    let begin = Instant::now();
    while jobs_on(site, nodes)?.iter().any(|job| jobs.contains(job)) {
        if begin.elapsed() > PATIENCE {
            return Err(Failure::new("the jobs on the nodes have not ended yet; they are being deleted"));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// OAR-C-11: a new node, or one more core of a node that exists.
fn add(site: &mut Site, words: &Words) -> Ended {
    let name = match words.values("hostname").collect::<Vec<_>>()[..] {
        [name] => name.to_owned(),
        _ => return Err(Failure::new("-a adds one node: name it with -h")),
    };
    if words.has("state") || words.has("sql") || words.has("resource") {
        return Err(Failure::new("-a goes together with -h and -p alone; a new node is Absent until it reports"));
    }
    let config = config(site)?;
    let mut cluster = site.cluster()?;
    cluster.declare(&declared(&config));
    let mut wanted = New::default();
    let mut ignored = Vec::new();
    for text in words.values("property") {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        match key.trim() {
            "cores" => wanted.cores = Some(count(key, value)?),
            "cpus" => wanted.cpus = Some(count(key, value)?),
            "memory" => wanted.memory = Some(parse_size(value).map_err(Failure::new)?),
            NODE => return Err(Failure::new("-h names the node; nothing was changed")),
            key if NUMBERED.contains(&key) => ignored.push(key.to_owned()),
            _ => {
                let (name, value) = one_setting(text, &cluster)?;
                wanted.properties.extend(value.map(|value| (name, value)));
            }
        }
    }
    if !ignored.is_empty() {
        stderr_line!("oarnodesetting: {}: the system numbers them itself", ignored.join(", "));
    }
    let known = config.nodes.iter().find(|spec| spec.name == name);
    let cores = wanted.cores.unwrap_or_else(|| known.map_or(1, |spec| spec.cores.saturating_add(1)));
    if known.is_some_and(|spec| cores <= spec.cores) {
        return Err(Failure::new(format_args!("node {name} has {} cores already; nothing was changed", cores)));
    }
    let memory = known.map_or(MEMORY_PER_CORE.saturating_mul(u64::from(cores)), |spec| spec.memory_bytes);
    let mut properties = known.map(|spec| spec.properties.clone()).unwrap_or_default();
    properties.extend(wanted.properties);
    let change = NodeSpecChange {
        name: name.clone(),
        cores: Some(cores),
        sockets: wanted.cpus,
        memory_bytes: Some(wanted.memory.unwrap_or(memory)),
        properties: Some(properties),
        ..NodeSpecChange::default()
    };
    configure(site, &ClusterChange { nodes: vec![change], ..ClusterChange::default() })?;
    let cluster = site.cluster()?;
    let node = cluster.nodes.iter().find(|node| node.name == name);
    let ids = node.map(|node| (node.first..node.first + node.cores).map(|id| id.to_string()).collect::<Vec<_>>());
    print(&format!("New resource added: {name} {}\n", ids.unwrap_or_default().join(" ")));
    Ok(0)
}

/// A node to add.
#[derive(Default)]
struct New {
    cores: Option<u32>,
    cpus: Option<u32>,
    memory: Option<u64>,
    properties: BTreeMap<String, PropertyValue>,
}

fn count(key: &str, word: &str) -> Result<u32, Failure> {
    let wrong = || Failure::new(format_args!("-p {key}: expected a number from 1 to 65536, found '{}'", shown(word)));
    decimal::<u32>(word).filter(|number| (1..=65_536).contains(number)).ok_or_else(wrong)
}

/// Runs a command line of `oarremoveresource`: its resources are all those of nodes that take no jobs any more.
pub fn remove(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let known = [('h', "help", Takes::Nothing), ('V', "version", Takes::Nothing)];
    let words = words::read(line, &known)?;
    let usage = "usage: oarremoveresource RESOURCE ...\n";
    if words.has("help") {
        print(usage);
        return Ok(0);
    }
    if words.operands.is_empty() {
        return Err(Failure::new(usage.trim_end()));
    }
    let mut site = Site::open(connection)?;
    let cluster = site.cluster()?;
    let mut chosen = BTreeSet::new();
    for word in &words.operands {
        let id = decimal::<u32>(word).filter(|id| cluster.table.resource(*id).is_some());
        let unknown = || Failure::new(format_args!("resource '{}' does not exist; nothing was changed", shown(word)));
        chosen.insert(id.ok_or_else(unknown)?);
    }
    let alive = chosen.iter().filter_map(|id| cluster.table.resource(*id)).find(|one| one.state() != State::Dead);
    if let Some(resource) = alive {
        return Err(Failure {
            text: format!(
                "resource {} is {}, not Dead (`oarnodesetting -s Dead -h {}`); nothing was changed",
                resource.id(),
                resource.state(),
                resource.node()
            ),
            status: 3,
        });
    }
    let names = whole_nodes(&cluster, &chosen)?;
    let removed = Removed { nodes: names.into_iter().collect(), ..Removed::default() };
    configure(&mut site, &ClusterChange { removed, ..ClusterChange::default() })?;
    for id in chosen {
        print(&format!("Resource {id} removed.\n"));
    }
    Ok(0)
}

const ADDING: [Known; 12] = [
    ('H', "hosts", Takes::Value),
    ('\0', "host0", Takes::Value),
    ('\0', "host-prefix", Takes::Value),
    ('\0', "host-suffix", Takes::Value),
    ('C', "cpus", Takes::Value),
    ('c', "cores", Takes::Value),
    ('\0', "memory", Takes::Value),
    ('T', "threads", Takes::Value),
    ('A', "auto-offset", Takes::Nothing),
    ('a', "append", Takes::Value),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];

/// Runs a command line of `oar_resources_add`: it prints the calls of `oarnodesetting` that add nodes of one kind.
pub fn resources_add(line: &[String]) -> Ended {
    let words = words::read(line, &ADDING)?;
    if words.has("help") {
        print(
            "usage: oar_resources_add -H HOSTS -C CPUS -c CORES-PER-CPU [--host0 N] [--host-prefix TEXT] \
             [--host-suffix TEXT]\n                         [--memory SIZE] [-a 'OPTIONS']\nPrint commands; `| sh` runs \
             them.\n",
        );
        return Ok(0);
    }
    if let Some(word) = words.operands.first() {
        return Err(Failure::new(format_args!("expected an option, found '{}'", shown(word))));
    }
    if words.value("threads").is_some_and(|threads| threads != "1") {
        return Err(Failure::new("-T: threads are no resources here; count them as cores if jobs shall have them"));
    }
    let number = |name: &str, default: u32| {
        words.value(name).map_or(Ok(default), |word| {
            let wrong = || Failure::new(format_args!("--{name}: expected a number, found '{}'", shown(word)));
            decimal::<u32>(word).ok_or_else(wrong)
        })
    };
    let (hosts, first) = (number("hosts", 1)?, number("host0", 1)?);
    let (cpus, cores) = (number("cpus", 1)?.max(1), number("cores", 1)?.max(1));
    let prefix = words.value("host-prefix").unwrap_or("node-");
    let suffix = words.value("host-suffix").unwrap_or_default();
    if hosts > 100_000 {
        return Err(Failure::new("--hosts: at most 100000 are added at a time"));
    }
    let is_part = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !is_part(prefix) || !is_part(suffix) || !is_name(&format!("n{}", prefix.replace('.', "-"))) {
        return Err(Failure::new("names of hosts have letters, digits, '.', '_' and '-'"));
    }
    let memory = words.value("memory").map(|size| parse_size(size).map(|_| size)).transpose().map_err(Failure::new)?;
    let memory = memory.map(|size| format!(" -p memory={size}")).unwrap_or_default();
    let append = words.values("append").fold(String::new(), |all, one| all + " " + one);
    if append.contains(char::is_control) {
        return Err(Failure::new("--append: has a control character"));
    }
    let mut text = String::new();
    for host in first..first.saturating_add(hosts) {
        let all = cpus.saturating_mul(cores);
        let _ = writeln!(
            text,
            "oarnodesetting -a -h '{prefix}{host}{suffix}' -p cpus={cpus} -p cores={all}{memory}{append}"
        );
    }
    print(&text);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{fixture, node};

    fn words(line: &str) -> Words {
        let line: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words::read(&line, &OPTIONS).expect("it can be read")
    }

    /// OAR-C-11, OAR-R-19, OAR-R-21
    #[test]
    fn one_state_is_set_at_a_time() {
        let change = Change::of(&words("-s Dead -n")).expect("it is right");
        assert_eq!(change, Change { state: Some(State::Dead), waits: false, ..Change::default() });
        assert_eq!(Change::of(&words("-m on")).map(|change| change.maintenance).ok(), Some(Some(true)));
        for line in ["-s dead", "-s Alive -d on", "-m maybe", "-n"] {
            assert!(Change::of(&words(line)).is_err(), "{line}");
        }
    }

    /// OAR-C-11: settings are those of whole nodes.
    #[test]
    fn resources_mean_whole_nodes() {
        let cluster = fixture();
        assert_eq!(whole_nodes(&cluster, &(5..=8).collect()).ok(), Some(vec!["n2".to_owned()]));
        let failure = whole_nodes(&cluster, &(5..=9).collect()).expect_err("a part of n3");
        assert!(failure.text.contains("1 of the 4 resources of n3"), "{}", failure.text);
    }

    /// OAR-R-22
    #[test]
    fn settings_have_the_types_of_their_properties() {
        let mut cluster = Cluster::of(&[node("n1", 4, 1, &[("GPU", PropertyValue::Flag(true))])]);
        cluster.declare(&[("mem".to_owned(), muster_oar::resources::value::Kind::Integer)].into());
        let said = |text: &str| one_setting(text, &cluster).map_err(|failure| failure.text);
        assert_eq!(said("gpu=NO"), Ok(("GPU".into(), Some(PropertyValue::Flag(false)))));
        assert_eq!(said("mem=64"), Ok(("mem".into(), Some(PropertyValue::Number(64)))));
        assert_eq!(said("mem!"), Ok(("mem".into(), None)));
        assert_eq!(said("besteffort=NO"), Ok(("besteffort".into(), Some(PropertyValue::Text("NO".into())))));
        for (text, why) in [
            ("mem=much", "mem is an integer"),
            ("wing=a", "no property is called 'wing'"),
            ("state=Dead", "-s sets it"),
            ("core=3", "the system sets it itself"),
            ("network_address=x", "the system sets it itself"),
        ] {
            assert!(said(text).expect_err(text).contains(why), "{text}: {:?}", said(text));
        }
    }
}
