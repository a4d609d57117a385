//! Checks what callers were told against what happened. It knows nothing of ledgers: it has the calls with their
//! answers, the list of jobs at the end, and what the jobs themselves wrote.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

/// A submission under a name that no other has, and its answer.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    pub begun: Instant,
    pub ended: Instant,
    /// The id of the job; `None` if the caller was not told what became of it.
    pub id: Option<String>,
}

/// What is true when all is over.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The jobs: id and name.
    pub jobs: Vec<(String, String)>,
    /// How often each id has run.
    pub marks: BTreeMap<String, u32>,
    /// The end of the log of each ledger, by its name.
    pub heads: BTreeMap<String, String>,
}

/// Everything that contradicts the calls; empty if nothing does.
pub fn contradictions(calls: &[Call], outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut answered: BTreeMap<&str, &str> = BTreeMap::new();
    for call in calls {
        let Some(id) = &call.id else { continue };
        if let Some(other) = answered.insert(id, &call.name) {
            found.push(format!("job {id} was given to {other} and to {}", call.name));
        }
    }
    let mut ids = BTreeSet::new();
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, name) in &outcome.jobs {
        if !ids.insert(id.as_str()) {
            found.push(format!("job {id} is listed twice"));
        }
        by_name.entry(name).or_default().push(id);
    }
    for call in calls {
        let there = by_name.remove(call.name.as_str()).unwrap_or_default();
        match (&call.id, &there[..]) {
            (Some(id), [one]) if id == one => {}
            (Some(id), _) => found.push(format!("{} was told job {id}, and there are the jobs {there:?}", call.name)),
            // Nobody promised it, and it may exist.
            (None, [] | [_]) => {}
            (None, _) => found.push(format!("{} exists more than once: {there:?}", call.name)),
        }
    }
    found.extend(by_name.iter().map(|(name, ids)| format!("nobody has submitted {name}: {ids:?}")));
    for id in &ids {
        match outcome.marks.get(*id) {
            Some(1) => {}
            Some(times) => found.push(format!("job {id} has run {times} times")),
            None => found.push(format!("job {id} has not run")),
        }
    }
    let strange = outcome.marks.keys().filter(|id| !ids.contains(id.as_str()));
    found.extend(strange.map(|id| format!("job {id} has run, and does not exist")));
    let heads: BTreeSet<&String> = outcome.heads.values().collect();
    if heads.len() != 1 {
        found.push(format!("the ledgers end differently: {:?}", outcome.heads));
    }
    found
}

#[test]
fn a_history_without_contradictions_has_none() {
    assert_eq!(contradictions(&calls(), &good()), Vec::<String>::new());
}

#[test]
fn every_kind_of_contradiction_is_found() {
    let broken = |change: &dyn Fn(&mut Vec<Call>, &mut Outcome)| {
        let (mut calls, mut outcome) = (calls(), good());
        change(&mut calls, &mut outcome);
        contradictions(&calls, &outcome).len()
    };
    assert_eq!(broken(&|calls, _| calls[1].id = calls[0].id.clone()), 2, "an id twice, and another job under the name");
    assert!(broken(&|_, outcome| drop(outcome.jobs.remove(0))) > 0, "an acknowledged job is lost");
    assert!(broken(&|_, outcome| outcome.jobs.push(("9".into(), "b".into()))) > 0, "an acknowledged job is doubled");
    assert!(broken(&|_, outcome| outcome.jobs.push(("9".into(), "c".into()))) > 0, "an unanswered job is doubled");
    assert!(broken(&|_, outcome| outcome.jobs.push(("1".into(), "a".into()))) > 0, "a job is listed twice");
    assert!(broken(&|_, outcome| outcome.jobs.push(("9".into(), "z".into()))) > 0, "a job comes from nowhere");
    assert_eq!(broken(&|_, outcome| *outcome.marks.get_mut("1").expect("it ran") = 2), 1, "a job has run twice");
    assert_eq!(broken(&|_, outcome| outcome.marks.retain(|id, _| id != "3")), 1, "a job has not run");
    assert_eq!(broken(&|_, outcome| outcome.marks.extend([("8".to_owned(), 1)])), 1, "a job that is not there has run");
    assert_eq!(
        broken(&|_, outcome| drop(outcome.heads.insert("x".into(), "f".into()))),
        1,
        "a ledger ends differently"
    );
    assert_eq!(broken(&|_, outcome| outcome.heads.clear()), 1, "no ledger was looked at");
}

#[cfg(test)]
fn calls() -> Vec<Call> {
    let now = Instant::now();
    let call = |name: &str, id: Option<&str>| Call {
        name: name.to_owned(),
        begun: now,
        ended: now,
        id: id.map(str::to_owned),
    };
    vec![call("a", Some("1")), call("b", Some("2")), call("c", None), call("d", None)]
}

#[cfg(test)]
fn good() -> Outcome {
    let pairs = [("1", "a"), ("2", "b"), ("3", "c")];
    Outcome {
        jobs: pairs.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect(),
        marks: pairs.iter().map(|(id, _)| ((*id).to_owned(), 1)).collect(),
        heads: ["x", "y"].map(|name| (name.to_owned(), "e".to_owned())).into(),
    }
}
