//! The environment of a user after a login on this node.

use super::children::end_children;
use crate::{environment::USUAL_PATH, identity::Identity, signals};
use nix::unistd::{Uid, seteuid};
use std::{
    fs::File,
    io,
    os::unix::{fs::FileExt, process::CommandExt},
    process::{Command, Stdio},
};

/// How much is read of the end of a login's output.
const MOST_BYTES: u64 = 4 << 20;
/// From the time limit to SIGKILL.
const GRACE_SECONDS: &str = "5";

/// Logs a user in and runs a simple command line there, such as `env`, which every shell understands; returns the
/// standard output of the profile and the command, or its end. This is for a shim that has not yet started anything of
/// its run: nothing that the login leaves behind outlives this call, and nothing of it counts as the job's.
///
/// # Errors
/// For people: the login could not be started.
pub fn after_login(user: &Identity, line: &str, seconds: u32) -> Result<Vec<u8>, String> {
    let mut login = command(user, line, seconds);
    // Processes that a login leaves running may keep a pipe open; a file has its end at once.
    let said = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let stdout = said.try_clone().map_err(|error| format!("no temporary file: {error}"))?;
    login.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::null());
    let ignored = signals::ignored();
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
    unsafe { login.pre_exec(move || become_login(&ignored)) };
    let status = login.status();
    end_children();
    status.map_err(|error| format!("{:?}: {error}", login.get_program()))?;
    end_of(&said).map_err(|error| format!("its output cannot be read: {error}"))
}

/// Only root can log in as somebody else; other users run their own shell as a login shell. This checks the real user:
/// a shim that prepares a run temporarily has the rights of the job's user.
fn command(user: &Identity, line: &str, seconds: u32) -> Command {
    let mut command = Command::new("timeout");
    command.env_clear().env("PATH", USUAL_PATH).args(["--kill-after", GRACE_SECONDS, &seconds.to_string()]);
    if Uid::current().is_root() {
        command.args(["su", "--login", "--command", line, "--", &user.user]);
        return command;
    }
    // An account without a shell has this one.
    let shell = if user.shell.is_empty() { "/bin/sh" } else { &user.shell };
    command.envs([("HOME", &user.home), ("USER", &user.user), ("LOGNAME", &user.user)]);
    command.arg(shell).args(["-l", "-c", line]).current_dir(&user.home);
    command
}

/// Signals as any program expects them, and no protection when memory runs out.
fn become_login(ignored: &[i32]) -> io::Result<()> {
    signals::reset(ignored)?;
    if Uid::current().is_root() {
        seteuid(Uid::from_raw(0))?;
    }
    signals::spare_no_more();
    Ok(())
}

/// The end of a file, whatever the position of its writers.
fn end_of(file: &File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let most = length.min(MOST_BYTES);
    let mut bytes = vec![0; usize::try_from(most).unwrap_or(0)];
    file.read_exact_at(&mut bytes, length - most)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_much_is_read() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"first", 0).unwrap();
        file.write_all_at(b"last", MOST_BYTES).unwrap();
        let end = end_of(&file).unwrap();
        assert_eq!((end.len() as u64, end.ends_with(b"last")), (MOST_BYTES, true));
        assert_eq!(end_of(&tempfile::tempfile().unwrap()).unwrap(), b"");
    }
}
