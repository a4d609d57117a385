//! `sacct`.

use crate::support::{ago, assert_lines, clock, component, detailed, records, run, running, sources, view};
use muster_schemas::{
    job::{JobState, Usage},
    views::{JobDetail, JobView},
};
use muster_slurm::{
    job_id::StepName,
    show::{
        columns::ListStyle,
        data::{Asker, DataFormat},
        record::JobRecord,
        sacct::{self, Beside, FIELDS, JobFlag, Report, Row, Wanted},
        step::StepRecord,
    },
    size::Units,
    words::{ExitCode, State},
};
use serde_json::{Value, json};
use std::sync::Arc;

fn row(job: &Arc<JobRecord>, step: Option<StepRecord>) -> Row {
    Row {
        job: Arc::clone(job),
        step,
        usage: Usage::default(),
        derived_exit: ExitCode::default(),
        cancelled_by: None,
        cluster: "alpha".into(),
        failed_node: None,
        flags: Default::default(),
        association: None,
        units: Units::default(),
    }
}

/// Job 67767 of the worked example: two components of 2 and 4 processors that ran well.
fn job_67767() -> Vec<Arc<JobRecord>> {
    let outcome = json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null });
    let job = view(json!({ "id": "67767", "components": 2, "state": "finished", "outcome": outcome, "runs": 1,
        "started": ago(50), "ended": ago(20) }));
    let component = |cpus: u32| json!({ "alternatives": [{ "requests": [{ "cpus_per_task": cpus }] }] });
    let spec = json!({ "name": "foo", "components": [component(2), component(4)] });
    detailed(job, spec, json!([])).into_iter().map(Arc::new).collect()
}

/// Lines of a job of two components, with its steps.
pub(crate) fn with_steps() -> Vec<Row> {
    let jobs = job_67767();
    let mut rows: Vec<Row> = jobs.iter().map(|job| row(job, None)).collect();
    for job in &jobs {
        rows.push(row(job, Some(StepRecord::of_job(job, StepName::Number(0), "app.sh"))));
    }
    rows.push(row(&jobs[0], Some(StepRecord::of_job(&jobs[0], StepName::Batch, "batch"))));
    rows
}

fn list(rows: Vec<Row>, report: &Report) -> String {
    sacct::list(rows, &Wanted::default(), report, &clock()).unwrap_or_else(|error| panic!("{error}"))
}

fn bars(format: &str) -> Report {
    let style = ListStyle::Separated { by: "|".to_owned(), ends: false };
    Report { format: format.to_owned(), style, no_header: true, ..Report::default() }
}

/// EX-08, SL-A-02, SL-A-06
#[test]
fn components_are_listed_in_columns_below_a_dashed_line() {
    let rows = job_67767().iter().map(|job| row(job, None)).collect();
    assert_lines(&list(rows, &Report::default()), include_str!("golden/sacct-67767.txt"));
}

/// SL-A-07, SL-A-08
#[test]
fn what_is_being_started_runs_for_accounting() {
    let rows = ["launching", "finishing"].map(|state| {
        let job = view(json!({ "id": "7", "state": state, "runs": 1, "started": ago(1) }));
        row(&Arc::new(records([job]).remove(0)), None)
    });
    assert_eq!(list(rows.to_vec(), &bars("State")), "RUNNING\nRUNNING\n");
    let wanted = Wanted { states: vec![State::Running], ..Wanted::default() };
    assert!(rows.iter().all(|row| wanted.takes(row)));
}

/// EX-08, SL-A-05, SL-A-06
#[test]
fn steps_stand_below_their_component_unless_only_jobs_are_wanted() {
    assert_lines(&list(with_steps(), &Report::default()), include_str!("golden/sacct-steps.txt"));
    let jobs_only = Wanted { jobs_only: true, ..Wanted::default() };
    let listed = sacct::list(with_steps(), &jobs_only, &Report::default(), &clock()).unwrap();
    assert_lines(&listed, include_str!("golden/sacct-67767.txt"));
}

/// SL-A-05
#[test]
fn raw_ids_are_the_own_numbers() {
    let listed = list(with_steps(), &bars("JobID,JobIDRaw"));
    let wanted = "67767+0|67767\n67767+0.batch|67767.batch\n67767+0.0|67767.0\n67767+1|67768\n67767+1.0|67768.0\n";
    assert_eq!(listed, wanted);
}

/// SL-A-07
#[test]
fn values_can_stand_between_bars_with_and_without_one_at_the_end() {
    let rows = || vec![row(&job_67767()[0], None)];
    let report = |ends| Report {
        format: "jobid,State%3,exitcode".to_owned(),
        style: ListStyle::Separated { by: "|".to_owned(), ends },
        no_header: false,
        ..Report::default()
    };
    assert_eq!(list(rows(), &report(false)), "JobID|State|ExitCode\n67767+0|COMPLETED|0:0\n");
    assert_eq!(list(rows(), &report(true)), "JobID|State|ExitCode|\n67767+0|COMPLETED|0:0|\n");
    let by_comma = Report { style: ListStyle::Separated { by: ",".to_owned(), ends: false }, ..report(false) };
    assert_eq!(list(rows(), &by_comma), "JobID,State,ExitCode\n67767+0,COMPLETED,0:0\n");
}

/// SL-A-06, SL-A-07
#[test]
fn widths_can_be_given_and_what_is_too_long_ends_in_a_plus() {
    let mut job = (*job_67767()[0]).clone();
    job.state = State::Cancelled;
    let cancelled = Row { cancelled_by: Some(1000), ..row(&Arc::new(job), None) };
    let columns = |format: &str| Report { format: format.to_owned(), ..Report::default() };
    let listed = list(vec![cancelled.clone()], &columns("State,State%-20,JobID%20,JobID%3"));
    let wanted = "     State                State                JobID Job \n\
                  ---------- -------------------- -------------------- --- \n\
                  CANCELLED+ CANCELLED by 1000                 67767+0 67+ \n";
    assert_eq!(listed, wanted.replace("                State     ", " State                    "));
}

/// SL-A-09
#[test]
fn exit_codes_tell_status_and_signal() {
    assert_eq!(ExitCode { status: 3, signal: 0 }.to_string(), "3:0");
    let killed = json!({ "outcome": "failed", "exit_status": { "signal": 9 }, "detail": null });
    let job = records([view(json!({ "state": "finished", "outcome": killed, "ended": ago(1) }))]).remove(0);
    assert_eq!(list(vec![row(&Arc::new(job), None)], &bars("State,ExitCode")), "FAILED|0:9\n");
    let without_status = |outcome: &str| {
        let outcome = json!({ "outcome": outcome, "exit_status": null, "detail": null });
        ExitCode::of(&serde_json::from_value(outcome).expect("an outcome")).to_string()
    };
    let words = ["launch_failed", "node_lost", "refused", "out_of_memory", "timed_out", "cancelled"];
    assert_eq!(words.map(without_status), ["1:0", "1:0", "1:0", "0:125", "0:0", "0:0"]);
}

/// SL-A-08
#[test]
fn a_job_that_never_started_has_no_nodes_and_one_that_runs_no_end() {
    let jobs = records([view(json!({ "id": "1" })), running("2", 61, &["nid00001"], json!({ "cores": 2 }))]);
    let rows: Vec<Row> = jobs.into_iter().map(|job| row(&Arc::new(job), None)).collect();
    let listed = list(rows, &bars("JobID,Start,End,NodeList,AllocCPUS,Elapsed,CPUTimeRAW,Timelimit,Cluster"));
    let wanted = "1|Unknown|Unknown|None assigned|0|00:00:00|0|00:05:00|alpha\n\
                  2|2026-11-20T08:18:59|Unknown|nid00001|2|00:01:01|122|00:05:00|alpha\n";
    assert_eq!(listed, wanted);
}

/// SL-A-08, SL-A-09
#[test]
fn every_field_is_known_in_any_case_and_others_are_refused() {
    let names = "JobID JobIDRaw JobName Partition Account AllocCPUS NCPUS AllocNodes NNodes AllocTRES ReqTRES ReqCPUS \
                 ReqMem State ExitCode DerivedExitCode Elapsed ElapsedRaw Submit Eligible Start End Timelimit \
                 TimelimitRaw User UID Group GID QOS Priority NodeList NTasks Layout CPUTime CPUTimeRAW TotalCPU UserCPU \
                 SystemCPU MaxRSS AveRSS WorkDir Comment Cluster Reason Reservation Suspended SubmitLine Planned \
                 PlannedCPU PlannedCPURAW Restarts FailedNode Container Licenses QOSREQ StdOut StdErr StdIn \
                 TRESUsageInAve TRESUsageInTot TRESUsageOutTot";
    for name in names.split_whitespace() {
        assert!(FIELDS.iter().any(|field| field.header == name), "{name}");
        let listed = sacct::list(Vec::new(), &Wanted::default(), &bars(&name.to_lowercase()), &clock());
        assert_eq!(listed, Ok(String::new()), "{name}");
        assert!(sacct::field_names().contains(name), "{name}");
    }
    let refused = sacct::list(Vec::new(), &Wanted::default(), &bars("JobID,nope"), &clock());
    assert_eq!(refused.unwrap_err().0, "nope");
    assert!(sacct::list(Vec::new(), &Wanted::default(), &bars(sacct::LONG_FORMAT), &clock()).is_ok());
    assert!(sacct::list(Vec::new(), &Wanted::default(), &bars(sacct::BRIEF_FORMAT), &clock()).is_ok());
}

/// SL-A-10
#[test]
fn lines_are_ordered_by_submission_number_and_step_whatever_order_they_came_in() {
    let mut early = (*job_67767()[0]).clone();
    (early.number, early.het, early.submitted) = (9, None, ago(1000));
    let mut rows = with_steps();
    rows.push(row(&Arc::new(early), None));
    let mut reversed = rows.clone();
    reversed.reverse();
    let listed = list(rows, &bars("JobID"));
    assert_eq!(listed, list(reversed, &bars("JobID")));
    assert!(listed.starts_with("9\n67767+0\n67767+0.batch\n"), "{listed}");
}

/// SL-A-07
#[test]
fn jobs_are_chosen_by_state_owner_and_window() {
    let rows = || {
        let mut rows = with_steps();
        let job = records([running("7", 5, &["n1"], json!({ "owner": "ann" }))]).remove(0);
        rows.push(row(&Arc::new(job), None));
        rows
    };
    let with = |wanted: Wanted| {
        let wanted = Wanted { jobs_only: true, ..wanted };
        sacct::list(rows(), &wanted, &bars("JobID"), &clock()).unwrap().replace('\n', " ")
    };
    assert_eq!(with(Wanted { states: vec![State::Running], ..Wanted::default() }), "7 ");
    assert_eq!(with(Wanted { users: ["ann".to_owned()].into(), ..Wanted::default() }), "7 ");
    assert_eq!(with(Wanted { from: Some(ago(10)), ..Wanted::default() }), "7 ");
    assert_eq!(with(Wanted { to: Some(ago(100)), ..Wanted::default() }), "");
    assert_eq!(with(Wanted { nodes: ["n1".to_owned()].into(), ..Wanted::default() }), "7 ");
}

/// SL-A-07: with a past time, a state is what a job was then: it waited or ran at some point of that time,
/// or ended in it.
#[test]
fn states_are_those_of_the_time_that_is_asked_for() {
    let ended = |id: &str, submitted: i64, started: i64, ended: i64| {
        let outcome = json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null });
        view(json!({ "id": id, "state": "finished", "outcome": outcome, "runs": 1, "submitted": ago(submitted),
            "started": ago(started), "ended": ago(ended) }))
    };
    let jobs = [
        ended("1", 100, 90, 80),
        ended("2", 70, 40, 30),
        running("3", 20, &["n1"], json!({})),
        view(json!({ "id": "4" })),
    ];
    let rows = || records(jobs.clone()).into_iter().map(|job| row(&Arc::new(job), None)).collect();
    let with = |state: State, from: i64, to: i64| {
        let wanted = Wanted { states: vec![state], from: Some(ago(from)), to: Some(ago(to)), ..Wanted::default() };
        sacct::list(rows(), &wanted, &bars("JobID"), &clock()).unwrap().replace('\n', " ")
    };
    assert_eq!(with(State::Running, 95, 85), "1 ");
    assert_eq!(with(State::Running, 85, 35), "1 2 ");
    assert_eq!(with(State::Running, 25, 0), "3 ");
    assert_eq!(with(State::Pending, 99, 95), "1 ");
    assert_eq!(with(State::Pending, 60, 50), "2 3 4 ");
    assert_eq!(with(State::Pending, 15, 0), "4 ");
    assert_eq!(with(State::Completed, 95, 50), "1 ");
    assert_eq!(with(State::Completed, 75, 0), "2 ");
    assert_eq!(with(State::Completed, 35, 32), "");
}

/// SL-A-07: each filter asks for what its option names.
#[test]
fn jobs_are_chosen_by_account_partition_class_name_and_size() {
    let record = |id: &str, members: serde_json::Value| records([running(id, 5, &["n1"], members)]).remove(0);
    let other = json!({ "account": "abc", "queue": "p2", "class": "high", "name": "bar", "walltime_seconds": 600,
        "nodes": ["n1", "n2"], "node_count": 2, "cores": 8 });
    let rows = [record("7", json!({ "cores": 4 })), record("8", other)].map(|job| row(&Arc::new(job), None));
    let with = |wanted: Wanted| {
        let taken: Vec<String> = rows.iter().filter(|row| wanted.takes(row)).map(Row::shown_id).collect();
        taken.join(" ")
    };
    let set = |name: &str| std::collections::BTreeSet::from([name.to_owned()]);
    assert_eq!(with(Wanted { accounts: set("abc"), ..Wanted::default() }), "8");
    assert_eq!(with(Wanted { partitions: set("p2"), ..Wanted::default() }), "8");
    assert_eq!(with(Wanted { classes: set("high"), ..Wanted::default() }), "8");
    assert_eq!(with(Wanted { names: set("bar"), ..Wanted::default() }), "8");
    assert_eq!(with(Wanted { node_counts: Some((2, 4)), ..Wanted::default() }), "8");
    assert_eq!(with(Wanted { cpu_counts: Some((1, 4)), ..Wanted::default() }), "7");
    assert_eq!(with(Wanted { limit_seconds: Some((600, 600)), ..Wanted::default() }), "8");
}

/// SL-A-11, SL-A-01
#[test]
fn json_tells_components_and_their_steps() {
    let mut rows = with_steps();
    rows.sort_by_key(Row::shown_id);
    let command = ["sacct", "--json"].map(str::to_owned);
    let asker = Asker { command: &command, user: "ann", group: "staff", cluster: "alpha", release: "22.05.8" };
    let object = sacct::document(&rows, &asker, &clock());
    let slurm = json!({ "version": { "major": "22", "minor": "05", "micro": "8" }, "release": "22.05.8",
        "cluster": "alpha" });
    assert_eq!((&object["meta"]["slurm"], &object["meta"]["command"]), (&slurm, &json!(["sacct", "--json"])));
    assert_eq!((&object["errors"], &object["warnings"]), (&json!([]), &json!([])));
    let jobs = object["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 2);
    let number = |number: u64| json!({ "set": true, "infinite": false, "number": number });
    assert_eq!(jobs[1]["het"], json!({ "job_id": 67767, "job_offset": number(1) }));
    assert_eq!(jobs[0]["state"], json!({ "current": ["COMPLETED"], "reason": "None" }));
    assert_eq!(jobs[0]["exit_code"]["status"], json!(["SUCCESS"]));
    assert_eq!(jobs[0]["time"]["limit"], number(5));
    assert_eq!((&jobs[0]["user"], &jobs[0]["cluster"]), (&json!("root"), &json!("alpha")));
    assert_eq!(jobs[0]["tres"]["allocated"][0], json!({ "type": "cpu", "name": "", "id": 1, "count": 2 }));
    assert_eq!(jobs[0]["steps"][0]["step"]["id"], "67767+0.0");
    assert_eq!(jobs[0]["steps"].as_array().map(Vec::len), Some(2));
    for key in ["job_id", "name", "account", "partition", "state", "exit_code", "time"] {
        assert!(!jobs[0][key].is_null(), "{key}");
    }
}

/// A batch job of two components that was requeued once and then ran to its end.
fn requeued() -> JobDetail {
    let outcome = |word: &str| json!({ "outcome": word, "exit_status": null, "detail": null });
    let completed = json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null });
    let part = |node: &str, component: u32, cores: &str| {
        json!({ "node": node, "component": component, "cores": cores, "gpus": "", "memory_bytes": 0, "tasks": 1,
            "exclusive": false, "exit": { "status": { "code": 0 }, "cause": "itself", "started": null, "ended": ago(20),
                "usage": { "cpu_time_micros": 500_000 * (component + 1), "peak_memory_bytes": 1_048_576 } } })
    };
    let run = |number: u32, first: &str, started: i64, ended: i64, outcome: &serde_json::Value| {
        json!({ "run": number, "job": "20", "nodes": [part(first, 0, "0"), part("n9", 1, "0-3")],
            "allocated": ago(started), "started": ago(started), "ended": ago(ended), "outcome": outcome,
            "usage": { "cpu_time_micros": 1_500_000, "peak_memory_bytes": 2_097_152 } })
    };
    let job =
        view(json!({ "id": "20", "components": 2, "state": "finished", "outcome": completed, "run": 2, "runs": 2,
        "started": ago(50), "ended": ago(20) }));
    let script = json!({ "launch": { "program": { "script": { "text": "#!/bin/sh\n", "args": [] } } } });
    serde_json::from_value(json!({
        "job": job, "spec": { "components": [script, {}] }, "redacted": false,
        "runs": [run(1, "n1", 90, 60, &outcome("requeued")), run(2, "n2", 50, 20, &completed)]
    }))
    .expect("details")
}

/// SL-A-05, SL-A-07, SL-A-08: each component with the resources it used.
#[test]
fn all_attempts_are_listed_if_they_are_asked_for_and_the_script_is_a_step_of_each() {
    let sources = sources();
    let beside = Beside { sources: &sources, cluster: "alpha".into(), steps: Vec::new() };
    let format = bars("JobID,State,NodeList,ElapsedRaw,AllocCPUS,TotalCPU,MaxRSS");
    let latest = "20+0|COMPLETED|n2|30|1|00:00.500|\n20+0.batch|COMPLETED|n2|30|1|00:00.500|1024K\n\
                  20+1|COMPLETED|n9|30|4|00:01.000|\n";
    assert_eq!(list(sacct::rows(&requeued(), &beside, false), &format), latest);
    let all = "20+0|REQUEUED|n1|30|1|00:00.500|\n20+0.batch|REQUEUED|n1|30|1|00:00.500|1024K\n\
               20+0|COMPLETED|n2|30|1|00:00.500|\n20+0.batch|COMPLETED|n2|30|1|00:00.500|1024K\n\
               20+1|REQUEUED|n9|30|4|00:01.000|\n20+1|COMPLETED|n9|30|4|00:01.000|\n";
    assert_eq!(list(sacct::rows(&requeued(), &beside, true), &format), all);
}

/// SL-A-07, SL-A-10: a requeue ends the attempt, not the start of the next one, which may never come.
#[test]
fn what_was_put_back_waits_without_an_attempt() {
    let sources = sources();
    let beside = Beside { sources: &sources, cluster: "alpha".into(), steps: Vec::new() };
    let mut detail = requeued();
    detail.runs.truncate(1);
    (detail.job.run, detail.job.runs) = (Some(detail.runs[0].run), 1);
    detail.job.started = detail.runs[0].started;
    let format = bars("JobID,State,NodeList,Start");
    let before = "20+0|REQUEUED|n1|2026-11-20T08:18:30\n20+0.batch|REQUEUED|n1|2026-11-20T08:18:30\n";
    let others = "20+1|REQUEUED|n9|2026-11-20T08:18:30\n";
    for (state, outcome, word) in [
        (JobState::Queued, None, "PENDING"),
        (
            JobState::Finished,
            serde_json::from_value(json!({ "outcome": "cancelled", "exit_status": null, "detail": null })).ok(),
            "CANCELLED",
        ),
    ] {
        (detail.job.state, detail.job.outcome) = (state, outcome);
        let own = |offset: u32| format!("20+{offset}|{word}|None assigned|Unknown\n");
        assert_eq!(list(sacct::rows(&detail, &beside, false), &format), own(0) + &own(1));
        let all = format!("{before}{}{others}{}", own(0), own(1));
        assert_eq!(list(sacct::rows(&detail, &beside, true), &format), all);
    }
}

/// SL-A-05, EX-09
#[test]
fn a_component_that_took_no_part_in_a_step_has_no_line_for_it() {
    let sources = sources();
    let jobs = detailed(requeued().job, json!({ "components": [{}, {}] }), json!([]));
    let steps = vec![
        StepRecord::of_job(&jobs[0], StepName::Number(0), "true"),
        StepRecord::of_job(&jobs[1], StepName::Number(0), "true"),
        StepRecord::of_job(&jobs[0], StepName::Number(1), "true"),
    ];
    let beside = Beside { sources: &sources, cluster: "alpha".into(), steps };
    let listed = list(sacct::rows(&requeued(), &beside, false), &bars("JobID,JobIDRaw"));
    assert_eq!(listed, "20+0|20\n20+0.batch|20.batch\n20+0.0|20.0\n20+0.1|20.1\n20+1|21\n20+1.0|21.0\n");
}

/// SL-A-06, SL-M-02
#[test]
fn who_cancelled_a_job_or_a_component_is_told() {
    let cancelled = json!({ "outcome": "cancelled", "exit_status": null, "detail": null });
    let of = |state: &str, outcome: &serde_json::Value| {
        let stands = [
            component(json!({ "state": state, "nodes": ["n1"] })),
            component(json!({ "state": "finished", "nodes": ["n2"], "outcome": cancelled, "ended": ago(30) })),
        ];
        running(
            "93",
            50,
            &["n1"],
            json!({ "components": 2, "state": state, "outcome": outcome,
            "by_component": stands }),
        )
    };
    let cancel = |run: u32, component: Option<u32>, uid: u32| json!({ "at": ago(30), "run": run, "component": component, "user": "adam", "uid": uid });
    let sources = sources();
    let listed = |job: JobView, cancels: serde_json::Value| {
        let detail = json!({ "job": job, "spec": { "components": [{}, {}] }, "redacted": false, "cancels": cancels,
            "runs": [run(&[("n1", 0, "0", 1), ("n2", 1, "0", 1)])] });
        let detail = serde_json::from_value(detail).expect("details");
        let beside = Beside { sources: &sources, cluster: "alpha".into(), steps: Vec::new() };
        list(sacct::rows(&detail, &beside, false), &bars("JobID,State"))
    };
    let alone = json!([cancel(1, Some(1), 1001)]);
    let goes_on = of("running", &serde_json::Value::Null);
    assert_eq!(listed(goes_on, alone), "93+0|RUNNING\n93+1|CANCELLED by 1001\n");
    // A cancellation of another attempt does not count here.
    let both = json!([cancel(9, None, 1), cancel(1, Some(1), 1001), cancel(1, None, 0)]);
    assert_eq!(listed(of("finished", &cancelled), both), "93+0|CANCELLED by 0\n93+1|CANCELLED by 1001\n");
}

/// SL-A-07, SL-A-08: sizes in the unit that is asked for, and GPUs among the resources.
#[test]
fn resources_have_gpus_and_sizes_the_unit_that_is_asked_for() {
    let request = json!({ "cpus_per_task": 2, "memory": { "bytes": 300 << 20, "per": "node" },
        "gpus": { "count": 2, "per": "node", "model": null } });
    let spec =
        json!({ "name": "foo", "components": [{ "class": "high", "alternatives": [{ "requests": [request] }] }] });
    let job = view(json!({ "id": "7", "state": "finished", "runs": 1, "started": ago(50), "ended": ago(20),
        "cores": 2, "outcome": { "outcome": "completed", "exit_status": { "code": 0 }, "detail": null } }));
    let job = Arc::new(detailed(job, spec, json!([])).remove(0));
    let with = |units: Units, format: &str| list(vec![row(&job, None)], &Report { units, ..bars(format) });
    assert_eq!(
        with(Units::Largest, "ReqMem,AllocTRES,QOSREQ"),
        "300M|cpu=2,mem=300M,node=1,billing=2,gres/gpu=2|high\n"
    );
    assert_eq!(with(Units::Power(1), "ReqMem"), "307200K\n");
    assert_eq!(with(Units::Power(3), "ReqMem"), "0.29G\n");
    assert_eq!(with(Units::Largest, "Planned,PlannedCPURAW,Restarts"), "00:00:10|20|0\n");
}

/// SL-A-11: the same in YAML.
#[test]
fn yaml_has_the_shape_of_json() {
    let document = json!({ "jobs": [{ "name": "a: b", "nodes": [], "het": { "job_id": 0 } }, 5], "none": {} });
    let wanted = "---\njobs:\n  -\n    name: \"a: b\"\n    nodes: []\n    het:\n      job_id: 0\n  - 5\nnone: {}\n";
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&DataFormat::Yaml.text(&document)), lines(wanted));
    assert!(DataFormat::Json.text(&document).starts_with('{'));
}

/// SL-A-07: `-T` shows a job as if it had started and ended within the wanted time.
#[test]
fn times_outside_of_the_wanted_time_can_be_cut() {
    let from_to = Wanted { from: Some(ago(40)), to: Some(ago(30)), truncates: true, ..Wanted::default() };
    let listed = |wanted: &Wanted| {
        let rows = with_steps().into_iter().filter(|row| row.job.number == 67767).collect();
        sacct::list(rows, wanted, &bars("JobID,Start,End,ElapsedRaw"), &clock()).expect("a table")
    };
    let cut = "2026-11-20T08:19:20|2026-11-20T08:19:30|10";
    assert_eq!(listed(&from_to), format!("67767+0|{cut}\n67767+0.batch|{cut}\n67767+0.0|{cut}\n"));
    let whole = "2026-11-20T08:19:10|2026-11-20T08:19:40|30";
    let as_they_are = Wanted { truncates: false, ..from_to.clone() };
    assert_eq!(listed(&as_they_are), format!("67767+0|{whole}\n67767+0.batch|{whole}\n67767+0.0|{whole}\n"));
    let runs = Arc::new(records([running("9", 50, &["n1"], json!({}))]).remove(0));
    let listed = sacct::list(vec![row(&runs, None)], &from_to, &bars("ElapsedRaw,End"), &clock()).expect("a table");
    assert_eq!(listed, "10|2026-11-20T08:19:30\n");
}

/// SL-A-07
#[test]
fn jobs_are_chosen_by_features_and_by_reason() {
    let asks = |id: &str, features: &str, reason: &str| {
        let reason = json!({ "code": reason, "text": "", "job": null });
        let job = view(json!({ "id": id, "reason": reason }));
        let spec = json!({ "components": [{}], "attributes": { "slurm.0.constraint": features } });
        row(&Arc::new(detailed(job, spec, json!([])).remove(0)), None)
    };
    let rows =
        [asks("1", "knl&big", "behind_job"), asks("2", "[knl|gpu]", "resources"), asks("3", "bigger", "resources")];
    let chosen = |wanted: &Wanted| sacct::list(rows.to_vec(), wanted, &bars("JobID"), &clock()).expect("a table");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(chosen(&Wanted { features: names(&["knl"]), ..Wanted::default() }), "1\n2\n");
    assert_eq!(chosen(&Wanted { features: names(&["knl", "big"]), ..Wanted::default() }), "1\n");
    assert_eq!(chosen(&Wanted { reasons: names(&["priority"]), ..Wanted::default() }), "1\n");
    assert_eq!(chosen(&Wanted { reasons: names(&["Priority", "Resources"]), ..Wanted::default() }), "1\n2\n3\n");
}

/// SL-A-07: how a job was handled, and whom it was charged to
#[test]
fn jobs_are_chosen_by_how_they_were_started_and_by_their_association() {
    let line = |run: Value| {
        let job = running("7", 60, &["n1"], json!({}));
        let detail: JobDetail = serde_json::from_value(json!({
            "job": job, "spec": { "components": [{}] }, "redacted": false, "runs": [run]
        }))
        .expect("details");
        let beside = Beside { sources: &sources(), cluster: "alpha".into(), steps: Vec::new() };
        let mut row = sacct::rows(&detail, &beside, false).remove(0);
        row.association = Some(12);
        row
    };
    let mut ahead = run(&[("n1", 0, "0", 1)]);
    ahead["backfilled"] = json!(true);
    let mut starting = run(&[("n1", 0, "0", 1)]);
    starting["started"] = json!(null);
    let lines = [line(run(&[("n1", 0, "0", 1)])), line(ahead), line(starting)];
    let report = Report { format: "Flags%30,AssocID".into(), no_header: true, ..Report::default() };
    let listed = |wanted: Wanted| {
        let text = sacct::list(lines.to_vec(), &wanted, &report, &clock()).expect("columns");
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let all = ["SchedMain,StartReceived 12", "SchedBackfill,StartReceived 12", "SchedMain 12"];
    assert_eq!(listed(Wanted::default()), all);
    let flags = |flags: &[JobFlag]| Wanted { flags: flags.iter().copied().collect(), ..Wanted::default() };
    assert_eq!(listed(flags(&[JobFlag::SchedBackfill])), [all[1]]);
    assert_eq!(listed(flags(&[JobFlag::SchedBackfill, JobFlag::StartReceived])), [all[0], all[1]]);
    assert_eq!(listed(flags(&[JobFlag::SchedSubmit])), [""; 0]);
    let of = |id| Wanted { associations: [id].into(), ..Wanted::default() };
    assert_eq!((listed(of(12)).len(), listed(of(13)).len()), (3, 0));
}
