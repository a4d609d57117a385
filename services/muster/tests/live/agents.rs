//! Agents: nodes that only reach a gateway, and those who pretend to be some (OAR-K).

use crate::system::{Output, System, free_login_shells};
use muster_archive::{files_of, pack};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::{MetadataExt as _, PermissionsExt},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Longer than anything a test waits for on a working machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A system with a node of its own and with nodes `far1` and `far2`, whose agents ask for their orders.
struct Site {
    system: System,
    options: Vec<String>,
}

/// An agent that runs.
struct Agent {
    process: Child,
}

impl Site {
    fn start(settings: &str) -> Self {
        let mut system = System::stopped();
        let mut lines = String::new();
        for node in ["far1", "far2", "far3"] {
            let Output { status, stdout, stderr } = system.run(&["agent", "token", node]);
            assert_eq!(status, 0, "{stderr}");
            system.write(&format!("token.{node}"), &stdout);
            fs::set_permissions(system.path(&format!("token.{node}")), PermissionsExt::from_mode(0o600)).unwrap();
            lines.push_str(stderr.lines().last().expect("the line for the gateway"));
            lines.push('\n');
        }
        system.write("agents", &lines);
        fs::set_permissions(system.path("agents"), PermissionsExt::from_mode(0o644)).unwrap();
        let far = |name: &str| {
            format!("[[nodes]]\nname = \"{name}\"\ncores = 2\nmemory = \"1G\"\nproperties = {{ pull = true }}\n")
        };
        let agents = system.path("agents").display().to_string();
        let settings = format!(
            "agents_file = \"{agents}\"\nmax_archive_bytes = 1048576\n[cluster]\n{settings}\n\
             [[queues]]\nname = \"default\"\n{}{}",
            far("far1"),
            far("far2")
        );
        let options = system.configure_for_others(1, &settings);
        fs::set_permissions(system.path(""), PermissionsExt::from_mode(0o711)).unwrap();
        let mut site = Self { system, options };
        site.restart();
        site
    }

    fn restart(&mut self) {
        self.system.restart(&self.options.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn token(&self, node: &str) -> String {
        self.system.read(&format!("token.{node}")).trim().to_owned()
    }

    fn command(&self, node: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        let folder = self.system.path(&format!("agent.{node}"));
        command
            .args(["agent", "--server", &self.system.server(), "--node", node, "--period", "1", "--folder"])
            .arg(folder)
            .arg("--token-file")
            .arg(self.system.path(&format!("token.{node}")))
            .current_dir("/")
            .env_remove("MUSTER_SERVER")
            .env_remove("MUSTER_TOKEN")
            .env_remove("MUSTER_DATA")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }

    /// Starts an agent and waits until it has got its first orders.
    fn agent(&self, node: &str) -> Agent {
        let log = File::options().append(true).create(true).open(self.system.path("agent.log")).expect("a log file");
        let mut process = self.command(node).stderr(log).spawn().expect("muster starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut line).expect("text");
        assert!(line.starts_with("muster agent is ready: "), "`{line}`\n{}", self.system.read("agent.log"));
        Agent { process }
    }

    /// A folder that everybody can write to, for jobs that are submitted there.
    fn home(&self, name: &str) -> String {
        let path = self.system.path(name);
        fs::create_dir(&path).expect("it is new");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        path.display().to_string()
    }

    fn oarsub(&self, words: &[&str]) -> Output {
        let all: Vec<&str> = ["oar", "oarsub"].iter().chain(words).copied().collect();
        self.system.run_as_nobody(&all)
    }

    /// Submits a job for agents; returns its number.
    fn submit(&self, words: &[&str]) -> String {
        let words: Vec<&str> = ["-t", "desktop_computing"].iter().chain(words).copied().collect();
        let Output { status, stdout, stderr } = self.oarsub(&words);
        assert_eq!(status, 0, "{stderr}\n{}", self.system.log());
        stdout.trim().strip_prefix("OAR_JOB_ID=").expect("an id").to_owned()
    }

    fn is(&self, job: &str, wanted: &str) -> bool {
        let said = self.system.ok(&["oar", "oarstat", "-s", "-j", job]);
        said.trim().rsplit(": ").next() == Some(wanted)
    }

    fn wait(&self, job: &str, wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.is(job, wanted) {
            free_login_shells();
            let shown = || self.system.ok(&["job", "show", job]);
            assert!(
                Instant::now() < deadline,
                "job {job} is never {wanted}\n{}\n{}\n{}",
                shown(),
                self.system.log(),
                self.system.read("agent.log")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn node_state(&self, node: &str) -> String {
        let nodes = self.system.json(&["nodes", "--json"]);
        let found =
            nodes["nodes"].as_array().and_then(|all| all.iter().find(|one| one["spec"]["name"] == node).cloned());
        found.unwrap_or_default()["state"].as_str().unwrap_or_default().to_owned()
    }

    /// What is on record about agents.
    fn records(&self) -> Vec<String> {
        let events = self.system.ok(&["events", "--json", "--from", "1"]);
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let refused = events.filter(|event| event["data"]["command"] == "agent");
        refused.map(|event| format!("{} {}", event["actor"], event["data"]["message"])).collect()
    }

    fn has_record(&self, words: &str) {
        let records = self.records();
        assert!(records.iter().any(|record| record.contains(words)), "`{words}` is not among {records:#?}");
    }

    /// A request of somebody who speaks HTTP by hand: the status and the body.
    fn http(&self, token: &str, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let address = self.system.server();
        let address = address.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-length: {length}\r\n\r\n"
        )
        .unwrap();
        // It may be refused before all of it is sent.
        let _ = socket.write_all(body);
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    /// A pull of somebody who speaks HTTP by hand.
    fn pull(&self, node: &str, host: &str, parts: &[u64]) -> (u16, Value) {
        let pull = json!({ "host": host, "boot_id": "boot", "cores": 2, "memory_bytes": 1 << 30, "parts": parts });
        let (status, body) = self.http(&self.token(node), "POST", "/v1/agent/pull", pull.to_string().as_bytes());
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// Pulls until there is a job; returns its part.
    fn pulled_job(&self, node: &str) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, orders) = self.pull(node, node, &[]);
            assert_eq!(status, 200, "{orders}");
            if let Some(part) = orders["launch"][0]["part"].as_u64() {
                return part;
            }
            assert!(Instant::now() < deadline, "there is no job for {node}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Agent {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).expect("it runs");
    }

    fn status(mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().expect("it is our child") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the agent does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // A third signal ends it at once.
        for _ in 0..3 {
            let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGTERM);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        free_login_shells();
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn lives(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// OAR-K-01, OAR-K-02, OAR-K-05, OAR-K-06, OAR-K-07, OAR-K-08: the files that a job brings come first; its command runs in a
/// fresh folder; what is new or changed comes back as its owner's, with its output; the agent keeps only what others may
/// bring again.
#[test]
fn files_come_with_a_job_and_go_back_to_where_it_was_submitted() {
    let site = Site::start("");
    let home = site.home("home");
    let brought = site.system.path("brought");
    fs::create_dir_all(brought.join("sub")).unwrap();
    fs::write(brought.join("in.txt"), "input\n").unwrap();
    fs::write(brought.join("sub/changes"), "before\n").unwrap();
    for path in [&brought, &brought.join("sub")] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let agent = site.agent("far1");
    let bring = brought.display().to_string();
    let line = "cat in.txt; pwd; env | grep -E '^(OAR_JOBID|MUSTER_JOB_ID|HOME|MUSTER_TOKEN)='; echo new > new.txt; \
                mkdir deep; echo deep > deep/er; echo after >> sub/changes; echo bad >&2; exit 3";
    let job = site.submit(&["-d", &home, "-s", &bring, line]);
    site.wait(&job, "Terminated");
    let read = |name: &str| fs::read_to_string(Path::new(&home).join(name)).unwrap_or_default();
    let said = read(&format!("OAR.{job}.stdout"));
    let folder = site.system.path("agent.far1").display().to_string();
    assert!(said.starts_with("input\n") && said.contains(&format!("{folder}/jobs/")), "{said}");
    assert!(said.contains(&format!("OAR_JOBID={job}\n")) && said.contains(&format!("MUSTER_JOB_ID={job}\n")), "{said}");
    assert!(!said.contains("MUSTER_TOKEN"), "{said}");
    assert_eq!(read(&format!("OAR.{job}.stderr")), "bad\n");
    assert_eq!(
        (read("new.txt"), read("deep/er"), read("sub/changes")),
        ("new\n".into(), "deep\n".into(), "before\nafter\n".into())
    );
    assert!(!Path::new(&home).join("in.txt").exists(), "it has not changed");
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap().uid.as_raw();
    for name in ["new.txt", "deep", "deep/er", &format!("OAR.{job}.stdout")] {
        assert_eq!(fs::metadata(Path::new(&home).join(name)).unwrap().uid(), nobody, "{name}");
    }
    let shown = site.system.json(&["job", "show", &job, "--json"]);
    assert_eq!(shown["runs"][0]["nodes"][0]["exit"]["status"]["code"], 3, "{shown}");
    wait_for("the folder of the job to go", || entries(&Path::new(&folder).join("jobs")) == 0);
    assert_eq!(entries(&Path::new(&folder).join("cache")), 1);
    let gateway = site.system.path("data/agents");
    assert_eq!(files_of(&gateway).unwrap().len(), 1, "what came back is where it belongs");
    // The same files are sent once; a name that was given spares reading them.
    let sum = "0123456789abcdef0123456789abcdef";
    let again = site.submit(&["-d", &home, "-s", &bring, "--stagein-md5sum", sum, "cat sub/changes"]);
    site.wait(&again, "Terminated");
    assert_eq!(read(&format!("OAR.{again}.stdout")), "before\n", "each job has a folder of its own");
    let known = site.submit(&["-d", &home, "-s", "/nowhere", "--stagein-md5sum", sum, "cat in.txt"]);
    site.wait(&known, "Terminated");
    assert_eq!(read(&format!("OAR.{known}.stdout")), "input\n");
    assert_eq!(entries(&Path::new(&folder).join("cache")), 1);
    drop(agent);
}

/// OAR-K-05: ordinary jobs never go to such a node, and jobs for it go nowhere else, have one node, and are never shells.
#[test]
fn only_jobs_that_ask_for_it_go_to_such_a_node() {
    let site = Site::start("");
    let agent = site.agent("far1");
    let told = site.system.run(&["submit", "-N", "2", "--", "true"]);
    assert_ne!(told.status, 0, "only one node is near: {}", told.stdout);
    let told = site.system.run(&["submit", "-N", "2", "--constraint", "pull", "--", "true"]);
    assert!(told.status != 0 && told.stderr.contains("one of them"), "{}", told.stderr);
    assert_eq!(site.oarsub(&["-I", "-t", "desktop_computing"]).status, 17);
    let near = site.system.submit(&["-n", "1", "--", "true"]);
    site.system.wait_for_state(&near, "finished");
    let far = site.submit(&["-d", &site.home("home"), "true"]);
    site.wait(&far, "Terminated");
    let nodes = |job: &str| site.system.json(&["job", "show", job, "--json"])["runs"][0]["nodes"].to_string();
    assert!(nodes(&near).contains("node1") && nodes(&far).contains("far1"), "{} {}", nodes(&near), nodes(&far));
    drop(agent);
}

/// OAR-K-09: an order to end a job ends all its processes, also those that have left it, and drops its files; one that comes
/// before the start prevents it.
#[test]
fn a_job_that_is_ended_leaves_nothing() {
    let site = Site::start("");
    let home = site.home("home");
    // Nobody has asked for it yet.
    let (status, told) = site.pull("far1", "far1", &[]);
    assert_eq!(status, 200, "{told}");
    let never = site.submit(&["-d", &home, "touch never"]);
    site.system.wait_until("it is planned", || !site.is(&never, "Waiting"));
    site.system.ok(&["cancel", &never]);
    let agent = site.agent("far1");
    site.wait(&never, "Error");
    let pids = site.home("pids");
    let line =
        format!("touch left; setsid sh -c 'echo $$ > {pids}/own; exec sleep 1000' & echo $$ > {pids}/main; wait");
    let job = site.submit(&["-d", &home, &line]);
    let pid = |name: &str| fs::read_to_string(format!("{pids}/{name}")).unwrap_or_default();
    wait_for("the processes", || !pid("own").is_empty() && !pid("main").is_empty());
    assert!(lives(&pid("own")) && site.is(&job, "Running"));
    site.system.ok(&["oar", "oardel", &job]);
    site.wait(&job, "Error");
    wait_for("the processes to go", || !lives(&pid("own")) && !lives(&pid("main")));
    wait_for("the folder of the job to go", || entries(&site.system.path("agent.far1/jobs")) == 0);
    let left: Vec<_> = files_of(Path::new(&home)).unwrap().into_keys().collect();
    assert!(left.is_empty(), "{left:?}");
    drop(agent);
}

/// OAR-K-10: after a first signal the node takes no new job and its job finishes; after a second one its job is ended; an
/// agent that starts again puts the node back into service. OAR-K-03: a node that does not ask any more is suspected.
#[test]
fn an_agent_quits_in_two_steps() {
    let site = Site::start("agent_lost_after_seconds = 4");
    let home = site.home("home");
    let agent = site.agent("far1");
    let job = site.submit(&[
        "-d",
        &home,
        &format!("touch {home}/runs; until [ -e {home}/go ]; do sleep 0.05; done; echo done"),
    ]);
    wait_for("the job", || Path::new(&home).join("runs").exists());
    agent.signal(Signal::SIGTERM);
    site.system.wait_until("the node is out of service", || site.node_state("far1") == "drained");
    let next = site.submit(&["-d", &home, "echo next"]);
    fs::write(Path::new(&home).join("go"), "").unwrap();
    site.wait(&job, "Terminated");
    assert_eq!(fs::read_to_string(format!("{home}/OAR.{job}.stdout")).unwrap(), "done\n");
    assert_eq!(agent.status(), Some(0));
    assert!(site.is(&next, "Waiting"), "no new job came");
    let agent = site.agent("far1");
    site.wait(&next, "Terminated");
    let long = site.submit(&["-d", &home, &format!("touch {home}/long; sleep 1000")]);
    wait_for("the job", || Path::new(&home).join("long").exists());
    agent.signal(Signal::SIGINT);
    site.system.wait_until("the node is out of service", || site.node_state("far1") == "drained");
    assert!(site.is(&long, "Running"));
    agent.signal(Signal::SIGINT);
    assert_eq!(agent.status(), Some(0));
    site.system.wait_until("the job is not there any more", || !site.is(&long, "Running"));
    site.system.run(&["cancel", &long]);
    let agent = site.agent("far1");
    assert_eq!(site.node_state("far1"), "up");
    agent.signal(Signal::SIGKILL);
    site.system.wait_until("the node is suspected", || site.node_state("far1") == "lost");
    drop(agent);
}

/// OAR-R-20, OAR-R-18: a node that is silent is suspected and takes no job; it is trusted again when it answers, and takes the job.
#[test]
fn a_silent_node_is_suspected_until_it_answers() {
    let site = Site::start("agent_lost_after_seconds = 4");
    let home = site.home("home");
    let states = |node: &str| {
        let said = site.system.ok(&["oar", "oarnodes", "-s", node]);
        let states = said.lines().skip(1).filter_map(|line| line.rsplit_once(": ").map(|(_, state)| state.to_owned()));
        states.collect::<Vec<_>>()
    };
    let agent = site.agent("far1");
    assert_eq!((states("far1"), states("far2")), (vec!["Alive".to_owned(); 2], vec!["Absent".to_owned(); 2]));
    agent.signal(Signal::SIGKILL);
    drop(agent);
    site.system.wait_until("the node is suspected", || states("far1") == ["Suspected", "Suspected"]);
    let job = site.submit(&["-d", &home, "echo trusted"]);
    assert!(site.is(&job, "Waiting"), "a suspected node exists, and takes no job");
    let agent = site.agent("far1");
    site.wait(&job, "Terminated");
    assert_eq!(states("far1"), ["Alive", "Alive"]);
    assert_eq!(fs::read_to_string(format!("{home}/OAR.{job}.stdout")).unwrap(), "trusted\n");
    let told = site.system.ok(&["oar", "oarnodes", "-e", "2026-01-01 00:00:00", "far1"]);
    assert!(!told.is_empty(), "each change is an event");
    // Only an operator gives a node up for good.
    site.system.ok(&["oar", "oarnodesetting", "-s", "Dead", "-h", "far2"]);
    assert_eq!(states("far2"), ["Dead", "Dead"]);
    drop(agent);
}

/// OAR-K-01, OAR-K-06, OAR-K-07: jobs survive the end of their agent and of the gateway, and their ends and files arrive.
#[test]
fn jobs_survive_their_agent_and_the_gateway() {
    let mut site = Site::start("");
    let home = site.home("home");
    let waits = |name: &str| {
        format!("touch {home}/{name}; until [ -e {home}/{name}.go ]; do sleep 0.05; done; echo {name} > out.{name}")
    };
    let go = |name: &str| fs::write(Path::new(&home).join(format!("{name}.go")), "").unwrap();
    let there = |name: &str| Path::new(&home).join(name).exists();
    let agent = site.agent("far1");
    let first = site.submit(&["-d", &home, &waits("first")]);
    let second = site.submit(&["-d", &home, &waits("second")]);
    wait_for("both jobs", || there("first") && there("second"));
    agent.signal(Signal::SIGKILL);
    drop(agent);
    go("first");
    let agent = site.agent("far1");
    site.wait(&first, "Terminated");
    assert_eq!(fs::read_to_string(format!("{home}/out.first")).unwrap(), "first\n");
    site.system.stop();
    go("second");
    site.restart();
    site.wait(&second, "Terminated");
    assert_eq!(fs::read_to_string(format!("{home}/out.second")).unwrap(), "second\n");
    drop(agent);
}

/// OAR-K-06: a job that was handed out, and that the agent does not list any more, is in error.
#[test]
fn a_job_that_its_agent_forgets_is_in_error() {
    let site = Site::start("");
    let job = site.submit(&["-d", &site.home("home"), "true"]);
    let part = site.pulled_job("far1");
    let report = json!({ "host": "far1", "part": part, "ended": null });
    let (status, told) = site.http(&site.token("far1"), "POST", "/v1/agent/report", report.to_string().as_bytes());
    assert_eq!(status, 200, "{told}");
    site.wait(&job, "Running");
    let (_, orders) = site.pull("far1", "far1", &[part]);
    let forgets = json!({ "host": "far1", "boot_id": "boot", "cores": 2, "memory_bytes": 0, "as_of": orders["mark"] });
    let (status, told) = site.http(&site.token("far1"), "POST", "/v1/agent/pull", forgets.to_string().as_bytes());
    assert_eq!(status, 200, "{told}");
    site.system.wait_until("it does not run", || !site.is(&job, "Running"));
    let events = site.system.ok(&["job", "events", &job]);
    assert!(events.contains("no longer knows it"), "{events}");
    site.system.run(&["cancel", &job]);
    let agent = site.agent("far1");
    site.wait(&job, "Error");
    drop(agent);
}

/// OAR-K-04: an unknown host is refused, or made into a node if the settings say so; a node that is not marked is refused.
#[test]
fn unknown_hosts_are_refused_or_made_into_nodes() {
    let mut site = Site::start("");
    let mut refused = site.command("far3");
    let refused = refused.output().expect("muster starts");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(3) && said.contains("it is not part of the cluster"), "{said}");
    site.has_record("it is not part of the cluster");
    let known = format!("{} node1\n", blake3::hash(b"a token for node1").to_hex());
    site.system.write("agents", &(site.system.read("agents") + &known));
    let pull = json!({ "host": "node1", "boot_id": "boot", "cores": 2, "memory_bytes": 0 }).to_string();
    site.system.wait_until("the file is read again", || {
        site.http("a token for node1", "POST", "/v1/agent/pull", pull.as_bytes()).0 != 401
    });
    let (status, told) = site.http("a token for node1", "POST", "/v1/agent/pull", pull.as_bytes());
    assert!(status == 403 && told.contains("lacks the property"), "{status} {told}");
    site.system.stop();
    let config = site.system.read("others.toml").replace("[cluster]\n", "[cluster]\nagents_make_nodes = true\n");
    site.system.write("others.toml", &config);
    site.restart();
    let agent = site.agent("far3");
    assert_eq!(site.node_state("far3"), "up");
    drop(agent);
}

/// OAR-K-11: an agent speaks for its own node, about its own jobs, with its token; its archives stay in the folder. Whatever
/// else it tries is refused, changes nothing, and is on record.
#[test]
fn hostile_agents_are_refused_and_put_on_record() {
    let site = Site::start("");
    let home = site.home("home");
    assert_eq!(site.http("a wrong token", "POST", "/v1/agent/pull", b"{}").0, 401);
    assert_eq!(site.http(System::TOKEN, "POST", "/v1/agent/pull", b"{}").0, 401, "a user is no agent");
    assert_eq!(site.http(&site.token("far1"), "GET", "/v1/jobs", b"").0, 401, "an agent is no user");
    let (status, told) = site.pull("far1", "far2", &[]);
    assert!(status == 403 && told.to_string().contains("its token is for node `far1`"), "{told}");
    site.has_record("it speaks for node `far2`");
    // far2 has a job; far1 claims it.
    let job = site.submit(&["-d", &home, "-p", "network_address='far2'", "true"]);
    let part = site.pulled_job("far2");
    let (status, told) = site.pull("far1", "far1", &[part]);
    assert!(status == 403 && told.to_string().contains("which is on another node"), "{told}");
    let ended = |host: &str, part: u64, output: Value| {
        json!({ "host": host, "part": part, "output": output, "ended": {
            "status": { "code": 0 }, "cause": "itself", "started": null, "ended": "2026-11-26T12:00:00Z",
            "usage": { "cpu_time_micros": 0, "peak_memory_bytes": 0 } } })
    };
    let report = |node: &str, body: &Value| {
        site.http(&site.token(node), "POST", "/v1/agent/report", body.to_string().as_bytes())
    };
    for lie in [part, part + 1000] {
        let (status, told) = report("far1", &ended("far1", lie, Value::Null));
        assert!(status == 403 && told.contains("which is not on its node"), "{status} {told}");
        let path = format!("/v1/agent/output/{lie}?offset=0");
        assert_eq!(site.http(&site.token("far1"), "PUT", &path, b"x").0, 403);
    }
    site.has_record("which is not on its node");
    let (status, _) =
        site.http(&site.token("far1"), "GET", &format!("/v1/agent/stage-in/{}?part={part}", "a".repeat(64)), b"");
    assert_eq!(status, 403);
    let (status, told) =
        site.http(&site.token("far2"), "GET", &format!("/v1/agent/stage-in/{}?part={part}", "a".repeat(64)), b"");
    assert!(status == 403 && told.contains("does not bring"), "{status} {told}");
    assert!(!site.is(&job, "Terminated") && !site.is(&job, "Error"), "nothing of this counts");
    // Archives that lead out of the folder.
    fs::write(site.system.path("secret"), "untouched").unwrap();
    fs::set_permissions(site.system.path("secret"), PermissionsExt::from_mode(0o666)).unwrap();
    let send = |bytes: &[u8]| {
        let path = format!("/v1/agent/output/{part}?offset=0");
        let (status, told) = site.http(&site.token("far2"), "PUT", &path, bytes);
        assert_eq!(status, 200, "{told}");
        let output = json!({ "sum": blake3::hash(bytes).to_hex().to_string(), "bytes": bytes.len() });
        report("far2", &ended("far2", part, output))
    };
    for (kind, name, why) in [
        (b'0', "../secret", "leads out of the folder"),
        (b'0', "/etc/muster-was-here", "leads out of the folder"),
        (b'2', "link", "is a link"),
        (b'1', "link", "is a link"),
        (b'3', "device", "neither a file nor a folder"),
    ] {
        let (status, told) = send(&archive(kind, name));
        assert!(status == 422 && told.contains(why), "{name}: {status} {told}");
        site.has_record(why);
    }
    let (status, told) = send(b"no archive at all");
    assert_eq!(status, 422, "{told}");
    assert_eq!(site.system.read("secret"), "untouched");
    assert_eq!(entries(Path::new(&home)), 0);
    // Pieces with a gap, too many bytes, and what was not sent.
    let piece = |offset: u64, bytes: &[u8]| {
        site.http(&site.token("far2"), "PUT", &format!("/v1/agent/output/{part}?offset={offset}"), bytes).0
    };
    assert_eq!((piece(5, b"x"), piece(0, b"x"), piece(2_000_000, b"x")), (409, 200, 409));
    assert_eq!(piece(0, &vec![0; (1 << 20) + 1]), 413);
    let output = json!({ "sum": "0".repeat(64), "bytes": 1 });
    assert_eq!(report("far2", &ended("far2", part, output)).0, 409);
    let long = json!({ "launch_failed": "x".repeat(5000) });
    let mut wrong = ended("far2", part, Value::Null);
    wrong["ended"]["cause"] = long;
    assert_eq!(report("far2", &wrong).0, 422);
    // It is still the job's agent: a good archive and its end are taken.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("result"), "good").unwrap();
    let packed = folder.path().join("packed");
    pack(folder.path(), &["result".into()], File::create(&packed).unwrap(), 1 << 20).unwrap();
    let (status, told) = send(&fs::read(&packed).unwrap());
    assert_eq!(status, 200, "{told}");
    site.wait(&job, "Terminated");
    assert_eq!(fs::read_to_string(format!("{home}/result")).unwrap(), "good");
    // Once more, as if the answer had been lost: the run is over.
    assert_eq!(report("far2", &ended("far2", part, Value::Null)).0, 404);
}

/// An archive with one entry, made by hand.
fn archive(kind: u8, name: &str) -> Vec<u8> {
    let mut head = vec![0; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..107].copy_from_slice(b"0000644");
    head[124..135].copy_from_slice(b"00000000000");
    head[136..147].copy_from_slice(b"00000000000");
    head[156] = kind;
    head[157..168].copy_from_slice(b"/etc/passwd");
    head[257..263].copy_from_slice(b"ustar\0");
    head[148..156].copy_from_slice(b"        ");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head.extend([0; 1024]);
    head
}
