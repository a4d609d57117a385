//! The fork server: a small single-threaded process that forks a shim for each run.
//!
//! The executor's process can be large, and forking a large process takes milliseconds. It therefore starts this server
//! once, with the argument `shim-server`, and writes the runs to launch to its standard input, a socket. Their orders are
//! in the spool. The server first writes its version to the socket, since it can be another program than the executor's,
//! and why there is no host for an emulated node, if there is none.
//! When the executor ends, the server does too; the shims stay.

use crate::{
    host::Host,
    key::RunKey,
    protocol::{self, Control},
    shim,
    spool::RunFolder,
};
use muster_dialect::Dialects;
use muster_schemas::{codec::version, event::EndCause};
use nix::{
    errno::Errno,
    sys::{
        prctl,
        stat::{Mode, umask},
    },
    unistd::setsid,
};
use std::{
    ffi::OsString,
    fs::OpenOptions,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::{fs::OpenOptionsExt as _, net::UnixStream},
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The first argument that makes the program a fork server. The second is the spool.
pub const SHIM_SERVER: &str = "shim-server";
/// The running program, even after the file that it was started from has been replaced.
pub const THIS_PROGRAM: &str = "/proc/self/exe";
/// How long a new fork server may take to tell its version.
const START_LIMIT: Duration = Duration::from_secs(10);
/// The longest line that is read.
const MAX_LINE_BYTES: usize = 400;

/// Turns this process into a fork server if its arguments say so, and then never returns. A program that runs executors
/// calls it before anything else: before it starts a thread, opens a file or allocates memory. `dialects` answers
/// questions about launches.
pub fn serve_shims_if_asked(dialects: Dialects) {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == SHIM_SERVER) {
        shim_server_main(arguments.next(), dialects);
    }
}

/// The fork server's whole life; `spool` is its argument.
pub fn shim_server_main(spool: Option<OsString>, dialects: Dialects) -> ! {
    let Some(spool) = spool else {
        shim::log(format_args!("{SHIM_SERVER} is started by muster's executor, not by people"));
        leave(2)
    };
    match serve(Path::new(&spool), dialects) {
        Ok(()) => leave(0),
        Err(error) => {
            shim::log(format_args!("the fork server of {} failed: {error}", spool.display()));
            leave(1)
        }
    }
}

/// Ends this process at once: otherwise every shim would tear down libraries that the program shares with services,
/// which costs as much as a short job.
fn leave(status: i32) -> ! {
    // SAFETY: the process ends here; nothing is buffered, and no destructor has anything to save.
    unsafe { libc::_exit(status) }
}

/// The process of a shim returns from here too, once its run is over.
fn serve(spool: &Path, dialects: Dialects) -> io::Result<()> {
    // Signals meant for the executor's session must not reach it. A session leader need not begin one.
    let _ = setsid();
    umask(Mode::from_bits_truncate(0o022));
    // SAFETY: ignoring this signal runs no code; shims are then collected by the kernel.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    // The program may have been started as `/proc/self/exe`, which says nothing in a list of processes.
    let _ = prctl::set_name(c"muster-shims");
    // When memory runs out, spare the shims: they clean up. Without permission for this they are like others.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-900");
    let mut orders = take_standard_input()?;
    // The checksum queries the processor's features once for a process; that is slow in a virtual machine, and shims
    // inherit the result.
    let _ = protocol::from_bytes::<Control>(&protocol::to_bytes(&Control::Suspend)?);
    let (host, why) = match Host::make(spool) {
        Ok(host) => (host, String::new()),
        Err(why) => (None, why),
    };
    orders.write_all(format!("{}\n{}\n", version(), why.replace('\n', " ")).as_bytes())?;
    let mut bytes = [0; RunKey::BYTES];
    loop {
        match orders.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let key = RunKey::from_bytes(bytes);
        // SAFETY: this process has one thread, so the child may do all that the parent may.
        match Errno::result(unsafe { libc::fork() }) {
            Ok(0) => {
                drop(orders);
                return shim::run(spool, key, dialects, host.as_ref())
                    .map_err(|error| io::Error::new(error.kind(), format!("shim {key}: {error}")));
            }
            Ok(_) => {}
            Err(errno) => refuse(spool, key, errno),
        }
    }
}

fn refuse(spool: &Path, key: RunKey, errno: Errno) {
    let cause = EndCause::LaunchFailed(format!("the node cannot start another process: {}", errno.desc()));
    if let Err(error) = shim::refuse(&RunFolder::of(spool, key), key, cause) {
        shim::log(format_args!("run {key} cannot be refused: {error}"));
    }
}

/// Moves the socket off the standard input, so that no shim has it, and closes all other inherited files.
fn take_standard_input() -> io::Result<UnixStream> {
    // SAFETY: these calls have no memory effects; nothing in this process has other files open yet.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, 0);
        let copy = Errno::result(libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3))?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        Errno::result(libc::dup2(null.as_raw_fd(), 0))?;
        Ok(UnixStream::from_raw_fd(copy))
    }
}

/// The executor's side of a fork server.
#[derive(Debug)]
pub struct ForkServer {
    process: Child,
    orders: UnixStream,
    no_host: Option<String>,
}

impl ForkServer {
    /// Starts one for a spool. `program` is this muster, or another program that calls [`serve_shims_if_asked`].
    ///
    /// # Errors
    /// If the program cannot be started. [`io::ErrorKind::Unsupported`] if it has another version than this one, or does not
    /// tell it in time: it will not do so next time either.
    pub fn start(program: &Path, spool: &Path) -> io::Result<Self> {
        let (orders, theirs) = UnixStream::pair()?;
        // The log can name jobs and files of all users.
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(spool.join("shims.log"))?;
        // Nothing here may need code between fork and exec: that would copy the page tables of the executor.
        let process = Command::new(program)
            .arg(SHIM_SERVER)
            .arg(spool)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let mut server = Self { process, orders, no_host: None };
        server.check_version()?;
        server.no_host = Some(server.line()?).filter(|why| !why.is_empty());
        Ok(server)
    }

    /// Why tasks see the machine as it is, although the host of an emulated node was to be made.
    pub fn no_host(&self) -> Option<&str> {
        self.no_host.as_deref()
    }

    /// Both sides must read the same in the spool.
    fn check_version(&self) -> io::Result<()> {
        let expected = version();
        let (kind, found) = match self.line() {
            Ok(told) if told == expected => return Ok(()),
            Ok(told) if told.is_empty() => (io::ErrorKind::Other, "a program that ended".to_owned()),
            Ok(told) => (io::ErrorKind::Unsupported, format!("version {told}")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let found = format!("a program that told none within {} s", START_LIMIT.as_secs());
                (io::ErrorKind::Unsupported, found)
            }
            Err(error) => return Err(error),
        };
        Err(io::Error::new(kind, format!("expected muster of version {expected}, found {found}")))
    }

    /// The next line that the server writes as it starts.
    fn line(&self) -> io::Result<String> {
        let deadline = Instant::now() + START_LIMIT;
        let (mut told, mut byte) = (Vec::new(), [0]);
        while told.len() < MAX_LINE_BYTES && told.last() != Some(&b'\n') {
            let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
            self.orders.set_read_timeout(Some(left.ok_or(io::ErrorKind::WouldBlock)?))?;
            match (&self.orders).read(&mut byte) {
                Ok(0) => break,
                Ok(_) => told.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(String::from_utf8_lossy(&told).trim_end().to_owned())
    }

    /// Has shims forked for these runs, whose orders are in the spool.
    ///
    /// # Errors
    /// If the server is gone; it is then unknown which runs it took.
    pub fn launch(&mut self, keys: &[RunKey]) -> io::Result<()> {
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_bytes()).collect();
        self.orders.write_all(&bytes)
    }

    /// A descriptor that becomes readable when the server dies.
    ///
    /// # Errors
    /// If the kernel gives no descriptor.
    pub fn death(&self) -> io::Result<OwnedFd> {
        // SAFETY: the call has no memory effects, and returns a descriptor that nobody else owns.
        unsafe {
            let descriptor = Errno::result(libc::syscall(libc::SYS_pidfd_open, self.process.id(), 0))?;
            Ok(OwnedFd::from_raw_fd(descriptor as i32))
        }
    }
}

impl Drop for ForkServer {
    /// The end of its orders ends it, at once unless it is broken.
    fn drop(&mut self) {
        let _ = self.orders.shutdown(std::net::Shutdown::Both);
        for _ in 0..100 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
