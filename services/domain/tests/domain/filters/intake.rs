//! Jobs that are configured step by step, and what a submission with a description includes.

use super::support::*;
use crate::support::*;
use muster_schemas::{
    JobId, Sequence,
    command::{Command, RefusalCode},
    event::{Event, Intake, Validated},
    filter::{JobDocument, JobWarning},
    job::{JobSpec, WaitReason},
};

fn being_made(text: &str) -> Intake {
    Intake {
        template: Some("t".into()),
        document: Some(JobDocument::xml(text.as_bytes())),
        is_configuring: true,
        ..Intake::default()
    }
}

fn configure(job: JobId, made_from: Option<Sequence>, text: &str) -> Command {
    let (spec, intake) = (Box::new(crate::support::job(1, 2)), Box::new(being_made(text)));
    Command::ConfigureJob { job, made_from, spec, intake }
}

/// HPC-C-04
#[test]
fn a_job_that_two_change_at_once_loses_neither_change() {
    let mut cluster = Cluster::new();
    let (id, _) = cluster.intake(job(1, 1), being_made("x0"));
    let version = |cluster: &Cluster| cluster.state.job(id).map(|job| job.submitted_sequence);
    let seen_by_both = version(&cluster);
    cluster.ok(&user("ada"), configure(id, seen_by_both, "x0 and a"));
    let late = configure(id, seen_by_both, "x0 and b");
    cluster.refused(&user("ada"), late, RefusalCode::Conflict, "has changed meanwhile");
    let again = configure(id, version(&cluster), "x0 and a and b");
    cluster.ok(&user("ada"), again);
    cluster.ok(&user("ada"), Command::EnterJob { job: id });
    assert_eq!(cluster.asked(id).as_deref(), Some("check x0 and a and b"));
}

/// A new description does not change the dialect of a job.
#[test]
fn a_job_that_is_being_made_stays_of_its_dialect() {
    let mut cluster = Cluster::new();
    let (id, _) = cluster.intake(job(1, 1), being_made("x0"));
    let spec = Box::new(JobSpec { dialect: Some("other".into()), ..job(1, 1) });
    let intake = Box::new(being_made("x1"));
    let events = cluster.ok(&user("ada"), Command::ConfigureJob { job: id, made_from: None, spec, intake });
    let configured = events.iter().find_map(|event| match event {
        Event::JobConfigured { spec, .. } => Some(spec.dialect.clone()),
        _ => None,
    });
    assert_eq!(configured, Some(None));
}

/// HPC-C-04: an array keeps the tasks with which it was submitted, against whose number the limits were checked.
#[test]
fn an_array_that_is_being_made_keeps_its_tasks() {
    let mut cluster = Cluster::new();
    let intake = || Intake { is_configuring: true, ..Intake::default() };
    let tasks = |last, limit| array(muster_schemas::resources::IndexSet::from_range(0, last), limit);
    let (id, _) = cluster.intake(tasks(9, Some(2)), intake());
    let configure = |spec| {
        let (spec, intake) = (Box::new(spec), Box::new(intake()));
        Command::ConfigureJob { job: id, made_from: None, spec, intake }
    };
    for spec in [tasks(1, Some(2)), tasks(9, None), job(1, 1)] {
        cluster.refused(&user("ada"), configure(spec), RefusalCode::Invalid, "keeps the tasks");
    }
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[JobId::task(id.number, 3)]) });
    cluster.ok(&user("ada"), configure(tasks(9, Some(2))));
    let (plain, _) = cluster.intake(job(1, 1), intake());
    let (spec, intake) = (Box::new(tasks(1, None)), Box::new(intake()));
    let command = Command::ConfigureJob { job: plain, made_from: None, spec, intake };
    cluster.refused(&user("ada"), command, RefusalCode::Invalid, "keeps the tasks");
}

/// HPC-C-04, HPC-F-22, HPC-J-03
#[test]
fn a_job_that_is_being_made_is_judged_only_when_it_enters() {
    let mut cluster = Cluster::new();
    cluster.set_template("t", &[filter("A")], &[]);
    let (id, events) = cluster.intake(job(1, 1), being_made("x0"));
    assert_eq!(words(&events), ["job.submitted"]);
    assert_eq!((cluster.asked(id), cluster.reason(id)), (None, Some(WaitReason::Configuring)));
    let configure = configure(id, None, "x1");
    cluster.refused(&user("bob"), configure.clone(), RefusalCode::PermissionDenied, "belongs to ada");
    cluster.ok(&user("ada"), configure.clone());
    cluster.pass(60);
    let events = cluster.ok(&user("ada"), Command::EnterJob { job: id });
    assert_eq!(words(&events), ["job.entered", "filter.chain_started"]);
    assert_eq!(cluster.state.job(id).map(|job| job.submitted), Some(cluster.now), "it counts as submitted now");
    assert_eq!(cluster.asked(id).as_deref(), Some("A submission filter x1"));
    cluster.refused(&user("ada"), configure, RefusalCode::Conflict, "no longer being made");
    cluster.answer(id, code(4));
    assert_eq!(
        words(&cluster.ok(&user("ada"), Command::EnterJob { job: id })),
        ["job.requeued", "job.entered", "filter.chain_started"]
    );
    cluster.answer(id, code(0));
    cluster.pass_check(id, job(1, 2));
    cluster.refused(&user("ada"), Command::EnterJob { job: id }, RefusalCode::Conflict, "not being made");
    cluster.assert_replays();
}

/// HPC-J-03: a change waits until the job is in the queue, since the check rebuilds the job.
#[test]
fn a_job_that_is_judged_is_not_changed() {
    let mut cluster = Cluster::new();
    cluster.set_template("t", &[filter("A")], &[]);
    let (id, _) = cluster.describe("t", job(1, 1));
    let change = muster_schemas::event::JobChange { priority: Some(5), ..Default::default() };
    let command = Command::Modify { jobs: ids(&[id]), change };
    cluster.refused(&user("ada"), command, RefusalCode::Conflict, "not in the queue yet");
    // Attributes, which no filter judges, can be changed.
    let note = ("note".to_owned(), "seen".to_owned());
    let change = muster_schemas::event::JobChange { attributes: [note].into(), ..Default::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change });
    cluster.answer(id, code(0));
    cluster.pass_check(id, job(1, 1));
    let altered: Vec<_> = cluster.state.altered_attributes(id).collect();
    assert_eq!(altered, [("note", "seen")]);
    cluster.assert_replays();
}

/// HPC-J-46, HPC-J-45
#[test]
fn warnings_of_description_and_check_are_kept_on_the_job() {
    let mut cluster = Cluster::new();
    let warning = |code: &str| JobWarning { code: code.into(), text: "x".into() };
    let intake = Intake {
        document: Some(JobDocument::xml(b"x0".as_slice())),
        warnings: vec![warning("UnknownJobTerm")],
        ..Intake::default()
    };
    let (id, events) = cluster.intake(job(1, 1), intake);
    assert_eq!(words(&events), ["job.submitted", "job.warning"]);
    let warnings = vec![warning("UnusedSizeAttribute")];
    cluster.pass_check_as(id, Validated { spec: job(1, 1), warnings, ..Validated::default() });
    assert_eq!(cluster.warnings(id), ["UnknownJobTerm", "UnusedSizeAttribute"]);
}

/// HPC-T-01
#[test]
fn a_job_that_names_no_template_has_the_default_one() {
    let mut cluster = Cluster::new();
    cluster.set_template("Default", &[filter("D")], &[]);
    let intake = Intake { document: Some(JobDocument::xml(b"x0".as_slice())), ..Intake::default() };
    let (id, _) = cluster.intake(job(1, 1), intake);
    assert_eq!(cluster.asked(id).as_deref(), Some("D submission filter x0"));
    assert_eq!(cluster.seed(id).and_then(|seed| seed.template).as_deref(), Some("Default"));
}

/// HPC-J-05
#[test]
fn a_requeued_job_goes_first_among_its_equals_and_keeps_its_submit_time() {
    let mut cluster = Cluster::new();
    let first = cluster.queue("Default", job(1, 1));
    let submitted = cluster.state.job(first).map(|job| job.submitted);
    cluster.pass(5);
    let second = cluster.submit("ada", job(1, 1));
    let run = cluster.start(first, &["node1"], 1);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[first]), hold: false, delay_seconds: 0 });
    // Later than the other one arrived: by time alone it would be last.
    cluster.pass(5);
    cluster.end(run, "node1", muster_schemas::job::ExitStatus::Signal(15));
    assert_eq!(cluster.waiting(), [first, second]);
    assert_eq!(cluster.state.job(first).map(|job| job.submitted), submitted);
}
