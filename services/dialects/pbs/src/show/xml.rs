//! The XML of TORQUE's `-x`.

use super::status::{Kind, Status, Value};
use jiff::tz::TimeZone;
use std::fmt::Write;

/// All jobs or nodes in one document. Points in time are seconds since 1970.
pub fn xml(things: &[Status]) -> String {
    let mut out = String::from("<?xml version=\"1.0\"?>\n<Data>");
    for thing in things {
        let (group, name) = if thing.kind == Kind::Node { ("Node", "name") } else { ("Job", "Job_Id") };
        let _ = write!(out, "<{group}>");
        element(name, &thing.name, &mut out);
        let mut open: Option<&str> = None;
        for attribute in &thing.attributes {
            let goes_on = attribute.resource.is_some() && open == Some(attribute.name);
            if let Some(name) = open.filter(|_| !goes_on) {
                let _ = write!(out, "</{name}>");
                open = None;
            }
            let text = match &attribute.value {
                Value::Time(time) => time.unix_seconds().to_string(),
                other => other.text(&TimeZone::UTC),
            };
            match &attribute.resource {
                None => element(attribute.name, &text, &mut out),
                Some(resource) => {
                    if !goes_on {
                        let _ = write!(out, "<{}>", attribute.name);
                        open = Some(attribute.name);
                    }
                    element(resource, &text, &mut out);
                }
            }
        }
        if let Some(name) = open {
            let _ = write!(out, "</{name}>");
        }
        let _ = write!(out, "</{group}>");
    }
    out.push_str("</Data>\n");
    out
}

/// An element with a text. A name that XML does not take becomes one that it does.
fn element(name: &str, text: &str, out: &mut String) {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut name: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    let _ = write!(out, "<{name}>");
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\t' => out.push(c),
            // XML has no way to write other control characters.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    let _ = write!(out, "</{name}>");
}
