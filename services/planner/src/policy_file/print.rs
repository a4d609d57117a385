//! Prints policies in the form of policy files.

use super::read::{CANDIDATES, COMPONENT_PRIORITIES, COMPONENT_STARTS, MODES, NAMED_KEYS, PER, VERSION};
use muster_schemas::policy::{
    Backfill, BackfillMode, ComponentStart, Components, Limit, OrderKey, Policy, PolicySource, Turns, UseShare,
};
use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
};

/// The policy as a file, which reads as the same policy.
///
/// Every setting is printed, even if it is the default, except those without a value.
pub fn print(policy: &Policy) -> String {
    let Policy { name, order, backfill, limits, queues, max_starts, turns, starts_nothing, sources, use_share } =
        policy;
    let mut text = String::new();
    for PolicySource { name, sha256 } in sources {
        let _ = writeln!(text, "# made of {} with SHA-256 {sha256}", name.escape_debug());
    }
    write(&mut text, "version", VERSION);
    write(&mut text, "name", quote(name));
    write(&mut text, "order", print_order(order));
    write(&mut text, "max_starts", max_starts);
    write_optional(&mut text, "starts_nothing", starts_nothing.as_deref().map(quote));
    text.push_str("\n[backfill]\n");
    write_backfill(&mut text, backfill);
    text.push_str("\n[backfill.components]\n");
    write_components(&mut text, &backfill.components);
    for limit in limits {
        text.push_str("\n[[limit]]\n");
        write_limit(&mut text, limit);
    }
    for (name, queue) in queues {
        let name = quote(name);
        let _ = writeln!(text, "\n[queue.{name}]");
        if let Some(order) = &queue.order {
            write(&mut text, "order", print_order(order));
        }
        if let Some(backfill) = &queue.backfill {
            let _ = writeln!(text, "\n[queue.{name}.backfill]");
            write_backfill(&mut text, backfill);
        }
    }
    if let Some(turns) = turns {
        write_turns(&mut text, turns);
    }
    if let Some(rule) = use_share {
        write_use_share(&mut text, rule);
    }
    text
}

fn write_use_share(text: &mut String, rule: &UseShare) {
    let table = BTreeMap::from([("use_share", rule)]);
    let _ = write!(text, "\n{}", toml::to_string(&table).unwrap_or_default());
}

/// Tables that have the names of their fields. A table that cannot be printed does not exist: all values are plain.
fn write_turns(text: &mut String, turns: &Turns) {
    let table = BTreeMap::from([("turns", turns)]);
    let _ = write!(text, "\n{}", toml::to_string(&table).unwrap_or_default());
}

fn write(text: &mut String, key: &str, value: impl Display) {
    let _ = writeln!(text, "{key} = {value}");
}

fn write_optional(text: &mut String, key: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        write(text, key, value);
    }
}

fn print_order(order: &[OrderKey]) -> String {
    let keys: Vec<String> = order.iter().map(print_key).collect();
    format!("[{}]", keys.join(", "))
}

fn print_key(key: &OrderKey) -> String {
    match key {
        OrderKey::Formula { text, descending: false } => format!("{{ formula = {} }}", quote(text)),
        OrderKey::Formula { text, descending: true } => format!("{{ formula = {}, descending = true }}", quote(text)),
        named => word(&NAMED_KEYS, named),
    }
}

fn write_backfill(text: &mut String, backfill: &Backfill) {
    let Backfill { mode, reservations, candidates, look_ahead, require_walltime, components: _ } = backfill;
    write(text, "mode", word(&MODES, mode));
    write_optional(text, "reservations", *reservations);
    write_optional(text, "look_ahead", *look_ahead);
    if *mode != BackfillMode::None {
        write(text, "candidates", word(&CANDIDATES, candidates));
        write(text, "require_walltime", require_walltime);
    }
}

fn write_components(text: &mut String, components: &Components) {
    let Components { start, interval_seconds, window_seconds, priority, share_nodes } = components;
    write(text, "start", word(&COMPONENT_STARTS, start));
    if *start == ComponentStart::BackfillPass {
        write(text, "interval_seconds", interval_seconds);
        write_optional(text, "window_seconds", *window_seconds);
    }
    write(text, "priority", word(&COMPONENT_PRIORITIES, priority));
    write(text, "share_nodes", share_nodes);
}

fn write_limit(text: &mut String, limit: &Limit) {
    let Limit { per, name, queue, max_running_jobs, max_nodes, max_cores, max_gpus, .. } = limit;
    write(text, "per", word(&PER, per));
    write_optional(text, "name", name.as_deref().map(quote));
    write_optional(text, "queue", queue.as_deref().map(quote));
    write_optional(text, "max_running_jobs", *max_running_jobs);
    write_optional(text, "max_nodes", *max_nodes);
    write_optional(text, "max_cores", *max_cores);
    write_optional(text, "max_gpus", *max_gpus);
    write_maxima(text, "max_attributes", &limit.max_attributes);
    write_maxima(text, "max_attributes_of_job", &limit.max_attributes_of_job);
}

fn write_maxima(text: &mut String, key: &str, maxima: &BTreeMap<String, u64>) {
    let entries: Vec<String> = maxima.iter().map(|(name, most)| format!("{} = {most}", quote(name))).collect();
    if !entries.is_empty() {
        write(text, key, format!("{{ {} }}", entries.join(", ")));
    }
}

/// The word for a value, in quotes. The tables have one for each value.
fn word<T: PartialEq>(known: &[(&str, T)], value: &T) -> String {
    quote(known.iter().find(|(_, meaning)| meaning == value).map_or("", |(word, _)| word))
}

/// Text as a TOML string, or as a quoted key.
fn quote(text: &str) -> String {
    let is_plain = !text.contains(char::is_control);
    if is_plain && text.contains(['"', '\\']) && !text.contains('\'') {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
