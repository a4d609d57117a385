//! The example filters of the book.

use crate::site::{PARAMETERS, Site, account, activation, submission, with_form};
use bytes::Bytes;
use muster_filter_runner::{Answer, Call, FileAfter};
use muster_schemas::{
    JobId,
    filter::{ActivationParameters, FilterAction, FilterExit, FilterForm},
};
use std::{fs, os::unix::fs::chown, path::PathBuf};

/// Puts an example where only the test's user can write: the folders of the sources may be open to others.
fn install(site: &Site, name: &str) -> PathBuf {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/filters/");
    let text = fs::read_to_string(format!("{examples}{name}")).unwrap();
    site.program(name, &text, 0o755)
}

/// HPC-B-17
#[tokio::test]
async fn the_run_time_check_lets_only_jobs_pass_that_say_how_long_they_run() {
    let site = Site::new();
    let path = install(&site, "run_time_check.sh");
    let cases = [
        ("<Job RunTime=\"12\"/>", true),
        ("<Job RunTime=\"0:0:30\" MinCores=\"2\"><Tasks/></Job>", true),
        ("<Job Name='a > \"b\"' RUNTIME='12'/>", true),
        ("<Job RuntimeSeconds=\"720\"/>", true),
        (
            "\u{feff}<?xml version=\"1.0\"?>\n<!-- a <Job RunTime=\"1\"> -->\n<h:Job xmlns:h=\"x\"\n  RunTime = \"12\"\n/>",
            true,
        ),
        ("<Job/>", false),
        ("<Job></Job>", false),
        ("<Job RunTime=\"\"/>", false),
        ("<Job RunTime=\"Infinite\"/>", false),
        ("<Job RunTime=\"infinite\" RuntimeSeconds=\"12\"/>", false),
        ("<Job Name=\"RunTime='12'\"/>", false),
        ("<!-- <Job RunTime=\"1\"> --><Job/>", false),
        ("<Job><Tasks><Task RunTime=\"12\"/></Tasks></Job>", false),
        ("<Jobs RunTime=\"12\"/>", false),
        ("", false),
    ];
    for (document, passes) in cases {
        let answer = site.run(&Call { document: Bytes::from(document), ..submission(&path) }).await;
        assert_eq!(answer.result, FilterExit::Code(if passes { 0 } else { 2 }), "{document}: {}", answer.stderr.text());
        assert_eq!(answer.result_lines.text().starts_with("message=give the job a run time"), !passes, "{document}");
        assert_eq!(answer.document, FileAfter::Unchanged);
    }
}

struct Counter {
    site: Site,
    path: PathBuf,
}

impl Counter {
    fn new(licences: u32) -> Self {
        let site = Site::new();
        let path = install(&site, "licence_counter.py");
        let folder = site.programs().join("licences");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("count"), format!("{licences}\n")).unwrap();
        chown(folder, Some(account()), None).unwrap();
        Self { site, path }
    }

    async fn call(&self, job_id: u64, pass: u64, action: FilterAction) -> Answer {
        let document =
            "<Job xmlns=\"x\"><ExtendedTerms><Term><Name>Licence</Name><Value>1</Value></Term></ExtendedTerms></Job>";
        self.site.run(&self.prepare(job_id, pass, action, document)).await
    }

    fn prepare(&self, job_id: u64, pass: u64, action: FilterAction, document: &'static str) -> Call {
        Call {
            job: JobId::job(job_id),
            action,
            invocation_id: format!("{job_id}-{pass}-{}", action.word()),
            document: Bytes::from_static(document.as_bytes()),
            parameters: Some(ActivationParameters { pass, ..PARAMETERS }),
            ..with_form(activation(&self.path), FilterForm::Verbs)
        }
    }

    async fn ask(&self, job_id: u64, pass: u64) -> FilterExit {
        self.call(job_id, pass, FilterAction::Filter).await.result
    }

    async fn revert(&self, job_id: u64, pass: u64) {
        assert_eq!(self.call(job_id, pass, FilterAction::Revert).await.result, FilterExit::Code(0));
    }
}

/// HPC-F-65, HPC-F-53
#[tokio::test]
async fn the_licence_counter_gives_as_many_as_there_are_and_takes_them_back_on_revert() {
    let counter = Counter::new(2);
    assert_eq!(counter.ask(1, 1).await, FilterExit::Code(0));
    assert_eq!(counter.ask(2, 1).await, FilterExit::Code(0));
    let refused = counter.call(3, 1, FilterAction::Filter).await;
    assert_eq!(refused.result, FilterExit::Code(2));
    assert_eq!(refused.result_lines.text(), "message=all 2 licences are taken\n");
    counter.revert(1, 1).await;
    assert_eq!(counter.ask(3, 2).await, FilterExit::Code(0));
    assert_eq!(counter.ask(1, 2).await, FilterExit::Code(2));
}

/// HPC-F-85
#[tokio::test]
async fn a_call_that_comes_twice_takes_one_licence_and_a_revert_gives_back_what_its_own_call_took() {
    let counter = Counter::new(2);
    for _ in 0..2 {
        assert_eq!(counter.ask(1, 1).await, FilterExit::Code(0));
    }
    assert_eq!(counter.ask(2, 1).await, FilterExit::Code(0));
    // Job 1 wants to grow, which is reverted: it keeps what it has.
    assert_eq!(counter.ask(1, 5).await, FilterExit::Code(0));
    for _ in 0..2 {
        counter.revert(1, 5).await;
    }
    assert_eq!(counter.ask(3, 6).await, FilterExit::Code(2));
    counter.revert(9, 1).await;
    assert_eq!(counter.ask(3, 7).await, FilterExit::Code(2));
}

#[tokio::test]
async fn the_licence_counter_lets_jobs_pass_that_want_none_and_knows_only_its_verbs() {
    let counter = Counter::new(0);
    let none = counter.prepare(1, 1, FilterAction::Filter, "<Job><ExtendedTerms/></Job>");
    assert_eq!(counter.site.run(&none).await.result, FilterExit::Code(0));
    let exec = with_form(none, FilterForm::Exec);
    assert_eq!(counter.site.run(&exec).await.result, FilterExit::Code(64));
}

/// HPC-F-80
#[tokio::test]
async fn calls_at_the_same_time_never_take_more_licences_than_there_are() {
    let counter = Counter::new(2);
    let answers = tokio::join!(counter.ask(1, 1), counter.ask(2, 1), counter.ask(3, 1), counter.ask(4, 1));
    let answers = [answers.0, answers.1, answers.2, answers.3];
    assert_eq!(answers.iter().filter(|result| **result == FilterExit::Code(0)).count(), 2, "{answers:?}");
}
