//! For tests of this crate and of others only: real NATS servers that can be killed, paused, restarted and robbed of
//! their store, and waiting for conditions.

use std::{
    fmt::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// How long a server may take to start.
const START_DEADLINE: Duration = Duration::from_secs(20);

/// Nothing that a test waits for takes this long on a machine that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks every few milliseconds until the condition is met.
///
/// # Panics
/// It is not met within half a minute; `what` names it.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A NATS server with JetStream on a free port of the loopback interface, with a folder of its own. Dropping it ends
/// both.
#[derive(Debug)]
pub struct NatsServer {
    process: Option<Child>,
    folder: PathBuf,
    port: u16,
    /// Lines for JetStream, and for the rest of the configuration.
    jetstream: String,
    more_config: String,
}

impl NatsServer {
    /// Starts a server and waits until it serves.
    ///
    /// # Panics
    /// There is no server program, or it does not start.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a server whose configuration file has these lines too, for users and permissions for example.
    ///
    /// # Panics
    /// There is no server program, it does not start, or it rejects the lines.
    pub fn start_with(more_config: &str) -> Self {
        Self::start_as("", more_config.to_owned(), fresh_folder())
    }

    fn start_as(jetstream: &str, more_config: String, folder: PathBuf) -> Self {
        let mut server = Self { process: None, folder, port: 0, jetstream: jetstream.to_owned(), more_config };
        server.spawn(-1);
        server.port = server.wait_for_port();
        server
    }

    /// Starts a server with the configuration and the users of `ops/nats` for nodes of these names, plus these lines in
    /// the list of users.
    ///
    /// # Panics
    /// As [`start_with`](Self::start_with), or the users cannot be made.
    pub fn start_shipped(nodes: &[&str], more_users: &str) -> Self {
        let ops = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/nats");
        let folder = fresh_folder();
        let made = Command::new(ops.join("make-passwords")).arg(&folder).args(nodes).status();
        assert!(made.is_ok_and(|status| status.success()), "ops/nats/make-passwords fails");
        let shipped = std::fs::read_to_string(ops.join("nats.conf")).expect("it is in the repository");
        assert!(shipped.contains("include \"accounts.conf\""), "the server includes the users");
        let accounts = std::fs::read_to_string(folder.join("accounts.conf")).expect("it was made just now");
        let more_config = accounts.replacen("users: [", &format!("users: [\n{more_users}"), 1);
        Self::start_as("", more_config, folder)
    }

    /// How a user of a server that was started with [`start_shipped`](Self::start_shipped) connects.
    pub fn user(&self, user: &str) -> crate::NatsConfig {
        let password_file = Some(self.folder.join(format!("{user}.password")));
        crate::NatsConfig { url: self.url(), user: Some(user.to_owned()), password_file, ..Default::default() }
    }

    /// Where it is, for [`NatsConfig::url`](crate::NatsConfig::url); the same after a restart.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Kills it with SIGKILL. Its store stays.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.kill());
            drop(process.wait());
        }
    }

    /// Pauses it with SIGSTOP: its connections stay, and it is silent.
    ///
    /// # Panics
    /// It does not run.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it continue after [`pause`](Self::pause).
    ///
    /// # Panics
    /// It does not run.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("the server runs");
        let sent = Command::new("kill").arg(signal).arg(process.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "the server takes {signal}");
    }

    /// Deletes everything that it has stored. It must have been killed before.
    ///
    /// # Panics
    /// It is still running, or the folder cannot be deleted.
    pub fn wipe_store(&self) {
        assert!(self.process.is_none(), "the store of a running server cannot be deleted");
        std::fs::remove_dir_all(self.store()).expect("the store can be deleted");
    }

    /// Starts it again after [`kill`](Self::kill), on the same port, and waits until it serves.
    ///
    /// # Panics
    /// It is still running, or does not start.
    pub fn restart(&mut self) {
        assert!(self.process.is_none(), "a running server cannot be started");
        self.spawn(i32::from(self.port));
        self.wait_for_port();
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    fn spawn(&mut self, port: i32) {
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\nmax_payload: 8MB\njetstream {{ store_dir: {:?}, max_file_store: 8GB\n{} }}\n{}\n",
            self.store(),
            self.jetstream,
            self.more_config
        );
        let config_file = self.folder.join("nats.conf");
        std::fs::write(&config_file, config).expect("the folder is writable");
        let log = std::fs::File::create(self.folder.join("log")).expect("the folder is writable");
        let mut command = Command::new(server_program());
        command.arg("-c").arg(config_file).arg("--ports_file_dir").arg(&self.folder);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.process = Some(process.expect("the NATS server program can be started"));
    }

    /// The port that the server writes to a file once it serves.
    fn wait_for_port(&mut self) -> u16 {
        let process = self.process.as_mut().expect("it was started just now");
        let file = self.folder.join(format!("nats-server_{}.ports", process.id()));
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            if let Some(port) = std::fs::read_to_string(&file).ok().and_then(|text| port_in(&text)) {
                return port;
            }
            let ended = process.try_wait().expect("it is a child of this process");
            if ended.is_some() || Instant::now() > deadline {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                panic!("the NATS server does not start:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Three NATS servers in one cluster, as several ledgers need them: each syncs every write and says so by its tag.
#[derive(Debug)]
pub struct NatsCluster {
    /// Their names are `s0`, `s1` and `s2`.
    pub servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts the servers and waits until they have formed a cluster and have a leader for JetStream.
    ///
    /// # Panics
    /// They do not start, or are older than several ledgers need.
    pub async fn start() -> Self {
        check_version();
        let ports = free_ports();
        let mut routes = String::new();
        for port in ports {
            // Writing into a string does not fail.
            let _ = write!(routes, "\"nats-route://127.0.0.1:{port}\", ");
        }
        let server = |(number, port)| {
            let more_config = format!(
                "server_name: s{number}\nserver_tags: [\"sync:always\"]\nping_interval: \"2s\"\nping_max: 2\n\
                 cluster {{ name: test, listen: \"127.0.0.1:{port}\", routes: [{routes}] }}"
            );
            NatsServer::start_as("sync_interval: always", more_config, fresh_folder())
        };
        let cluster = Self { servers: (0..).zip(ports).map(server).collect() };
        let asked = async_nats::jetstream::new(cluster.client().await);
        let begun = Instant::now();
        // Account information comes from the leader of JetStream.
        while asked.query_account().await.is_err() {
            assert!(begun.elapsed() < PATIENCE, "the servers have no leader after {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cluster
    }

    /// Where they are, for [`NatsConfig::url`](crate::NatsConfig::url).
    pub fn url(&self) -> String {
        self.servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
    }

    /// How muster connects.
    pub fn config(&self) -> crate::NatsConfig {
        crate::NatsConfig { url: self.url(), ..Default::default() }
    }

    /// A plain client of all of them.
    ///
    /// # Panics
    /// None of them can be reached.
    pub async fn client(&self) -> async_nats::Client {
        let servers: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
        options.connect(servers).await.expect("the addresses are right")
    }

    /// The number of the server that leads a stream.
    ///
    /// # Panics
    /// There is none within half a minute.
    pub async fn leader_of(&self, stream: &str) -> usize {
        let asked = async_nats::jetstream::new(self.client().await);
        let begun = Instant::now();
        loop {
            let found = asked.get_stream(stream).await.ok();
            let leader = found.and_then(|found| found.cached_info().cluster.as_ref()?.leader.clone());
            if let Some(number) = leader.and_then(|name| name.strip_prefix('s')?.parse().ok()) {
                return number;
            }
            assert!(begun.elapsed() < PATIENCE, "{stream} has no leader after {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Three ports that were free a moment ago: servers of a cluster have to know each other's before they start.
fn free_ports() -> [u16; 3] {
    let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    held.map(|listener| listener.local_addr().expect("it is bound").port())
}

/// Several ledgers need a server that keeps what it has acknowledged.
fn check_version() {
    let program = server_program();
    let told = Command::new(&program).arg("--version").output().expect("the NATS server program can be started");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let version = told.trim().rsplit(' ').next().unwrap_or_default();
    assert!(
        crate::nats::connection::orders_rounds(version),
        "{} is {version}: the tests with several ledgers need nats-server 2.15.1 or newer; ops/test installs one, or name it in MUSTER_NATS_SERVER",
        program.display()
    );
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn fresh_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("muster-nats-{}-{number}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
    folder
}

/// The port in `{"nats":["nats://127.0.0.1:4222"],...}`, where a server with TLS says `tls://`.
fn port_in(ports_file: &str) -> Option<u16> {
    let (_, address) = ports_file.split_once("://127.0.0.1:")?;
    address.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
}

/// `MUSTER_NATS_SERVER`, else the server that `ops/test` installs, else the one in the search path.
fn server_program() -> PathBuf {
    if let Some(named) = std::env::var_os("MUSTER_NATS_SERVER") {
        return PathBuf::from(named);
    }
    let installed =
        std::env::var_os("CARGO_TARGET_DIR").map(|target| Path::new(&target).join("../nats/bin/nats-server"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    installed
        .into_iter()
        .chain(in_path)
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("there is no nats-server program: run ops/test, which installs one"))
}
