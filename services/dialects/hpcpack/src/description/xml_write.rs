//! Writes job XML.

use super::{
    JobDescription, NAMESPACE, TaskDescription, Terms, VERSION,
    attributes::{Attribute, TaskAttribute, is_xml},
    document::{EXPANDED_PRIORITY, RUNTIME_SECONDS},
    parts::SystemValues,
};
use std::{collections::BTreeMap, fmt::Write as _};

/// Writes a document element by element, indented by two blanks.
pub(crate) struct Writer {
    text: String,
    open: Vec<&'static str>,
}

impl Writer {
    /// A document with only its first line.
    pub(crate) fn new() -> Self {
        Self { text: "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n".to_owned(), open: Vec::new() }
    }

    /// Opens an element with attributes.
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[(&str, String)]) {
        self.start(name, attributes);
        self.text.push_str(">\n");
        self.open.push(name);
    }

    /// Writes an element without content.
    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.start(name, attributes);
        self.text.push_str(" />\n");
    }

    /// Writes an element that contains a text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.start(name, &[]);
        self.text.push('>');
        escape(&mut self.text, text);
        let _ = writeln!(self.text, "</{name}>");
    }

    /// Closes the element opened last.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.indent();
            let _ = writeln!(self.text, "</{name}>");
        }
    }

    /// The document.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn start(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.indent();
        let _ = write!(self.text, "<{name}");
        for (name, value) in attributes {
            let _ = write!(self.text, " {name}=\"");
            escape(&mut self.text, value);
            self.text.push('"');
        }
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.open.len()));
    }
}

/// Appends a text so that any reader gets it back unchanged, in an attribute or an element. A character that XML cannot
/// hold becomes U+FFFD; descriptions contain none.
fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", u32::from(character));
            }
            _ if is_xml(character) => out.push(character),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

pub(super) fn write(description: &JobDescription, system: &SystemValues) -> String {
    let mut writer = Writer::new();
    let mut attributes = vec![("Version", VERSION.to_owned())];
    attributes.extend(system.iter().map(|(name, value)| (name, value.to_owned())));
    for attribute in Attribute::ALL {
        let Some(value) = description.attributes.get(*attribute) else { continue };
        attributes.push((attribute.name(), value));
    }
    if let Some(priority) = description.attributes.priority {
        set(&mut attributes, Attribute::Priority.name(), priority.band().to_owned());
        attributes.push((EXPANDED_PRIORITY, priority.value().to_string()));
    }
    if let Some(seconds) = description.attributes.run_time.and_then(|run_time| run_time.seconds()) {
        attributes.push((RUNTIME_SECONDS, seconds.to_string()));
    }
    attributes.push(("xmlns", NAMESPACE.to_owned()));
    writer.open("Job", &attributes);
    write_terms(&mut writer, "CustomProperties", &description.custom_properties);
    write_terms(&mut writer, "ExtendedTerms", &description.extended_terms);
    let request = description.request.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    write_pairs(&mut writer, "Request", "Term", request);
    write_environment(&mut writer, &description.environment);
    write_dependencies(&mut writer, description);
    if description.tasks.is_empty() {
        writer.empty("Tasks", &[]);
    } else {
        writer.open("Tasks", &[]);
        description.tasks.iter().for_each(|task| write_task(&mut writer, task));
        writer.close();
    }
    writer.finish()
}

fn set(attributes: &mut [(&str, String)], name: &str, value: String) {
    if let Some(slot) = attributes.iter_mut().find(|(known, _)| *known == name) {
        slot.1 = value;
    }
}

fn write_task(writer: &mut Writer, task: &TaskDescription) {
    let mut attributes = vec![("Version", VERSION.to_owned())];
    for attribute in TaskAttribute::ALL {
        let Some(value) = task.attributes.get(*attribute) else { continue };
        attributes.push((attribute.name(), value));
    }
    if let Some(seconds) = task.attributes.run_time.and_then(|run_time| run_time.seconds()) {
        attributes.push((RUNTIME_SECONDS, seconds.to_string()));
    }
    if task.environment.is_empty() && task.custom_properties.is_empty() && task.extended_terms.is_empty() {
        return writer.empty("Task", &attributes);
    }
    writer.open("Task", &attributes);
    write_environment(writer, &task.environment);
    write_terms(writer, "CustomProperties", &task.custom_properties);
    write_terms(writer, "ExtendedTerms", &task.extended_terms);
    writer.close();
}

fn write_terms(writer: &mut Writer, element: &'static str, terms: &Terms) {
    write_pairs(writer, element, "Term", terms.iter());
}

fn write_environment(writer: &mut Writer, variables: &BTreeMap<String, String>) {
    let pairs = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    write_pairs(writer, "EnvironmentVariables", "Variable", pairs);
}

fn write_pairs<'p>(
    writer: &mut Writer,
    element: &'static str,
    each: &'static str,
    pairs: impl Iterator<Item = (&'p str, &'p str)>,
) {
    let mut pairs = pairs.peekable();
    if pairs.peek().is_none() {
        return;
    }
    writer.open(element, &[]);
    for (name, value) in pairs {
        writer.open(each, &[]);
        writer.text("Name", name);
        writer.text("Value", value);
        writer.close();
    }
    writer.close();
}

fn write_dependencies(writer: &mut Writer, description: &JobDescription) {
    if description.dependencies.is_empty() {
        return writer.empty("Dependencies", &[]);
    }
    writer.open("Dependencies", &[]);
    for group in description.dependencies.chunk_by(|first, second| first.parent == second.parent) {
        writer.open("Parent", &[("GroupId", group[0].parent.to_string())]);
        for dependency in group {
            writer.empty("Child", &[("GroupId", dependency.child.to_string())]);
        }
        writer.close();
    }
    writer.close();
}
