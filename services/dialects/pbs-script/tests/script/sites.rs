//! States as sites: what actions change, and what is refused.

use super::support::{job, node, queue, state};
use muster_pbs_plan::state_file::{State, StateFile};
use muster_pbs_script::{
    action::{Action, Change, Code, Gate},
    site::{Site as _, fact},
    state_site::StateSite,
};
use proptest::prelude::*;

fn site() -> StateSite {
    let jobs = vec![job("1", "batch", &[("ncpus", "2")]), job("2", "batch", &[]), job("3", "other", &[])];
    let nodes = vec![node("n1", "free", Some("0.25")), node("n2", "offline", None), node("n3", "free", None)];
    StateSite::new(state(vec![queue("batch"), queue("other")], nodes, jobs))
}

fn run(job: &str, place: Option<&str>) -> Action {
    Action::Run { job: job.into(), place: place.map(Into::into) }
}

/// PBS-C-09: a run is obeyed even if the queue is stopped; a job that runs and nodes that are in use or down are not.
#[test]
fn runs_are_obeyed_or_refused() {
    let mut site = site();
    site.change(|state| state.queues[0].started = Some(false));
    let refused = |site: &mut StateSite, action: Action| site.act(&action).expect_err("a refusal").code;
    assert_eq!(refused(&mut site, run("1", Some("n2"))), Code::NoResources);
    assert_eq!(refused(&mut site, run("1", Some("n1+n9"))), Code::UnknownNode);
    assert_eq!(site.act(&run("1", Some("n1:ppn=2+n3"))).expect("a start").nodes, ["n1", "n3"]);
    assert_eq!(refused(&mut site, run("1", None)), Code::BadState);
    assert_eq!(refused(&mut site, run("2", Some("n1"))), Code::NoResources);
    assert!(site.act(&Action::Rerun { job: "1".into() }).is_ok());
    assert!(site.act(&run("2", Some("n1"))).is_ok());
}

/// PBS-G-02, PBS-G-05, PBS-G-06: only jobs with files can be staged.
#[test]
fn only_jobs_with_files_are_staged() {
    let mut site = site();
    let stage = Action::StageIn { job: "1".into(), place: Some("n1".into()) };
    assert_eq!(site.act(&stage).expect_err("a refusal").code, Code::BadRequest);
    site.change(|state| state.jobs[0].stagein = Some("a@b:c".into()));
    assert!(site.act(&stage).is_ok());
    assert_eq!(site.job("1").expect("a job").substate.as_deref(), Some("STAGEIN"));
}

/// Either all changes of a job are made or none.
#[test]
fn changes_are_made_together() {
    let mut site = site();
    let change = |name: &str, resource: Option<&str>, value: &str| Change {
        name: name.into(),
        resource: resource.map(Into::into),
        value: value.into(),
    };
    let before = site.state().clone();
    let changes = vec![change("Priority", None, "5"), change("Resource_List", Some("mem"), "much")];
    assert_eq!(site.act(&Action::Alter { job: "1".into(), changes }).expect_err("a refusal").code, Code::BadValue);
    assert_eq!(site.state(), &before);
    for (name, value) in [("Priority", "1024"), ("Rerunable", "maybe"), ("comment", "a\tb")] {
        let changes = vec![change(name, None, value)];
        assert_eq!(site.act(&Action::Alter { job: "1".into(), changes }).expect_err("a refusal").code, Code::BadValue);
    }
    let changes = vec![change("Rerunable", None, "n"), change("Job_Name", None, "x")];
    assert!(site.act(&Action::Alter { job: "1".into(), changes }).is_ok());
    assert!(site.act(&run("1", None)).is_ok());
    assert_eq!(site.act(&Action::Rerun { job: "1".into() }).expect_err("a refusal").code, Code::NotRerunnable);
}

#[test]
fn monitors_say_what_the_state_has() {
    let state = site().state().clone();
    let facts = ["loadave", "ncpus", "arch", "physmem", "state", "other"].map(|query| fact(&state, "n1", query));
    assert_eq!(facts, [Some("0.25".into()), Some("4".into()), None, None, Some("free".into()), None]);
    assert_eq!(fact(&state, "n9", "ncpus"), None);
}

/// PBS-C-16: a state that was written is read as the same state.
#[test]
fn a_written_state_is_read_again() {
    let text = r#"{"now": 5, "tz": "UTC", "server": {"name": "s", "max_running": 0, "resources_max": {"mem": "1gb", "x": "y z"}},
        "queues": [{"name": "q", "type": "e", "started": true, "enabled": false, "priority": -3}],
        "nodes": [{"name": "n", "ts": true, "ncpus": 4, "physmem": "4gb", "loadave": 0.5, "max_load": 3, "properties": ["a", "b"]}],
        "jobs": [{"id": 1, "queue": "q", "user": "u", "state": "R", "qtime": "1998-05-15T10:00:00", "started": 7,
            "request": {"nodes": "2:ppn=2", "cput": "1:30", "walltime": 90000, "mem": "5kb", "pcput": 3}, "used": {"cput": 1}, "nodes": ["n"],
            "stagein": "a@b:c", "substate": "STAGECMP"}], "usage": {"u": 5}, "last_decay": 1}"#;
    let state = StateFile::read(text.as_bytes()).expect("a state");
    let written = serde_json::to_string(&state).expect("JSON");
    assert_eq!(StateFile::read(written.as_bytes()).expect("a state"), state);
    assert!(written.contains(r#""walltime":"25:00:00""#) && written.contains(r#""loadave":0.5"#), "{written}");
    assert!(!written.contains("null"), "{written}");
}

fn action() -> impl Strategy<Value = Action> {
    let job = || prop::sample::select(vec!["1", "2", "3", "9"]).prop_map(str::to_owned);
    let place = || prop::option::of(prop::sample::select(vec!["n1", "n2", "n1+n3", "", "n9"]).prop_map(str::to_owned));
    prop_oneof![
        (job(), place()).prop_map(|(job, place)| Action::Run { job, place }),
        job().prop_map(|job| Action::Rerun { job }),
        job().prop_map(|job| Action::Delete { job, delay: None }),
        job().prop_map(|job| Action::Hold { job, kinds: None }),
        job().prop_map(|job| Action::Release { job, kinds: Some("u".into()) }),
        job().prop_map(|job| Action::Move { job, to: Some("other".into()) }),
        Just(Action::Queue { queue: "other".into(), set: Gate::Disable }),
        (0_u32..4, 1_u32..4)
            .prop_map(|(number, nodes)| Action::Reserve { number, resources: vec![format!("nodes={nodes}")] }),
        (0_u32..4).prop_map(|number| Action::Unreserve { number }),
    ]
}

proptest! {
    /// PBS-X-23: a refused action changes nothing; no node is ever two running jobs' own.
    #[test]
    fn refused_actions_change_nothing(actions in prop::collection::vec(action(), 1..40)) {
        let mut site = site();
        for action in actions {
            let before = site.state().clone();
            if site.act(&action).is_err() {
                prop_assert_eq!(site.state(), &before);
            }
            let held = site.state().jobs.iter().filter(|job| job.state == State::R).flat_map(|job| &job.nodes);
            let mut held: Vec<&String> = held.collect();
            let all = held.len();
            held.sort();
            held.dedup();
            prop_assert_eq!(held.len(), all);
        }
    }
}
