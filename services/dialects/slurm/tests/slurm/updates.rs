//! What `scontrol update` changes of jobs.

use crate::support::{ago, records, running, view};
use jiff::tz::TimeZone;
use muster_schemas::{
    resources::{Alternative, Per, Request as Demand},
    views::JobView,
};
use muster_slurm::queries::{
    Failure,
    change::{JobUpdate, job_update},
    update::update,
};
use serde_json::json;

/// What an update with these pairs comes to for a job that asks for 2 tasks and 2 licences.
fn changed(job: JobView, pairs: &str) -> Result<JobUpdate, Failure> {
    let words: Vec<String> = format!("JobId=7 {pairs}").split_whitespace().map(str::to_owned).collect();
    let asked = Alternative {
        requests: vec![Demand { tasks: Some(2), ..Demand::default() }],
        walltime_seconds: Some(300),
        licences: [("ansys".to_owned(), 2)].into(),
    };
    let record = records([job]).remove(0);
    let now = ago(0).to_jiff().to_zoned(TimeZone::UTC);
    job_update(&update(&words)?, &record, &[asked], "7", &now)
}

fn waiting(pairs: &str) -> JobUpdate {
    changed(view(json!({})), pairs).unwrap_or_else(|failure| panic!("{pairs}: {failure:?}"))
}

fn asked(pairs: &str) -> Alternative {
    waiting(pairs).change.alternatives.map(|mut all| all.remove(0)).unwrap_or_else(|| panic!("{pairs}"))
}

/// SL-C-36, EX-07
#[test]
fn a_time_limit_is_set_raised_and_lowered() {
    let seconds = |pairs: &str| waiting(pairs).change.walltime_seconds;
    assert_eq!(seconds("timelimit=60"), Some(3600));
    assert_eq!(seconds("timelimit+=10"), Some(900));
    assert_eq!(seconds("timelimit=+10"), Some(900));
    assert_eq!(seconds("timelimit-=2"), Some(180));
    assert_eq!(asked("timelimit=UNLIMITED").walltime_seconds, None);
    assert!(changed(view(json!({})), "timelimit-=10").is_err(), "nothing would be left");
}

/// SL-C-36
#[test]
fn only_operators_raise_limits_and_priorities() {
    for (pairs, needed) in [
        ("timelimit=60", true),
        ("timelimit=UNLIMITED", true),
        ("timelimit=1", false),
        ("priority=2000", true),
        ("priority=10", false),
        ("nice=-5", true),
        ("nice=5", false),
        ("account=abc", false),
    ] {
        assert_eq!(waiting(pairs).needs_operator, needed, "{pairs}");
    }
}

/// SL-C-36
#[test]
fn what_a_job_asks_for_is_changed_in_its_request() {
    assert_eq!(asked("numtasks=8").requests[0].tasks, Some(8));
    assert_eq!(asked("reqnodelist=nid[1-2]").requests[0].nodes, ["nid1", "nid2"]);
    assert_eq!(asked("excnodelist=nid3").requests[0].excluded_nodes, ["nid3"]);
    let memory = asked("MinMemoryNode=100").requests[0].memory.expect("memory");
    assert_eq!((memory.bytes, memory.per), (100 << 20, Per::Node));
    assert!(asked("features=gamma").requests[0].filter.is_some());
    assert_eq!(asked("numnodes=2-4").requests[0].path.len(), 1);
    let licences = |pairs: &str| asked(pairs).licences.into_iter().collect::<Vec<_>>();
    assert_eq!(licences("licenses+=matlab:1"), [("ansys".to_owned(), 2), ("matlab".to_owned(), 1)]);
    assert_eq!(licences("licenses-=ansys:1"), [("ansys".to_owned(), 1)]);
    assert_eq!(licences("licenses="), []);
}

/// SL-C-36
#[test]
fn what_the_model_has_no_place_for_is_kept_beside_it() {
    let update = waiting("comment=hello nice=7 wckey=k name=x partition=p2 starttime=now+60");
    let kept: Vec<_> = update.attributes.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(kept, [("comment", "hello"), ("nice", "7"), ("wckey", "k")]);
    assert_eq!((update.change.name.as_deref(), update.change.queue.as_deref()), (Some("x"), Some("p2")));
    assert_eq!(update.change.begin, Some(ago(-60)));
    let update = waiting("qos=high reservationname=r1 deadline=now+3600");
    let further = &update.further;
    assert_eq!((update.class.as_deref(), further.reservation.as_deref()), (Some("high"), Some("r1")));
    assert_eq!(further.deadline, Some(ago(-3600)));
    assert!(waiting("dependency=afterok:5").change.dependencies.is_some());
    assert_eq!(waiting("dependency=").change.dependencies, Some(Default::default()));
}

/// SL-C-36: attributes are those of the component that is named, or of all.
#[test]
fn attributes_of_one_component_change_or_those_of_all() {
    let keys = |component, count| {
        let further = waiting("comment=c requeue=0").further(component, count);
        assert_eq!((further.requeue_on_node_lost, further.component), (Some(false), component));
        further.attributes.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(keys(Some(2), 3), ["slurm.2.comment=c", "slurm.2.no-requeue=yes"]);
    assert_eq!(keys(None, 1), ["slurm.0.comment=c", "slurm.0.no-requeue=yes"]);
    assert_eq!(keys(None, 2).len(), 4);
    let back = waiting("requeue=1 oversubscribe=no");
    assert_eq!(back.further.requeue_on_node_lost, Some(true));
    assert_eq!(back.attributes, [("no-requeue", String::new()), ("oversubscribe", String::new())].into());
}

/// SL-C-36, SL-C-13: what a job is nicer by, its priority is lower by.
#[test]
fn nice_lowers_the_priority_of_a_job_that_waits() {
    assert_eq!(waiting("nice=7").change.priority, Some(993));
    assert_eq!(waiting("nice=-7").change.priority, Some(1007));
    assert_eq!(waiting("priority=500 nice=7").change.priority, Some(493));
    let job = running("7", 60, &["n1"], json!({}));
    assert_eq!(changed(job, "nice=7").map(|update| update.change.priority), Ok(None));
}

/// SL-C-36: what is shown as it was written is shown as it is written now.
#[test]
fn a_request_that_changes_is_shown_as_it_is_written() {
    let kept = |pairs: &str| waiting(pairs).attributes.into_iter().collect::<Vec<_>>();
    assert_eq!(kept("features=gamma"), [("constraint", "gamma".to_owned())]);
    assert_eq!(kept("licenses+=matlab:1"), [("licenses", "ansys:2,matlab:1".to_owned())]);
    assert_eq!(kept("licenses="), [("licenses", String::new())]);
    assert_eq!(kept("numnodes=2-4 numtasks=3"), [("nodes", "2-4".to_owned()), ("ntasks", "3".to_owned())]);
}

/// SL-M-08
#[test]
fn of_a_running_job_the_time_limit_changes_and_the_account_does_not() {
    let job = || running("7", 60, &["n1"], json!({}));
    let late = Err(Failure::plain("Job is no longer pending execution for job 7"));
    assert_eq!(changed(job(), "account=abc"), late);
    assert_eq!(changed(job(), "timelimit=4 account=abc"), late, "nothing is changed then");
    let limit = changed(job(), "timelimit=4").map(|update| update.change.walltime_seconds);
    assert_eq!(limit, Ok(Some(240)));
}

/// SL-C-36
#[test]
fn values_that_do_not_fit_are_told_and_nothing_is_changed() {
    for (pairs, text) in [
        ("starttime=soon", "Invalid StartTime value: soon"),
        ("numnodes=many", "Invalid NumNodes value: many"),
        ("dependency=whenever:5", "Invalid Dependency value: whenever:5"),
        ("mailtype=x", "Invalid MailType value: x"),
        ("stdout=x", "Update of this parameter is not supported: stdout=x"),
    ] {
        let failure = changed(view(json!({})), pairs).expect_err(pairs);
        assert_eq!(failure.lines, [text, "Request aborted"], "{pairs}");
    }
}

/// SL-C-36
#[test]
fn every_key_that_is_known_has_an_effect() {
    for (key, value) in [
        ("Account", "a"),
        ("ArrayTaskThrottle", "2"),
        ("BurstBuffer", "b"),
        ("Comment", "c"),
        ("Contiguous", "1"),
        ("CPUsPerTask", "3"),
        ("Deadline", "now+60"),
        ("Dependency", "afterok:5"),
        ("EligibleTime", "now+60"),
        ("ExcNodeList", "n1"),
        ("Features", "f"),
        ("Gres", "g:1"),
        ("JobName", "j"),
        ("Licenses", "l:1"),
        ("MailType", "END"),
        ("MailUser", "u"),
        ("MinMemoryCPU", "1"),
        ("MinMemoryNode", "1"),
        ("MinTmpDiskNode", "1"),
        ("Name", "n"),
        ("Nice", "1"),
        ("NumCPUs", "4"),
        ("NumNodes", "2"),
        ("NumTasks", "3"),
        ("OverSubscribe", "yes"),
        ("Partition", "p"),
        ("Priority", "1"),
        ("QOS", "q"),
        ("ReqNodeList", "n1"),
        ("Requeue", "0"),
        ("ReservationName", "r"),
        ("Shared", "yes"),
        ("StartTime", "now+60"),
        ("TimeLimit", "1"),
        ("TimeMin", "1"),
        ("WCKey", "w"),
    ] {
        assert_ne!(waiting(&format!("{key}={value}")), JobUpdate::default(), "{key}");
    }
}
