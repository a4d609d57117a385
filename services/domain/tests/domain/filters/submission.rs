//! Submission filters: chains on the way into the queue.

use super::support::*;
use crate::support::*;
use muster_domain::filters::Entry;
use muster_schemas::{
    JobId,
    command::{CallOutcome, Command, JobEnding, RefusalCode},
    event::{Event, Intake, JobChange, Validated},
    filter::{FileAfter, FilterExit, FilterReport, FilterSettings, JobDocument},
    job::{JobSpec, Outcome, WaitReason},
    resources::{Count, Level, LevelCount, NodeFilter, PropertyValue, Request},
};

/// Template filters A and B, then the cluster-wide C (HPC-F-03).
fn three() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.set_template("t", &[filter("A"), filter("B")], &[]);
    cluster.set_filters(FilterSettings { submission: Some(exec("C")), ..FilterSettings::default() });
    cluster
}

/// Gives answers in the order of the calls until none is outstanding. Returns the calls that were made.
fn play(cluster: &mut Cluster, job: JobId, answers: &[FilterReport]) -> Vec<String> {
    let mut calls = Vec::new();
    let mut answers = answers.iter();
    while let Some(asked) = cluster.asked(job) {
        if asked.starts_with("check") {
            break;
        }
        let is_revert = asked.contains(" revert ");
        calls.push(asked);
        let answer = if is_revert { code(0) } else { answers.next().expect("no more filters are called").clone() };
        cluster.answer(job, answer);
    }
    cluster.assert_replays();
    calls
}

fn refused(text: &str) -> Option<Outcome> {
    Some(Outcome::Refused(text.into()))
}

/// X-4 (HPC-F-03, F-10, F-21, F-50, F-51, F-53, F-56, E-10) (HPC-F-21).
#[test]
fn the_third_of_three_fails_the_job_and_the_first_two_are_reverted() {
    let mut cluster = three();
    let (id, events) = cluster.describe("t", job(1, 1));
    assert_eq!(words(&events), ["job.submitted", "filter.chain_started"]);
    let calls = play(&mut cluster, id, &[changed("x1"), code(0), code(7)]);
    let expected = [
        "A submission filter x0",
        "B submission filter x1",
        "C submission filter x1",
        "B submission revert x1",
        "A submission revert x1",
    ];
    assert_eq!(calls, expected);
    let text = "[SubmissionFilterFailed] submission filter 'C' failed the job (exit code 7)";
    assert_eq!(cluster.outcome(id), refused(text));
    assert_eq!(cluster.state.job(id).map(|job| job.lead().priority), Some(0), "as submitted");
    assert!(cluster.state.job(id).is_some_and(|job| job.filters.as_ref().is_some_and(|f| f.entry == Entry::Refused)));
}

/// X-4 (HPC-F-50, F-53) (HPC-F-53).
#[test]
fn each_filter_gets_what_the_one_before_gave_back_and_a_revert_what_it_gave_back_itself() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    let calls = play(&mut cluster, id, &[changed("x1"), changed("x2"), code(7)]);
    let expected = [
        "A submission filter x0",
        "B submission filter x1",
        "C submission filter x2",
        "B submission revert x2",
        "A submission revert x1",
    ];
    assert_eq!(calls, expected);
}

/// X-4 (HPC-F-51)
#[test]
fn the_filter_that_ends_a_chain_is_not_reverted() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    let calls = play(&mut cluster, id, &[changed("x1"), code(2)]);
    assert_eq!(calls, ["A submission filter x0", "B submission filter x1", "A submission revert x1"]);
    let (id, _) = cluster.describe("t", job(1, 1));
    assert_eq!(play(&mut cluster, id, &[code(9)]), ["A submission filter x0"], "had A failed: no revert");
    let text = "[SubmissionFilterFailed] submission filter 'A' failed the job (exit code 9)";
    assert_eq!(cluster.outcome(id), refused(text));
}

/// HPC-E-03, HPC-J-03, HPC-F-10, HPC-T-09, HPC-F-01.
#[test]
fn a_job_that_passes_goes_from_submission_through_filters_and_check_into_the_queue() {
    let mut cluster = three();
    let first = cluster.log.len();
    let (id, _) = cluster.describe("t", job(1, 1));
    assert_eq!(cluster.reason(id), Some(WaitReason::FilterPending("submission filter 'A'".into())));
    assert!(!cluster.is_waiting(id));
    play(&mut cluster, id, &[code(0), changed("x1"), code(0)]);
    assert_eq!(cluster.asked(id).as_deref(), Some("check x1"));
    assert_eq!(cluster.reason(id), Some(WaitReason::FilterPending("the check of its description".into())));
    let mut spec = job(1, 1);
    spec.components[0].priority = Some(1000);
    cluster.pass_check_as(id, Validated { template: Some("t".into()), revision: 1, spec, ..Validated::default() });
    let events: Vec<Event> = cluster.log[first..].iter().map(|record| record.event.clone()).collect();
    let call = ["filter.invoked", "filter.verdict"];
    let mut expected = vec!["job.submitted", "filter.chain_started"];
    (0..3).for_each(|_| expected.extend(call));
    expected.extend(["filter.invoked", "filter.chain_passed", "job.validated", "job.queued"]);
    assert_eq!(words(&events), expected);
    assert!(cluster.is_waiting(id));
    let job = cluster.state.job(id).expect("it is there");
    assert_eq!(job.lead().priority, 1000, "as checked");
    assert_eq!(cluster.log[job.submitted_sequence.0 as usize - 1].event.kind_verb(), ("job", "validated"));
    assert_eq!(job.filters.as_ref().and_then(|filtering| filtering.revision), Some(1), "HPC-T-09");
    cluster.assert_replays();
}

/// HPC-E-03
#[test]
fn a_job_that_fails_is_over_before_filters_take_back_what_they_did() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    cluster.answer(id, code(0));
    cluster.answer(id, code(0));
    let events = cluster.answer(id, code(3));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_failed", "job.finished"]);
    assert_eq!(words(&cluster.answer(id, code(0))), ["filter.reverted"]);
    assert_eq!(words(&cluster.answer(id, code(0))), ["filter.reverted", "filter.rollback_completed"]);
}

/// HPC-F-10, HPC-F-17
#[test]
fn every_answer_that_is_not_0_or_1_fails_the_job_with_its_own_message() {
    let bad = FilterReport { file: FileAfter::Bad("the file is empty".into()), ..code(1) };
    let why = "it is not executable".to_owned();
    for (answer, text) in [
        (code(255), "[SubmissionFilterFailed] submission filter 'A' failed the job (exit code 255)"),
        (ended(FilterExit::Signal(9)), "[SubmissionFilterFailed] submission filter 'A' failed the job (exit code 137)"),
        (ended(FilterExit::TimedOut), "[SubmissionFilterTimedOut] submission filter 'A' timed out after 15 s"),
        (
            ended(FilterExit::NotFound("/opt/filters/A".into())),
            "[SubmissionFilterNotFound] submission filter 'A' was not found: /opt/filters/A",
        ),
        (
            ended(FilterExit::NotRunnable(why)),
            "[SubmissionFilterNotRunnable] submission filter 'A' cannot be run: it is not executable",
        ),
        (bad, "[SubmissionFilterBadOutput] submission filter 'A' gave an invalid job description: the file is empty"),
    ] {
        let mut cluster = three();
        let (id, _) = cluster.describe("t", job(1, 1));
        cluster.answer(id, answer);
        assert_eq!(cluster.outcome(id), refused(text));
        assert_eq!(cluster.asked(id), None, "nothing is to be reverted");
    }
}

/// HPC-F-11, HPC-F-12
#[test]
fn after_0_and_after_1_without_a_difference_the_job_goes_on_as_it_was() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    cluster.answer(id, FilterReport { file: changed("edited").file, ..code(0) });
    assert_eq!(cluster.asked(id).as_deref(), Some("B submission filter x0"));
    let same =
        FileAfter::Changed { document: JobDocument::xml(b"same".as_slice()), changes: Vec::new(), template: None };
    cluster.answer(id, FilterReport { file: same, ..code(1) });
    assert_eq!(cluster.asked(id).as_deref(), Some("C submission filter x0"));
}

/// HPC-F-18, HPC-T-07: the check uses the template that the description names once all filters have passed.
#[test]
fn the_check_gets_the_templates_that_filters_named() {
    let mut cluster = three();
    cluster.set_template("Other", &[], &[]);
    let names = |cluster: &Cluster, id| {
        let seed = muster_domain::filters::calls::call_seed(&cluster.state, id).expect("a call is outstanding");
        let muster_schemas::filter_order::FilterWork::Validate { templates, .. } = seed.work else {
            panic!("it is not checked yet")
        };
        templates.iter().map(|template| template.name.clone()).collect::<Vec<_>>()
    };
    let (id, _) = cluster.describe("t", job(1, 1));
    play(&mut cluster, id, &[moved_to("x1", "other"), code(0), code(0)]);
    assert_eq!(names(&cluster, id), ["Other", "t"], "the description says which of them");
    let (id, _) = cluster.describe("t", job(1, 1));
    play(&mut cluster, id, &[changed("x1"), code(0), moved_to("x2", "nosuch")]);
    assert_eq!(names(&cluster, id), ["t"]);
}

/// HPC-F-19, HPC-T-08
#[test]
fn a_template_that_does_not_exist_leaves_the_cluster_wide_filter_alone() {
    let mut cluster = three();
    let (id, _) = cluster.describe("nowhere", job(1, 1));
    assert_eq!(play(&mut cluster, id, &[code(0)]), ["C submission filter x0"]);
    let refusal = "[TemplateNotFound] template 'nowhere' does not exist";
    let spec = job(1, 1);
    cluster.pass_check_as(id, Validated { spec: spec.clone(), ..Validated::default() });
    assert_eq!(cluster.outcome(id), refused(refusal));
    let (id, _) = cluster.describe("nowhere", spec.clone());
    play(&mut cluster, id, &[changed("x1")]);
    cluster.pass_check_as(id, Validated { template: Some("t".into()), spec, ..Validated::default() });
    assert!(cluster.is_waiting(id), "the filter named another template");
}

/// HPC-F-57, HPC-T-08, HPC-F-56
#[test]
fn a_check_that_fails_rolls_the_whole_chain_back() {
    let mut cluster = three();
    let template = muster_schemas::filter::TemplateSpec {
        name: "t".into(),
        users: vec!["bob".into()],
        submission_filters: vec![filter("A"), filter("B")],
        ..Default::default()
    };
    cluster.ok(&root(), Command::SetTemplate { template: Box::new(template) });
    let (id, _) = cluster.describe("t", job(1, 1));
    play(&mut cluster, id, &[code(0), code(0), code(0)]);
    let events = cluster.pass_check(id, job(1, 1));
    assert_eq!(
        words(&events),
        ["filter.chain_failed", "job.finished", "filter.revert_skipped"],
        "C cannot be reverted"
    );
    assert_eq!(cluster.outcome(id), refused("[TemplateDenied] user ada may not submit with template 't'"));
    assert_eq!(play(&mut cluster, id, &[]), ["B submission revert x0", "A submission revert x0"]);
}

/// HPC-F-57, HPC-J-16, HPC-J-04
#[test]
fn a_job_that_the_cluster_can_never_serve_is_refused_by_the_check_and_stays_listed() {
    let mut cluster = Cluster::new();
    let (id, events) = cluster.describe("Default", job(9, 1));
    assert_eq!(words(&events), ["job.submitted"], "without filters the check is next");
    assert_eq!(cluster.asked(id).as_deref(), Some("check x0"));
    cluster.pass_check(id, job(9, 1));
    let outcome = cluster.outcome(id);
    assert!(matches!(&outcome, Some(Outcome::Refused(text)) if text.starts_with("[ClusterTooSmall]")), "{outcome:?}");
    assert!(!cluster.is_waiting(id));
}

/// Nodes 1 and 2 are in group A, nodes 2 and 3 in group B.
fn with_groups() -> Cluster {
    let mut wanted = config();
    for (node, groups) in wanted.nodes.iter_mut().zip([&["A"][..], &["A", "B"], &["B"]]) {
        node.properties = groups.iter().map(|group| ((*group).to_owned(), PropertyValue::Flag(true))).collect();
    }
    Cluster::with(wanted)
}

/// A job with this many cores and an otherwise given request.
fn asking(cores: u32, request: Request) -> JobSpec {
    let mut spec = job(1, 1);
    let path = vec![LevelCount { level: Level::Core, count: Count::exactly(cores) }];
    spec.components[0].alternatives[0].requests = vec![Request { path, ..request }];
    spec
}

fn named(nodes: &[&str]) -> Vec<String> {
    nodes.iter().map(|name| (*name).to_owned()).collect()
}

fn in_groups(all: fn(Vec<NodeFilter>) -> NodeFilter, groups: &[&str]) -> Request {
    let groups = groups.iter().map(|group| NodeFilter::Has((*group).to_owned())).collect();
    Request { filter: Some(all(groups)), ..Request::default() }
}

/// The outcome, if any, of a job that the check returns like this.
fn checked(cluster: &mut Cluster, spec: JobSpec) -> Option<Outcome> {
    let (id, _) = cluster.describe("Default", job(1, 1));
    cluster.pass_check(id, spec);
    cluster.outcome(id)
}

/// HPC-J-18
#[test]
fn unknown_nodes_and_groups_are_refused_by_name_and_so_are_too_many_exclusions() {
    let mut cluster = with_groups();
    let nodes = |nodes: &[&str]| Request { nodes: named(nodes), ..Request::default() };
    let excluded = |nodes: &[&str]| Request { excluded_nodes: named(nodes), ..Request::default() };
    let too_many = "[TooManyNodesExcluded] with the nodes that it excludes the job can never run: \
                    it asks for 5 cores, the nodes of queue `default` have 4";
    for (cores, request, text) in [
        (1, nodes(&["node1", "x9"]), "[NodeNotFound] there is no node `x9`"),
        (1, excluded(&["x9"]), "[NodeNotFound] there is no node `x9`"),
        (1, in_groups(NodeFilter::All, &["A", "Z"]), "[NodeGroupNotFound] there is no node group `Z`"),
        (1, in_groups(NodeFilter::Any, &["A", "Z"]), "[NodeGroupNotFound] there is no node group `Z`"),
        (5, excluded(&["node1", "node3"]), too_many),
    ] {
        assert_eq!(checked(&mut cluster, asking(cores, request)), refused(text));
    }
    let too_small = checked(&mut cluster, asking(13, excluded(&["node1"])));
    assert!(
        matches!(&too_small, Some(Outcome::Refused(text)) if text.starts_with("[ClusterTooSmall]")),
        "{too_small:?}"
    );
    assert_eq!(checked(&mut cluster, asking(4, excluded(&["node1", "node3"]))), None);
}

/// HPC-J-16: sockets are checked against the sockets of the nodes, not against their cores.
#[test]
fn more_sockets_than_there_are_never_fit() {
    let mut nodes = config();
    nodes.nodes.iter_mut().for_each(|node| node.sockets = 2);
    let mut cluster = Cluster::with(nodes);
    let of = |path: &[(Level, u32)]| {
        let mut spec = asking(1, Request::default());
        let level = |(level, count): &(Level, u32)| LevelCount { level: level.clone(), count: Count::exactly(*count) };
        spec.components[0].alternatives[0].requests[0].path = path.iter().map(level).collect();
        spec
    };
    let too_many =
        "[ClusterTooSmall] the job can never run: it asks for 7 sockets, the nodes of queue `default` have 6";
    assert_eq!(checked(&mut cluster, of(&[(Level::Socket, 7)])), refused(too_many));
    // More than there are cores, too.
    let far_too_many =
        "[ClusterTooSmall] the job can never run: it asks for 70 sockets, the nodes of queue `default` have 6";
    assert_eq!(checked(&mut cluster, of(&[(Level::Socket, 70)])), refused(far_too_many));
    assert_eq!(checked(&mut cluster, of(&[(Level::Socket, 6)])), None);
    let on_one = "[ClusterTooSmall] the job can never run: \
                  it asks for 3 sockets on one node, the nodes of queue `default` have 2";
    assert_eq!(checked(&mut cluster, of(&[(Level::Node, 1), (Level::Socket, 3)])), refused(on_one));
    assert_eq!(checked(&mut cluster, of(&[(Level::Node, 3), (Level::Socket, 2)])), None);
}

/// HPC-J-17
#[test]
fn a_job_must_find_its_least_among_the_nodes_of_its_groups() {
    let mut cluster = with_groups();
    let mut serves = |cores: u32, request: Request| checked(&mut cluster, asking(cores, request)).is_none();
    assert!(serves(4, in_groups(NodeFilter::All, &["A", "B"])) && !serves(5, in_groups(NodeFilter::All, &["A", "B"])));
    assert!(serves(12, in_groups(NodeFilter::Any, &["A", "B"])) && !serves(9, in_groups(NodeFilter::All, &["A"])));
    let left = Request { nodes: named(&["node1", "node2"]), ..in_groups(NodeFilter::All, &["B"]) };
    assert!(serves(4, left.clone()) && !serves(5, left.clone()));
    assert!(!serves(1, Request { excluded_nodes: named(&["node2"]), ..left }));
}

/// HPC-J-18
#[test]
fn a_queued_job_is_not_changed_to_name_what_does_not_exist() {
    let mut cluster = with_groups();
    let id = cluster.queue("Default", job(1, 1));
    for (request, text) in [
        (Request { excluded_nodes: named(&["x9"]), ..Request::default() }, "there is no node `x9`"),
        (in_groups(NodeFilter::Any, &["A", "Z"]), "there is no node group `Z`"),
    ] {
        let alternatives = asking(1, request).components[0].alternatives.clone();
        let change = JobChange { alternatives: Some(alternatives), ..JobChange::default() };
        cluster.refused(&user("ada"), Command::Modify { jobs: ids(&[id]), change }, RefusalCode::Invalid, text);
    }
}

/// HPC-F-58
#[test]
fn a_filter_that_may_have_done_half_its_work_is_reverted_first_if_it_wants_to() {
    for (wants, expected) in
        [(true, vec!["B submission revert x0", "A submission revert x0"]), (false, vec!["A submission revert x0"])]
    {
        let mut cluster = Cluster::new();
        let mut second = filter("B");
        second.revert_on_unknown = wants;
        cluster.set_template("t", &[filter("A"), second], &[]);
        let (id, _) = cluster.describe("t", job(1, 1));
        cluster.answer(id, code(0));
        cluster.answer(id, ended(FilterExit::TimedOut));
        assert_eq!(play(&mut cluster, id, &[]), expected);
    }
}

/// HPC-F-54
#[test]
fn a_revert_that_fails_is_recorded_and_the_rollback_goes_on() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    cluster.answer(id, code(0));
    cluster.answer(id, code(0));
    cluster.answer(id, code(7));
    let events = cluster.answer(id, code(3));
    assert_eq!(words(&events), ["filter.revert_failed", "job.warning"]);
    assert_eq!(cluster.asked(id).as_deref(), Some("A submission revert x0"));
    let events = cluster.answer(id, ended(FilterExit::TimedOut));
    assert_eq!(words(&events), ["filter.revert_failed", "job.warning", "filter.rollback_completed"]);
    assert_eq!(cluster.asked(id), None, "tried once");
    let text = "[SubmissionFilterFailed] submission filter 'C' failed the job (exit code 7)";
    assert_eq!(cluster.outcome(id), refused(text));
    assert_eq!(cluster.warnings(id), ["RevertFailed", "RevertFailed"]);
}

/// HPC-F-23, HPC-F-68, HPC-C-06
#[test]
fn a_cancel_during_a_call_is_carried_out_after_the_verdict_and_outweighs_it() {
    for answer in [code(0), code(7)] {
        let mut cluster = three();
        let (id, _) = cluster.describe("t", job(1, 1));
        cluster.answer(id, code(0));
        let call = cluster.claim("r1", id);
        let cancel =
            Command::EndJobs { jobs: ids(&[id]), ending: JobEnding { message: "no".into(), ..Default::default() } };
        let events = cluster.ok(&user("ada"), cancel.clone());
        assert_eq!(words(&events), ["job.message", "job.end_requested"]);
        let again = cluster.ok(&user("ada"), cancel);
        assert_eq!(words(&again), ["job.message"], "it is on its way already");
        assert_eq!(cluster.outcome(id), None);
        let events = cluster.report("r1", call, CallOutcome::Called(Box::new(answer.clone())));
        assert_eq!(words(&events)[..3], ["filter.verdict", "filter.chain_failed", "job.finished"]);
        assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
        let mut expected = vec!["A submission revert x0"];
        if answer.exit == FilterExit::Code(0) {
            expected.insert(0, "B submission revert x0");
        }
        assert_eq!(play(&mut cluster, id, &[]), expected, "all that passed");
    }
}

/// HPC-F-23
#[test]
fn a_cancel_between_calls_ends_the_job_at_once_and_rolls_back_what_passed() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    cluster.answer(id, code(0));
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    assert_eq!(words(&events), ["filter.chain_failed", "job.finished"]);
    assert_eq!(play(&mut cluster, id, &[]), ["A submission revert x0"]);
}

/// HPC-F-22
#[test]
fn a_requeue_of_a_refused_job_runs_the_chain_from_the_start_and_a_change_of_a_queued_one_does_not() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    cluster.answer(id, changed("x1"));
    cluster.answer(id, code(5));
    let requeue = Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 };
    cluster.refused(&user("ada"), requeue.clone(), RefusalCode::Conflict, "rolling back");
    cluster.answer(id, code(0));
    let events = cluster.ok(&user("ada"), requeue);
    assert_eq!(words(&events), ["job.requeued", "job.entered", "filter.chain_started"]);
    let calls = play(&mut cluster, id, &[code(0), code(0), code(0)]);
    assert_eq!(calls, ["A submission filter x0", "B submission filter x0", "C submission filter x0"]);
    cluster.pass_check(id, job(1, 1));
    let change = muster_schemas::event::JobChange { priority: Some(5), ..Default::default() };
    let events = cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change });
    assert_eq!(words(&events), ["job.modified"]);
    let run = cluster.start(id, &["node1"], 1);
    cluster.end(run, "node1", muster_schemas::job::ExitStatus::Code(1));
    let events = cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 });
    assert_eq!(words(&events), ["job.requeued", "job.entered", "filter.chain_started"]);
    assert_eq!(cluster.asked(id).as_deref(), Some("A submission filter x0"));
}

/// HPC-F-02, HPC-T-01: a job of another dialect has no template, and the cluster-wide filter judges it.
#[test]
fn a_job_without_a_description_is_judged_by_the_cluster_wide_filter_and_checked_if_that_changed_it() {
    let mut cluster = three();
    let id = cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.asked(id).as_deref(), Some("C submission filter -"));
    let events = cluster.answer(id, code(0));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_passed", "job.queued"]);
    assert!(cluster.is_waiting(id));
    let id = cluster.submit("ada", job(1, 1));
    cluster.answer(id, changed("x1"));
    assert_eq!(cluster.asked(id).as_deref(), Some("check x1"));
    cluster.pass_check(id, job(2, 1));
    assert!(cluster.is_waiting(id));
    cluster.assert_replays();
    let array = cluster.submit("ada", array(muster_schemas::resources::IndexSet::first_n(3), None));
    cluster.answer(array, code(3));
    assert!(cluster.state.job(array).is_some_and(|job| job.is_finished()));
    cluster.assert_replays();
}

/// Changes by filters and the check do not change the dialect of a job.
#[test]
fn a_job_stays_of_its_dialect() {
    let mut cluster = three();
    let of = |dialect: &str| JobSpec { dialect: Some(dialect.into()), ..job(1, 1) };
    let id = cluster.submit("ada", of("a"));
    cluster.answer(id, changed("x1"));
    let events = cluster.pass_check(id, of("b"));
    let kept = events.iter().find_map(|event| match event {
        Event::JobValidated { validated, .. } => validated.spec.dialect.as_deref(),
        _ => None,
    });
    assert_eq!(kept, Some("a"));
    assert_eq!(cluster.state.job(id).and_then(|job| job.dialect.as_deref()), Some("a"));
    cluster.assert_replays();
}

/// HPC-F-04
#[test]
fn a_chain_stays_as_it_was_when_it_began() {
    let mut cluster = three();
    let (id, _) = cluster.describe("t", job(1, 1));
    let hash = FilterReport { program_hash: Some("abc".into()), ..code(0) };
    cluster.answer(id, hash);
    cluster.set_template("t", &[], &[]);
    cluster.set_filters(FilterSettings { submission_timeout_seconds: 99, ..FilterSettings::default() });
    assert_eq!(cluster.asked(id).as_deref(), Some("B submission filter x0"));
    cluster.answer(id, code(0));
    assert_eq!(cluster.asked(id).as_deref(), Some("C submission filter x0"));
    cluster.set_template("t", &[filter("A")], &[]);
    let (_, events) = cluster.describe("t", job(1, 1));
    let Event::FilterChainStarted { chain, .. } = &events[1] else { panic!("no chain: {events:?}") };
    assert_eq!(chain.filters[0].program_hash.as_deref(), Some("abc"), "as a runner found it");
    assert_eq!((chain.filters.len(), chain.limit_seconds), (1, 99));
}

/// HPC-F-01, HPC-F-40
#[test]
fn without_filters_and_description_nothing_is_called() {
    let mut cluster = Cluster::new();
    let (id, events) = cluster.intake(job(1, 1), Intake::default());
    assert_eq!(words(&events), ["job.submitted"]);
    assert!(cluster.is_waiting(id));
    assert_eq!(words(&cluster.offer_cores(id, 1)), ["job.allocated", "plan.made"]);
}
