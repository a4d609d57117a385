//! Subjects of mail (SL-C-15, EX-22).

use muster_schemas::{
    JobId, Sequence, Timestamp,
    event::Owner,
    job::{ExitStatus, Occasion, Outcome, Sink},
    notify::NotifyItem,
};
use muster_slurm::mail::subject;

/// Job 93 of the worked example: it waited for a second and ran for eight.
fn item(occasion: Occasion, outcome: Option<Outcome>) -> NotifyItem {
    let submitted = Timestamp::from_unix_seconds(1_000_000);
    let started = submitted.plus_seconds(1);
    NotifyItem {
        job: JobId::job(93),
        of: Sequence(7),
        notification: 0,
        occasion,
        sink: Sink::Mail("adam".into()),
        time: if occasion == Occasion::Started { started } else { started.plus_seconds(8) },
        event: outcome.as_ref().map_or("", Outcome::word).into(),
        outcome,
        cluster: "alpha".into(),
        name: "bash".into(),
        owner: Owner { user: "adam".into(), uid: 1000, gid: 1000 },
        queue: "debug".into(),
        run: None,
        nodes: Vec::new(),
        submitted,
        started: Some(started),
        task_outcomes: None,
        output: None,
        dialect: Some("slurm".into()),
        is_tried_once: false,
        why: None,
        program: None,
    }
}

fn of(occasion: Occasion, outcome: Option<Outcome>) -> String {
    subject(&item(occasion, outcome))
}

/// Occasions of mail, its subjects, one summary of an array (SL-C-15).
#[test]
fn subjects_are_those_of_the_worked_example() {
    assert_eq!(of(Occasion::Started, None), "Slurm Job_id=93 Name=bash Began, Queued time 00:00:01");
    assert_eq!(
        of(Occasion::Ended, Some(Outcome::Cancelled)),
        "Slurm Job_id=93 Name=bash Ended, Run time 00:00:08, CANCELLED, ExitCode 0"
    );
    let failed = |status| of(Occasion::Failed, Some(Outcome::Failed(status)));
    let begin = "Slurm Job_id=93 Name=bash Failed, Run time 00:00:08, FAILED";
    assert_eq!(failed(ExitStatus::Code(3)), format!("{begin}, ExitCode 3"));
    assert_eq!(failed(ExitStatus::Signal(9)), begin);
    assert_eq!(of(Occasion::Requeued, None), "Slurm Job_id=93 Name=bash Requeued, Run time 00:00:08");
    assert_eq!(of(Occasion::WalltimeOver, None), "Slurm Job_id=93 Name=bash Reached time limit, Run time 00:00:08");
    let never = NotifyItem { started: None, ..item(Occasion::Failed, Some(Outcome::DependencyNeverMet)) };
    assert_eq!(subject(&never), "Slurm Job_id=93 Name=bash Invalid dependency, CANCELLED, ExitCode 0");
}

#[test]
fn an_array_has_one_summary_and_its_tasks_a_form_of_their_own() {
    let whole = |outcome: Outcome, tasks: &[Outcome]| {
        let item = NotifyItem { task_outcomes: Some(tasks.to_vec()), ..item(Occasion::Ended, Some(outcome)) };
        subject(&item)
    };
    let begin = "Slurm Array Summary Job_id=93_* (93) Name=bash";
    assert_eq!(whole(Outcome::Completed, &[Outcome::Completed]), format!("{begin} Ended, COMPLETED, ExitCode [0-0]"));
    let failed = |code| Outcome::Failed(ExitStatus::Code(code));
    assert_eq!(whole(failed(2), &[Outcome::Completed, failed(2)]), format!("{begin} Ended, Mixed, ExitCode [0-2]"));
    assert_eq!(whole(failed(2), &[failed(2), failed(4)]), format!("{begin} Ended, FAILED, ExitCode [2-4]"));
    let killed = Outcome::Failed(ExitStatus::Signal(9));
    assert_eq!(whole(killed.clone(), &[Outcome::Completed, killed]), format!("{begin} Ended, Mixed, MaxSignal [9]"));
    let started = NotifyItem { task_outcomes: Some(Vec::new()), ..item(Occasion::Started, None) };
    assert_eq!(subject(&started), format!("{begin} Began"));
    let task = NotifyItem { job: JobId::task(93, 4), ..item(Occasion::Ended, Some(Outcome::Completed)) };
    let said = "Slurm Array Task Job_id=93_4 (93) Name=bash Ended, Run time 00:00:08, COMPLETED, ExitCode 0";
    assert_eq!(subject(&task), said);
}
