//! The job that a submission describes.

use super::submissions::{refusal, request, settings_of, submit, submit_script, submit_with};
use muster_schemas::{
    job::{DependencyKind, Holds, Occasion, Program, Sink, WarningSignal},
    resources::{Count, Gpus, Level, LevelCount, Memory, NodeFilter, Per, Request, Sharing},
};
use muster_slurm::{
    attributes::{Attributes, component, job as job_wide},
    features,
    messages::{ExitStatuses, Refusal, Rejection},
    options::Command,
    request::{
        Program as JobProgram, Rules, ScriptSource, Submission, limits_until_deadline, lower, warnings, without_effect,
    },
};
use proptest::{collection::vec, prelude::*, sample};

fn nodes(min: u32, max: u32) -> Vec<LevelCount> {
    vec![LevelCount { level: Level::Node, count: Count::Range { min, max } }]
}

fn rejected(line: &str) -> Rejection {
    match refusal(line) {
        Refusal::Rejected(rejection) => rejection,
        other => panic!("{line}: {other:?}"),
    }
}

/// SL-C-12: sizes.
#[test]
fn sizing_options_become_a_request() {
    assert_eq!(*request(&submit(""), 0), Request::default());
    let job = submit("-N2-4 -n8 -c2 --ntasks-per-node=3 --mem=4g --exclusive -x n[1-2] -C gpu&fast");
    let asked = request(&job, 0);
    assert_eq!(asked.path, nodes(2, 4));
    assert_eq!((asked.tasks, asked.tasks_per_node, asked.cpus_per_task), (Some(8), Some(3), 2));
    assert_eq!(asked.memory, Some(Memory { bytes: 4 << 30, per: Per::Node }));
    assert_eq!(asked.sharing, Sharing::WholeNodes);
    assert_eq!(asked.excluded_nodes, ["n1", "n2"]);
    let both = vec![NodeFilter::Has("gpu".into()), NodeFilter::Has("fast".into())];
    assert_eq!(asked.filter, Some(NodeFilter::All(both)));
    assert_eq!(request(&submit("-N3"), 0).tasks, None, "one task for each node");
    assert_eq!(request(&submit("-N4 -n2"), 0).path, nodes(2, 2), "each node has a task");
    let told = |line: &str| warnings(Command::Sbatch, &super::submissions::settings(line)[0]);
    assert_eq!(told("-N4 -n2"), ["sbatch: Warning: can't run 2 processes on 4 nodes, setting nnodes to 2"]);
    assert!(told("-N2 -n2 -w n[1-2]").is_empty());
    assert_eq!(
        told("-N2 -w n[1-3]"),
        ["sbatch: error: Required nodelist includes more nodes than permitted by max-node count (3 > 2). \
             Eliminating nodes from the nodelist."]
    );
    assert_eq!(request(&submit("-N2 -w n[1-3]"), 0).nodes, ["n1", "n2"]);
    assert_eq!(request(&submit("-N3 --ntasks-per-node=2"), 0).tasks, Some(6));
    assert_eq!(request(&submit("--ntasks-per-node=5"), 0).path, nodes(1, 1), "those of one node");
    assert_eq!(request(&submit("-n4 --ntasks-per-node=2"), 0).path, []);
}

/// SL-C-12: `--use-min-nodes` tries the smaller number of nodes first.
#[test]
fn the_fewest_nodes_are_tried_first_where_that_is_asked_for() {
    let paths = |line: &str| {
        let job = submit(line);
        job.components[0].alternatives.iter().map(|way| way.requests[0].path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(paths("-N1-2 -n4 --use-min-nodes"), [nodes(1, 1), nodes(1, 2)]);
    assert_eq!(paths("-N1-2 -n4"), [nodes(1, 2)]);
    assert_eq!(paths("-N2 --use-min-nodes").len(), 1);
}

/// SL-S-10: memory per CPU counts within the component.
#[test]
fn memory_for_each_cpu_is_counted_by_core() {
    let job = submit("--cpus-per-task=4 --mem-per-cpu=16g --ntasks=1 : -n1");
    let asked = request(&job, 0);
    assert_eq!(asked.memory, Some(Memory { bytes: 16 << 30, per: Per::Core }));
    assert_eq!((asked.tasks, asked.cpus_per_task), (Some(1), 4));
    assert_eq!(request(&job, 1).memory, None);
}

/// SL-C-12: nodes by name; if there are fewer names than nodes, any others complete them.
#[test]
fn named_nodes_are_part_of_the_placement() {
    let job = submit("-w n[1-2]");
    assert_eq!((&request(&job, 0).path, request(&job, 0).nodes.len()), (&nodes(2, 2), 2));
    let job = submit("-w n1 -N3 -n6");
    let requests = &job.components[0].alternatives[0].requests;
    assert_eq!(requests.len(), 2);
    assert_eq!(
        (&requests[0].path, &requests[0].nodes, requests[0].tasks),
        (&nodes(1, 1), &vec!["n1".to_owned()], Some(2))
    );
    assert_eq!(
        (&requests[1].path, &requests[1].excluded_nodes, requests[1].tasks),
        (&nodes(2, 2), &vec!["n1".to_owned()], Some(4))
    );
    assert!(requests[1].nodes.is_empty());
    assert_eq!(rejected("-w n[1"), Rejection::NodeName);
}

/// SL-C-12: `[a|b]` and `a*2`.
#[test]
fn choices_and_counts_of_features_become_alternatives_and_requests() {
    let ways = submit("-N2 -C [a|b]").components[0].alternatives.clone();
    let filters: Vec<_> = ways.iter().map(|way| way.requests[0].filter.clone()).collect();
    assert_eq!(filters, [Some(NodeFilter::Has("a".into())), Some(NodeFilter::Has("b".into()))]);
    let job = submit("-N4 -n8 -C a*1&b*2");
    let requests = &job.components[0].alternatives[0].requests;
    let shape: Vec<_> =
        requests.iter().map(|request| (request.path.clone(), request.tasks, request.filter.clone())).collect();
    assert_eq!(
        shape,
        [
            (nodes(1, 1), Some(2), Some(NodeFilter::Has("a".into()))),
            (nodes(2, 2), Some(4), Some(NodeFilter::Has("b".into()))),
            (nodes(1, 1), Some(2), None),
        ]
    );
    // The parts have different nodes, so they are four nodes.
    assert!(job.components[0].alternatives[0].scatter && !submit("-N4 -C a").components[0].alternatives[0].scatter);
    assert_eq!(rejected("-C a&&b"), Rejection::Feature);
}

/// SL-C-12: GPUs in all forms.
/// `-B` and `--sockets-per-node` leave nodes with as many sockets.
#[test]
fn nodes_with_enough_sockets_can_be_asked_for() {
    let filter = |line: &str| request(&submit(line), 0).filter.clone();
    let two = Some(features::with_sockets(2));
    for line in ["-B 2", "-B 2:*:1", "-B 2-4:1", "--sockets-per-node=2", "-B 8 --sockets-per-node=2"] {
        assert_eq!(filter(line), two, "{line}");
    }
    assert_eq!((filter("-B *:2"), filter("-B 1")), (None, None));
    assert_eq!(
        filter("-B 2 -C fast"),
        Some(NodeFilter::All(vec![NodeFilter::Has("fast".into()), features::with_sockets(2)]))
    );
    for (line, option) in [
        ("-B 2:x", "extra-node-info"),
        ("-B 0", "extra-node-info"),
        ("-B 1:1:1:1", "extra-node-info"),
        ("--sockets-per-node=4-2", "sockets-per-node"),
    ] {
        assert_eq!(refusal(line), Refusal::BadValue(option), "{line}");
    }
}

/// Several options about GPUs say together how many nodes and tasks there are, or do not agree.
#[test]
fn options_about_gpus_agree_or_are_refused() {
    let sizes = |line: &str| {
        let job = submit(line);
        let request = request(&job, 0).clone();
        let nodes = request.path.first().map(|nodes| nodes.count);
        (request.gpus.map(|gpus| (gpus.count, gpus.per)), nodes, request.tasks, request.tasks_per_node)
    };
    let exactly = |count| Some(Count::Range { min: count, max: count });
    assert_eq!(sizes("--gpus=8 --gpus-per-node=4"), (Some((4, Per::Node)), exactly(2), None, None));
    assert_eq!(sizes("-N1-4 --gpus=8 --gpus-per-node=4").1, exactly(2));
    assert_eq!(sizes("--gpus=8 --gpus-per-task=2"), (Some((2, Per::Task)), None, Some(4), None));
    assert_eq!(
        sizes("-n8 --gpus-per-node=4 --gpus-per-task=1"),
        (Some((4, Per::Node)), None, Some(8), Some(4)),
        "each node has four tasks"
    );
    assert_eq!(sizes("--gpus=8 --gpus-per-node=4 --gpus-per-task=1 --ntasks-per-node=4").2, Some(8));
    for wrong in [
        "--gpus=2 --gpus-per-node=4",
        "--gpus=6 --gpus-per-node=4",
        "-N3 --gpus=8 --gpus-per-node=4",
        "-N3-4 --gpus=8 --gpus-per-node=4",
        "-n3 --gpus=8 --gpus-per-task=2",
        "--gpus-per-node=3 --gpus-per-task=2",
        "--ntasks-per-node=2 --gpus-per-node=4 --gpus-per-task=1",
        "--gpus-per-node=3 --gpus-per-socket=2",
    ] {
        assert_eq!(rejected(wrong), Rejection::Gres, "{wrong}");
    }
    for mixed in ["--gpus=2,v100:1", "--gres=gpu:a100:1,gpu:1", "--gpus=a100:1,v100:1 --gpus-per-task=1"] {
        assert_eq!(rejected(mixed), Rejection::GpuTypes, "{mixed}");
    }
    let lines = Refusal::Rejected(Rejection::GpuTypes).lines(Command::Sbatch);
    assert_eq!(
        lines,
        [
            "sbatch: error: Batch job submission failed: Invalid GRES specification (with and without type identification)",
        ]
    );
    for (line, what) in [
        ("--ntasks-per-gpu=2 --gpus-per-task=1", "--gpus-per-task"),
        ("--ntasks-per-gpu=2 --gpus-per-socket=1", "--gpus-per-socket"),
        ("--ntasks-per-gpu=2 --ntasks-per-node=4", "--ntasks-per-node"),
    ] {
        let told =
            format!("sbatch: fatal: {what} is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU");
        assert_eq!(refusal(line).lines(Command::Sbatch), [told], "{line}");
    }
}

/// GPUs of several types in one component: each type has a number of its own, and what follows for nodes and tasks agrees.
#[test]
fn a_component_asks_for_gpus_of_several_types() {
    let of = |line: &str| {
        let job = submit(line);
        let request = request(&job, 0).clone();
        let all: Vec<(String, u32, Per)> =
            request.all_gpus().map(|gpus| (gpus.model.clone().unwrap(), gpus.count, gpus.per)).collect();
        (all, request.tasks)
    };
    let typed =
        |counts: [(&str, u32, Per); 2]| counts.map(|(model, count, per)| (model.to_owned(), count, per)).to_vec();
    let on_each = typed([("a100", 1, Per::Node), ("v100", 2, Per::Node)]);
    assert_eq!(of("--gres=gpu:a100:1,gpu:v100:2").0, on_each);
    assert_eq!(of("--gpus-per-node=v100:2,a100:1").0, on_each);
    assert_eq!(of("--gpus=a100:1,v100:1").0, typed([("a100", 1, Per::Request), ("v100", 1, Per::Request)]));
    assert_eq!(
        of("--gpus=a100:4 --gpus-per-node=v100:2").0,
        typed([("a100", 4, Per::Request), ("v100", 2, Per::Node)])
    );
    let agreed = of("--gpus=a100:4,v100:8 --gpus-per-task=a100:1,v100:2");
    assert_eq!(agreed, (typed([("a100", 1, Per::Task), ("v100", 2, Per::Task)]), Some(4)));
    assert_eq!(rejected("--gpus=a100:4,v100:4 --gpus-per-task=a100:1,v100:2"), Rejection::Gres, "four tasks, or two");
}

#[test]
fn gpus_are_counted_by_what_they_are_asked_for() {
    let gpus = |line: &str| request(&submit(line), 0).gpus.clone().unwrap();
    assert_eq!(gpus("-G 4"), Gpus { count: 4, per: Per::Request, model: None });
    assert_eq!(gpus("--gpus-per-node=a100:2"), Gpus { count: 2, per: Per::Node, model: Some("a100".into()) });
    assert_eq!(gpus("--gpus-per-task=1"), Gpus { count: 1, per: Per::Task, model: None });
    assert_eq!(gpus("--gres=gpu:a100:2"), Gpus { count: 2, per: Per::Node, model: Some("a100".into()) });
    assert_eq!(gpus("--gres=gpu"), Gpus { count: 1, per: Per::Node, model: None });
    assert_eq!(request(&submit("--gres=none"), 0).gpus, None);
    assert_eq!(request(&submit("--gpus-per-task=2 --cpus-per-gpu=3"), 0).cpus_per_task, 6);
    assert_eq!(gpus("--gpus=a100:2,a100:1"), Gpus { count: 3, per: Per::Request, model: Some("a100".into()) });
    let shared = request(&submit("-n2 -G 1 --cpus-per-gpu=3"), 0).cpus_per_task;
    assert_eq!(shared, 2, "tasks share the CPUs of their GPUs, and none gets less than its part");
    assert_eq!(rejected("--gres=craynetwork:1"), Rejection::Gres);
}

/// SL-C-13.
#[test]
fn the_options_of_a_component_become_its_gates() {
    let job = submit(
        "-p p2,debug -A acc --qos high --priority=7 --begin=noon --deadline=2026-12-01 -H --reservation=r1,r2 -L ansys:2,matlab \
         --signal=B:USR1@30 --open-mode=append -t 1:30 --nice --comment=hi -D sub --container=../lab",
    );
    let first = &job.components[0];
    assert_eq!(
        (first.queue.as_deref(), first.account.as_deref(), first.class.as_deref()),
        (Some("p2"), Some("acc"), Some("high"))
    );
    assert_eq!(first.priority, Some(7));
    assert_eq!(first.begin.unwrap().to_string(), "2026-11-20T11:00:00.000000Z");
    assert_eq!(first.deadline.unwrap().to_string(), "2026-11-30T23:00:00.000000Z");
    assert_eq!(first.holds, Holds { user: true, ..Holds::default() });
    assert_eq!(first.reservation.as_deref(), Some("r1"));
    let way = &first.alternatives[0];
    assert_eq!(
        way.licences.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>(),
        [("ansys", 2), ("matlab", 1)]
    );
    assert_eq!(way.walltime_seconds, Some(120), "seconds round up to the minute");
    assert_eq!(first.launch.warning, Some(WarningSignal { signal: 10, seconds_before_end: 30 }));
    assert!(first.launch.append_output);
    assert_eq!(first.launch.container.as_deref(), Some("/home/ann/../lab"));
    assert_eq!(job.working_directory, "/home/ann/sub");
    let attributes = Attributes(&job.attributes);
    assert_eq!(attributes.component(0, component::NICE), Some("100"));
    assert_eq!(attributes.component(0, component::COMMENT), Some("hi"));
    assert_eq!(attributes.component(0, component::PARTITION), Some("p2,debug"));
    assert_eq!(attributes.component(0, component::RESERVATION), Some("r1,r2"));
}

/// SL-C-13: without `B:` only steps get the signal; a priority of 0 is a hold; a begin time in the past is ignored; 0
/// is no limit, which is the longest there is (SL-C-03).
#[test]
fn values_that_mean_nothing_or_something_else() {
    let job = submit("--signal=USR1 --priority=0 --begin=now -t 0 --mem=0");
    let first = &job.components[0];
    assert_eq!(first.launch.warning, None);
    assert_eq!(Attributes(&job.attributes).component(0, component::SIGNAL), Some("USR1"));
    assert!(first.holds.user && first.priority.is_none());
    assert_eq!(first.begin, None);
    assert_eq!(first.alternatives[0].walltime_seconds, Some(100 * 366 * 86_400));
    assert_eq!((request(&job, 0).memory, request(&job, 0).sharing), (None, Sharing::WholeNodes), "all of the node");
}

/// SL-C-12: `--mincpus`
#[test]
fn nodes_have_the_least_number_of_cpus() {
    let least = features::with_cpus(16);
    assert_eq!(request(&submit("--mincpus=16"), 0).filter, Some(least.clone()));
    let both = NodeFilter::All(vec![NodeFilter::Has("knl".into()), least]);
    assert_eq!(request(&submit("--mincpus=16 -C knl"), 0).filter, Some(both));
}

/// SL-C-12: `--tmp`, `--contiguous` and `--switches`, with the wait that the site allows.
#[test]
fn nodes_have_disk_follow_each_other_and_are_on_few_switches() {
    let disk = features::with_tmp_disk(2048);
    assert_eq!(request(&submit("--tmp=2G"), 0).filter, Some(disk.clone()));
    assert_eq!(request(&submit("--tmp=0"), 0).filter, None);
    let all = NodeFilter::All(vec![NodeFilter::Has("knl".into()), features::with_cpus(2), disk]);
    assert_eq!(request(&submit("--tmp=2G --mincpus=2 -C knl"), 0).filter, Some(all));
    let way = |line: &str| submit(line).components[0].alternatives[0].clone();
    assert!(way("--contiguous -N4").contiguous);
    assert!(!way("-N4").has_layout());
    let few = |line: &str| way(line).groups.map(|few| (few.property, few.most, few.wait_seconds));
    assert_eq!(few("--switches=2@1:00"), Some(("switch".into(), 2, 60)));
    assert_eq!(few("--switches=1"), Some(("switch".into(), 1, 300)), "as long as the site lets it wait");
    assert_eq!(few("--switches=1@1-0"), Some(("switch".into(), 1, 300)));
    assert_eq!(few("--switches=0"), None);
}

/// SL-C-12, SL-C-13, SL-C-19: options without effect are reported.
#[test]
fn options_without_effect_are_told() {
    let told = |line: &str| warnings(Command::Sbatch, &super::submissions::settings(line)[0]);
    assert_eq!(told("-k"), ["sbatch: warning: --no-kill is kept and shown, but has no effect here"]);
    assert!(told("--contiguous --tmp=1G --switches=1").is_empty());
    assert!(told("--kill-on-invalid-dep=yes --no-kill=off --mincpus=2").is_empty());
    for option in ["tres-bind=gres/gpu:none", "gpu-freq=low", "cpu-freq=low", "gres-flags=enforce-binding"] {
        let name = option.split('=').next().unwrap_or_default();
        let line = format!("sbatch: warning: --{name} is kept and shown, but has no effect here");
        assert_eq!(told(&format!("--{option}")), [line], "{option}");
    }
    for option in [
        "spread-job",
        "prefer=fast",
        "segment=2",
        "batch=fast",
        "reboot",
        "delay-boot=5",
        "core-spec=1",
        "thread-spec=1",
        "cluster-constraint=fast",
        "wait-all-nodes=0",
        "resv-ports",
    ] {
        let name = option.split('=').next().unwrap_or_default();
        let line = format!("sbatch: warning: --{name} is kept and shown, but has no effect here");
        assert_eq!(told(&format!("--{option}")), [line], "{option}");
    }
    assert!(told("--core-spec=0 --wait-all-nodes=1 --use-min-nodes").is_empty());
    let of_srun = |line: &str| {
        let given = settings_of(Command::Srun, line, "#!/bin/sh\n", &[]).unwrap();
        without_effect(Command::Srun, &given[0])
    };
    assert!(of_srun("--send-libs=no --compress=none").is_empty());
    for option in ["send-libs", "compress=lz4", "debugger-test"] {
        assert_eq!(of_srun(&format!("--{option}")).len(), 1, "{option}");
    }
    assert!(told("--gres-flags=disable-binding -B 2 --threads-per-core=1").is_empty());
    let verbose = "sbatch: warning: verbose of --gpu-bind is kept and shown, but has no effect here";
    assert_eq!(told("--gpu-bind=verbose,single:2"), [verbose]);
    let cores = "sbatch: warning: the number of cores in --extra-node-info is kept and shown, but has no effect here";
    assert_eq!(told("-B 2:4:1"), [cores]);
    assert!(submit("--kill-on-invalid-dep=yes").cancelled_if_never_met);
    assert!(!submit("--kill-on-invalid-dep=no").cancelled_if_never_met);
}

/// SL-C-13: a job belongs to its submitter.
#[test]
fn other_owners_are_refused() {
    for line in ["--uid=bob", "--uid=0", "--gid=wheel", "-n1 : --uid=root -n1"] {
        assert!(matches!(rejected(line), Rejection::Other(text) if text.contains("own user and group")), "{line}");
    }
    for line in ["--uid=ann", "--uid=1000", "--gid=staff --uid=ann", "--gid=50"] {
        submit(line);
    }
}

/// SL-C-12: `--nodefile`
#[test]
fn nodes_are_named_by_a_file() {
    let read = |path: &str| (path == "hosts").then(|| "n1 n2,\n# not n3\nn[4-5] # nor n6\nn1\n".to_owned());
    let line = |text: &str| super::submissions::parse(Command::Sbatch, text).with_files(read);
    let named = |text: &str| {
        let given = line(text).map(|line| line.groups[0].options.clone());
        given.map(|options| options.iter().map(|one| (one.option.name, one.text().to_owned())).collect::<Vec<_>>())
    };
    assert_eq!(named("-F hosts -n2"), Ok(vec![("nodelist", "n1,n2,n[4-5],n1".to_owned()), ("ntasks", "2".to_owned())]));
    assert_eq!(named("-F nowhere"), Err(Refusal::NodeFile));
    assert_eq!(Refusal::NodeFile.lines(Command::Sbatch), ["sbatch: error: Invalid --nodefile node file"]);
    assert_eq!(Refusal::NodeFile.exit_status(ExitStatuses::default()), 255);
}

/// SL-S-09: only the first component gets the script.
#[test]
fn only_the_first_component_runs_the_script() {
    let job = submit("-n1 : -n2 : -n3");
    assert!(matches!(&job.components[0].launch.program, Program::Script { args, .. } if args == &["arg"]));
    assert!(job.components[1..].iter().all(|component| component.launch.program == Program::None));
}

/// SL-S-02: each group has its own partition, account and QOS.
#[test]
fn each_component_has_its_own_gates() {
    let job = submit("-p a -A x -q q1 --begin=noon : -p b -A y -q q2 --begin=fika -H");
    let queues: Vec<_> = job.components.iter().map(|component| component.queue.as_deref()).collect();
    assert_eq!(queues, [Some("a"), Some("b")]);
    let [first, second] = &job.components[..] else { panic!() };
    assert!(first.account != second.account && first.class != second.class && first.begin != second.begin);
    assert!(!first.holds.user && second.holds.user);
}

/// EX-18, in the model: what component 1 has and what it lacks.
#[test]
fn the_worked_example_of_propagation_in_the_model() {
    let job = submit(
        "-H -A abc --comment=cmt -J nm -t 17 --mem=100 -p p2 -C gamma -n2 -c2 --nice=7 -x nid00002 -o oo.%j -m cyclic \
         --mail-type=ALL -L ansys --no-requeue : -n1 --wrap date",
    );
    let second = &job.components[1];
    let asked = request(&job, 1);
    let attributes = Attributes(&job.attributes);
    assert_eq!(second.account.as_deref(), Some("abc"));
    assert_eq!(attributes.component(1, component::COMMENT), Some("cmt"));
    assert_eq!((job.name.as_str(), attributes.component(1, component::JOB_NAME)), ("nm", None));
    assert_eq!(second.alternatives[0].walltime_seconds, Some(17 * 60));
    assert_eq!(asked.memory, Some(Memory { bytes: 100 << 20, per: Per::Node }));
    assert_eq!(attributes.component(1, component::NICE), Some("7"));
    assert_eq!(asked.excluded_nodes, ["nid00002"]);
    assert_eq!(second.launch.stdout.as_deref(), Some("oo.%J"));
    assert!(!job.requeue.on_node_lost);
    assert_eq!(attributes.component(1, component::NO_REQUEUE), Some("yes"));
    assert_eq!(attributes.component(1, component::DISTRIBUTION), Some("cyclic"));
    assert!(second.holds.user);
    assert_eq!((second.queue.as_deref(), asked.filter.as_ref()), (None, None));
    assert_eq!((asked.tasks, asked.cpus_per_task), (Some(1), 1));
    assert!(second.alternatives[0].licences.is_empty());
    assert_eq!(attributes.component(1, component::MAIL_TYPE), None);
}

/// SL-O-05, D-5: output given only for a later component is not the leader's.
#[test]
fn output_of_a_later_group_is_not_the_leaders() {
    let job = submit("-n1 : -n1 -o late.%j");
    assert_eq!(job.components[0].launch.stdout.as_deref(), Some("slurm-%j.out"));
    assert_eq!(job.components[1].launch.stdout.as_deref(), Some("late.%J"));
}

/// SL-M-06, SL-C-15: only the leader has mail.
#[test]
fn mail_is_for_the_leader_alone() {
    let job = submit("--mail-type=BEGIN,end --mail-user=bob : --mail-type=ALL --mail-user=eve");
    let [only] = &job.notifications[..] else { panic!("{:?}", job.notifications) };
    let to = |address: &str| Sink::Mail(address.into());
    assert_eq!((&only.on, &only.sink), (&vec![Occasion::Started, Occasion::Ended], &to("bob")));
    assert!(only.spares_cancelled);
    assert_eq!(submit("--mail-type=FAIL").notifications[0].sink, to("ann"));
    assert!(submit("--mail-type=NONE --mail-user=bob").notifications.is_empty());
    let [all] = &submit("--mail-type=ALL").notifications[..] else { panic!() };
    assert_eq!(all.on, [Occasion::Started, Occasion::Ended, Occasion::Failed, Occasion::Requeued]);
    let [rest] = &submit("--mail-type=TIME_LIMIT,ARRAY_TASKS").notifications[..] else { panic!() };
    assert_eq!(rest.on, [Occasion::WalltimeOver, Occasion::EachTask]);
}

/// SL-C-13: impossible times are refused; with `--time-min` a job takes the time that is left until its deadline.
#[test]
fn deadlines_limits_and_beginnings_fit_together() {
    assert_eq!(rejected("--deadline=2015-03-27T04:30:00 -t1"), Rejection::TimeLimit);
    assert_eq!(rejected("--deadline=now+1hour -t120"), Rejection::TimeLimit);
    assert_eq!(rejected("--deadline=now+1hour --time-min=120"), Rejection::TimeMin);
    assert_eq!(rejected("-t10 --time-min=20"), Rejection::TimeMin);
    assert_eq!(refusal("--begin=now+2hour --deadline=now+1hour"), Refusal::DeadlineBeforeBegin);
    let walltime = |line: &str| submit(line).components[0].alternatives[0].walltime_seconds;
    assert_eq!(walltime("--deadline=now+1hour --time-min=20 -t120"), Some(3600));
    assert_eq!(walltime("--deadline=now+1hour --time-min=20 -t30"), Some(1800));
    assert_eq!(walltime("--deadline=now+1hour --time-min=60 -t120"), Some(3600), "it just fits");
    assert_eq!(walltime("--deadline=now+1hour -t60"), Some(3600));
    assert_eq!(walltime("--time-min=60 -t60"), Some(3600));
    assert_eq!(walltime("--deadline=now+1hour"), None, "the partition says");
    let limits = |line: &str, room| limits_until_deadline(&super::submissions::settings(line)[0], room);
    assert_eq!(limits("--deadline=now+10minutes", 600), [599, 590, 540, 450, 300, 150, 60]);
    assert_eq!(limits("--time-min=5", 600), [599, 590, 540, 450, 300]);
    assert_eq!(limits("--time-min=20", 600), [600]);
}

/// SL-S-23: nodes that one component names are closed to the others.
#[test]
fn named_nodes_of_one_component_are_excluded_from_the_others() {
    let job = submit("-w n1 : -n1 -x n9 : -w n1,n2");
    assert_eq!(request(&job, 0).excluded_nodes, ["n2"]);
    assert_eq!(request(&job, 1).excluded_nodes, ["n9", "n1", "n2"]);
    assert_eq!(request(&job, 2).excluded_nodes, ["n9"]);
    let job = submit("-w n1 : -n1 : -w n3");
    let excluded = [0, 1, 2].map(|offset| request(&job, offset).excluded_nodes.join(","));
    assert_eq!(excluded, ["n3", "n1,n3", "n1"], "from those before it and those behind it");
}

/// SL-M-06, SL-O-09: mail options of a later component are dropped.
#[test]
fn mail_of_a_later_component_is_not_kept() {
    let job = submit("-n1 --mail-type=END --mail-user=ann : -n1 --mail-type=FAIL --mail-user=bob");
    let kept = |offset: usize| {
        [component::MAIL_TYPE, component::MAIL_USER].map(|name| Attributes(&job.attributes).component(offset, name))
    };
    assert_eq!([kept(0), kept(1)], [[Some("END"), Some("ann")], [None, None]]);
    assert_eq!(job.notifications.len(), 1);
}

/// SL-S-13: no array of heterogeneous jobs; none at all with salloc and srun.
#[test]
fn an_array_with_several_components_is_rejected() {
    assert_eq!(rejected("--array=1-2 : -n1"), Rejection::Array);
    assert_eq!(rejected("-n1 : --array=1-2"), Rejection::Array);
    for command in [Command::Salloc, Command::Srun] {
        let refused = submit_with(command, "--array=1-2 -n1 : -n1 x", "", &Rules::default()).unwrap_err();
        assert_eq!(refused, Refusal::Rejected(Rejection::Array));
        assert_eq!(refused.exit_status(ExitStatuses::default()), 1);
        assert!(refused.lines(command)[0].ends_with("Invalid job array specification"));
    }
}

/// SL-S-14, D-2.
#[test]
fn licences_are_for_the_leader_alone() {
    let refused = refusal("-n1 : -n1 : -L ansys:1");
    assert_eq!(
        refused.lines(Command::Sbatch),
        [
            "sbatch: error: 2: license request allowed only on leader job",
            "sbatch: error: Batch job submission failed: Invalid license specification",
        ]
    );
    assert_eq!(submit("-L ansys:2 : -n1").components[0].alternatives[0].licences["ansys"], 2);
    assert_eq!(rejected("-L ansys:x"), Rejection::Licence);
}

/// SL-S-17, SL-S-18, SL-L-08.
#[test]
fn what_only_plain_jobs_can_have() {
    let refused = |command: Command, line: &str| submit_with(command, line, "", &Rules::default()).unwrap_err();
    let no_allocate = refused(Command::Srun, "-Z -n1 : -n1 x");
    assert_eq!(
        (no_allocate.clone(), no_allocate.exit_status(ExitStatuses::default())),
        (Refusal::Rejected(Rejection::NoAllocate), 1)
    );
    for command in [Command::Salloc, Command::Srun] {
        let told = refused(command, "-n1 : -I x").lines(command);
        assert_eq!(told, [format!("{command}: error: Job submit/allocate failed: Job can not start immediately")]);
    }
    assert!(submit_with(Command::Srun, "-I -n1 x", "", &Rules::default()).is_ok());
}

/// SL-C-17.
#[test]
fn arrays_are_read_with_their_limit() {
    let array = |text: &str| submit(&format!("-a {text}")).array.unwrap();
    assert_eq!((array("1-5%2").indices.to_string(), array("1-5%2").max_running), ("1-5".to_owned(), Some(2)));
    assert_eq!(array("0,6,16-32").indices.len(), 19);
    assert_eq!(array("0-15:4").indices.iter().collect::<Vec<_>>(), [0, 4, 8, 12]);
    assert_eq!(array("1000").indices.first(), Some(1000));
    for wrong in ["5-1", "1001", "0-1001", "x", "1-", "1%x", "0-4000000000"] {
        assert_eq!(rejected(&format!("-a {wrong}")), Rejection::Array, "{wrong}");
    }
    assert_eq!(submit("-a 1-2").components[0].launch.stdout.as_deref(), Some("slurm-%A_%a.out"));
}

/// SL-C-19, SL-C-20.
#[test]
fn dependencies_are_kept_by_component() {
    let job = submit("-d afterok:49 : -n1 : -d singleton");
    let kinds: Vec<_> = job.components.iter().map(|component| component.dependencies.all_of[0][0].kind).collect();
    assert_eq!(kinds, [DependencyKind::Succeeded, DependencyKind::Succeeded, DependencyKind::Singleton]);
    assert_eq!(rejected("-d afterok:abc"), Rejection::Dependency);
    let staged = submit("-d afterburstbuffer:5");
    assert_eq!(Attributes(&staged.attributes).component(0, component::DEPENDENCY), Some("afterburstbuffer:5"));
}

/// SL-C-08, SL-C-21, SL-C-22: names when none is given.
#[test]
fn a_job_without_name_is_called_by_its_command() {
    assert_eq!(submit("").name, "job.sh");
    assert_eq!([ScriptSource::Wrapped, ScriptSource::StandardInput].map(name_from), ["wrap", "sbatch"]);
    let name = |command| submit_with(command, "-n1 x", "", &Rules::default()).unwrap().name;
    assert_eq!((name(Command::Salloc).as_str(), name(Command::Srun).as_str()), ("interactive", "hostname"));
    let named = submit("-J a : -J b : -J a");
    assert_eq!(named.name, "a");
    let attributes = Attributes(&named.attributes);
    let names = [0, 1, 2].map(|offset| attributes.component(offset, component::JOB_NAME));
    assert_eq!(names, [None, Some("b"), None]);
}

fn name_from(source: ScriptSource) -> String {
    let components = [super::submissions::settings("").remove(0)];
    let (caller, rules, now) = (super::submissions::caller(), Rules::default(), super::submissions::now());
    let program = JobProgram::Batch { text: "#!/bin/sh\n".to_owned(), args: Vec::new(), source };
    let submission = Submission { components: &components, program, caller: &caller, rules: &rules, now: &now };
    lower(&submission).unwrap().name
}

/// SL-E-13: what the job takes from the submitter.
#[test]
fn a_job_takes_over_the_submitters_surroundings() {
    let job = submit("");
    assert_eq!((job.umask, job.working_directory.as_str()), (Some(0o22), "/home/ann"));
    assert_eq!(job.environment.get("PATH").map(String::as_str), Some("/bin"));
    let attributes = Attributes(&job.attributes);
    assert_eq!(attributes.job(job_wide::KIND), Some("sbatch"));
    assert_eq!(attributes.job(job_wide::COMMAND), Some("/home/ann/job.sh arg"));
    assert_eq!(attributes.job(job_wide::SUBMIT_HOST), Some("login1"));
    assert!(submit("--export=NONE").environment.keys().all(|name| name.starts_with("SLURM_")));
}

/// SL-O-09: options without a place in the model are kept with their component.
#[test]
fn options_without_function_are_kept() {
    let job = submit("--network=ib --acctg-freq=30 --contiguous : -n1");
    let attributes = Attributes(&job.attributes);
    assert_eq!(attributes.component(0, component::NETWORK), Some("ib"));
    assert_eq!(attributes.component(0, component::CONTIGUOUS), Some("yes"));
    assert_eq!(attributes.component(1, component::NETWORK), None);
    assert_eq!(attributes.component(1, component::ACCTG_FREQ), Some("30"));
}

/// SL-C-13: `--requeue` and `--no-requeue`; otherwise the site decides.
#[test]
fn the_last_word_on_requeueing_counts() {
    let requeues = |line: &str| submit(line).requeue.on_node_lost;
    assert_eq!(
        ["", "--no-requeue", "--no-requeue --requeue", "--requeue --no-requeue"].map(requeues),
        [true, false, true, false]
    );
    let rules = Rules { requeue: false, ..Rules::default() };
    assert!(!submit_with(Command::Sbatch, "", "#!/bin/sh\n", &rules).unwrap().requeue.on_node_lost);
}

/// SL-S-11: one invalid component rejects the whole job.
#[test]
fn one_invalid_component_rejects_the_job() {
    assert!(submit_script("-n1 : -C )( : -n1", "#!/bin/sh\n").is_err());
}

/// The sizing options, each with valid values.
fn sizing_option() -> impl Strategy<Value = String> {
    prop_oneof![
        (1u32..9).prop_map(|n| format!("-N{n}")),
        (1u32..4, 0u32..4).prop_map(|(min, more)| format!("-N{min}-{}", min + more)),
        (1u32..99).prop_map(|n| format!("-n{n}")),
        (1u32..9).prop_map(|n| format!("--ntasks-per-node={n}")),
        (1u32..9).prop_map(|n| format!("-c{n}")),
        sample::select(vec!["-O", "--exclusive", "-w n[1-3]", "-x n9", "-C a*2&b", "-C [a|b]", "-G2", "--gres=gpu:1"])
            .prop_map(str::to_owned),
    ]
}

proptest! {
    /// SL-C-12: requests never lose a task, never have fewer nodes than asked for, and keep the limit per node.
    #[test]
    fn requests_have_all_tasks_and_nodes(options in vec(sizing_option(), 0..6)) {
        let line = options.join(" ");
        let job = submit(&line);
        let settings = &super::submissions::settings(&line)[0];
        let count = |name: &str| settings.value(name, |text| text.split('-').next()?.parse::<u32>().ok());
        for way in &job.components[0].alternatives {
            let least = |request: &Request| match request.path.first().map(|part| part.count) {
                Some(Count::Range { min, max }) => { assert!(min <= max); min }
                _ => 0,
            };
            let nodes: u32 = way.requests.iter().map(least).sum();
            let wanted = count("nodes").unwrap_or(0).min(count("ntasks").unwrap_or(u32::MAX));
            prop_assert!(nodes >= wanted);
            if let (Some(tasks), false) = (count("ntasks"), settings.is_set("overcommit")) {
                let asked: u32 = way.requests.iter().map(|request| request.tasks.unwrap()).sum();
                prop_assert!(asked >= tasks);
            }
        }
    }
}
