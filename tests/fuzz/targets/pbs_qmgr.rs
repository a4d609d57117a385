//! Commands of `qmgr`, and what they do to a configuration.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_pbs::qmgr::{edit, script};
use muster_schemas::cluster::{ClusterConfig, QueueSpec};

fuzz_target!(|text: &str| {
    let batch = QueueSpec { name: "batch".into(), ..QueueSpec::default() };
    let mut config = ClusterConfig { queues: vec![batch], ..ClusterConfig::default() };
    for command in script(text).into_iter().filter_map(|written| written.command.ok()) {
        let names: Vec<String> = command.names.iter().filter_map(|name| name.name.clone()).collect();
        if let Ok(edit) = edit(&command, &names, &config) {
            config = edit.config;
        }
    }
});
