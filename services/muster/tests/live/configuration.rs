//! Changes the configuration of a running cluster: everything that a file does not name stays.

use crate::system::System;
use nix::sys::signal::Signal;

const CLUSTER: &str = r#"
[cluster]
name = "alpha"
administrators = ["ada", "ben"]
operators = ["oper"]
kill_grace_seconds = 3
[[queues]]
name = "default"
users = ["ada"]
max_walltime_seconds = 3600
"#;

/// The configuration in force, without the node and the licences.
fn rules(system: &System) -> serde_json::Value {
    let mut config = system.json(&["config", "show", "--json"]);
    config.as_object_mut().unwrap().retain(|key, _| key == "settings" || key == "queues");
    config
}

fn licences(system: &System) -> serde_json::Value {
    system.json(&["config", "show", "--json"])["licences"].clone()
}

/// A file with one section is applied, reloaded, and given at a restart: administrators stay administrators, and a
/// restricted queue stays restricted.
#[test]
fn what_a_file_does_not_name_stays() {
    let mut system = System::stopped();
    system.write("muster.toml", CLUSTER);
    let file = system.path("muster.toml").display().to_string();
    system.restart(&["--nodes", "1", "--cpus", "2", "--memory", "1G", "--config", &file]);
    let before = rules(&system);
    assert_eq!(before["settings"]["name"], "alpha");

    system.write("licence.toml", "[licences]\nmatlab = 2\n");
    system.ok(&["config", "apply", "--keep", "licence.toml"]);
    assert_eq!((rules(&system), &licences(&system)["matlab"]), (before.clone(), &2.into()));

    system.write("muster.toml", "[licences]\nmatlab = 3\n");
    system.signal(Signal::SIGHUP);
    system.wait_until("the reload is done", || licences(&system)["matlab"] == 3);
    assert_eq!(rules(&system), before);

    system.write("muster.toml", "[licences]\nmatlab = 4\n");
    system.stop();
    system.restart(&["--config", &file]);
    assert_eq!((rules(&system), &licences(&system)["matlab"]), (before, &4.into()));
    let node = &system.json(&["config", "show", "--json"])["nodes"][0];
    assert_eq!((&node["name"], &node["cores"]), (&"node1".into(), &2.into()), "as the first start made it");
}

/// The difference is shown; without a terminal nobody is asked; removing rights needs an explicit option.
#[test]
fn a_whole_file_is_shown_and_lists_of_users_are_not_forgotten() {
    let mut system = System::stopped();
    system.write("muster.toml", CLUSTER);
    let file = system.path("muster.toml").display().to_string();
    system.restart(&["--nodes", "1", "--cpus", "2", "--memory", "1G", "--config", &file]);
    let shown = system.ok(&["config", "show"]);

    system.write("next.toml", &shown.replace("kill_grace_seconds = 3", "kill_grace_seconds = 5"));
    let dry = system.ok(&["config", "apply", "--dry-run", "next.toml"]);
    assert!(dry.starts_with("cluster.kill_grace_seconds: 3 -> 5\nnothing was changed"), "{dry}");
    assert_eq!(system.ok(&["config", "show"]), shown);
    let applied = system.ok(&["config", "apply", "next.toml"]);
    assert!(applied.starts_with("cluster.kill_grace_seconds: 3 -> 5\napplied"), "{applied}");
    assert_eq!(system.ok(&["config", "apply", "next.toml"]), "this is in force already\n");

    let without = |line: &str| shown.lines().filter(|known| !known.starts_with(line)).collect::<Vec<_>>().join("\n");
    for (line, words) in
        [("administrators", "administrators: not named"), ("users", "queue `default`: users: not named")]
    {
        system.write("next.toml", &without(line));
        let refused = system.run(&["config", "apply", "--yes", "next.toml"]);
        assert!(refused.status == 1 && refused.stderr.contains(words), "{refused:?}");
    }
    system.write("next.toml", &shown.replace(r#"administrators = ["ada", "ben"]"#, "administrators = []"));
    let applied = system.ok(&["config", "apply", "--yes", "next.toml"]);
    assert!(applied.contains(r#"cluster.administrators: ["ada","ben"] -> []"#), "{applied}");
}

/// D1: who sits at a terminal sees the difference and is asked, and what is not confirmed is not done. Emptying a list
/// then needs no option.
#[test]
fn who_sits_at_a_terminal_is_asked() {
    let mut system = System::stopped();
    system.write("muster.toml", CLUSTER);
    let file = system.path("muster.toml").display().to_string();
    system.restart(&["--nodes", "1", "--cpus", "2", "--memory", "1G", "--config", &file]);
    let shown = system.ok(&["config", "show"]);
    system.write("next.toml", "[cluster]\noperators = []\nkill_grace_seconds = 7\n");
    let apply = ["config", "apply", "--keep", "next.toml"];
    for answer in ["n", "", "yeah"] {
        let refused = system.answer(&apply, "apply this? [y/N] ", answer);
        assert_eq!(refused.status, 1, "{answer}: {refused:?}");
        assert!(refused.stdout.contains("cluster.kill_grace_seconds: 3 -> 7\r\n"), "{refused:?}");
        assert!(refused.stdout.contains("nothing was changed") && !refused.stdout.contains("applied"), "{refused:?}");
        assert_eq!(system.ok(&["config", "show"]), shown, "{answer}");
    }
    let applied = system.answer(&apply, "apply this? [y/N] ", "y");
    assert!(applied.status == 0 && applied.stdout.contains("applied; in force from sequence "), "{applied:?}");
    let after = rules(&system);
    let settings = &after["settings"];
    assert_eq!((&settings["operators"], &settings["kill_grace_seconds"]), (&serde_json::json!([]), &7.into()));
    assert_eq!(settings["administrators"], serde_json::json!(["ada", "ben"]), "what the file does not name stays");
}

/// D1: if nobody can be asked, a list of users is only emptied with an explicit option.
#[test]
fn a_list_of_users_is_emptied_only_if_that_is_said() {
    let mut system = System::stopped();
    system.write("muster.toml", CLUSTER);
    let file = system.path("muster.toml").display().to_string();
    system.restart(&["--nodes", "1", "--cpus", "2", "--memory", "1G", "--config", &file]);
    let shown = system.ok(&["config", "show"]);
    for (text, list, shows) in [
        ("[cluster]\nadministrators = []\n", "cluster.administrators", "cluster.administrators"),
        ("[cluster]\noperators = []\n", "cluster.operators", "cluster.operators"),
        ("[[queues]]\nname = \"default\"\nusers = []\n", "the users of queue default", "queue default: users"),
    ] {
        system.write("next.toml", text);
        let refused = system.run(&["config", "apply", "--keep", "next.toml"]);
        let told = format!("this empties {list}. Standard input is not a terminal, so give --yes");
        assert!(refused.status == 1 && refused.stderr.contains(&told), "{text}: {refused:?}");
        assert!(refused.stdout.starts_with(shows) && !refused.stdout.contains("applied"), "{refused:?}");
        assert_eq!(system.ok(&["config", "show"]), shown, "{text}");
        let dry = system.ok(&["config", "apply", "--keep", "--dry-run", "next.toml"]);
        assert!(dry.contains("nothing was changed"), "{dry}");
    }
    // Replacing users does not empty a list.
    system.write("next.toml", "[cluster]\nadministrators = [\"ada\"]\n");
    system.ok(&["config", "apply", "--keep", "next.toml"]);
    system.write("next.toml", "[cluster]\nadministrators = []\n");
    let applied = system.ok(&["config", "apply", "--keep", "--yes", "next.toml"]);
    assert!(applied.contains(r#"cluster.administrators: ["ada"] -> []"#), "{applied}");
}
