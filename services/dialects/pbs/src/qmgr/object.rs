//! What `list` and `print` show.

use super::command::ObjectKind;
use crate::text::quoted;
use std::fmt::Write;

/// The characters of a line of `list` before it is broken.
const WIDTH: usize = 80;

/// An attribute with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub attribute: String,
    /// The resource, for an attribute with several.
    pub resource: Option<String>,
    /// Its values: one, or the entries of a list.
    pub values: Vec<String>,
    /// Whether `print` leaves it out, because it cannot be set.
    pub is_read_only: bool,
}

impl Setting {
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
            let all = setting.values.join(",");
            for (place, part) in all.split(',').enumerate() {
                column += part.len() + 1;
                if place > 0 {
                    out.push(',');
                    if column >= WIDTH {
                        let _ = write!(out, "\n{:indent$}", "");
                        column = indent + part.len();
                    }
                }
                out.push_str(&part.replace('\n', "\\n"));
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
    if kind != ObjectKind::Server {
        let _ = writeln!(out, "#\n# Create and define {target}\n#\ncreate {target}");
    }
    for setting in object.settings.iter().filter(|setting| !setting.is_read_only) {
        for (place, value) in setting.values.iter().enumerate() {
            let sign = if place > 0 { "+=" } else { "=" };
            let value = quoted(value, &[',', ';', '#']);
            let _ = writeln!(out, "set {target} {} {sign} {value}", setting.name());
        }
    }
}
