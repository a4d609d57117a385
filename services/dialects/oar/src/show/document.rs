//! Documents for programs: JSON, YAML, XML and the form of Perl.

use serde_json::Value;
use std::fmt::Write;

/// The form of a document: `-J`, `-Y`, `-X` and `-D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// XML, as `XML::Dumper` lays it out.
    Xml,
    /// A Perl expression, as `Data::Dumper` lays it out.
    Dumper,
}

/// A document, with a line end.
pub fn written(value: &Value, form: Form) -> String {
    let mut out = String::new();
    match form {
        Form::Json => out = format!("{value:#}\n"),
        Form::Yaml => {
            out.push_str("---");
            yaml(value, 0, &mut out);
        }
        Form::Xml => {
            out.push_str("<perldata>\n");
            xml(value, 1, &mut out);
            out.push_str("</perldata>\n");
        }
        Form::Dumper => {
            perl(value, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

/// Writes a value behind a `-` or a `:`, and its line end.
fn yaml(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            for (key, value) in entries {
                let _ = write!(out, "{}{}:", "  ".repeat(depth), yaml_text(key));
                yaml(value, depth + 1, out);
            }
        }
        Value::Array(entries) if !entries.is_empty() => {
            out.push('\n');
            for value in entries {
                let _ = write!(out, "{}-", "  ".repeat(depth));
                yaml(value, depth + 1, out);
            }
        }
        Value::String(text) => {
            let _ = writeln!(out, " {}", yaml_text(text));
        }
        // Empty lists, numbers and `null` are the same as in JSON.
        other => {
            let _ = writeln!(out, " {other}");
        }
    }
}

/// A text: plain if nothing in it has a meaning in YAML, else as in JSON.
fn yaml_text(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

fn xml(value: &Value, depth: usize, out: &mut String) {
    let indent = " ".repeat(depth);
    let mut items = |kind: &str, entries: Vec<(String, &Value)>| {
        let _ = writeln!(out, "{indent}<{kind}>");
        for (key, value) in entries {
            match value {
                Value::Object(_) | Value::Array(_) => {
                    let _ = writeln!(out, "{indent} <item key=\"{}\">", escaped(&key));
                    xml(value, depth + 2, out);
                    let _ = writeln!(out, "{indent} </item>");
                }
                Value::Null => {
                    let _ = writeln!(out, "{indent} <item key=\"{}\" defined=\"false\"></item>", escaped(&key));
                }
                value => {
                    let _ = writeln!(out, "{indent} <item key=\"{}\">{}</item>", escaped(&key), escaped(&plain(value)));
                }
            }
        }
        let _ = writeln!(out, "{indent}</{kind}>");
    };
    match value {
        Value::Object(entries) => items("hashref", entries.iter().map(|(key, value)| (key.clone(), value)).collect()),
        Value::Array(entries) => {
            items("arrayref", entries.iter().enumerate().map(|(key, value)| (key.to_string(), value)).collect());
        }
        value => {
            let _ = writeln!(out, "{indent}<scalar>{}</scalar>", escaped(&plain(value)));
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A text in XML. Characters that XML cannot have are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

fn perl(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth + 1);
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push_str("{\n");
            for (place, (key, value)) in entries.iter().enumerate() {
                let _ = write!(out, "{indent}{} => ", perl_text(key));
                perl(value, depth + 1, out);
                out.push_str(if place + 1 < entries.len() { ",\n" } else { "\n" });
            }
            let _ = write!(out, "{}}}", "  ".repeat(depth));
        }
        Value::Array(entries) if !entries.is_empty() => {
            out.push_str("[\n");
            for (place, value) in entries.iter().enumerate() {
                out.push_str(&indent);
                perl(value, depth + 1, out);
                out.push_str(if place + 1 < entries.len() { ",\n" } else { "\n" });
            }
            let _ = write!(out, "{}]", "  ".repeat(depth));
        }
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::Null => out.push_str("undef"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::Bool(is_true) => out.push(if *is_true { '1' } else { '0' }),
        Value::String(text) => out.push_str(&perl_text(text)),
    }
}

/// A text in single quotes, in which only the quote and the backslash mean something.
fn perl_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
