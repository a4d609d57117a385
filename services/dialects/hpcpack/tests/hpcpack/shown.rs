//! Jobs as users see them, and settings and templates as the core stores them.

use muster_hpcpack::{
    core_settings::{acts_for, no_effect_because, to_filters, to_scheduling, with_core},
    description::values::JobState,
    settings::{NAMES, Settings},
    shown,
    stored_template::{from_stored, to_stored},
    template::Template,
};
use muster_schemas::{
    filter::{FilterForm, FilterSettings},
    scheduling::{Preemption, SchedulingMode, SchedulingSettings},
    views::JobView,
};
use serde_json::{Value, json};

/// A job with these members in addition to those of every job.
fn job(members: Value) -> JobView {
    let mut all = json!({
        "id": "7", "name": "n", "owner": "ann", "queue": "default", "account": null, "priority": 2000,
        "state": "queued", "reason": null, "holds": {}, "outcome": null, "submitted": "2026-11-20T08:00:00Z",
        "begin": null, "started": null, "ended": null, "walltime_seconds": 90, "nodes": [], "node_count": 1,
        "tasks": 1, "cores": 1, "components": 1, "run": null, "runs": 0, "array": null
    });
    let (Value::Object(all_members), Value::Object(more)) = (&mut all, members) else { panic!("objects") };
    all_members.extend(more);
    serde_json::from_value(all).expect("a job")
}

fn entry(word: &str, chain: Value) -> Value {
    json!({ "filtering": {
        "template": "T", "template_revision": 3, "entry": word, "hold_until": null, "hold_by": "filter",
        "is_backfill": true, "message": "m", "warnings": [{"code": "C", "text": "t"}], "chain": chain, "refusal": null,
        "kept_nodes": ["n1"]
    }})
}

fn outcome(word: &str, detail: Value) -> JobView {
    job(json!({ "state": "finished", "outcome": { "outcome": word, "exit_status": null, "detail": detail } }))
}

/// HPC-J-02
#[test]
fn every_job_has_a_state_of_the_dialect() {
    let chain = json!({
        "number": 1, "kind": "submission", "filters": ["f"], "position": 0, "action": "filter", "attempt": 1,
        "runner": null, "failure": null
    });
    for (members, wanted) in [
        (entry("configuring", Value::Null), JobState::Configuring),
        (entry("filtering", Value::Null), JobState::Submitted),
        (entry("filtering", chain), JobState::ExternalValidation),
        (entry("validating", Value::Null), JobState::Validating),
        (entry("entered", Value::Null), JobState::Queued),
        (entry("refused", Value::Null), JobState::Failed),
        (json!({"state": "held"}), JobState::Queued),
        (json!({"state": "launching"}), JobState::Running),
        (json!({"state": "suspended"}), JobState::Running),
        (json!({"state": "finishing"}), JobState::Finishing),
    ] {
        assert_eq!(shown::state(&job(members.clone())), wanted, "{members}");
    }
    for (word, wanted) in [
        ("completed", JobState::Finished),
        ("declared_finished", JobState::Finished),
        ("failed", JobState::Failed),
        ("refused", JobState::Failed),
        ("cancelled", JobState::Canceled),
        ("timed_out", JobState::Canceled),
    ] {
        assert_eq!(shown::state(&outcome(word, Value::Null)), wanted, "{word}");
    }
}

/// HPC-J-26
#[test]
fn every_reason_to_wait_has_a_word_of_the_dialect() {
    let reason = |code: &str, holds: Value| {
        let reason = json!({ "code": code, "text": "t", "job": null });
        let mut members = entry("entered", Value::Null);
        members["reason"] = reason;
        members["holds"] = holds;
        job(members)
    };
    for (code, wanted) in [
        ("not_planned_yet", "None"),
        ("resources", "NotEnoughResource"),
        ("dependency", "ParentJobsNotFinished"),
        ("dependency_never_met", "ParentJobsCanceledOrFailed"),
        ("nodes_unavailable", "RequiredNodesNotAvailable"),
        ("activation_filter", "ActivationFilter"),
        ("blocked_by_job", "BlockedByJob"),
        ("filter_pending", "FilterPending"),
        ("held_until", "HeldByActivationFilter"),
        ("held", "HeldByUser"),
    ] {
        assert_eq!(shown::pending_reason(&reason(code, json!({})), None), Some(wanted), "{code}");
    }
    assert_eq!(shown::pending_reason(&reason("held", json!({"system": true})), None), Some("HeldByAdmin"));
    let behind = reason("behind_job", json!({}));
    assert_eq!(shown::pending_reason(&behind, Some(2000)), Some("JobSubmittedEarlier"));
    assert_eq!(shown::pending_reason(&behind, Some(2001)), Some("HigherPriorityJob"));
    assert_eq!(shown::pending_reason(&job(json!({})), None), None);
}

/// HPC-C-07, HPC-E-10, HPC-J-11
#[test]
fn a_job_shows_its_error_with_code_its_template_and_its_warnings() {
    let refused = "[SubmissionFilterFailed] submission filter 'C' failed the job (exit code 7)";
    assert_eq!(shown::error(&outcome("refused", json!(refused))).as_deref(), Some(refused));
    assert_eq!(shown::code_of(refused), Some("SubmissionFilterFailed"));
    let expired = shown::error(&outcome("timed_out", Value::Null));
    assert_eq!(expired.as_deref(), Some("[RunTimeExpired] the run time of 90 s is over"));
    assert_eq!(shown::error(&job(json!({}))), None);
    let fields = shown::fields(&job(entry("entered", Value::Null)), None, |time| time.to_string());
    let of = |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.as_str());
    assert_eq!((of("Job Template"), of("Template Revision")), (Some("T"), Some("3")));
    assert_eq!((of("Warning"), of("Message"), of("IsBackfill")), (Some("[C] t"), Some("m"), Some("true")));
    assert_eq!((of("Priority"), of("Run Time"), of("Reserved Nodes")), (Some("Normal"), Some("90 s"), Some("n1")));
}

/// HPC-E-02
#[test]
fn the_end_of_a_job_has_a_name_for_each_way() {
    let name = |outcome: &str| shown::event_name("muster.job.finished.v1", &json!({"outcome": outcome}));
    assert_eq!(name("completed"), "job.finished");
    assert_eq!(name("cancelled"), "job.canceled");
    assert_eq!(name("refused"), "job.failed");
    let stops = |kind: &str, reason: &str| shown::event_name(kind, &json!({"reason": reason}));
    assert_eq!(stops("muster.job.stopping.v1", "preempted"), "job.preempted");
    assert_eq!(stops("muster.job.shrinking.v1", "preempted"), "job.preempted");
    assert_eq!(stops("muster.job.stopping.v1", "cancelled"), "job.stopping");
    assert_eq!(shown::event_name("muster.filter.verdict.v1", &json!({})), "filter.verdict");
}

/// HPC-C-09
#[test]
fn settings_go_to_the_core_and_come_back() {
    let (filters, scheduling) = (FilterSettings::default(), SchedulingSettings::default());
    assert_eq!(with_core(&filters, &scheduling), Settings::default());
    let changes = [
        "SubmissionFilterProgram=/opt/check",
        "ActivationFilterTimeout=3",
        "ActivationOrdering=Relaxed",
        "SchedulingMode=Balanced",
        "PreemptionType=None",
        "PriorityBias=NoBias",
        "BackfillLookAhead=-1",
        "AutomaticGrowthEnabled=false",
        "ReBalancingInterval=60",
    ];
    let settings = Settings::default().with(&changes).unwrap();
    let names: Vec<String> = NAMES.iter().map(|name| name.to_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (new_filters, new_scheduling) =
        (to_filters(&settings, &filters), to_scheduling(&settings, &names, &scheduling));
    assert_eq!(with_core(&new_filters, &new_scheduling), settings);
    assert_eq!(new_scheduling.mode, Some(SchedulingMode::Balanced));
    let filter = new_filters.submission.clone().expect("it is set");
    assert_eq!((filter.name.as_str(), filter.form), ("check", FilterForm::Exec));
    assert_eq!(
        to_scheduling(&settings, &["FilterRetryInterval"], &scheduling),
        scheduling,
        "nothing was said of scheduling"
    );
}

/// HPC-S-01, HPC-C-09: a parameter changes what its name says and nothing else.
#[test]
fn a_parameter_changes_itself_alone() {
    let core = SchedulingSettings::default();
    let settings = Settings::default().with(&["NodeReleaseTaskTimeout=11", "GrowByPreemptionEnabled=true"]).unwrap();
    let expected = SchedulingSettings { release_timeout_seconds: Some(11), ..core.clone() };
    assert_eq!(to_scheduling(&settings, &["NodeReleaseTaskTimeout"], &core), expected);
    let expected = SchedulingSettings { mode: Some(SchedulingMode::Queued), ..core.clone() };
    assert_eq!(to_scheduling(&settings, &["SchedulingMode"], &core), expected);
    let expected = SchedulingSettings { growth_by_preemption: Some(true), ..core.clone() };
    assert_eq!(to_scheduling(&settings, &["GrowByPreemptionEnabled"], &core), expected);
    let set = |name| to_scheduling(&settings, &[name], &core) != core;
    assert_eq!(NAMES.iter().filter(|name| !set(name)).count(), 7, "those about filters");
}

/// HPC-S-01, HPC-C-09, HPC-S-14: a parameter is described by its present effect.
#[test]
fn what_a_parameter_does_is_told() {
    let with_mode =
        |mode| SchedulingSettings { mode, growth_by_preemption: Some(true), ..SchedulingSettings::default() };
    let idle = |mode| {
        let scheduling = with_mode(mode);
        let names = NAMES.iter().filter(|name| no_effect_because(name, &scheduling).is_some());
        names.copied().collect::<Vec<_>>().join(" ")
    };
    let of_balanced = "PreemptionBalancedMode PriorityBias ReBalancingInterval";
    assert_eq!(idle(None), format!("BackfillLookAhead {of_balanced} GrowByPreemptionEnabled"));
    assert_eq!(idle(Some(SchedulingMode::Queued)), of_balanced);
    assert_eq!(idle(Some(SchedulingMode::Balanced)), "PreemptionType");
    let acts = |name, mode| acts_for(name, &with_mode(mode));
    assert_eq!(acts("preemptionType", None), Some("between jobs with tasks"));
    assert_eq!(acts("PreemptionType", Some(SchedulingMode::Queued)), None);
    let growth = acts("GrowByPreemptionEnabled", Some(SchedulingMode::Queued));
    assert_eq!(growth, Some("not for jobs with an activation filter"));
    let by_task = SchedulingSettings { task_preemption: Some(true), ..SchedulingSettings::default() };
    assert!(no_effect_because("TaskImmediatePreemptionEnabled", &by_task).is_some());
    let immediate = SchedulingSettings { preemption: Some(Preemption::Immediate), ..by_task };
    assert_eq!(no_effect_because("TaskImmediatePreemptionEnabled", &immediate), None);
}

/// HPC-T-02
#[test]
fn a_template_is_stored_and_comes_back_equal() {
    let xml = "<JobTemplate Name='T' Description='d'><TemplateItem PropertyName='Priority' Default='1000' MaxVal='2000'/>\
               <Access><Allow User='ann'/><Allow User='bob'/></Access>\
               <SubmissionFilters><Filter Name='a' Path='/a'/></SubmissionFilters>\
               <ActivationFilters><Filter Name='b' Path='/b' Mode='persistent' RevertOnUnknown='true'/></ActivationFilters>\
               </JobTemplate>";
    let (template, warnings) = Template::read(xml.as_bytes()).unwrap();
    assert_eq!(warnings, []);
    let stored = to_stored(&template);
    assert_eq!(from_stored(&stored).unwrap(), template);
    assert_eq!(stored.users, ["ann", "bob"]);
    assert_eq!(stored.submission_filters[0].form, FilterForm::Verbs);
    assert_eq!(
        (stored.activation_filters[0].form, stored.activation_filters[0].revert_on_unknown),
        (FilterForm::Persistent, true)
    );
    let mut without_text = stored;
    without_text.text.clear();
    assert_eq!(from_stored(&without_text).unwrap().access, template.access);
}
