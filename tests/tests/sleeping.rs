//! Nodes that really sleep: their executor is gone when the site's program has put them to sleep, and is started when the other
//! program has woken them. Both programs get names on their standard input and write them down; the test is what stands between
//! the programs and the machines of a site.

#[allow(dead_code, reason = "it is shared")]
mod cluster;

use cluster::{Cluster, assert_history_verifies, text};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);
const NODES: [&str; 4] = ["node1", "node2", "node3", "node4"];

/// What has become of the orders of the programs.
#[derive(Default)]
struct Room {
    /// Nodes whose power does not come back.
    broken: BTreeSet<String>,
    /// How often each node was woken.
    woken: BTreeMap<String, u32>,
    /// While it is set, no order is carried out.
    waits: bool,
}

/// A site whose nodes sleep after two seconds without job.
struct Site {
    cluster: Arc<Cluster>,
    room: Arc<Mutex<Room>>,
    is_over: Arc<AtomicBool>,
    machines: Option<thread::JoinHandle<()>>,
}

impl Site {
    fn start() -> Self {
        let cluster = Arc::new(Cluster::start());
        // The programs run as an account that may do nothing else here.
        let power = cluster.folder.path().join("power");
        fs::create_dir(&power).expect("a folder");
        for (path, mode) in [(cluster.folder.path().to_owned(), 0o711), (power.clone(), 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its own folder");
        }
        for way in ["sleep", "wake"] {
            let program = power.join(way);
            let orders = power.display();
            // A whole file appears under its name at once.
            let script = format!("#!/bin/sh\ncat >{orders}/new.$$ && mv {orders}/new.$$ {orders}/{way}.$$.order\n");
            fs::write(&program, script).expect("a program");
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its own file");
        }
        let (room, is_over) = (Arc::new(Mutex::new(Room::default())), Arc::new(AtomicBool::new(false)));
        let machines = {
            let (cluster, room, is_over) = (Arc::clone(&cluster), Arc::clone(&room), Arc::clone(&is_over));
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    carry_out(&cluster, &power, &room);
                    thread::sleep(Duration::from_millis(20));
                }
            })
        };
        let site = Self { cluster, room, is_over, machines: Some(machines) };
        site.configure();
        site
    }

    /// Nodes sleep soon, and have some seconds to wake.
    fn configure(&self) {
        let file = self.cluster.folder.path().join("etc/ledger.toml");
        let power = self.cluster.folder.path().join("power");
        let config = fs::read_to_string(&file).expect("the ledger's configuration");
        let config = config.replace("[cluster]\n", "[cluster]\nnode_lost_after_seconds = 8\n");
        let energy = format!(
            "\n[energy]\nsleep_program = [\"{0}/sleep\"]\nwake_program = [\"{0}/wake\"]\naccount = \"nobody\"\n\
             idle_seconds = 2\nsleep_seconds = 0\nwake_up_seconds = 1\nwake_timeouts = [\"1:15\"]\npause_seconds = 0\n",
            power.display()
        );
        fs::write(&file, config + &energy).expect("the ledger's configuration");
        let applied = self.cluster.muster(&["config", "apply"]).arg(&file).output().expect("muster can be run");
        assert!(applied.status.success(), "{}", text(&applied));
    }

    fn room(&self) -> std::sync::MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ok(&self, words: &[&str]) -> String {
        // The words may end with those of a job.
        let output = self.cluster.muster(&[]).args(words).output().expect("muster can be run");
        assert!(output.status.success(), "{words:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn json(&self, words: &[&str]) -> Option<Value> {
        let output = self.cluster.muster(words).arg("--json").output().expect("muster can be run");
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// Waits until something is so.
    fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "waited in vain until {what}: {:?}", self.phases());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The power state of each node that is not simply awake.
    fn phases(&self) -> BTreeMap<String, String> {
        let nodes = self.json(&["nodes"]).unwrap_or_default();
        let phase = |node: &Value| {
            let name = node["spec"]["name"].as_str()?.to_owned();
            Some((name, node["power"]["phase"].as_str()?.to_owned()))
        };
        nodes["nodes"].as_array().into_iter().flatten().filter_map(phase).collect()
    }

    fn wait_until_asleep(&self, nodes: &[&str]) {
        self.wait_until(&format!("{nodes:?} sleep"), || {
            let phases = self.phases();
            nodes.iter().all(|node| phases.get(*node).is_some_and(|phase| phase == "asleep"))
        });
    }

    fn submit(&self, options: &[&str]) -> String {
        let marks = self.cluster.markers().display().to_string();
        let script = format!("echo $MUSTER_JOB_ID >>{marks}");
        let words = [&["submit", "--parsable", "-o", "/dev/null"], options, &["--", "sh", "-c", &script]].concat();
        self.ok(&words).trim().to_owned()
    }

    fn wait_until_completed(&self, job: &str) {
        self.wait_until(&format!("job {job} has completed"), || {
            let shown = self.json(&["job", "show", job]).unwrap_or_default();
            shown["job"]["outcome"]["outcome"] == "completed"
        });
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let lines = self.ok(&["events", "--kind", kind, "--json"]);
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(machines) = self.machines.take() {
            // If it failed, the cluster tells why the test did.
            let _ = machines.join();
        }
    }
}

/// Stops and starts nodes as the programs have asked.
fn carry_out(cluster: &Cluster, power: &Path, room: &Mutex<Room>) {
    for entry in fs::read_dir(power).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut room = room.lock().unwrap_or_else(PoisonError::into_inner);
        if !name.ends_with(".order") || room.waits {
            continue;
        }
        let nodes = fs::read_to_string(entry.path()).expect("an order");
        fs::remove_file(entry.path()).expect("it is there");
        for node in nodes.lines() {
            let is_wake = name.starts_with("wake.");
            if is_wake {
                *room.woken.entry(node.to_owned()).or_default() += 1;
            }
            match is_wake {
                true if room.broken.contains(node) => {}
                // A program that is run twice asks twice; what is so already stays so.
                true => drop(cluster.control(&["restart"], &[node])),
                false => drop(cluster.control(&["kill"], &[node])),
            }
        }
    }
}

/// OAR-E-03, OAR-E-04: machines that sleep are gone, and come back for the job that needs them, and no others; its processes
/// run once. OAR-E-06: a machine that does not come back is lost, and its job runs elsewhere.
#[test]
fn machines_sleep_and_wake_for_jobs_and_one_that_does_not_is_done_without() {
    let site = Site::start();
    site.wait_until_asleep(&NODES);
    let job = site.submit(&["-N", "2", "-n", "2"]);
    site.wait_until_completed(&job);
    let woken: Vec<u32> = site.room().woken.values().copied().collect();
    assert_eq!(woken, [1, 1], "two nodes were needed, and each was woken once");
    let marks = fs::read_to_string(site.cluster.markers()).expect("the job's marks");
    assert_eq!(marks, format!("{job}\n").repeat(2));
    site.wait_until_asleep(&NODES);

    site.room().broken = ["node1".to_owned()].into();
    let job = site.submit(&["-N", "1", "-n", "1", "--nodelist", "node1"]);
    let other = site.submit(&["-N", "4", "-n", "4"]);
    site.wait_until("node1 has failed", || !site.events("node.power_failed").is_empty());
    site.ok(&["job", "cancel", &job, &other]);
    let job = site.submit(&["-N", "3", "-n", "3"]);
    site.wait_until_completed(&job);
    let marks = fs::read_to_string(site.cluster.markers()).expect("the job's marks");
    assert_eq!(marks.lines().filter(|line| *line == job).count(), 3);
    assert_history_verifies(&site.cluster);
}

/// OAR-E-03: a ledger that is killed in the middle of a wake-up neither forgets the order nor makes a second one.
#[test]
fn a_wake_up_survives_the_ledger() {
    let site = Site::start();
    site.wait_until_asleep(&NODES);
    let before = site.events("power.ordered").len();
    site.room().waits = true;
    let job = site.submit(&["-N", "1", "-n", "1"]);
    site.wait_until("a wake-up is ordered", || site.events("power.ordered").len() > before);
    for (way, role) in [("kill", "ledger"), ("kill", "planner"), ("restart", "ledger"), ("restart", "planner")] {
        let done = site.cluster.control(&[way], &[role]);
        assert!(done.status.success(), "{way} {role}: {}", text(&done));
    }
    site.room().waits = false;
    site.wait_until_completed(&job);
    let orders = site.events("power.ordered");
    let wakes = orders.iter().filter(|event| event["data"]["way"] == "wake").count();
    assert_eq!(wakes, 1, "{orders:?}");
    assert_eq!(site.room().woken.values().sum::<u32>(), 1);
    let marks = fs::read_to_string(site.cluster.markers()).expect("the job's marks");
    assert_eq!(marks, format!("{job}\n"), "it runs once");
    assert_history_verifies(&site.cluster);
}
