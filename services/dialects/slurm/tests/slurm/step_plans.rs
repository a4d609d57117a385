//! Whole steps, as `srun` inside an allocation plans them.

use super::submissions::{now, parse};
use muster_schemas::{
    binding::{Binding, CoreBinding, MemoryBinding, MemoryDomains, SocketOrder},
    resources::{Gpus, Per},
    steps::GpuBinding,
};
use muster_slurm::{
    environment::{ComponentFacts, JobFacts, defaults, of_allocation, of_batch_script, of_task},
    messages::ExitStatuses,
    options::Command,
    select::SchedulerParameters,
    steps::{Launcher, StepPlan, Streams, binding, binding_variables, label, launch_lines, plan},
};
use proptest::{collection::vec, prelude::*, sample};

/// A component with these CPUs on its nodes, the first of which has this number.
fn component(number: u64, first_node: usize, cpus: &[u64]) -> ComponentFacts {
    ComponentFacts {
        number,
        nodes: (0..cpus.len()).map(|node| format!("nid{:05}", first_node + node)).collect(),
        cpus: cpus.to_vec(),
        tasks: cpus.to_vec(),
        ..ComponentFacts::default()
    }
}

fn job(components: Vec<ComponentFacts>) -> JobFacts {
    JobFacts { components, ..JobFacts::default() }
}

/// The step of `srun LINE`, run by the command of the allocation.
fn planned(job: &JobFacts, line: &str) -> Result<StepPlan, Vec<String>> {
    let variables = of_allocation(job);
    let several = job.components.len() > 1;
    let environment =
        |component: u32| defaults(Command::Srun, several.then_some(component), |name| variables.get(name).cloned());
    plan(job, &parse(Command::Srun, line), environment, SchedulerParameters::default(), &now()).map_err(|error| {
        assert_eq!(error.exit_status(ExitStatuses::default()), 1);
        assert_eq!(error.exit_status(ExitStatuses { error: Some(9), immediate: None }), 9);
        error.lines()
    })
}

/// The output of `srun -l LINE printenv SLURMD_NODENAME | sort -n`.
fn printed(job: &JobFacts, line: &str) -> Vec<String> {
    let step = planned(job, line).unwrap();
    let facts = step.facts(job, 0);
    let tasks = step.world.tasks.len() as u32;
    (0..tasks).map(|rank| format!("{}{}", label(rank, tasks), of_task(&facts, rank)["SLURMD_NODENAME"])).collect()
}

/// What the options and variables of `srun` bind the tasks of a step to.
#[test]
fn options_and_the_variables_of_the_job_bind_tasks() {
    let job = job(vec![component(1, 1, &[4])]);
    let bound = |line: &str| binding(&planned(&job, line).unwrap().parts[0].settings);
    assert_eq!(bound("-n2 x"), None);
    assert_eq!(bound("-n2 --distribution=block x"), None, "the nodes alone bind nothing");
    let own = Binding { cores: Some(CoreBinding::Own), ..Binding::default() };
    assert_eq!(bound("--cpu-bind=cores x"), Some(own.clone()));
    assert_eq!(bound("--cpu-bind=v x"), Some(Binding { tells_cores: true, ..Binding::default() }));
    let cyclic = Binding { sockets: Some(SocketOrder::Cyclic), ..Binding::default() };
    assert_eq!(bound("-m block:cyclic x"), Some(cyclic));
    let one_thread = Binding { one_thread: true, ..own.clone() };
    for line in ["--hint=nomultithread x", "--hint=compute_bound x", "--ntasks-per-core=1 x", "--threads-per-core=1 x"]
    {
        assert_eq!(bound(line), Some(one_thread.clone()), "{line}");
    }
    let one_each = Binding { sockets: Some(SocketOrder::Cyclic), tasks_per_socket: Some(1), ..one_thread.clone() };
    assert_eq!(bound("--hint=memory_bound x"), Some(one_each));
    assert_eq!(bound("--hint=multithread x"), None);
    let loose = Binding { cores: Some(CoreBinding::All), one_thread: true, ..Binding::default() };
    assert_eq!(bound("--hint=nomultithread --cpu-bind=none x"), Some(loose), "what is said outright counts");
    assert_eq!(bound("--ntasks-per-socket=2 x").and_then(|bound| bound.tasks_per_socket), Some(2));
    let local = MemoryBinding { domains: MemoryDomains::Local, is_preference: true };
    let told = Binding { memory: Some(local), tells_memory: true, ..Binding::default() };
    assert_eq!(bound("--mem-bind=v,prefer,local x"), Some(told));

    let hinted = self::job(vec![ComponentFacts {
        binding: vec![("SLURM_HINT", "nomultithread".to_owned()), ("SLURM_NTASKS_PER_SOCKET", "3".to_owned())],
        ..component(1, 1, &[4])
    }]);
    let of_job = planned(&hinted, "x").unwrap();
    let expected = Binding { tasks_per_socket: Some(3), ..one_thread };
    assert_eq!(binding(&of_job.parts[0].settings), Some(expected), "as sbatch was told");
}

/// The tasks of a step see what was asked for.
#[test]
fn tasks_know_how_they_are_bound() {
    let job = job(vec![component(1, 1, &[4])]);
    let variables = |line: &str| {
        let known = binding_variables(&planned(&job, line).unwrap().parts[0].settings);
        known.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(variables("-n1 x"), [""; 0]);
    assert_eq!(
        variables("--cpu-bind=v,map_cpu:0,1 --mem-bind=prefer,local --hint=multithread x"),
        [
            "SLURM_CPU_BIND=v,map_cpu:0,1",
            "SLURM_CPU_BIND_VERBOSE=verbose",
            "SLURM_CPU_BIND_TYPE=map_cpu:",
            "SLURM_CPU_BIND_LIST=0,1",
            "SLURM_MEM_BIND=prefer,local",
            "SLURM_MEM_BIND_VERBOSE=quiet",
            "SLURM_MEM_BIND_TYPE=local",
            "SLURM_MEM_BIND_LIST=",
            "SLURM_MEM_BIND_PREFER=prefer",
            "SLURM_HINT=multithread",
        ]
    );
}

/// EX-03: cyclic and block in each component.
#[test]
fn tasks_are_dealt_out_in_each_component() {
    let asked = |distribution: Option<&str>, component: ComponentFacts| ComponentFacts {
        asked_tasks: Some(4),
        tasks_per_node: Some(2),
        distribution: distribution.map(str::to_owned),
        ..component
    };
    let job =
        job(vec![asked(Some("cyclic"), component(1, 1, &[2, 2])), asked(Some("cyclic"), component(2, 3, &[2, 2]))]);
    assert_eq!(
        printed(&job, "-l --het-group=0,1 printenv"),
        [
            "0: nid00001",
            "1: nid00002",
            "2: nid00001",
            "3: nid00002",
            "4: nid00003",
            "5: nid00004",
            "6: nid00003",
            "7: nid00004"
        ]
    );
    assert_eq!(
        printed(&job, "-l -m block --het-group=0,1 printenv"),
        [
            "0: nid00001",
            "1: nid00001",
            "2: nid00002",
            "3: nid00002",
            "4: nid00003",
            "5: nid00003",
            "6: nid00004",
            "7: nid00004"
        ]
    );
    let uneven = self::job(vec![ComponentFacts { asked_tasks: Some(4), ..component(1, 1, &[3, 1]) }]);
    assert_eq!(printed(&uneven, "-m cyclic x"), ["0: nid00001", "1: nid00002", "2: nid00001", "3: nid00001"]);
}

/// SL-O-04: a distribution given once applies to the later groups, in each component separately.
#[test]
fn a_distribution_given_once_holds_in_each_component() {
    let job = job(vec![component(1, 1, &[2, 2]), component(2, 3, &[2, 2])]);
    assert_eq!(
        printed(&job, "-m cyclic -n3 : -n2 x"),
        ["0: nid00001", "1: nid00002", "2: nid00001", "3: nid00003", "4: nid00004"]
    );
}

/// EX-10: the default is the tasks of the components; no component beyond the last.
#[test]
fn the_default_size_is_the_components() {
    let asked = |tasks, component| ComponentFacts { asked_tasks: Some(tasks), ..component };
    let job = job(vec![asked(1, component(1, 1, &[1])), asked(2, component(2, 8, &[1, 1]))]);
    assert_eq!(printed(&job, "--het-group=0,1 x"), ["0: nid00001", "1: nid00008", "2: nid00009"]);
    assert_eq!(
        planned(&job, "hostname : date : id").unwrap_err(),
        [
            "srun: error: Attempt to run a job step with het group value of 2, but the job allocation has maximum value of 1"
        ]
    );
}

/// EX-16: a group without program, and one world.
#[test]
fn groups_with_and_without_programs() {
    let job = job(vec![component(1, 12, &[4]), component(2, 13, &[4])]);
    assert_eq!(
        printed(&job, "--label -n2 : -n1 printenv SLURMD_NODENAME"),
        ["0: nid00012", "1: nid00012", "2: nid00013"]
    );
    let step = planned(&job, "-t1 -l -n1 echo one : -n2 echo two").unwrap();
    let words: Vec<&str> = step.world.tasks.iter().map(|task| step.parts[task.part].part.words[1].as_str()).collect();
    assert_eq!(words, ["one", "two", "two"]);
}

/// EX-17: a heterogeneous step in a plain job.
#[test]
fn groups_in_a_plain_job_have_nodes_of_their_own() {
    let job = job(vec![ComponentFacts { asked_tasks: Some(8), ..component(1, 1, &[4, 4]) }]);
    let line = "-l -N1 -n2 printenv SLURMD_NODENAME : -N1 -n1 printenv SLURMD_NODENAME";
    assert_eq!(printed(&job, line), ["0: nid00001", "1: nid00001", "2: nid00002"]);
    let seeds = printed(&job, "-N1 -n4 --gpus=4 x : -N1 -n1 --gpus=6 y");
    assert_eq!(seeds.iter().filter(|line| line.ends_with("nid00001")).count(), 4);
    assert_eq!(seeds[4], "4: nid00002");
    assert_eq!(printed(&job, "a : b"), ["0: nid00001", "1: nid00002"], "one task on a node of its own for each group");
    assert_eq!(printed(&job, "-n2 a : b"), ["0: nid00001", "1: nid00001", "2: nid00002"]);
    let step = planned(&job, "-N1 -n3 a : -N1 -n1 b").unwrap();
    assert_eq!(
        launch_lines(7, 0, &step.world),
        [
            "srun: launching StepId=7.0 on host nid00001, 3 tasks: [0-2]",
            "srun: launching StepId=7.0 on host nid00002, 1 tasks: 3"
        ]
    );
    let overlap = planned(&job, "-N1 -w nid00001 a : -N1 -w nid00001 b").unwrap_err();
    assert!(overlap[0].contains("overlaps with excluded nid00001"));
}

/// SL-R-22, SL-R-21: sizes that do not fit, nodes by name.
#[test]
fn sizes_and_nodes_are_checked_against_the_allocation() {
    let job = job(vec![component(9, 1, &[2, 2])]);
    assert_eq!(
        planned(&job, "-n5 x").unwrap_err(),
        ["srun: error: Unable to create step for job 9: More processors requested than permitted"]
    );
    assert_eq!(planned(&job, "-N3 x").unwrap_err(), ["srun: error: Only allocated 2 nodes asked for 3"]);
    assert_eq!(
        planned(&job, "-w nid00009 x").unwrap_err(),
        ["srun: error: Unable to create step for job 9: Requested node configuration is not available"]
    );
    assert_eq!(
        planned(&job, "-c3 -n1 x").unwrap_err(),
        ["srun: error: Unable to create step for job 9: More processors requested than permitted"]
    );
    let one = planned(&job, "-N2 -n1 x").unwrap();
    assert_eq!(one.warnings, ["srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1"]);
    assert_eq!(one.parts[0].nodes, ["nid00001"]);
    assert_eq!(printed(&job, "-n5 -O x").len(), 5);
    assert_eq!(printed(&job, "-N1 -r1 -n2 x"), ["0: nid00002", "1: nid00002"]);
    assert_eq!(
        printed(&job, "-m arbitrary -w nid00002,nid00001,nid00002 -N2 -n3 x"),
        ["0: nid00002", "1: nid00001", "2: nid00002"]
    );
    assert_eq!(printed(&job, "-x nid00001 -n1 x"), ["0: nid00002"]);
    assert_eq!(printed(&job, "-r1 -n1 x"), ["0: nid00002"]);
    let refused = |line: &str| planned(&job, line).unwrap_err();
    assert_eq!(refused("-N2 -x nid00001 x"), ["srun: error: Only allocated 1 nodes asked for 2"]);
    assert_eq!(refused("-r9 x"), ["srun: error: Only allocated 0 nodes asked for 1"]);
    assert_eq!(refused("-m arbitrary x"), ["srun: error: no hostlist given for arbitrary dist"]);
    assert_eq!(
        refused("-m arbitrary -w nid00002,nid00001 -n5 x"),
        ["srun: error: Asked for 5 tasks have 2 in the nodelist. Check your nodelist, or set the -n option to be 2"]
    );
    let beyond = ["srun: error: Unable to create step for job 9: More processors requested than permitted"];
    assert_eq!(refused("-n 4000000000 -O x"), beyond, "they are not laid out first");
    let wrong = plan(&job, &parse(Command::Srun, "--time=x a"), |_| Vec::new(), SchedulerParameters::default(), &now())
        .unwrap_err();
    assert_eq!(wrong.lines(), ["srun: error: Invalid --time specification"]);
    assert_eq!(wrong.exit_status(ExitStatuses::default()), 255);
}

/// SL-R-13: a component's own options are the defaults of its steps; a step's own options take precedence.
#[test]
fn defaults_that_do_not_fit_give_way() {
    let asked = ComponentFacts {
        name: "job".into(),
        asked_tasks: Some(4),
        tasks_per_node: Some(2),
        megabytes_per_node: Some(100),
        ..component(1, 1, &[4, 4])
    };
    let by_cpu = ComponentFacts { megabytes_per_cpu: Some(5), ..component(2, 3, &[4]) };
    let step = planned(&job(vec![asked.clone()]), "-N1 -n4 x").unwrap();
    assert_eq!(step.warnings.len(), 1);
    assert!(step.warnings[0].contains("can't honor --ntasks-per-node set to 2"), "{}", step.warnings[0]);
    assert_eq!(step.world.tasks.len(), 4);
    assert_eq!(step.parts[0].settings.text("job-name"), None, "a step does not have the name of its job");
    let job = job(vec![asked, by_cpu]);
    let variables = of_batch_script(&job);
    let environment = |component: u32| defaults(Command::Srun, Some(component), |name| variables.get(name).cloned());
    let step =
        plan(&job, &parse(Command::Srun, "--het-group=0,1 x"), environment, SchedulerParameters::default(), &now())
            .unwrap();
    let memory = |part: usize| ["mem", "mem-per-cpu"].map(|name| step.parts[part].settings.text(name));
    assert_eq!([memory(0), memory(1)], [[Some("100"), None], [None, Some("5")]]);
}

/// Options of a step.
fn option() -> impl Strategy<Value = String> {
    let sized = prop_oneof![
        (1u32..12).prop_map(|n| format!("-n{n}")),
        (1u32..5).prop_map(|n| format!("-N{n}")),
        (1u32..4).prop_map(|n| format!("-c{n}")),
        (1u32..4).prop_map(|n| format!("--ntasks-per-node={n}")),
        (0u32..4).prop_map(|n| format!("--het-group={n}")),
    ];
    let others =
        sample::select(vec!["-O", "-l", "-m cyclic", "-m plane=2", ":", "prog", "-w nid00001", "-x nid00002", "-r1"]);
    prop_oneof![sized, others.prop_map(str::to_owned)]
}

proptest! {
    /// SL-R-09, SL-R-12: whatever the options, a planned step runs each task on a node of its part, and never more
    /// tasks on a node than it has CPUs for unless overcommitted.
    #[test]
    fn planned_tasks_are_on_nodes_of_their_part(
        options in vec(option(), 0..8),
        cpus in vec(vec(1u64..5, 1..4), 1..4),
    ) {
        let mut first = 1;
        let components = cpus.iter().enumerate().map(|(offset, cpus)| {
            first += cpus.len();
            component(100 + offset as u64, first - cpus.len(), cpus)
        });
        let job = job(components.collect());
        let line = format!("{} last", options.join(" "));
        let command_line = parse(Command::Srun, &line);
        let Ok(step) = plan(&job, &command_line, |_| Vec::new(), SchedulerParameters::default(), &now()) else { return Ok(()) };
        let facts = step.facts(&job, 1);
        for task in &step.world.tasks {
            let part = &step.parts[task.part];
            let node = &step.world.nodes[task.node];
            prop_assert!(part.nodes.contains(node));
            prop_assert!(job.components[part.part.component as usize].nodes.contains(node));
            prop_assert_eq!(&of_task(&facts, task.rank)["SLURM_PROCID"], &task.rank.to_string());
        }
        for (part, planned) in step.parts.iter().enumerate().filter(|(_, planned)| !planned.settings.is_set("overcommit")) {
            for (node, cpus) in planned.nodes.iter().zip(&planned.cpus) {
                let here = step.world.tasks.iter().filter(|task| task.part == part && step.world.nodes[task.node] == *node);
                let arbitrary = planned.settings.text("distribution") == Some("arbitrary");
                prop_assert!(arbitrary || here.count() as u64 <= *cpus);
            }
        }
    }
}

/// SL-W-07: the daemons of launchers share the job with everything else; programs do so if they say so.
#[test]
fn daemons_of_launchers_overlap_other_steps() {
    let job = job(vec![component(1, 1, &[4, 4])]);
    let overlaps = |line: &str| {
        let step = planned(&job, line).unwrap();
        step.spec(&job, &Launcher::default(), &Streams::default(), None).overlaps
    };
    for daemon in ["orted -mca a b", "/opt/mpi/bin/prted", "/usr/bin/hydra_pmi_proxy --id 1", "hydra_bstrap_proxy"] {
        assert!(overlaps(&format!("-N1 -n1 {daemon}")), "{daemon}");
    }
    for program in ["./solver", "orted/solver", "env orted", "my-orted"] {
        assert!(!overlaps(&format!("-N1 -n1 {program}")), "{program}");
    }
    assert!(overlaps("--overlap -N1 -n1 ./solver"));
}

/// The GPUs that the steps of `srun LINE` ask for, with the variables of a job that asked with these options.
fn gpus_of(line: &str, variables: &[(&'static str, &str)]) -> (Option<Gpus>, Option<GpuBinding>) {
    let gpus = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let job = job(vec![ComponentFacts { gpus, ..component(1, 1, &[4, 4]) }]);
    let step = planned(&job, line).unwrap();
    let spec = step.spec(&job, &Launcher::default(), &Streams::default(), None);
    (spec.groups[0].gpus.clone(), spec.groups[0].gpu_binding.clone())
}

/// A step has GPUs of several types beside each other; its tasks see all of them.
#[test]
fn a_step_asks_for_gpus_of_several_types() {
    let of = |line: &str| {
        let job = job(vec![component(1, 1, &[4, 4])]);
        let step = planned(&job, line).unwrap();
        let spec = step.spec(&job, &Launcher::default(), &Streams::default(), None);
        let group = &spec.groups[0];
        let all = group.gpus.iter().chain(&group.more_gpus).map(|gpus| (gpus.count, gpus.per, gpus.model.clone()));
        (all.collect::<Vec<_>>(), group.gpu_binding.clone())
    };
    let typed =
        |per, counts: [(u32, &str); 2]| counts.map(|(count, model)| (count, per, Some(model.to_owned()))).to_vec();
    assert_eq!(of("--gres=gpu:a100:1,gpu:v100:2 a"), (typed(Per::Node, [(1, "a100"), (2, "v100")]), None));
    assert_eq!(of("--gpus=v100:2,a100:1 a").0, typed(Per::Request, [(2, "v100"), (1, "a100")]));
    assert_eq!(of("-n2 --gpus-per-task=a100:1,v100:1 a"), (typed(Per::Task, [(1, "a100"), (1, "v100")]), None));
}

#[test]
fn a_step_asks_for_gpus_by_its_own_options_and_by_variables_about_tasks() {
    let some = |count, per, model: Option<&str>| Some(Gpus { count, per, model: model.map(str::to_owned) });
    let asked = |line: &str| gpus_of(&format!("{line} x"), &[]).0;
    assert_eq!(asked("-N2 -n2"), None);
    assert_eq!(asked("--gres=gpu:a100:2"), some(2, Per::Node, Some("a100")));
    assert_eq!(asked("--gres=none"), some(0, Per::Node, None));
    assert_eq!(asked("--gpus=3"), some(3, Per::Request, None));
    assert_eq!(asked("--gpus-per-node=v100:1"), some(1, Per::Node, Some("v100")));
    assert_eq!(asked("-N1 -n3 --ntasks-per-gpu=2"), some(2, Per::Node, None));
    let own = gpus_of("-n3 --gpus-per-task=2 x", &[]);
    assert_eq!(own, (some(2, Per::Task, None), Some(GpuBinding::PerTask(2))));
    let bound = gpus_of("--gpus-per-task=2 --gpu-bind=none x", &[]);
    assert_eq!(bound, (some(2, Per::Task, None), None));
    assert_eq!(gpus_of("--gpu-bind=single:2 x", &[]), (None, Some(GpuBinding::Shared(2))));

    let of_job = [("SLURM_GPUS", "8"), ("SLURM_GPUS_PER_NODE", "4"), ("SLURM_GPUS_PER_TASK", "1")];
    assert_eq!(gpus_of("x", &of_job[..2]), (None, None), "they are about the job");
    let per_task = gpus_of("x", &of_job);
    assert_eq!(per_task, (some(1, Per::Task, None), Some(GpuBinding::PerTask(1))), "this is about tasks");
    assert_eq!(gpus_of("--gres=gpu:2 x", &of_job).0, some(2, Per::Node, None), "the line goes first");
    let told = |line: &str| planned(&job(vec![component(1, 1, &[4])]), line).unwrap_err();
    let wrong = "srun: error: Unable to create step for job 1: Invalid generic resource (gres) specification";
    for line in ["--gpus=3 --gpus-per-task=2 a", "-n3 --gpus=4 --gpus-per-task=2 a", "--gpus=2 --gpus-per-node=4 a"] {
        assert_eq!(told(line), [wrong], "{line}");
    }
    assert_eq!(
        told("--gpus=a100:1,1 a"),
        [
            "srun: error: Unable to allocate resources: Invalid GRES specification (with and without type identification)"
        ]
    );
    assert_eq!(
        told("--ntasks-per-gpu=2 --gpus-per-task=1 a"),
        ["srun: fatal: --gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"]
    );
    let job_of_two = job(vec![component(1, 1, &[8, 8])]);
    let on_two = planned(&job_of_two, "--gpus-per-node=2 --gpus-per-task=1 a").unwrap();
    let per_node = |plan: &StepPlan| plan.parts[0].nodes.len() * 10 + plan.world.tasks.len();
    assert_eq!(per_node(&on_two), 24, "two tasks on each of two nodes, although the first has room for all");
    let one = planned(&job_of_two, "-n2 --gpus-per-node=1 --gpus-per-task=1 a").unwrap();
    assert_eq!(per_node(&one), 22, "one task on each node");
    assert!(planned(&job_of_two, "--ntasks-per-node=3 --gpus-per-node=2 --gpus-per-task=1 a").is_err());
    let four = planned(&job(vec![component(1, 1, &[4])]), "--gpus=4 --gpus-per-task=1 a").unwrap();
    assert_eq!(four.world.tasks.len(), 4, "as many tasks as the GPUs say");
    assert_eq!(
        planned(&job(vec![component(1, 1, &[4])]), "--gpu-bind=single:x a").unwrap_err(),
        ["srun: error: Invalid --gpu-bind argument: single:x"]
    );
}
