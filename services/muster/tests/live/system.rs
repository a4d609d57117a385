//! A system of its own for each test, in a folder of its own.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Longer than anything a test waits for on a working machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The token of `nobody` over TCP.
const TOKEN: &str = "a-token-for-nobody-only";

/// Removes a lock of pyenv that a killed job has left. Where the profile of the account that runs the tests sets pyenv up, each
/// login shell of a job takes this lock for a moment, and waits a minute for one that nobody gives back.
pub fn free_login_shells() {
    let Some(home) = std::env::var_os("HOME") else { return };
    let lock = Path::new(&home).join(".pyenv/shims/.pyenv-shim");
    let age = std::fs::metadata(&lock).and_then(|lock| lock.modified()).ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age > Duration::from_secs(5)) {
        // Another test may have removed it.
        let _ = std::fs::remove_file(lock);
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct Output {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// `muster up` in a temporary folder. Commands run in that folder and talk to this system.
pub struct System {
    folder: tempfile::TempDir,
    process: Option<Child>,
    /// The TCP address for callers other than the user of the test.
    listens: Option<String>,
    /// The certificate file of the authority that vouches for the address, if it uses TLS.
    authority: Option<PathBuf>,
}

impl System {
    /// The token of `nobody` for a system that was started for others.
    pub const TOKEN: &str = TOKEN;

    /// A folder in which nothing runs yet.
    pub fn stopped() -> Self {
        Self::stopped_in(&std::env::temp_dir())
    }

    /// The same, below this folder.
    pub fn stopped_in(place: &Path) -> Self {
        let folder = tempfile::tempdir_in(place).expect("a temporary folder");
        Self { folder, process: None, listens: None, authority: None }
    }

    /// A system with this many nodes, which is ready.
    pub fn start(nodes: u32) -> Self {
        let mut system = Self::stopped();
        system.restart(&["--nodes", &nodes.to_string(), "--cpus", "4", "--memory", "4G"]);
        system
    }

    /// A system with one node that also answers callers who are not the user of the test.
    pub fn start_for_others() -> Self {
        Self::start_nodes_for_others(1)
    }

    /// A system with this many nodes that also answers callers who are not the user of the test.
    pub fn start_nodes_for_others(nodes: u32) -> Self {
        Self::stopped().listening(nodes, "")
    }

    /// The same over TLS, with a certificate of its own.
    pub fn start_over_tls() -> Self {
        let mut system = Self::stopped();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        system.write("gateway.pem", &made.cert.pem());
        system.write("gateway.key", &made.signing_key.serialize_pem());
        let mode = std::os::unix::fs::PermissionsExt::from_mode;
        std::fs::set_permissions(system.path("gateway.key"), mode(0o600)).expect("its own file");
        let (chain, key) = (system.path("gateway.pem"), system.path("gateway.key"));
        system.authority = Some(chain.clone());
        system.listening(1, &format!("tls_certificate = \"{}\"\ntls_key = \"{}\"\n", chain.display(), key.display()))
    }

    /// Writes the configuration of a system that also answers callers who are not the user of the test, with these lines at
    /// its end; returns the options to start it with.
    pub fn configure_for_others(&mut self, nodes: u32, settings: &str) -> Vec<String> {
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        self.write("tokens", &format!("{TOKEN} nobody\n"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode;
        std::fs::set_permissions(self.path("tokens"), mode(0o600)).expect("its own file");
        let tokens = self.path("tokens");
        self.write(
            "others.toml",
            &format!("[gateway]\nlisten = \"{port}\"\ntokens_file = \"{}\"\n{settings}", tokens.display()),
        );
        let config = self.path("others.toml").display().to_string();
        self.listens = Some(port.to_string());
        ["--nodes", &nodes.to_string(), "--cpus", "4", "--memory", "4G", "--config", &config].map(str::to_owned).into()
    }

    fn listening(mut self, nodes: u32, settings: &str) -> Self {
        let options = self.configure_for_others(nodes, settings);
        self.restart(&options.iter().map(String::as_str).collect::<Vec<_>>());
        self
    }

    /// Starts `muster up` on its folder and waits until it reports that it is ready.
    pub fn restart(&mut self, options: &[&str]) {
        self.launch("up", options);
        let line = self.await_ready();
        assert!(line.starts_with("muster is ready: "), "it said `{line}`, and:\n{}", self.log());
    }

    /// Starts `muster up` or `muster serve` on its folder.
    pub fn launch(&mut self, command: &str, options: &[&str]) {
        let command = self.command(&[command]);
        self.launch_by(command, options);
    }

    /// Starts it by a command that becomes `muster up`, once it has these options.
    pub fn launch_through(&mut self, words: &[&str], options: &[&str]) {
        let mut command = self.set_up(Command::new(words[0]));
        command.args(&words[1..]).args([env!("CARGO_BIN_EXE_muster"), "up"]);
        self.launch_by(command, options);
    }

    fn launch_by(&mut self, mut command: Command, options: &[&str]) {
        let log = std::fs::File::options().append(true).create(true).open(self.path("up.log")).expect("a log file");
        command.args(options).stdout(Stdio::piped()).stderr(log);
        self.process = Some(command.spawn().expect("muster starts"));
    }

    /// The line that it prints when it is ready, or nothing if it ends before.
    pub fn await_ready(&mut self) -> String {
        let stdout = self.process.as_mut().and_then(|process| process.stdout.take()).expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("its output can be read");
        line
    }

    /// Stops it as a service manager does. Jobs keep running.
    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        kill(Pid::from_raw(process.id() as i32), Signal::SIGTERM).expect("it runs");
        let deadline = Instant::now() + PATIENCE;
        while process.try_wait().expect("it is our child").is_none() {
            if Instant::now() > deadline {
                let _ = process.kill();
                panic!("it did not stop:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        kill(Pid::from_raw(process.id() as i32), signal).expect("it runs");
    }

    /// Copies a folder with everything in it.
    pub fn copy(&self, from: &str, to: &str) {
        let copied = Command::new("cp").arg("-a").args([self.path(from), self.path(to)]).status();
        assert!(copied.expect("there is cp").success());
    }

    /// Its standard error.
    pub fn log(&self) -> String {
        self.read("up.log")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("the file can be written");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.set_up(Command::new(env!("CARGO_BIN_EXE_muster")));
        command.args(arguments);
        command
    }

    /// Runs lines as they are typed into a shell, up to the first that fails.
    pub fn shell(&self, lines: &str) -> Output {
        let mut shell = self.set_up(Command::new("bash"));
        shell.args(["-e", "-c", lines]);
        Self::outcome(shell)
    }

    fn set_up(&self, mut command: Command) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_muster"));
        let folder = program.parent().expect("a program is in a folder");
        let search = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        command
            .current_dir(self.folder.path())
            .env("PATH", search)
            .env("MUSTER_DATA", self.path("data"))
            .env("TZ", "UTC")
            .env_remove("MUSTER_SERVER")
            .env_remove("MUSTER_TOKEN")
            .env_remove("MUSTER_CA")
            .env_remove("MUSTER_CONFIG")
            .env_remove("MUSTER_JOB_ID")
            .stdin(Stdio::null());
        command
    }

    /// Starts a command whose output is read while it runs.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).spawn().expect("muster starts")
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        Self::outcome(self.command(arguments))
    }

    /// Runs a command to its end as a user without any permission of an administrator.
    pub fn run_as_nobody(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.env("MUSTER_SERVER", self.server()).env("MUSTER_TOKEN", TOKEN).env_remove("MUSTER_DATA");
        command.envs(self.authority.iter().map(|file| ("MUSTER_CA", file)));
        Self::outcome(command)
    }

    /// Its address for callers over TCP.
    pub fn server(&self) -> String {
        let address = self.listens.as_ref().expect("it was started for others");
        format!("{}://{address}", if self.authority.is_some() { "https" } else { "http" })
    }

    fn outcome(mut command: Command) -> Output {
        let output = command.output().expect("muster starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Output {
            status: output.status.code().expect("no signal ended it"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs a command to its end with this input.
    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("muster starts");
        child.stdin.take().expect("it is piped").write_all(input).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Output {
            status: output.status.code().expect("no signal ended it"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs a command at a terminal, where somebody answers its first question; what the terminal showed is the output.
    pub fn answer(&self, arguments: &[&str], question: &str, answer: &str) -> Output {
        let terminal = nix::pty::openpty(None, None).expect("a terminal");
        let stream = || terminal.slave.try_clone().expect("a stream");
        let mut command = self.command(arguments);
        let mut child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("muster starts");
        drop((command, terminal.slave));
        let mut master = std::fs::File::from(terminal.master);
        let (mut shown, mut chunk, mut is_answered) = (String::new(), [0; 512], false);
        // The end of a terminal that nobody has open any more is an error.
        while let Ok(count @ 1..) = master.read(&mut chunk) {
            shown.push_str(&String::from_utf8_lossy(&chunk[..count]));
            if !is_answered && shown.contains(question) {
                master.write_all(format!("{answer}\r").as_bytes()).expect("it reads");
                is_answered = true;
            }
        }
        let status = child.wait().expect("it is our child").code().expect("no signal ended it");
        assert!(is_answered, "it did not ask `{question}`: {shown}");
        Output { status, stdout: shown, stderr: String::new() }
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments);
        assert_eq!(status, 0, "muster {arguments:?}\n{stdout}{stderr}\n{}", self.log());
        stdout
    }

    /// Runs a command that must succeed and print JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let stdout = self.ok(arguments);
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("muster {arguments:?}: {error}\n{stdout}"))
    }

    /// Submits a job and returns its number.
    pub fn submit(&self, arguments: &[&str]) -> String {
        let arguments: Vec<&str> = ["submit", "--parsable"].iter().chain(arguments).copied().collect();
        self.ok(&arguments).trim().to_owned()
    }

    /// The state of a job, as one word.
    pub fn state(&self, job: &str) -> String {
        self.json(&["job", "show", job, "--json"])["job"]["state"].as_str().unwrap_or_default().to_owned()
    }

    pub fn wait_for_state(&self, job: &str, state: &str) {
        self.wait_until(&format!("job {job} is {state}"), || self.state(job) == state);
    }

    /// Polls until the condition holds.
    pub fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            free_login_shells();
            assert!(Instant::now() < deadline, "waited in vain until {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if self.process.is_some() && !std::thread::panicking() {
            // Nothing of a test may outlive it.
            let _ = self.run(&["job", "cancel", "--matching"]);
            self.wait_until("no job runs", || {
                self.json(&["jobs", "--json"])["jobs"].as_array().is_some_and(Vec::is_empty)
            });
            self.stop();
        } else if let Some(mut process) = self.process.take() {
            let _ = self.command(&["job", "cancel", "--matching"]).output();
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
