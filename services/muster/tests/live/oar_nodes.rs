//! OAR's commands for nodes, their properties, queues and rules, on a live system.

use crate::{
    oar::{CONFIGURATION, site, state, wait_for},
    slurm::Site,
    system::System,
};
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path};

/// A row of `oarnodes -s`: the states of a node's resources, each once.
fn states(site: &Site, node: &str) -> Vec<String> {
    let said = site.ok(&format!("oarnodes -s {node}"));
    let mut states: Vec<String> =
        said.lines().skip(1).filter_map(|line| line.rsplit_once(": ").map(|(_, state)| state.to_owned())).collect();
    states.dedup();
    states
}

/// OAR-C-01, OAR-C-10, OAR-C-11, OAR-C-14, OAR-R-18, OAR-R-19, OAR-R-21: nodes change their states; jobs end where they go away, and go on where
/// they drain or are suspected.
#[test]
fn nodes_change_their_states_and_jobs_end_with_those_that_go() {
    let site = site();
    let on = |node: &str| {
        let said = site.ok(&format!("oarsub -p \"host = '{node}'\" 'sleep 600'"));
        let job = said.trim().trim_start_matches("OAR_JOB_ID=").parse().expect("a number");
        wait_for(&site, job, "Running");
        job
    };
    let (one, two, three) = (on("node1"), on("node2"), on("node3"));
    site.ok("oarsub -t noop -p \"host = 'node1'\"");
    wait_for(&site, 4, "Running");
    let said = site.ok("oarnodesetting -s Absent -h node1");
    assert_eq!(said, format!("node1 --> Absent\nDeleting the job = {one}\n"));
    assert_eq!((state(&site, one).as_str(), state(&site, 4).as_str()), ("Error", "Running"), "it waits for the end");
    assert_eq!(states(&site, "node1"), ["Absent"]);
    site.ok("oarnodesetting -s Suspected --sql \"host = 'node2'\"");
    site.ok("oarnodesetting -d on -r 9 -r 10 -r 11 -r 12");
    assert_eq!((states(&site, "node2"), states(&site, "node3")), (vec!["Suspected".into()], vec!["Alive".into()]));
    assert_eq!(site.ok("oarnodes --sql \"drain = 'YES'\" -s").lines().count(), 4);
    // Only the fourth node takes a new job.
    site.ok("oarsub -l nodes=1 'cat $OAR_NODEFILE'");
    wait_for(&site, 5, "Terminated");
    assert_eq!(site.system.read("OAR.5.stdout"), "node4\n".repeat(4));
    assert_eq!((state(&site, two).as_str(), state(&site, three).as_str()), ("Running", "Running"));
    site.ok("oarnodesetting -m on -n -h node4");
    assert_eq!(states(&site, "node4"), ["Absent"]);
    site.ok("oarnodesetting -m off -h node4");
    site.ok("oarnodesetting -s Alive -h node1 -h node2");
    site.ok("oarnodesetting -d off -h node3");
    let all: Vec<String> = (1..=4).flat_map(|node| states(&site, &format!("node{node}"))).collect();
    assert_eq!(all, ["Alive"; 4]);
    let events = site.ok("oarnodes -e '2026-01-01 00:00:00' node1");
    let told = events.lines().filter(|line| line.contains("| node1| NODE_DRAINED: oarnodesetting: Absent")).count();
    assert!(told == 1 && !events.contains("node2"), "{events}");
    for (line, text) in [
        ("oarnodesetting -s Absent -h node9", "no node is called 'node9'"),
        ("oarnodesetting -s Absent -r 1", "1 of the 4 resources of node1"),
        ("oarnodesetting -s Asleep -h node1", "expected Alive, Absent, Suspected or Dead"),
        ("oarnodesetting -s Absent", "usage: oarnodesetting"),
        ("oarnodesetting -s Dead -m on -h node1", "give one of them"),
        ("oarremoveresource 1 2 3 4", "is Alive, not Dead"),
        ("oarremoveresource 99", "resource '99' does not exist"),
    ] {
        let (status, error) = site.fails(line);
        assert!(status != 0 && error.contains(text), "{line}: {status} {error}");
    }
}

/// OAR-C-11, OAR-C-13, OAR-R-01, OAR-R-22: properties are added, set, renamed and removed, requests see them at once, and
/// each value is an event; nodes are added and removed.
#[test]
fn properties_and_nodes_come_and_go_at_run_time() {
    let site = site();
    assert_eq!(site.ok("oarproperty -a mem -a rank"), "Added property: mem\nAdded property: rank\n");
    assert_eq!(site.ok("oarproperty -c -a wing"), "Added property: wing\n");
    let listed = site.ok("oarproperty -l");
    assert!(["mem", "rank", "wing"].iter().all(|name| listed.lines().any(|line| line == *name)), "{listed}");
    assert_eq!(
        site.ok("oarnodesetting -h node2 -p mem=64 -p wing=east"),
        "Set property mem to 64 on node2\nSet property wing to east on node2\n"
    );
    site.ok("oarnodesetting -h node1 -p mem=32 -p wing=west");
    site.ok("oarsub -p \"mem > 32 AND wing LIKE 'ea%'\" 'sort -u $OAR_NODEFILE'");
    wait_for(&site, 1, "Terminated");
    assert_eq!(site.system.read("OAR.1.stdout"), "node2\n");
    assert_eq!(site.ok("oarproperty -r mem,ram"), "Rename property mem into ram\n");
    assert!(site.ok("oarnodes -r 5").contains("ram=64"));
    assert!(site.fails("oarsub -p 'mem > 1' true").1.contains("no property is called 'mem'"));
    site.ok("oarnodesetting -h node2 -p ram!");
    assert!(!site.ok("oarnodes -r 5").contains("ram"));
    assert_eq!(site.ok("oarproperty -q -d wing"), "");
    assert!(!site.ok("oarnodes -r 1").contains("wing"));
    for (line, text) in [
        ("oarnodesetting -h node1 -p ram=much", "ram is an integer; 'much' is not"),
        ("oarnodesetting -h node1 -p wing=x", "no property is called 'wing'"),
        ("oarnodesetting -h node1 -p core=3", "the system sets it itself"),
        ("oarproperty -a ram", "the property ram exists"),
        ("oarproperty -d state", "stays; nothing was changed"),
        ("oarproperty -a 'a b'", "cannot be the name of a property"),
    ] {
        let (status, error) = site.fails(line);
        assert!(status == 1 && error.contains(text), "{line}: {status} {error}");
    }
    let changes = site.system.ok(&["events", "--kind", "node.changed"]);
    assert!(changes.lines().count() >= 5, "each value is an event:\n{changes}");
    let said =
        site.ok("oar_resources_add -H 1 --host0 5 --host-prefix node -C 2 -c 2 --memory 2G -a '-p ram=128' | sh");
    assert_eq!(said, "New resource added: node5 17 18 19 20\n");
    assert_eq!(site.ok("oarnodes --sql 'ram = 128 AND cpu = 6' -s").lines().count(), 2, "it has two cpus");
    assert_eq!(site.ok("oarnodesetting -a -h node5"), "New resource added: node5 17 18 19 20 21\n");
    assert_eq!(states(&site, "node5"), ["Absent"]);
    site.ok("oarnodesetting -s Dead -h node5");
    assert_eq!(states(&site, "node5"), ["Dead"]);
    assert_eq!(site.fails("oarremoveresource 17 18").0, 1, "a part of a node");
    assert!(site.ok("oarremoveresource 17 18 19 20 21").ends_with("Resource 21 removed.\n"));
    assert!(!site.ok("oarnodes -l").contains("node5"));
}

/// OAR-E-10: a node that is being put to sleep and tells at its halt that it is absent stands by, and is not out of service; what
/// it tells at its boot changes nothing.
#[test]
fn a_node_that_is_put_to_sleep_tells_its_own_state() {
    let energy = "\n[energy]\nsleep_program = [\"/bin/true\"]\nwake_program = [\"/bin/true\"]\nidle_seconds = 1\nsleep_seconds = 0\n";
    let site = Site::on(System::stopped_in(Path::new("/var/tmp")), &format!("{CONFIGURATION}{energy}"));
    let view = |node: &str| {
        let nodes = site.system.json(&["nodes", "--json"]);
        let nodes = nodes["nodes"].as_array().cloned().unwrap_or_default();
        nodes.into_iter().find(|view| view["spec"]["name"] == node).expect("it is known")
    };
    site.system.wait_until("node1 falls asleep", || view("node1")["power"]["phase"] == "falling_asleep");
    assert_eq!(site.ok("oarnodesetting -s Absent -h node1"), "node1 --> StandBy\n");
    assert_eq!(states(&site, "node1"), ["StandBy"]);
    assert_eq!(view("node1")["power"]["phase"], "falling_asleep", "it is not out of service: {}", view("node1"));
    assert_eq!(site.ok("oarnodesetting -s Alive -h node1"), "");
    assert!(!site.system.ok(&["events", "--kind", "node.drained"]).contains("node1"));
}

/// OAR-C-13, OAR-Q-13: queues are listed, added, disabled and removed; a disabled one starts nothing.
#[test]
fn queues_are_added_disabled_and_removed() {
    let site = site();
    assert_eq!(
        site.ok("oarqueue --add fast,7,fifo -d long"),
        "Adding queue fast with priority 7 and policy fifo.\nDisabling queue long.\n"
    );
    let listed = site.ok("oarqueue");
    assert!(listed.contains("fast\n\tpriority = 7\n\tpolicy = fifo\n\tstate = Active\n"), "{listed}");
    assert!(listed.contains("long\n\tpriority = 0\n\tpolicy = fifo\n\tstate = notActive\n"), "{listed}");
    site.ok("oarsub -q long true");
    site.ok("oarsub -q fast true");
    wait_for(&site, 2, "Terminated");
    assert_eq!(state(&site, 1), "Waiting");
    let (status, error) = site.fails("oarqueue --remove long");
    assert!(status == 1 && error.contains("has jobs, among them 1"), "{error}");
    assert_eq!(site.ok("oarnotify -E"), "Enabling all queues.\n");
    wait_for(&site, 1, "Terminated");
    assert_eq!(site.ok("oarqueue --remove fast"), "Removing queue fast.\n");
    assert_eq!(site.fails("oarsub -q fast true").0, 8);
    let (status, error) = site.fails("oarnotify Qsub");
    assert!(status == 0 && error.contains("needs no notice"), "{error}");
    for line in ["oarqueue -e nope", "oarqueue --add default", "oarqueue --remove default", "oarqueue x"] {
        let (status, error) = site.fails(line);
        assert!(status == 1 && !error.is_empty(), "{line}: {status} {error}");
    }
}

/// OAR-C-07, OAR-C-13: the rules are shown, and the site's own one refuses jobs with its text from the moment on at which it
/// is added.
#[test]
fn rules_are_shown_and_the_site_has_one_of_its_own() {
    let folder = System::stopped_in(Path::new("/var/tmp"));
    std::fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).expect("it is ours");
    let site = Site::on(folder, &format!("{CONFIGURATION}\n[filter_runner]\naccount = \"nobody\"\n"));
    let listed = site.ok("oaradmissionrules -S");
    assert_eq!(listed.matches("RULE #").count(), 14, "{listed}");
    let (status, error) = site.fails("oaradmissionrules -n -r rule.pl");
    assert!(status == 1 && error.contains("absolute path"), "{error}");
    site.system.write("rule_2", "die ('no') if ( $user eq \"root\" or $user eq \"oar\" );\n");
    site.system.write("rule_40", "# ours\nif ($project eq '') { die 'no project' }\n");
    for (rule, text) in
        [("rule_2", "which keeps root and oar from submitting"), ("rule_40", "in Perl (line 2: $project)")]
    {
        let (status, error) = site.fails(&format!("oaradmissionrules -n -r {rule}"));
        assert!(status == 1 && error.contains(text) && error.contains("nothing was changed"), "{error}");
    }
    let rule = "#!/bin/sh\ngrep -q 'Name=\"good' \"$1\" && exit 0\n\
                echo message=names begin with good >$MUSTER_RESULT_FILE\nexit 2\n";
    site.system.write("rule", rule);
    site.ok("chmod 755 rule");
    assert_eq!(site.ok("oaradmissionrules -n -r $PWD/rule"), "New admission rule created: #15\n");
    assert!(site.ok("oaradmissionrules -s 15 -H").starts_with("submission filter 'rule': /"));
    let (status, error) = site.fails("oarsub -n bad true");
    assert_eq!(status, 8, "{error}");
    assert!(error.contains("names begin with good") && error.contains("(job id -2)"), "{error}");
    site.ok("oarsub -n good true");
    assert!(site.fails("oaradmissionrules -n -r /other").1.contains("nothing was changed"));
    assert!(site.fails("oaradmissionrules -d 3").1.contains("is built in"));
    assert_eq!(site.ok("oaradmissionrules -d 15"), "Admission rule deleted: #15\n");
    site.ok("oarsub -n bad true");
    assert_eq!(site.fails("oaradmissionrules -s 15").0, 1);
}

/// OAR-C-11, OAR-C-13, OAR-S-22: users look at nodes, queues, rules and usage, and change none of them, nor the jobs of others.
#[test]
fn users_look_and_change_nothing() {
    let system = System::start_for_others();
    system.ok(&["oar", "oarsub", "-d", "/", "-O", "/dev/null", "-E", "/dev/null", "sleep 600"]);
    let running = || system.ok(&["oar", "oarstat", "-s", "-j", "1"]) == "1: Running\n";
    system.wait_until("it runs", running);
    let oar = |line: &str| system.run_as_nobody(&[&["oar"][..], &line.split(' ').collect::<Vec<_>>()].concat());
    for line in [
        "oarnodes -s",
        "oarnodes -e",
        "oarqueue",
        "oaradmissionrules -S",
        "oarproperty -l",
        "oarstat --accounting 2026-01-01,2100-01-01",
        "oarstat --gantt 2026-01-01,2100-01-01",
        "oarprint -j 1 host",
        "oarwalltime 1",
        "oaraccounting",
    ] {
        let said = oar(line);
        assert!(said.status == 0 && !said.stdout.is_empty(), "{line}: {said:?}");
    }
    for (line, status) in [
        ("oarnodesetting -s Absent -h node1", 1),
        ("oarnodesetting -h node1 -p besteffort=NO", 1),
        ("oarnodesetting -a -h node2", 1),
        ("oarproperty -a mem", 1),
        ("oarqueue -D", 1),
        ("oarqueue --add mine,100", 1),
        ("oaradmissionrules -n -r /bin/true", 1),
        ("oaraccounting --delete-before=0", 1),
        ("oarwalltime 1 -0:30", 3),
        ("oarmonitor -j 1", 1),
    ] {
        let said = oar(line);
        assert_eq!(said.status, status, "{line}: {said:?}");
        assert!(!said.stderr.is_empty() && said.stdout.is_empty() || line.contains("oarmonitor"), "{line}: {said:?}");
    }
    let deleted = oar("oardel 1");
    assert!(deleted.status == 1 && deleted.stderr.contains("You are not the right user"), "{deleted:?}");
    assert!(running(), "{}", system.log());
    assert_eq!(system.ok(&["oar", "oarnodes", "-s"]).matches("Alive").count(), 4);
    assert!(system.ok(&["oar", "oarqueue"]).lines().count() == 4);
    assert_eq!(system.ok(&["oar", "oaradmissionrules", "-S", "-I"]).lines().count(), 14);
}
