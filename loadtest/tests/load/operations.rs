//! The files in `ops/` are right about muster.

use crate::common;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn the_example_of_a_configuration_is_right() {
    let mut check = Command::new(common::muster());
    check.args(["config", "check"]).arg(common::repository().join("ops/muster.toml.example"));
    let (success, text) = common::run(check);
    assert!(success, "{text}");
}

/// The dashboard, the alerts and the table in the book name existing metrics, and none twice (D8).
#[test]
fn dashboard_alerts_and_book_name_metrics_that_exist() {
    let dashboard = read(&common::repository().join("ops/grafana/muster.json"));
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("the dashboard is JSON");
    let alerts = read(&common::repository().join("ops/prometheus/muster.rules.yaml"));
    let expressions: Vec<&str> = alerts.lines().filter_map(|line| line.trim_start().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), alerts.matches("- alert: ").count(), "an alert is without an expression on one line");
    let book = read(&common::repository().join("docs/operate.md"));
    let table: Vec<&str> = book.lines().filter(|line| line.starts_with("| `muster_")).collect();
    let mut made = BTreeSet::new();
    sources(&common::repository().join("services"), &mut |text| made.append(&mut metrics_in(text)));
    for (place, shown) in [("dashboard", &dashboard), ("alerts", &expressions.join("\n")), ("book", &table.join("\n"))]
    {
        let shown = metrics_in(shown);
        assert!(shown.len() >= 8, "{place}: {shown:?}");
        let missing: Vec<_> = shown.difference(&made).collect();
        assert!(missing.is_empty(), "{place}: no service makes {missing:?}");
    }
}

/// Every word that looks like the name of a metric, without the suffixes that Prometheus adds to histograms.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|character: char| !character.is_ascii_lowercase() && character != '_');
    words.filter(|word| word.starts_with("muster_")).map(|word| word.trim_end_matches("_bucket").to_owned()).collect()
}

fn sources(folder: &Path, read_one: &mut impl FnMut(&str)) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path: PathBuf = entry.expect("the folder can be read to its end").path();
        if path.is_dir() {
            sources(&path, read_one);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            read_one(&read(&path));
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_role_of_the_units_and_of_the_passwords_has_a_user_on_nats() {
    let nats = read(&common::repository().join("ops/nats/accounts.conf.in"));
    assert!(nats.contains("user: \"gateway-agents\", password: \"@gateway-agents@\""), "for gateways with agents");
    for role in ["ledger", "planner", "executor", "filter-runner", "notifier", "accounting", "gateway"] {
        // Each node has its own executor.
        let user = if role == "executor" { "executor-@node@" } else { role };
        let password = if role == "executor" { "executor-node" } else { role };
        assert!(nats.contains(&format!("user: \"{user}\", password: \"@{password}@\"")), "{role}");
        let unit = read(&common::repository().join(format!("ops/systemd/muster-{role}.service")));
        assert!(unit.contains(&format!("muster serve {role} --config /etc/muster/{role}.toml")), "{role}");
    }
}

/// systemd gives the whole folder to the user of the unit, so units of different users must not share one.
#[test]
fn every_unit_has_its_data_in_a_folder_that_is_its_users() {
    let mut owners = BTreeMap::new();
    for entry in fs::read_dir(common::repository().join("ops/systemd")).expect("there are units") {
        let path = entry.expect("the folder can be read to its end").path();
        if path.extension().is_some_and(|extension| extension == "service") {
            let unit = read(&path);
            let name = path.display();
            let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
            let folder = value("StateDirectory=").unwrap_or_else(|| panic!("{name} has no folder"));
            assert!(unit.contains(&format!(" --data /var/lib/{folder}\n")), "{name}");
            let user = value("User=");
            assert_eq!(owners.entry(folder).or_insert_with(|| user.clone()), &user, "{name}");
        }
    }
    assert_eq!(owners.len(), 4, "{owners:?}");
}
