//! Writes a document as YAML in block style.

use serde_json::Value;

/// The document, after the line that begins one.
pub(super) fn text(document: &Value) -> String {
    let mut out = "---\n".to_owned();
    write(document, 0, &mut out);
    out
}

/// Writes a value at the beginning of a line, at this depth.
fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                indent(depth, out);
                out.push_str(name);
                out.push(':');
                follow(member, depth + 1, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(depth, out);
                out.push('-');
                follow(item, depth + 1, out);
            }
        }
        other => line(other, out),
    }
}

/// Writes a value behind its name or dash: on the same line, or on lines of its own.
fn follow(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            write(value, depth, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write(value, depth, out);
        }
        other => {
            out.push(' ');
            line(other, out);
        }
    }
}

/// Scalars and empty collections are written as in JSON, which YAML contains.
fn line(value: &Value, out: &mut String) {
    out.push_str(&value.to_string());
    out.push('\n');
}

fn indent(depth: usize, out: &mut String) {
    (0..depth).for_each(|_| out.push_str("  "));
}
