//! All attributes: `-f`, `-f -F dsv` and `-f -F json`.

use super::{
    cells::printable,
    status::{Kind, Status, Value},
};
use jiff::tz::TimeZone;
use muster_schemas::time::Timestamp;
use std::fmt::Write;

/// The characters of a line before it is broken.
const WIDTH: usize = 78;

/// What precedes each thing.
const fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Job => "Job Id",
        Kind::Queue => "Queue",
        Kind::Server => "Server",
        Kind::Node => "Node",
    }
}

/// The text of `-f`. Lines are broken at commas, unless `wide`.
pub fn text(things: &[Status], zone: &TimeZone, wide: bool) -> String {
    let mut out = String::new();
    for thing in things {
        let _ = writeln!(out, "{}: {}", title(thing.kind), thing.name);
        for attribute in &thing.attributes {
            let name = match &attribute.resource {
                None => attribute.name.to_owned(),
                Some(resource) => format!("{}.{resource}", attribute.name),
            };
            let _ = write!(out, "    {name} = ");
            let value = attribute.value.text(zone);
            match wide {
                true => out.push_str(&printable(&value)),
                false => wrapped(&value, name.len() + 7, &mut out),
            }
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// Writes a value that begins in a column. A part between commas that does not fit goes to the next line, and is broken
/// there if need be.
fn wrapped(value: &str, column: usize, out: &mut String) {
    let mut column = column;
    for (place, part) in value.split(',').filter(|part| !part.is_empty()).enumerate() {
        if place > 0 {
            out.push(',');
        }
        let part = printable(part);
        let length = part.chars().count();
        if length + column < WIDTH {
            out.push_str(&part);
            column += length;
            continue;
        }
        if place > 0 {
            out.push_str("\n\t");
            column = 9;
        }
        for c in part.chars() {
            out.push(c);
            column += 1;
            if column > WIDTH {
                out.push_str("\n\t");
                column = 8;
            }
        }
    }
}

/// The text of a value for programs: points in time are numbers where they are about nodes.
fn text_of(kind: Kind, value: &Value, zone: &TimeZone) -> String {
    match value {
        Value::Time(time) if kind == Kind::Node => time.unix_seconds().to_string(),
        Value::Jobs(jobs) => jobs.iter().map(|(job, core)| format!("{job}/{core}")).collect::<Vec<_>>().join(","),
        other => other.text(zone),
    }
}

/// One line for each thing, with a delimiter between the attributes (`-F dsv`, `-D`).
pub fn dsv(things: &[Status], zone: &TimeZone, delimiter: &str) -> String {
    let mut out = String::new();
    let protected = format!("\\{delimiter}");
    for thing in things {
        let _ = match thing.kind {
            Kind::Node => write!(out, "Name={}", thing.name),
            kind => write!(out, "{}: {}", title(kind), thing.name),
        };
        for attribute in &thing.attributes {
            let name = attribute.name;
            let resource = attribute.resource.as_ref().map(|resource| format!(".{resource}")).unwrap_or_default();
            let value = text_of(thing.kind, &attribute.value, zone).replace('\n', "\\n").replace('\u{c}', "\\f");
            let value = if delimiter.is_empty() { value } else { value.replace(delimiter, &protected) };
            let _ = write!(out, "{delimiter}{name}{resource}={}", printable(&value));
        }
        out.push('\n');
    }
    out
}

/// The first members of the JSON.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// The current time.
    pub now: Timestamp,
    /// The version.
    pub version: &'a str,
    /// The server's name.
    pub server: &'a str,
}

/// The JSON of `-F json`, laid out as the original does. Without things there is only the header.
pub fn json(things: &[Status], zone: &TimeZone, header: &Header<'_>) -> String {
    let mut out = String::from("{\n");
    let _ = write!(out, "    \"timestamp\":{},\n    \"pbs_version\":", header.now.unix_seconds());
    quoted(header.version, &mut out);
    out.push_str(",\n    \"pbs_server\":");
    quoted(header.server, &mut out);
    if let Some(one) = things.first() {
        let group = match one.kind {
            Kind::Job => "Jobs",
            Kind::Queue => "Queue",
            Kind::Server => "Server",
            Kind::Node => "nodes",
        };
        let _ = write!(out, ",\n    \"{group}\":{{");
        for (place, thing) in things.iter().enumerate() {
            out.push_str(if place > 0 { ",\n        " } else { "\n        " });
            quoted(&thing.name, &mut out);
            out.push_str(":{");
            members(thing, zone, &mut out);
            out.push_str("\n        }");
        }
        out.push_str("\n    }");
    }
    out.push_str("\n}\n");
    out
}

/// The attributes of a thing. Resources of one attribute are members of one object.
fn members(thing: &Status, zone: &TimeZone, out: &mut String) {
    let mut open: Option<&str> = None;
    for (place, attribute) in thing.attributes.iter().enumerate() {
        let goes_on = attribute.resource.is_some() && open == Some(attribute.name);
        if open.is_some() && !goes_on {
            out.push_str("\n            }");
            open = None;
        }
        out.push_str(if place > 0 { ",\n            " } else { "\n            " });
        match &attribute.resource {
            None => {
                quoted(attribute.name, out);
                out.push(':');
                value(thing.kind, &attribute.value, zone, out);
            }
            Some(resource) => {
                if !goes_on {
                    quoted(attribute.name, out);
                    out.push_str(":{\n            ");
                    open = Some(attribute.name);
                }
                out.push_str("    ");
                quoted(resource, out);
                out.push(':');
                value(thing.kind, &attribute.value, zone, out);
            }
        }
    }
    if open.is_some() {
        out.push_str("\n            }");
    }
}

fn value(kind: Kind, value: &Value, zone: &TimeZone, out: &mut String) {
    match value {
        Value::Variables(variables) => {
            out.push('{');
            for (place, (name, value)) in variables.iter().enumerate() {
                out.push_str(if place > 0 { ",\n                " } else { "\n                " });
                quoted(name, out);
                out.push(':');
                scalar(value, out);
            }
            out.push_str("\n            }");
        }
        Value::Jobs(jobs) => {
            let mut names: Vec<&str> = jobs.iter().map(|(job, _)| job.as_str()).collect();
            names.dedup();
            out.push('[');
            for (place, name) in names.into_iter().enumerate() {
                out.push_str(if place > 0 { ",\n                " } else { "\n                " });
                quoted(name, out);
            }
            out.push_str("\n            ]");
        }
        other => scalar(&text_of(kind, other, zone), out),
    }
}

/// A number if the text is one, as in the original, else a string.
fn scalar(text: &str, out: &mut String) {
    if is_number(text) { out.push_str(text) } else { quoted(text, out) }
}

/// Whether the text is a number as JSON writes it.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').map_or((unsigned, None), |(whole, part)| (whole, Some(part)));
    let digits = |text: &str| !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = digits(whole) && (whole == "0" || !whole.starts_with('0'));
    is_whole && fraction.is_none_or(digits)
}

fn quoted(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
