//! What commands do to the cluster's configuration.

use super::{
    command::{Change, Command, ObjectKind, Verb},
    limits,
    nodes::{self, Service},
    problem::Problem,
    queues, routes, servers,
};
use crate::refusal::shown;
use muster_schemas::{
    cluster::{ClusterConfig, QueueSpec},
    resources::NodeSpec,
};
use std::fmt;

/// What a command comes to: a new configuration, and then nodes that are taken out of service or put into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The configuration.
    pub config: ClusterConfig,
    /// Nodes that are taken out of service or put into it.
    pub service: Vec<Service>,
    /// A sentence for each request that has less effect than it seems.
    pub warnings: Vec<String>,
}

/// Why a command does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The name of the object; empty for the server.
    pub object: String,
    /// The fault, and that nothing was changed.
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Wrong {}

/// The answer to a command that changes nothing.
fn about(problem: Problem, object: &str, change: Option<&Change>) -> Wrong {
    let named = change.map(|change| match &change.resource {
        Some(resource) => format!("{}.{}: ", shown(&change.attribute), shown(resource)),
        None => format!("{}: ", shown(&change.attribute)),
    });
    let why = format!("{}{}; nothing was changed", named.unwrap_or_default(), problem.0);
    Wrong { object: object.to_owned(), why }
}

/// A fault of an object as a whole.
fn of_object<T>(why: &str, object: &str) -> Result<T, Wrong> {
    Err(about(Problem(why.to_owned()), object, None))
}

/// Carries out a command that changes something: `create`, `delete`, `set` or `unset`. `names` are the objects that it is
/// about; the server has none. All or nothing is changed.
///
/// # Errors
/// The object and the attribute that cannot be changed, and why.
pub fn edit(command: &Command, names: &[String], config: &ClusterConfig) -> Result<Edit, Wrong> {
    let mut edit = Edit { config: config.clone(), service: Vec::new(), warnings: Vec::new() };
    let nothing = |why: &str| Wrong { object: String::new(), why: format!("{why}; nothing was changed") };
    match command.kind {
        Some(ObjectKind::Server) => server(command, &mut edit)?,
        Some(ObjectKind::Queue) => names.iter().try_for_each(|name| queue(command, name, &mut edit))?,
        Some(ObjectKind::Node) => names.iter().try_for_each(|name| node(command, name, &mut edit))?,
        Some(ObjectKind::Resource) => {
            return Err(nothing(
                "resources need no definition: set resources_available.NAME of nodes, or of the server for licences",
            ));
        }
        Some(ObjectKind::Scheduler) => {
            return Err(nothing(
                "the scheduler has no attributes here: `muster config show --policy` has its settings",
            ));
        }
        Some(ObjectKind::Hook) => {
            return Err(nothing("hooks are not supported: submission and activation filters do what they do"));
        }
        None => return Err(nothing("the command names no object")),
    }
    Ok(edit)
}

/// Applies one change after the other.
fn each(object: &str, changes: &[Change], mut apply: impl FnMut(&Change) -> Result<(), Problem>) -> Result<(), Wrong> {
    changes.iter().try_for_each(|change| apply(change).map_err(|problem| about(problem, object, Some(change))))
}

fn server(command: &Command, edit: &mut Edit) -> Result<(), Wrong> {
    let mut changes = Vec::new();
    for change in &command.changes {
        match servers::needless(change) {
            Some(why) => edit.warnings.push(format!("{} changes nothing: {why}", shown(&change.attribute))),
            None => changes.push(change.clone()),
        }
    }
    match command.verb {
        Verb::Set => each("", &changes, |change| servers::set(&mut edit.config, change)),
        Verb::Unset => each("", &changes, |change| servers::unset(&mut edit.config, change)),
        verb => {
            let why = format!("`{verb} server` is not supported: there is one server, which is the cluster");
            of_object(&why, "")
        }
    }
}

fn queue(command: &Command, name: &str, edit: &mut Edit) -> Result<(), Wrong> {
    let known = edit.config.queues.iter().position(|queue| queue.name == name);
    let at = match (command.verb, known) {
        (Verb::Create, Some(_)) => return of_object("Queue already exists", name),
        (Verb::Create, None) => {
            // As in the original, a queue is switched on by a command of its own.
            let mut queue = QueueSpec { name: name.to_owned(), enabled: false, started: false, ..QueueSpec::default() };
            limits::number(&mut queue.attributes, edit.config.queues.iter().map(|queue| &queue.attributes));
            edit.config.queues.push(queue);
            edit.config.queues.len() - 1
        }
        (_, Some(at)) => at,
        (_, None) => return of_object("Unknown queue", name),
    };
    if command.verb == Verb::Delete {
        if edit.config.settings.default_queue == name {
            let why = "this is the default queue; set another default_queue of the server first";
            return of_object(why, name);
        }
        edit.config.queues.remove(at);
        return Ok(());
    }
    let queue = &mut edit.config.queues[at];
    let is_unset = command.verb == Verb::Unset;
    // The type first: other attributes depend on it.
    let mut changes = command.changes.clone();
    changes.sort_by_key(|change| !change.attribute.eq_ignore_ascii_case("queue_type"));
    each(name, &changes, |change| match is_unset {
        true => queues::unset(queue, change),
        false => queues::set(queue, change),
    })?;
    let asks_for_list = |change: &Change| change.attribute.eq_ignore_ascii_case("acl_user_enable");
    if !is_unset
        && queue.users.is_empty()
        && command.changes.iter().any(|change| asks_for_list(change) && is_yes(change))
    {
        edit.warnings.push(format!("queue {name} admits everybody until acl_users names users"));
    }
    if !is_unset && command.changes.iter().any(|change| change.attribute.eq_ignore_ascii_case(routes::RETRY)) {
        edit.warnings.push(format!(
            "queue {name}: {} is kept and has no effect: jobs move as soon as a queue takes them",
            routes::RETRY
        ));
    }
    Ok(())
}

fn is_yes(change: &Change) -> bool {
    super::values::boolean(change).is_ok_and(|is_so| is_so)
}

fn node(command: &Command, name: &str, edit: &mut Edit) -> Result<(), Wrong> {
    let known = edit.config.nodes.iter().position(|node| node.name == name);
    let at = match (command.verb, known) {
        (Verb::Create, Some(_)) => return of_object("Node name already exists", name),
        (Verb::Create, None) => {
            edit.config.nodes.push(NodeSpec {
                name: name.to_owned(),
                cores: 0,
                sockets: 1,
                memory_bytes: 0,
                gpus: Vec::new(),
                properties: Default::default(),
            });
            edit.config.nodes.len() - 1
        }
        (_, Some(at)) => at,
        (_, None) => return of_object("Unknown node", name),
    };
    if command.verb == Verb::Delete {
        edit.config.nodes.remove(at);
        return Ok(());
    }
    let node = &mut edit.config.nodes[at];
    let mut service = Service { node: name.to_owned(), ..Service::default() };
    let is_unset = command.verb == Verb::Unset;
    each(name, &command.changes, |change| match is_unset {
        true => nodes::unset(node, &mut service, change),
        false => nodes::set(node, &mut service, change),
    })?;
    if command.verb == Verb::Create && (node.cores == 0 || node.memory_bytes == 0) {
        let why = "a node is created with its size: create node NAME resources_available.ncpus=4, \
                   resources_available.mem=8gb";
        return of_object(why, name);
    }
    if service.is_offline.is_some() || service.comment.is_some() {
        edit.service.push(service);
    }
    Ok(())
}
