//! The tables and documents of `oarstat` and `oarnodes`.

use crate::support::{ids, s};
use jiff::tz::TimeZone;
use muster_oar::{
    accounting::Summary,
    life::state::State,
    resources::{property::AVAILABLE_UPTO, state::State as ResourceState, table::Resource, value::Value},
    show::{
        accounting,
        document::{self, Form},
        jobs::{self, Event, Job},
        nodes, query,
    },
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

/// 2026-11-26 10:00:00 UTC.
const NOW: i64 = 1_795_687_200;

fn job() -> Job {
    Job {
        id: 5725,
        array: 5725,
        index: 1,
        name: "my run".to_owned(),
        project: "bio".to_owned(),
        owner: "ann".to_owned(),
        state: State::Terminated,
        requests: vec!["{type = 'default'}/resource_id=1,walltime=2:0:0".to_owned()],
        types: vec!["besteffort".to_owned(), "idempotent".to_owned()],
        dependencies: vec![10, 11],
        resources: vec![1, 2],
        nodes: vec!["n1".to_owned()],
        queue: "default".to_owned(),
        command: "sleep 10".to_owned(),
        wait_status: Some(25_344),
        directory: "/home/ann".to_owned(),
        stdout: "OAR.5725.stdout".to_owned(),
        stderr: "OAR.5725.stderr".to_owned(),
        is_interactive: false,
        properties: "core > 1".to_owned(),
        is_reservation: false,
        walltime: 7200,
        submitted: NOW,
        start: Some(NOW + 60),
        stop: Some(NOW + 3600),
        predicted_start: None,
        isolation_group: "ann_5725".to_owned(),
        initial_request: "oarsub sleep 10".to_owned(),
        message: "R=1,W=2:0:0,J=B (Karma=0.000)".to_owned(),
        replaces: 0,
        events: vec![Event { at: NOW + 3600, name: "WALLTIME".to_owned(), text: "[5725] over".to_owned() }],
    }
}

/// OAR-C-08: the table of jobs, the one of arrays, and the states alone.
#[test]
fn jobs_are_listed() {
    let waiting = Job { id: 2, name: "a name that is longer".to_owned(), state: State::ToAckReservation, ..job() };
    let expected = "\
Job id     Name           User           Submission Date     S Queue
---------- -------------- -------------- ------------------- - ----------
2          a name that is ann            2026-11-26 10:00:00 W default   
5725       my run         ann            2026-11-26 10:00:00 T default   
";
    let jobs = [waiting, job()];
    assert_eq!(jobs::table(&jobs, &TimeZone::UTC), expected);
    assert_eq!(jobs::table(&[], &TimeZone::UTC), "");
    let expected = "\
Job id    A. id     A. index  Name       User     Submission Date     S Queue
--------- --------- --------- ---------- -------- ------------------- - --------
5725      5725      1         my run     ann      2026-11-26 10:00:00 T default 
";
    assert_eq!(jobs::array_table(&jobs[1..], &TimeZone::UTC), expected);
    assert_eq!(jobs::states(&jobs), "2: toAckReservation\n5725: Terminated\n");
    assert_eq!(jobs::events(&jobs[1..], &TimeZone::UTC), "2026-11-26 11:00:00> [5725] WALLTIME: [5725] over\n");
}

/// OAR-C-08, OAR-C-09, OAR-J-25: everything about a job, with the raw status of its command and its events.
#[test]
fn everything_about_a_job() {
    let expected = "\
Job_Id: 5725
    job_array_id = 5725
    job_array_index = 1
    name = my run
    project = bio
    owner = ann
    state = Terminated
    wanted_resources = -l \"{type = 'default'}/resource_id=1,walltime=2:0:0\" 
    types = besteffort, idempotent
    dependencies = 10 11
    assigned_resources = 1+2
    assigned_hostnames = n1
    queue = default
    command = sleep 10
    exit_code = 25344 (99,0,0)
    launchingDirectory = /home/ann
    stdout_file = OAR.5725.stdout
    stderr_file = OAR.5725.stderr
    jobType = PASSIVE
    properties = core > 1
    reservation = None
    walltime = 2:0:0
    submissionTime = 2026-11-26 10:00:00
    startTime = 2026-11-26 10:01:00
    stopTime = 2026-11-26 11:00:00
    cpuset_name = ann_5725
    initial_request = oarsub sleep 10
    message = R=1,W=2:0:0,J=B (Karma=0.000)
    scheduledStart = no prediction
    resubmit_job_id = 0
    events = 
2026-11-26 11:00:00> WALLTIME:[5725] over

";
    assert_eq!(jobs::full(&[job()], &TimeZone::UTC), expected);
    assert_eq!([0, 9, 137, 25_344].map(jobs::exit_code), ["0 (0,0,0)", "9 (0,9,0)", "137 (0,9,128)", "25344 (99,0,0)"]);
    let early = Job {
        start: None,
        stop: None,
        wait_status: None,
        predicted_start: Some(NOW),
        name: "x\ny".to_owned(),
        ..job()
    };
    let text = jobs::full(&[early], &TimeZone::UTC);
    assert!(text.contains("    scheduledStart = 2026-11-26 10:00:00\n") && text.contains("    name = x?y\n"));
    assert!(!text.contains("startTime") && !text.contains("exit_code"));
}

/// OAR-C-09: JSON is keyed by id and has what the specification lists.
#[test]
fn json_is_keyed_by_id() {
    let value = jobs::document(&[job()]);
    let one = &value["5725"];
    for (key, expected) in [
        ("owner", json!("ann")),
        ("state", json!("Terminated")),
        ("queue", json!("default")),
        ("types", json!(["besteffort", "idempotent"])),
        ("dependencies", json!([10, 11])),
        ("walltime", json!(7200)),
        ("assigned_resources", json!([1, 2])),
        ("assigned_network_address", json!(["n1"])),
        ("startTime", json!(NOW + 60)),
        ("stopTime", json!(NOW + 3600)),
        ("scheduledStart", json!(null)),
        ("exit_code", json!(99)),
        ("message", json!("R=1,W=2:0:0,J=B (Karma=0.000)")),
        ("cpuset_name", json!("ann_5725")),
        ("resubmit_job_id", json!(0)),
    ] {
        assert_eq!(one.get(key), Some(&expected), "{key}");
    }
    assert_eq!(one["events"][0]["type"], json!("WALLTIME"));
    assert!(
        jobs::document(&[Job { initial_request: String::new(), ..job() }])["5725"].get("initial_request").is_none()
    );
    assert_eq!(jobs::document(&[]), json!({}));
}

/// OAR-C-02, OAR-C-08: documents in all four forms.
#[test]
fn documents_have_four_forms() {
    let value =
        json!({"7": {"name": "a: 'b' & <c>", "list": [1, {"x": null}], "none": [], "yes": "yes", "path": "/tmp/a-b"}});
    assert_eq!(serde_json::from_str::<serde_json::Value>(&document::written(&value, Form::Json)).expect("JSON"), value);
    let yaml = "---
\"7\":
  list:
    - 1
    -
      x: null
  name: \"a: 'b' & <c>\"
  none: []
  path: \"/tmp/a-b\"
  \"yes\": \"yes\"
";
    assert_eq!(document::written(&value, Form::Yaml), yaml);
    let xml = "<perldata>
 <hashref>
  <item key=\"7\">
   <hashref>
    <item key=\"list\">
     <arrayref>
      <item key=\"0\">1</item>
      <item key=\"1\">
       <hashref>
        <item key=\"x\" defined=\"false\"></item>
       </hashref>
      </item>
     </arrayref>
    </item>
    <item key=\"name\">a: 'b' &amp; &lt;c&gt;</item>
    <item key=\"none\">
     <arrayref>
     </arrayref>
    </item>
    <item key=\"path\">/tmp/a-b</item>
    <item key=\"yes\">yes</item>
   </hashref>
  </item>
 </hashref>
</perldata>
";
    assert_eq!(document::written(&value, Form::Xml), xml);
    let perl = "{
  '7' => {
    'list' => [
      1,
      {
        'x' => undef
      }
    ],
    'name' => 'a: \\'b\\' & <c>',
    'none' => [],
    'path' => '/tmp/a-b',
    'yes' => 'yes'
  }
}
";
    assert_eq!(document::written(&value, Form::Dumper), perl);
}

/// OAR-C-14: filters of jobs name the fields of jobs alone.
#[test]
fn jobs_are_chosen_by_a_filter() {
    let matches = |filter: &str| query::read(filter).map(|filter| filter.matches(&query::values(&job())));
    for (filter, expected) in [
        ("project = 'bio' AND job_user IN ('ann', 'bob')", true),
        ("state = 'Terminated'", true),
        ("job_id > 5725", false),
        ("exit_code = 25344", true),
        ("job_name LIKE 'my%'", true),
        ("queue_name = 'default' AND NOT (start_time = 0)", true),
    ] {
        assert_eq!(matches(filter), Ok(expected), "{filter}");
    }
    let values = query::values(&job());
    let fields = query::fields();
    assert!(values.iter().all(|(name, value)| fields.get(name) == Some(&value.kind())) && values.len() == fields.len());
    assert!(!query::values(&Job { wait_status: None, ..job() }).contains_key("exit_code"));
    assert_eq!(
        query::read("job_usr = 'x'").expect_err("unknown").to_string(),
        "column 1: no property is called 'job_usr'; is 'job_user' meant?"
    );
    assert!(query::read("1=1; DROP TABLE jobs").is_err());
}

/// OAR-C-10, OAR-C-14: nodes and resources, all of them or those of a filter; StandBy is visible.
#[test]
fn nodes_are_shown() {
    let mut table = s();
    table.set_state(&ids("5-8"), ResourceState::Absent).expect("set");
    table.set(&ids("5-6"), AVAILABLE_UPTO, Some(Value::Integer(0))).expect("set");
    table.set_state(&[2], ResourceState::Suspected).expect("set");
    let names = ["n1".to_owned(), "n2".to_owned()];
    let expected = "n1:\n    1: Alive\n    2: Suspected\n    3: Alive\n    4: Alive\nn2:\n    5: Absent\n    6: Absent\n    7: StandBy\n    8: StandBy\n";
    assert_eq!(nodes::states(&table, &names, NOW), expected);
    assert_eq!(nodes::states(&table, &["n9".to_owned()], NOW), "");
    assert_eq!(nodes::list(&table), "n1\nn2\nn3\nn4\n");
    let filter = muster_oar::predicate::read("state = 'Suspected'", table.fields()).expect("a filter");
    let suspected: Vec<&Resource> = table.resources().filter(|one| filter.matches(one.values())).collect();
    let jobs = BTreeMap::from([(2, vec![7, 9])]);
    let expected = "network_address: n1\nresource_id: 2\nstate: Suspected\njobs: 7, 9\nproperties: core=2, cpu=c1, network_address=n1, resource_id=2, switch=s1\n\n";
    assert_eq!(nodes::full(&suspected, &jobs, NOW), expected);
    let value = nodes::document(&suspected, &jobs, NOW);
    assert_eq!(
        (&value["2"]["state"], &value["2"]["jobs"], &value["2"]["properties"]["core"]),
        (&json!("Suspected"), &json!([7, 9]), &json!(2))
    );
    let standby: Vec<&Resource> = table.resources().filter(|one| one.id() == 7).collect();
    assert!(nodes::full(&standby, &jobs, NOW).contains("state: StandBy\n"));
}

/// OAR-A-06: the table of `oarstat --accounting`.
#[test]
fn usage_is_shown_by_user() {
    let (from, to) = accounting::span("1970-01-12, 1970-01-15", &TimeZone::UTC).expect("a span");
    assert_eq!((from, to), (950_400, 1_209_600));
    let expected = "\
User       First window starts  Last window ends     Asked (seconds)  Used (seconds)
---------- -------------------- -------------------- ---------------- ----------------
ann        1970-01-12 00:00:00  1970-01-14 23:59:59            691200           600000
";
    let sum = Summary { asked: 691_200, used: 600_000, first: from, last: to - 1 };
    assert_eq!(accounting::table(&BTreeMap::from([("ann".to_owned(), sum)]), &TimeZone::UTC), expected);
    for text in ["", "1970-01-12", "1970-01-12 10:00, 1970-01-15", "x, y"] {
        assert!(accounting::span(text, &TimeZone::UTC).is_err(), "{text}");
    }
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(|text| json!(text))
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|list| json!(list)),
            proptest::collection::btree_map(".{0,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    /// OAR-C-09: JSON is read as what it was written from; no text breaks out of its place in the other forms.
    #[test]
    fn documents_hold_any_text(value in any_value()) {
        let written = |form| document::written(&value, form);
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&written(Form::Json)).expect("JSON"), value.clone());
        let xml = written(Form::Xml);
        prop_assert!(!xml.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
        let depth = |sign: &str| xml.matches(sign).count();
        prop_assert_eq!(depth("<item "), depth("</item>"));
        prop_assert!(!written(Form::Yaml).chars().any(|c| c.is_control() && c != '\n' && (c as u32) < 0x7f));
        let _ = written(Form::Dumper);
    }

    /// OAR-C-08: no name of a job breaks a table.
    #[test]
    fn tables_have_a_line_for_each_job(name in ".{0,40}", owner in ".{0,20}") {
        let one = Job { name, owner, ..job() };
        prop_assert_eq!(jobs::table(&[one.clone(), one.clone()], &TimeZone::UTC).lines().count(), 4);
        prop_assert_eq!(jobs::full(std::slice::from_ref(&one), &TimeZone::UTC).lines().count(), 33);
    }
}

/// OAR-C-08: an array is one line, with a dash if its jobs are in different states.
#[test]
fn arrays_are_one_line() {
    let member = |id: u64, state| Job { id, array: 7, index: id - 6, state, ..job() };
    let mixed = [member(7, State::Running), member(8, State::Waiting), job()];
    let expected = "\
Job id     Name           User           Submission Date     S Queue
---------- -------------- -------------- ------------------- - ----------
7@         my run         ann            2026-11-26 10:00:00 - default   
5725       my run         ann            2026-11-26 10:00:00 T default   
";
    assert_eq!(jobs::compact_table(&mixed, &TimeZone::UTC), expected);
    let same = [member(7, State::Hold), member(8, State::Hold)];
    assert!(jobs::compact_table(&same, &TimeZone::UTC).contains("10:00:00 H "));
    assert_eq!(jobs::compact_table(&[], &TimeZone::UTC), "");
}

/// OAR-A-06: the usage of one user, with the part of each project.
#[test]
fn usage_of_a_user_has_its_projects() {
    let sum = muster_oar::accounting::Summary { asked: 7200, used: 60, first: 0, last: 86_399 };
    let projects = BTreeMap::from([("bio".to_owned(), sum)]);
    let text = accounting::of_user("ann", Some(sum), &projects, &TimeZone::UTC);
    for line in [
        "Usage summary for user 'ann':",
        "Start of the first window: 1970-01-01 00:00:00",
        "Asked consumption: 7200 (2:0:0)",
        "bio:",
        "Used: 60 (0:1:0)",
    ] {
        assert!(text.lines().any(|known| known.trim_start() == line), "{line}:\n{text}");
    }
    assert!(accounting::of_user("bob", None, &projects, &TimeZone::UTC).starts_with("No usage of user 'bob'"));
    assert_eq!(accounting::document(&projects, &projects)["users"]["bio"]["ASKED"], 7200);
}
