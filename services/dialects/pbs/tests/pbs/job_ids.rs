//! Identifiers of jobs.

use muster_pbs::job_id::{Part, PbsJobId};
use muster_schemas::JobId;
use proptest::prelude::*;

fn id(text: &str) -> PbsJobId {
    text.parse().unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
}

#[test]
fn identifiers_name_jobs_arrays_and_tasks() {
    assert_eq!(id("123").single(), Some(JobId::job(123)));
    assert_eq!(id("123.server.example.org").single(), Some(JobId::job(123)));
    assert_eq!(id("123[].server").single(), Some(JobId::job(123)));
    assert_eq!(id("123[4].server@other").single(), Some(JobId::task(123, 4)));
    assert_eq!(id("123-4.server").single(), Some(JobId::task(123, 4)));
    assert_eq!(id("123-4").part, Part::Task(4));
    let tasks: Vec<JobId> = id("123[4-6,9].server").jobs().collect();
    assert_eq!(tasks, [4, 5, 6, 9].map(|index| JobId::task(123, index)));
    assert_eq!(id("123[4-6]").single(), None);
    assert_eq!((id("7.a@b").server.as_deref(), id("7.a@b").at.as_deref()), (Some("a"), Some("b")));
}

#[test]
fn other_texts_are_no_identifiers() {
    let long = format!("1.{}", "a".repeat(256));
    for text in [
        "",
        "0",
        "x",
        "1x",
        "1.",
        "1@",
        "1..a",
        "1.-a",
        "1[",
        "1]",
        "1[x]",
        "1[-]",
        "1[3-1]",
        "1[]x",
        "1-",
        "1-x",
        "-1",
        "+1",
        "1[1][2]",
        "1 ",
        "99999999999999999999999",
        "1[0-4294967295]",
        "1.a b",
        &long,
    ] {
        let parsed = text.parse::<PbsJobId>();
        assert!(parsed.is_err(), "{text}: {parsed:?}");
    }
    let message = "x".repeat(5_000).parse::<PbsJobId>().unwrap_err().to_string();
    assert!(message.len() < 300, "{message}");
}

#[test]
fn identifiers_are_printed_with_the_server() {
    assert_eq!(PbsJobId::of(JobId::job(5), false, "pbs1").to_string(), "5.pbs1");
    assert_eq!(PbsJobId::of(JobId::job(5), true, "pbs1").to_string(), "5[].pbs1");
    assert_eq!(PbsJobId::of(JobId::task(5, 7), false, "pbs1").to_string(), "5[7].pbs1");
    assert_eq!(PbsJobId::of(JobId::job(5), false, "").to_string(), "5");
    assert_eq!(id("5-7.pbs1").to_string(), "5[7].pbs1");
}

proptest! {
    #[test]
    fn no_text_makes_identifiers_panic(text in "\\PC{0,40}", likely in "[0-9\\[\\]@.,:a-z-]{0,40}") {
        for text in [text, likely] {
            if let Ok(id) = text.parse::<PbsJobId>() {
                prop_assert_eq!(id.to_string().parse::<PbsJobId>().unwrap(), id);
            }
        }
    }

    #[test]
    fn identifiers_are_read_as_they_are_printed(
        number in 1u64.., index in any::<Option<u32>>(), array in any::<bool>(), server in "[a-z][a-z0-9-]{0,8}(\\.[a-z]{1,5})?"
    ) {
        let id = PbsJobId::of(JobId { number, index }, array, &server);
        prop_assert_eq!(id.to_string().parse::<PbsJobId>().unwrap(), id);
    }
}
