//! A fork of the shim, until it is what its launch wants it to be: its control groups, and its user.

use crate::{containment::Entrance, identity::Identity};
use nix::{
    errno::Errno,
    unistd::{Gid, Uid, setegid, seteuid, setgroups, setresgid, setresuid},
};
use std::{ffi::OsStr, fs, io, os::unix::ffi::OsStrExt as _, path::Path};

/// The two returns of a fork.
pub enum Forked {
    Parent(i32),
    /// `joined` if it is in its group already.
    Child {
        joined: bool,
    },
}

/// Forks; directly into a v2 group if one must be joined: moving a process later stalls all others of the host.
pub fn fork_into(entrance: &Entrance) -> Result<Forked, Errno> {
    let forked = |process: i64, joined| match process {
        0 => Forked::Child { joined },
        process => Forked::Parent(process as i32),
    };
    if let Some(group) = entrance.born_in_fd() {
        match clone_into(group) {
            Ok(process) => return Ok(forked(process, true)),
            // Sandboxes forbid this call more often than fork.
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    // SAFETY: this process has one thread, so the child may do all that the parent may.
    Errno::result(unsafe { libc::fork() }).map(|process| forked(process.into(), false))
}

fn clone_into(group: i32) -> Result<i64, Errno> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    // SAFETY: all zero is a valid value of this plain structure.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.cgroup = group as u64;
    // SAFETY: without CLONE_VM this is a fork; this process has one thread.
    Errno::result(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) })
}

/// The groups of a user.
pub fn groups_of(identity: &Identity) -> Vec<Gid> {
    identity.groups.iter().copied().map(Gid::from_raw).collect()
}

/// Enters the groups that a process was not born in.
pub fn join(entrance: &Entrance, joined: bool) -> Result<(), Errno> {
    let to_errno = |error: io::Error| error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
    if let Some(group) = entrance.born_in_fd().filter(|_| !joined) {
        fs::write(format!("/proc/self/fd/{group}/cgroup.procs"), "0").map_err(to_errno)?;
    }
    for procs in &entrance.join {
        fs::write(Path::new(OsStr::from_bytes(procs.as_bytes())), "0").map_err(to_errno)?;
    }
    Ok(())
}

/// Becomes the owner of the job, if this process is root.
pub fn change_user(identity: &Identity, groups: &[Gid]) -> Result<(), Errno> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    setgroups(groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}

/// Acts with the file permissions of a user.
pub fn as_user<T>(identity: &Identity, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    if !Uid::effective().is_root() {
        return act();
    }
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    let become_user = || {
        setgroups(&groups)?;
        setegid(Gid::from_raw(identity.gid))?;
        seteuid(Uid::from_raw(identity.uid))
    };
    let become_root = || {
        seteuid(Uid::from_raw(0))?;
        setegid(Gid::from_raw(0))
    };
    let result = become_user().map_err(|errno| cannot_become(identity, errno)).and_then(|()| act());
    become_root().map_err(|errno| format!("the shim cannot become root again: {}", errno.desc()))?;
    result
}

fn cannot_become(identity: &Identity, errno: Errno) -> String {
    format!("the shim cannot become user `{}`: {}", identity.user, errno.desc())
}
