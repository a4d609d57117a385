//! Programs of Open MPI and PMIx under servers of one and of two nodes; the test is the shim of each.

use muster_pmix::protocol::{self, Decoder, FromServer, Program, Reader, ToServer};
use muster_schemas::content::ContentBytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    net::TcpStream,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

/// Longer than any program here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Set in the process that is a server.
const IS_SERVER: &str = "MUSTER_PMIX_TEST_SERVER";

/// Not a test: the process of a server, which the tests start. Its socket to the shim is file descriptor 0.
#[test]
fn server_process() {
    if std::env::var_os(IS_SERVER).is_some() {
        use std::os::fd::AsFd as _;
        let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        let served = muster_pmix::serve(&UnixStream::from(socket));
        std::process::exit(served.is_err().into());
    }
}

enum Event {
    Said { node: usize, message: FromServer },
    Closed { node: usize },
    Ended { rank: u32, status: ExitStatus, output: String },
}

/// A program that runs, and what has been heard of it.
struct World {
    namespace: String,
    servers: Vec<(Child, UnixStream)>,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    node_of_rank: Vec<u32>,
    /// The processes of tasks that have not ended.
    running: BTreeMap<u32, u32>,
    outputs: BTreeMap<u32, String>,
    statuses: BTreeMap<u32, ExitStatus>,
    joined: BTreeSet<u32>,
    finalized: BTreeSet<u32>,
    contributions: BTreeMap<usize, ContentBytes>,
    fences: u32,
    aborts: Vec<(u32, Option<i32>, String)>,
    /// Who was refused more processes.
    refused: BTreeSet<u32>,
    /// Further variables of the tasks.
    variables: Vec<(&'static str, &'static str)>,
    /// The fence that is answered with a failure.
    broken: Option<u32>,
    folders: Vec<tempfile::TempDir>,
}

impl World {
    /// Servers for a program of these ranks, and the variables of its tasks.
    fn new(node_of_rank: &[u32], app_of_rank: &[u32]) -> (Self, BTreeMap<u32, Vec<(String, String)>>) {
        let nodes = node_of_rank.iter().max().map_or(0, |last| last + 1);
        let mut world = Self::without_servers(node_of_rank);
        let mut environments = BTreeMap::new();
        for node in 0..nodes {
            environments.extend(world.start_server(node, nodes, app_of_rank));
        }
        (world, environments)
    }

    fn without_servers(node_of_rank: &[u32]) -> Self {
        let (sender, events) = mpsc::channel();
        // Open MPI names its shared memory by it.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("muster.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self {
            namespace,
            servers: Vec::new(),
            events,
            sender,
            node_of_rank: node_of_rank.to_vec(),
            running: BTreeMap::new(),
            outputs: BTreeMap::new(),
            statuses: BTreeMap::new(),
            joined: BTreeSet::new(),
            finalized: BTreeSet::new(),
            contributions: BTreeMap::new(),
            fences: 0,
            aborts: Vec::new(),
            refused: BTreeSet::new(),
            variables: Vec::new(),
            broken: None,
            folders: Vec::new(),
        }
    }

    /// The server of the first of these nodes, each of which has two tasks far from each other.
    fn of_first_node(nodes: u32) -> (Self, BTreeMap<u32, Vec<(String, String)>>) {
        let node_of_rank: Vec<u32> = (0..nodes).chain(0..nodes).collect();
        let mut world = Self::without_servers(&node_of_rank);
        let environments = world.start_server(0, nodes, &vec![0; node_of_rank.len()]);
        (world, environments.into_iter().collect())
    }

    fn start_server(&mut self, node: u32, nodes: u32, app_of_rank: &[u32]) -> Vec<(u32, Vec<(String, String)>)> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "server_process", "--nocapture"])
            .env(IS_SERVER, "1")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let program = Program {
            namespace: self.namespace.clone(),
            node,
            node_names: (0..nodes).map(|node| format!("node{node}")).collect(),
            node_of_rank: self.node_of_rank.clone(),
            app_of_rank: app_of_rank.to_vec(),
            uid: nobody_else().0,
            gid: nobody_else().1,
            temporary: folder.path().to_str().unwrap().to_owned(),
        };
        protocol::write(&ours, &ToServer::Begin(program)).unwrap();
        let mut reader = Reader::new(ours.try_clone().unwrap(), Decoder::of_shim());
        let Some(FromServer::Ready { environments }) = reader.read().unwrap() else {
            panic!("the server is not ready")
        };
        let (sender, node) = (self.sender.clone(), node as usize);
        std::thread::spawn(move || {
            while let Ok(Some(message)) = reader.read() {
                sender.send(Event::Said { node, message }).ok();
            }
            sender.send(Event::Closed { node }).ok();
        });
        self.servers.push((server, ours));
        self.folders.push(folder);
        environments
    }

    fn start(&mut self, rank: u32, program: &Path, arguments: &[&str], variables: &[(String, String)]) {
        // Nodes of one machine would share the memory of tasks of the same local rank.
        let memory = self.folders[self.node_of_rank[rank as usize] as usize].path();
        let child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().cloned())
            // Quick to start, and the same on any machine.
            .envs([("OMPI_MCA_pml", "ob1"), ("OMPI_MCA_btl", "self,vader,tcp"), ("OMPI_MCA_btl_tcp_if_include", "lo")])
            .env("OMPI_MCA_btl_vader_backing_directory", memory)
            .envs(self.variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        self.running.insert(rank, child.id());
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            sender.send(Event::Ended { rank, status: output.status, output: text }).ok();
        });
    }

    /// Plays the shims until all tasks have ended.
    fn play(&mut self) {
        while !self.running.is_empty() {
            match self.events.recv_timeout(PATIENCE) {
                Ok(Event::Said { node, message }) => self.said(node, message),
                Ok(Event::Closed { node }) => panic!("the server of node {node} has gone"),
                Ok(Event::Ended { rank, status, output }) => {
                    self.running.remove(&rank);
                    self.statuses.insert(rank, status);
                    self.outputs.insert(rank, output);
                    self.tell(self.node_of_rank[rank as usize] as usize, &ToServer::Ended { rank });
                }
                Err(_) => {
                    self.kill();
                    panic!("tasks hang: {:?}", self.outputs);
                }
            }
        }
        self.hear_the_rest();
    }

    /// Closes the servers' sockets and takes what they still say.
    fn hear_the_rest(&mut self) {
        for (_, socket) in &self.servers {
            socket.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let mut open = self.servers.len();
        while open > 0 {
            match self.events.recv_timeout(PATIENCE).unwrap() {
                Event::Said { node, message } => self.said(node, message),
                _ => open -= 1,
            }
        }
        for (server, _) in &mut self.servers {
            assert!(server.wait().unwrap().success());
        }
    }

    fn said(&mut self, node: usize, message: FromServer) {
        match message {
            FromServer::Joined { rank } => drop(self.joined.insert(rank)),
            FromServer::Finalized { rank } => drop(self.finalized.insert(rank)),
            FromServer::Fence { number, contribution } => self.fence(node, number, contribution),
            FromServer::Abort { rank, status, why } => {
                self.aborts.push((rank, status, why));
                self.kill();
            }
            FromServer::NoSpawn { rank } => drop(self.refused.insert(rank)),
            FromServer::Ready { .. } | FromServer::Failed { .. } => panic!("{message:?}"),
        }
    }

    fn fence(&mut self, node: usize, number: u32, contribution: ContentBytes) {
        assert_eq!(number, self.fences);
        self.contributions.insert(node, contribution);
        if self.contributions.len() < self.servers.len() {
            return;
        }
        self.fences += 1;
        let contributions = std::mem::take(&mut self.contributions).into_values().collect();
        let answer = if self.broken == Some(number) {
            ToServer::Broken { number, why: "a node is lost".into() }
        } else {
            ToServer::Met { number, contributions }
        };
        for node in 0..self.servers.len() {
            self.tell(node, &answer);
        }
    }

    fn tell(&self, node: usize, message: &ToServer) {
        protocol::write(&self.servers[node].1, message).unwrap();
    }

    fn kill(&self) {
        for process in self.running.values() {
            // SAFETY: the process is a child of this test, and its end has not been seen.
            unsafe { libc::kill(*process as i32, libc::SIGKILL) };
        }
    }

    /// What a task printed after this.
    fn fact<'a>(&'a self, rank: u32, what: &str) -> &'a str {
        let mut lines = self.outputs[&rank].lines();
        let line = lines.find_map(|line| line.strip_prefix(what)).unwrap_or_else(|| panic!("{}", self.outputs[&rank]));
        line.trim_start_matches(['=', ':', ' '])
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
        for (server, _) in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn nobody_else() -> (u32, u32) {
    // SAFETY: these have no preconditions.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Compiles a program of the folder beside this file; `None`, and a word about it, if something is missing here.
fn compiled(name: &str, compiler: &str, flags: &[&str]) -> Option<(PathBuf, tempfile::TempDir)> {
    if let Err(failure) = muster_pmix::available() {
        muster_surroundings::skipped(&failure.to_string());
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new(compiler).args(["-O1", "-o"]).arg(&program).arg(source).args(flags).output();
    match compiled {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            muster_surroundings::skipped(&format!("{compiler}: {error}"));
            return None;
        }
    }
    Some((program, folder))
}

fn ring() -> Option<(PathBuf, tempfile::TempDir)> {
    compiled("ring", "mpicc.openmpi", &[])
}

fn client() -> Option<(PathBuf, tempfile::TempDir)> {
    const INCLUDE: &str = "/usr/lib/x86_64-linux-gnu/pmix2/include";
    if !Path::new(INCLUDE).join("pmix.h").is_file() {
        muster_surroundings::skipped("the headers of PMIx (libpmix-dev) are not here");
        return None;
    }
    compiled("client", "cc", &["-I", INCLUDE, "-lpmix"])
}

/// Runs a program on all ranks, to its end.
fn run(program: &Path, arguments: &[&str], node_of_rank: &[u32], app_of_rank: &[u32]) -> World {
    run_with(program, arguments, node_of_rank, app_of_rank, &[])
}

/// The same, with further variables.
fn run_with(
    program: &Path,
    arguments: &[&str],
    node_of_rank: &[u32],
    app_of_rank: &[u32],
    variables: &[(&'static str, &'static str)],
) -> World {
    let (mut world, environments) = World::new(node_of_rank, app_of_rank);
    world.variables = variables.to_vec();
    for (rank, variables) in &environments {
        world.start(*rank, program, arguments, variables);
    }
    world.play();
    world
}

fn assert_is_ring(world: &World) {
    let size = world.node_of_rank.len() as u32;
    let (number, sum) = (1 << (size - 1), size * (size - 1) / 2);
    for rank in 0..size {
        // Only the first rank sees the number after all others.
        let seen = if rank == 0 { number } else { 1 << rank };
        assert_eq!(world.outputs[&rank], format!("rank {rank} of {size}: number {seen}, sum {sum}\n"));
        assert_eq!(world.statuses[&rank].code(), Some(0));
    }
    assert_eq!((world.joined.len(), world.finalized.len()), (size as usize, size as usize));
    assert_eq!(world.aborts, []);
}

/// SL-W-01, SL-W-05
#[test]
fn ranks_of_one_node_are_one_world() {
    let Some((program, _folder)) = ring() else { return };
    let world = run(&program, &[], &[0, 0, 0], &[0, 0, 0]);
    assert_is_ring(&world);
    assert_eq!(world.fences, 0, "nobody else is concerned");
}

/// SL-W-01, SL-W-05: also of two components.
#[test]
fn ranks_of_two_nodes_are_one_world() {
    let Some((program, _folder)) = ring() else { return };
    for (nodes, apps) in [([0, 0, 1, 1], [0, 0, 0, 0]), ([0, 1, 0, 1], [0, 0, 1, 1])] {
        let world = run(&program, &[], &nodes, &apps);
        assert_is_ring(&world);
        assert!(world.fences > 0);
    }
}

/// SL-W-01, SL-W-05: with variables of Slurm, Open MPI takes another way to its server.
#[test]
fn ranks_with_variables_of_slurm_are_one_world() {
    let Some((program, _folder)) = ring() else { return };
    let variables =
        [("SLURM_JOBID", "7"), ("SLURM_STEP_ID", "0"), ("SLURM_NODELIST", "node[0-1]"), ("SLURM_NODEID", "0")];
    assert_is_ring(&run_with(&program, &[], &[0, 1, 1], &[0; 3], &variables));
}

/// SL-W-05: Open MPI then asks for each address when it needs it.
#[test]
fn addresses_that_no_fence_collects_are_found_by_direct_modex() {
    let Some((program, _folder)) = ring() else { return };
    let variables = [("OMPI_MCA_pmix_base_collect_data", "0")];
    assert_is_ring(&run_with(&program, &[], &[0, 0, 1, 1], &[0; 4], &variables));
}

/// SL-W-02
#[test]
fn programs_at_the_same_time_are_separate_worlds() {
    let Some((program, _folder)) = ring() else { return };
    std::thread::scope(|scope| {
        for ranks in [2, 3] {
            let program = &program;
            scope.spawn(move || assert_is_ring(&run(program, &[], &vec![0; ranks], &vec![0; ranks])));
        }
    });
}

/// SL-W-08: the server survives whatever comes to its port.
#[test]
fn rubbish_at_the_port_of_a_server_harms_nobody() {
    let Some((program, _folder)) = ring() else { return };
    let (mut world, environments) = World::new(&[0, 0], &[0, 0]);
    let (_, uri) = environments[&0].iter().find(|(name, _)| name.starts_with("PMIX_SERVER_URI")).unwrap();
    let address = uri.rsplit("://").next().unwrap();
    for rubbish in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 100], vec![255; 100], vec![7; 1 << 16]] {
        // The server may hang up before it has all of it.
        let _ = TcpStream::connect(address).unwrap().write_all(&rubbish);
    }
    for (rank, variables) in &environments {
        world.start(*rank, &program, &[], variables);
    }
    world.play();
    assert_is_ring(&world);
}

/// SL-W-06
#[test]
fn an_abort_says_who_and_with_which_status() {
    let Some((program, _folder)) = ring() else { return };
    let world = run(&program, &["abort", "2"], &[0, 0, 1, 1], &[0; 4]);
    assert_eq!(world.aborts[0], (2, Some(7), "it aborted the program".to_owned()), "{:?}", world.aborts);
}

/// SL-W-06
#[test]
fn the_message_of_an_abort_is_one_line() {
    let Some((program, _folder)) = client() else { return };
    let world = run(&program, &["abort"], &[0], &[0]);
    assert_eq!(world.aborts, [(0, Some(9), "it aborted the program: no more".to_owned())]);
    assert_eq!(world.statuses[&0].signal().or(world.statuses[&0].code()), Some(9), "killed, or by itself");
}

/// SL-W-06
#[test]
fn a_rank_that_ends_without_finalizing_ends_the_program() {
    let Some((program, _folder)) = ring() else { return };
    let world = run(&program, &["leave", "1"], &[0, 0, 1, 1], &[0; 4]);
    assert_eq!(world.statuses[&1].code(), Some(3));
    assert!(world.aborts.contains(&(1, None, "it left without finalizing".to_owned())), "{:?}", world.aborts);
}

/// SL-W-08: a rank that never joined, before and after others have.
#[test]
fn nobody_waits_for_a_rank_that_never_joined() {
    let Some((program, _folder)) = ring() else { return };
    let (mut world, environments) = World::new(&[0, 0], &[0, 0]);
    world.start(1, Path::new("/bin/true"), &[], &environments[&1]);
    world.start(0, &program, &[], &environments[&0]);
    world.play();
    assert_eq!(world.aborts, [(1, None, "it ended, and others wait for it".to_owned())]);
}

/// SL-W-08: the tasks are told, so none hangs.
#[test]
fn a_fence_that_cannot_be_is_an_error_of_its_tasks() {
    let Some((program, _folder)) = client() else { return };
    let (mut world, environments) = World::new(&[0, 1], &[0, 0]);
    world.broken = Some(1);
    for (rank, variables) in &environments {
        world.start(*rank, &program, &[], variables);
    }
    world.play();
    for rank in [0, 1] {
        assert_eq!(world.fact(rank, "first fence"), "SUCCESS");
        assert_ne!(world.fact(rank, "second fence"), "SUCCESS");
        assert_eq!(world.fact(rank, "last fence"), "SUCCESS", "later ones can be");
    }
}

/// SL-W-05: job and node information over two components.
#[test]
fn tasks_learn_about_job_nodes_and_applications() {
    let Some((program, _folder)) = client() else { return };
    let world = run(&program, &[], &[0, 1, 1], &[0, 0, 1]);
    let job = [("size", "3"), ("universe", "3"), ("most", "3"), ("nodes", "2"), ("apps", "2"), ("host of 0", "node0")];
    for rank in 0..3 {
        for (what, value) in job {
            assert_eq!(world.fact(rank, &format!("{what}=")), value, "{what} for {rank}");
        }
        assert_eq!(world.fact(rank, "rank="), rank.to_string());
        assert_eq!(world.fact(rank, "job="), world.namespace);
        assert_eq!(world.fact(rank, "global rank="), rank.to_string());
    }
    let of_last = [
        ("local size", "2"),
        ("local peers", "1,2"),
        ("local leader", "1"),
        ("app", "1"),
        ("app size", "1"),
        ("app rank", "0"),
        ("local rank", "1"),
        ("node rank", "1"),
        ("node", "1"),
        ("host", "node1"),
        ("size of app 0", "2"),
        ("leader of app 0", "0"),
        ("peers of node0", "0"),
        ("size of node0", "1"),
        ("local rank of 0", "0"),
    ];
    for (what, value) in of_last {
        assert_eq!(world.fact(2, &format!("{what}=")), value, "{what}");
    }
}

/// SL-W-05
#[test]
fn a_program_can_have_many_nodes() {
    const NODES: u32 = 2_000;
    let Some((program, _folder)) = client() else { return };
    let (mut world, environments) = World::of_first_node(NODES);
    for (rank, variables) in &environments {
        world.start(*rank, &program, &["facts"], variables);
    }
    world.play();
    let facts =
        [("size", "4000"), ("nodes", "2000"), ("local peers", "0,2000"), ("host of last", "node1999"), ("node", "0")];
    for (rank, local_rank) in [(0, "0"), (2_000, "1")] {
        for (what, value) in facts.into_iter().chain([("local rank", local_rank)]) {
            assert_eq!(world.fact(rank, &format!("{what}=")), value, "{what}");
        }
    }
}

/// SL-W-10: a program of Open MPI that asks for more processes gets an error that it can go on from, or ends of it.
#[test]
fn a_program_that_spawns_is_refused_and_the_shim_hears_of_it() {
    let Some((program, _folder)) = compiled("spawn", "mpicc.openmpi", &[]) else { return };
    let world = run(&program, &[], &[0, 0], &[0; 2]);
    for rank in 0..2 {
        assert_eq!(world.outputs[&rank], format!("rank {rank}: it is refused\n"));
        assert_eq!(world.statuses[&rank].code(), Some(0));
    }
    assert_eq!((&world.refused, world.aborts.len()), (&BTreeSet::from([0, 1]), 0));
    let world = run(&program, &["fatal"], &[0], &[0]);
    assert_eq!((&world.refused, world.aborts.len()), (&BTreeSet::from([0]), 1));
}

/// SL-W-05: modex by fences that collect, direct modex after those that do not.
#[test]
fn what_one_task_puts_another_gets() {
    let Some((program, _folder)) = client() else { return };
    let world = run(&program, &[], &[0, 1, 1], &[0; 3]);
    for rank in 0..3 {
        for fence in ["first fence", "second fence", "fence of one", "last fence"] {
            assert_eq!(world.fact(rank, fence), "SUCCESS");
        }
        assert_eq!(world.fact(rank, "collected address of 0="), "before");
        assert_eq!(world.fact(rank, "direct key of 0="), "after");
        // The library itself answers for a task of the same node, after 2 s.
        let missing = if rank == 0 { "TIMEOUT" } else { "NOT-FOUND" };
        assert_eq!(world.fact(rank, "missing key of 0"), missing);
    }
}

/// SL-W-05: what this server does not do is an error that the program can read.
#[test]
fn what_is_not_supported_is_an_error() {
    let Some((program, _folder)) = client() else { return };
    let world = run(&program, &["0", "1"], &[0, 1, 1], &[0; 3]);
    for rank in 0..3 {
        for what in ["publish", "lookup", "spawn"] {
            assert!(world.fact(rank, what).contains("NOT"), "{what}: {}", world.outputs[&rank]);
        }
    }
    assert_eq!(world.refused, BTreeSet::from([0, 1, 2]), "the shims hear of it");
    assert_eq!(world.fact(0, "fence of some"), world.fact(1, "fence of some"));
    assert!(world.fact(0, "fence of some").contains("NOT"), "{}", world.outputs[&0]);
}
