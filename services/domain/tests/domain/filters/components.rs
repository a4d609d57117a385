//! Submission filters of jobs with several components: each component is judged by itself.

use super::support::*;
use crate::support::*;
use muster_domain::filters::calls::DocumentSeed;
use muster_schemas::{
    JobId, Sequence,
    command::CallOutcome,
    event::{Event, Validated},
    filter::{FilterReport, FilterSettings},
    filter_order::ComponentPart,
    job::{JobSpec, Launch, Outcome},
};

/// A script in the first of this many components; the others only hold resources.
pub fn several(components: usize) -> JobSpec {
    let mut spec = job(1, 1);
    let other = muster_schemas::job::Component { launch: Launch::default(), ..spec.components[0].clone() };
    spec.components.resize(components, other);
    spec
}

fn judged() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.set_filters(FilterSettings { submission: Some(exec("C")), ..FilterSettings::default() });
    cluster
}

fn told(cluster: &Cluster, job: JobId) -> Option<ComponentPart> {
    cluster.seed(job).expect("a call is outstanding").component
}

fn saying(text: &str, report: FilterReport) -> FilterReport {
    FilterReport { message: Some(text.into()), ..report }
}

/// SL-S-21: one call for each component in order, with its offset and the number of components; then the job is in the
/// queue.
#[test]
fn a_submission_filter_is_called_once_for_each_component() {
    let mut cluster = judged();
    let id = cluster.submit("ada", several(3));
    for offset in 0..3 {
        assert_eq!(told(&cluster, id), Some(ComponentPart { offset, count: 3 }));
        assert!(!cluster.state.job(id).is_some_and(|job| job.gates_open()));
        cluster.answer(id, code(0));
    }
    assert_eq!(cluster.seed(id), None);
    assert!(cluster.state.job(id).is_some_and(|job| job.gates_open()));
    cluster.assert_replays();
}

/// SL-S-21: each of several filters judges a component before the next component is judged; arrays and plain jobs are
/// judged as before.
#[test]
fn all_filters_judge_a_component_before_the_next_is_judged() {
    let mut cluster = judged();
    cluster.set_template("Default", &[filter("A")], &[]);
    let (id, _) = cluster.intake(several(2), Default::default());
    let mut calls = Vec::new();
    while let Some(asked) = cluster.asked(id) {
        calls.push((asked, told(&cluster, id).map(|part| part.offset)));
        cluster.answer(id, code(0));
    }
    let of = |name: &str, offset| (format!("{name} submission filter -"), Some(offset));
    assert_eq!(calls, [of("A", 0), of("C", 0), of("A", 1), of("C", 1)]);
    let plain = cluster.submit("ada", job(1, 1));
    assert_eq!(told(&cluster, plain), None);
    assert_eq!(
        cluster.state.job(plain).and_then(|job| job.filters.as_ref()?.chain.as_ref()).map(|chain| chain.end()),
        Some(1)
    );
}

/// SL-S-12, SL-S-21: the refusal of one component refuses the whole job, and messages name the component.
#[test]
fn the_refusal_of_one_component_refuses_the_job_and_names_it() {
    let mut cluster = judged();
    let id = cluster.submit("ada", several(3));
    cluster.answer(id, code(0));
    let events = cluster.answer(id, saying("no GPUs today", code(2)));
    let text = "1: [SubmissionFilterFailed] submission filter 'C' failed the job (exit code 2)";
    assert_eq!(cluster.outcome(id), Some(Outcome::Refused(text.into())));
    assert!(events.contains(&Event::JobMessage { job: id, text: "1: no GPUs today".into() }), "{events:?}");
    let plain = cluster.submit("ada", job(1, 1));
    let events = cluster.answer(plain, saying("no GPUs today", code(2)));
    assert!(events.contains(&Event::JobMessage { job: plain, text: "no GPUs today".into() }), "{events:?}");
    cluster.assert_replays();
}

/// SL-S-21: a filter's change of one component goes to the next filter of that component and to no other; the check
/// gets the last description of each.
#[test]
fn changes_stay_with_their_component() {
    let mut cluster = judged();
    cluster.set_template("Default", &[filter("A")], &[]);
    let (id, _) = cluster.intake(several(2), Default::default());
    let mut verdicts: Vec<Sequence> = Vec::new();
    let mut documents = Vec::new();
    for report in [changed("zero"), code(0), code(0), changed("one")] {
        documents.push(cluster.seed(id).expect("a call").document);
        cluster.answer(id, report);
        let is_verdict = |record: &&muster_schemas::event::Record| matches!(record.event, Event::FilterVerdict { .. });
        verdicts.extend(cluster.log.iter().filter(is_verdict).map(|record| record.sequence).next_back());
    }
    let zero = DocumentSeed::Changed(verdicts[0]);
    assert_eq!(documents, [DocumentSeed::None, zero, DocumentSeed::None, DocumentSeed::None]);
    let check = cluster.seed(id).expect("the check");
    assert_eq!((check.component, check.document), (None, DocumentSeed::None));
    assert_eq!(check.changed, [(0, verdicts[0]), (1, verdicts[3])]);
    let call = cluster.claim("r1", id);
    let validated = Validated { spec: several(2), ..Validated::default() };
    cluster.report("r1", call, CallOutcome::Validated(Box::new(validated)));
    assert!(cluster.state.job(id).is_some_and(|job| job.gates_open()));
    cluster.assert_replays();
}

/// HPC-F-51, SL-S-21: the filters of all components that passed undo their work, each told its component.
#[test]
fn filters_of_components_are_rolled_back_from_the_last() {
    let mut cluster = Cluster::new();
    cluster.set_template("Default", &[filter("A")], &[]);
    let (id, _) = cluster.intake(several(3), Default::default());
    cluster.answer(id, code(0));
    cluster.answer(id, code(0));
    cluster.answer(id, code(9));
    let mut reverted = Vec::new();
    while let Some(asked) = cluster.asked(id) {
        assert_eq!(asked, "A submission revert -");
        reverted.extend(told(&cluster, id).map(|part| part.offset));
        cluster.answer(id, code(0));
    }
    assert_eq!(reverted, [1, 0]);
}
