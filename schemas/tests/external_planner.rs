//! The messages of external planners: their form, which answers are accepted, and their documents.

use muster_schemas::{
    JobId, Sequence,
    external_planner::{ExternalComponent, ExternalPlan, FromPlanner, Hello, ToPlanner, Units, json_schemas},
};
use std::path::Path;

fn read(json: &str) -> Result<FromPlanner, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn plan(json: &str) -> ExternalPlan {
    match read(json) {
        Ok(FromPlanner::Plan(plan)) => plan,
        other => panic!("{json}: {other:?}"),
    }
}

#[test]
fn a_plan_needs_no_more_than_what_it_answers() {
    assert_eq!(plan(r#"{"type":"plan","seen":7}"#), ExternalPlan { seen: Sequence(7), ..ExternalPlan::default() });
    let anywhere = plan(r#"{"type":"plan","seen":7,"starts":[{"job":"12"}]}"#);
    assert_eq!((anywhere.starts[0].job, anywhere.starts[0].components.len()), (JobId::job(12), 0));
    let there = plan(r#"{"type":"plan","seen":7,"starts":[{"job":"12_3","components":[{"nodes":[{"name":"n1"}]}]}]}"#);
    let [ExternalComponent { alternative: 0, nodes }] = &there.starts[0].components[..] else { panic!("{there:?}") };
    assert_eq!((nodes[0].name.as_str(), &nodes[0].cores), ("n1", &None));
}

#[test]
fn amounts_are_counts_or_lists() {
    let text = r#"{"type":"plan","seen":1,"starts":[{"job":"1","components":[{"nodes":[{"name":"n1","cores":4,"gpus":"0-1"}]}]}]}"#;
    let share = plan(text).starts[0].components[0].nodes[0].clone();
    assert_eq!(share.cores, Some(Units::Count(4)));
    let Some(Units::List(gpus)) = share.gpus else { panic!("a list") };
    assert_eq!(gpus.to_string(), "0-1");
}

#[test]
fn what_is_not_in_the_protocol_is_refused() {
    for (json, expected) in [
        (r#"{"type":"plan"}"#, "missing field `seen`"),
        (r#"{"type":"plan","seen":1,"strats":[]}"#, "unknown field `strats`, expected one of `seen`, `starts`"),
        (r#"{"type":"plan","seen":-1}"#, "invalid value: integer `-1`"),
        (r#"{"type":"plan","seen":1,"starts":[{"job":"x"}]}"#, "`x` is not a job id such as 12 or 12_3"),
        (r#"{"type":"plam","seen":1}"#, "unknown variant `plam`, expected `hello` or `plan`"),
        (r#"{"seen":1}"#, "missing field `type`"),
        ("[]", "missing field `type`"),
        ("starting...", "expected value at line 1 column 1"),
    ] {
        let error = read(json).unwrap_err();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn the_first_message_is_as_documented() {
    let hello = ToPlanner::Hello(Hello { protocol: 1 });
    assert_eq!(serde_json::to_string(&hello).unwrap(), r#"{"type":"hello","protocol":1}"#);
    assert_eq!(read(r#"{"type":"hello","protocol":1}"#), Ok(FromPlanner::Hello(Hello { protocol: 1 })));
}

#[test]
fn documents_in_the_repository_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("external-planner");
    for (name, schema) in json_schemas() {
        let (path, text) = (folder.join(name), format!("{schema:#}\n"));
        let mut found = std::fs::read_to_string(&path).unwrap_or_default();
        if found != text && std::env::var_os("MUSTER_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
            found.clone_from(&text);
        }
        assert!(found == text, "{} differs from the types: write it with MUSTER_BLESS=1, review it", path.display());
    }
}
