//! The types of a job: `-t name[=value]` (OAR-T-01).

use super::date;
use crate::{
    refusal::{Code, Refusal},
    text::{decimal, is_name, shown, suggestion},
};
use jiff::tz::TimeZone;

/// The greatest number of types of a job.
const MOST_TYPES: usize = 100;

/// Which attributes must be equal for two timesharing jobs to share resources (OAR-T-40).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShareForm {
    /// The user.
    pub by_user: bool,
    /// The name of the job.
    pub by_name: bool,
}

/// A type of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It makes way for jobs of other queues.
    BestEffort,
    /// Its nodes may be reinstalled; its command runs on the host for that.
    Deploy(Nodes),
    /// Its nodes belong to another system; its command runs on the host for that.
    Cosystem(Nodes),
    /// It has no command.
    Noop(Nodes),
    /// Other jobs run inside it; a name joins several.
    Container(Option<String>),
    /// It runs inside the container with this id or name.
    Inner(String),
    /// It shares its resources.
    TimeSharing(ShareForm),
    /// It may be run again if it exits with 99 or makes way.
    Idempotent,
    /// It holds resources that only jobs with this label may use.
    Placeholder(String),
    /// It may use resources that are held with this label.
    Allowed(String),
    /// It runs on nodes whose agents pull jobs.
    DesktopComputing,
    /// It needs this many of a site's tokens.
    Token(String, u32),
    /// It starts at this time or later.
    Postpone(i64),
    /// It ends by this time, or never starts.
    Deadline(i64),
    /// It starts by this time, or never.
    Expire(i64),
    /// It may be planned on absent and suspected resources too.
    Permissive,
    /// An administrator lifts the quotas (OAR-Q-09).
    NoQuotas,
    /// A type of the site.
    Site,
}

/// Which nodes a job that does nothing on them may start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Nodes that are up.
    Alive,
    /// Sleeping ones too, which are not woken (OAR-T-71).
    Standby,
}

/// A type as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its meaning.
    pub kind: Kind,
    /// The word before the `=`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

const NAMES: [&str; 19] = [
    "besteffort",
    "deploy",
    "cosystem",
    "container",
    "inner",
    "timesharing",
    "idempotent",
    "noop",
    "placeholder",
    "allowed",
    "allow",
    "desktop_computing",
    "token",
    "postpone",
    "deadline",
    "expire",
    "state",
    "no_quotas",
    "token:",
];

/// The times and names that types are read with.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'r> {
    /// The time.
    pub now: i64,
    /// The zone of dates.
    pub zone: &'r TimeZone,
    /// The site's own types.
    pub site_types: &'r [String],
}

/// Reads all types of a job.
///
/// # Errors
/// An unknown type, a value that its type does not know, or a type that is given with two values (-2).
pub fn read<S: AsRef<str>>(texts: &[S], reading: Reading<'_>) -> Result<Vec<Type>, Refusal> {
    let mut types: Vec<Type> = Vec::new();
    for text in texts {
        let read = read_one(text.as_ref().trim(), reading)
            .map_err(|why| Refusal::option(Code::Rule, &format!("-t {}", shown(text.as_ref())), why))?;
        match types.iter().find(|before| before.name == read.name) {
            None => types.push(read),
            Some(before) if before.text == read.text => {}
            Some(before) => {
                let why = format!("{} is given already", before.text);
                return Err(Refusal::option(Code::Rule, &format!("-t {}", shown(&read.text)), why));
            }
        }
        if types.len() > MOST_TYPES {
            return Err(Refusal::option(Code::Rule, "-t", format!("a job has at most {MOST_TYPES} types")));
        }
    }
    Ok(types)
}

fn read_one(text: &str, reading: Reading<'_>) -> Result<Type, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name.trim(), Some(value.trim())));
    let kind = match (name, value) {
        ("besteffort", None) => Kind::BestEffort,
        ("idempotent", None) => Kind::Idempotent,
        ("desktop_computing", None) => Kind::DesktopComputing,
        ("no_quotas", None) => Kind::NoQuotas,
        ("deploy", value) => Kind::Deploy(nodes(value)?),
        ("cosystem", value) => Kind::Cosystem(nodes(value)?),
        ("noop", value) => Kind::Noop(nodes(value)?),
        ("container", value) => Kind::Container(value.map(word).transpose()?),
        ("inner", Some(value)) => Kind::Inner(inner(value)?),
        ("timesharing", Some(value)) => Kind::TimeSharing(share_form(value)?),
        ("placeholder", Some(value)) => Kind::Placeholder(word(value)?),
        ("allowed" | "allow", Some(value)) => Kind::Allowed(word(value)?),
        ("postpone", Some(value)) => Kind::Postpone(date::seconds(value, reading.now, reading.zone)?),
        ("deadline", Some(value)) => Kind::Deadline(date::seconds(value, reading.now, reading.zone)?),
        ("expire", Some(value)) => Kind::Expire(date::seconds(value, reading.now, reading.zone)?),
        ("state", Some("permissive")) => Kind::Permissive,
        ("state", Some(value)) => return Err(format!("expected permissive, found '{}'", shown(value))),
        (name, Some(value)) if name.starts_with("token:") => {
            let count = decimal(value).filter(|count| *count > 0);
            let count = count.ok_or_else(|| format!("expected a number from 1, found '{}'", shown(value)))?;
            Kind::Token(word(&name["token:".len()..])?, count)
        }
        (name, _) if reading.site_types.iter().any(|own| own == name) => Kind::Site,
        ("besteffort" | "idempotent" | "desktop_computing" | "no_quotas", Some(_)) => {
            return Err("this type takes no value".to_owned());
        }
        (name, None) if NAMES.contains(&name) => return Err("the value is missing".to_owned()),
        (name, _) => {
            let known = NAMES.into_iter().chain(reading.site_types.iter().map(String::as_str));
            return Err(format!("no type is called '{}'{}", shown(name), suggestion(name, known)));
        }
    };
    Ok(Type { kind, name: name.to_owned(), text: text.to_owned() })
}

fn nodes(value: Option<&str>) -> Result<Nodes, String> {
    match value {
        None => Ok(Nodes::Alive),
        Some("standby") => Ok(Nodes::Standby),
        Some(value) => Err(format!("expected no value or standby, found '{}'", shown(value))),
    }
}

fn word(value: &str) -> Result<String, String> {
    if is_name(value) { Ok(value.to_owned()) } else { Err(format!("'{}' is no name", shown(value))) }
}

/// The id or the name of a container.
fn inner(value: &str) -> Result<String, String> {
    match decimal::<u64>(value) {
        Some(id) if id > 0 => Ok(id.to_string()),
        _ if is_name(value) => Ok(value.to_owned()),
        _ => Err(format!("expected the id or the name of a container, found '{}'", shown(value))),
    }
}

/// `user` or `*`, and `name` or `*`, in either order.
fn share_form(value: &str) -> Result<ShareForm, String> {
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    let form = match parts[..] {
        ["user", "name"] | ["name", "user"] => Some((true, true)),
        ["user", "*"] | ["*", "user"] => Some((true, false)),
        ["*", "name"] | ["name", "*"] => Some((false, true)),
        ["*", "*"] => Some((false, false)),
        _ => None,
    };
    let wrong = || format!("expected user or *, a comma, and name or *, found '{}'", shown(value));
    form.map(|(by_user, by_name)| ShareForm { by_user, by_name }).ok_or_else(wrong)
}
