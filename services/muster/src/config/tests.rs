use super::{keys::*, *};
use muster_commands::cluster_toml::cluster_to_toml;
use muster_schemas::cluster::{MakesWay, WayOut};
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn refusal(text: &str) -> String {
    parse("muster.toml", text.as_bytes().to_vec()).unwrap_err().message
}

/// An unknown key is refused with its place and the nearest known one (M-CFG-1).
#[test]
fn an_unknown_key_is_told_with_the_nearest_known_one() {
    assert_eq!(
        refusal("[cluster]\nname = \"x\"\n\n  defualt_queue = \"q\"\n"),
        "muster.toml:4:3: unknown key `defualt_queue` in [cluster]; nearest known key is `default_queue`"
    );
    assert!(
        refusal("[clutser]\n")
            .starts_with("muster.toml:1:2: unknown section `clutser`; nearest known section is `cluster`")
    );
    assert!(
        refusal("[[queues]]\nname = \"q\"\ncolour = 1\n")
            .contains("unknown key `colour` in [[queues]]; known are name, priority")
    );
}

#[test]
fn wrong_values_are_told_with_their_place() {
    for (text, expected) in [
        ("[cluster]\nmax_jobs = 0\n", "muster.toml:2:12: `max_jobs`: 0 is out of range: a whole number from 1"),
        (
            "[cluster]\nmax_jobs = \"many\"\n",
            "muster.toml:2:12: `max_jobs`: expected a whole number from 1, found string",
        ),
        (
            "[[nodes]]\nname = \"node[-0-2]\"\ncores = 4\nmemory = 1\n",
            "muster.toml:2:8: `name`: `-0-2` is not a number or range such as 01-16",
        ),
        ("[[queues]]\nname = \"q\"\nnodes = [\"n1\", \"n[3\"]\n", "muster.toml:3:9: `nodes`: "),
        (
            "[[queues]]\nname = \"q\"\nmakes_way = { by = \"within\" }\n",
            "muster.toml:3:13: `makes_way`: `by` does not belong there, or has a wrong value: expected a table of `by`",
        ),
        (
            "[slurm]\nsite_options = [\"mem=SIZE memory\"]\n",
            "muster.toml:2:16: `site_options` in [slurm]: `mem=SIZE memory`: an option of Slurm has this name",
        ),
        ("[accounts]\nenforce = [\"all\"]\n", "muster.toml:2:11: accounts.enforce: `all` is none of associations, "),
        ("[energy]\nkeep_awake = [\"2\", \"a100\"]\n", "muster.toml:2:20: energy.keep_awake[1]: expected "),
        ("[telemetry]\nlog_format = \"xml\"\n", "muster.toml:2:14: `log_format`: `xml` is not one of `text`, `json`"),
        ("[[nodes]]\nname = \"n1\"\ncores = 4\n", "muster.toml:1:1: `memory` is missing in this [[nodes]]"),
        ("[[nodes]]\nname = \"n1\"\ncores = 4\nmemory = \"64\"\n", "muster.toml:4:10: `memory`: `64` has no unit"),
        ("[licences]\nmatlab = -1\n", "muster.toml:2:10: `matlab`: -1 is out of range"),
        ("cluster = 3\n", "muster.toml:1:11: expected a table [cluster]"),
        ("[cluster\n", "muster.toml:1:9: "),
        (
            "[[nodes]]\nname = \"n[1-2],n2\"\ncores = 4\nmemory = \"1G\"\n",
            "muster.toml: the node `n2` is described twice",
        ),
    ] {
        let message = refusal(text);
        assert!(message.starts_with(expected), "{message}");
    }
    assert!(
        parse("muster.toml", b"[cluster]\nname = \"\xff\"\n".to_vec())
            .unwrap_err()
            .message
            .starts_with("muster.toml:2:9: ")
    );
}

#[test]
fn prologs_may_not_take_as_long_as_a_launch() {
    let text = |cluster: &str, programs: &[&str], seconds: u32| {
        let programs: String = programs.iter().map(|key| format!("{key} = \"/bin/true\"\n")).collect();
        format!("{cluster}[executor]\n{programs}site_program_timeout_seconds = {seconds}\n")
    };
    let is_right = |text: String| parse("muster.toml", text.into_bytes()).is_ok();
    let (named, plain) = ("[cluster]\nlaunch_timeout_seconds = 40\n", "[cluster]\nname = \"alpha\"\n");
    let told = refusal(&text(named, &["prolog"], 40));
    assert!(told.contains("`site_program_timeout_seconds` is 40, and a prolog is part of the launch"), "{told}");
    assert!(is_right(text(named, &["prolog"], 39)) && is_right(text(named, &["epilog"], 40)));
    // One follows the other.
    let both = ["prolog", "job_prolog"];
    assert!(refusal(&text(named, &both, 20)).contains("the two prologs are, one after the other,"));
    assert!(is_right(text(named, &both, 19)));
    // Without the key a launch may take a minute; the file of a node does not know.
    assert!(refusal(&text(plain, &["job_prolog"], 60)).contains("may take 60 s"));
    assert!(is_right(text(plain, &["job_prolog"], 59)) && is_right(text("", &both, 600)));
}

#[test]
fn queues_that_would_make_way_in_vain_are_told() {
    let text = "[[queues]]\nname = \"low\"\nmakes_way = { by = \"cancel\" }\n[[queues]]\nname = \"high\"\n";
    let (configuration, _) = parse("muster.toml", text.into()).unwrap();
    let warnings: Vec<String> = makes_way_in_vain(&configuration.cluster.to_config().unwrap().queues).collect();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("queue `low`: `makes_way` has no effect under a policy of PBS"), "{warnings:?}");
}

#[test]
fn all_faults_are_told_at_once() {
    let message = refusal("[cluster]\nnme = 1\n[telemetry]\nlog_format = 3\n");
    assert_eq!(message.lines().count(), 2, "{message}");
}

#[test]
fn the_cluster_of_a_file_is_what_it_says() {
    let text = r#"
[cluster]
name = "alpha"
default_queue = "main"
first_job_number = 67767
[[queues]]
name = "long"
nodes = ["n[1-2]"]
max_walltime_seconds = 3600
makes_way = { by = "cancel", grace_seconds = 5 }
[[nodes]]
name = "n[1-2]"
cores = 8
memory = "64G"
gpus = ["a100"]
properties = { ib = true, mem = 64, switch = "s1" }
[licences]
matlab = 3
"#;
    let (configuration, file) = parse("muster.toml", text.into()).unwrap();
    assert!(file.describes_cluster());
    let cluster = configuration.cluster.to_config().unwrap();
    assert_eq!((cluster.settings.name.as_str(), cluster.first_job_number), ("alpha", Some(67_767)));
    assert_eq!(cluster.queues.iter().map(|queue| queue.name.as_str()).collect::<Vec<_>>(), ["long", "main"]);
    assert_eq!(cluster.queues[0].nodes, ["n1", "n2"]);
    assert_eq!(cluster.queues[0].makes_way, Some(MakesWay { by: WayOut::Cancel, grace_seconds: 5 }));
    assert_eq!(cluster.nodes.len(), 2);
    assert_eq!(cluster.nodes[1].memory_bytes, 64 << 30);
    assert_eq!(cluster.licences["matlab"], 3);

    let printed = cluster_to_toml(&cluster);
    let (again, _) =
        parse("printed.toml", printed.clone().into_bytes()).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.cluster.to_config().unwrap(), cluster, "{printed}");
}

#[test]
fn only_keys_of_the_process_need_a_restart() {
    let checked = |text: &str| CheckedFile::check("muster.toml", text).unwrap();
    let before = checked("[cluster]\nname = \"a\"\n[telemetry]\nlog_filter = \"info\"\n");
    let after = checked("[cluster]\nname = \"b\"\n[telemetry]\nlog_filter = \"warn\"\n[bus]\nurl = \"nats://x\"\n");
    assert_eq!(before.process_keys_that_differ(&after), ["bus.url", "telemetry.log_filter"]);
    assert!(!checked("[telemetry]\n").describes_cluster());
}

/// The names of a type's fields, as its deserializer lists them for an unknown name.
fn fields_of<T: DeserializeOwned>() -> Vec<String> {
    let message = toml::from_str::<T>("surely_not_a_key = 0").err().expect("unknown keys are refused").to_string();
    let known = message.split("expected").nth(1).expect("the reader names the keys that it knows");
    let mut names: Vec<String> = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    names.sort();
    names
}

/// The list of keys has exactly the fields of the type, with the type's own defaults.
fn assert_in_step<T: DeserializeOwned + Default + Debug>(name: &str, hidden: &[&str]) {
    let section = SECTIONS.iter().find(|section| section.name == name).unwrap();
    // A key of the section that is recorded separately from the settings.
    let is_beside = |key: &str| name == "cluster" && key == "first_job_number";
    let mut listed: Vec<String> =
        section.keys.iter().map(|key| key.name.to_owned()).filter(|key| !is_beside(key)).collect();
    listed.extend(hidden.iter().map(|name| (*name).to_owned()));
    listed.sort();
    assert_eq!(listed, fields_of::<T>(), "[{name}]");
    let defaults: String = section
        .keys
        .iter()
        .filter_map(|key| Some((key.name, key.default.filter(|value| !value.is_empty())?)))
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    let from_list: T = toml::from_str(&defaults).unwrap_or_else(|error| panic!("[{name}] {error}\n{defaults}"));
    assert_eq!(format!("{from_list:#?}"), format!("{:#?}", T::default()), "[{name}]");
}

#[test]
fn the_list_of_keys_is_in_step_with_the_services() {
    assert_in_step::<muster_schemas::cluster::ClusterSettings>("cluster", &["energy", "quotas"]);
    assert_in_step::<muster_schemas::cluster::QueueSpec>("queues", &[]);
    assert_in_step::<muster_bus::NatsConfig>("bus", &[]);
    assert_in_step::<TelemetryConfig>("telemetry", &[]);
    assert_in_step::<muster_ledger::Config>("ledger", &["cluster", "data_dir"]);
    assert_in_step::<muster_planner_service::Config>("planner", &[]);
    assert_in_step::<muster_executor::Config>("executor", &[]);
    assert_in_step::<muster_notifier::Config>("notifier", &["mail", "command", "retry"]);
    assert_in_step::<muster_notifier::MailConfig>("notifier.mail", &[]);
    assert_in_step::<muster_notifier::CommandConfig>("notifier.command", &[]);
    assert_in_step::<muster_notifier::RetryConfig>("notifier.retry", &[]);
    assert_in_step::<muster_filter_runner::RunnerConfig>("filter_runner", &[]);
    assert_in_step::<muster_accounting::Config>("accounting", &[]);
    assert_in_step::<muster_gateway::Config>("gateway", &[]);
}

#[test]
fn every_default_is_in_its_range() {
    for section in SECTIONS.iter().filter(|section| section.shape == Shape::Table) {
        let defaults =
            section.keys.iter().filter_map(|key| Some((key.name, key.default.filter(|value| !value.is_empty())?)));
        let lines: String = defaults.map(|(name, value)| format!("{name} = {value}\n")).collect();
        let text = format!("[{}]\n{lines}", section.name);
        CheckedFile::check("defaults", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn the_reference_in_the_docs_is_this_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    muster_surroundings::assert_file_is(path, &reference());
}

proptest::proptest! {
    #[test]
    fn any_file_is_read_or_refused(text in "[\\[\\]a-z_=\"0-9\n.{}, ]{0,120}") {
        let _ = parse("muster.toml", text.into_bytes());
    }
}
