//! A system under test, started by us on its own folder.

use crate::http::{Connection, Endpoint};
use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

/// A system that does not say that it is ready within this time never will.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// A system that has not stopped within this time after SIGTERM is killed.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// The file in its data folder for its standard error.
const LOG: &str = "loadtest.log";

/// How to start a system.
#[derive(Clone, Debug)]
pub struct Options {
    /// The muster binary.
    pub muster: PathBuf,
    /// Emulated nodes.
    pub nodes: u32,
    /// Cores that each declares.
    pub cpus: u32,
    /// A configuration file, if the defaults do not suffice.
    pub config: Option<PathBuf>,
}

/// A running system. It is stopped when dropped.
pub struct System {
    process: Child,
    muster: PathBuf,
    data: PathBuf,
    started_in: Duration,
}

impl System {
    /// Starts a whole system in one process on a data folder and waits until it says that it is ready.
    ///
    /// # Errors
    /// If it cannot be started or ends before it is ready, with its output.
    pub fn start(options: &Options, data: &Path) -> Result<Self> {
        let mut command = Command::new(&options.muster);
        command.args(["up", "--nodes", &options.nodes.to_string(), "--cpus", &options.cpus.to_string()]);
        if let Some(config) = &options.config {
            command.arg("--config").arg(config);
        }
        Self::start_as(command, &options.muster, data)
    }

    /// Starts roles on a data folder, with a configuration file, and waits until they are ready.
    ///
    /// # Errors
    /// As [`System::start`].
    pub fn serve(muster: &Path, roles: &[&str], config: &Path, data: &Path) -> Result<Self> {
        let mut command = Command::new(muster);
        command.arg("serve").args(roles).arg("--config").arg(config);
        Self::start_as(command, muster, data)
    }

    /// Starts a command line, with the data folder added, and waits until it is ready.
    ///
    /// # Errors
    /// As [`System::start`].
    fn start_as(mut command: Command, muster: &Path, data: &Path) -> Result<Self> {
        std::fs::create_dir_all(data)?;
        let log = data.join(LOG);
        let begin = Instant::now();
        command.arg("--data").arg(data).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let process = command.spawn().with_context(|| format!("cannot start {}", muster.display()))?;
        let mut system = Self { process, muster: muster.to_owned(), data: data.to_owned(), started_in: Duration::ZERO };
        if !system.says_that_it_is_ready() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            bail!("{command:?} did not get ready; it said:\n{said}");
        }
        system.started_in = begin.elapsed();
        Ok(system)
    }

    /// It is ready when it prints its first line.
    fn says_that_it_is_ready(&mut self) -> bool {
        let Some(stdout) = self.process.stdout.take() else { return false };
        let (ready, line) = mpsc::channel();
        // The thread keeps reading, so that a system that prints more never blocks; it ends with the system.
        std::thread::spawn(move || {
            for _ in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = ready.send(());
            }
        });
        line.recv_timeout(READY_WITHIN).is_ok()
    }

    /// Where its gateway listens.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Socket(self.data.join("muster.sock"))
    }

    /// A new connection to its gateway.
    ///
    /// # Errors
    /// If it is gone.
    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(&self.endpoint()).await
    }

    /// How long its start took until it was ready.
    pub const fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The program that it runs.
    pub fn program(&self) -> &Path {
        &self.muster
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The file with its standard error.
    pub fn log(&self) -> PathBuf {
        self.data.join(LOG)
    }

    /// A command line for this system.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.muster);
        command.args(arguments).arg("--data").arg(&self.data);
        command
    }

    /// Stops it as an operator would.
    ///
    /// # Errors
    /// If it had to be killed or did not end successfully.
    pub fn stop(mut self) -> Result<()> {
        self.terminate()
    }

    fn terminate(&mut self) -> Result<()> {
        if let Some(status) = self.process.try_wait()? {
            if status.success() {
                return Ok(());
            }
            bail!("muster ended by itself: {status}");
        }
        kill(Pid::from_raw(self.process.id().cast_signed()), Signal::SIGTERM)?;
        let deadline = Instant::now() + STOPPED_WITHIN;
        while Instant::now() < deadline {
            match self.process.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("muster did not stop cleanly: {status}"),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        self.process.kill()?;
        self.process.wait()?;
        bail!("muster did not stop within {} s and was killed", STOPPED_WITHIN.as_secs())
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // After `stop` this finds the process gone; after a failure nobody is left to tell.
        let _ = self.terminate();
    }
}

/// The muster binary to test: the given one, else the one next to this program, else the one in the path.
pub fn find_muster(named: Option<PathBuf>) -> PathBuf {
    let beside = || {
        let here = std::env::current_exe().ok()?;
        Some(here.parent()?.join("muster")).filter(|path| path.is_file())
    };
    named.or_else(beside).unwrap_or_else(|| PathBuf::from("muster"))
}
