//! Programs of the site: a prolog before the first process of a job on the node, an epilog after the last, and a check
//! of the node's health.
//!
//! None of them gets a word of a user: they learn numbers and checked names through variables. They run as an account
//! of the site's choice, and as root only if the configuration names it.

mod isolation;

use crate::{
    identity::{self, Identity},
    runtimes::FOLDERS,
    supervised::{self, Conditions, MAX_OUTPUT_BYTES, Outcome},
};
use muster_schemas::{
    node::LaunchOrder,
    unfit::{AFTER_SUSPEND_PROGRAM, UnfitCause},
};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

pub use isolation::Inside;

/// The file in a spool that says why the node is to be drained.
const UNFIT: &str = "unfit";
/// The longest reason, in bytes.
const MAX_REASON_BYTES: usize = 500;
/// The variable with the name of the node.
const NODE_NAME: &str = "MUSTER_NODE_NAME";

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
    /// Runs after the prolog on the first node of a job, with arguments.
    pub job_prolog: Option<PathBuf>,
    /// Runs before the epilog there.
    pub job_epilog: Option<PathBuf>,
    /// Suspends the processes of a job and lets them continue.
    pub suspend_program: Option<PathBuf>,
    /// Runs on the first node of a job right after its processes there have stopped.
    pub after_suspend_program: Option<PathBuf>,
    /// Runs on the first node of a job right before its processes there continue.
    pub before_resume_program: Option<PathBuf>,
    /// Makes, reads and fills the groups of jobs, in place of the executor's own.
    pub isolation: Option<Isolation>,
}

/// The programs that make, read and fill the groups of jobs; there are all of them or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Makes and removes groups.
    pub manager: PathBuf,
    /// Tells the group of a process.
    pub reader: PathBuf,
    /// Takes a process into a group.
    pub joiner: PathBuf,
}

/// Either change of the processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// They stop.
    Suspend,
    /// They continue.
    Resume,
}

impl Suspension {
    const fn word(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Resume => "resume",
        }
    }
}

impl SitePrograms {
    /// Runs the prologs for a job, as far as there are any. They are ended, which is no error, once `is_stopped`. The one of
    /// the first node gets the number of the job, its owner, the node file and the walltime in seconds, 0 for none
    /// (OAR-J-18).
    ///
    /// # Errors
    /// Why the job cannot start here, for people.
    pub fn run_prologs(
        &self,
        order: &LaunchOrder,
        owner: &Identity,
        node_file: &Path,
        mut is_stopped: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let variables = variables(order, owner);
        if let Some(program) = &self.prolog {
            self.run(UnfitCause::Prolog, Command::new(program), &variables, &mut is_stopped)?;
        }
        let Some(program) = self.job_prolog.as_ref().filter(|_| is_first_node(order)) else { return Ok(()) };
        let mut command = about_job(program, order, owner, node_file);
        command.arg(order.walltime_seconds.unwrap_or(0).to_string());
        self.run(UnfitCause::JobProlog, command, &variables, is_stopped)
    }

    /// Runs the epilogs for a job, as far as there are any. The one of the first node gets the number of the job, its owner and
    /// the node file (OAR-J-18).
    ///
    /// # Errors
    /// Why nothing is to be started here, for people.
    pub fn run_epilogs(&self, order: &LaunchOrder, owner: &Identity, node_file: &Path) -> Result<(), String> {
        let variables = variables(order, owner);
        let of_job = self.job_epilog.as_ref().filter(|_| is_first_node(order)).map_or(Ok(()), |program| {
            let command = about_job(program, order, owner, node_file);
            self.run(UnfitCause::JobEpilog, command, &variables, || false)
        });
        let run = |program: &PathBuf| self.run(UnfitCause::Epilog, Command::new(program), &variables, || false);
        of_job.and(self.epilog.as_ref().map_or(Ok(()), run))
    }

    /// Runs the program that suspends the processes of a job or lets them continue. It gets what it is to do, the number of the
    /// job, its owner and a file with the numbers of the processes, one in a line (OAR-S-07).
    ///
    /// # Errors
    /// Why it failed, for people.
    pub fn run_suspension(
        &self,
        program: &Path,
        what: Suspension,
        order: &LaunchOrder,
        owner: &Identity,
        process_file: &Path,
    ) -> Result<(), String> {
        let mut command = Command::new(program);
        command.args([what.word(), &order.job.to_string(), &owner.user]).arg(process_file);
        self.run(UnfitCause::SuspendProgram, command, &variables(order, owner), || false)
    }

    /// Runs the program that follows a suspension, or the one ahead of a continuation, if this is the first node of the job. It
    /// gets the number of the job (OAR-S-04).
    ///
    /// # Errors
    /// Why it failed, for people.
    pub fn run_beside_suspension(&self, what: Suspension, order: &LaunchOrder, owner: &Identity) -> Result<(), String> {
        let (name, program) = match what {
            Suspension::Suspend => (AFTER_SUSPEND_PROGRAM, &self.after_suspend_program),
            Suspension::Resume => (UnfitCause::BeforeResumeProgram.words(), &self.before_resume_program),
        };
        let Some(program) = program.as_ref().filter(|_| is_first_node(order)) else { return Ok(()) };
        let mut command = Command::new(program);
        command.arg(order.job.to_string());
        self.ask(name, command, &variables(order, owner), || false).map(drop)
    }

    /// Whether programs of this run get a node file.
    pub fn reads_node_file(&self, order: &LaunchOrder) -> bool {
        (self.job_prolog.is_some() || self.job_epilog.is_some()) && is_first_node(order)
    }

    /// Runs the check of a node's health, if there is one.
    ///
    /// # Errors
    /// Why it is not healthy, for people.
    pub fn check_health(&self, node: &str) -> Result<(), String> {
        let variables = [(NODE_NAME, node.to_owned())];
        let run = |program: &PathBuf| self.run(UnfitCause::HealthCheck, Command::new(program), &variables, || false);
        self.health_check.as_ref().map_or(Ok(()), run)
    }

    fn run(
        &self,
        what: UnfitCause,
        command: Command,
        variables: &[(&str, String)],
        is_stopped: impl FnMut() -> bool,
    ) -> Result<(), String> {
        self.ask(what.words(), command, variables, is_stopped).map(drop)
    }

    /// Runs a program; returns the first line that it has said.
    fn ask(
        &self,
        what: &str,
        command: Command,
        variables: &[(&str, String)],
        is_stopped: impl FnMut() -> bool,
    ) -> Result<String, String> {
        let program = PathBuf::from(command.get_program());
        match self.try_run(command, variables, is_stopped) {
            Ok((Outcome::Stopped, _)) => Ok(String::new()),
            Ok((Outcome::Ended(status), said)) if status.success() => {
                Ok(said.lines().next().unwrap_or_default().trim().to_owned())
            }
            Ok((outcome, output)) => {
                let how = match outcome {
                    Outcome::Ended(status) => format!("{what} {} failed ({status})", program.display()),
                    _ => format!("{what} {} took longer than {} s", program.display(), self.timeout_seconds),
                };
                let first = output.lines().find(|line| !line.trim().is_empty()).map(str::trim);
                Err(short(&first.map_or_else(|| how.clone(), |first| format!("{how}: {first}"))))
            }
            Err(error) => Err(short(&format!("{what} {} cannot be run: {error}", program.display()))),
        }
    }

    /// How the program ended, and what it has said.
    fn try_run(
        &self,
        mut command: Command,
        variables: &[(&str, String)],
        is_stopped: impl FnMut() -> bool,
    ) -> io::Result<(Outcome, String)> {
        command
            .current_dir("/")
            .env_clear()
            .env("PATH", FOLDERS.join(":"))
            .env("HOME", &self.account.home)
            .env("USER", &self.account.user)
            .envs(variables.iter().map(|(name, value)| (*name, value)));
        let deadline = Instant::now() + Duration::from_secs(self.timeout_seconds.into());
        supervised::run(command, &self.account, &Conditions::until(deadline), is_stopped)
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
            let user = muster_names::User::numbered(own.as_raw());
            identity::look_up(&user.map(|user| user.name).ok_or("this user has no name")?)
        }
    }
}

/// Whether the order is for the first node of its job.
pub(crate) fn is_first_node(order: &LaunchOrder) -> bool {
    order.node_index == 0 && order.nodes.first().is_some_and(|node| node.component == 0)
}

/// A program that is told which job it is about.
fn about_job(program: &Path, order: &LaunchOrder, owner: &Identity, node_file: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([&order.job.to_string(), &owner.user]).arg(node_file);
    command
}

/// What a program learns about a job.
fn variables(order: &LaunchOrder, owner: &Identity) -> Vec<(&'static str, String)> {
    let node = order.nodes.get(order.node_index as usize).map(|node| node.name.clone()).unwrap_or_default();
    vec![
        (NODE_NAME, node),
        ("MUSTER_JOB_ID", order.job.to_string()),
        ("MUSTER_RUN_ID", order.part.run().to_string()),
        ("MUSTER_QUEUE", order.queue.clone()),
        ("MUSTER_JOB_OWNER", owner.user.clone()),
        ("MUSTER_JOB_OWNER_UID", owner.uid.to_string()),
        ("MUSTER_JOB_OWNER_GID", owner.gid.to_string()),
    ]
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
    use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
    use std::os::unix::fs::PermissionsExt as _;

    fn programs(folder: &Path, text: &str) -> SitePrograms {
        let program = folder.join("program");
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        let account = account("nobody").unwrap();
        let program = Some(program);
        SitePrograms {
            prolog: program.clone(),
            epilog: None,
            health_check: program,
            account,
            timeout_seconds: 20,
            job_prolog: None,
            job_epilog: None,
            suspend_program: None,
            after_suspend_program: None,
            before_resume_program: None,
            isolation: None,
        }
    }

    #[test]
    fn a_program_of_the_site_says_what_is_wrong_in_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let said = |text: &str| programs(folder.path(), text).check_health("n1");
        assert_eq!(said("test $MUSTER_NODE_NAME = n1 && test -z \"$MUSTER_JOB_ID\""), Ok(()));
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
        let run = |text: &str| {
            programs(folder.path(), text).run_prologs(&spooled.order, &spooled.identity, Path::new("/nodes"), || false)
        };
        assert_eq!(run("test $(id -u) != 0 || test $USER != nobody"), Ok(()));
        assert_eq!(run("test $MUSTER_JOB_ID.$MUSTER_JOB_OWNER.$MUSTER_JOB_OWNER_UID = 7.root.0"), Ok(()));
        assert!(run("exit 1").is_err());
    }

    /// OAR-J-18, OAR-S-07: what other rooms know of a failed program is the first words of the reason.
    #[test]
    fn a_failed_program_is_known_by_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let failing = programs(folder.path(), "exit 1");
        let program = failing.health_check.clone().unwrap();
        let (spooled, file) = (spooled(order(7)), Path::new("/nodes"));
        let mut site = SitePrograms { prolog: None, epilog: None, ..failing };
        let prologs = |site: &SitePrograms| site.run_prologs(&spooled.order, &spooled.identity, file, || false);
        let epilogs = |site: &SitePrograms| site.run_epilogs(&spooled.order, &spooled.identity, file);
        site.job_prolog = Some(program.clone());
        site.job_epilog = Some(program.clone());
        let suspension = site.run_suspension(&program, Suspension::Suspend, &spooled.order, &spooled.identity, file);
        for (ran, cause) in [
            (prologs(&site), UnfitCause::JobProlog),
            (epilogs(&site), UnfitCause::JobEpilog),
            (suspension, UnfitCause::SuspendProgram),
            (site.check_health("n1"), UnfitCause::HealthCheck),
        ] {
            assert_eq!(UnfitCause::of_reason(&ran.unwrap_err()), Some(cause));
        }
        let remains = crate::cleaning::cannot_be_ended(None);
        assert_eq!(UnfitCause::of_reason(&remains), Some(UnfitCause::Remains));
    }

    /// A shim blocks all signals, and is spared when memory runs out.
    #[test]
    fn a_program_of_the_site_has_signals_as_after_a_login_and_is_not_spared() {
        const SCORE: &str = "/proc/self/oom_score_adj";
        let folder = tempfile::tempdir().unwrap();
        let zero = "0000000000000000";
        let programs = programs(
            folder.path(),
            &format!(
                "grep -q 'SigBlk:.{zero}' /proc/self/status || exit 5\ngrep -q 'SigIgn:.*[08]0000000$' /proc/self/status || exit 6\n\
                 test $(cat /proc/self/oom_score_adj) = 0 || exit 7\ntimeout 1 sleep 600"
            ),
        );
        let (score, mut mask) = (fs::read(SCORE).unwrap(), SigSet::empty());
        // Upwards, which anybody may do.
        fs::write(SCORE, "100").unwrap();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut mask)).unwrap();
        // SAFETY: neither action is code of this program.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        let why = programs.check_health("n1").unwrap_err();
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) };
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).unwrap();
        fs::write(SCORE, score).unwrap();
        assert!(why.ends_with("failed (exit status: 124)"), "{why}");
    }

    #[test]
    fn a_program_that_talks_for_ever_is_heard_at_first_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let talking = |text: &str| SitePrograms { timeout_seconds: 1, ..programs(folder.path(), text) };
        let why = talking("echo first; yes").check_health("n1").unwrap_err();
        assert!(why.ends_with("took longer than 1 s: first"), "{why}");
        let why = talking("echo first; head -c 1000000 /dev/zero; exit 3").check_health("n1").unwrap_err();
        assert!(why.ends_with("failed (exit status: 3): first"), "{why}");
        // A process that has left its group does not hold it up.
        let other = talking("setsid sleep 2 & exit 0");
        assert_eq!(other.check_health("n1"), Ok(()));
    }

    #[test]
    fn a_prolog_ends_once_its_job_is_to_end() {
        let folder = tempfile::tempdir().unwrap();
        let spooled = spooled(order(7));
        let begun = folder.path().join("begun");
        fs::create_dir(&begun).unwrap();
        fs::set_permissions(&begun, fs::Permissions::from_mode(0o777)).unwrap();
        let programs = SitePrograms {
            timeout_seconds: 600,
            ..programs(folder.path(), &format!("touch {}/x; sleep 600", begun.display()))
        };
        let is_stopped = || begun.join("x").exists();
        assert_eq!(programs.run_prologs(&spooled.order, &spooled.identity, Path::new("/nodes"), is_stopped), Ok(()));
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
