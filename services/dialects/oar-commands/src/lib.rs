//! The commands of the OAR dialect, under their own names or as `muster oar NAME`: they read files, ask the system and
//! print. `muster-oar`, which does none of that, knows words and tables.

mod answer;
mod change;
mod cluster;
mod configuration;
mod demand;
mod ended;
mod events;
mod filter;
mod gantt;
mod import;
mod interactive;
mod jobs;
mod lower;
mod node_events;
mod oaraccounting;
mod oarmonitor;
mod oarnodes;
mod oarprint;
mod oarproperty;
mod oarqueue;
mod oarsh;
mod oarstat;
mod oarsub;
mod oarwalltime;
pub mod quota_file;
mod reserved;
mod rules;
mod select;
mod setting;
mod site;
mod staging;
mod words;
#[cfg(test)]
mod worked_examples;

use ended::{Ended, print};
use muster_cli::{
    connection::ConnectionOptions,
    link::{self, Linked},
    stderr_line,
};
use muster_oar::NAME;

/// The program names of this dialect's commands.
pub const TOOLS: [&str; 19] = [
    "oarsub",
    "oarstat",
    "oardel",
    "oarhold",
    "oarresume",
    "oarnodes",
    "oarnodesetting",
    "oaraccounting",
    "oaradmissionrules",
    "oarcp",
    "oarmonitor",
    "oarnotify",
    "oarprint",
    "oarproperty",
    "oarqueue",
    "oarremoveresource",
    "oarsh",
    "oarwalltime",
    "oar_resources_add",
];

/// Carries the command line out if the program was called through the link of a command of OAR; `None` if it was not.
pub fn link() -> Option<u8> {
    match link::called_as(TOOLS)? {
        Ok(Linked { tool, words, connection }) => Some(run(&connection, tool, &words)),
        Err(status) => Some(status),
    }
}

/// `muster oar NAME ...`.
pub fn words(connection: &ConnectionOptions, words: &[String]) -> u8 {
    if let Some((name, rest)) = words.split_first().filter(|(name, _)| *name == "import") {
        return status_of(name, import::run(rest));
    }
    let known = words.split_first().and_then(|(name, rest)| Some((TOOLS.into_iter().find(|tool| tool == name)?, rest)));
    match known {
        Some((tool, rest)) => run(connection, tool, rest),
        None => {
            stderr_line!("muster: usage: muster {NAME} {}|import ...", TOOLS.join("|"));
            2
        }
    }
}

fn run(connection: &ConnectionOptions, tool: &'static str, words: &[String]) -> u8 {
    if matches!(words, [word] if word == "-V" || word == "--version") {
        print(&format!("OAR version: muster {}\n", env!("CARGO_PKG_VERSION")));
        return 0;
    }
    let ended = match tool {
        "oarsub" => oarsub::run(connection, words),
        "oarstat" => oarstat::run(connection, words),
        "oarnodes" => oarnodes::run(connection, words),
        "oarnodesetting" => setting::run(connection, words),
        "oarremoveresource" => setting::remove(connection, words),
        "oar_resources_add" => setting::resources_add(words),
        "oarproperty" => oarproperty::run(connection, words),
        "oarqueue" | "oarnotify" => oarqueue::run(connection, tool, words),
        "oaradmissionrules" => rules::run(connection, words),
        "oaraccounting" => oaraccounting::run(connection, words),
        "oarwalltime" => oarwalltime::run(connection, words),
        "oarprint" => oarprint::run(connection, words),
        "oarmonitor" => oarmonitor::run(connection, words),
        "oarsh" => oarsh::run(connection, words),
        "oarcp" => oarsh::copy(connection, words),
        _ => change::run(connection, tool, words),
    };
    status_of(tool, ended)
}

/// The exit status of a command; a failure is told.
fn status_of(tool: &str, ended: Ended) -> u8 {
    ended.unwrap_or_else(|failure| {
        stderr_line!("{tool}: {}", failure.text);
        failure.status
    })
}
