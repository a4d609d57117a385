//! Settings from the environment, and the variables of batch scripts and allocation commands.

use muster_dialect::login;
use muster_slurm::{
    environment::{
        ArrayFacts, ComponentFacts, JobFacts, SoftLimit, defaults, loads_login, of_allocation, of_batch_script,
        of_file, of_gpus, of_job, propagate, soft_limits, verbosity, with_pack_names,
    },
    options::Command,
};
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeMap;

fn given(command: Command, component: Option<u32>, variables: &[(&str, &str)]) -> Vec<(&'static str, String)> {
    let lookup = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let given = defaults(command, component, lookup);
    given.iter().map(|given| (given.option.name, given.text().to_owned())).collect()
}

/// SL-E-11: every default of the list, for its command.
#[test]
fn the_listed_variables_give_defaults() {
    let text = |option: &'static str| (option, "1".to_owned());
    for (variable, option) in [
        ("ACCOUNT", "account"),
        ("CONSTRAINT", "constraint"),
        ("CLUSTERS", "clusters"),
        ("DISTRIBUTION", "distribution"),
        ("EXCLUSIVE", "exclusive"),
        ("GPUS", "gpus"),
        ("GPUS_PER_NODE", "gpus-per-node"),
        ("GRES", "gres"),
        ("JOB_NAME", "job-name"),
        ("MEM_PER_CPU", "mem-per-cpu"),
        ("MEM_PER_NODE", "mem"),
        ("PARTITION", "partition"),
        ("QOS", "qos"),
        ("RESERVATION", "reservation"),
        ("SIGNAL", "signal"),
        ("THREADS_PER_CORE", "threads-per-core"),
        ("TIMELIMIT", "time"),
        ("WCKEY", "wckey"),
    ] {
        for (command, prefix) in [(Command::Sbatch, "SBATCH_"), (Command::Salloc, "SALLOC_"), (Command::Srun, "SLURM_")]
        {
            let name = format!("{prefix}{variable}");
            assert_eq!(given(command, None, &[(&name, "1")]), [text(option)], "{name}");
        }
    }
    for (variable, option) in [
        ("ARRAY_INX", "array"),
        ("ERROR", "error"),
        ("EXPORT", "export"),
        ("INPUT", "input"),
        ("OPEN_MODE", "open-mode"),
        ("OUTPUT", "output"),
    ] {
        assert_eq!(given(Command::Sbatch, None, &[(&format!("SBATCH_{variable}"), "1")]), [text(option)]);
    }
    for (variable, option) in
        [("NO_REQUEUE", "no-requeue"), ("OVERCOMMIT", "overcommit"), ("REQUEUE", "requeue"), ("WAIT", "wait")]
    {
        assert_eq!(given(Command::Sbatch, None, &[(&format!("SBATCH_{variable}"), "1")]), [(option, String::new())]);
    }
    for (variable, option) in [
        ("SLURM_NTASKS", "ntasks"),
        ("SLURM_NNODES", "nodes"),
        ("SLURM_OPEN_MODE", "open-mode"),
        ("SLURM_EXPORT_ENV", "export"),
        ("SLURM_KILL_BAD_EXIT", "kill-on-bad-exit"),
        ("SRUN_CPUS_PER_TASK", "cpus-per-task"),
        ("SRUN_OUTPUT", "output"),
    ] {
        assert_eq!(given(Command::Srun, None, &[(variable, "1")]), [text(option)], "{variable}");
    }
    assert_eq!(given(Command::Srun, None, &[("SLURM_LABELIO", "1")]), [("label", String::new())]);
    assert_eq!(given(Command::Salloc, None, &[("SLURM_CLUSTERS", "a")]), [("clusters", "a".to_owned())]);
}

/// SL-E-11: another command's variable, or one without a value, sets nothing.
#[test]
fn other_variables_give_nothing() {
    let variables = [("SALLOC_ACCOUNT", "x"), ("SLURM_NTASKS", "4"), ("SBATCH_QOS", ""), ("SLURM_ACCOUNT", "y")];
    assert!(given(Command::Sbatch, None, &variables).is_empty());
    assert_eq!(verbosity(Command::Sbatch, |name| (name == "SBATCH_DEBUG").then(|| "2".to_owned())), 2);
}

/// SL-R-13: in a heterogeneous job each component has its own variables; those of others are ignored.
#[test]
fn a_step_takes_the_sizes_of_its_own_component() {
    let variables = [
        ("SLURM_NTASKS", "1"),
        ("SLURM_NTASKS_HET_GROUP_0", "1"),
        ("SLURM_NTASKS_HET_GROUP_1", "2"),
        ("SLURM_CPUS_PER_TASK", "3"),
        ("SLURM_NNODES", "3"),
        ("SLURM_NTASKS_PER_NODE", "3"),
        ("SLURM_MEM_PER_NODE", "3"),
        ("SLURM_MEM_PER_CPU", "3"),
        ("SLURM_DISTRIBUTION", "cyclic"),
    ];
    assert_eq!(
        given(Command::Srun, Some(1), &variables),
        [("distribution", "cyclic".to_owned()), ("ntasks", "2".to_owned())]
    );
    assert_eq!(given(Command::Srun, Some(2), &variables).len(), 1);
}

/// SL-E-13.
#[test]
fn the_export_list_chooses_variables() {
    let environment: Vec<(String, String)> =
        [("A", "1"), ("B", "2"), ("SLURM_X", "3")].map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let chosen = |export: Option<&str>| {
        of_job(export, &environment)
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(chosen(None), "A=1 B=2 SLURM_X=3");
    assert_eq!(chosen(Some("ALL")), "A=1 B=2 SLURM_X=3");
    assert_eq!(chosen(Some("NONE")), "SLURM_X=3");
    assert_eq!(chosen(Some("nil")), "SLURM_X=3");
    assert_eq!(chosen(Some("A,C=5,D")), "A=1 C=5 SLURM_X=3");
    assert_eq!(chosen(Some("ALL,B=9")), "A=1 B=9 SLURM_X=3");
    assert_eq!(chosen(Some("C='x,y'")), "C=x,y SLURM_X=3");
    let plugin = [("A".to_owned(), "1".to_owned()), ("SPANK_Y".to_owned(), "4".to_owned())];
    let left: Vec<String> = of_job(Some("NONE"), &plugin).into_keys().collect();
    assert_eq!(left, ["SPANK_Y"], "what is for plugins passes as well");
}

/// SL-E-13: variables that are not exported come from a login on the node.
#[test]
fn a_login_gives_what_the_export_list_leaves_out() {
    for (export, loads) in [
        (None, false),
        (Some("all"), false),
        (Some("ALL,A=1"), false),
        (Some("nil"), false),
        (Some("NONE"), true),
        (Some("A"), true),
    ] {
        assert_eq!(loads_login(export), loads, "{export:?}");
    }
    let said = |text: &str| {
        let read = login::parse(text.replace('|', "\0").replace("MARK", login::MARK).as_bytes())?;
        Some(read.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
    };
    assert_eq!(
        said("Welcome!\nMARK|B=2\n3|A=|PWD=/|_=env|SHLVL=1|no name|=x|"),
        Some(vec!["A=".into(), "B=2\n3".into()])
    );
    assert_eq!(said("MARK|A=1|"), Some(vec!["A=1".into()]));
    assert_eq!(said("A profile that echoes: MARK|X=1|MARK|A=1|"), Some(vec!["A=1".into()]), "the last counts");
    assert_eq!(said("no login\n"), None);
}

/// SL-E-13: soft limits are passed in variables, as selected by `--propagate`.
#[test]
fn limits_are_carried_in_variables() {
    let some = SoftLimit { resource: "NOFILE", most: Some(345) };
    let none = SoftLimit { resource: "STACK", most: None };
    let carried: BTreeMap<String, String> =
        [some.variable(), none.variable(), ("HOME".to_owned(), "/".to_owned())].into_iter().collect();
    assert_eq!(carried["SLURM_RLIMIT_STACK"], "-1");
    let left = |wanted: Option<&str>| {
        let mut environment = carried.clone();
        propagate(&mut environment, wanted);
        assert_eq!(environment["HOME"], "/");
        soft_limits(&environment)
    };
    for all in [None, Some(""), Some("all")] {
        assert_eq!(left(all), [none, some], "{all:?}");
    }
    assert_eq!(left(Some("nofile,CORE")), [some]);
    assert_eq!(left(Some("NONE")), []);
    let mut odd = carried.clone();
    odd.insert("SLURM_RLIMIT_NOFILE".to_owned(), "many".to_owned());
    assert_eq!(soft_limits(&odd), [none]);
}

fn component(number: u64, nodes: &[&str]) -> ComponentFacts {
    ComponentFacts {
        number,
        name: "bash".into(),
        account: "test".into(),
        partition: "debug".into(),
        qos: "normal".into(),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        cpus: vec![1; nodes.len()],
        tasks: vec![1; nodes.len()],
        ..ComponentFacts::default()
    }
}

fn job(components: Vec<ComponentFacts>) -> JobFacts {
    JobFacts {
        components,
        cluster: "alpha".into(),
        user: "root".into(),
        submit_directory: "/root".into(),
        submit_host: "login1".into(),
        start_seconds: Some(1000),
        end_seconds: Some(2000),
        ..JobFacts::default()
    }
}

fn example() -> JobFacts {
    job(vec![component(11741, &["nid00001"]), component(11742, &["nid00002", "nid00003"])])
}

/// EX-11, SL-E-01 to E-04: `salloc -N1 : -N2 bash`.
#[test]
fn the_command_of_an_allocation_sees_each_component() {
    let variables = of_allocation(&example());
    for line in [
        "SLURM_HET_SIZE=2",
        "SLURM_JOB_ID=11741",
        "SLURM_JOB_ID_HET_GROUP_0=11741",
        "SLURM_JOB_ID_HET_GROUP_1=11742",
        "SLURM_JOB_NODELIST_HET_GROUP_0=nid00001",
        "SLURM_JOB_NODELIST_HET_GROUP_1=nid[00002-00003]",
        "SLURM_JOB_NODES_HET_GROUP_0=1",
        "SLURM_JOB_NODES_HET_GROUP_1=2",
        "SLURM_JOB_NUM_NODES_HET_GROUP_0=1",
        "SLURM_JOB_NUM_NODES_HET_GROUP_1=2",
    ] {
        let (name, value) = line.split_once('=').unwrap();
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
    let unsuffixed: Vec<&str> =
        variables.keys().filter(|name| !name.contains("_HET_GROUP_")).map(String::as_str).collect();
    assert_eq!(
        unsuffixed,
        ["SLURM_CLUSTER_NAME", "SLURM_HET_SIZE", "SLURM_JOB_ID", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST"]
    );
}

/// SL-E-03: the suffixed set; variables of an option only if it was given, memory in megabytes without a unit.
#[test]
fn the_suffixed_set_is_complete() {
    let mut facts = example();
    let always = [
        "JOB_ID",
        "JOB_NAME",
        "JOB_ACCOUNT",
        "JOB_PARTITION",
        "JOB_QOS",
        "JOB_NODELIST",
        "JOB_NUM_NODES",
        "JOB_NODES",
        "JOB_CPUS_PER_NODE",
        "TASKS_PER_NODE",
        "NODELIST",
        "NNODES",
    ];
    let asked = ["NTASKS", "NPROCS", "CPUS_PER_TASK", "MEM_PER_CPU", "MEM_PER_NODE", "NTASKS_PER_NODE", "DISTRIBUTION"];
    let has = |facts: &JobFacts, name: &str| of_batch_script(facts).contains_key(&format!("SLURM_{name}_HET_GROUP_1"));
    assert!(always.iter().all(|name| has(&facts, name)));
    assert!(!asked.iter().any(|name| has(&facts, name)));
    facts.components[1] = ComponentFacts {
        asked_tasks: Some(4),
        cpus_per_task: Some(1),
        megabytes_per_cpu: Some(10),
        megabytes_per_node: Some(20),
        tasks_per_node: Some(2),
        distribution: Some("cyclic".into()),
        ..facts.components[1].clone()
    };
    assert!(asked.iter().all(|name| has(&facts, name)));
    assert_eq!(of_batch_script(&facts)["SLURM_MEM_PER_CPU_HET_GROUP_1"], "10");
}

/// SL-E-04, SL-E-08: a batch script has the unsuffixed variables of the first component too.
#[test]
fn a_batch_script_has_the_variables_of_the_first_component() {
    let variables = of_batch_script(&example());
    assert_eq!(variables["SLURM_JOB_NODELIST"], "nid00001");
    assert_eq!(variables["SLURM_CPUS_ON_NODE"], "1");
    let plain = of_batch_script(&job(vec![component(7, &["nid00001"])]));
    for name in "SLURM_JOB_ID SLURM_JOBID SLURM_JOB_NAME SLURM_JOB_USER SLURM_JOB_UID SLURM_JOB_GID SLURM_JOB_ACCOUNT \
                 SLURM_JOB_QOS SLURM_JOB_PARTITION SLURM_JOB_NODELIST SLURM_NODELIST SLURM_JOB_NUM_NODES SLURM_NNODES \
                 SLURM_JOB_CPUS_PER_NODE SLURM_CPUS_ON_NODE SLURM_TASKS_PER_NODE SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST \
                 SLURM_CLUSTER_NAME SLURM_PRIO_PROCESS SLURMD_NODENAME SLURM_JOB_START_TIME SLURM_JOB_END_TIME"
        .split_whitespace()
    {
        assert!(plain.contains_key(name), "{name}");
    }
    for name in ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS"] {
        assert_eq!(plain[name], "0");
    }
    assert!(plain.keys().all(|name| !name.contains("HET") && name != "SLURM_RESTART_COUNT" && name != "SLURM_NTASKS"));
}

/// SL-E-08: variables that only exist with a value.
#[test]
fn optional_variables_of_a_batch_script() {
    let asked = ComponentFacts {
        dependency: Some("afterok:5(unfulfilled)".into()),
        reservation: Some("r1".into()),
        licences: Some("ansys:2".into()),
        ..component(7, &["nid00001"])
    };
    let variables = of_batch_script(&JobFacts { restarts: 1, ..job(vec![asked]) });
    assert_eq!(variables["SLURM_RESTART_COUNT"], "1");
    assert_eq!(variables["SLURM_JOB_DEPENDENCY"], "afterok:5(unfulfilled)");
    assert_eq!(
        (variables["SLURM_JOB_RESERVATION"].as_str(), variables["SLURM_JOB_LICENSES"].as_str()),
        ("r1", "ansys:2")
    );
}

/// SL-E-10.
#[test]
fn a_task_of_an_array_knows_its_place() {
    let array = ArrayFacts { array: 43, index: 3, count: 5, min: 1, max: 5, step: 1 };
    let variables = of_batch_script(&JobFacts { array: Some(array), ..job(vec![component(46, &["nid00001"])]) });
    assert_eq!(variables["SLURM_JOB_ID"], "46");
    let names = ["JOB_ID", "TASK_ID", "TASK_COUNT", "TASK_MIN", "TASK_MAX", "TASK_STEP"];
    assert_eq!(names.map(|name| variables[&format!("SLURM_ARRAY_{name}")].as_str()), ["43", "3", "5", "1", "5", "1"]);
}

/// SL-E-14.
#[test]
fn the_old_names_are_added_on_demand() {
    let variables = with_pack_names(of_allocation(&example()), Some("1"));
    assert_eq!(variables["SLURM_PACK_SIZE"], "2");
    assert_eq!(variables["SLURM_JOB_ID_PACK_GROUP_1"], "11742");
    for unwanted in [None, Some("0")] {
        assert_eq!(with_pack_names(of_allocation(&example()), unwanted), of_allocation(&example()));
    }
}

proptest! {
    /// SL-E-13: exported variables existed before or are in the list.
    #[test]
    fn any_export_list_is_read(export in "(ALL|NONE|NIL|A|B=[a-z,'\"]{0,4})?(,[A-Z=]{0,4}){0,3}|\\PC{0,12}") {
        let environment = vec![("A".to_owned(), "1".to_owned()), ("SLURM_X".to_owned(), "2".to_owned())];
        let chosen = of_job(Some(&export), &environment);
        prop_assert!(chosen.contains_key("SLURM_X"));
        let bare = |text: &str| text.replace(['\'', '"'], "");
        let listed = bare(&export);
        prop_assert!(chosen.keys().all(|name| name == "A" || name == "SLURM_X" || listed.contains(&bare(name))));
    }

    /// SL-E-01: every suffixed variable belongs to a component.
    #[test]
    fn suffixes_are_offsets(sizes in vec(1usize..4, 1..5)) {
        let components = sizes.iter().enumerate().map(|(offset, size)| {
            let nodes: Vec<String> = (0..*size).map(|node| format!("n{offset}x{node}")).collect();
            component(100 + offset as u64, &nodes.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let variables = of_allocation(&job(components.collect()));
        for name in variables.keys() {
            if let Some((_, offset)) = name.split_once("_HET_GROUP_") {
                prop_assert!(sizes.len() > 1 && offset.parse::<usize>().unwrap() < sizes.len());
            }
        }
        prop_assert_eq!(variables.contains_key("SLURM_HET_SIZE"), sizes.len() > 1);
    }
}

/// SL-O-01: the format of an `--export-file`.
#[test]
fn variables_of_a_file_end_with_a_line_or_a_nul() {
    let of = |text: &str| of_file(text).into_iter().map(|(name, value)| format!("{name}={value}"));
    assert_eq!(of("A=1\nB=x=y\n\nnothing\n=z\n").collect::<Vec<_>>(), ["A=1", "B=x=y"]);
    assert_eq!(of("A=1\n2\0B=\0").collect::<Vec<_>>(), ["A=1\n2", "B="]);
}

/// SL-E-03, SL-E-08: variables that programs of a Slurm user read beside the usual ones.
#[test]
fn a_batch_script_knows_its_mask_and_the_cpus_of_its_steps() {
    let asked = ComponentFacts { cpus_per_task: Some(4), ..component(7, &["nid00001"]) };
    let variables = of_batch_script(&JobFacts { umask: Some(0o27), ..job(vec![asked]) });
    assert_eq!(variables["SLURM_UMASK"], "0027");
    assert_eq!((variables["SLURM_CPUS_PER_TASK"].as_str(), variables["SRUN_CPUS_PER_TASK"].as_str()), ("4", "4"));
    let plain = of_batch_script(&job(vec![component(7, &["nid00001"])]));
    assert!(!plain.contains_key("SRUN_CPUS_PER_TASK") && !plain.contains_key("SLURM_UMASK"));
}

/// SL-E-08: the GPUs of a node, of a job and of a step.
#[test]
fn gpus_of_a_node_are_told() {
    let two = [1, 3].into_iter().collect();
    let of = |is_step| of_gpus(&two, is_step).into_iter().map(|(name, value)| format!("{name}={value}"));
    assert_eq!(of(false).collect::<Vec<_>>(), ["SLURM_GPUS_ON_NODE=2", "SLURM_JOB_GPUS=1,3"]);
    assert_eq!(of(true).collect::<Vec<_>>(), ["SLURM_GPUS_ON_NODE=2", "SLURM_STEP_GPUS=1,3"]);
    assert!(of_gpus(&Default::default(), false).is_empty());
}
