//! Programs of the site: a prolog before the first process of a job on the node, an epilog after the last, and a check
//! of the node's health.
//!
//! None of them gets a word of a user: they learn numbers and checked names through variables. They run as an account
//! of the site's choice, and as root only if the configuration names it.

use crate::{
    identity::{self, Identity},
    runtimes::FOLDERS,
};
use muster_schemas::node::LaunchOrder;
use nix::{
    sys::signal::{Signal, killpg},
    unistd::{Gid, Pid, Uid, setgroups, setresgid, setresuid},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The file in a spool that says why the node is to be drained.
const UNFIT: &str = "unfit";
/// How much of a program's output is looked at, in bytes.
const MAX_OUTPUT_BYTES: u64 = 4_096;
/// The longest reason, in bytes.
const MAX_REASON_BYTES: usize = 500;
/// How often it is checked whether a program has ended.
const POLL: Duration = Duration::from_millis(5);

/// The programs around jobs, and whom they run as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SitePrograms {
    /// Runs before the first process of a job on the node.
    pub prolog: Option<PathBuf>,
    /// Runs after the last.
    pub epilog: Option<PathBuf>,
    /// Runs from time to time.
    pub health_check: Option<PathBuf>,
    /// Their account.
    pub account: Identity,
    /// How long one of them may take.
    pub timeout_seconds: u32,
}

impl SitePrograms {
    /// Runs the prolog for a job, if there is one.
    ///
    /// # Errors
    /// Why the job cannot start here, for people.
    pub fn run_prolog(&self, order: &LaunchOrder, owner: &Identity) -> Result<(), String> {
        let run = |program: &PathBuf| self.run("prolog", program, &variables(order, owner));
        self.prolog.as_ref().map_or(Ok(()), run)
    }

    /// Runs the epilog for a job, if there is one.
    ///
    /// # Errors
    /// Why nothing is to be started here, for people.
    pub fn run_epilog(&self, order: &LaunchOrder, owner: &Identity) -> Result<(), String> {
        let run = |program: &PathBuf| self.run("epilog", program, &variables(order, owner));
        self.epilog.as_ref().map_or(Ok(()), run)
    }

    /// Runs the check of a node's health, if there is one.
    ///
    /// # Errors
    /// Why it is not healthy, for people.
    pub fn check_health(&self, node: &str) -> Result<(), String> {
        let variables = ["MUSTER_NODE_NAME", "SLURMD_NODENAME"].map(|name| (name, node.to_owned()));
        let run = |program: &PathBuf| self.run("health check", program, &variables);
        self.health_check.as_ref().map_or(Ok(()), run)
    }

    fn run(&self, what: &str, program: &Path, variables: &[(&str, String)]) -> Result<(), String> {
        match self.try_run(program, variables) {
            Ok((Some(status), _)) if status.success() => Ok(()),
            Ok((status, output)) => {
                let how = match status {
                    Some(status) => format!("{what} {} failed ({status})", program.display()),
                    None => format!("{what} {} took longer than {} s", program.display(), self.timeout_seconds),
                };
                let first = output.lines().find(|line| !line.trim().is_empty()).map(str::trim);
                Err(short(&first.map_or_else(|| how.clone(), |first| format!("{how}: {first}"))))
            }
            Err(error) => Err(short(&format!("{what} {} cannot be run: {error}", program.display()))),
        }
    }

    /// How the program ended, `None` if it took too long, and what it has said.
    fn try_run(&self, program: &Path, variables: &[(&str, String)]) -> io::Result<(Option<ExitStatus>, String)> {
        let mut output = tempfile::tempfile()?;
        let mut command = Command::new(program);
        command
            .current_dir("/")
            .env_clear()
            .env("PATH", FOLDERS.join(":"))
            .env("HOME", &self.account.home)
            .env("USER", &self.account.user)
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .process_group(0);
        if Uid::effective().is_root() {
            let (uid, gid) = (Uid::from_raw(self.account.uid), Gid::from_raw(self.account.gid));
            let groups: Vec<Gid> = self.account.groups.iter().copied().map(Gid::from_raw).collect();
            let become_account = move || {
                setgroups(&groups)?;
                setresgid(gid, gid, gid)?;
                Ok(setresuid(uid, uid, uid)?)
            };
            // SAFETY: the calls allocate no memory and take no lock.
            unsafe { command.pre_exec(become_account) };
        }
        let status = self.wait(command.spawn()?)?;
        output.rewind()?;
        let mut said = Vec::new();
        output.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut said)?;
        Ok((status, String::from_utf8_lossy(&said).into_owned()))
    }

    /// Waits for it, and ends what it has left behind in its group.
    fn wait(&self, mut child: Child) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + Duration::from_secs(self.timeout_seconds.into());
        let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        let mut status = child.try_wait()?;
        while status.is_none() && Instant::now() < deadline {
            thread::sleep(POLL);
            status = child.try_wait()?;
        }
        // Nothing may be left of it.
        let _ = killpg(group, Signal::SIGKILL);
        if status.is_none() {
            child.wait()?;
        }
        Ok(status)
    }
}

/// The account that programs of the site run as: this one, if this process is root.
///
/// # Errors
/// It does not exist.
pub fn account(name: &str) -> Result<Identity, String> {
    match Uid::effective() {
        own if own.is_root() => identity::look_up(name),
        own => {
            let user = nix::unistd::User::from_uid(own).ok().flatten();
            identity::look_up(&user.map(|user| user.name).ok_or("this user has no name")?)
        }
    }
}

/// What a program learns about a job, by muster's names and by those that Slurm's programs read.
fn variables(order: &LaunchOrder, owner: &Identity) -> Vec<(&'static str, String)> {
    let node = order.nodes.get(order.node_index as usize).map(|node| node.name.clone()).unwrap_or_default();
    let mut variables = vec![
        ("MUSTER_JOB_ID", order.job.to_string()),
        ("MUSTER_RUN_ID", order.part.run().to_string()),
        ("MUSTER_QUEUE", order.queue.clone()),
        ("SLURM_JOB_ID", order.number().to_string()),
        ("SLURM_JOBID", order.number().to_string()),
        ("SLURM_JOB_PARTITION", order.queue.clone()),
    ];
    let same = [
        ("MUSTER_NODE_NAME", "SLURMD_NODENAME", node),
        ("MUSTER_JOB_OWNER", "SLURM_JOB_USER", owner.user.clone()),
        ("MUSTER_JOB_OWNER_UID", "SLURM_JOB_UID", owner.uid.to_string()),
        ("MUSTER_JOB_OWNER_GID", "SLURM_JOB_GID", owner.gid.to_string()),
    ];
    variables.extend(same.into_iter().flat_map(|(own, slurm, value)| [(own, value.clone()), (slurm, value)]));
    variables
}

fn short(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    text.get(..text.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or(&text).to_owned()
}

/// Notes in a spool that the node is to be drained. The executor tells the ledger before it tells that a job has ended,
/// so that the job does not come back at once.
///
/// # Errors
/// If the disk refuses.
pub fn note_unfit(spool: &Path, why: &str) -> io::Result<()> {
    let new = spool.join(format!("{UNFIT}.{}", std::process::id()));
    fs::write(&new, why)?;
    fs::rename(new, spool.join(UNFIT))
}

/// Why the node is to be drained, if it is.
pub fn unfit(spool: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(spool.join(UNFIT)).ok()?.take(MAX_OUTPUT_BYTES).read_to_end(&mut text).ok()?;
    Some(short(&String::from_utf8_lossy(&text)))
}

/// The ledger knows.
pub fn forget_unfit(spool: &Path) {
    // If it stays, the ledger is told again.
    let _ = fs::remove_file(spool.join(UNFIT));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{order, spooled};
    use std::os::unix::fs::PermissionsExt as _;

    fn programs(folder: &Path, text: &str) -> SitePrograms {
        let program = folder.join("program");
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let account = account("nobody").unwrap();
        let program = Some(program);
        SitePrograms { prolog: program.clone(), epilog: None, health_check: program, account, timeout_seconds: 20 }
    }

    #[test]
    fn a_program_of_the_site_says_what_is_wrong_in_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let said = |text: &str| programs(folder.path(), text).check_health("n1");
        assert_eq!(said("test $SLURMD_NODENAME = n1 && test -z \"$MUSTER_JOB_ID\""), Ok(()));
        let why = said("echo; echo \"the disk of $MUSTER_NODE_NAME is full\"; echo more; exit 3").unwrap_err();
        let program = folder.path().join("program");
        let expected = format!("health check {} failed (exit status: 3): the disk of n1 is full", program.display());
        assert_eq!(why, expected);
        let slow = SitePrograms { timeout_seconds: 0, ..programs(folder.path(), "sleep 600") };
        assert!(slow.check_health("n1").unwrap_err().ends_with("took longer than 0 s"));
        let missing = SitePrograms { health_check: Some("/no/such".into()), ..slow };
        assert!(missing.check_health("n1").unwrap_err().contains("cannot be run"));
    }

    #[test]
    fn a_prolog_is_no_process_of_root_and_knows_the_job() {
        let folder = tempfile::tempdir().unwrap();
        let spooled = spooled(order(7));
        let run = |text: &str| programs(folder.path(), text).run_prolog(&spooled.order, &spooled.identity);
        assert_eq!(run("test $(id -u) != 0 || test $USER != nobody"), Ok(()));
        assert_eq!(run("test $MUSTER_JOB_ID.$SLURM_JOB_ID.$SLURM_JOB_USER.$SLURM_JOB_UID = 7.7.root.0"), Ok(()));
        assert!(run("exit 1").is_err());
    }

    #[test]
    fn a_node_is_unfit_until_the_ledger_knows() {
        let spool = tempfile::tempdir().unwrap();
        assert_eq!(unfit(spool.path()), None);
        note_unfit(spool.path(), "a\nb").unwrap();
        assert_eq!(unfit(spool.path()).as_deref(), Some("a b"));
        forget_unfit(spool.path());
        forget_unfit(spool.path());
        assert_eq!(unfit(spool.path()), None);
    }
}
