//! The environment of a user after a login on this node.

use super::{
    children::end_children,
    task::{is_ignored, reset_signals},
};
use crate::environment::USUAL_PATH;
use muster_names::User;
use nix::{
    fcntl::{OFlag, open},
    sys::stat::Mode,
    unistd::{Uid, seteuid, write},
};
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
pub fn after_login(user: &str, line: &str, seconds: u32) -> Result<Vec<u8>, String> {
    let mut login = command(user, line, seconds)?;
    // Processes that a login leaves running may keep a pipe open; a file has its end at once.
    let said = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let stdout = said.try_clone().map_err(|error| format!("no temporary file: {error}"))?;
    login.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::null());
    let ignored: Vec<i32> = (1..32).filter(is_ignored).collect();
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
    unsafe { login.pre_exec(move || become_login(&ignored)) };
    let status = login.status();
    end_children();
    status.map_err(|error| format!("{:?}: {error}", login.get_program()))?;
    end_of(&said).map_err(|error| format!("its output cannot be read: {error}"))
}

/// Only root can log in as somebody else; other users run their own shell as a login shell. This checks the real user:
/// a shim that prepares a run temporarily has the rights of the job's user.
fn command(user: &str, line: &str, seconds: u32) -> Result<Command, String> {
    let mut command = Command::new("timeout");
    command.env_clear().env("PATH", USUAL_PATH).args(["--kill-after", GRACE_SECONDS, &seconds.to_string()]);
    if Uid::current().is_root() {
        command.args(["su", "--login", "--command", line, "--", user]);
        return Ok(command);
    }
    let found = User::look_up(user).map_err(|error| error.to_string())?;
    let account = account(found, Uid::current())?;
    command.envs([("HOME", account.home.as_str()), ("USER", user), ("LOGNAME", user)]);
    command.arg(&account.shell).args(["-l", "-c", line]).current_dir(&account.home);
    Ok(command)
}

/// The account that was found by the name of a job's user, if it has the number that the job runs as. The name can be
/// spelled differently: a directory that ignores case has its own spelling.
fn account(found: Option<User>, uid: Uid) -> Result<User, String> {
    let mut account = found.ok_or("there is no such user")?;
    if account.uid != uid.as_raw() {
        return Err(format!("the user number of that name is {}, not {uid}, which the job has", account.uid));
    }
    if account.shell.is_empty() {
        "/bin/sh".clone_into(&mut account.shell);
    }
    Ok(account)
}

/// Signals as any program expects them, and no protection when memory runs out.
fn become_login(ignored: &[i32]) -> io::Result<()> {
    reset_signals(ignored)?;
    if Uid::current().is_root() {
        seteuid(Uid::from_raw(0))?;
    }
    // The login runs without this as well.
    if let Ok(score) = open(c"/proc/self/oom_score_adj", OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        let _ = write(&score, b"0");
    }
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
    fn the_account_of_a_job_has_its_number_however_its_name_is_spelled() {
        let ann = |shell: &str| {
            let [name, home, shell] = ["ann@dom", "/home/ann", shell].map(str::to_owned);
            User { name, uid: 1000, gid: 100, home, shell }
        };
        assert_eq!(account(Some(ann("/bin/bash")), Uid::from_raw(1000)), Ok(ann("/bin/bash")));
        assert_eq!(account(Some(ann("")), Uid::from_raw(1000)), Ok(ann("/bin/sh")));
        let other = "the user number of that name is 1000, not 1001, which the job has";
        assert_eq!(account(Some(ann("")), Uid::from_raw(1001)), Err(other.to_owned()));
        assert_eq!(account(None, Uid::from_raw(1000)), Err("there is no such user".to_owned()));
    }

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
