//! A program of the site with one argument, bounded in its rights, in time and in what it prints.

use muster_names::User;
use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::{Pid, Uid},
};
use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// The search path of programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Maximum number of bytes that are read of what a program prints.
const MOST_BYTES: u64 = 1 << 20;
/// Between two looks at whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The account that programs run as if the site has named none, or root.
pub(super) const NOBODY: &str = "nobody";

/// Whom a program runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

/// The account with a name, or `nobody` if that is root; `None` if this process is not root, so that it cannot change users.
///
/// # Errors
/// There is no such account, or nobody can tell now.
pub(super) fn account(name: &str) -> Result<Option<Account>, String> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    let named = |name: &str| {
        let found = User::ask(name).map_err(|error| format!("account `{name}` cannot be looked up: {error}"))?;
        let user = found.ok_or_else(|| format!("account `{name}` does not exist"))?;
        Ok::<_, String>(Account { uid: user.uid, gid: user.gid })
    };
    let account = match named(name)? {
        Account { uid: 0, .. } => named(NOBODY)?,
        account => account,
    };
    if account.uid == 0 { Err(format!("account `{NOBODY}` is root")) } else { Ok(Some(account)) }
}

/// What a program prints, if it ends in time with status 0. It runs as the account without other groups, or as the user of this
/// process. No shell reads its name, and its environment is clean. Whatever it has left running in its process group is killed.
///
/// # Errors
/// Why there is no answer, for people.
pub(super) fn output(
    program: &Path,
    argument: &str,
    account: Option<Account>,
    limit: Duration,
) -> Result<String, String> {
    let deadline = Instant::now() + limit;
    let mut command = Command::new(program);
    command.arg(argument).current_dir("/").env_clear().env("PATH", PATH).env("LC_ALL", "C.UTF-8").process_group(0);
    if let Some(Account { uid, gid }) = account {
        // The standard library leaves all other groups with the change of the user.
        command.uid(uid).gid(gid);
    }
    let program = program.display();
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|error| format!("{program} cannot be started: {error}"))?;
    let group = i32::try_from(child.id()).map(Pid::from_raw).map_err(|error| error.to_string())?;
    let told = told_by(&mut child, deadline);
    let is_over = told.is_ok() && is_over(group, deadline);
    // The leader was not waited for, so that its number is still its own.
    let _ = killpg(group, Signal::SIGKILL);
    let ended = match child.wait() {
        _ if told.is_ok() && !is_over => Err("took too long".to_owned()),
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("has failed ({status})")),
        Err(error) => Err(format!("cannot be waited for: {error}")),
    };
    told.and_then(|text| ended.map(|()| text)).map_err(|why| format!("{program} {argument} {why}"))
}

fn told_by(child: &mut Child, deadline: Instant) -> Result<String, String> {
    let Some(pipe) = child.stdout.take() else { return Ok(String::new()) };
    let (send, told) = mpsc::channel();
    // It ends with the pipe, at the latest when the group is killed.
    let reader = thread::Builder::new().name("site-program".into());
    let read = move || {
        let mut bytes = Vec::new();
        let read = pipe.take(MOST_BYTES + 1).read_to_end(&mut bytes);
        // Nobody waits any more.
        let _ = send.send(read.map(|_| bytes));
    };
    reader.spawn(read).map_err(|error| format!("cannot be listened to: {error}"))?;
    match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(Ok(bytes)) if bytes.len() as u64 > MOST_BYTES => Err(format!("prints more than {MOST_BYTES} bytes")),
        Ok(Ok(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(Err(error)) => Err(format!("cannot be listened to: {error}")),
        Err(_) => Err("took too long".into()),
    }
}

/// Whether a child ends in time. It is not waited for.
fn is_over(child: Pid, deadline: Instant) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    loop {
        match waitid(Id::Pid(child), flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) if Instant::now() < deadline => thread::sleep(LOOK),
            Ok(WaitStatus::StillAlive) => return false,
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    fn executable(folder: &Path, script: &str) -> PathBuf {
        let file = folder.join("outages");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        set_mode(folder, 0o755);
        set_mode(&file, 0o755);
        file
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }

    fn sh(script: &str, limit: Duration) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        output(&executable(folder.path(), script), "alpha", account("root").unwrap(), limit)
    }

    /// PBS-P-14: only what a program prints that ends well and in time is an answer.
    #[test]
    fn only_programs_that_end_well_and_in_time_answer() {
        let long = Duration::from_secs(60);
        assert_eq!(sh("echo \"[$1] $HOME\"", long), Ok("[alpha] \n".to_owned()));
        assert!(sh("echo x; exit 3", long).unwrap_err().contains("has failed (exit status: 3)"));
        assert!(sh("sleep 600", Duration::from_millis(50)).unwrap_err().contains("took too long"));
        assert!(sh("exec >&-; sleep 600", Duration::from_millis(50)).unwrap_err().contains("took too long"));
        assert!(sh("yes", long).unwrap_err().contains("prints more than"));
        let missing = output(Path::new("/nowhere/x"), "alpha", None, long);
        assert!(missing.unwrap_err().contains("cannot be started"));
    }

    /// PBS-P-14: the program is never root, also if other programs of the site are, and has none of root's groups.
    #[test]
    fn a_program_is_not_root_and_has_no_groups_of_root() {
        if !Uid::effective().is_root() {
            assert_eq!(account("no such account"), Ok(None));
            return;
        }
        let nobody = User::named(NOBODY).unwrap();
        let told = sh("id -u; id -G", Duration::from_secs(60));
        assert_eq!(told, Ok(format!("{}\n{}\n", nobody.uid, nobody.gid)));
        assert_eq!(
            account("daemon").unwrap(),
            User::named("daemon").map(|user| Account { uid: user.uid, gid: user.gid })
        );
        assert_eq!(account("no such account").unwrap_err(), "account `no such account` does not exist");
    }
}
