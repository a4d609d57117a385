//! Changes of queued jobs: their descriptions, and the limits that apply.

use crate::{
    described::{NO_GROUPS, NOW, TASK, checked, received, with_bytes, without_description},
    support::job_with_tasks,
};
use muster_hpcpack::{
    description::{Format, JobDescription, values::JobState as Shown},
    jobs::{ChangedJob, change_breaches, exported, validate},
};
use muster_schemas::{
    event::{JobChange, Validated},
    filter::TemplateSpec,
    filter_order::DescribedJob,
    job::JobState,
    resources::Alternative,
};

/// A job in the queue, as it was checked.
fn queued(description: &JobDescription) -> DescribedJob {
    let job = received(description);
    let Validated { spec, document, .. } = validate(&job, NO_GROUPS, &[], None, NOW).unwrap();
    DescribedJob { document, is_entering: false, state: JobState::Queued, ..without_description(spec) }
}

/// The request of these attributes.
fn asked(attributes: &str) -> Vec<Alternative> {
    checked(attributes, TASK).spec.components[0].alternatives.clone()
}

/// HPC-F-38, HPC-J-48
#[test]
fn what_a_queued_job_was_changed_to_ask_for_is_what_its_description_says() {
    let attributes = "MinCores='1' MaxCores='2' NodeGroups='A' RequestedNodes='n1' SoftwareLicense='cad:1'";
    for changed in [
        "UnitType='Node' MinNodes='2' MaxNodes='3'",
        "UnitType='Socket' MinSockets='1' MaxSockets='1' IsExclusive='1' NodeGroups='A,B'",
        "MinCores='2' MaxCores='5' NodeGroups='A,B' NodeGroupOp='Uniform' MinMemory='64' MaxCoresPerNode='8'",
        "MinCores='2' MaxCores='2' NodeGroups='B,C' NodeGroupOp='Union' ExcludedNodes='n4,n5' SoftwareLicense='sim:3'",
        "MinCores='1' MaxCores='4' SingleNode='1' EstimatedProcessMemory='100'",
    ] {
        let job = DescribedJob { alternatives: asked(changed).into(), ..queued(&job_with_tasks(attributes, TASK)) };
        let text = exported(&job, Shown::Queued, Format::Xml, NOW).unwrap();
        let again = validate(&with_bytes(text.as_bytes(), Format::Xml), NO_GROUPS, &[], None, NOW).unwrap();
        assert_eq!(again.spec.components[0].alternatives, asked(changed), "{changed}\n{text}");
    }
    let unchanged = queued(&job_with_tasks("SoftwareLicense='cad:*' AutoCalculateMax='1'", TASK));
    let text = exported(&unchanged, Shown::Queued, Format::Xml, NOW).unwrap();
    assert!(text.contains("cad:*") && text.contains("AutoCalculateMax=\"true\""), "{text}");
}

/// The limits of a template that a change of a queued job on one or two cores breaks.
fn broken(items: &str, change: &JobChange, by_administrator: bool) -> Vec<String> {
    let text = format!("<JobTemplate Name='T'>{items}</JobTemplate>");
    let template = TemplateSpec { name: "T".into(), text, ..TemplateSpec::default() };
    let asked = asked("MinCores='1' MaxCores='2' RunTime='10'");
    let changed = ChangedJob { change, asked: &asked, is_own: true, by_administrator };
    let breaches = change_breaches(changed, Some(&template), None).unwrap();
    breaches.iter().map(ToString::to_string).collect()
}

fn item(property: &str, limits: &str) -> String {
    format!("<TemplateItem PropertyName='{property}' {limits}/>")
}

/// HPC-T-10, HPC-T-04
#[test]
fn a_change_is_held_against_the_limits_of_what_it_changes() {
    let size = |attributes| JobChange { alternatives: Some(asked(attributes)), ..JobChange::default() };
    let too_large = size("MinCores='1' MaxCores='9' RunTime='10'");
    let most = item("MaxCores", "MaxVal='8'");
    assert_eq!(
        broken(&most, &too_large, true),
        ["[TemplateValueTooLarge] template 'T': MaxCores = 9, allowed at most 8"]
    );
    assert_eq!(broken(&most, &size("MinCores='1' MaxCores='8' RunTime='10'"), false), [""; 0]);
    assert_eq!(broken(&most, &size("UnitType='Node' MinNodes='1' MaxNodes='9' RunTime='10'"), false), [""; 0]);
    let elsewhere = size("MinCores='1' MaxCores='2' NodeGroups='z' RunTime='10'");
    let groups = item("NodeGroups", "ValueRange='a,b'");
    assert_eq!(
        broken(&groups, &elsewhere, false),
        ["[TemplateValueInvalid] template 'T': NodeGroups = z, allowed a, b"]
    );
    let short = item("RunTime", "MaxVal='0:15'");
    let longer = |seconds| JobChange { walltime_seconds: Some(seconds), ..JobChange::default() };
    assert_eq!(broken(&short, &longer(900), false), [""; 0]);
    assert_eq!(broken(&short, &longer(901), false).len(), 1);
    assert_eq!(broken(&short, &size("MinCores='1' MaxCores='2'"), false).len(), 1, "no run time is the longest");
    let named = JobChange { name: Some("n".into()), account: Some("p".into()), ..JobChange::default() };
    assert_eq!(broken(&item("Project", "ValueRange='wing'"), &named, false).len(), 1);
}

/// HPC-T-09, HPC-T-10
#[test]
fn limits_that_came_later_are_no_reason_to_refuse_another_change() {
    let named = JobChange { name: Some("n".into()), ..JobChange::default() };
    let stricter = item("RunTime", "MaxVal='0:1'") + &item("MinCores", "MinVal='2'");
    assert_eq!(broken(&stricter, &named, false), [""; 0]);
    let more = JobChange { alternatives: Some(asked("MinCores='1' MaxCores='3' RunTime='10'")), ..named };
    assert_eq!(broken(&stricter, &more, false), [""; 0], "neither its run time nor its minimum become others");
}

/// HPC-T-10
#[test]
fn administrators_may_set_any_priority_and_others_within_the_limits() {
    let limits = item("ExpandedPriority", "MinVal='500' MaxVal='2500'");
    let is_broken = |priority, by_administrator| {
        let change = JobChange { priority: Some(priority), ..JobChange::default() };
        !broken(&limits, &change, by_administrator).is_empty()
    };
    assert_eq!([499, 500, 2500, 2501].map(|priority| is_broken(priority, false)), [true, false, false, true]);
    assert_eq!([0, 4000].map(|priority| is_broken(priority, true)), [false; 2]);
}
