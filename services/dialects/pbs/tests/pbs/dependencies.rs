//! Dependencies and lists of files.

use muster_pbs::{depend, staging};
use muster_schemas::{
    JobId,
    job::DependencyKind::{self, Count, Ended, Failed, Started, Succeeded},
};
use proptest::prelude::*;

fn conditions(text: &str) -> Vec<(DependencyKind, Option<JobId>)> {
    let read = depend::parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
    read.all_of.iter().map(|group| (group[0].kind, group[0].job)).collect()
}

#[test]
fn all_conditions_of_all_jobs_must_be_met() {
    let job = |number| Some(JobId::job(number));
    assert_eq!(
        conditions("afterok:12.pbs1:13,afterany:14[].pbs1,afternotok:15[3]"),
        [(Succeeded, job(12)), (Succeeded, job(13)), (Ended, job(14)), (Failed, Some(JobId::task(15, 3)))]
    );
    assert_eq!(conditions("after:7"), [(Started, job(7))]);
    assert_eq!(conditions("on:2"), [(Count(2), None)]);
    assert_eq!(conditions("afterokarray:7[]"), [(Succeeded, job(7))]);
    assert_eq!(conditions("beforeany:7"), [(DependencyKind::BeforeEnded, job(7))]);
}

#[test]
fn what_is_wrong_with_a_dependency_is_said() {
    for (text, why) in [
        ("", "expected after"),
        ("soon:1", "expected after"),
        ("afterok", "the job is missing"),
        ("afterok:", "the job is missing"),
        ("afterok:x", "illegal -W depend value"),
        ("on:0", "a number from 1"),
        ("afterok:1[2-3]", "one job, array or task"),
        ("synccount:2", "is not supported"),
        ("syncwith:1", "is not supported"),
        ("runone:1", "is not supported"),
    ] {
        let message = depend::parse(text).unwrap_err().to_string();
        assert!(message.contains(why), "{text}: {message}");
    }
    assert!(depend::parse(&format!("afterok{}", ":1".repeat(10_001))).is_err());
}

#[test]
fn files_to_stage_have_two_places() {
    let files = staging::parse("-W stagein", "in.dat@fs1:/data/in.dat,'a,b'@fs1:\"/x y\",c\\,d@h:/e").unwrap();
    let shown: Vec<String> = files.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["in.dat@fs1:/data/in.dat", "a,b@fs1:/x y", "c,d@h:/e"]);
    for text in ["", "a", "@h:b", "a@:b", "a@h:", "-r@h:b", "a@-h:b", "a@h:-b", "a\n@h:b", "a@h:b,"] {
        assert!(staging::parse("-W stagein", text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_lists_panic(text in "\\PC{0,60}", likely in "[a-z0-9:,@\\[\\]\"'\\\\]{0,60}") {
        for text in [&text, &likely] {
            let _ = (depend::parse(text), staging::parse("-W stagein", text));
        }
    }
}
