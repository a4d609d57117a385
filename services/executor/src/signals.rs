//! What a program expects of the process that becomes it: signals as after a login, and no protection when memory runs
//! out. All of it can be called between fork and exec: only system calls are made, and no memory is allocated.

use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    sys::{
        signal::{SigSet, SigmaskHow, sigprocmask},
        stat::Mode,
    },
    unistd::write,
};

/// The signals that this process ignores, for [`reset`] after a fork; it is to be called before.
pub fn ignored() -> Vec<i32> {
    (1..32).filter(is_ignored).collect()
}

fn is_ignored(signal: &i32) -> bool {
    // SAFETY: all zero is a valid value of this plain structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a variable of the right type, and nothing is changed.
    let known = unsafe { libc::sigaction(*signal, std::ptr::null(), &raw mut action) };
    known == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// A program expects the signals as after a login: none ignored, none blocked.
///
/// # Errors
/// If the kernel refuses.
pub fn reset(ignored: &[i32]) -> Result<(), Errno> {
    for signal in ignored {
        // SAFETY: the default action is no code of this program.
        unsafe { libc::signal(*signal, libc::SIG_DFL) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// When memory runs out, the executor and its shims are spared; this process is not. A program runs without this as well.
pub fn spare_no_more() {
    if let Ok(score) = open(c"/proc/self/oom_score_adj", OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        let _ = write(&score, b"0");
    }
}
