//! Changes of jobs by `scontrol update`.

use crate::support::{ago, component, records, running, view};
use jiff::tz::TimeZone;
use muster_schemas::{
    resources::{Alternative, Gpus, NodeFilter, Per, Request as Demand},
    views::{JobView, ShrinkRequest},
};
use muster_slurm::{
    features,
    queries::{
        Failure,
        change::{JobUpdate, Part, job_update, job_updates},
        resize,
        update::update,
    },
    show::record::NO_LIMIT,
};
use serde_json::json;

/// The effect of an update with these pairs on a job that asks for 2 tasks and 2 licences.
fn changed(job: JobView, pairs: &str) -> Result<JobUpdate, Failure> {
    let words: Vec<String> = format!("JobId=7 {pairs}").split_whitespace().map(str::to_owned).collect();
    let asked = Alternative {
        requests: vec![Demand { tasks: Some(2), ..Demand::default() }],
        walltime_seconds: Some(300),
        licences: [("ansys".to_owned(), 2)].into(),
        ..Alternative::default()
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
    assert_eq!(seconds("timelimit=UNLIMITED"), Some(100 * 366 * 86_400));
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
    assert_eq!((update.class.as_deref(), update.change.reservation.as_deref()), (Some("high"), Some("r1")));
    assert_eq!(update.change.deadline, Some(ago(-3600)));
    assert!(waiting("dependency=afterok:5").change.dependencies.is_some());
    assert_eq!(waiting("dependency=").change.dependencies, Some(Default::default()));
}

/// SL-C-36: an attribute changes on the named component, or on all.
#[test]
fn attributes_of_one_component_change_or_those_of_all() {
    let keys = |component, count| {
        let change = waiting("comment=c requeue=0").in_components(component, count);
        assert_eq!((change.requeue_on_node_lost, change.component), (Some(false), component));
        change.attributes.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(keys(Some(2), 3), ["slurm.2.comment=c", "slurm.2.no-requeue=yes"]);
    assert_eq!(keys(None, 1), ["slurm.0.comment=c", "slurm.0.no-requeue=yes"]);
    assert_eq!(keys(None, 2).len(), 4);
    let back = waiting("requeue=1 oversubscribe=no");
    assert_eq!(back.change.requeue_on_node_lost, Some(true));
    assert_eq!(back.attributes, [("no-requeue", String::new()), ("oversubscribe", String::new())].into());
}

/// SL-C-36, SL-C-13: a nice value lowers the priority by that much.
#[test]
fn nice_lowers_the_priority_of_a_job_that_waits() {
    assert_eq!(waiting("nice=7").change.priority, Some(993));
    assert_eq!(waiting("nice=-7").change.priority, Some(1007));
    assert_eq!(waiting("priority=500 nice=7").change.priority, Some(493));
    let job = running("7", 60, &["n1"], json!({}));
    assert_eq!(changed(job, "nice=7").map(|update| update.change.priority), Ok(None));
}

/// SL-C-36: the end of a running job is another way to write its time limit.
#[test]
fn a_running_job_ends_when_it_is_told_to() {
    let job = || running("7", 60, &["n1"], json!({ "walltime_seconds": 600 }));
    let changed_to =
        |pairs: &str| changed(job(), pairs).map(|update| (update.change.walltime_seconds, update.needs_operator));
    assert_eq!(changed_to("endtime=now+120"), Ok((Some(180), false)));
    assert_eq!(changed_to("endtime=now+1200"), Ok((Some(1260), true)));
    assert!(changed_to("endtime=now-5").is_err(), "it has passed");
    let failure = changed(view(json!({})), "endtime=now+120").expect_err("it waits");
    assert_eq!(failure.lines, ["Job is not running for job 7"]);
}

/// SL-C-36: an administrator's comment takes an operator, and a list of partitions is for submissions.
#[test]
fn comments_of_administrators_are_theirs_and_partitions_are_named_one_by_one() {
    let update = waiting("admincomment=checked extra=x");
    assert!(update.needs_operator && !waiting("extra=x").needs_operator);
    assert_eq!(update.attributes, [("admin-comment", "checked".to_owned()), ("extra", "x".to_owned())].into());
    let failure = changed(view(json!({})), "partition=a,b").expect_err("two partitions");
    assert_eq!(failure.lines, ["Invalid Partition value: a,b", "Request aborted"]);
}

/// SL-C-36: attributes shown as they were written are shown as they are written now.
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
        ("gres=fpga:1", "Invalid Gres value: fpga:1"),
        ("mailtype=END", "Update of this parameter is not supported: mailtype=END"),
        ("mailuser=u", "Update of this parameter is not supported: mailuser=u"),
        ("burstbuffer=b", "Update of this parameter is not supported: burstbuffer=b"),
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
        ("AdminComment", "a"),
        ("ArrayTaskThrottle", "2"),
        ("Comment", "c"),
        ("Contiguous", "1"),
        ("CPUsPerTask", "3"),
        ("Deadline", "now+60"),
        ("Dependency", "afterok:5"),
        ("EligibleTime", "now+60"),
        ("ExcNodeList", "n1"),
        ("Extra", "e"),
        ("Features", "f"),
        ("Gres", "gpu:1"),
        ("JobName", "j"),
        ("Licenses", "l:1"),
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
        ("Switches", "1@10"),
        ("TimeLimit", "1"),
        ("TimeMin", "1"),
        ("WCKey", "w"),
    ] {
        assert_ne!(waiting(&format!("{key}={value}")), JobUpdate::default(), "{key}");
    }
}

/// SL-C-12, SL-C-36: a new size of the disk replaces the old one, and leaves features and CPUs as they are.
#[test]
fn disk_neighbours_and_switches_are_changed_as_what_the_job_asks_for() {
    let tmp = |text: &str| asked(&format!("mintmpdisknode={text}")).requests[0].filter.clone();
    assert_eq!(tmp("1G"), Some(features::with_tmp_disk(1024)));
    let both = asked("features=knl mintmpdisknode=5 mintmpdisknode=7").requests[0].filter.clone();
    assert_eq!(both, Some(NodeFilter::All(vec![NodeFilter::Has("knl".into()), features::with_tmp_disk(7)])));
    assert_eq!(
        asked("features=knl mintmpdisknode=5 mintmpdisknode=0").requests[0].filter,
        Some(NodeFilter::Has("knl".into()))
    );
    assert!(asked("contiguous=yes").contiguous);
    let few =
        |text: &str| asked(&format!("switches={text}")).groups.map(|few| (few.property, few.most, few.wait_seconds));
    assert_eq!(few("2@1:00:00"), Some(("switch".into(), 2, 3600)));
    assert_eq!(few("3@60 switches=2"), Some(("switch".into(), 2, 3600)), "it waits as long as before");
    assert!(changed(view(json!({})), "switches=x").is_err());
    let kept = waiting("contiguous=yes switches=1@60 mintmpdisknode=1G").attributes;
    assert_eq!(kept.values().map(String::as_str).collect::<Vec<_>>(), ["yes", "1@60", "1G"]);
}

/// The effect of an update on a job with two components: one task and two licences, and four tasks with more time.
fn of_components(
    members: serde_json::Value,
    chosen: &[u32],
    pairs: &str,
) -> Result<Vec<(Option<u32>, JobUpdate)>, Failure> {
    let asked = |tasks: u32, seconds: u64, licences: u32| Alternative {
        requests: vec![Demand { tasks: Some(tasks), ..Demand::default() }],
        walltime_seconds: Some(seconds),
        licences: (0..licences).map(|_| ("ansys".to_owned(), 2)).collect(),
        ..Alternative::default()
    };
    let alternatives = [vec![asked(1, 300, 1)], vec![asked(4, 600, 0)]];
    let by_component = json!([
        component(json!({ "state": "queued" })),
        component(json!({ "state": "queued", "walltime_seconds": 600, "priority": 500, "holds": members }))
    ]);
    let records = records([view(json!({ "components": 2, "by_component": by_component }))]);
    let part = |offset: u32| {
        let place = offset as usize;
        Part { component: Some(offset), record: &records[place], alternatives: &alternatives[place] }
    };
    let parts: Vec<Part<'_>> = chosen.iter().copied().map(part).collect();
    let words: Vec<String> = format!("JobId=7 {pairs}").split_whitespace().map(str::to_owned).collect();
    let now = ago(0).to_jiff().to_zoned(TimeZone::UTC);
    job_updates(&update(&words)?, &parts, "7", &now)
}

fn of_all(pairs: &str) -> Vec<(Option<u32>, JobUpdate)> {
    of_components(json!({}), &[0, 1], pairs).unwrap_or_else(|failure| panic!("{pairs}: {failure:?}"))
}

/// SL-M-07, EX-07: each component keeps what an update of the leader does not name.
#[test]
fn an_update_of_the_leader_leaves_the_components_what_they_ask_for() {
    let changes = of_all("minmemorynode=500");
    let tasks: Vec<_> = changes
        .iter()
        .map(|(component, asked)| {
            let way = &asked.change.alternatives.as_ref().expect("another request")[0];
            (*component, way.requests[0].tasks, way.licences.len(), way.requests[0].memory.map(|memory| memory.bytes))
        })
        .collect();
    assert_eq!(tasks, [(Some(0), Some(1), 1, Some(500 << 20)), (Some(1), Some(4), 0, Some(500 << 20))]);
    let seconds: Vec<_> = of_all("timelimit+=10").iter().map(|(_, asked)| asked.change.walltime_seconds).collect();
    assert_eq!(seconds, [Some(900), Some(1200)], "each by its own limit");
    let nice: Vec<_> = of_all("nice=7").iter().map(|(_, asked)| asked.change.priority).collect();
    assert_eq!(nice, [Some(993), Some(493)]);
    let same = of_all("account=abc timelimit=60");
    assert!(matches!(same.as_slice(), [(None, _)]), "one change for all: {same:?}");
}

/// SL-S-14: licences are the leader's.
#[test]
fn licences_of_a_job_are_changed_at_its_leader() {
    let licences: Vec<_> =
        of_all("licenses=matlab:1").into_iter().map(|(at, asked)| (at, asked.change.alternatives.is_some())).collect();
    assert_eq!(licences, [(Some(0), true)]);
    let refused = Failure::plain("Invalid license specification for job 7");
    assert_eq!(of_components(json!({}), &[1], "licenses=matlab:1"), Err(refused));
}

/// SL-M-07: the name given to one component is not that of the job; one for the whole job applies to each.
#[test]
fn the_name_of_a_component_is_its_own() {
    let changes = of_components(json!({}), &[1], "name=x").expect("it is changed");
    let (component, asked) = &changes[0];
    assert_eq!((*component, &asked.change.name), (Some(1), &None));
    assert_eq!(asked.attributes, [("job-name", "x".to_owned())].into());
    let changes = of_all("name=x");
    assert_eq!((changes.len(), changes[0].1.change.name.as_deref()), (1, Some("x")));
    assert_eq!(changes[0].1.attributes, [("job-name", String::new())].into());
}

/// SL-C-37: a priority of 0 is a hold, and a held job keeps its priority.
#[test]
fn what_is_held_keeps_its_priority() {
    let held = waiting("priority=0");
    assert_eq!((held.hold, held.change.priority, held.needs_operator), (Some(true), None, false));
    assert_eq!(
        (waiting("hold=1").hold, waiting("hold=no").hold, waiting("nice=1").hold),
        (Some(true), Some(false), None)
    );
    let job = || view(json!({ "state": "held", "holds": { "user": true } }));
    let nice = changed(job(), "nice=7").expect("it is changed");
    assert_eq!((nice.change.priority, nice.needs_operator), (Some(993), false));
    let refused = Failure::plain("Job is in held state, pending scheduler release for job 7");
    assert_eq!(changed(job(), "priority=10"), Err(refused.clone()));
    let one_held = of_components(json!({ "user": true }), &[0, 1], "nice=7").expect("it is changed");
    let priorities: Vec<_> = one_held.iter().map(|(_, asked)| asked.change.priority).collect();
    assert_eq!(priorities, [Some(993), Some(493)]);
    assert_eq!(of_components(json!({ "user": true }), &[1], "priority=10"), Err(refused));
}

/// SL-C-36: generic resources become a request, and not only text to show.
#[test]
fn another_gres_is_another_request_for_gpus() {
    let gpus = |pairs: &str| asked(pairs).requests[0].gpus.clone();
    assert_eq!(gpus("gres=gpu:a100:2"), Some(Gpus { count: 2, per: Per::Node, model: Some("a100".into()) }));
    assert_eq!(waiting("gres=gpu:2").attributes, [("gres", "gpu:2".to_owned())].into());
}

/// SL-C-36, SL-C-12: `--mincpus` is no feature.
#[test]
fn other_features_leave_the_least_number_of_cpus() {
    let least = features::with_cpus(4);
    let before = Alternative {
        cpu_seconds: None,
        requests: vec![Demand { filter: Some(least.clone()), ..Demand::default() }],
        ..Alternative::default()
    };
    let record = records([view(json!({}))]).remove(0);
    let now = ago(0).to_jiff().to_zoned(TimeZone::UTC);
    let filter = |text: &str| {
        let words = ["JobId=7".to_owned(), format!("features={text}")];
        let result = job_update(&update(&words)?, &record, std::slice::from_ref(&before), "7", &now)?;
        Ok::<_, Failure>(result.change.alternatives.map(|mut ways| ways.remove(0).requests.remove(0).filter))
    };
    let both = NodeFilter::All(vec![NodeFilter::Has("knl".into()), least]);
    assert_eq!(filter("knl"), Ok(Some(Some(both))));
    assert_eq!(filter(""), Ok(None), "nothing else is left to change");
}

/// SL-C-17, SL-C-36: 0 removes the limit on running tasks.
#[test]
fn no_throttle_is_no_limit() {
    assert_eq!(waiting("arraytaskthrottle=0").change.max_running, Some(NO_LIMIT));
    let array = json!({ "total": 3, "remaining": "1-3", "waiting": 3, "running": 0, "finished": {},
        "max_running": NO_LIMIT });
    let record = records([view(json!({ "array": array }))]).remove(0);
    assert_eq!(record.array.and_then(|array| array.most_running), None);
}

/// A running job can become smaller, and nothing else of its request changes.
#[test]
fn a_running_job_keeps_a_number_of_nodes_or_those_that_are_named() {
    let kept = |pairs: &str| {
        let changed = changed(running("7", 1, &["n1", "n2", "n3"], json!({})), pairs)?;
        assert!(changed.change.is_empty(), "{changed:?}");
        Ok::<_, Failure>(changed.kept.expect("it is about nodes"))
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(kept("NumNodes=2"), Ok(ShrinkRequest { nodes: Some(2), ..ShrinkRequest::default() }));
    for key in ["NodeList", "ReqNodeList"] {
        let expected = ShrinkRequest { keep: names(&["n1", "n3"]), ..ShrinkRequest::default() };
        assert_eq!(kept(&format!("{key}=n[1,3]")), Ok(expected));
    }
    assert!(kept("NumNodes=1-2").is_err(), "a job that runs has no range");
}

#[test]
fn a_shell_in_a_job_that_became_smaller_is_given_the_variables_that_it_has() {
    let nodes = [("n1".to_owned(), 4), ("n2".to_owned(), 4), ("n3".to_owned(), 2)];
    let files = resize::files(12, &nodes, |name| name != "SLURM_NODELIST");
    assert_eq!(files.sh.0, "slurm_job_12_resize.sh");
    assert_eq!(
        files.sh.1,
        "export SLURM_JOB_NODELIST=\"n[1-3]\"\nexport SLURM_NNODES=3\nexport SLURM_JOB_NUM_NODES=3\n\
         export SLURM_JOB_CPUS_PER_NODE=\"4(x2),2\"\nunset SLURM_NPROCS\nunset SLURM_NTASKS\n\
         unset SLURM_TASKS_PER_NODE\n"
    );
    assert!(files.csh.1.starts_with("setenv SLURM_JOB_NODELIST \"n[1-3]\"\n"), "{}", files.csh.1);
    assert_eq!(resize::files(12, &nodes, |_| false).sh.1, "");
}
