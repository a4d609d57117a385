//! Tables of jobs that are repeated at certain times.

use crate::support::*;
use muster_schemas::{
    JobId, Timestamp,
    command::{Command, RefusalCode, Reply},
    crontab::{CronEntry, CronLines, Schedule},
    event::{Event, StopReason},
    job::{ExitStatus, JobState, Outcome},
    resources::IndexSet,
};

fn set(text: &str) -> IndexSet {
    text.parse().expect("a set")
}

/// Each full hour.
fn hourly() -> Schedule {
    Schedule {
        minutes: set("0"),
        hours: set("0-23"),
        days: set("1-31"),
        months: set("1-12"),
        weekdays: set("0-6"),
        is_either_day: false,
        zone: "UTC0".into(),
    }
}

fn entry(line: u32, schedule: Schedule) -> CronEntry {
    CronEntry { lines: CronLines { first: line, last: line, schedule }, spec: job(1, 2) }
}

fn table(text: &str, entries: Vec<CronEntry>) -> Command {
    Command::SetCrontab { text: text.into(), entries, user: None }
}

fn submitted(cluster: &mut Cluster, entries: Vec<CronEntry>) -> Vec<JobId> {
    match cluster.run(&user("ada"), table("one\ntwo\n", entries)) {
        Ok((_, Reply::Submitted(jobs))) => jobs,
        other => panic!("{other:?}"),
    }
}

fn begin(cluster: &Cluster, id: JobId) -> Option<Timestamp> {
    cluster.state.job(id)?.lead().extras.as_ref()?.begin
}

fn next_hour(cluster: &Cluster) -> Timestamp {
    hourly().next_after(cluster.now).expect("there is one")
}

#[test]
fn a_job_of_a_table_runs_at_each_of_its_times_and_once_at_a_time() {
    let mut cluster = Cluster::new();
    let [id, other] = submitted(&mut cluster, vec![entry(0, hourly()), entry(1, hourly())])[..] else { panic!("two") };
    for round in 1..=3 {
        let hour = next_hour(&cluster);
        assert_eq!((begin(&cluster, id), cluster.is_waiting(id)), (Some(hour), false), "round {round}");
        cluster.now = hour;
        cluster.tick();
        assert!(cluster.is_waiting(id));
        let run = cluster.start(id, &["node1"], 2);
        // It runs for longer than until its next time.
        cluster.pass(4_000);
        let code = u8::try_from(round).expect("few");
        let events = cluster.end(run, "node1", ExitStatus::Code(code));
        let repeated = |event: &Event| matches!(event, Event::JobRequeued { reason: StopReason::Repeated, .. });
        assert!(events.last().is_some_and(repeated), "{events:?}");
    }
    assert!(cluster.state.job(id).is_some_and(|job| cluster.state.is_repeated(job)));
    assert_eq!(cluster.state.crontab("ada").map(|table| table.disabled().to_string()), Some(String::new()));
    // What is cancelled is over, and its lines are marked.
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[other]) });
    assert_eq!(cluster.outcome(other), Some(Outcome::Cancelled));
    assert_eq!(cluster.state.crontab("ada").map(|table| table.disabled().to_string()), Some("1".into()));
    cluster.now = next_hour(&cluster);
    cluster.tick();
    let run = cluster.start(id, &["node1"], 2);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
    assert_eq!(cluster.state.crontab("ada").map(|table| table.disabled().to_string()), Some("0-1".into()));
    cluster.assert_replays();
}

#[test]
fn another_table_ends_the_jobs_of_the_one_before() {
    let mut cluster = Cluster::new();
    let [waits, runs] = submitted(&mut cluster, vec![entry(0, hourly()), entry(1, hourly())])[..] else {
        panic!("two")
    };
    cluster.now = next_hour(&cluster);
    cluster.tick();
    let run = cluster.start(runs, &["node1"], 2);
    let [new] = submitted(&mut cluster, vec![entry(0, hourly())])[..] else { panic!("one") };
    assert_eq!(cluster.outcome(waits), Some(Outcome::Cancelled));
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(cluster.outcome(runs), Some(Outcome::Completed), "it is not repeated any more");
    let remove = |user: &str| Command::SetCrontab { text: String::new(), entries: Vec::new(), user: Some(user.into()) };
    cluster.refused(&user("bob"), remove("ada"), RefusalCode::PermissionDenied, "");
    cluster.ok(&root(), remove("ada"));
    assert_eq!((cluster.outcome(new), cluster.state.crontab("ada")), (Some(Outcome::Cancelled), None));
    cluster.assert_replays();
}

#[test]
fn a_table_that_makes_no_sense_changes_nothing() {
    let mut cluster = Cluster::new();
    let before = submitted(&mut cluster, vec![entry(0, hourly())]);
    let ada = user("ada");
    let mut refused = |entries: Vec<CronEntry>, words: &str| {
        cluster.refused(&ada, table("one\ntwo\n", entries), RefusalCode::Invalid, words);
    };
    refused(vec![entry(2, hourly())], "the text has 2");
    refused(vec![entry(0, Schedule { minutes: set("60"), ..hourly() })], "line 1: a minute, hour, day or month");
    refused(vec![entry(1, Schedule { days: set("30"), months: set("2"), ..hourly() })], "line 2: its time never comes");
    refused(vec![entry(0, Schedule { zone: "nowhere".into(), ..hourly() })], "its time never comes");
    let mut many = entry(0, hourly());
    many.spec = array(set("1-2"), None);
    refused(vec![many], "line 1: an array of jobs is not repeated");
    refused((0..101).map(|_| entry(0, hourly())).collect(), "entries");
    let of_other = Command::SetCrontab { text: "one".into(), entries: Vec::new(), user: Some("bob".into()) };
    cluster.refused(&root(), of_other, RefusalCode::Invalid, "can be removed, not set");
    let state = cluster.state.job(before[0]).map(|job| cluster.state.job_state(job));
    assert_eq!(state, Some(JobState::Held));
}
