//! `salloc` (SL-C-21, SL-S-16, SL-E-03, SL-E-04).

use super::{
    Ended,
    allocation::{Allocation, PATIENCE, Wish, allocate},
    clusters, print, refusals,
    site::{now, variable},
    submission::{Problem, caller, failed, forget_outer_job, printed_only, tell, text_of, with_site_options},
};
use muster_cli::{
    connection::ConnectionOptions,
    interrupts::{self, Interrupts},
    stderr_line,
};
use muster_client::Client;
use muster_schemas::{JobId, job::ExitStatus, views::OutcomeWord};
use muster_slurm::{
    environment::{PACK_NAMES, defaults, of_allocation, with_pack_names},
    messages::AllocationEvent,
    moment::Now,
    options::{Command, parse_with, values::signal_number},
    queries::Failure,
    request::{Caller, Interactive, Rules, Settings, components},
    site_variables,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    io::IsTerminal as _,
    os::unix::process::ExitStatusExt as _,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

const COMMAND: Command = Command::Salloc;

/// Runs a command line of `salloc`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    hold(connection, words).map_err(|problem| problem.failure(COMMAND))
}

fn hold(connection: &ConnectionOptions, words: &[String]) -> Result<u8, Problem> {
    let line = with_site_options(COMMAND, connection, |site| parse_with(COMMAND, site, words))?.with_files(text_of)?;
    if let Some(text) = printed_only(COMMAND, connection, &line) {
        print(&text);
        return Ok(0);
    }
    let now = Now::new(now);
    let mut caller = caller(COMMAND, connection, words)?;
    forget_outer_job(&mut caller);
    let settings = components(&[], &defaults(COMMAND, None, variable), &line, &now)?;
    caller.environment.extend(site_variables::of_job(&settings));
    tell(COMMAND, &line, &settings);
    let leader = settings.first().cloned().unwrap_or_default();
    let has_shell = !leader.is_set("no-shell");
    let by = if has_shell { Interactive::Salloc } else { Interactive::SallocWithoutShell };
    let words = match line.words() {
        [] => vec![variable("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned())],
        words => words.to_vec(),
    };
    let wish = Wish { command: COMMAND, by, words: words.clone(), settings: &settings, caller: &caller, now: &now };
    let cluster = clusters::of_job(connection, COMMAND, &settings, &wish.job(&Rules::default())?)?;
    let connection = cluster.as_ref().map_or(connection, |cluster| &cluster.connection);
    if let Some(cluster) = &cluster {
        cluster.lead_beside(&mut caller.environment);
    }
    let wish = Wish { command: COMMAND, by, words: words.clone(), settings: &settings, caller: &caller, now: &now };
    let mut client = connection.patient_client().map_err(|error| failed(COMMAND, error))?;
    let interrupts = Interrupts::watch();
    let allocation = allocate(&mut client, &wish, &interrupts)?;
    // Errors from here on are not refusals.
    refusals::is_known();
    let mut client = client.with_patience(PATIENCE);
    if !has_shell {
        allocation.leave(&mut client).map_err(|error| failed(COMMAND, error))?;
        return Ok(0);
    }
    let ended = command(&client, &allocation, &words, &leader, &caller, connection, &interrupts);
    let (status, revoked) = match &ended {
        Ok(beside) => (beside.status, beside.is_revoked),
        Err(_) => (ExitStatus::Code(1), false),
    };
    if !revoked && !leader.is_set("quiet") {
        let line = AllocationEvent::Relinquished.line(COMMAND, allocation.job.number);
        line.into_iter().for_each(|line| stderr_line!("{line}"));
    }
    allocation.give_back(&mut client, status).map_err(|error| failed(COMMAND, error))?;
    Ok(own_code(ended?.status))
}

/// The exit code of `salloc` when its command has ended. A signal that users send to end a shell is not a failure.
const fn own_code(status: ExitStatus) -> u8 {
    match status {
        ExitStatus::Code(code) => code,
        ExitStatus::Signal(signal) => match signal as i32 {
            libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGKILL => 0,
            _ => 1,
        },
    }
}

/// The result of the command.
struct Beside {
    status: ExitStatus,
    is_revoked: bool,
}

/// Runs the command here, with the variables of the allocation.
fn command(
    client: &Client,
    allocation: &Allocation,
    words: &[String],
    leader: &Settings,
    caller: &Caller,
    connection: &ConnectionOptions,
    interrupts: &Interrupts,
) -> Result<Beside, Failure> {
    let error = |text: String| Failure::error(COMMAND.name(), text);
    let facts = allocation.facts(caller).ok_or_else(|| error("the allocation is over already".to_owned()))?;
    let wanted = caller.environment.iter().find(|(name, _)| name == PACK_NAMES).map(|(_, value)| value.as_str());
    let variables = with_pack_names(of_allocation(&facts), wanted);
    let mut command = process::Command::new(&words[0]);
    command.args(&words[1..]).env_clear().envs(caller.environment.iter().cloned()).envs(variables);
    // The token is not logged, and the command, which is not a program of the job, needs it to launch steps as the
    // caller.
    command.envs(connection.token.iter().map(|token| ("MUSTER_TOKEN", token)));
    if let Some(folder) = leader.text("chdir").filter(|folder| !folder.is_empty()) {
        command.current_dir(folder);
    }
    interrupts::leave_to(&mut command);
    let started = command.spawn();
    let mut child = started.map_err(|why| error(format!("Unable to exec command \"{}\": {why}", words[0])))?;
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    interrupts.handle(move |signal| {
        // The terminal sends its own signals to the command as well.
        if !matches!(signal, Signal::SIGINT | Signal::SIGQUIT | Signal::SIGWINCH) {
            let _ = kill(pid, signal);
        }
    });
    let revoked = Arc::new(AtomicBool::new(false));
    let is_over = Arc::new(AtomicBool::new(false));
    let watch = Revocation { job: allocation.job, pid, signal: kill_signal(leader), revoked: revoked.clone() };
    let ended = is_over.clone();
    let mut watcher = client.another().with_patience(PATIENCE);
    thread::spawn(move || {
        if let Ok(view) = watcher.wait_for_job(watch.job)
            && !ended.load(Ordering::SeqCst)
        {
            watch.tell(view.outcome.is_some_and(|outcome| outcome.outcome == OutcomeWord::TimedOut));
        }
    });
    let status = child.wait().map_err(|why| error(format!("{}: {why}", words[0])))?;
    is_over.store(true, Ordering::SeqCst);
    let code = |code: i32| u8::try_from(code).unwrap_or(u8::MAX);
    let status = match (status.code(), status.signal()) {
        (Some(number), _) => ExitStatus::Code(code(number)),
        (None, signal) => ExitStatus::Signal(code(signal.unwrap_or(0))),
    };
    Ok(Beside { status, is_revoked: revoked.load(Ordering::SeqCst) })
}

/// The signal for the command when its allocation is revoked, from `--kill-command`. Without that option an interactive
/// shell is hung up, and anything else keeps running (SL-C-21).
fn kill_signal(leader: &Settings) -> Option<Signal> {
    let is_interactive = std::io::stdin().is_terminal();
    let usual = if is_interactive { Signal::SIGHUP } else { Signal::SIGTERM };
    match leader.text("kill-command") {
        None => is_interactive.then_some(usual),
        Some("") => Some(usual),
        Some(text) => signal_number(text).and_then(|number| Signal::try_from(i32::from(number)).ok()).or(Some(usual)),
    }
}

/// Handles a job that ends before the command.
struct Revocation {
    job: JobId,
    pid: Pid,
    signal: Option<Signal>,
    revoked: Arc<AtomicBool>,
}

impl Revocation {
    fn tell(&self, timed_out: bool) {
        self.revoked.store(true, Ordering::SeqCst);
        let number = self.job.number;
        match AllocationEvent::Revoked.line(COMMAND, number).filter(|_| !timed_out) {
            Some(line) => stderr_line!("{line}"),
            None => {
                stderr_line!("{COMMAND}: Job {number} has exceeded its time limit and its allocation has been revoked.")
            }
        }
        if let Some(signal) = self.signal {
            let _ = kill(self.pid, signal);
        }
    }
}
