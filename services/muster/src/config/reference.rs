//! The reference of the configuration file, printed from the list of keys.

use super::keys::{SECTIONS, Section, Takes};
use std::fmt::Write as _;

const HEAD: &str = "# Configuration reference

<!-- Made by `muster config reference`. To change it, change `services/muster/src/config/keys.rs`. -->

muster reads one TOML file: the one named by `--config` or `MUSTER_CONFIG`, else `/etc/muster/muster.toml` if it exists.
Everything has a default; a file names only what differs. Unknown keys are refused, with their line and column and the
nearest known key. `muster config check FILE` says what is wrong with a file.

On SIGHUP the file is read again. A file with an error changes nothing. The last column says what a changed key does:

- **event**: it belongs to the cluster. The process that runs the ledger applies it, at its start and on SIGHUP, as a command
  that becomes events: `muster config show --at TIME` tells what was in force when.
- **at once**: it changes while the process runs.
- **restart**: it is reported in the log and takes effect when the process is started again.
";

/// The reference in Markdown.
pub fn reference() -> String {
    let mut text = String::from(HEAD);
    for section in SECTIONS {
        write_section(&mut text, section);
    }
    text
}

fn write_section(text: &mut String, section: &Section) {
    let _ = write!(text, "\n## `{}`\n\n{}\n\n", section.title(), section.doc);
    text.push_str("| key | value | default | meaning | takes effect |\n|---|---|---|---|---|\n");
    for key in section.keys {
        let default = match key.default {
            None => "must be given".to_owned(),
            Some("") => "none".to_owned(),
            Some(value) => format!("`{value}`"),
        };
        let takes = match (section.cluster, key.takes) {
            (true, _) => "event",
            (false, Takes::AtOnce) => "at once",
            (false, Takes::AtRestart) => "restart",
        };
        let doc = key.doc.replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{}` | {} | {default} | {doc} | {takes} |",
            key.name,
            key.kind.range().replace('|', "\\|")
        );
    }
}
