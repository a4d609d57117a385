//! The HPC Pack dialect across planner, ledger, executor and runner: scheduling modes, preparation of nodes, templates
//! and persistent filters.

use crate::{
    filters,
    hpcpack::{shown, submit, submitted},
    system::{Output, System},
};

/// A list of this many tasks, each of which runs until the file `go` exists.
fn waiting_tasks(system: &System, size: &str, tasks: u32) -> String {
    let line = "until [ -e go ]; do sleep 0.01; done";
    let sweep = format!("<Task Type='ParametricSweep' StartValue='1' EndValue='{tasks}' CommandLine='{line}'/>");
    system.write("tasks.xml", &format!("<Job {size}><Tasks>{sweep}</Tasks></Job>"));
    submit(system, &["/jobfile:tasks.xml"])
}

fn wait_for(system: &System, job: &str, field: &str, part: &str) {
    system.wait_until(&format!("{field} of job {job} has {part}"), || shown(system, job, field).contains(part));
}

/// HPC-S-12, HPC-S-13: tasks stopped because their job makes way run again, whichever report comes first.
#[test]
fn immediate_preemption_loses_no_task() {
    let system = System::start(2);
    system.ok(&["cluscfg", "setparams", "SchedulingMode=Queued", "PreemptionType=Immediate"]);
    for _ in 0..3 {
        let _ = std::fs::remove_file(system.path("go"));
        let low = waiting_tasks(&system, "MinCores='8' MaxCores='8' FailOnTaskFailure='true'", 10);
        wait_for(&system, &low, "Tasks", "8 Running");
        let high = submit(&system, &["/numcores:2", "/priority:Highest", "true"]);
        wait_for(&system, &high, "State", "Finished");
        system.write("go", "");
        wait_for(&system, &low, "State", "Fin");
        let told = ["State", "Tasks"].map(|field| shown(&system, &low, field));
        assert_eq!(told, ["Finished", "10 Finished"], "{}", system.ok(&["job", "events", &low]));
    }
}

/// HPC-S-06, HPC-S-08, HPC-S-14: a new job gets its minimum from what others have above theirs, although none of
/// their tasks ends.
#[test]
fn balanced_mode_makes_room_without_waiting_for_tasks_to_end() {
    let system = System::start(1);
    system.ok(&["cluscfg", "setparams", "SchedulingMode=Balanced", "ReBalancingInterval=1"]);
    let first = waiting_tasks(&system, "MinCores='1' MaxCores='4'", 8);
    wait_for(&system, &first, "Tasks", "4 Running");
    for priority in ["/priority:Lowest", "/priority:Highest"] {
        let other = submit(&system, &["/numcores:2", priority, "true"]);
        wait_for(&system, &other, "State", "Finished");
        assert_eq!(shown(&system, &first, "State"), "Running", "it keeps its least");
    }
    system.write("go", "");
    wait_for(&system, &first, "State", "Fin");
    assert_eq!(shown(&system, &first, "Tasks"), "8 Finished");
}

/// HPC-J-22: a node that cannot be prepared is free for others; the job is told and does not get it again.
#[test]
fn a_node_that_cannot_be_prepared_is_given_back() {
    let system = System::start(2);
    system.ok(&["cluscfg", "setparams", "SchedulingMode=Queued"]);
    let prep = "<Task Type='NodePrep' CommandLine='test $MUSTER_NODELIST != node1'/>";
    let sweep = "<Task Type='ParametricSweep' StartValue='1' EndValue='4' \
                 CommandLine='until [ -e go ]; do sleep 0.01; done; echo $MUSTER_NODELIST >> ran'/>";
    system.write(
        "prep.xml",
        &format!("<Job UnitType='Node' MinNodes='1' MaxNodes='2'><Tasks>{prep}{sweep}</Tasks></Job>"),
    );
    let job = submit(&system, &["/jobfile:prep.xml"]);
    wait_for(&system, &job, "Warning", "[NodePreparationFailed] node node1");
    wait_for(&system, &job, "Nodes", "node2");
    assert_eq!(shown(&system, &job, "Nodes"), "node2");
    let other = submit(&system, &["/numnodes:1", "/requestednodes:node1", "true"]);
    wait_for(&system, &other, "State", "Finished");
    let tasks = system.ok(&["job", "listtasks", &job]);
    let row = tasks.lines().find(|line| line.contains("NodePrep")).unwrap_or_default();
    assert!(row.contains("1 Failed"), "{tasks}");
    assert_eq!(shown(&system, &job, "Nodes"), "node2", "it does not grow onto it again");
    system.write("go", "");
    wait_for(&system, &job, "State", "Finished");
    assert_eq!(system.read("ran"), "node2\n".repeat(4));
}

/// HPC-J-16: a request for sockets is checked against the sockets of the cluster.
#[test]
fn a_job_for_more_sockets_than_there_are_is_refused() {
    let system = System::start(1);
    let nodes = system.json(&["nodes", "--json"]);
    let sockets = nodes["nodes"][0]["spec"]["sockets"].as_u64().expect("a node has sockets");
    assert!(sockets < 4, "the test needs fewer sockets than cores: {nodes}");
    let size = format!("/numsockets:{}", sockets + 1);
    let Output { status, stderr, .. } = system.run(&["job", "submit", &size, "true"]);
    assert!(status == 1 && stderr.contains("[ClusterTooSmall]") && stderr.contains("sockets"), "{stderr}");
    let fits = submit(&system, &[&format!("/numsockets:{sockets}"), "true"]);
    wait_for(&system, &fits, "State", "Finished");
}

/// HPC-F-18, HPC-T-07, HPC-T-08: a filter moves a job to another template, whose limits and permissions then apply.
#[test]
fn a_submission_filter_can_move_a_job_to_another_template() {
    let system = filters::system();
    for template in ["T1", "T2", "Closed", "Short"] {
        system.ok(&["jobtemplate", "new", template]);
    }
    system.ok(&["jobtemplate", "set", "T1", "RunTime", "/max:60"]);
    system.ok(&["jobtemplate", "set", "T2", "Priority", "/default:Highest"]);
    system.ok(&["jobtemplate", "set", "Short", "RunTime", "/max:60"]);
    system.ok(&["jobtemplate", "allow", "Closed", "/user:somebody-else", "/only"]);
    let text = "#!/bin/sh\nto=$(grep -o ' Name=\"[^\"]*\"' \"$1\" | head -1 | cut -d '\"' -f 2)\n\
                sed -i \"s/JobTemplate=\\\"[^\\\"]*\\\"/JobTemplate=\\\"$to\\\"/\" \"$1\"\nexit 1\n";
    let mover = filters::program(&system, "mover", text);
    system.ok(&["cluscfg", "setparams", &format!("SubmissionFilterProgram={mover}")]);
    let submit_to = |name: &str| {
        let name = format!("/jobname:{name}");
        system.run(&["job", "submit", "/jobtemplate:T1", &name, "true"])
    };
    let moved = submit_to("T2");
    assert_eq!(moved.status, 0, "{}", moved.stderr);
    let job = submitted(&moved.stdout);
    wait_for(&system, &job, "State", "Finished");
    let told = ["Job Template", "Priority"].map(|field| shown(&system, &job, field));
    assert_eq!(told, ["T2", "Highest"], "its limit of T1 does not count any more");
    for (name, code) in
        [("Closed", "[TemplateDenied]"), ("Short", "[TemplateValueTooLarge]"), ("Nosuch", "[TemplateNotFound]")]
    {
        let refused = submit_to(name);
        assert!(refused.status == 1 && refused.stderr.contains(code), "{name}: {}", refused.stderr);
    }
}

/// HPC-F-86, HPC-F-67: a second answer of a persistent filter is recorded, and does not become another job's answer.
#[test]
fn a_filter_that_answers_twice_fails_no_other_job() {
    const TWICE: &str = "#!/usr/bin/env python3\nimport json, sys\nfor line in sys.stdin:\n    \
                         call = json.loads(line)\n    if call['type'] == 'unload':\n        sys.exit(0)\n    \
                         first = {'id': call['id'], 'code': 0}\n    print(json.dumps(first), flush=True)\n    \
                         if call['type'] == 'call':\n        \
                         print(json.dumps({'id': call['id'], 'code': 9}), flush=True)\n";
    let system = filters::system();
    let twice = filters::program(&system, "twice", TWICE);
    system.ok(&["jobtemplate", "new", "T"]);
    let path = format!("/path:{twice}");
    system.ok(&["jobtemplate", "add-filter", "T", "twice", "/kind:submission", &path, "/mode:persistent"]);
    let jobs: Vec<String> = (0..3).map(|_| submit(&system, &["/jobtemplate:T", "true"])).collect();
    for job in &jobs {
        wait_for(&system, job, "State", "Fin");
        assert_eq!(shown(&system, job, "State"), "Finished", "{}", system.ok(&["job", "events", job]));
    }
    system.wait_until("the second answer for the first job is recorded", || {
        system.ok(&["job", "events", &jobs[0], "--json"]).contains("muster.filter.late_result")
    });
}

/// HPC-F-40, HPC-J-03: without filters no filter-runner is needed.
#[test]
fn a_cluster_without_filters_needs_no_filter_runner() {
    let mut system = System::stopped();
    let roles = ["executor", "gateway", "ledger", "planner", "--node", "solo"];
    system.launch("serve", &roles);
    system.wait_until("the gateway answers", || system.run(&["queues"]).status == 0);
    system.write("muster.toml", "[[nodes]]\nname = \"solo\"\ncores = 1\nmemory = \"1G\"\n");
    system.ok(&["config", "apply", "muster.toml"]);
    system.await_ready();
    system.ok(&["jobtemplate", "new", "Short"]);
    system.ok(&["jobtemplate", "set", "Short", "RunTime", "/max:60", "/default:1"]);
    let job = submit(&system, &["/nowait", "/jobtemplate:Short", "true"]);
    wait_for(&system, &job, "State", "Finished");
    assert_eq!(shown(&system, &job, "Run Time"), "1", "it was checked with its template");
    let refused = system.run(&["job", "submit", "/jobtemplate:Short", "/runtime:2:0", "true"]);
    assert!(refused.status == 1 && refused.stderr.contains("[TemplateValueTooLarge]"), "{}", refused.stderr);
}
