//! Starts a filter's program from the supervisor.
//!
//! As with `posix_spawn`, the child borrows the supervisor's memory, and the supervisor stands still until the child
//! has become the program or given up: nothing is copied, and a plain variable tells why the child gave up.
//! `posix_spawn` itself can neither change the user nor have the child die with its parent.

use crate::{account::Account, protocol::Order};
use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
    },
    unistd::{Gid, Uid, chdir, setgroups, setresgid, setresuid, setsid},
};
use std::{
    ffi::{CString, c_char, c_int, c_void},
    io,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
};

/// The steps from the supervisor to the program, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Fork,
    Session,
    Account,
    Folder,
    Streams,
    Execute,
}

/// Why the program did not start.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub step: Step,
    pub errno: Errno,
}

/// A program to start, fully prepared, so that the child only makes system calls.
pub struct Plan {
    path: CString,
    arguments: Strings,
    environment: Strings,
    folder: CString,
    identity: Option<Identity>,
    streams: [RawFd; 3],
}

struct Identity {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

/// Strings in the form that the kernel takes.
struct Strings {
    pointers: Vec<*const c_char>,
    /// The strings that they point to.
    _strings: Vec<CString>,
}

/// What parent and child share.
struct Birth<'a> {
    plan: &'a Plan,
    failure: Option<Failure>,
}

/// Signals that do not end a supervisor: it ends filters by its own rules, and a filter that stops reading is no reason
/// to end.
pub const IGNORED_BY_SUPERVISORS: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGPIPE];

/// More than the few calls of the child need.
const STACK_BYTES: usize = 16 << 10;

/// The child's stack, with the alignment that the processor requires.
#[repr(C, align(16))]
struct Stack([u8; STACK_BYTES]);

impl Plan {
    pub fn new(order: &Order, folder: &Path, streams: [&OwnedFd; 3]) -> io::Result<Self> {
        let path = CString::new(order.program.as_str())?;
        let arguments = order.arguments.iter().map(|argument| Ok(CString::new(argument.as_str())?));
        let variable = |(name, value): &(String, String)| Ok(CString::new(format!("{name}={value}"))?);
        Ok(Self {
            arguments: Strings::new(std::iter::once(Ok(path.clone())).chain(arguments))?,
            path,
            environment: Strings::new(order.environment.iter().map(variable))?,
            folder: CString::new(folder.as_os_str().as_bytes())?,
            identity: order.account.as_ref().map(Identity::of),
            streams: streams.map(AsRawFd::as_raw_fd),
        })
    }

    /// Starts the program and returns its process id.
    pub fn spawn(&self) -> Result<i32, Failure> {
        let mut stack = Box::new(Stack([0; STACK_BYTES]));
        let mut birth = Birth { plan: self, failure: None };
        // SAFETY: the child runs on its own stack, whose end this pointer points to. With CLONE_VFORK this thread, the
        // only one of the process, continues only after the child has left the shared memory; so `stack` and `birth`
        // outlive its use of them, and nobody else uses them meanwhile.
        let process = unsafe {
            let top = (&raw mut *stack).add(1).cast();
            libc::clone(child, top, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD, (&raw mut birth).cast())
        };
        let process = Errno::result(process).map_err(|errno| Failure { step: Step::Fork, errno })?;
        let Some(failure) = birth.failure else { return Ok(process) };
        // SAFETY: a null status is allowed. The child has ended already, and nobody else must find it.
        unsafe { libc::waitpid(process, ptr::null_mut(), 0) };
        Err(failure)
    }
}

impl Identity {
    fn of(account: &Account) -> Self {
        Self {
            uid: Uid::from_raw(account.uid),
            gid: Gid::from_raw(account.gid),
            groups: account.groups.iter().copied().map(Gid::from_raw).collect(),
        }
    }
}

impl Strings {
    fn new(strings: impl Iterator<Item = io::Result<CString>>) -> io::Result<Self> {
        let strings: Vec<CString> = strings.collect::<io::Result<_>>()?;
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Ok(Self { pointers, _strings: strings })
    }
}

/// The child: nothing here may allocate or free memory, which belongs to the parent.
extern "C" fn child(birth: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes this type, and does not touch it while this runs.
    let birth = unsafe { &mut *birth.cast::<Birth>() };
    let Err(failure) = become_program(birth.plan);
    birth.failure = Some(failure);
    // SAFETY: the child must not clean up anything of the parent's.
    unsafe { libc::_exit(127) }
}

fn become_program(plan: &Plan) -> Result<std::convert::Infallible, Failure> {
    let at = |step| move |errno| Failure { step, errno };
    setsid().map_err(at(Step::Session))?;
    if let Some(identity) = &plan.identity {
        switch_to(identity).map_err(at(Step::Account))?;
    }
    // If the supervisor is killed, its filter dies too. A change of user would undo this.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Step::Session))?;
    chdir(plan.folder.as_c_str()).map_err(at(Step::Folder))?;
    for (stream, number) in plan.streams.iter().zip(0..) {
        // SAFETY: the table of files is the child's own; its standard streams are not used before this.
        Errno::result(unsafe { libc::dup2(*stream, number) }).map_err(at(Step::Streams))?;
    }
    reset_signals().map_err(at(Step::Execute))?;
    // SAFETY: both arrays end with a null pointer, and their strings live in the plan.
    unsafe { libc::execve(plan.path.as_ptr(), plan.arguments.pointers.as_ptr(), plan.environment.pointers.as_ptr()) };
    Err(Failure { step: Step::Execute, errno: Errno::last() })
}

fn switch_to(identity: &Identity) -> Result<(), Errno> {
    setgroups(&identity.groups)?;
    setresgid(identity.gid, identity.gid, identity.gid)?;
    setresuid(identity.uid, identity.uid, identity.uid)
}

/// Resets signals to their state after a login: none ignored, none blocked.
fn reset_signals() -> Result<(), Errno> {
    for signal in IGNORED_BY_SUPERVISORS {
        // SAFETY: the default action runs no code of this program, and the table of actions is the child's own.
        unsafe { libc::signal(signal as c_int, libc::SIG_DFL) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}
