//! What `oarprint`, `oarstat --gantt` and `oarstat --compact` show.

use jiff::tz::TimeZone;
use muster_oar::{
    resources::state::State,
    show::{
        gantt::{self, Placed},
        printed::{Form, lines, read},
    },
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

const FILE: &str = "core = '10', host = 'n1', wing = 'it''s, a = b'\ncore = '9', host = 'n1', wing = ''\n\n\
                    core = '11', host = 'n2', wing = 'x'\n";

/// OAR-C-13, OAR-J-15: one line for each value of the key, sorted, numbers by size; formats have a place for each property.
#[test]
fn properties_are_printed_by_key() {
    let resources = read(FILE).expect("it can be read");
    assert_eq!((resources.len(), resources[0]["wing"].as_str()), (3, "it's, a = b"));
    let printed = |key: &str, properties: &str, format: Option<&str>| {
        let properties = properties.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let form = Form { key: key.into(), properties, format: format.map(str::to_owned), ..Form::default() };
        lines(&resources, &form)
    };
    assert_eq!(printed("core", "", None), Ok(vec!["9".into(), "10".into(), "11".into()]));
    assert_eq!(printed("host", "core,host", None), Ok(vec!["9,10 n1".into(), "11 n2".into()]));
    assert_eq!(printed("host", "host,core", Some("%[%]!")), Ok(vec!["n1[9,10]!".into(), "n2[11]!".into()]));
    assert_eq!(printed("host", "host,core", Some("only %")), Ok(vec!["only n1 9,10".into(), "only n2 11".into()]));
    assert_eq!(printed("host", "", Some("% and %.")), Ok(vec!["n1 and .".into(), "n2 and .".into()]));
    assert_eq!(printed("bogus", "", None), Err("a resource has no property 'bogus'".to_owned()));
    for text in ["core", "core = 1", "core = '1' host = 'n'", "core = '1"] {
        let why = read(text).expect_err(text);
        assert!(why.starts_with("line 1: expected name = 'value'"), "{why}");
    }
}

proptest! {
    /// OAR-C-13
    #[test]
    fn any_file_of_properties_is_read_or_refused(text in ".{0,60}", key in "[a-z]{0,3}", format in "[%a ]{0,5}") {
        if let Ok(resources) = read(&text) {
            let _ = lines(&resources, &Form { key, format: Some(format), ..Form::default() });
        }
    }
}

fn placed(job: u64, start: i64, stop: Option<i64>) -> Placed {
    Placed {
        job,
        user: "ann".into(),
        queue: "default".into(),
        state: "Running",
        start,
        stop,
        resources: vec![1],
        nodes: vec!["n1".into()],
        is_prediction: false,
    }
}

/// OAR-G-18: jobs that touch the span, and when resources were not alive in it.
#[test]
fn the_chart_of_a_span() {
    let jobs = [placed(1, 0, Some(10)), placed(2, 5, None), placed(3, 20, Some(30)), placed(4, 9, Some(11))];
    let resources = BTreeMap::from([(1, "n1".to_owned()), (2, "n2".to_owned())]);
    let states = vec![(0, State::Absent), (12, State::Alive), (15, State::Suspected), (16, State::Suspected)];
    assert_eq!(gantt::away(&states, 10, 20), [(10, 12, State::Absent), (15, 20, State::Suspected)]);
    assert_eq!(gantt::away(&vec![(0, State::Alive)], 10, 20), []);
    let document = gantt::document(&jobs, &resources, &BTreeMap::from([("n1".to_owned(), states)]), (10, 20));
    let shown: Vec<&String> = document["jobs"].as_object().expect("an object").keys().collect();
    assert_eq!(shown, ["2", "4"]);
    assert_eq!(document["resources"]["1"]["dead_resources"][0], json!({ "start": 10, "stop": 12, "state": "Absent" }));
    assert_eq!(document["resources"]["2"]["dead_resources"], json!([]));
    let span = |text: &str| gantt::span(text, 0, &TimeZone::UTC);
    assert_eq!(span("1970-01-02, 1970-01-02 00:01"), Ok((86_400, 86_460)));
    assert_eq!(span("now, 1970-01-01 00:00:01"), Ok((0, 1)));
    for text in ["", "now", "now, now", "x, now"] {
        assert!(span(text).is_err(), "{text}");
    }
}
