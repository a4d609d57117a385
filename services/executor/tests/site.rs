//! What sites add around jobs, and nodes that are not fit for more jobs. With real processes, as root.

mod common;

use common::{NODE, Node, code, modes, until};
use muster_executor::{
    ContainmentMode,
    containment::{Hierarchies, instance},
};
use muster_schemas::{
    PartId, RunId,
    command::Command,
    event::EndCause,
    node::{NodeOrder, OrderNode},
    unfit::UnfitCause,
};
use nix::unistd::Uid;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

/// A program of the site that begins in the work folder.
fn program(node: &Node, name: &str, text: &str) -> Option<PathBuf> {
    let path = node.work(name);
    fs::write(&path, format!("#!/bin/sh\ncd {}\n{text}\n", node.work("").display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Some(path)
}

/// Why the node was drained, once it is.
async fn drained(node: &Node) -> String {
    let why = |command: &Command| match command {
        Command::DrainNodes { nodes, reason, .. } if *nodes == [NODE] => Some(reason.clone()),
        _ => None,
    };
    node.told("that the node is drained", why).await
}

fn is_drained(node: &Node) -> bool {
    let notes = node.notes.lock().unwrap();
    notes.commands.iter().any(|one| matches!(one.command, Command::DrainNodes { .. }))
}

const fn part(run: u64) -> PartId {
    PartId::new(RunId(run), 0)
}

/// OAR-J-18: the programs around a job run on its first node, with the job, its owner, its nodes and its walltime.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_around_a_job_run_on_its_first_node() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.stop_executor().await;
    let note = "echo \"$(basename $0) $1 $2 $(tr '\\n' , < $3) $4\" >> log";
    node.config.job_prolog = program(&node, "prologue", note);
    node.config.job_epilog = program(&node, "epilogue", note);
    node.start_executor().await;
    fs::write(node.work("log"), "").unwrap();
    fs::set_permissions(node.work("log"), fs::Permissions::from_mode(0o666)).unwrap();
    let mut order = node.script(1, "echo job >> log");
    order.walltime_seconds = Some(90);
    let other = OrderNode { name: "other".into(), tasks: 1, component: 0, facts: None };
    order.nodes = Arc::new(vec![order.nodes[0].clone(), other.clone()]);
    let owner = order.owner.user.clone();
    assert_eq!(node.run(order.clone()).await.status, code(0));
    let told = node.read("log");
    let nodes = format!("{NODE},other,");
    let expected = [format!("prologue 1 {owner} {nodes} 90"), "job".to_owned(), format!("epilogue 1 {owner} {nodes} ")];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    // On the second node of a job nothing runs.
    let mut order = node.script(2, "echo job >> log");
    order.nodes = Arc::new(vec![other, order.nodes[0].clone()]);
    order.node_index = 1;
    node.launch(order).await;
    node.stop(2, muster_schemas::event::StopReason::PeerEnded, 1).await;
    node.ended(2).await;
    assert_eq!(node.read("log").lines().count(), 3);
    assert!(!is_drained(&node));
}

/// OAR-J-18: a program that fails makes the node unfit. Before the command it keeps the job from starting; after it, the job
/// keeps its outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_around_a_job_that_fails_makes_its_node_unfit() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.stop_executor().await;
    node.config.job_prolog = program(&node, "prologue", "echo no home; exit 1");
    node.start_executor().await;
    let exit = node.run(node.script(1, "touch ran")).await;
    assert!(matches!(&exit.cause, EndCause::Lost(why) if why.ends_with(": no home")), "{exit:?}");
    assert!(drained(&node).await.ends_with(": no home"));
    assert!(!node.work("ran").exists());

    let mut node = Node::start(ContainmentMode::Auto).await;
    node.stop_executor().await;
    node.config.job_epilog = program(&node, "epilogue", "echo no room; exit 1");
    node.start_executor().await;
    assert_eq!(node.run(node.script(1, "exit 3")).await.status, code(3));
    assert!(drained(&node).await.ends_with(": no room"));
}

/// OAR-S-07: the site says how the processes of a job are suspended. A program that fails makes the node unfit and ends the job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_site_says_how_jobs_are_suspended() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.stop_executor().await;
    // Each line is written while the job stands still, so that the order of the lines says so.
    let text = "test ! -e broken || { echo stuck; exit 1; }\n\
                test $1 = resume || kill -STOP $(cat $4)\necho \"$1 $2 $3\" >> log\ntest $1 = suspend || kill -CONT $(cat $4)";
    node.config.suspend_program = program(&node, "suspend", text);
    node.config.site_program_account = muster_names::User::numbered(Uid::effective().as_raw()).unwrap().name;
    node.start_executor().await;
    let order = node.script(1, "echo ready > ready; while test ! -e go; do sleep 0.01; done; echo on >> log");
    let owner = order.owner.user.clone();
    node.launch(order).await;
    node.text("ready").await;
    node.order(NodeOrder::Suspend { part: part(1) }).await;
    until("its suspension", || (node.read("log") == format!("suspend 1 {owner}\n")).then_some(())).await;
    fs::write(node.work("go"), "").unwrap();
    node.order(NodeOrder::Resume { part: part(1) }).await;
    assert_eq!(node.ended(1).await.status, code(0));
    assert_eq!(node.read("log"), format!("suspend 1 {owner}\nresume 1 {owner}\non\n"), "it stood still");
    assert!(!is_drained(&node));
    fs::write(node.work("broken"), "").unwrap();
    fs::remove_file(node.work("ready")).unwrap();
    fs::remove_file(node.work("go")).unwrap();
    node.launch(node.script(2, "echo ready > ready; sleep 1000")).await;
    node.text("ready").await;
    node.order(NodeOrder::Suspend { part: part(2) }).await;
    let exit = node.ended(2).await;
    assert!(matches!(&exit.cause, EndCause::Lost(why) if why.ends_with(": stuck")), "{exit:?}");
    assert!(drained(&node).await.ends_with(": stuck"));
    assert!(node.processes_of(2).is_empty());
}

/// OAR-S-04: programs of the site run right after the processes of a job have stopped and right before they continue, on its
/// first node. If the first one fails, the ledger is asked to let the job continue; if the second one does, the job ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_site_acts_right_after_a_suspension_and_right_before_its_end() {
    for mode in modes() {
        let mut node = Node::start(mode).await;
        node.stop_executor().await;
        // The kernel stops a process a moment after it was told to. From then on the job writes nothing.
        let beats = "for try in $(seq 50); do before=$(wc -c < beats); sleep 0.1; test $before = $(wc -c < beats) && break; done\n\
                     test $before = $(wc -c < beats) && echo \"$(basename $0) $1 still\" >> log";
        let text = format!("{beats}\ntest ! -e broken-$(basename $0) || {{ echo no server; exit 1; }}");
        node.config.after_suspend_program = program(&node, "stopped", &text);
        node.config.before_resume_program = program(&node, "continues", &text);
        node.config.site_program_account = muster_names::User::numbered(Uid::effective().as_raw()).unwrap().name;
        node.start_executor().await;
        let order = |run: u64| {
            node.script(
                run,
                ": > beats; echo ready > ready; while test ! -e go; do printf . >> beats; sleep 0.01; done",
            )
        };
        node.launch(order(1)).await;
        node.text("ready").await;
        node.order(NodeOrder::Suspend { part: part(1) }).await;
        until("its suspension", || (node.read("log") == "stopped 1 still\n").then_some(())).await;
        node.order(NodeOrder::Suspend { part: part(1) }).await;
        node.order(NodeOrder::Resume { part: part(1) }).await;
        until("its continuation", || (node.read("log") == "stopped 1 still\ncontinues 1 still\n").then_some(())).await;
        fs::write(node.work("go"), "").unwrap();
        assert_eq!(node.ended(1).await.status, code(0), "{mode:?}");
        assert_eq!(node.read("log").lines().count(), 2, "a repeated order runs nothing");
        let unwanted = |command: &Command| match command {
            Command::SuspensionUnwanted { part, why } => Some((part.run(), why.clone())),
            _ => None,
        };
        assert!(!node.notes.lock().unwrap().commands.iter().any(|one| unwanted(&one.command).is_some()));
        for name in ["broken-stopped", "broken-continues"] {
            fs::write(node.work(name), "").unwrap();
        }
        fs::remove_file(node.work("ready")).unwrap();
        fs::remove_file(node.work("go")).unwrap();
        node.launch(order(2)).await;
        node.text("ready").await;
        node.order(NodeOrder::Suspend { part: part(2) }).await;
        let (run, why) = node.told("that the suspension is unwanted", unwanted).await;
        assert!(run == RunId(2) && why.starts_with("after_suspend_program ") && why.ends_with(": no server"), "{why}");
        node.order(NodeOrder::Resume { part: part(2) }).await;
        let exit = node.ended(2).await;
        let is_said = matches!(&exit.cause, EndCause::Lost(why) if why.starts_with("before_resume_program "));
        assert!(is_said, "{mode:?}: {exit:?}");
        assert!(node.processes_of(2).is_empty(), "{mode:?}");
        assert!(!is_drained(&node), "the node is not at fault");
    }
}

/// Programs of a site that makes groups of its own in a hierarchy of the kernel.
struct OwnGroups {
    /// Where the groups of jobs are.
    folder: PathBuf,
    manager: String,
    reader: String,
    joiner: String,
}

impl OwnGroups {
    /// `None` if this host lets nobody make groups.
    fn find() -> Option<Self> {
        let name = format!("site-{}", std::process::id());
        let places = [
            ("/sys/fs/cgroup/unified", "0::"),
            ("/sys/fs/cgroup", "0::"),
            ("/sys/fs/cgroup/freezer", "[0-9]*:freezer:"),
        ];
        let makes = |(mount, _): &(&str, &str)| {
            let folder = PathBuf::from(mount).join(&name);
            fs::create_dir_all(&folder).is_ok() && folder.join("cgroup.procs").exists()
        };
        let (mount, line) = places.into_iter().find(makes)?;
        let folder = PathBuf::from(mount).join(&name);
        let at = folder.display();
        let manager = format!(
            "echo \"$*\" >> log\ntest ! -e broken-$1 || {{ echo no group; exit 1; }}\ncase $1 in create) mkdir {at}/$2 ;; remove)\n\
             for i in $(seq 500); do for p in $(cat {at}/$2/cgroup.procs); do kill -9 $p; done; rmdir {at}/$2 2> /dev/null && exit 0\n\
             sleep 0.01; done; exit 1 ;; esac"
        );
        let reader = format!("sed -n 's,^{line},,p' /proc/$1/cgroup | sed 's,^/{name}/,,'");
        let joiner = format!(
            "test ! -e broken-join || exit 0\ncase $1 in /*) echo $2 > {mount}$1/cgroup.procs ;; *) echo $2 > {at}/$1/cgroup.procs ;; esac"
        );
        Some(Self { folder, manager, reader, joiner })
    }

    fn groups(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

/// OAR-X-05, OAR-X-01: a site makes, reads and fills the groups of jobs with programs of its own. Whatever is in a group goes with
/// its job. A job that cannot be isolated does not start, and a group that stays makes its node unfit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_isolates_jobs_in_its_own_way() {
    if !Uid::effective().is_root() {
        return muster_surroundings::skipped("only root can make groups");
    }
    let mut node = Node::start(ContainmentMode::Auto).await;
    let Some(own) = OwnGroups::find() else {
        return muster_surroundings::skipped("this host lets nobody make control groups");
    };
    node.stop_executor().await;
    node.config.isolation_manager = program(&node, "manager", &own.manager);
    node.config.isolation_reader = program(&node, "reader", &own.reader);
    node.config.isolation_joiner = program(&node, "joiner", &own.joiner);
    node.config.site_program_account = "root".into();
    node.start_executor().await;
    let text = "./reader $$ > group; env -i setsid sleep 4321 & echo $! > left; while test ! -e go; do sleep 0.01; done; exit 3";
    let order = node.script(1, text);
    let group = format!("{}_1", order.owner.user);
    node.launch(order).await;
    let left = node.text("left").await;
    assert_eq!(node.text("group").await.trim(), group);
    assert_eq!(own.groups(), std::slice::from_ref(&group));
    fs::write(node.work("go"), "").unwrap();
    assert_eq!(node.ended(1).await.status, code(3));
    assert_eq!(own.groups(), [""; 0], "it is removed");
    assert!(!PathBuf::from("/proc").join(left.trim()).exists(), "with the process that has left the job");
    let log = node.read("log");
    let verbs: Vec<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(verbs, ["create", "remove"], "{log}");
    assert!(log.starts_with(&format!("create {group} 1 ")), "{log}");
    assert!(!is_drained(&node));
    // The job keeps its outcome if its group stays.
    fs::write(node.work("broken-remove"), "").unwrap();
    assert_eq!(node.run(node.script(2, "exit 4")).await.status, code(4));
    let why = drained(&node).await;
    assert!(
        why.starts_with("processes or control groups of job 2 cannot be removed: ") && why.ends_with(": no group"),
        "{why}"
    );
    fs::remove_file(node.work("broken-remove")).unwrap();
    for (broken, run) in [("broken-create", 3), ("broken-join", 4)] {
        fs::write(node.work(broken), "").unwrap();
        let exit = node.run(node.script(run, "touch ran")).await;
        let is_said =
            matches!(&exit.cause, EndCause::Lost(why) if why.starts_with("the run cannot be contained: isolation "));
        assert!(is_said, "{broken}: {exit:?}");
        fs::remove_file(node.work(broken)).unwrap();
    }
    assert!(!node.work("ran").exists());
    for left in own.groups() {
        fs::remove_dir(own.folder.join(left)).unwrap();
    }
    fs::remove_dir(&own.folder).unwrap();
}

/// OAR-X-05: isolation can be switched off: then no group is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn isolation_can_be_switched_off() {
    let node = Node::start(ContainmentMode::Process).await;
    node.launch(node.script(1, "echo ready > ready; while test ! -e go; do sleep 0.01; done")).await;
    node.text("ready").await;
    assert!(groups_of(&node).is_empty());
    fs::write(node.work("go"), "").unwrap();
    assert_eq!(node.ended(1).await.status, code(0));
}

/// OAR-X-06: a node where a job cannot be kept together is unfit, and the job ends as on a lost node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_keep_jobs_together_is_unfit() {
    for mode in modes() {
        let node = Node::start(mode).await;
        let groups = Hierarchies::detect(mode, &instance(NODE, node.spool())).unwrap();
        if !groups.has_groups() {
            continue;
        }
        groups.leave();
        let exit = node.run(node.script(1, "touch ran")).await;
        assert!(
            matches!(&exit.cause, EndCause::Lost(why) if why.contains("cannot be contained")),
            "{mode:?}: {exit:?}"
        );
        let why = drained(&node).await;
        assert_eq!(UnfitCause::of_reason(&why), Some(UnfitCause::Containment), "{mode:?}: {why}");
        assert!(!node.work("ran").exists());
    }
}

/// OAR-X-06: a node where the group of a job cannot be removed is unfit, and the job keeps its outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_where_something_of_a_job_stays_is_unfit() {
    for mode in modes() {
        let mut node = Node::start(mode).await;
        node.stop_executor().await;
        node.config.unkillable_seconds = 1;
        node.start_executor().await;
        node.launch(node.script(1, "echo ready > ready; while test ! -e go; do sleep 0.01; done; exit 4")).await;
        node.text("ready").await;
        // The kernel removes no group with another one in it.
        let inside: Vec<PathBuf> = groups_of(&node).into_iter().map(|group| group.join("inside")).collect();
        if inside.is_empty() {
            continue;
        }
        inside.iter().for_each(|group| fs::create_dir(group).unwrap());
        fs::write(node.work("go"), "").unwrap();
        assert_eq!(node.ended(1).await.status, code(4), "{mode:?}");
        let why = drained(&node).await;
        assert_eq!(why, "processes or control groups of job 1 cannot be removed", "{mode:?}");
        assert_eq!(UnfitCause::of_reason(&why), Some(UnfitCause::Remains));
        for group in inside {
            fs::remove_dir(&group).unwrap();
            // Some hierarchies remove it themselves.
            let _ = fs::remove_dir(group.parent().unwrap());
        }
    }
}

/// The groups of the only run of a node.
fn groups_of(node: &Node) -> Vec<PathBuf> {
    let own = instance(NODE, node.spool());
    let below = |folder: &PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries
            .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| path.is_dir() && !path.is_symlink()))
            .collect()
    };
    let root = PathBuf::from("/sys/fs/cgroup");
    let mounts: Vec<PathBuf> = below(&root).into_iter().chain([root]).collect();
    let bases = mounts.iter().flat_map(below).map(|parent| parent.join(&own)).filter(|base| base.is_dir());
    let mut groups: Vec<PathBuf> = bases.flat_map(|base| below(&base)).collect();
    groups.sort();
    groups.dedup();
    groups
}

/// OAR-X-08: files of a user go with the user's last job on the node, and those of others stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_jobs_leaves_no_files() {
    if !Uid::effective().is_root() {
        return muster_surroundings::skipped("only root can run jobs of others");
    }
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.stop_executor().await;
    let shared = node.work("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    node.config.cleaned_folders = vec![shared.clone()];
    node.start_executor().await;
    let of_nobody = |run: u64, text: &str| {
        let mut order = node.script(run, text);
        order.owner.user = "nobody".into();
        order
    };
    fs::write(shared.join("of-root"), "").unwrap();
    let waits = "echo ready > ready; while test ! -e go; do sleep 0.01; done";
    node.launch(of_nobody(1, &format!("ipcmk -M 64 > /dev/null; mkdir -p shared/tree/x; {waits}"))).await;
    node.text("ready").await;
    assert_eq!(node.run(of_nobody(2, "touch shared/of-second")).await.status, code(0));
    assert!(shared.join("of-second").exists(), "the user has another job");
    assert_eq!(node.run(node.script(3, "touch shared/of-third")).await.status, code(0));
    fs::write(node.work("go"), "").unwrap();
    assert_eq!(node.ended(1).await.status, code(0));
    let mut left: Vec<_> = fs::read_dir(&shared).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["of-root", "of-third"]);
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let place = table.lines().next().and_then(|head| head.split_whitespace().position(|word| word == "uid"));
    let of_user = |line: &str| place.and_then(|place| line.split_whitespace().nth(place)) == Some("65534");
    assert!(!table.lines().any(of_user), "{table}");
}
