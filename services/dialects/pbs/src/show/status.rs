//! A thing with its attributes.

use super::cells;
use jiff::tz::TimeZone;
use muster_schemas::time::Timestamp;

/// The kind of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A job.
    Job,
    /// A queue.
    Queue,
    /// A server.
    Server,
    /// A node.
    Node,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Text, or a number as text.
    Text(String),
    /// A point in time.
    Time(Timestamp),
    /// Variables with their values.
    Variables(Vec<(String, String)>),
    /// The jobs of a node: each with the core that it has there. A job stands once for each core.
    Jobs(Vec<(String, u32)>),
}

impl Value {
    /// The value as text for people, with times in this zone.
    pub fn text(&self, zone: &TimeZone) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Time(time) => cells::date(*time, zone),
            Self::Variables(variables) => {
                let one = |(name, value): &(String, String)| format!("{name}={}", value.replace(',', "\\,"));
                variables.iter().map(one).collect::<Vec<_>>().join(",")
            }
            Self::Jobs(jobs) => jobs.iter().map(|(job, core)| format!("{job}/{core}")).collect::<Vec<_>>().join(", "),
        }
    }
}

/// An attribute, or one resource of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// The resource, for an attribute with several.
    pub resource: Option<String>,
    /// Its value.
    pub value: Value,
}

/// A thing with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its kind.
    pub kind: Kind,
    /// Its name or identifier.
    pub name: String,
    /// Its attributes, in the order in which they are shown.
    pub attributes: Vec<Attribute>,
}

impl Status {
    /// A thing without attributes.
    pub const fn new(kind: Kind, name: String) -> Self {
        Self { kind, name, attributes: Vec::new() }
    }

    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, text: impl Into<String>) {
        self.attributes.push(Attribute { name, resource: None, value: Value::Text(text.into()) });
    }

    /// Adds an attribute, if there is a value.
    pub fn set_if(&mut self, name: &'static str, text: Option<impl Into<String>>) {
        if let Some(text) = text {
            self.set(name, text);
        }
    }

    /// Adds a point in time, if there is one.
    pub fn set_time(&mut self, name: &'static str, time: Option<Timestamp>) {
        let value = time.map(Value::Time);
        self.attributes.extend(value.map(|value| Attribute { name, resource: None, value }));
    }

    /// Adds a resource of an attribute.
    pub fn set_resource(&mut self, name: &'static str, resource: &str, text: impl Into<String>) {
        let value = Value::Text(text.into());
        self.attributes.push(Attribute { name, resource: Some(resource.to_owned()), value });
    }

    /// Adds the jobs of a node, if it has some.
    pub fn set_jobs(&mut self, name: &'static str, jobs: Vec<(String, u32)>) {
        if !jobs.is_empty() {
            self.attributes.push(Attribute { name, resource: None, value: Value::Jobs(jobs) });
        }
    }

    /// The text of an attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.find(name, None)
    }

    /// The text of a resource of an attribute.
    pub fn resource(&self, name: &str, resource: &str) -> Option<&str> {
        self.find(name, Some(resource))
    }

    fn find(&self, name: &str, resource: Option<&str>) -> Option<&str> {
        let is_it = |attribute: &&Attribute| attribute.name == name && attribute.resource.as_deref() == resource;
        match &self.attributes.iter().find(is_it)?.value {
            Value::Text(text) => Some(text),
            Value::Time(_) | Value::Variables(_) | Value::Jobs(_) => None,
        }
    }

    /// A point in time among its attributes.
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        self.attributes.iter().find(|attribute| attribute.name == name).and_then(|attribute| match attribute.value {
            Value::Time(time) => Some(time),
            Value::Text(_) | Value::Variables(_) | Value::Jobs(_) => None,
        })
    }
}
