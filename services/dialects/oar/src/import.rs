//! A configuration of muster from that of OAR: from the output of `oarnodes -J` and from `oar.conf`.

mod keys;
mod nodes;
mod toml;

use std::fmt::Write as _;
use toml::quoted;

pub use nodes::Node;

/// The outcome of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The configuration file.
    pub text: String,
    /// What it does not say, each with its place.
    pub warnings: Vec<String>,
}

/// Reads both, either of which may be missing, and writes the configuration of a cluster of this name.
///
/// # Errors
/// An output of `oarnodes` that cannot be read, as a sentence.
pub fn configuration(name: &str, nodes: Option<&str>, conf: Option<&str>) -> Result<Imported, String> {
    let mut imported = Imported::default();
    let settings = keys::read(conf.unwrap_or_default(), &mut imported.warnings);
    let nodes = match nodes {
        Some(text) => nodes::read(text, &mut imported.warnings)?,
        None => Vec::new(),
    };
    let out = &mut imported.text;
    let _ = writeln!(out, "[cluster]\nname = {}\ndefault_queue = \"default\"", quoted(name));
    for (key, value) in &settings.cluster {
        let _ = writeln!(out, "{key} = {value}");
    }
    if let Some(seconds) = settings.window_seconds {
        let _ = writeln!(out, "\n[accounting]\nwindow_seconds = {seconds}");
    }
    // The queues that OAR comes with.
    for (queue, priority) in [("admin", 10), ("default", 2), ("besteffort", 0)] {
        let _ = writeln!(out, "\n[[queues]]\nname = \"{queue}\"\npriority = {priority}");
        if queue == "admin" {
            let _ = writeln!(out, "users = [\"root\"] # and the members of the group admin");
        }
    }
    for node in &nodes {
        node.write(out);
    }
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = r#"{
        "n2": {"3": {"resource_id": "3", "network_address": "n2", "state": "Alive", "type": "default",
                     "properties": {"cpu": "2", "core": "3", "mem": "64", "switch": "s1", "besteffort": "NO"}}},
        "n1": {"1": {"resource_id": "1", "network_address": "n1", "state": "Alive", "type": "default", "memnode": 2048,
                     "cpu": "1", "core": "1", "wheels": null, "ib": "YES", "color": "red"},
               "2": {"resource_id": "2", "network_address": "n1", "state": "Absent", "type": "default", "memnode": 2048,
                     "cpu": "1", "core": "2", "ib": "YES", "color": "blue"}},
        "4": {"resource_id": 4, "type": "licence", "state": "Alive", "network_address": ""},
        "5": {"resource_id": 5, "type": "default", "state": "Dead", "network_address": "n9"}
    }"#;
    const CONF: &str = "# comment\nACCOUNTING_WINDOW=\"3600\"\n\nFINAUD_FREQUENCY=120\nSCHEDULER_TIMEOUT=\"30\"\n\
                        QUOTAS=\"yes\"\nSOMETHING_ELSE=1\nnonsense\n";

    /// OAR-C-13, OAR-A-08, OAR-R-01
    #[test]
    fn nodes_and_settings_are_taken_over_or_named() {
        let imported = configuration("lyon", Some(NODES), Some(CONF)).expect("it can be read");
        for part in [
            "name = \"lyon\"\ndefault_queue = \"default\"\nnode_lost_after_seconds = 120\n",
            "[accounting]\nwindow_seconds = 3600\n",
            "[[queues]]\nname = \"besteffort\"\npriority = 0\n",
            "[[nodes]]\nname = \"n1\"\ncores = 2\nsockets = 1\nmemory = \"2048M\"\n\
             properties = { \"ib\" = true, \"memnode\" = 2048 }\n",
            "name = \"n2\"\ncores = 1\nsockets = 1\nmemory = \"1024M\"\n\
             properties = { \"besteffort\" = false, \"mem\" = 64, \"switch\" = \"s1\" }\n",
        ] {
            assert!(imported.text.contains(part), "{part}:\n{}", imported.text);
        }
        assert!(!imported.text.contains("n9"), "{}", imported.text);
        let n1 = imported.text.find("\"n1\"");
        assert!(n1 < imported.text.find("\"n2\""), "nodes are in the order of their resources");
        let warnings = imported.warnings.join("\n");
        for part in [
            "oar.conf, line 6: QUOTAS",
            "oar.conf, line 7: SOMETHING_ELSE",
            "oar.conf, line 8: expected KEY=VALUE",
            "node n1: color differs",
            "node n2: no memory is known",
            "1 resource of type licence",
            "node n9: Dead",
        ] {
            assert!(warnings.contains(part), "{part}:\n{warnings}");
        }
        assert!(!warnings.contains("SCHEDULER_TIMEOUT"), "it has its usual value: {warnings}");
    }

    /// OAR-C-13
    #[test]
    fn other_texts_are_refused() {
        for text in ["", "[", "7", "{}"] {
            assert!(configuration("x", Some(text), None).is_err(), "{text}");
        }
        assert_eq!(quoted("a\"b\\\n"), r#""a\"b\\\u000A""#);
    }
}
