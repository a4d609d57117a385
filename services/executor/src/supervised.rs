//! A program that this process runs as another user and stays with until its end: nothing of it is left behind.

use crate::{identity::Identity, signals};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::{
        resource::{Resource, setrlimit},
        signal::{Signal, killpg},
        stat::{Mode, umask},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::{Gid, Pid, Uid, chdir, setgroups, setresgid, setresuid},
};
use std::{
    ffi::CString,
    io::{self, PipeReader, Read as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How much of a program's output is kept, in bytes.
pub const MAX_OUTPUT_BYTES: u64 = 4_096;
/// How often it is checked whether a program has ended.
const POLL: Duration = Duration::from_millis(5);
/// How often its output is read each time; one that writes for ever is ended nevertheless.
const READS: usize = 64;
/// How long a program that was killed may take to be dead.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The conditions under which a program runs.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// It is ended at this time.
    pub deadline: Instant,
    /// The greatest size of a file that it writes, in bytes.
    pub file_bytes: Option<u64>,
    /// The folder that it begins in, if its user may enter it, and its mask for new files.
    pub place: Option<(CString, u32)>,
    /// Whether it is killed if this process is.
    pub dies_with_caller: bool,
}

impl Conditions {
    /// A limit of time alone.
    pub fn until(deadline: Instant) -> Self {
        Self { deadline, file_bytes: None, place: None, dies_with_caller: false }
    }
}

/// What became of a program.
#[derive(Debug)]
pub enum Outcome {
    /// It has ended by itself.
    Ended(ExitStatus),
    /// It was ended at its deadline.
    TookTooLong,
    /// It was ended since there was no more need for it.
    Stopped,
}

/// Runs a program as a user, if this process is root, and returns how it ended and the first of what it has said. It has no
/// input. It is ended once `is_stopped`.
///
/// # Errors
/// It could not be started.
pub fn run(
    mut command: Command,
    user: &Identity,
    conditions: &Conditions,
    is_stopped: impl FnMut() -> bool,
) -> io::Result<(Outcome, String)> {
    let (output, input) = io::pipe()?;
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input).process_group(0);
    let ignored = signals::ignored();
    let account = Uid::effective().is_root().then(|| {
        let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
        (Uid::from_raw(user.uid), Gid::from_raw(user.gid), groups)
    });
    let Conditions { deadline, file_bytes, place, dies_with_caller } = conditions.clone();
    let become_program = move || {
        signals::reset(&ignored)?;
        signals::spare_no_more();
        if let Some((uid, gid, groups)) = &account {
            setgroups(groups)?;
            setresgid(*gid, *gid, *gid)?;
            setresuid(*uid, *uid, *uid)?;
        }
        if let Some(bytes) = file_bytes {
            setrlimit(Resource::RLIMIT_FSIZE, bytes, bytes)?;
        }
        if let Some((folder, mask)) = &place {
            umask(Mode::from_bits_truncate(*mask));
            // A user without a home folder can do without.
            let _ = chdir(folder.as_c_str());
        }
        if dies_with_caller {
            // After the change of the user, which clears it.
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        }
        Ok(())
    };
    // SAFETY: the calls allocate no memory and take no lock.
    unsafe { command.pre_exec(become_program) };
    let mut said = Said { output, text: Vec::new() };
    let child = command.spawn()?;
    // Its ends of the pipe stay open in the command.
    drop(command);
    let outcome = follow(child, &mut said, deadline, is_stopped)?;
    Ok((outcome, String::from_utf8_lossy(&said.text).into_owned()))
}

/// Stays with it until its end, and ends what it has left behind in its group.
fn follow(
    mut child: Child,
    said: &mut Said,
    deadline: Instant,
    mut is_stopped: impl FnMut() -> bool,
) -> io::Result<Outcome> {
    let process = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let ended_early = loop {
        said.read();
        if is_dead(process)? {
            break None;
        } else if is_stopped() {
            break Some(Outcome::Stopped);
        } else if Instant::now() >= deadline {
            break Some(Outcome::TookTooLong);
        }
        thread::sleep(POLL);
    };
    // Nothing may be left of it. It was not waited for yet, so its number is no other group's.
    let _ = killpg(process, Signal::SIGKILL);
    said.read();
    let killed = Instant::now();
    while !is_dead(process)? {
        if killed.elapsed() > LAST_WAIT {
            // It hangs in the kernel, and may do so for ever.
            let _ = thread::Builder::new().name("supervised".into()).spawn(move || child.wait());
            return Ok(ended_early.unwrap_or(Outcome::TookTooLong));
        }
        thread::sleep(POLL);
    }
    let status = child.wait()?;
    Ok(ended_early.unwrap_or(Outcome::Ended(status)))
}

/// Whether a child has ended; it is not waited for.
fn is_dead(process: Pid) -> io::Result<bool> {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(process), look) {
        Ok(status) => Ok(status != WaitStatus::StillAlive),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// The first words of a program.
struct Said {
    output: PipeReader,
    text: Vec<u8>,
}

impl Said {
    /// Reads what it has said since the last time. All that follows the first words is read too: the program must not wait.
    fn read(&mut self) {
        let mut buffer = [0; MAX_OUTPUT_BYTES as usize];
        for _ in 0..READS {
            let Ok(length @ 1..) = self.output.read(&mut buffer) else { return };
            let wanted = (buffer.len() - self.text.len()).min(length);
            self.text.extend_from_slice(&buffer[..wanted]);
        }
    }
}
