//! The jobs, components and tasks that commands select.

use crate::support::{component, detailed, records, running, view};
use muster_schemas::{ids::JobId, job::Usage};
use muster_slurm::{
    job_id::{IdExpression, JobPart, StepName, list},
    queries::Failure,
    select::{
        Action::{self, *},
        Chosen, JobFilter, SchedulerParameters, Target, choose, left_of, matching, of_accounting, of_squeue, of_steps,
        shown_by_scontrol,
    },
    show::{record::JobRecord, sacct::Row, step::StepRecord},
    words::State,
};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// Job 93 with three components runs, 5 with three waits, 7 is a plain waiting job, 8 is over, 43 is an array with two
/// running and three waiting tasks.
fn jobs() -> Vec<JobRecord> {
    let array = json!({ "total": 5, "remaining": "3-5", "waiting": 3, "running": 2, "finished": {}, "max_running": 2 });
    let ended = json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null });
    records([
        running("93", 9, &["n1"], json!({ "components": 3 })),
        view(json!({ "id": "5", "components": 3 })),
        view(json!({ "id": "8", "state": "finished", "outcome": ended })),
        view(json!({ "id": "10" })),
        running("43_1", 9, &["n1"], json!({})),
        running("43_2", 9, &["n1"], json!({})),
        view(json!({ "id": "43", "array": array })),
    ])
}

fn part(text: &str) -> JobPart {
    JobPart::parse(text).unwrap_or_else(|| panic!("{text}"))
}

fn ids(text: &str) -> Vec<IdExpression> {
    list(text).unwrap_or_else(|text| panic!("{text}"))
}

fn chosen(action: Action, text: &str, whole_hetjob: bool) -> Result<Chosen, Failure> {
    choose(action, &part(text), &jobs(), whole_hetjob)
}

/// The whole of a job, or one component of it.
fn target(job: u64, component: Option<u32>) -> Result<Chosen, Failure> {
    Ok(Chosen::Targets(vec![Target { job: JobId::job(job), component }]))
}

fn refusal(result: Result<Chosen, Failure>) -> (String, u8) {
    let failure = result.expect_err("a refusal");
    (failure.lines.join("\n"), failure.code)
}

fn listed(text: &str) -> Vec<String> {
    let found = of_squeue(&ids(text), jobs()).unwrap_or_else(|failure| panic!("{failure:?}"));
    found.iter().map(|record| record.shown_id().to_string()).collect()
}

/// SL-I-06, SL-I-07, SL-I-08
#[test]
fn squeue_lists_all_components_of_the_leader_and_one_of_any_other_id() {
    assert_eq!(listed("93"), ["93+0", "93+1", "93+2"]);
    assert_eq!(listed("94"), ["93+1"]);
    assert_eq!(listed("93+2"), ["93+2"]);
    assert_eq!(listed("93+0"), ["93+0"]);
    assert_eq!(listed("93,93+1,10"), ["93+0", "93+1", "93+2", "10"], "nothing is listed twice");
}

/// SL-C-18
#[test]
fn tasks_are_listed_by_array_and_index() {
    assert_eq!(listed("43"), ["43_1", "43_2", "43_[3-5%2]"]);
    assert_eq!(listed("43_1"), ["43_1"]);
    assert_eq!(listed("43_4"), ["43_4"]);
    assert_eq!(listed("43_[2-4]"), ["43_2", "43_[3-4%2]"]);
}

/// SL-C-26
#[test]
fn one_unknown_job_is_an_error_and_one_among_several_is_not() {
    let failure = of_squeue(&ids("99"), jobs()).expect_err("a refusal");
    assert_eq!(failure, Failure::plain("slurm_load_jobs error: Invalid job id specified"));
    assert_eq!(listed("99,10"), ["10"]);
    assert_eq!(listed("98,99"), Vec::<String>::new());
    assert_eq!(of_squeue(&[], jobs()).map(|all| all.len()), Ok(jobs().len()));
}

/// SL-I-10
#[test]
fn scontrol_shows_components_in_their_order_and_tells_of_one_that_is_not_there() {
    let shown = |text: &str| {
        let found = shown_by_scontrol(&ids(text)[0], &jobs());
        found.map(|found| found.iter().map(|record| record.shown_id().to_string()).collect::<Vec<_>>())
    };
    assert_eq!(shown("93"), Ok(vec!["93+0".to_owned(), "93+1".to_owned(), "93+2".to_owned()]));
    let reversed: Vec<JobRecord> = jobs().into_iter().rev().collect();
    let ordered = shown_by_scontrol(&ids("93")[0], &reversed).expect("a job");
    let offsets: Vec<String> = ordered.iter().map(|record| record.shown_id().to_string()).collect();
    assert_eq!(offsets, ["93+0", "93+1", "93+2"], "whatever order they came in");
    assert_eq!(shown("93+1"), Ok(vec!["93+1".to_owned()]));
    assert_eq!(shown("94"), Ok(vec!["93+1".to_owned()]));
    assert_eq!(shown("93+9"), Err(Failure::plain("Job 93+9 not found")));
    assert_eq!(shown("99999"), Err(Failure::plain("slurm_load_jobs error: Invalid job id specified")));
}

/// SL-M-01, EX-04
#[test]
fn cancelling_the_leader_cancels_all_components() {
    for text in ["93", "93+0"] {
        for whole in [false, true] {
            assert_eq!(chosen(Cancel, text, whole), target(93, None), "{text}");
        }
    }
    assert_eq!(chosen(Cancel, "5+0", false), target(5, None), "also while it waits (D-14)");
}

/// SL-M-02, SL-M-04, SL-M-05, EX-06
#[test]
fn cancelling_another_component_of_a_running_job_cancels_that_one() {
    assert_eq!(chosen(Cancel, "93+1", false), target(93, Some(1)));
    assert_eq!(chosen(Cancel, "93+1", true), target(93, Some(1)));
    assert_eq!(chosen(Cancel, "94", false), target(93, Some(1)));
    assert_eq!(chosen(Cancel, "94", true), target(93, None));
}

/// SL-M-03, SL-M-05, EX-05
#[test]
fn a_component_of_a_waiting_job_cannot_be_cancelled_alone() {
    let text = |id: &str| {
        format!(
            "scancel: error: Kill job error on job id {id}: Operation not permitted on individual component of \
             heterogeneous job"
        )
    };
    assert_eq!(refusal(chosen(Cancel, "5+1", false)), (text("5+1"), 60));
    assert_eq!(refusal(chosen(Cancel, "6", false)), (text("6"), 60));
    assert_eq!(refusal(chosen(Cancel, "5+1", true)), (text("5+1"), 60));
    assert_eq!(chosen(Cancel, "6", true), target(5, None));
    assert_eq!(chosen(Cancel, "5", false), target(5, None));
}

/// SL-M-04, SL-M-05, SL-M-11
#[test]
fn holds_follow_the_number_that_was_given() {
    for action in [Hold, Release] {
        assert_eq!(chosen(action, "5", false), target(5, None));
        assert_eq!(chosen(action, "6", false), target(5, Some(1)));
        assert_eq!(chosen(action, "6", true), target(5, None));
        assert_eq!(chosen(action, "5+1", true), target(5, Some(1)));
        assert_eq!(chosen(action, "5+0", false), target(5, Some(0)));
    }
}

/// SL-M-07, SL-M-08
#[test]
fn an_update_is_of_one_component_or_of_all() {
    assert_eq!(chosen(Update, "93+2", false), target(93, Some(2)));
    assert_eq!(chosen(Update, "93", false), target(93, None));
    assert_eq!(chosen(Update, "95", true), target(93, Some(2)));
    assert_eq!(refusal(chosen(Update, "93+9", false)), ("Invalid job id specified for job 93+9".to_owned(), 1));
}

/// SL-M-09
#[test]
fn requeue_suspend_and_resume_are_of_whole_jobs() {
    for action in [Suspend, Resume] {
        assert_eq!(chosen(action, "93", false), target(93, None));
        for id in ["94", "93+1", "93+0"] {
            let text = format!("Operation not permitted on individual component of heterogeneous job for job {id}");
            assert_eq!(refusal(chosen(action, id, true)), (text, 1));
        }
    }
    assert_eq!(chosen(Requeue, "93", false), target(93, None));
    for id in ["94", "93+1", "93+0"] {
        let text = format!("Job not heterogeneous job leader for job {id}");
        assert_eq!(refusal(chosen(Requeue, id, true)), (text, 1));
    }
}

/// SL-C-37
#[test]
fn what_waits_cannot_be_put_back() {
    assert_eq!(refusal(chosen(Requeue, "10", false)), ("Job is pending execution for job 10".to_owned(), 1));
    assert_eq!(refusal(chosen(Requeue, "5", false)), ("Job is pending execution for job 5".to_owned(), 1));
    assert_eq!(refusal(chosen(Hold, "99", false)), ("Invalid job id specified for job 99".to_owned(), 1));
}

/// SL-C-34, SL-M-14
#[test]
fn steps_are_named_by_job_component_or_task_and_their_own_name() {
    let all: Vec<StepRecord> = jobs()
        .iter()
        .filter(|record| record.state == State::Running)
        .flat_map(|record| [0, 1].map(|number| StepRecord::of_job(record, StepName::Number(number), "true")))
        .collect();
    let named = |text: &str| {
        let steps = of_steps(&ids(text), all.clone());
        steps.iter().map(StepRecord::shown_id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(named("93.0"), "93+0.0 93+1.0 93+2.0");
    assert_eq!(named("94"), "93+1.0 93+1.1");
    assert_eq!(named("93+2.1"), "93+2.1");
    assert_eq!(named("43_1.0,43_[2-3].1"), "43_1.0 43_2.1");
    assert_eq!(named("43.0"), "43_1.0 43_2.0");
    assert_eq!(named("99.0"), "");
    assert_eq!(of_steps(&[], all.clone()).len(), all.len());
}

/// SL-C-31
#[test]
fn cancelling_what_is_over_or_unknown_is_no_failure() {
    let over = "Kill job error on job id 8: Job/step already completing or completed".to_owned();
    assert_eq!(chosen(Cancel, "8", false), Ok(Chosen::Nothing(over.clone())));
    let ending = records([view(json!({ "id": "9", "state": "finishing" }))]);
    // It may be about to be requeued.
    let ending = choose(Cancel, &part("9"), &ending, false);
    let all_of_it = |job| Ok(Chosen::Targets(vec![Target { job: JobId::job(job), component: None }]));
    assert_eq!(ending, all_of_it(9));
    for (stopping, is_over) in [("cancelled", true), ("cancelled_at_once", true), ("requeued", false)] {
        let ending = records([view(json!({ "id": "8", "state": "finishing", "stopping": stopping }))]);
        assert_eq!(choose(Cancel, &part("8"), &ending, false), all_of_it(8), "{stopping}");
        let ending: Vec<JobRecord> = ending.into_iter().map(JobRecord::over_if_cancelled).collect();
        let expected = if is_over { Ok(Chosen::Nothing(over.clone())) } else { all_of_it(8) };
        assert_eq!(choose(Cancel, &part("8"), &ending, false), expected, "{stopping}");
    }
    let over = component(json!({ "state": "finished", "outcome": { "outcome": "cancelled", "exit_status": null } }));
    let stands = [component(json!({})), over];
    let one_left = records([running("5", 9, &["n1"], json!({ "components": 2, "by_component": stands }))]);
    assert!(matches!(choose(Cancel, &part("6"), &one_left, false), Ok(Chosen::Nothing(_))));
    // The other component keeps running (SL-M-05).
    assert_eq!(choose(Cancel, &part("6"), &one_left, true), all_of_it(5));
    let unknown = "Kill job error on job id 99: Invalid job id specified".to_owned();
    assert_eq!(chosen(Cancel, "99", false), Ok(Chosen::Nothing(unknown)));
}

/// SL-C-18, EX-19
#[test]
fn tasks_are_acted_on_one_by_one_and_arrays_as_a_whole() {
    assert_eq!(chosen(Cancel, "43", false), target(43, None));
    assert_eq!(chosen(Cancel, "43_*", false), target(43, None));
    let tasks = |indices: &[u32]| {
        let target = |index: &u32| Target { job: JobId::task(43, *index), component: None };
        Ok(Chosen::Targets(indices.iter().map(target).collect()))
    };
    assert_eq!(chosen(Cancel, "43_5", false), tasks(&[5]));
    assert_eq!(chosen(Cancel, "43_[3-4]", false), tasks(&[3, 4]));
    assert_eq!(chosen(Cancel, "43_[4-9]", false), tasks(&[4, 5]), "tasks that do not exist are left out");
}

/// SL-C-18: an array that was submitted as 43 and has five tasks has the numbers 43 to 47.
#[test]
fn the_number_of_a_task_is_that_task() {
    let array =
        json!({ "total": 5, "remaining": "3-5", "waiting": 3, "running": 2, "finished": {}, "numbered": "1-5" });
    let all = records([
        view(json!({ "id": "43", "number": 43, "array": array })),
        running("43_1", 9, &["n1"], json!({ "number": 43 })),
        running("43_2", 9, &["n1"], json!({ "number": 44 })),
        view(json!({ "id": "48" })),
    ]);
    let squeue = |text: &str| {
        let found = of_squeue(&ids(text), all.clone()).unwrap_or_else(|failure| panic!("{failure:?}"));
        found.iter().map(|record| format!("{} {}", record.shown_id(), record.number)).collect::<Vec<_>>()
    };
    assert_eq!(squeue("43"), ["43_[3-5] 43", "43_1 43", "43_2 44"]);
    assert_eq!(squeue("44"), ["43_2 44"]);
    assert_eq!(squeue("46"), ["43_4 46"]);
    assert_eq!(squeue("43_5"), ["43_5 47"]);
    assert_eq!(squeue("48"), ["48 48"]);
    let chosen = |action, text: &str| match choose(action, &part(text), &all, false) {
        Ok(Chosen::Targets(targets)) => targets.iter().map(|target| target.job.to_string()).collect::<Vec<_>>(),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(chosen(Cancel, "43"), ["43"]);
    assert_eq!(chosen(Cancel, "44"), ["43_2"]);
    assert_eq!(chosen(Hold, "45"), ["43_3"]);
    assert_eq!(chosen(Hold, "48"), ["48"]);
    let split: Vec<u64> = all[0].clone().into_tasks().iter().map(|record| record.number).collect();
    assert_eq!(split, [45, 46, 47]);
}

/// SL-M-17
#[test]
fn filters_take_whole_jobs_by_their_leader_and_running_components_alone() {
    let with = |state: State, change: &dyn Fn(&mut JobRecord), whole: bool| {
        let mut all: Vec<JobRecord> =
            records([running("93", 9, &["n1"], json!({ "components": 3 })), view(json!({ "id": "7" }))]);
        all[..3].iter_mut().for_each(|record| record.state = state);
        change(&mut all[1]);
        let filter = JobFilter { partition: Some("p2".to_owned()), ..JobFilter::default() };
        matching(&filter, &all, whole)
    };
    let to_p2 = |record: &mut JobRecord| record.partition = "p2".to_owned();
    let part = vec![Target { job: JobId::job(93), component: Some(1) }];
    assert_eq!(with(State::Running, &to_p2, false), part);
    assert_eq!(with(State::Running, &to_p2, true), []);
    assert_eq!(with(State::Pending, &to_p2, false), []);
    let mut all = jobs();
    all.retain(|record| record.array.is_none());
    let ann = JobFilter { user: Some("root".to_owned()), ..JobFilter::default() };
    let whole = |job| Target { job: JobId::job(job), component: None };
    assert_eq!(matching(&ann, &all, false), [whole(5), whole(10), whole(93)]);
}

/// SL-M-17: filters are checked against each part of an id.
#[test]
fn filters_leave_a_part_of_what_an_id_means() {
    let mut all = jobs();
    all.iter_mut().filter(|record| record.number == 94).for_each(|record| record.partition = "p2".to_owned());
    let left = |text: &str, filter: &JobFilter, whole| left_of(&part(text), filter, &all, whole);
    let of = |partition: &str| JobFilter { partition: Some(partition.to_owned()), ..JobFilter::default() };
    let second = Some(vec![Target { job: JobId::job(93), component: Some(1) }]);
    for id in ["93", "94", "93+0", "93+1", "8", "99"] {
        assert_eq!(left(id, &JobFilter::default(), false), None, "{id}: nothing is left out");
    }
    assert_eq!(left("93", &of("p2"), false), second);
    assert_eq!(left("93", &of("p2"), true), Some(Vec::new()));
    assert_eq!(left("93", &of("debug"), false), None, "the leader stands for all");
    assert_eq!(left("94", &of("p2"), false), None);
    assert_eq!(left("93+1", &of("p2"), false), None);
    for id in ["94", "93+1", "93+0"] {
        let other = if id == "93+0" { "p2" } else { "debug" };
        assert_eq!(left(id, &of(other), false), Some(Vec::new()), "{id}");
    }
    // SL-C-31: an unknown or finished job matches nothing.
    assert_eq!(left("8", &of("debug"), false), Some(Vec::new()));
    assert_eq!(left("99", &of("debug"), false), Some(Vec::new()));
    // For an array, the tasks that match.
    let waiting = JobFilter { states: vec![State::Pending], ..JobFilter::default() };
    let tasks = |indices: &[u32]| {
        Some(indices.iter().map(|index| Target { job: JobId::task(43, *index), component: None }).collect::<Vec<_>>())
    };
    assert_eq!(left("43", &waiting, false), tasks(&[3, 4, 5]));
    assert_eq!(left("43_[2-4]", &waiting, false), tasks(&[3, 4]));
    assert_eq!(left("43_[3-4]", &waiting, false), None);
    assert_eq!(left("43", &of("debug"), false), None);
    all.retain(|record| record.array.is_some());
    assert_eq!(Some(matching(&waiting, &all, false)), tasks(&[3, 4, 5]));
}

/// SL-C-31
#[test]
fn filters_that_match_nothing_are_told() {
    let filter = JobFilter {
        user: Some("ann".to_owned()),
        partition: Some("p2".to_owned()),
        states: vec![State::Running],
        ..JobFilter::default()
    };
    let wanted = "No active jobs match ALL job filters, including: partition=p2, user=ann, state=RUNNING";
    assert_eq!(filter.nothing_matches(), wanted);
}

fn accounted(text: &str, whole_hetjob: Option<bool>) -> Vec<String> {
    let mut rows = Vec::new();
    for job in records([running("67767", 9, &["n1"], json!({ "components": 2 })), view(json!({ "id": "7" }))]) {
        let job = Arc::new(job);
        let row = |step| Row {
            job: Arc::clone(&job),
            step,
            usage: Usage::default(),
            derived_exit: Default::default(),
            cancelled_by: None,
            cluster: "alpha".into(),
            failed_node: None,
            flags: Default::default(),
            association: None,
            units: Default::default(),
        };
        rows.push(row(None));
        let step = IdExpression::parse("1.batch").and_then(|id| id.step).expect("a step");
        rows.push(row(Some(StepRecord::of_job(&job, step, "batch"))));
    }
    of_accounting(&ids(text), rows, whole_hetjob).iter().map(Row::shown_id).collect()
}

/// SL-A-03, SL-A-04, EX-08
#[test]
fn accounting_lists_the_components_that_were_named() {
    let both = ["67767+0", "67767+0.batch", "67767+1", "67767+1.batch"];
    assert_eq!(accounted("67767", None), both);
    assert_eq!(accounted("67767+1", None), &both[2..]);
    assert_eq!(accounted("67768", None), &both[2..]);
    assert_eq!(accounted("67767", Some(false)), &both[..2]);
    assert_eq!(accounted("67767+1", Some(true)), both);
    assert_eq!(accounted("67768", Some(true)), both);
    assert_eq!(accounted("67767", Some(true)), both);
    assert_eq!(accounted("67767+1", Some(false)), &both[2..]);
}

/// SL-A-07
#[test]
fn accounting_lists_a_step_alone_if_it_is_named() {
    assert_eq!(accounted("67767.batch", None), ["67767+0.batch", "67767+1.batch"]);
    assert_eq!(accounted("7.batch,67767+1.batch", None), ["67767+1.batch", "7.batch"]);
    assert_eq!(accounted("7", None), ["7", "7.batch"]);
    assert_eq!(accounted("99", None), Vec::<String>::new());
}

proptest! {
    /// For any names: selected parts exist, and a refusal has a message.
    #[test]
    fn targets_exist_and_refusals_have_words(
        number in 1u64..100, offset in 0u32..5, form in 0u8..4, action in 0u8..7, whole in any::<bool>()
    ) {
        let text = match form {
            0 => number.to_string(),
            1 => format!("{number}+{offset}"),
            2 => format!("{number}_{offset}"),
            _ => format!("{number}_[{offset}-{}]", offset + 3),
        };
        let action = [Cancel, Hold, Release, Requeue, Suspend, Resume, Update][usize::from(action)];
        match chosen(action, &text, whole) {
            Ok(Chosen::Targets(targets)) => {
                prop_assert!(!targets.is_empty());
                for target in targets {
                    let jobs = jobs();
                    prop_assert!(jobs.iter().any(|record| record.het.as_ref().map_or(record.number, |het| het.leader)
                        == target.job.number), "{target:?}");
                }
            }
            Ok(Chosen::Nothing(text)) => prop_assert!(action == Cancel && !text.is_empty()),
            Err(failure) => prop_assert!(failure.code > 0 && !failure.lines.is_empty()),
        }
    }
}

/// SL-M-05, SL-R-11
#[test]
fn scheduler_parameters_are_words_between_commas() {
    let parse = SchedulerParameters::parse;
    let both = SchedulerParameters { whole_hetjob: true, disable_hetjob_steps: true, ..SchedulerParameters::default() };
    assert_eq!(parse("bf_interval=30, whole_hetjob,disable_hetjob_steps"), both);
    assert_eq!(parse("whole_pack"), SchedulerParameters { disable_hetjob_steps: false, ..both });
    assert_eq!(parse("max_switch_wait=60,x").most_switch_wait_seconds, 60);
    for text in ["", "whole_hetjob=no", "not_whole_hetjob", "max_switch_wait=never", "max_switch_wait=300"] {
        assert_eq!(parse(text), SchedulerParameters::default(), "{text}");
    }
}

/// SL-M-09: a job whose owner does not want it to run twice is not requeued.
#[test]
fn a_job_that_must_not_run_twice_is_not_requeued() {
    let text = "Requested operation is presently disabled for job 7".to_owned();
    for components in [1, 2] {
        let parts = vec![json!({}); components];
        let spec = json!({ "components": parts, "attributes": { "slurm.0.no-requeue": "yes" } });
        let job = running("7", 5, &["n1"], json!({ "components": components }));
        let records = detailed(job, spec, json!([]));
        assert_eq!(refusal(choose(Requeue, &part("7"), &records, false)), (text.clone(), 1));
        assert!(choose(Suspend, &part("7"), &records, false).is_ok());
    }
}

/// SL-C-18: an id can name far more tasks than exist.
#[test]
fn only_tasks_that_there_are_are_looked_at() {
    let tasks = |index| Target { job: JobId::task(43, index), component: None };
    let all = Chosen::Targets((1..6).map(tasks).collect());
    assert_eq!(chosen(Cancel, "43_[0-4000000000]", false), Ok(all));
}

/// SL-C-25, SL-C-32: a requeued and held job counts as waiting.
#[test]
fn who_asks_for_jobs_that_wait_means_held_ones_too() {
    assert!(State::RequeueHold.is_in(&[State::Pending]) && State::Pending.is_in(&[State::Pending]));
    assert!(!State::Pending.is_in(&[State::RequeueHold]) && !State::Running.is_in(&[State::Pending]));
    let held = view(json!({ "state": "held", "runs": 1, "holds": { "user": true } }));
    let filter = JobFilter { states: vec![State::Pending], ..JobFilter::default() };
    assert_eq!(matching(&filter, &records([held]), false), [Target { job: JobId::job(7), component: None }]);
}
