//! A program of the site with one argument, bounded in time and in what it prints.

use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::Pid,
};
use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
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

/// What a program prints, if it ends in time with status 0. No shell reads its name, and its environment is clean. Whatever it
/// has left running in its process group is killed.
pub(super) fn output(program: &str, argument: &str, limit: Duration) -> Result<String, String> {
    let deadline = Instant::now() + limit;
    let mut command = Command::new(program);
    command.arg(argument).current_dir("/").env_clear().env("PATH", PATH).env("LC_ALL", "C.UTF-8").process_group(0);
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
    let reader = thread::Builder::new().name("muster-pbs-outages".into());
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

    fn sh(script: &str, limit: Duration) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("outages");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).unwrap();
        output(file.to_str().unwrap(), "alpha", limit)
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
        assert!(output("/nowhere/x", "alpha", long).unwrap_err().contains("cannot be started"));
    }
}
