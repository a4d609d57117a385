//! The answers of this dialect to the services' questions.

use crate::{
    NAME,
    life::launch::{self, Launched, property_line},
    options::notify::{self, Tag},
    resources::{
        property::{ID, NODE, is_built_in},
        value::property_text,
    },
    show::printed::LONGEST_FILE,
    text::decimal,
};
use muster_dialect::{Dialect, Host, Variables};
use muster_schemas::{
    job::{Occasion, Outcome},
    node::{LaunchOrder, NodeFacts, OrderNode},
    notify::NotifyItem,
    output,
    views::RunNodeView,
};
use std::collections::BTreeMap;

/// The variable of a shell in a job with the cores of the job on each of its nodes, such as `n1/4 n2/2`: the shell itself
/// is launched on one of them only.
pub const HOSTS: &str = "MUSTER_OAR_HOSTS";
/// The variable of a job with its index in its array.
pub const INDEX: &str = "MUSTER_OAR_INDEX";
/// The variable of a job with its name; a job without one has none.
pub const JOB_NAME: &str = "MUSTER_OAR_NAME";
/// The variable of a job whose command runs on a host apart from its nodes.
pub const FRONT: &str = "MUSTER_OAR_FRONT";
/// The variable of a job with its project.
pub const PROJECT: &str = "MUSTER_OAR_PROJECT";

/// The name that muster gives a job without one.
pub const NAMELESS: &str = "job";

/// The variables with the path of the node file.
const NODE_FILES: [&str; 4] = ["OAR_NODEFILE", "OAR_NODE_FILE", "OAR_FILE_NODES", "OAR_RESOURCE_FILE"];
/// The variable with the path of the file of properties.
const PROPERTY_FILE: &str = "OAR_RESOURCE_PROPERTIES_FILE";
/// The longest text of [`HOSTS`], in bytes: half of what one variable can have.
const MOST_HOSTS_BYTES: usize = 64 << 10;
/// The most lines of a node file.
const MOST_LINES: u64 = 1_000_000;
/// The longest file of properties, in bytes: `oarprint` reads no longer one.
const LONGEST_PROPERTIES: usize = LONGEST_FILE;

/// OAR as services see it.
#[derive(Clone, Copy, Debug)]
pub struct Oar;

impl Dialect for Oar {
    fn name(&self) -> &'static str {
        NAME
    }

    fn variables(&self, order: &LaunchOrder, _host: &Host<'_>) -> Variables {
        Variables { set: variables(order), remark: None }
    }

    fn node_file(&self, order: &LaunchOrder) -> Option<(&'static str, String)> {
        Some((NODE_FILES[0], node_file(order)))
    }

    fn node_file_aliases(&self) -> &'static [&'static str] {
        &NODE_FILES[1..]
    }

    fn property_file(&self, order: &LaunchOrder) -> Option<String> {
        property_file(order)
    }

    fn property_file_variable(&self) -> Option<&'static str> {
        Some(PROPERTY_FILE)
    }

    /// `*OAR* [END]: 12 (name) on cluster` (OAR-N-02).
    fn mail_subject(&self, item: &NotifyItem) -> Option<String> {
        let name = if item.name == NAMELESS { "" } else { item.name.as_str() };
        Some(notify::subject(tag(item), item.job.number, name, &item.cluster))
    }
}

/// What a notification is about. A job that is over is in Error unless its command ended by itself (OAR-J-04).
fn tag(item: &NotifyItem) -> Tag {
    match (item.occasion, &item.outcome) {
        (Occasion::Started, _) => Tag::Running,
        (Occasion::EndAsked, _) => Tag::Info,
        (Occasion::Suspended, _) if item.event.starts_with("resum") || item.event.starts_with("continu") => {
            Tag::Resuming
        }
        (Occasion::Suspended, _) => Tag::Suspended,
        (_, Some(Outcome::Completed | Outcome::Failed(_) | Outcome::DeclaredFinished)) => Tag::End,
        (_, Some(_)) => Tag::Error,
        (_, None) => Tag::Info,
    }
}

/// The variables of a job that are known when it is launched, without those about the node file, whose path is known to
/// the executor.
fn variables(order: &LaunchOrder) -> BTreeMap<String, String> {
    let given = |name: &str| order.environment.get(name).cloned().unwrap_or_default();
    let index = decimal::<u64>(&given(INDEX)).unwrap_or(1).max(1);
    let job = order.number();
    let path = |pattern: &Option<String>| {
        let meaning = |letter: char| match letter {
            'J' => Some(job.to_string()),
            '%' => Some("%".to_owned()),
            _ => None,
        };
        pattern.as_ref().map(|pattern| output::expand(pattern, meaning)).unwrap_or_default()
    };
    let launched = Launched {
        job,
        array: job.saturating_sub(index - 1),
        index,
        user: order.owner.user.clone(),
        name: given(JOB_NAME),
        project: given(PROJECT),
        directory: order.working_directory.clone(),
        walltime: order.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0),
        stdout: path(&order.launch.stdout),
        stderr: path(&order.launch.stderr),
        ..Launched::default()
    };
    let of_files = |name: &str| NODE_FILES.contains(&name) || name == PROPERTY_FILE;
    let all = launch::variables(&launched).into_iter().filter(|(name, _)| !of_files(name));
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The lines of the node file (OAR-J-14): the name of a node for each of the job's cores there, sorted. A host apart from the nodes,
/// which is the first component, is not among them.
fn node_file(order: &LaunchOrder) -> String {
    let named = order.environment.get(HOSTS).and_then(|text| read_hosts(text));
    let cores = order.node_cores();
    let of_node = |at: usize| match &cores {
        Some(cores) => cores.get(at).copied().unwrap_or(1),
        None if order.nodes.len() == 1 => order.cores.len(),
        None => u64::from(order.nodes.get(at).map_or(1, |node| node.tasks)),
    };
    let meant = order.nodes.iter().enumerate().filter(|(_, node)| !is_apart(order, node));
    let mut hosts = named.unwrap_or_else(|| meant.map(|(at, node)| (node.name.clone(), of_node(at))).collect());
    hosts.sort();
    let mut file = String::new();
    for (name, cores) in hosts {
        for _ in 0..cores {
            file.push_str(&name);
            file.push('\n');
        }
    }
    file
}

/// Whether a node of a run runs the command apart from the nodes that the job holds.
fn is_apart(order: &LaunchOrder, node: &OrderNode) -> bool {
    node.component == 0 && order.environment.contains_key(FRONT)
}

/// The lines of the file of properties (OAR-J-15), one for each core, in the order of their numbers. `None` if nothing is known
/// about the nodes, or if it would be too long: `oarprint` asks the system then.
fn property_file(order: &LaunchOrder) -> Option<String> {
    let meant = order.nodes.iter().filter(|node| !is_apart(order, node));
    let mut nodes: Vec<(&str, &NodeFacts)> =
        meant.map(|node| Some((node.name.as_str(), node.facts.as_deref()?))).collect::<Option<_>>()?;
    nodes.sort_by_key(|(_, facts)| facts.cores_before);
    let mut file = String::new();
    for (name, facts) in nodes {
        let site = facts.properties.iter().map(|(name, value)| (name.to_lowercase(), property_text(value)));
        let is_shown = |(name, value): &(String, String)| !is_built_in(name) && !value.contains(char::is_control);
        let mut values: BTreeMap<String, String> = site.filter(is_shown).collect();
        values.extend([NODE, "host"].map(|level| (level.to_owned(), name.to_owned())));
        for core in facts.cores.iter() {
            let number = facts.cores_before + u64::from(core) + 1;
            values.extend([ID, "core"].map(|level| (level.to_owned(), number.to_string())));
            let socket = facts.sockets_before + u64::from(socket_of(core, facts)) + 1;
            values.insert("cpu".to_owned(), socket.to_string());
            file.push_str(&property_line(&values));
            file.push('\n');
            if file.len() > LONGEST_PROPERTIES {
                return None;
            }
        }
    }
    (!file.is_empty()).then_some(file)
}

/// The socket of a core, from 0: the cores are divided in equal, consecutive parts, the first ones larger by one if the division
/// leaves a remainder.
fn socket_of(core: u32, facts: &NodeFacts) -> u32 {
    let sockets = facts.sockets.max(1);
    let (each, larger) = (facts.all_cores / sockets, facts.all_cores % sockets);
    let of_larger = larger.saturating_mul(each.saturating_add(1));
    match core.checked_sub(of_larger) {
        None => core / each.saturating_add(1),
        Some(rest) => larger + rest / each.max(1),
    }
}

/// The value of [`HOSTS`] for a job that runs on these nodes, the first of which is apart from the others if the command `is_apart`;
/// `None` if it is too long for a variable.
pub fn hosts(run: &[RunNodeView], is_apart: bool) -> Option<String> {
    let run = run.iter().filter(|node| !is_apart || node.component > 0);
    let one = |node: &RunNodeView| format!("{}/{}", node.node, node.cores.len());
    let text = run.map(one).collect::<Vec<_>>().join(" ");
    (text.len() <= MOST_HOSTS_BYTES).then_some(text)
}

/// Reads what [`hosts`] writes; `None` for anything else. Names of nodes have neither blanks nor slashes.
fn read_hosts(text: &str) -> Option<Vec<(String, u64)>> {
    if text.len() > MOST_HOSTS_BYTES {
        return None;
    }
    let mut lines = 0u64;
    let mut one = |entry: &str| {
        let (name, cores) = entry.split_once('/')?;
        let cores = decimal::<u64>(cores)?;
        lines = lines.saturating_add(cores);
        (!name.is_empty() && lines <= MOST_LINES).then(|| (name.to_owned(), cores))
    };
    text.split(' ').map(&mut one).collect()
}
