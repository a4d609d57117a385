//! Values that are refused from any sender.

use crate::support::*;
use muster_schemas::{
    command::{Command, JobSelection, RefusalCode},
    event::JobChange,
    job::{ArraySpec, Checkpoint, JobSpec, Notification, Program, Sink},
    resources::{Count, IndexSet, Level, LevelCount, Memory, NodeFilter, Per, Request},
    steps::{StepGroup, StepProgram, StepSpec},
};

#[track_caller]
fn refused(change: impl Fn(&mut JobSpec), words: &str) {
    let mut spec = job(1, 1);
    change(&mut spec);
    Cluster::new().refused(&user("ada"), Command::Submit { jobs: vec![spec] }, RefusalCode::Invalid, words);
}

#[track_caller]
fn refused_request(change: impl Fn(&mut Request), words: &str) {
    refused(|spec| change(&mut spec.components[0].alternatives[0].requests[0]), words);
}

/// Absurd sizes are refused and change nothing (M-DOM-4).
#[test]
fn absurd_sizes() {
    refused(|spec| spec.name = "x".repeat(10 << 20), "name: 10485760 bytes, at most 1024");
    refused(|spec| spec.components = vec![spec.components[0].clone(); 1001], "components: 1001 given");
    refused(|spec| spec.environment = [("A".to_owned(), "x".repeat(2 << 20))].into(), "environment:");
    refused(|spec| spec.attributes = [("a.b".to_owned(), "x".repeat(2 << 20))].into(), "attributes:");
    let indices = IndexSet::from_range(0, 10_000_000);
    refused(
        |spec| spec.array = Some(ArraySpec { indices: indices.clone(), max_running: None }),
        "array.indices: 10000001",
    );
    refused(
        |spec| {
            let text = "#!/bin/sh\n".to_owned() + &"x".repeat(17 << 20);
            spec.components[0].launch.program = Program::Script { text, args: Vec::new() };
        },
        "script.text:",
    );
    refused(|spec| spec.components[0].alternatives[0].walltime_seconds = Some(u64::MAX), "walltime_seconds:");
    let most = Count::exactly(u32::MAX);
    refused_request(|request| request.path = vec![LevelCount { level: Level::Node, count: most }], "4294967295");
    refused_request(|request| request.tasks = Some(u32::MAX), "request.tasks:");
    refused_request(|request| request.memory = Some(Memory { bytes: u64::MAX, per: Per::Core }), "memory");
    let mut cluster = Cluster::new();
    let jobs = vec![JobSpec::default(); 100_001];
    cluster.refused(&user("ada"), Command::Submit { jobs }, RefusalCode::Invalid, "100001");
    cluster.refused(&user("ada"), Command::Submit { jobs: Vec::new() }, RefusalCode::Invalid, "0 given");
}

#[test]
fn values_that_no_process_could_have() {
    refused(|spec| spec.environment = [("A=B".to_owned(), String::new())].into(), "`A=B`");
    refused(|spec| spec.environment = [(String::new(), String::new())].into(), "no name");
    refused(|spec| spec.environment = [("A".to_owned(), "\0".to_owned())].into(), "NUL");
    refused(|spec| spec.working_directory = "relative".into(), "does not begin with `/`");
    refused(|spec| spec.working_directory = "/a\0b".into(), "NUL");
    refused(|spec| spec.name = "a\nb".into(), "U+000A");
    refused(|spec| spec.umask = Some(0o1000), "umask");
    refused(|spec| spec.dialect = Some(String::new()), "dialect: is empty");
    refused(|spec| spec.dialect = Some("a b".into()), "dialect: `a b`");
    refused(|spec| spec.components[0].launch.program = Program::Tasks { argv: Vec::new() }, "names no command");
    let no_interpreter = Program::Script { text: "echo".into(), args: Vec::new() };
    refused(|spec| spec.components[0].launch.program = no_interpreter.clone(), "interpreter");
    refused(|spec| spec.checkpoint = Some(Checkpoint { signal: 0, seconds_before_end: 1 }), "checkpoint.signal");
}

/// An image is a word in the argument list of a runtime.
#[test]
fn the_image_of_a_container_is_no_option() {
    for (image, words) in [
        ("--privileged", "launch.container: `--privileged` begins with `-`"),
        ("", "launch.container: is empty"),
        ("a\nb", "U+000A"),
        (&"x".repeat(4_097), "launch.container: 4097 bytes, at most 4096"),
    ] {
        refused(|spec| spec.components[0].launch.container = Some(image.to_owned()), words);
    }
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    cluster.start(id, &["node1"], 1);
    let programs = vec![StepProgram { argv: vec!["true".into()], ..StepProgram::default() }];
    let group = StepGroup { programs, container: Some("-v".into()), ..StepGroup::default() };
    let spec = Box::new(StepSpec { groups: vec![group], ..StepSpec::default() });
    let launch = Command::LaunchStep { job: id, spec };
    cluster.refused(&user("ada"), launch, RefusalCode::Invalid, "groups.container: `-v` begins with `-`");
}

/// F0: an address is a word in the argument list of a mail program, so it must not be an option or anything other than
/// an address.
#[test]
fn mail_goes_to_addresses_and_login_names_only() {
    let to = |sink: Sink| vec![Notification { on: Vec::new(), sink, spares_cancelled: false }];
    for address in
        ["--exec=!id>/tmp/ran@x", "-oQ", "a b", "a@b c", "a@b\n", "|id@x", "/etc/passwd@x", "a'b@x", "", "a@"]
    {
        let own = to(Sink::Mail(address.into()));
        refused(|spec| spec.notifications = own.clone(), "notifications.sink.mail: ");
    }
    for address in ["ada", "ada.l-2_x", "ada@example.org", "ada+jobs@localhost"] {
        let mut spec = job(1, 1);
        spec.notifications = to(Sink::Mail(address.into()));
        assert!(Cluster::new().run(&user("ada"), Command::Submit { jobs: vec![spec] }).is_ok(), "{address}");
    }
}

#[test]
fn requests_that_make_no_sense() {
    let level = |level, count| LevelCount { level, count };
    let upward = vec![level(Level::Core, Count::exactly(1)), level(Level::Node, Count::exactly(1))];
    refused_request(|request| request.path = upward.clone(), "does not go down");
    let backward = Count::Range { min: 3, max: 2 };
    refused_request(|request| request.path = vec![level(Level::Node, backward)], "request.path");
    refused_request(|request| request.path = vec![level(Level::Node, Count::exactly(0))], "request.path");
    refused_request(|request| request.cpus_per_task = 0, "cpus_per_task");
    let group = vec![level(Level::Group("switch".into()), Count::exactly(1))];
    refused_request(|request| request.path = group.clone(), "level `switch`");
    let mut deep = NodeFilter::Has("x".into());
    for _ in 0..60 {
        deep = NodeFilter::Not(Box::new(deep));
    }
    refused_request(|request| request.filter = Some(deep.clone()), "nests deeper");
    refused_request(|request| request.filter = Some(NodeFilter::Has("gpu".into())), "asks for 1 node, 0 match");
    refused(
        |spec| {
            spec.array = Some(ArraySpec { indices: IndexSet::first_n(2), max_running: None });
            spec.components = vec![spec.components[0].clone(); 2];
        },
        "cannot be an array",
    );
}

/// SL-C-09, SL-C-12: three nodes with four cores and 8 GiB each.
#[test]
fn tasks_that_as_many_nodes_never_have_room_for() {
    let room = |on: u32, tasks: u32, change: &dyn Fn(&mut Request)| {
        let mut spec = job(1, 1);
        let request = &mut spec.components[0].alternatives[0].requests[0];
        request.path = vec![LevelCount { level: Level::Node, count: Count::Range { min: 1, max: on } }];
        request.tasks = Some(tasks);
        change(request);
        match Cluster::new().run(&user("ada"), Command::Submit { jobs: vec![spec] }) {
            Ok(_) => String::new(),
            Err(refusal) => refusal.message,
        }
    };
    let never = |why: &str| format!("the job can never run: it asks for {why}");
    let as_asked = |_: &mut Request| {};
    assert_eq!(room(1, 4, &as_asked), "");
    let too_many = "5 tasks on 1 node, the nodes of queue `default` have room for 4";
    assert_eq!(room(1, 5, &as_asked), never(too_many));
    assert_eq!(room(2, 5, &as_asked), "");
    let wide = |request: &mut Request| request.cpus_per_task = 3;
    assert_eq!(room(1, 2, &wide), never("2 tasks on 1 node, the nodes of queue `default` have room for 1"));
    assert_eq!(room(3, 3, &wide), "");
    let few = |request: &mut Request| request.tasks_per_node = Some(1);
    assert_eq!(room(3, 3, &few), "");
    assert_eq!(room(2, 3, &few), never("3 tasks on 2 nodes, the nodes of queue `default` have room for 2"));
    let large = |per: Per| move |request: &mut Request| request.memory = Some(Memory { bytes: 5 << 30, per });
    assert_eq!(room(1, 1, &large(Per::Core)), "");
    let memory = "2 tasks on 1 node, the nodes of queue `default` have room for 1 with the memory that they ask for";
    assert_eq!(room(1, 2, &large(Per::Core)), never(memory));
    assert_eq!(room(1, 2, &large(Per::Task)), never(memory));
    assert_eq!(room(1, 2, &large(Per::Node)), "");
}

/// SL-C-09
#[test]
fn nodes_that_are_not_wanted_exist() {
    refused_request(
        |request| request.excluded_nodes = vec!["node9".into()],
        "excludes node `node9`, which does not exist",
    );
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].requests[0].excluded_nodes = vec!["node1".into()];
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", spec.clone());
    let without = |node: &str| {
        let mut ways = spec.components[0].alternatives.clone();
        ways[0].requests[0].excluded_nodes.push(node.into());
        let change = JobChange { alternatives: Some(ways), ..JobChange::default() };
        Command::Modify { jobs: JobSelection::Ids(vec![id]), change }
    };
    cluster.refused(
        &user("ada"),
        without("node9"),
        RefusalCode::Invalid,
        "excludes node `node9`, which does not exist",
    );
    cluster.ok(&user("ada"), without("node2"));
}
