//! What `list` and `print` show.

use super::command::{Change, ObjectKind};
use crate::{
    show::{Attribute, Status, printable},
    text::quoted,
};
use jiff::tz::TimeZone;
use std::fmt::Write;

/// The characters of a line of `list` before it is broken.
const WIDTH: usize = 80;

/// Where `print` has an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// In a command that sets it.
    Set,
    /// In the command that creates the object, which cannot be without it.
    AtCreation,
    /// Nowhere, because it cannot be set.
    Never,
}

/// An attribute with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub attribute: String,
    /// The resource, for an attribute with several.
    pub resource: Option<String>,
    /// Its values: one, or the entries of a list.
    pub values: Vec<String>,
    /// Where `print` has it.
    pub printed: Printed,
}

impl Setting {
    /// An attribute with one value, which can be set.
    pub fn new(attribute: &str, value: impl Into<String>) -> Self {
        Self::list(attribute, vec![value.into()])
    }

    /// An attribute with a list of values, which can be set.
    pub fn list(attribute: &str, values: Vec<String>) -> Self {
        Self { attribute: attribute.to_owned(), resource: None, values, printed: Printed::Set }
    }

    /// A resource of an attribute, which can be set.
    pub fn of_resource(attribute: &str, resource: &str, value: impl Into<String>) -> Self {
        Self { resource: Some(resource.to_owned()), ..Self::new(attribute, value) }
    }

    fn name(&self) -> String {
        match &self.resource {
            Some(resource) => format!("{}.{resource}", self.attribute),
            None => self.attribute.clone(),
        }
    }
}

/// A server, a queue or a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub settings: Vec<Setting>,
}

impl Object {
    /// An object as `list` shows it: with the attributes of a thing, and further settings that it does not have.
    pub(super) fn listed(kind: ObjectKind, status: &Status, settings: Vec<Setting>) -> Self {
        let one = |attribute: &Attribute| Setting {
            attribute: attribute.name.to_owned(),
            resource: attribute.resource.clone(),
            // Objects have no points in time among their attributes.
            values: vec![attribute.value.text(&TimeZone::UTC)],
            printed: Printed::Never,
        };
        let mut all: Vec<Setting> = status.attributes.iter().map(one).collect();
        let is_known = |setting: &Setting| {
            status.attributes.iter().any(|known| {
                known.name == setting.attribute && known.resource.as_deref() == setting.resource.as_deref()
            })
        };
        all.extend(settings.into_iter().filter(|setting| !is_known(setting)));
        Self { kind, name: status.name.clone(), settings: all }
    }
}

/// The objects with only these attributes; with all of them if none is named.
pub fn only(objects: Vec<Object>, wanted: &[Change]) -> Vec<Object> {
    let is_wanted = |setting: &Setting| {
        wanted.is_empty()
            || wanted.iter().any(|change| {
                change.attribute.eq_ignore_ascii_case(&setting.attribute)
                    && (change.resource.is_none() || change.resource == setting.resource)
            })
    };
    let one = |object: Object| Object { settings: object.settings.into_iter().filter(is_wanted).collect(), ..object };
    objects.into_iter().map(one).collect()
}

/// What `list` shows.
pub fn list(objects: &[Object]) -> String {
    let mut out = String::new();
    for object in objects {
        let title = match object.kind {
            ObjectKind::Server => "Server",
            ObjectKind::Queue => "Queue",
            ObjectKind::Node => "Node",
            ObjectKind::Resource => "Resource",
            ObjectKind::Scheduler => "Sched",
            ObjectKind::Hook => "Hook",
        };
        let _ = writeln!(out, "{title} {}", object.name);
        for setting in &object.settings {
            let name = setting.name();
            let _ = write!(out, "\t{name} = ");
            // Behind a tab.
            let indent = 8 + name.len() + 3;
            let mut column = indent;
            let all = setting.values.iter().map(|value| printable(value)).collect::<Vec<_>>().join(",");
            for (place, part) in all.split(',').enumerate() {
                column += part.len() + 1;
                if place > 0 {
                    out.push(',');
                    if column >= WIDTH {
                        let _ = write!(out, "\n{:indent$}", "");
                        column = indent + part.len();
                    }
                }
                out.push_str(part);
            }
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// What `print` shows: commands that make the same objects. Queues come before the server, which may name one as its
/// default.
pub fn print(objects: &[Object]) -> String {
    let mut out = String::new();
    for (kind, title) in [
        (ObjectKind::Resource, "Create resources and set their properties."),
        (ObjectKind::Queue, "Create queues and set their attributes."),
        (ObjectKind::Server, "Set server attributes."),
        (ObjectKind::Node, "Create nodes and set their properties."),
    ] {
        let mut of_kind = objects.iter().filter(|object| object.kind == kind).peekable();
        if of_kind.peek().is_some() {
            let _ = writeln!(out, "#\n# {title}\n#");
        }
        for object in of_kind {
            print_one(object, &mut out);
        }
    }
    out
}

fn print_one(object: &Object, out: &mut String) {
    let (kind, name) = (object.kind, &object.name);
    let target = match kind {
        ObjectKind::Server => "server".to_owned(),
        kind => format!("{kind} {name}"),
    };
    let with = |printed: Printed| object.settings.iter().filter(move |setting| setting.printed == printed);
    if kind != ObjectKind::Server {
        let _ = write!(out, "#\n# Create and define {target}\n#\ncreate {target}");
        for (place, setting) in with(Printed::AtCreation).enumerate() {
            let value = quoted(&setting.values.join(","), &[',', ';', '#']);
            let _ = write!(out, "{} {} = {value}", if place > 0 { "," } else { "" }, setting.name());
        }
        out.push('\n');
    }
    for setting in with(Printed::Set) {
        for (place, value) in setting.values.iter().enumerate() {
            let sign = if place > 0 { "+=" } else { "=" };
            let value = quoted(value, &[',', ';', '#']);
            let _ = writeln!(out, "set {target} {} {sign} {value}", setting.name());
        }
    }
}
