use super::*;

fn script(lines: &str) -> Script {
    Script::parse("job.sh", format!("#!/bin/sh\n{lines}\ntrue\n").into_bytes()).unwrap()
}

fn options(lines: &str) -> JobOptions {
    JobOptions::from_script(&script(lines)).unwrap()
}

fn refusal(lines: &str) -> String {
    JobOptions::from_script(&script(lines)).unwrap_err().message
}

fn spec(options: JobOptions) -> JobSpec {
    let caller = Caller {
        directory: "/home/anna".into(),
        environment: vec![
            ("PATH".into(), "/bin".into()),
            ("X".into(), "1".into()),
            ("MUSTER_TOKEN".into(), "s".into()),
        ],
        umask: 0o022,
        instance: vec![("MUSTER_DATA", "/data".into())],
    };
    options.into_spec(Program::Tasks { argv: vec!["true".into()] }, "true", &caller)
}

#[test]
fn every_option_of_a_script_reaches_the_job() {
    let spec = spec(options(
        "#MUSTER -N 2-4 -n 8 --ntasks-per-node 4 -c 2 --mem 4G --gpus a100:2 -t 1:30:00\n\
         #MUSTER -q long -A chem --array 0-9%2 --after ok:7 --after ended:8 --hold --priority -5 --name 'a b'\n\
         #MUSTER -o out.%j -e err.%j -i in --append --env A=b --mail me@x --notify 'exec:echo hi' --notify-on ended,failed\n\
         #MUSTER --warn USR1@90 --checkpoint USR2 --requeue --requeue-on-exit 3,4 --max-runs 5 -L matlab:2\n\
         #MUSTER -C 'gpu & !old' -w node[1-2] -x node9 --exclusive --comment 'why not' -D sub --kill-grace 5 --container /lab",
    ));
    let component = &spec.components[0];
    let request = &component.alternatives[0].requests[0];
    assert_eq!(request.path, [LevelCount { level: Level::Node, count: Count::Range { min: 2, max: 4 } }]);
    assert_eq!((request.tasks, request.tasks_per_node, request.cpus_per_task), (Some(8), Some(4), 2));
    assert_eq!(request.memory, Some(Memory { bytes: 4 << 30, per: Per::Node }));
    assert_eq!(request.gpus, Some(Gpus { count: 2, per: Per::Request, model: Some("a100".into()) }));
    assert_eq!(request.nodes, ["node1", "node2"]);
    assert_eq!(request.excluded_nodes, ["node9"]);
    assert_eq!(request.sharing, Sharing::Exclusive);
    assert!(request.filter.is_some());
    assert_eq!(component.alternatives[0].walltime_seconds, Some(5400));
    assert_eq!(component.alternatives[0].licences, [("matlab".to_owned(), 2)].into());
    assert_eq!((component.queue.as_deref(), component.account.as_deref()), (Some("long"), Some("chem")));
    assert_eq!(component.priority, Some(-5));
    assert_eq!(component.dependencies.all_of.len(), 2);
    assert!(component.holds.user);
    assert_eq!(component.launch.stdout.as_deref(), Some("out.%j"));
    assert_eq!(component.launch.stderr.as_deref(), Some("err.%j"));
    assert_eq!(component.launch.stdin.as_deref(), Some("in"));
    assert!(component.launch.append_output);
    assert_eq!(component.launch.warning, Some(WarningSignal { signal: 10, seconds_before_end: 90 }));
    assert_eq!(component.launch.kill_grace_seconds, Some(5));
    assert_eq!(component.launch.container.as_deref(), Some("/lab"));
    assert_eq!(spec.name, "a b");
    assert_eq!(spec.array.unwrap().max_running, Some(2));
    assert_eq!(spec.working_directory, "/home/anna/sub");
    assert_eq!(
        spec.environment,
        [("PATH", "/bin"), ("X", "1"), ("A", "b"), ("MUSTER_DATA", "/data")].map(|(n, v)| (n.into(), v.into())).into()
    );
    assert_eq!(spec.notifications.len(), 2);
    assert_eq!(spec.notifications[0].on, [Occasion::Ended, Occasion::Failed]);
    assert_eq!(spec.notifications[1].sink, Sink::Exec("echo hi".into()));
    assert_eq!(spec.checkpoint, Some(Checkpoint { signal: 12, seconds_before_end: 60 }));
    assert_eq!(
        spec.requeue,
        RequeuePolicy { on_node_lost: true, on_exit_codes: vec![3, 4], max_runs: 5, ..RequeuePolicy::default() }
    );
    assert_eq!(spec.attributes["muster.comment"], "why not");
    assert_eq!(spec.umask, Some(0o022));
}

#[test]
fn without_options_the_job_is_plain() {
    let spec = spec(JobOptions::default());
    assert_eq!(
        spec.components[0].alternatives,
        [Alternative { requests: vec![Request::default()], ..Alternative::default() }]
    );
    assert_eq!((spec.name.as_str(), spec.working_directory.as_str()), ("true", "/home/anna"));
    assert!(spec.components[0].holds.is_empty() && spec.array.is_none() && spec.notifications.is_empty());
}

#[test]
fn the_command_line_beats_the_script() {
    let over = options("#MUSTER -N 3 --env A=2 --mem-per-cpu 1G")
        .over(options("#MUSTER -N 2 -n 7 --env A=1 --env B=1 --mem 4G"));
    let spec = spec(over);
    let request = &spec.components[0].alternatives[0].requests[0];
    assert_eq!(request.path[0].count, Count::exactly(3));
    assert_eq!(request.tasks, Some(7));
    assert_eq!(request.memory, Some(Memory { bytes: 1 << 30, per: Per::Core }));
    assert_eq!((spec.environment["A"].as_str(), spec.environment["B"].as_str()), ("2", "1"));
}

#[test]
fn a_clean_environment_has_the_basics_and_what_is_named() {
    let spec = spec(options("#MUSTER --clean-env --env X --env NOT_SET"));
    assert_eq!(spec.environment.into_keys().collect::<Vec<_>>(), ["MUSTER_DATA", "PATH", "X"]);
}

#[test]
fn errors_name_line_column_and_token() {
    for (lines, expected) in [
        (
            "#MUSTER -N 2\n#MUSTER --nodse 2",
            "job.sh:3:9: unknown option `--nodse` in #MUSTER line; did you mean `--nodes`?",
        ),
        ("#MUSTER -n 2 --time soon", "job.sh:2:21: invalid value `soon` for `--time`: `soon` is not a time"),
        ("#MUSTER --mem=12", "job.sh:2:9: invalid value `12` for `--mem`: `12` has no unit"),
        ("#MUSTER --nodes", "job.sh:2:9: `--nodes` needs a value"),
        ("#MUSTER hostname", "job.sh:2:9: `hostname` is not an option"),
        ("#MUSTER --mem 1G --mem-per-cpu 1G", "job.sh:2:9: the argument '--mem <SIZE>' cannot be used with"),
        ("#MUSTER --array 0-9%0", "job.sh:2:17: invalid value `0-9%0` for `--array`: it must be at least 1"),
        ("#MUSTER --nodes 1099511627776", "job.sh:2:17: invalid value"),
    ] {
        let message = refusal(lines);
        assert!(message.starts_with(expected), "{message}");
    }
}

/// OAR-T-10, OAR-T-17: a job opens a planning domain, with or without a name, or runs in one.
#[test]
fn planning_domains_are_named_or_numbered() {
    use muster_schemas::JobId;
    let types = |line: &str| spec(options(line)).types;
    assert_eq!(types("#MUSTER --opens-domain"), [JobType::Container]);
    assert_eq!(types("#MUSTER --opens-domain=course"), [JobType::OpensDomain("course".into())]);
    assert_eq!(types("#MUSTER --in-domain 42"), [JobType::Inner(JobId::job(42))]);
    let nested = types("#MUSTER --opens-domain --in-domain=course");
    assert_eq!(nested, [JobType::Container, JobType::InDomain("course".into())]);
    assert_eq!(types("#MUSTER -N 2"), []);
}
