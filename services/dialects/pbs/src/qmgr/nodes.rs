//! The attributes of nodes.

use super::{
    command::{Change, ObjectKind, Operation},
    object::{Object, Printed, Setting},
    problem::Problem,
    values::{assigned, bytes, change_list, count, entries, given, key},
};
use crate::{
    flavour::Flavour,
    refusal::shown,
    show::{NodeJob, exact_size, of_node, property},
    text::is_name,
};
use muster_schemas::{
    resources::{NodeSpec, PropertyValue},
    views::{NodeStateWord, NodeView},
};

/// The model of a GPU that nobody has named.
const GPU: &str = "gpu";
/// The most GPUs of a node.
const MOST_GPUS: u32 = 1_024;
/// The longest comment, in bytes.
const MOST_COMMENT_BYTES: usize = 1_024;

/// A change of a node's service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The node.
    pub node: String,
    /// Whether it is taken out of service; `None` leaves that unchanged.
    pub is_offline: Option<bool>,
    /// The new comment; an empty one removes it.
    pub comment: Option<String>,
}

/// A node as `print` shows it.
pub fn node(view: &NodeView, flavour: Flavour) -> Object {
    Object { kind: ObjectKind::Node, name: view.spec.name.clone(), settings: settings(view, flavour) }
}

/// A node as `list` shows it.
pub fn listed_node(view: &NodeView, jobs: &[NodeJob], flavour: Flavour) -> Object {
    Object::listed(ObjectKind::Node, &of_node(view, jobs, flavour), settings(view, flavour))
}

fn settings(view: &NodeView, flavour: Flavour) -> Vec<Setting> {
    let spec = &view.spec;
    let available = |name: &str, value: String| Setting::of_resource("resources_available", name, value);
    let at_creation = |setting: Setting| Setting { printed: Printed::AtCreation, ..setting };
    let cores = match flavour {
        Flavour::PbsPro => available("ncpus", spec.cores.to_string()),
        Flavour::Torque => Setting::new("np", spec.cores.to_string()),
    };
    let mut all = vec![at_creation(cores), at_creation(available("mem", exact_size(spec.memory_bytes)))];
    if spec.sockets != 1 {
        all.push(at_creation(Setting::new("sockets", spec.sockets.to_string())));
    }
    if !spec.gpus.is_empty() {
        all.push(match (spec.gpus.iter().all(|model| model == GPU), flavour) {
            (false, _) => Setting::new("gpu_models", spec.gpus.join(",")),
            (true, Flavour::PbsPro) => available("ngpus", spec.gpus.len().to_string()),
            (true, Flavour::Torque) => Setting::new("gpus", spec.gpus.len().to_string()),
        });
    }
    let is_word = |value: &PropertyValue| flavour == Flavour::Torque && *value == PropertyValue::Flag(true);
    let words = spec.properties.iter().filter(|(_, value)| is_word(value)).map(|(name, _)| name.clone());
    let words: Vec<String> = words.collect();
    if !words.is_empty() {
        all.push(Setting::list("properties", words));
    }
    let others = spec.properties.iter().filter(|(_, value)| !is_word(value));
    all.extend(others.map(|(name, value)| available(name, property(value))));
    let is_offline = view.state == NodeStateWord::Drained;
    all.push(Setting::new("state", if is_offline { "offline" } else { "free" }));
    if let Some(comment) = view.reason.as_ref().filter(|comment| is_offline && !comment.is_empty()) {
        all.push(Setting::new(comment_name(flavour), comment.clone()));
    }
    all
}

const fn comment_name(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::PbsPro => "comment",
        Flavour::Torque => "note",
    }
}

/// Sets an attribute.
pub(super) fn set(node: &mut NodeSpec, service: &mut Service, change: &Change) -> Result<(), Problem> {
    match key(change).as_str() {
        "np" | "pcpus" | "resources_available.ncpus" => node.cores = count(change, Some(node.cores))?,
        "resources_available.mem" => node.memory_bytes = bytes(change)?,
        "sockets" => node.sockets = count(change, Some(node.sockets))?,
        "gpus" | "resources_available.ngpus" => {
            let wanted = count(change, u32::try_from(node.gpus.len()).ok())?;
            set_gpus(node, wanted)?;
        }
        "gpu_models" => {
            node.gpus = entries(assigned(change)?).map(str::to_owned).collect();
            set_gpus(node, u32::try_from(node.gpus.len()).unwrap_or(u32::MAX))?;
        }
        "properties" => properties(node, change)?,
        "state" => state(service, change)?,
        "comment" | "note" => service.comment = Some(comment(assigned(change)?)?),
        "mom" | "resources_available.vnode" if assigned(change)? == node.name => {}
        "resources_available.host" if assigned(change)? == node.name => {}
        "mom" | "resources_available.vnode" => {
            return Err(Problem(format!("can only be {}, the name of the node", shown(&node.name))));
        }
        "ntype" => one_of(change, &["pbs", "cluster"])?,
        "resv_enable" => one_of(change, &["true", "t", "y", "1"])?,
        "sharing" => one_of(change, &["default_shared"])?,
        _ => resource(node, change)?,
    }
    Ok(())
}

/// An attribute that has one value here, for which the family has several words.
fn one_of(change: &Change, words: &[&str]) -> Result<(), Problem> {
    let value = assigned(change)?;
    match words.iter().any(|word| value.eq_ignore_ascii_case(word)) {
        true => Ok(()),
        false => Err(Problem(format!("can only be {}, not `{}`", words.first().unwrap_or(&""), shown(value)))),
    }
}

/// Gives a node this many GPUs. Those that it has keep their models.
fn set_gpus(node: &mut NodeSpec, wanted: u32) -> Result<(), Problem> {
    if wanted > MOST_GPUS {
        return Err(Problem(format!("a node has at most {MOST_GPUS} GPUs")));
    }
    node.gpus.resize(wanted as usize, GPU.to_owned());
    Ok(())
}

/// TORQUE's list of words. A property with another value than yes is none of them, and stays.
fn properties(node: &mut NodeSpec, change: &Change) -> Result<(), Problem> {
    let (operation, value) = given(change)?;
    let named: Vec<String> = entries(value).map(str::to_owned).collect();
    if let Some(wrong) = named.iter().find(|name| !is_name(name)) {
        return Err(Problem(format!("`{}` is not the name of a property", shown(wrong))));
    }
    let is_word = |value: &PropertyValue| *value == PropertyValue::Flag(true);
    let words = node.properties.iter().filter(|(_, value)| is_word(value)).map(|(name, _)| name.clone());
    let mut words: Vec<String> = words.collect();
    change_list(&mut words, operation, named);
    node.properties.retain(|name, value| !is_word(value) || words.contains(name));
    node.properties.extend(words.into_iter().map(|name| (name, PropertyValue::Flag(true))));
    Ok(())
}

/// `offline` takes a node out of service, `free` puts it back; so do `+= offline` and `-= offline`.
fn state(service: &mut Service, change: &Change) -> Result<(), Problem> {
    let (operation, value) = given(change)?;
    let value = value.trim();
    for word in entries(value) {
        let is_offline = match (operation, word.to_ascii_lowercase().as_str()) {
            (Operation::Assign | Operation::Add, "offline") | (Operation::Remove, "free") => true,
            (Operation::Assign | Operation::Add, "free") | (Operation::Remove, "offline") => false,
            _ => {
                let why = "the system finds out the other states; expected free or offline";
                return Err(Problem(format!("illegal value `{}`: {why}", shown(word))));
            }
        };
        service.is_offline = Some(is_offline);
    }
    Ok(())
}

fn comment(text: &str) -> Result<String, Problem> {
    match text.len() > MOST_COMMENT_BYTES || text.contains(char::is_control) {
        true => Err(Problem(format!("a comment has at most {MOST_COMMENT_BYTES} bytes, without line ends"))),
        false => Ok(text.to_owned()),
    }
}

/// A property, as `resources_available.NAME`.
fn resource(node: &mut NodeSpec, change: &Change) -> Result<(), Problem> {
    let name = property_name(change)?;
    let value = assigned(change)?;
    let read = match value.to_ascii_lowercase().as_str() {
        "true" | "t" | "y" | "yes" => PropertyValue::Flag(true),
        "false" | "f" | "n" | "no" => PropertyValue::Flag(false),
        _ => value.parse().map_or_else(|_| PropertyValue::Text(value.to_owned()), PropertyValue::Number),
    };
    node.properties.insert(name.to_owned(), read);
    Ok(())
}

fn property_name(change: &Change) -> Result<&str, Problem> {
    match change.resource.as_deref().filter(|_| change.attribute.eq_ignore_ascii_case("resources_available")) {
        Some(name) if is_name(name) => Ok(name),
        Some(name) => Err(Problem(format!("`{}` is not the name of a resource", shown(name)))),
        None => Err(unknown(&key(change))),
    }
}

/// Takes an attribute away.
pub(super) fn unset(node: &mut NodeSpec, service: &mut Service, change: &Change) -> Result<(), Problem> {
    match key(change).as_str() {
        "np" | "pcpus" | "resources_available.ncpus" | "resources_available.mem" => {
            return Err(Problem::unsupported("a node has a size"));
        }
        "sockets" => node.sockets = 1,
        "gpus" | "gpu_models" | "resources_available.ngpus" => node.gpus.clear(),
        "properties" => node.properties.retain(|_, value| *value != PropertyValue::Flag(true)),
        "comment" | "note" => service.comment = Some(String::new()),
        _ => {
            let name = property_name(change)?;
            let gone = node.properties.remove(name);
            gone.map(drop).ok_or_else(|| Problem("the node has no such property".to_owned()))?;
        }
    }
    Ok(())
}

fn unknown(key: &str) -> Problem {
    let attribute = key.split('.').next().unwrap_or_default();
    match attribute {
        "jobs"
        | "resources_assigned"
        | "status"
        | "resv"
        | "license"
        | "pbs_version"
        | "last_used_time"
        | "last_state_change_time" => Problem("cannot be set: the system does".to_owned()),
        "state" | "ntype" | "mom" => Problem::unsupported("a node always has one"),
        "queue" => Problem::unsupported("acl_hosts of a queue names the nodes that serve it"),
        _ => Problem::unsupported("nodes have no such setting here"),
    }
}
