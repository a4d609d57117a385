//! What commands of `qmgr` do to the configuration.

use crate::support::golden;
use muster_pbs::{
    flavour::Flavour::{self, PbsPro, Torque},
    qmgr::{
        Edit, Object, Service, Wrong, created, difference, edit, list, listed_node, listed_queue, listed_server,
        new_limits, node, only, parse, print, queue, schedule_iteration, scheduler_policy, script, server, time_zone,
    },
    queries::qmgr,
    show::{Counts, ServerFacts, ServerState},
};
use muster_schemas::{
    cluster::{
        ClusterChange, ClusterConfig, ClusterSettings, ClusterSettingsChange, QueueSpec, QueueSpecChange, QueueValue,
        SettingsValue,
    },
    resources::{NodeSpec, PropertyValue},
    views::{NodeView, QueueView},
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

/// Carries out a command about the objects that it names.
fn edited(text: &str, config: &ClusterConfig) -> Result<Edit, Wrong> {
    let command = parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}")).expect("a command");
    let names: Vec<String> = command.names.iter().filter_map(|name| name.name.clone()).collect();
    edit(&command, &names, config)
}

/// The configuration after some commands.
fn after(commands: &[&str], config: &ClusterConfig) -> ClusterConfig {
    let one = |config: ClusterConfig, text: &&str| {
        edited(text, &config).unwrap_or_else(|wrong| panic!("{text}: {wrong}")).config
    };
    commands.iter().fold(config.clone(), one)
}

fn refusal(text: &str, config: &ClusterConfig) -> String {
    match edited(text, config) {
        Ok(edit) => panic!("{text} is accepted: {edit:?}"),
        Err(wrong) => format!("{}: {wrong}", wrong.object),
    }
}

/// A cluster with something of everything.
fn cluster() -> ClusterConfig {
    let first = [("pbs.created".to_owned(), "1".to_owned())].into();
    let workq = QueueSpec { name: "workq".into(), attributes: first, ..QueueSpec::default() };
    let long = QueueSpec {
        name: "long".into(),
        priority: -7,
        default_job_priority: 3,
        enabled: false,
        started: true,
        default_walltime_seconds: Some(3_600),
        max_walltime_seconds: Some(360_000),
        nodes: vec!["n1".into(), "n2".into()],
        users: vec!["ann".into(), "bob".into()],
        max_running_jobs: Some(64),
        max_running_jobs_per_user: Some(2),
        max_jobs: Some(1_000),
        attributes: [("pbs.created", "2"), ("pbs.max_group_run", "5")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        route: None,
        least_asked: BTreeMap::new(),
        most_asked: [("memory_bytes".to_owned(), 2 << 30)].into(),
        walltime_increases: None,
        makes_way: None,
    };
    let properties = [
        ("fast".to_owned(), PropertyValue::Flag(true)),
        ("old".to_owned(), PropertyValue::Flag(false)),
        ("rack".to_owned(), PropertyValue::Number(-3)),
        ("switch".to_owned(), PropertyValue::Text("s 1, left".into())),
    ];
    let bare = NodeSpec {
        name: "n1".into(),
        cores: 4,
        sockets: 1,
        memory_bytes: 8 << 30,
        gpus: vec!["gpu".into(); 2],
        properties: [].into(),
    };
    let rich = NodeSpec {
        name: "n2".into(),
        cores: 64,
        sockets: 2,
        memory_bytes: 1_000_000_001,
        gpus: vec!["a100".into(), "gpu".into()],
        properties: properties.into(),
    };
    ClusterConfig {
        settings: ClusterSettings {
            default_queue: "workq".into(),
            administrators: vec!["root".into(), "ann".into()],
            operators: vec!["bob".into()],
            finished_job_retention_seconds: 1_209_600,
            node_lost_after_seconds: 150,
            launch_timeout_seconds: 90,
            kill_grace_seconds: 30,
            default_memory_per_core_bytes: Some(1 << 30),
            cancel_never_met: true,
            max_jobs: 5_000,
            ..ClusterSettings::default()
        },
        queues: vec![workq, long],
        nodes: vec![bare, rich],
        licences: [("matlab".to_owned(), 5)].into(),
        ..ClusterConfig::default()
    }
}

fn view(spec: &NodeSpec, members: serde_json::Value) -> NodeView {
    let mut all = json!({
        "spec": spec, "state": "up", "reason": null, "cores_used": 0, "memory_used_bytes": 0, "gpus_used": 0, "jobs": []
    });
    all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    serde_json::from_value(all).expect("a node")
}

/// All that `print` shows of a cluster: the server with its queues, then the nodes.
fn printed(config: &ClusterConfig, flavour: Flavour) -> String {
    let mut objects: Vec<Object> = vec![server(config, "pbs1", flavour)];
    objects.extend(config.queues.iter().map(|spec| queue(spec, flavour)));
    objects.extend(config.nodes.iter().map(|spec| node(&view(spec, json!({})), flavour)));
    print(&objects)
}

/// Carries out printed commands on a cluster that has nothing.
fn made_by(text: &str) -> ClusterConfig {
    let commands: Vec<String> = script(text).into_iter().map(|written| written.command.unwrap().to_string()).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    after(&commands, &ClusterConfig::default())
}

#[test]
fn what_is_printed_makes_the_same_cluster() {
    for flavour in [PbsPro, Torque] {
        let text = printed(&cluster(), flavour);
        golden(&format!("{flavour}-qmgr-print.txt"), &text);
        assert_eq!(made_by(&text), cluster(), "{flavour}");
    }
}

#[test]
fn what_is_listed_has_the_state_of_things() {
    let config = cluster();
    for flavour in [PbsPro, Torque] {
        let facts = ServerFacts {
            name: "pbs1",
            host: "pbs1.example.org",
            state: ServerState::Active,
            counts: Counts { running: 2, ..Counts::default() },
            default_queue: Some("workq"),
            max_running: None,
            missing_policy: None,
            iteration_seconds: None,
            version: "0.1.0",
        };
        let queue =
            QueueView { spec: config.queues[1].clone(), default: false, queued: 1, held: 0, held_until: 0, running: 2 };
        let out = view(&config.nodes[1], json!({ "state": "drained", "reason": "bad disk" }));
        let objects =
            [listed_server(&config, &facts, flavour), listed_queue(&queue, flavour), listed_node(&out, &[], flavour)];
        golden(&format!("{flavour}-qmgr-list.txt"), &list(&objects));
    }
    let command = parse("list queue long enabled, resources_max.walltime, Priority").unwrap().unwrap();
    let some = only(vec![queue(&config.queues[1], PbsPro)], &command.changes);
    assert_eq!(list(&some), "Queue long\n\tPriority = -7\n\tresources_max.walltime = 100:00:00\n\tenabled = False\n\n");
}

#[test]
fn queues_are_created_changed_and_deleted() {
    let made = after(&["create queue short queue_type = e, priority=5, enabled=true"], &cluster());
    let short = made.queues.last().unwrap();
    assert_eq!((short.name.as_str(), short.priority, short.enabled, short.started), ("short", 5, true, false));
    let made = after(
        &[
            "set queue workq,long started = False, max_run = \"[o:PBS_ALL=10],[u:PBS_GENERIC=3]\"",
            "set queue workq max_running += 5, acl_users = \"ann@*, +carl\"",
            "set queue workq acl_users -= ann, acl_hosts = n1+n2",
            "set queue workq resources_max.walltime = 2:00:00, max_queued = [o:PBS_ALL=7]",
            "set queue long max_run -= [u:PBS_GENERIC=0], acl_hosts -= n1",
        ],
        &cluster(),
    );
    let [workq, long] = &made.queues[..] else { panic!("two queues") };
    assert!(!workq.started && !long.started);
    assert_eq!((workq.max_running_jobs, workq.max_running_jobs_per_user), (Some(15), Some(3)));
    assert_eq!((workq.users.as_slice(), workq.nodes.len()), (&["carl".to_owned()][..], 2));
    assert_eq!((workq.max_walltime_seconds, workq.max_jobs), (Some(7_200), Some(7)));
    assert_eq!((long.max_running_jobs, long.max_running_jobs_per_user), (Some(10), None));
    assert_eq!(long.nodes, ["n2"]);
    let made = after(&["unset queue long acl_users, resources_max.walltime, max_run, Priority, enabled"], &cluster());
    let long = &made.queues[1];
    assert_eq!((long.users.len(), long.max_walltime_seconds, long.max_running_jobs, long.priority), (0, None, None, 0));
    assert_eq!(after(&["delete queue long"], &cluster()).queues.len(), 1);
    let warned = edited("set queue workq acl_user_enable = True", &cluster()).unwrap();
    assert_eq!(warned.warnings, ["queue workq admits everybody until acl_users names users"]);
    assert_eq!(warned.config, cluster());
}

#[test]
fn the_server_and_nodes_are_changed() {
    let made = after(
        &[
            "set server default_queue = long, managers += carl@*, operators = 'dora, bob@*'",
            "set server job_history_duration = 24:00:00, resources_available.matlab += 2, scheduling = True",
            "set server resources_available.ansys = 1, max_queued = [o:PBS_ALL=99], default_chunk.ncpus = 1",
        ],
        &cluster(),
    );
    let settings = &made.settings;
    assert_eq!(settings.default_queue, "long");
    assert_eq!(settings.administrators, ["root", "ann", "carl"]);
    assert_eq!(settings.operators, ["dora", "bob"]);
    assert_eq!((settings.finished_job_retention_seconds, settings.max_jobs), (86_400, 99));
    assert_eq!(made.licences, [("ansys".to_owned(), 1), ("matlab".to_owned(), 7)].into());
    let made =
        after(&["unset server operators, resources_available.matlab, kill_delay, default_memory_per_core"], &made);
    assert!(made.settings.operators.is_empty() && made.settings.default_memory_per_core_bytes.is_none());
    assert_eq!((made.settings.kill_grace_seconds, made.licences.len()), (10, 1));

    let made = after(&["create node n3 np=8, resources_available.mem=16gb, properties='a,b', gpus=1"], &cluster());
    let node = made.nodes.last().unwrap();
    assert_eq!((node.cores, node.memory_bytes, node.gpus.len(), node.sockets), (8, 16 << 30, 1, 1));
    assert_eq!(node.properties.get("a"), Some(&PropertyValue::Flag(true)));
    let made = after(
        &[
            "set node n2 resources_available.ncpus = 32, properties -= fast, resources_available.ngpus = 1",
            "set node n2 resources_available.rack = 4, resources_available.host = n2",
            "unset node n2 resources_available.switch",
        ],
        &cluster(),
    );
    let node = &made.nodes[1];
    assert_eq!((node.cores, node.gpus.as_slice()), (32, &["a100".to_owned()][..]));
    let names: Vec<&str> = node.properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["old", "rack"], "properties are only the words");
    assert_eq!(node.properties["rack"], PropertyValue::Number(4));
    assert_eq!(after(&["delete node n1"], &cluster()).nodes.len(), 1);

    let service = |text: &str| edited(text, &cluster()).unwrap().service;
    let of = |node: &str, is_offline: Option<bool>, comment: Option<&str>| Service {
        node: node.to_owned(),
        is_offline,
        comment: comment.map(str::to_owned),
    };
    assert_eq!(service("set node n1 state = offline, comment = 'bad disk'"), [of("n1", Some(true), Some("bad disk"))]);
    assert_eq!(service("set node n1,n2 state -= offline").len(), 2);
    assert_eq!(service("set node n1 state = free"), [of("n1", Some(false), None)]);
    assert_eq!(service("unset node n1 comment"), [of("n1", None, Some(""))]);
    assert_eq!(service("set node n1 resources_available.ncpus = 4"), []);
}

/// What the server of a new PBS prints is taken as it is; what has no effect here is told.
#[test]
fn a_server_of_another_system_is_read() {
    let before = cluster();
    let text = "set server scheduling = True, log_events = 511, mail_from = adm, query_other_jobs = True, \
                resources_default.ncpus = 1, default_chunk.ncpus = 1, resv_enable = True, \
                node_fail_requeue = 310, max_array_size = 10000, pbs_license_min = 0, eligible_time_enable = False";
    let edit = edited(text, &before).expect("all of it is known");
    assert_eq!(edit.config, before);
    let told: Vec<&str> = edit.warnings.iter().filter_map(|told| told.split(' ').next()).collect();
    let needless =
        ["log_events", "mail_from", "node_fail_requeue", "max_array_size", "pbs_license_min", "eligible_time_enable"];
    assert_eq!(told, needless);
    assert_eq!(edit.warnings[0], "log_events changes nothing: the log has everything");
}

/// PBS-Q-08, PBS-Q-10: the requests of jobs that make none are those of the server and of queues, as every `torque.setup` sets them.
#[test]
fn requests_have_defaults() {
    let commands = [
        "set server resources_default.nodes = 1, resources_default.nodect = 1, next_job_number = 7",
        "set server resources_default.walltime = 1:00:00",
        "set queue workq resources_default.mem = 1gb, resources_default.walltime = 600",
        "set queue workq resources_default.select = 2:ncpus=4",
    ];
    let made = after(&commands, &cluster());
    let printed = print(&[server(&made, "s", Torque), queue(&made.queues[0], Torque)]);
    for line in [
        "set server resources_default.nodes = 1",
        "set server resources_default.nodect = 1",
        "set server resources_default.walltime = 1:00:00",
        "set queue workq resources_default.walltime = 00:10:00",
        "set queue workq resources_default.mem = 1gb",
        "set queue workq resources_default.select = 2:ncpus=4",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line}: {printed}");
    }
    let unset = after(&["unset server resources_default", "unset queue workq resources_default"], &made);
    assert_eq!(unset, cluster());
    for (text, expected) in [
        ("set server resources_default = 3", "names no resource: write resources_default.mem"),
        ("set server resources_default.mem = much", "expected a size"),
        ("set queue long resources_default.select = x:y", "select"),
        ("set server resources_default.ncpus = 2", "can only be 1"),
    ] {
        let wrong = edited(text, &cluster()).unwrap_err().to_string();
        assert!(wrong.contains(expected), "{text}: {wrong}");
    }
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    for (text, message) in [
        ("create queue long", "long: Queue already exists; nothing was changed"),
        ("set queue nope enabled = True", "nope: Unknown queue; nothing was changed"),
        (
            "delete queue workq",
            "workq: this is the default queue; set another default_queue of the server first; nothing was changed",
        ),
        (
            "create queue r queue_type = routed",
            "r: queue_type: illegal value `routed`: expected Execution or Route; nothing was changed",
        ),
        (
            "set queue long route_destinations = a",
            "long: route_destinations: is not supported: only queues of queue_type Route pass jobs on; nothing was changed",
        ),
        (
            "create queue r queue_type = route, route_destinations = a@other",
            "r: route_destinations: `a@other`: jobs go to queues of this server only; write its name; nothing was changed",
        ),
        (
            "set queue long resources_min.vmem = 1gb",
            "long: resources_min.vmem: is not supported: queues have lower limits of cput, mem, ncpus, ngpus, nodect and \
             walltime; nothing was changed",
        ),
        (
            "set queue long checkpoint_min = 3",
            "long: checkpoint_min: is not supported: queues have no such setting here; nothing was changed",
        ),
        (
            "set queue long enabled = maybe",
            "long: enabled: illegal value `maybe`: expected True or False; nothing was changed",
        ),
        (
            "set queue long enabled += True",
            "long: enabled: += is for lists and numbers; expected =; nothing was changed",
        ),
        (
            "set queue long max_running = -1",
            "long: max_running: illegal value `-1`: expected a number from 0 to 4294967295; nothing was changed",
        ),
        (
            "set queue long max_run = [x:phys=3]",
            "long: max_run: illegal value `[x:phys=3]`: expected o:PBS_ALL, or u:, g: or p: with a name or PBS_GENERIC; \
             nothing was changed",
        ),
        (
            "set queue long max_queued = [u:ann=3]",
            "long: max_queued: is not supported: only the jobs of all users together are limited; nothing was changed",
        ),
        (
            "set queue long acl_users = ann@login1",
            "long: acl_users: `ann@login1`: users are not told apart by host; write ann@*; nothing was changed",
        ),
        (
            "set queue long acl_users += -ann",
            "long: acl_users: `-ann`: users can be named but not excluded; nothing was changed",
        ),
        (
            "set queue long acl_user_enable = False",
            "long: acl_user_enable: is not supported: a list of users always counts; unset acl_users admits everybody; \
             nothing was changed",
        ),
        ("set queue long total_jobs = 1", "long: total_jobs: cannot be set: the system does; nothing was changed"),
        (
            "set server scheduling = perhaps",
            ": scheduling: illegal value `perhaps`: expected True or False; nothing was changed",
        ),
        ("set server comment = x", ": comment: is not supported: the server has no comment here; nothing was changed"),
        (
            "set server rpp_retry = 10",
            ": rpp_retry: is not supported: the server has no such setting here; nothing was changed",
        ),
        (
            "unset server default_queue",
            ": default_queue: is not supported: jobs that name no queue need one; nothing was changed",
        ),
        (
            "create server",
            ": `create server` is not supported: there is one server, which is the cluster; nothing was changed",
        ),
        (
            "create node n9",
            "n9: a node is created with its size: create node NAME resources_available.ncpus=4, \
             resources_available.mem=8gb; nothing was changed",
        ),
        (
            "set node n1 state = job-busy",
            "n1: state: illegal value `job-busy`: the system finds out the other states; expected free or offline; \
             nothing was changed",
        ),
        (
            "set node n1 queue = workq",
            "n1: queue: is not supported: acl_hosts of a queue names the nodes that serve it; nothing was changed",
        ),
        (
            "set node n1 power_off_eligible = 1",
            "n1: power_off_eligible: is not supported: nodes have no such setting here; nothing was changed",
        ),
        (
            "create resource x type = long",
            ": resources need no definition: set resources_available.NAME of nodes, or of the server for licences; \
             nothing was changed",
        ),
        (
            "create hook x",
            ": hooks are not supported: submission and activation filters do what they do; nothing was changed",
        ),
    ] {
        assert_eq!(refusal(text, &cluster()), message, "{text}");
    }
    // All or nothing.
    assert!(edited("set queue workq,nope enabled = False", &cluster()).is_err());
}

#[test]
fn a_request_names_only_what_changes() {
    let before = cluster();
    let change = |commands: &[&str]| difference(&before, &after(commands, &before));
    let request = change(&["set queue long enabled = True"]);
    let named = QueueSpecChange { name: "long".into(), enabled: Some(true), ..QueueSpecChange::default() };
    assert_eq!(request, ClusterChange { queues: vec![named], ..ClusterChange::default() });
    for commands in [
        &["set server kill_delay = 3, managers -= ann"][..],
        &["create queue q enabled = True", "set queue q started = True"],
        &["create node n3 np=8, resources_available.mem=1gb", "set node n1 gpus = 0"],
        &["unset queue long acl_users, max_run", "set server resources_available.matlab = 1"],
        &["delete queue long", "delete node n1", "unset server resources_available.matlab"],
        &["delete queue long", "delete node n1", "unset server resources_available.matlab, default_memory_per_core"],
    ] {
        let wanted = after(commands, &before);
        assert_eq!(difference(&before, &wanted).onto(before.clone()), wanted, "{commands:?}");
    }
    assert_eq!(difference(&before, &before), ClusterChange::default());
    // A value that is taken away has a name, so nothing else is sent.
    let request = change(&["unset server default_memory_per_core"]);
    let settings =
        ClusterSettingsChange { unset: vec![SettingsValue::DefaultMemoryPerCoreBytes], ..Default::default() };
    assert_eq!(request, ClusterChange { settings, ..ClusterChange::default() });
}

#[test]
fn qmgr_has_options() {
    let words = |line: &str| crate::support::words(line);
    let read = qmgr(&words("-aez -c 'list server' pbs1")).unwrap();
    assert!(read.aborts && read.echoes && read.quiet && !read.only_checks);
    assert_eq!((read.commands.as_deref(), read.servers.as_slice()), (Some("list server"), &["pbs1".to_owned()][..]));
    assert_eq!(qmgr(&words("-c")).unwrap_err().to_string(), "option requires an argument -- 'c'");
}

proptest! {
    #[test]
    fn no_value_makes_an_edit_panic(
        attribute in "(max_run|max_queued|acl_users|acl_hosts|state|properties|gpus|gpu_models|np|managers|Priority|comment|sockets)",
        sign in "(=|\\+=|-=)",
        value in "(\\PC{1,20}|[-0-9\\[\\]=:,@*a-zA-Z_+]{1,20})",
        kind in "(server|queue workq|node n2)",
    ) {
        let text = format!("set {kind} {attribute} {sign} \"{}\"", value.replace('"', ""));
        if let Ok(Some(_)) = parse(&text) && let Ok(edit) = edited(&text, &cluster()) {
            prop_assert_eq!(difference(&cluster(), &edit.config).onto(cluster()), edit.config);
        }
    }
}

/// Limits that only policies of PBS follow are known, so that who sets one can be told where none is in force.
#[test]
fn new_limits_of_policies_are_named() {
    let before = cluster();
    let named = |commands: &[&str]| new_limits(&before, &after(commands, &before)).into_iter().collect::<Vec<_>>();
    assert_eq!(
        named(&["set server max_running = 9, resources_available.ncpus = 64"]),
        ["max_running", "resources_available.ncpus"]
    );
    assert_eq!(
        named(&["set queue long max_run = [u:ann=3]", "set queue workq max_group_run = 2"]),
        ["max_group_run", "max_run"]
    );
    let others =
        ["set queue long max_running = 3, max_user_run = 2, resources_max.walltime = 60", "set server kill_delay = 3"];
    assert_eq!(named(&others), [""; 0], "these hold under every policy");
    assert_eq!(named(&["create queue q", "set server resources_default.mem = 2gb"]), [""; 0]);
    let set = after(&["set server max_running = 9"], &before);
    assert!(new_limits(&set, &after(&["set server kill_delay = 4"], &set)).is_empty(), "it was there before");
    assert!(new_limits(&set, &after(&["unset server max_running"], &set)).is_empty());
}

/// PBS-Q-02, PBS-Q-05: limits that only policies of PBS follow are kept as they are written, and queues are numbered as they
/// are created.
#[test]
fn limits_of_policies_are_kept_for_server_and_queues() {
    let kept = |config: &ClusterConfig| config.settings.attributes.clone();
    let made = after(
        &[
            "set server max_running = 9, max_group_run = 3, resources_available.ncpus = 64, resources_max.mem = 10gb",
            "set server max_running += 1",
            "create queue second queue_type = e, resources_available.cput = 10:00:00",
            "create queue first max_group_run = 2",
            "unset queue long resources_max, max_group_run",
        ],
        &cluster(),
    );
    let server = [
        ("pbs.max_group_run", "3"),
        ("pbs.max_running", "10"),
        ("pbs.resources_available.ncpus", "64"),
        ("pbs.resources_max.mem", "10gb"),
    ];
    assert_eq!(kept(&made), server.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let of = |name: &str| made.queues.iter().find(|queue| queue.name == name).unwrap().attributes.clone();
    assert_eq!(of("second").get("pbs.resources_available.cput").map(String::as_str), Some("10:00:00"));
    assert_eq!(of("long").keys().collect::<Vec<_>>(), ["pbs.created"]);
    assert!(created(&of("second")) < created(&of("first")), "in the order of their creation");
    assert_eq!(
        kept(&after(&["unset server resources_max, resources_available.ncpus, max_running, max_group_run"], &made))
            .len(),
        0
    );
    assert_eq!(
        refusal("set server resources_max.mem = much", &made),
        ": resources_max.mem: illegal value `much`: expected a size such as 8gb; nothing was changed"
    );
    assert!(refusal("set queue first max_group_run = -1", &made).contains("expected a number from 0"));
}

/// Queues that pass jobs on, and limits on what jobs ask for: what `print` shows makes the same queues.
#[test]
fn queues_that_pass_jobs_on_have_destinations_and_limits() {
    let commands = [
        "create queue r route_destinations = \"long,workq\", queue_type = Route, route_held_jobs = True",
        "set queue r route_destinations += deep, route_lifetime = 1:00:00, route_retry_time = 20, enabled = True",
        "set queue long resources_min.ncpus = 2, resources_max.ncpus = 8, resources_max.mem = 3gb, resources_min.walltime = 60",
        "set queue long resources_max.cput = 2:00:00, resources_max.vmem = 4gb, resources_max.ncpus += 1",
    ];
    let made = after(&commands, &cluster());
    let of =
        |config: &ClusterConfig, name: &str| config.queues.iter().find(|queue| queue.name == name).unwrap().clone();
    let (r, long) = (of(&made, "r"), of(&made, "long"));
    let route = r.route.as_deref().unwrap();
    assert_eq!(route.destinations, ["long", "workq", "deep"]);
    assert_eq!((route.held_jobs, route.waiting_jobs, route.lifetime_seconds), (true, false, Some(3600)));
    let named = |limits: &[(&str, u64)]| -> BTreeMap<String, u64> {
        limits.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    };
    assert_eq!(long.least_asked, named(&[("cores", 2), ("walltime_seconds", 60)]));
    assert_eq!(long.most_asked, named(&[("cores", 9), ("memory_bytes", 3 << 30), ("cpu_seconds", 7200)]));
    assert_eq!(
        long.attributes.keys().filter(|name| name.contains("_max")).collect::<Vec<_>>(),
        ["pbs.resources_max.vmem"]
    );

    let printed = print(&[queue(&r, PbsPro), queue(&long, PbsPro)]);
    for line in [
        "set queue r queue_type = Route",
        "set queue r route_destinations += deep",
        "set queue r route_lifetime = 3600",
        "set queue r route_retry_time = 20",
        "set queue long resources_min.walltime = 00:01:00",
        "set queue long resources_max.mem = 3145728kb",
        "set queue long resources_max.cput = 02:00:00",
        "set queue long resources_max.vmem = 4gb",
    ] {
        assert!(printed.lines().any(|known| known == line), "{line}:\n{printed}");
    }
    let mut bare = cluster();
    bare.queues.retain(|queue| queue.name == "workq");
    let fed = printed.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>();
    let again = after(&fed, &bare);
    let without_number = |queue: QueueSpec| {
        let attributes = queue.attributes.into_iter().filter(|(name, _)| name != "pbs.created").collect();
        QueueSpec { attributes, ..queue }
    };
    for name in ["r", "long"] {
        assert_eq!(without_number(of(&again, name)), without_number(of(&made, name)), "{name}");
    }
    let wrong = edited("set queue r route_retry_time = 5", &made).unwrap();
    assert!(wrong.warnings[0].contains("has no effect"), "{:?}", wrong.warnings);

    let less = after(
        &[
            "unset queue r route_destinations, route_held_jobs, route_lifetime, route_retry_time",
            "unset queue long resources_max.ncpus, resources_min, resources_max.vmem",
        ],
        &made,
    );
    assert_eq!(of(&less, "r").route.as_deref(), Some(&Default::default()));
    assert_eq!(of(&less, "long").most_asked, named(&[("memory_bytes", 3 << 30), ("cpu_seconds", 7200)]));
    assert_eq!(of(&less, "long").least_asked, named(&[]));
    assert!(of(&after(&["set queue r queue_type = Execution"], &made), "r").route.is_none());
    let change = difference(&made, &after(&["set queue r route_waiting_jobs = True"], &made));
    assert!(change.queues[0].route.as_ref().is_some_and(|route| route.waiting_jobs));
    let change = difference(&made, &after(&["set queue r queue_type = e"], &made));
    assert!(change.queues[0].unset == [QueueValue::Route], "what a queue loses has a name");
}

/// PBS-Q-02: `max_run` limits all, each user, group and project and single ones, of the server and of a queue; what `print` shows sets
/// the same.
#[test]
fn running_jobs_of_single_users_are_limited() {
    let made = after(
        &[
            "set queue long max_run = \"[o:PBS_ALL=9],[g:PBS_GENERIC=4],[u:ann=3]\"",
            "set queue long max_run += \"[u:j.doe=2],[u:ann=1],[g:phys=3],[g:chem=5]\"",
            "set queue long max_run -= [g:chem=0]",
            "set queue long max_run += \"[p:PBS_GENERIC=8],[p:ice=2],[p:sea=1]\"",
            "set queue long max_run -= [p:sea=1]",
            "set server max_run = \"[u:PBS_GENERIC=7],[u:bob=0]\"",
        ],
        &cluster(),
    );
    let long = made.queues.iter().find(|queue| queue.name == "long").unwrap();
    assert_eq!((long.max_running_jobs, long.max_running_jobs_per_user), (Some(9), None));
    let of = |attributes: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let kept = attributes.iter().filter(|(name, _)| name.starts_with("pbs.max_"));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let kept = [
        ("pbs.max_group_run", "4"),
        ("pbs.max_run.g:phys", "3"),
        ("pbs.max_run.p:PBS_GENERIC", "8"),
        ("pbs.max_run.p:ice", "2"),
        ("pbs.max_run.u:ann", "1"),
        ("pbs.max_run.u:j.doe", "2"),
    ];
    assert_eq!(of(&long.attributes), kept.map(pair));
    assert_eq!(of(&made.settings.attributes), [("pbs.max_run.u:bob", "0"), ("pbs.max_user_run", "7")].map(pair));

    let printed = print(&[queue(long, PbsPro)]);
    let again = printed.lines().filter(|line| line.starts_with("set ")).collect::<Vec<_>>();
    assert_eq!(&after(&again, &made).queues, &made.queues, "{printed}");
    let less = after(&["set queue long max_run -= [u:ann=0]", "unset server max_run"], &made);
    assert_eq!(of(&less.queues[1].attributes).len(), 5);
    assert_eq!(of(&less.settings.attributes), []);
    assert_eq!(of(&after(&["unset queue long max_run"], &made).queues[1].attributes), []);
}

/// PBS-C-07, PBS-P-01, PBS-T-07: what the server tells its schedulers is kept, printed under the name of the family's member, and
/// taken away again.
#[test]
fn the_server_keeps_what_it_tells_schedulers() {
    let text = "set server scheduler_iteration = 300, timezone = Europe/Zurich, scheduler_policy = SGI_origin";
    let config = after(&[text], &cluster());
    let attributes = &config.settings.attributes;
    assert_eq!(schedule_iteration(attributes), Some(300));
    assert_eq!(scheduler_policy(attributes), Some("sgi_origin"));
    assert_eq!(
        time_zone(attributes).and_then(|zone| zone.iana_name().map(str::to_owned)).as_deref(),
        Some("Europe/Zurich")
    );
    for (flavour, name) in [(PbsPro, "schedule_iteration"), (Torque, "scheduler_iteration")] {
        let printed = print(&[server(&config, "pbs1", flavour)]);
        for line in [
            &format!("set server {name} = 300"),
            "set server timezone = Europe/Zurich",
            "set server scheduler_policy = sgi_origin",
        ] {
            assert!(printed.lines().any(|printed| printed == line), "{line}: {printed}");
        }
    }
    assert_eq!(after(&["unset server schedule_iteration, timezone, scheduler_policy"], &config), cluster());
    for (text, why) in [
        ("set server schedule_iteration = 0", "expected 1 to 31536000 seconds, found 0"),
        ("set server timezone = Mars/Olympus", "there is no time zone `Mars/Olympus`"),
        ("set server scheduler_policy = lifo", "illegal value `lifo`: expected one of fifo, sgi_origin"),
        ("set server scheduler_policy = basl:file", "the host of the planner names its program"),
    ] {
        assert!(refusal(text, &cluster()).contains(why), "{text}: {}", refusal(text, &cluster()));
    }
}
