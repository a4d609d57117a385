//! `scontrol show`.

use crate::support::{ago, assert_lines, clock, detailed, records, run, running, sources, view};
use muster_schemas::{
    job::JobState,
    views::{JobView, LicenceView, NodeView, QueueView, ReservationView},
};
use muster_slurm::{
    job_id::StepName,
    show::{
        record::{JobRecord, of_detail},
        scontrol::{self, Lines, NodeExtras},
        sinfo::{NodeRecord, Partition},
        step::StepRecord,
    },
    words::NodeFacts,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The running job 1 of the worked example: `-J foo -c2 --mem-per-cpu=16 -n1 -t5` and `-c1 --mem-per-cpu=10 -n4
/// --ntasks-per-node=2`.
fn job_1() -> Vec<JobRecord> {
    let job = running("1", 6, &["nid00001", "nid00002", "nid00003"], json!({ "components": 2 }));
    let memory = |megabytes: u64| json!({ "bytes": megabytes << 20, "per": "core" });
    let request = |request: Value| {
        json!({ "queue": "debug", "account": "test",
        "launch": { "stdout": "slurm-%j.out", "program": { "script": { "text": "#!/bin/bash\n", "args": [] } } },
        "alternatives": [{ "walltime_seconds": 300, "requests": [request] }] })
    };
    let spec = json!({
        "name": "foo", "working_directory": "/home/root",
        "components": [
            request(json!({ "tasks": 1, "cpus_per_task": 2, "memory": memory(16) })),
            request(json!({ "tasks": 4, "cpus_per_task": 1, "tasks_per_node": 2, "memory": memory(10) })),
        ],
        "attributes": { "slurm.kind": "sbatch", "slurm.command": "/home/root/new.sh", "slurm.submit-host": "login",
            "slurm.submit-session": "77" }
    });
    let parts = [("nid00001", 0, "0-1", 1), ("nid00002", 1, "0-1", 2), ("nid00003", 1, "0-1", 2)];
    detailed(job, spec, json!([run(&parts)]))
}

/// EX-01, SL-I-11, SL-C-34
#[test]
fn a_component_is_shown_in_the_lines_of_the_worked_example() {
    let shown = scontrol::job(&job_1()[1], Lines::Several, &clock());
    assert_lines(&shown, include_str!("golden/scontrol-job.txt"));
}

/// SL-I-11, SL-C-34
#[test]
fn a_record_of_one_line_has_the_same_pairs_between_single_blanks() {
    let job = &job_1()[0];
    let one = scontrol::job(job, Lines::One, &clock());
    let several = scontrol::job(job, Lines::Several, &clock());
    assert_eq!(one.matches('\n').count(), 1);
    let words = several.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(one.trim_end(), words);
    for pair in one.split_whitespace() {
        assert!(pair.contains('='), "{pair}");
    }
}

/// SL-C-34
#[test]
fn reasons_with_details_stay_one_value() {
    let reason = json!({ "code": "nodes_unavailable", "text": "nodes not available: nid00003", "job": null });
    let job = records([view(json!({ "reason": reason }))]).remove(0);
    let shown = scontrol::job(&job, Lines::One, &clock());
    assert!(shown.contains(" Reason=ReqNodeNotAvail,_UnavailableNodes:nid00003 "), "{shown}");
}

/// SL-C-18
#[test]
fn tasks_of_an_array_tell_their_array_and_index() {
    let array = json!({ "total": 5, "remaining": "3-5", "waiting": 3, "running": 2, "finished": {}, "max_running": 2 });
    let rest = records([view(json!({ "id": "43", "array": array }))]).remove(0);
    let shown = scontrol::job(&rest, Lines::Several, &clock());
    assert_eq!(shown.lines().next(), Some("JobId=43 ArrayJobId=43 ArrayTaskId=3-5 ArrayTaskThrottle=2 JobName=foo"));
    let task = records([running("43_1", 5, &["n1"], json!({}))]).remove(0);
    let shown = scontrol::job(&task, Lines::Several, &clock());
    assert_eq!(shown.lines().next(), Some("JobId=43 ArrayJobId=43 ArrayTaskId=1 JobName=foo"));
}

/// SL-C-19
#[test]
fn dependencies_are_shown_as_they_were_written() {
    let dependency = |kind: &str, job: &str| json!({ "kind": kind, "job": job });
    let groups = json!({ "all_of": [[dependency("succeeded", "49")], [dependency("ended", "50")]] });
    let spec = json!({ "components": [{ "dependencies": groups }] });
    let job = detailed(view(json!({})), spec, json!([])).remove(0);
    let shown = scontrol::job(&job, Lines::One, &clock());
    assert!(shown.contains(" Dependency=afterok:49(unfulfilled),afterany:50(unfulfilled) "), "{shown}");
    let never = json!({ "state": "held", "reason": { "code": "dependency_never_met", "text": "", "job": null } });
    let spec = json!({ "components": [{ "dependencies": { "all_of": [[dependency("succeeded", "49")]] } }] });
    let shown = scontrol::job(&detailed(view(never), spec, json!([])).remove(0), Lines::One, &clock());
    assert!(shown.contains(" Dependency=afterok:49(failed) "), "{shown}");
    let spec = json!({ "components": [{ "dependencies": { "all_of": [[dependency("succeeded", "49")]] } }] });
    let job = running("7", 5, &["n1"], json!({}));
    let shown = scontrol::job(&detailed(job, spec, json!([])).remove(0), Lines::One, &clock());
    assert!(shown.contains(" Dependency=(null) "), "{shown}");
}

/// SL-C-19: each of several is shown with its state, except those that are met.
#[test]
fn dependencies_tell_singly_how_they_stand() {
    let ended = |job: &str| json!({ "kind": "ended", "job": job });
    let succeeded = |job: &str| json!({ "kind": "succeeded", "job": job });
    let shown = |groups: Value, standing: Value| {
        let detail = json!({
            "job": view(json!({})), "spec": { "components": [{ "dependencies": { "all_of": groups } }] },
            "redacted": false, "runs": [], "dependencies": [standing]
        });
        let detail = serde_json::from_value(detail).expect("details");
        let job = muster_slurm::show::record::of_detail(&detail, &crate::support::sources()).remove(0);
        let text = scontrol::job(&job, Lines::One, &clock());
        let (_, behind) = text.split_once(" Dependency=").expect("it is shown");
        behind.split(' ').next().unwrap_or_default().to_owned()
    };
    let each = json!([[ended("48")], [succeeded("49")], [succeeded("50")]]);
    let standing = json!([["met"], ["never"], ["delayed"]]);
    assert_eq!(shown(each.clone(), standing), "afterok:49(failed),afterok:50(unfulfilled)");
    assert_eq!(shown(each, json!([["met"], ["met"], ["met"]])), "(null)");
    let one = json!([[succeeded("49"), succeeded("50")]]);
    assert_eq!(shown(one.clone(), json!([["never", "unmet"]])), "afterok:49(failed)?afterok:50(unfulfilled)");
    assert_eq!(shown(one, json!([["never", "met"]])), "(null)");
}

/// SL-C-34: the request for GPUs.
#[test]
fn gpus_are_shown_as_they_were_asked_for() {
    let spec = json!({ "components": [{}], "attributes": {
        "slurm.0.gres": "gpu:1", "slurm.0.gpus": "a100:4", "slurm.0.gpus-per-node": "2", "slurm.0.gpus-per-task": "1",
        "slurm.0.gpu-bind": "closest", "slurm.0.gpu-freq": "low", "slurm.0.cpus-per-gpu": "3", "slurm.0.mem-per-gpu": "1G"
    } });
    let shown = scontrol::job(&detailed(view(json!({})), spec, json!([])).remove(0), Lines::One, &clock());
    let end = "CpusPerTres=gres/gpu:3 MemPerTres=gres/gpu:1024 TresBind=gpu:closest TresFreq=gpu:low \
               TresPerJob=gres/gpu:a100:4 TresPerTask=gres/gpu:1";
    assert!(shown.contains(" TresPerNode=gres/gpu:1,gres/gpu:2 ") && shown.contains(end), "{shown}");
}

/// SL-C-34: the group is the one that the job was submitted with, which need not be the owner's first.
#[test]
fn the_group_is_that_of_the_submission() {
    let shown = |attributes: Value| {
        let spec = json!({ "components": [{}], "attributes": attributes });
        scontrol::job(&detailed(view(json!({})), spec, json!([])).remove(0), Lines::One, &clock())
    };
    assert!(shown(json!({ "slurm.gid": "50" })).contains(" GroupId=group50(50) "));
    assert!(shown(json!({})).contains(" GroupId=root(0) "), "of other dialects' jobs nothing is known");
}

/// SL-S-02: a component can have a name of its own.
#[test]
fn a_component_is_shown_by_its_own_name() {
    let spec = json!({ "name": "foo", "components": [{}, {}], "attributes": { "slurm.1.job-name": "bar" } });
    let records = detailed(view(json!({ "components": 2 })), spec, json!([]));
    let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["foo", "bar"]);
}

/// SL-C-34: nothing is made up about another user's job.
#[test]
fn what_is_not_told_of_a_job_is_shown_as_nothing() {
    let script = json!({ "launch": { "program": { "script": { "text": "", "args": [] } } } });
    let shown = |folder: &str| {
        let spec = json!({ "components": [script], "working_directory": folder });
        let detail = json!({ "job": view(json!({})), "spec": spec, "redacted": true, "runs": [] });
        let detail = serde_json::from_value(detail).expect("details");
        scontrol::job(&of_detail(&detail, &sources())[0], Lines::One, &clock())
    };
    assert!(shown("/w").contains(" StdIn=/dev/null "), "only what is long is left out: {}", shown("/w"));
    let shown = shown("");
    for pair in ["BatchFlag=1", "Command=(null)", "WorkDir=(null)", "StdErr=(null)", "StdIn=(null)", "StdOut=(null)"] {
        assert!(shown.contains(&format!(" {pair}")), "{pair}: {shown}");
    }
}

/// SL-C-12: `--mincpus` is shown as such, not as a feature.
#[test]
fn the_least_number_of_cpus_is_shown() {
    let request = json!({ "filter": { "compare": { "property": "cores", "relation": "greater_or_equal", "value": { "number": 16 } } } });
    let spec = json!({
        "components": [{ "alternatives": [{ "requests": [request] }] }], "attributes": { "slurm.0.mincpus": "16" }
    });
    let shown = scontrol::job(&detailed(view(json!({})), spec, json!([])).remove(0), Lines::One, &clock());
    assert!(shown.contains(" MinCPUsNode=16 ") && shown.contains(" Features=(null) "), "{shown}");
}

/// SL-C-13: a job that waits for its begin time shows it as its start.
#[test]
fn a_begin_time_is_when_a_job_is_thought_to_start() {
    let shown = |members: Value| scontrol::job(&records([view(members)]).remove(0), Lines::One, &clock());
    assert!(shown(json!({ "begin": ago(-3600) })).contains(" StartTime=2026-11-20T09:20:00 "));
    assert!(shown(json!({})).contains(" StartTime=Unknown "));
}

/// SL-C-13: until it starts, a job may belong to any partition of its list.
#[test]
fn a_job_that_waits_shows_all_its_partitions() {
    let spec = json!({ "components": [{ "queue": "debug" }], "attributes": { "slurm.0.partition": "debug,p2" } });
    let shown = |job: JobView| scontrol::job(&detailed(job, spec.clone(), json!([])).remove(0), Lines::One, &clock());
    assert!(shown(view(json!({}))).contains(" Partition=debug,p2 "));
    assert!(shown(running("7", 5, &["n1"], json!({}))).contains(" Partition=debug "));
}

/// SL-B-05, SL-O-09, EX-18
#[test]
fn options_that_the_model_has_no_place_for_are_shown_as_given() {
    let spec = json!({
        "working_directory": "/w",
        "components": [{}, { "launch": { "stdout": "oo.%j" } }],
        "attributes": { "slurm.1.comment": "cmt", "slurm.1.nice": "7", "slurm.1.no-requeue": "yes",
            "slurm.1.reboot": "yes", "slurm.1.bb": "#DW persistentdw name=alpha", "slurm.1.constraint": "gamma&knl" }
    });
    let job = detailed(view(json!({ "id": "96", "components": 2 })), spec, json!([])).remove(1);
    let shown = scontrol::job(&job, Lines::Several, &clock());
    for wanted in [
        "Nice=7",
        "Requeue=0",
        "Reboot=1",
        "Comment=cmt",
        "StdOut=/w/oo.97",
        "BurstBuffer=#DW persistentdw name=alpha",
        "Features=gamma&knl",
        "QOS=normal",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    assert!(!shown.contains("MailType"), "{shown}");
}

/// A node of the worked example, with other members.
pub(crate) fn node(members: Value) -> NodeView {
    let mut all = json!({
        "spec": { "name": "nid00001", "cores": 4, "memory_bytes": 4000u64 << 20,
            "properties": { "alpha": { "flag": true }, "haswell": { "flag": true } } },
        "state": "up", "reason": null, "cores_used": 0, "memory_used_bytes": 0, "gpus_used": 0, "jobs": []
    });
    let (Value::Object(all_members), Value::Object(more)) = (&mut all, members) else { panic!("objects") };
    all_members.extend(more);
    serde_json::from_value(all).expect("a node")
}

/// EX-21
#[test]
fn a_node_is_shown_in_the_lines_of_the_worked_example() {
    let drained = node(json!({ "state": "drained", "reason": "bad disk", "cores_used": 1, "jobs": ["1"] }));
    let mut record = NodeRecord::of(&drained, NodeFacts::default(), clock().now);
    (record.reason_user, record.reason_time) = (Some("root".to_owned()), Some(ago(300)));
    let extras = NodeExtras { partitions: vec!["debug".to_owned(), "p2".to_owned()], ..NodeExtras::default() };
    assert_lines(&scontrol::node(&record, &extras, Lines::Several, &clock()), include_str!("golden/scontrol-node.txt"));
}

/// EX-21
#[test]
fn a_partition_is_shown_with_its_nodes_and_sums() {
    let nodes: Vec<NodeRecord> = (1..=12)
        .map(|number| {
            let mut record = NodeRecord::of(&node(json!({})), NodeFacts::default(), clock().now);
            record.name = format!("nid{number:05}");
            record
        })
        .collect();
    let names: Vec<&str> = nodes[..5].iter().map(|node| node.name.as_str()).collect();
    let queue = |spec: Value, default: bool| -> Partition {
        let view: QueueView =
            serde_json::from_value(json!({ "spec": spec, "default": default, "queued": 0, "held": 0, "running": 0 }))
                .expect("a queue");
        Partition::of(&view)
    };
    let p2 = queue(json!({ "name": "p2", "max_walltime_seconds": 3600, "nodes": names }), false);
    let shown = scontrol::partition(&p2, None, &nodes, Lines::One);
    assert_eq!(shown.lines().count(), 1);
    let beginning = "PartitionName=p2 AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO QoS=N/A \
                     DefaultTime=NONE ";
    assert!(shown.starts_with(beginning), "{shown}");
    let mut rest = shown.as_str();
    for wanted in [
        "MaxTime=01:00:00 MinNodes=0 ",
        "Nodes=nid[00001-00005] ",
        "State=UP TotalCPUs=20 TotalNodes=5 ",
        "TRES=cpu=20,mem=20000M,node=5,billing=20",
    ] {
        let place = rest.find(wanted).unwrap_or_else(|| panic!("{wanted} is not in {rest}"));
        rest = &rest[place..];
    }
    let debug = queue(json!({ "name": "debug", "default_walltime_seconds": 1800 }), true);
    let shown = scontrol::partition(&debug, None, &nodes, Lines::One);
    assert!(shown.contains(" Default=YES ") && shown.contains(" MaxTime=UNLIMITED "), "{shown}");
}

/// SL-C-33: `-d` tells what a job has on each node.
#[test]
fn what_a_job_has_on_each_node_is_shown_in_detail() {
    let shown = scontrol::job_in_detail(&job_1()[1], Lines::Several, &clock());
    assert!(shown.contains("\n   JOB_GRES=(null)\n     Nodes=nid00002 CPU_IDs=0-1 Mem="), "{shown}");
    assert!(shown.contains("\n     Nodes=nid00003 CPU_IDs=0-1 Mem="), "{shown}");
    assert!(!scontrol::job(&job_1()[1], Lines::Several, &clock()).contains("CPU_IDs"));
}

/// SL-A-11: partitions, reservations, steps and licences as data for programs, in Slurm's shape.
#[test]
fn what_is_no_job_is_shown_as_data_too() {
    let nodes = [NodeRecord::of(&node(json!({})), NodeFacts::default(), clock().now)];
    let queue = json!({ "spec": { "name": "p2", "priority": 3, "max_walltime_seconds": 3600, "nodes": ["nid00001"],
        "most_asked": { "nodes": 4 }, "makes_way": { "by": "cancel", "grace_seconds": 9 } }, "default": false,
        "queued": 0, "held": 0, "running": 0 });
    let partition = Partition::of(&serde_json::from_value::<QueueView>(queue).expect("a queue"));
    let data = muster_slurm::show::sinfo::partition_data(&partition, Some("long"), &nodes);
    assert_eq!((&data["name"], &data["nodes"]["configured"]), (&json!("p2"), &json!("nid00001")));
    assert_eq!(data["maximums"]["time"], json!({ "set": true, "infinite": false, "number": 60 }));
    assert_eq!(data["maximums"]["nodes"]["number"], json!(4));
    assert_eq!(data["defaults"]["time"], json!({ "set": false, "infinite": false, "number": 0 }));
    assert_eq!((&data["priority"]["tier"], &data["grace_time"]), (&json!(3), &json!(9)));
    assert_eq!((&data["qos"]["assigned"], &data["partition"]["state"]), (&json!("long"), &json!(["UP"])));
    let view: ReservationView = serde_json::from_value(json!({
        "spec": { "name": "r1", "start": ago(60), "end": ago(-540), "nodes": { "named": ["nid00001"] }, "users": ["ann"],
            "repeats_after_seconds": 86_400, "attributes": { "slurm.flags": "MAINT" } },
        "nodes": ["nid00001"], "begun": true,
    }))
    .expect("a reservation");
    let data = scontrol::reservation_data(&view, 4, clock().now);
    assert_eq!((&data["name"], &data["core_count"], &data["users"]), (&json!("r1"), &json!(4), &json!("ann")));
    assert_eq!(data["flags"], json!(["MAINT", "DAILY", "SPEC_NODES"]));
    assert_eq!(data["start_time"]["number"], json!(ago(60).unix_seconds()));
    let mut step = StepRecord::of_job(&job_1()[0], StepName::Number(0), "sleep");
    step.limit_seconds = Some(61);
    let data = scontrol::step_data(&step, "alpha", &clock());
    assert_eq!((&data["id"], &data["time"]["limit"]["number"]), (&json!("1+0.0"), &json!(2)));
    assert_eq!((&data["state"], &data["user"]), (&json!(["RUNNING"]), &json!("root")));
    let licence = LicenceView { name: "ansys".into(), total: 5, used: 2 };
    assert_eq!(scontrol::licence_data(&licence, &clock())["Free"], json!(3));
    assert_eq!(scontrol::ping_data("h", false, 9)["pinged"], json!("DOWN"));
}

/// SL-C-34
#[test]
fn a_step_is_shown_with_its_job() {
    let job = &job_1()[1];
    let shown = scontrol::step(&StepRecord::of_job(job, StepName::Number(0), "app.sh"), Lines::One, &clock());
    assert!(shown.starts_with("StepId=1+1.0 UserId=0 StartTime=2026-11-20T08:19:54 TimeLimit=UNLIMITED "), "{shown}");
    for wanted in [
        "State=RUNNING ",
        "Partition=debug ",
        "NodeList=nid[00002-00003] ",
        "Nodes=2 ",
        "CPUs=4 ",
        "Tasks=4 ",
        "Name=app.sh ",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}

/// SL-C-35
#[test]
fn the_configuration_is_shown_a_setting_to_a_line() {
    let shown = scontrol::config(&BTreeMap::new(), &clock());
    let (first, rows) = shown.split_once('\n').expect("lines");
    assert_eq!(first, "Configuration data as of 2026-11-20T08:20:00");
    let settings = "AccountingStorageEnforce AccountingStorageType BOOT_TIME ClusterName EnforcePartLimits FirstJobId \
                 JobRequeue JobSubmitPlugins KillWait Licenses MailProg MaxArraySize MaxJobCount MinJobAge NEXT_JOB_ID \
                 OverTimeLimit PreemptMode PreemptType PriorityType PrivateData PrologFlags ProctrackType \
                 SchedulerParameters SchedulerType SelectType SelectTypeParameters SlurmctldHost[0] SlurmctldParameters \
                 SlurmdUser SlurmUser SLURM_CONF SLURM_VERSION TaskPlugin TopologyPlugin";
    let wanted: String = settings.split_whitespace().map(|name| format!("{name:<23} = (null)\n")).collect();
    assert_eq!(rows, wanted + "\n", "without a value");

    let values = BTreeMap::from([("SchedulerType", "sched/backfill".to_owned()), ("TmpFS", "/tmp".to_owned())]);
    let shown = scontrol::config(&values, &clock());
    for line in ["SchedulerType           = sched/backfill", "TmpFS                   = /tmp"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
}

/// SL-C-14, SL-C-40
#[test]
fn output_files_are_shown_with_their_patterns_filled_in() {
    let shown = |id: &str, launch: Value| {
        let spec = json!({ "working_directory": "/w", "components": [{ "launch": launch }] });
        scontrol::job(&detailed(running(id, 5, &["n1"], json!({})), spec, json!([])).remove(0), Lines::One, &clock())
    };
    let patterns = shown("43_1", json!({ "stdout": "%x-%A_%a.out", "stderr": "/e/%u.%N", "stdin": "in" }));
    assert!(patterns.contains(" StdErr=/e/root.n1 StdIn=/w/in StdOut=/w/foo-43_1.out"), "{patterns}");
    let native = shown("7", json!({}));
    assert!(native.contains(" StdErr=/w/muster-7.out StdIn=/dev/null StdOut=/w/muster-7.out"), "{native}");
}

/// SL-C-34: details of suspensions that only a job's events have.
#[test]
fn a_suspended_job_shows_since_when() {
    let event = |kind: &str, seconds: i64| json!({ "type": format!("muster.job.{kind}.v1"), "time": ago(seconds) });
    let mut job = running("7", 100, &["n1"], json!({ "state": "suspended" }));
    job.state = JobState::Suspended;
    let mut record = records([job]).remove(0);
    let events = [
        // From the previous run, which ended like this.
        event("suspended", 300),
        event("started", 100),
        event("suspended", 90),
        event("resumed", 60),
        event("suspended", 20),
        json!({ "type": "muster.job.suspended.v1" }),
    ];
    record.learn_suspensions(&events);
    let shown = scontrol::job(&record, Lines::Several, &clock());
    assert!(shown.contains(" SuspendTime=2026-11-20T08:19:40 SecsPreSuspend=50 "), "{shown}");
    assert!(shown.contains(" RunTime=00:00:50 "), "{shown}");
    record.learn_suspensions(&[&events[..], &[event("resumed", 10)]].concat());
    assert!(scontrol::job(&record, Lines::Several, &clock()).contains(" SuspendTime=None SecsPreSuspend=0 "));
}

/// SL-C-34: only batch jobs have files of their own.
#[test]
fn allocations_have_no_output_files() {
    for (kind, has_files) in [("sbatch", true), ("salloc", false), ("srun", false)] {
        let spec = json!({ "working_directory": "/w", "components": [{}], "attributes": { "slurm.kind": kind } });
        let records = detailed(running("7", 5, &["n1"], json!({})), spec, json!([]));
        let shown = scontrol::job(&records[0], Lines::Several, &clock());
        let of_files = shown.lines().filter(|line| line.trim_start().starts_with("Std")).count();
        assert_eq!(of_files, if has_files { 3 } else { 0 }, "{kind}: {shown}");
        assert_eq!(records[0].request().stdout.is_empty(), !has_files);
    }
}

/// SL-M-07
#[test]
fn the_first_component_is_shown_as_it_stands_and_not_as_it_was_submitted() {
    let job = view(json!({ "id": "7", "account": "abc", "walltime_seconds": 3600, "queue": "p2" }));
    let component = json!({ "account": "test", "queue": "debug", "alternatives": [{ "walltime_seconds": 60 }] });
    let shown = scontrol::job(&detailed(job, json!({ "components": [component] }), json!([]))[0], Lines::One, &clock());
    for wanted in ["Account=abc ", "TimeLimit=01:00:00 ", "Partition=p2 "] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}

/// SL-C-33
#[test]
fn licences_are_shown_with_how_many_are_in_use() {
    let ansys = LicenceView { name: "ansys".to_owned(), total: 4, used: 1 };
    let shown = scontrol::licences(&[ansys], Lines::One);
    assert_eq!(shown, "LicenseName=ansys Total=4 Used=1 Free=3 Reserved=0 Remote=no\n");
    assert_eq!(scontrol::nothing("jobs"), "No jobs in the system\n");
    assert_eq!(scontrol::not_found("Node", "zzz"), "Node zzz not found");
    assert_eq!(scontrol::ping("head", true), "Slurmctld(primary) at head is UP\n");
}

/// SL-C-05
#[test]
fn node_lists_are_taken_apart_and_put_together() {
    let names = scontrol::hostnames("nid[00001-00003,00011]");
    assert_eq!(names.as_deref(), Ok("nid00001\nnid00002\nnid00003\nnid00011\n"));
    assert_eq!(scontrol::hostlist("a1,a2,a4", false).as_deref(), Ok("a[1-2,4]\n"));
    assert_eq!(scontrol::hostlist("a4,a2,a1", true).as_deref(), Ok("a[1-2,4]\n"));
    assert!(scontrol::hostnames("a[1-").is_err());
}
