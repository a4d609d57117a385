//! The commands.

use crate::text::quoted;
use std::fmt;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Makes new ones.
    Create,
    /// Deletes them.
    Delete,
    /// Sets attributes.
    Set,
    /// Takes attributes away.
    Unset,
    /// Shows attributes for people.
    List,
    /// Shows attributes as commands that set them.
    Print,
    /// Says which ones later commands are about that name none.
    Active,
    /// Ends the program.
    Quit,
    /// Shows what can be said.
    Help,
}

impl Verb {
    /// All, each with its word; an abbreviation means the first that begins with it.
    pub const ALL: [(&'static str, Self); 10] = [
        ("create", Self::Create),
        ("delete", Self::Delete),
        ("set", Self::Set),
        ("unset", Self::Unset),
        ("list", Self::List),
        ("print", Self::Print),
        ("active", Self::Active),
        ("quit", Self::Quit),
        ("exit", Self::Quit),
        ("help", Self::Help),
    ];

    /// Whether it stands alone.
    pub const fn is_alone(self) -> bool {
        matches!(self, Self::Quit | Self::Help)
    }

    /// Whether its attributes have values.
    pub const fn takes_values(self) -> bool {
        matches!(self, Self::Create | Self::Set)
    }
}

/// What `help` shows.
pub const HELP: &str = "\
create queue|node NAME[,NAME...] [ATTRIBUTE = VALUE, ...]
delete queue|node NAME[,NAME...]
set    server|queue|node [NAME[,NAME...]] ATTRIBUTE =|+=|-= VALUE[, ...]
unset  server|queue|node [NAME[,NAME...]] ATTRIBUTE[, ...]
list   server|queue|node [NAME[,NAME...]] [ATTRIBUTE, ...]
print  server|queue|node [NAME[,NAME...]] [ATTRIBUTE, ...]
active queue|node [NAME[,NAME...]]
quit
";

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(_, verb)| verb == self).map_or("", |(word, _)| *word))
    }
}

/// The kind of what a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// The server.
    Server,
    /// A queue.
    Queue,
    /// A node.
    Node,
    /// A resource that the site defines.
    Resource,
    /// The scheduler of PBS Pro.
    Scheduler,
    /// A hook of PBS Pro.
    Hook,
}

impl ObjectKind {
    /// All, each with its word; an abbreviation means the first that begins with it.
    pub const ALL: [(&'static str, Self); 6] = [
        ("server", Self::Server),
        ("queue", Self::Queue),
        ("node", Self::Node),
        ("resource", Self::Resource),
        ("sched", Self::Scheduler),
        ("hook", Self::Hook),
    ];
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(_, kind)| kind == self).map_or("", |(word, _)| *word))
    }
}

/// What a command is about, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName {
    /// Its name; `None` for all at the server.
    pub name: Option<String>,
    /// The server.
    pub server: Option<String>,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or_default())?;
        self.server.as_ref().map_or(Ok(()), |server| write!(f, "@{server}"))
    }
}

/// How a value is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `=`: it replaces the present one.
    Assign,
    /// `+=`: it is added to the present one.
    Add,
    /// `-=`: it is taken from the present one.
    Remove,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Assign => "=",
            Self::Add => "+=",
            Self::Remove => "-=",
        })
    }
}

/// An attribute of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name.
    pub attribute: String,
    /// The resource, after a dot.
    pub resource: Option<String>,
    /// Its new value without quotes, and how it is applied; `None` where commands only name attributes.
    pub value: Option<(Operation, String)>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.attribute)?;
        if let Some(resource) = &self.resource {
            write!(f, ".{resource}")?;
        }
        match &self.value {
            Some((operation, value)) => write!(f, " {operation} {}", quoted(value, &[',', ';', '#'])),
            None => Ok(()),
        }
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub verb: Verb,
    /// The kind of what it is about; `None` for commands that stand alone.
    pub kind: Option<ObjectKind>,
    /// What it is about; empty for the server, and for the active ones.
    pub names: Vec<ObjectName>,
    /// Attributes.
    pub changes: Vec<Change>,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb)?;
        if let Some(kind) = self.kind {
            write!(f, " {kind}")?;
        }
        for (place, name) in self.names.iter().enumerate() {
            write!(f, "{}{name}", if place > 0 { "," } else { " " })?;
        }
        for (place, change) in self.changes.iter().enumerate() {
            write!(f, "{}{change}", if place > 0 { ", " } else { " " })?;
        }
        Ok(())
    }
}
