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
    for section in keys::SECTIONS {
        let mut entries = settings.section(section).peekable();
        if section == "cluster" {
            let _ = writeln!(out, "[cluster]\nname = {}\ndefault_queue = \"default\"", quoted(name));
        } else if entries.peek().is_some() {
            let _ = writeln!(out, "\n[{section}]");
        }
        for (key, value) in entries {
            let _ = writeln!(out, "{key} = {value}");
        }
    }
    // The queues that OAR comes with.
    for (queue, priority) in [("admin", 10), ("default", 2), ("besteffort", 0)] {
        let _ = writeln!(out, "\n[[queues]]\nname = \"{queue}\"\npriority = {priority}");
        if queue == "admin" {
            let _ = writeln!(out, "users = [\"root\"] # and the members of the group admin");
        }
        for line in settings.of_queues() {
            let _ = writeln!(out, "{line}");
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
            "oar.conf: QUOTAS is on without QUOTAS_CONF_FILE",
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

    /// OAR-C-13, OAR-T-25: each key that the configuration has an equivalent for is taken over.
    #[test]
    fn keys_with_an_equivalent_are_taken_over() {
        let conf = r#"
            SCHEDULER_NODE_MANAGER_WAKE_UP_CMD="/etc/oar/wake --all"
            ENERGY_SAVING_NODE_MANAGER_SLEEP_CMD=/etc/oar/sleep   # a comment
            SCHEDULER_NODE_MANAGER_IDLE_TIME=900
            ENERGY_SAVING_NODE_MANAGER_WAKEUP_TIMEOUT="1:500 11:1000"
            ENERGY_SAVING_NODES_KEEPALIVE="cluster=paradent:10 & gpu='YES' and mem=64:2"
            PROLOGUE_EXEC_FILE="/etc/oar/prologue"
            PROLOGUE_EPILOGUE_TIMEOUT=60
            SUSPEND_RESUME_FILE="/etc/oar/suspend_resume.pl"
            JOBDEL_WALLTIME=300
            RESERVATION_WAITING_RESOURCES_TIMEOUT=120
            SCHEDULER_BESTEFFORT_KILL_DURATION_BEFORE_RESERVATION=90
            SCHEDULER_TIMEOUT=20
            WALLTIME_CHANGE_ENABLED="yes"
            WALLTIME_MAX_INCREASE=7200
            WALLTIME_INCREMENT=-1
            WALLTIME_ALLOWED_USERS_TO_DELAY_JOBS="ann bob"
            DEPLOY_HOSTNAME="front"
            COSYSTEM_HOSTNAME="127.0.0.1"
            QUOTAS="yes"
            QUOTAS_CONF_FILE="/etc/oar/quotas.json"
            MAIL_SMTP_SERVER="smtp.site"
            ENERGY_SAVING_WINDOW_SIZE="many"
        "#;
        let imported = configuration("lyon", None, Some(conf)).expect("it can be read");
        let queue = "priority = 2\nwalltime_increases = { \"max_seconds\" = 7200, \"may_delay\" = [\"ann\", \"bob\"], \
                     \"step_seconds\" = 315360000 }\nattributes = { \"oar.deploy_host\" = \"front\" }\n";
        for part in [
            // A launch has time for its prolog.
            "default_queue = \"default\"\nlaunch_timeout_seconds = 120\nmake_way_ahead_seconds = 90\nreserved_nodes_wait_seconds = 120\n",
            "[energy]\nidle_seconds = 900\nkeep_awake = [\"cluster=paradent:10\", \"gpu=true,mem=64:2\"]\n\
             sleep_program = [\"/etc/oar/sleep\"]\nwake_program = [\"/etc/oar/wake\", \"--all\"]\n\
             wake_timeouts = [\"1:500\", \"11:1000\"]\n",
            "[executor]\njob_prolog = \"/etc/oar/prologue\"\nsite_program_timeout_seconds = 60\n\
             unkillable_seconds = 300\n",
            "[planner]\npass_limit_seconds = 20\n",
            "[quotas]\nfile = \"/etc/oar/quotas.json\"\n",
            "[notifier.mail]\nhost = \"smtp.site\"\n",
            queue,
        ] {
            assert!(imported.text.contains(part), "{part}:\n{}", imported.text);
        }
        let warnings = imported.warnings.join("\n");
        for part in [
            "line 7: PROLOGUE_EXEC_FILE is '/etc/oar/prologue': it runs as the account",
            "line 9: SUSPEND_RESUME_FILE: executors suspend jobs themselves",
            "line 19: COSYSTEM_HOSTNAME is '127.0.0.1': here it must be the name of a node",
            "line 23: ENERGY_SAVING_WINDOW_SIZE is 'many': expected a number from 1 to 10000; it is not taken over",
        ] {
            assert!(warnings.contains(part), "{part}:\n{warnings}");
        }
        assert_eq!(imported.warnings.len(), 4, "{warnings}");
        assert!(!imported.text.contains("suspend_program"), "it gets other arguments: {}", imported.text);
        // Best-effort jobs end ahead of reservations by the guard time at least (OAR-T-25).
        let kill = "SCHEDULER_BESTEFFORT_KILL_DURATION_BEFORE_RESERVATION";
        for (conf, seconds) in [
            (format!("{kill}=30\n"), 60),
            (format!("{kill}=30\nSCHEDULER_JOB_SECURITY_TIME=0\n"), 30),
            ("SCHEDULER_JOB_SECURITY_TIME=\"10\"\n".to_owned(), 10),
        ] {
            let imported = configuration("lyon", None, Some(&conf)).expect("it can be read");
            let line = format!("make_way_ahead_seconds = {seconds}\n");
            assert!(imported.text.contains(&line), "{conf}{}", imported.text);
        }
        // Keys that are switched off stay off.
        let off = "WALLTIME_MAX_INCREASE=10\nQUOTAS_CONF_FILE=/q\nSCHEDULER_NODE_MANAGER_SLEEP_CMD='/bin/x; rm'\n";
        let imported = configuration("lyon", None, Some(off)).expect("it can be read");
        assert!(!["increases", "quotas", "sleep"].iter().any(|word| imported.text.contains(word)), "{}", imported.text);
        assert!(imported.warnings[0].contains("a command line that no shell has to read"), "{:?}", imported.warnings);
    }

    /// OAR-C-13, OAR-R-12, OAR-T-11: the order of resources becomes one of nodes as far as it is about nodes, and the guard time is
    /// taken over.
    #[test]
    fn the_order_of_resources_and_the_guard_time_are_taken_over() {
        let usual = "scheduler_priority ASC, state_num ASC, available_upto DESC, suspended_jobs ASC, network_address ASC, resource_id ASC";
        for (order, keys, warning) in [
            (
                usual,
                "[\"awake\", \"name\"]",
                Some("scheduler_priority, available_upto, suspended_jobs of resources say nothing"),
            ),
            ("mem DESC, host, core, wheels", "[\"-mem\", \"name\"]", None),
        ] {
            let conf = format!("SCHEDULER_RESOURCE_ORDER=\"{order}\"\nSCHEDULER_JOB_SECURITY_TIME=\"60\"\n");
            let imported = configuration("lyon", None, Some(&conf)).expect("it can be read");
            for line in [format!("node_order = {keys}\n"), "guard_seconds = 60\n".to_owned()] {
                assert!(imported.text.contains(&line), "{line}{}", imported.text);
            }
            assert_eq!(imported.warnings.len(), usize::from(warning.is_some()), "{:?}", imported.warnings);
            assert!(
                imported.warnings.iter().zip(warning).all(|(told, part)| told.contains(part)),
                "{:?}",
                imported.warnings
            );
        }
        let wrong = configuration("lyon", None, Some("SCHEDULER_RESOURCE_ORDER=\"mem UP\"\n")).expect("it can be read");
        assert!(wrong.warnings[0].contains("expected ASC or DESC"), "{:?}", wrong.warnings);
        assert!(!wrong.text.contains("node_order"), "{}", wrong.text);
    }

    /// OAR-C-13: the keys of the settings that OAR's mechanisms go by are all known: taken over, usual, or named with what to do. One
    /// that is misspelt is named as well.
    #[test]
    fn the_keys_of_all_mechanisms_are_known() {
        const KEYS: &str = "ACCOUNTING_WINDOW COSYSTEM_HOSTNAME DEAD_SWITCH_TIME DEPLOY_HOSTNAME \
            DESKTOP_COMPUTING_ALLOW_CREATE_NODE DETACH_JOB_FROM_SERVER JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD \
            JUST_AFTER_SUSPEND_EXEC_FILE JUST_BEFORE_RESUME_EXEC_FILE OARSUB_DEFAULT_RESOURCES OARSUB_NODES_RESOURCES \
            RESERVATION_WAITING_RESOURCES_TIMEOUT SCHEDULER_AVAILABLE_SUSPENDED_RESOURCE_TYPE \
            SCHEDULER_BESTEFFORT_KILL_DURATION_BEFORE_RESERVATION SCHEDULER_JOB_SECURITY_TIME \
            SCHEDULER_NODE_MANAGER_IDLE_TIME SCHEDULER_NODE_MANAGER_SLEEP_CMD SCHEDULER_NODE_MANAGER_SLEEP_TIME \
            SCHEDULER_NODE_MANAGER_WAKEUP_TIME SCHEDULER_NODE_MANAGER_WAKE_UP_CMD SCHEDULER_PRIORITY_HIERARCHY_ORDER \
            SCHEDULER_RESOURCE_ORDER SCHEDULER_TIMEOUT SUSPEND_RESUME_SCRIPT_TIMEOUT USERS_ALLOWED_HOLD_RESUME \
            ENERGY_SAVING_NODES_KEEPALIVE ENERGY_SAVING_NODE_MANAGER_WAKEUP_TIMEOUT ENERGY_SAVING_WINDOW_SIZE \
            ENERGY_SAVING_WINDOW_TIME ENERGY_SAVING_WINDOW_TIMEOUT QUOTAS QUOTAS_CONF_FILE \
            SCHEDULER_FAIRSHARING_MAX_JOB_PER_USER SCHEDULER_GANTT_HOLE_MINIMUM_TIME SERVER_PROLOGUE_EXEC_FILE \
            SERVER_EPILOGUE_EXEC_FILE SERVER_PROLOGUE_EPILOGUE_TIMEOUT PROLOGUE_EXEC_FILE EPILOGUE_EXEC_FILE \
            PROLOGUE_EPILOGUE_TIMEOUT STAGEIN_CACHE_EXPIRY SCHEDULER_TOKEN_SCRIPTS OARSUB_FORCE_JOB_KEY";
        for key in KEYS.split_whitespace() {
            let imported = configuration("lyon", None, Some(&format!("{key}=\"17\"\n"))).expect("it can be read");
            assert!(!imported.warnings.join("\n").contains("is not known"), "{key}: {:?}", imported.warnings);
            let wrong = configuration("lyon", None, Some(&format!("{key}X=\"17\"\n"))).expect("it can be read");
            let told = wrong.warnings.concat();
            assert!(told.contains(&format!("{key}X is not known here")), "{told}");
        }
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
