//! The names of jobs, components, tasks and steps.

use muster_schemas::{
    ids::JobId,
    job::{Dependency, DependencyKind},
    resources::IndexSet,
};
use muster_slurm::job_id::{
    BroadcastTarget, IdExpression, JobPart, StepName, component_number, component_set, dependencies, list,
};
use proptest::prelude::*;

fn parse(text: &str) -> IdExpression {
    IdExpression::parse(text).unwrap_or_else(|| panic!("{text}"))
}

/// SL-I-05, SL-C-18, SL-A-05.
#[test]
fn every_form_of_an_id_is_read() {
    assert_eq!(parse("12"), IdExpression { job: JobPart::Number(12), step: None });
    assert_eq!(parse("123+4").job, JobPart::Component { leader: 123, offset: 4 });
    assert_eq!(parse("12.3").step, Some(StepName::Number(3)));
    assert_eq!(
        parse("12+1.batch"),
        IdExpression { job: JobPart::Component { leader: 12, offset: 1 }, step: Some(StepName::Batch) }
    );
    assert_eq!(parse("12.extern").step, Some(StepName::Extern));
    assert_eq!(parse("12.interactive").step, Some(StepName::Interactive));
    assert_eq!(parse("43_5").job, JobPart::Tasks { array: 43, indices: IndexSet::from_range(5, 5), max_running: None });
    assert_eq!(
        parse("43_[3-5%2]").job,
        JobPart::Tasks { array: 43, indices: IndexSet::from_range(3, 5), max_running: Some(2) }
    );
    assert_eq!(parse("43_*").job, JobPart::AllTasks(43));
    assert_eq!(parse("43_5").job.single(), Some(JobId::task(43, 5)));
    assert_eq!(parse("43_[1-2]").job.single(), None);
    for wrong in
        ["", "abc", "0", "-1", "1+", "+1", "1+x", "1_", "1_[", "1_[]", "1_[3-1]", "1.", "1.x", "1.-1", "1 ", "1_[1%x]"]
    {
        assert_eq!(IdExpression::parse(wrong), None, "{wrong}");
    }
}

/// SL-C-18: commas inside brackets belong to their id.
#[test]
fn ids_are_listed_with_commas() {
    assert_eq!(list("1,43_[1,3],5+1.0").unwrap().len(), 3);
    assert_eq!(list("").unwrap(), []);
    assert_eq!(list("1,abc,2"), Err("abc".to_owned()));
}

/// SL-I-01, SL-I-03: five components submitted as 123.
#[test]
fn components_have_consecutive_numbers() {
    assert_eq!((0..5).map(|offset| component_number(123, offset)).collect::<Vec<_>>(), [123, 124, 125, 126, 127]);
    assert_eq!(component_set(123, 5), "123-127");
    assert_eq!(component_set(123, 1), "123");
}

/// SL-M-12, D-9: the target of `sbcast --jobid`.
#[test]
fn a_file_is_copied_to_a_job_a_component_or_a_step() {
    let target = |text: &str, heterogeneous: bool| BroadcastTarget::of(&parse(text), heterogeneous);
    let second = Some(BroadcastTarget::Component { leader: 123, offset: 1 });
    assert_eq!([target("123.1", true), target("123+1", true)], [second, second]);
    let first = Some(BroadcastTarget::Component { leader: 123, offset: 0 });
    assert_eq!([target("123.0", true), target("123+0", true)], [first, first]);
    assert_eq!(target("123.1", false), Some(BroadcastTarget::Step { job: 123, step: StepName::Number(1) }));
    assert_eq!([target("123", true), target("123", false)], [Some(BroadcastTarget::Job(123)); 2]);
    assert_eq!([target("123+1.0", true), target("1_2", false)], [None; 2]);
}

/// SL-C-19.
#[test]
fn dependencies_are_read() {
    let on = |kind, number| Dependency { kind, job: Some(JobId::job(number)), delay_seconds: 0 };
    let all = |text: &str| dependencies(text).unwrap_or_else(|| panic!("{text}")).all_of;
    use DependencyKind::{Ended, Failed, Running, SameIndexSucceeded, Singleton, Started, Succeeded};
    assert_eq!(all("49"), [[on(Ended, 49)]]);
    assert_eq!(all("afterany:1:2"), [[on(Ended, 1)], [on(Ended, 2)]]);
    assert_eq!(all("afterok:1,afternotok:2"), [[on(Succeeded, 1)], [on(Failed, 2)]]);
    assert_eq!(all("afterok:1?afternotok:2"), [[on(Succeeded, 1), on(Failed, 2)]]);
    assert_eq!(all("after:7+5"), [[Dependency { delay_seconds: 300, ..on(Started, 7) }]]);
    assert_eq!(all("aftercorr:7"), [[on(SameIndexSucceeded, 7)]]);
    assert_eq!(all("afterburstbuffer:7"), [[on(Ended, 7)]]);
    assert_eq!(all("expand:7"), [[on(Running, 7)]]);
    assert_eq!(all("afterok:7_3"), [[Dependency { job: Some(JobId::task(7, 3)), ..on(Succeeded, 7) }]]);
    assert_eq!(all("singleton"), [[Dependency { kind: Singleton, job: None, delay_seconds: 0 }]]);
    for wrong in ["", "afterok", "afterok:", "before:1", "afterok:x", "afterok:1?singleton,2", "afterok:1+5", "0"] {
        assert_eq!(dependencies(wrong), None, "{wrong}");
    }
}

proptest! {
    /// SL-C-18: a printed id reads back as the same id.
    #[test]
    fn an_id_is_read_as_it_was_written(text in "[1-9][0-9]{0,6}([+][0-9]{1,2}|_[0-9]{1,2}|_\\[1-9(%[1-9])?\\]|_\\*)?([.](batch|extern|interactive|[0-9]{1,3}))?") {
        let id = parse(&text);
        prop_assert_eq!(parse(&id.to_string()), id);
    }

    #[test]
    fn any_text_is_an_id_or_not(text in "[0-9+_.\\[\\]%*,a-z:?]{0,20}|\\PC{0,20}") {
        let _ = IdExpression::parse(&text);
        let _ = list(&text);
        let _ = dependencies(&text);
    }
}
