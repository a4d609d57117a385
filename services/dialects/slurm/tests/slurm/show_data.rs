//! Data for programs: the names of all fields are those of Slurm's `data_parser` (SL-A-11).

use crate::{
    show_sacct, show_scontrol, show_tables,
    support::{ago, clock, detailed, run, running},
};
use muster_schemas::{
    accounts::ClassSpec,
    cluster::ClusterSettings,
    views::{LicenceView, QueueView, ReservationView},
};
use muster_slurm::{
    job_id::StepName,
    show::{
        data::Asker,
        record::JobRecord,
        sacct::{self, Row},
        sacctmgr::{self, AsData as _, Cluster},
        scontrol,
        sdiag::{Diagnosis, statistics_data},
        sinfo::{self, NodeRecord, Overview, Partition},
        squeue, sshare,
        step::StepRecord,
    },
    words::NodeFacts,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// The values that a field may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A number that need not be set.
    Settable,
    /// A plain number.
    Number,
    /// Anything else.
    Other,
}

impl Form {
    fn of(value: &Value) -> Self {
        match value {
            Value::Object(members) if members.contains_key("number") => Self::Settable,
            Value::Number(_) => Self::Number,
            _ => Self::Other,
        }
    }
}

/// The names of fields of a kind of thing, by path, with what they may be.
fn names(kind: &str) -> BTreeMap<&'static str, Form> {
    let text = include_str!("golden/data_parser.txt");
    let lines = text.lines().skip_while(|line| line.strip_prefix('[') != Some(&format!("{kind}]")));
    let own = lines.skip(1).take_while(|line| !line.starts_with('['));
    let field = |word: &'static str| match (word.strip_suffix('='), word.strip_suffix('#')) {
        (Some(name), _) => (name, Form::Settable),
        (_, Some(name)) => (name, Form::Number),
        _ => (word, Form::Other),
    };
    own.flat_map(str::split_whitespace).map(field).collect()
}

/// The paths of a value, down to those that are named, with the form of what is there.
fn paths(value: &Value, named: &BTreeMap<&str, Form>, at: &str, all: &mut BTreeMap<String, Form>) {
    let deeper = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
    match value {
        _ if named.contains_key(at) => drop(all.insert(at.to_owned(), Form::of(value))),
        Value::Array(items) => items.iter().for_each(|item| paths(item, named, at, all)),
        Value::Object(members) => members.iter().for_each(|(name, member)| paths(member, named, &deeper(name), all)),
        _ => drop(all.insert(at.to_owned(), Form::of(value))),
    }
}

/// Asserts that things together have all fields of their kind in their form, and no others, but for those of another list.
#[track_caller]
fn assert_names(kind: &str, value: &Value, but: &str) {
    let named = names(kind);
    assert!(!named.is_empty(), "{kind}");
    let mut value = value.clone();
    if let Value::Array(items) = &mut value {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| drop(item.remove(but)));
    }
    let mut all = BTreeMap::new();
    paths(&value, &named, "", &mut all);
    let unknown: Vec<_> = all.keys().filter(|path| !named.contains_key(path.as_str())).collect();
    let missing: Vec<_> = named.keys().filter(|path| !all.contains_key(**path)).collect();
    assert!(unknown.is_empty() && missing.is_empty(), "{kind}: unknown {unknown:?}, missing {missing:?}");
    let of_other_form: Vec<_> = all.iter().filter(|(path, form)| named[path.as_str()] != **form).collect();
    assert!(of_other_form.is_empty(), "{kind}: {of_other_form:?}");
}

fn asker(command: &[String]) -> Asker<'_> {
    Asker { command, user: "ann", group: "staff", cluster: "alpha", release: "26.11.0" }
}

fn jobs() -> Vec<JobRecord> {
    let job = running("93", 60, &["nid00001"], json!({ "name": "bash" }));
    let spec = json!({ "name": "bash", "components": [{ "queue": "debug" }],
        "attributes": { "slurm.0.mail-type": "END,TIME_LIMIT" } });
    detailed(job, spec, json!([run(&[("nid00001", 0, "0", 1)])]))
}

fn node() -> NodeRecord {
    NodeRecord::of(&show_scontrol::node(json!({})), NodeFacts::default(), clock().now)
}

fn partition() -> Partition {
    let queue = json!({ "spec": { "name": "p2", "nodes": ["nid00001"] }, "default": false, "queued": 0, "held": 0,
        "running": 0 });
    Partition::of(&serde_json::from_value::<QueueView>(queue).expect("a queue"))
}

/// SL-A-11, SL-C-27, SL-C-28
#[test]
fn jobs_and_nodes_have_the_fields_of_slurms() {
    let command = ["squeue".to_owned()];
    let object = squeue::document(&jobs(), &asker(&command), ago(0));
    assert_names("job_info", &object["jobs"], "");
    assert_eq!(object["jobs"][0]["mail_type"], json!(["END", "TIME=100%"]));
    let (partitions, nodes) = ([Arc::new(partition())], [Arc::new(node())]);
    let object = sinfo::document(&partitions, &nodes, "0.1.0", &asker(&command), clock().now);
    assert_names("node", &object["nodes"], "");
    assert_names("partition_info", &json!([sinfo::partition_data(&partitions[0], None, [&*nodes[0]])]), "");
    let object =
        sinfo::data(&partitions, &nodes, &Overview::default(), &asker(&command), &clock()).expect("known columns");
    assert_names("sinfo", &object["sinfo"], "partition");
}

/// SL-A-11
#[test]
fn reservations_steps_and_licences_have_the_fields_of_slurms() {
    let view: ReservationView = serde_json::from_value(json!({
        "spec": { "name": "r1", "start": ago(60), "end": ago(-540),
            "nodes": { "count": { "count": 1, "filter": null, "queue": "p2" } }, "users": ["ann"] },
        "nodes": ["nid00001"], "begun": true,
    }))
    .expect("a reservation");
    let data = scontrol::reservation_data(&view, 4, clock().now);
    assert_names("reservation", &json!([data]), "");
    assert_eq!(data["partition"], "p2");
    let step = StepRecord::of_job(&jobs()[0], StepName::Number(0), "sleep");
    assert_names("step_info", &json!([scontrol::step_data(&step, "alpha", &clock())]), "");
    let licence = LicenceView { name: "ansys".into(), total: 5, used: 2 };
    assert_names("licence", &json!([scontrol::licence_data(&licence, &clock())]), "");
    assert_names("ping", &json!([scontrol::ping_data("h", true, 9)]), "");
}

/// SL-A-11, SL-P-06
#[test]
fn accounting_has_the_fields_of_slurms() {
    let mut rows = show_sacct::with_steps();
    rows.sort_by_key(Row::shown_id);
    let command = ["sacct".to_owned()];
    let object = sacct::document(&rows, &asker(&command), &clock());
    assert_names("job", &object["jobs"], "steps");
    let steps: Vec<Value> = object["jobs"].as_array().into_iter().flatten().map(|job| job["steps"].clone()).collect();
    assert_names("job step", &steps[0], "");
    let page = show_tables::page();
    let associations = sacctmgr::associations(&page, "alpha");
    let data: Vec<Value> = associations.iter().map(|row| row.data(&[])).collect();
    assert_names("association", &json!(data), "");
    let own = data.iter().find(|row| row["user"] == "ann").expect("one");
    assert_eq!((&own["lineage"], &own["is_default"]), (&json!("/science/test/0-ann/"), &json!(true)));
    let first = |data: Vec<Value>| json!(data[..1]);
    assert_names("account", &first(sacctmgr::accounts(&page).iter().map(|row| row.data(&associations)).collect()), "");
    let users = sacctmgr::users(&page, &ClusterSettings::default());
    assert_names("user", &first(users.iter().map(|row| row.data(&[])).collect()), "");
    let class = ClassSpec { name: "normal".into(), ..ClassSpec::default() };
    let class = sacctmgr::Qos(class).data(&[]);
    assert_eq!(class["id"], 1);
    assert_names("qos", &json!([class]), "");
    let cluster = Cluster { name: "alpha".into(), host: "h".into(), port: 6817 }.data(&[]);
    assert_names("cluster", &json!([cluster]), "");
    assert_names("tres", &json!([sacctmgr::TRES[0].data(&[])]), "");
    assert_names("statistics", &statistics_data(&Diagnosis::default(), &clock()), "");
}

/// SL-A-11: `sshare --json`: a share for each account and user, and the sum of all.
#[test]
fn shares_are_shown_as_data_too() {
    let page = show_tables::page();
    let rows = sshare::shares(&page, "alpha", &Default::default(), &[]);
    let data = sshare::data(&rows, 9);
    assert_eq!((data["total_shares"].clone(), data["shares"].as_array().map(Vec::len)), (json!(9), Some(rows.len())));
    let user = data["shares"].as_array().into_iter().flatten().find(|row| row["type"] == json!(["USER"])).expect("one");
    assert!(user["fairshare"]["factor"]["number"].is_f64(), "{user}");
    let level = &user["fairshare"]["level"];
    assert_eq!((&level["infinite"], &level["number"]), (&json!(true), &json!(0.0)), "nobody used anything");
}
