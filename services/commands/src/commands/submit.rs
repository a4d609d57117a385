//! `muster submit` and `muster run`.

use super::{logs, mpi};
use crate::{
    cells,
    cli::{ConnectionOptions, LogsOptions, RunOptions, SubmitOptions},
    exit::{CommandResult, Failure},
    job_options::JobOptions,
    script::Script,
    show,
    table::printable,
    terminal::Ticker,
    values::format_duration,
};
use muster_cli::{caller::Caller, stderr_line, verdict::wait_until_decided};
use muster_client::{Client, Moment};
use muster_schemas::{
    CommandId, JobId, Timestamp,
    job::{JobSpec, Program, WarningSignal},
    steps::{self, StepGroup, StepInput, StepProgram, StepSpec, StepStreams},
    views::{EntryWord, ErrorCode, JobView},
};
use std::{
    io::IsTerminal as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// Submits a job and prints its number once it is durable.
pub fn submit(connection: &ConnectionOptions, options: SubmitOptions) -> CommandResult {
    let (wait, parsable, dry_run, no_wait) = (options.wait, options.parsable, options.dry_run, options.no_wait);
    let follow = options.follow;
    let command_form = is_command_form(std::env::args_os().skip(1), options.words.len());
    let spec = job_spec(connection, options, command_form)?;
    if dry_run {
        show::print_json(&spec)?;
        return Ok(0);
    }
    let mut client = connection.client()?;
    let answer = client.submit(CommandId::new_now(), &[spec])?;
    let job = *answer.jobs.first().ok_or_else(|| Failure::failed("the answer names no job"))?;
    if parsable {
        println!("{job}")
    } else {
        println!("submitted job {job}")
    }
    if answer.is_judged && !no_wait {
        heed(&wait_until_decided(&mut client, job)?)?;
    }
    if !wait && !follow {
        return Ok(0);
    }
    tell_when_interrupted(&[job]);
    if follow && let Err(failure) = logs::logs(connection, &LogsOptions::following(job)) {
        // The job's status still counts.
        failure.report();
    }
    wait_for(connection, &mut client, job)
}

/// Tells a user who interrupts the wait that the jobs keep running.
fn tell_when_interrupted(jobs: &[JobId]) {
    static TEXT: OnceLock<String> = OnceLock::new();
    extern "C" fn told(signal: libc::c_int) {
        let text = TEXT.get().map_or("", String::as_str);
        // SAFETY: both functions may be called in a handler, and the text never changes.
        unsafe {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            libc::_exit(128 + signal);
        }
    }
    let ids: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    let ids = ids.join(" ");
    let go = if jobs.len() == 1 { format!("job {ids} goes") } else { format!("jobs {ids} go") };
    let text = format!("\nmuster: {go} on: `muster job wait {ids}` waits again, `muster cancel {ids}` cancels\n");
    let _ = TEXT.set(text);
    // SAFETY: the handler only calls what a handler may call. A background process ignores the signal, and this keeps
    // it so.
    unsafe {
        if libc::signal(libc::SIGINT, told as *const () as libc::sighandler_t) == libc::SIG_IGN {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
        }
    }
}

/// Prints what submission filters say about a job.
///
/// # Errors
/// They refused it.
fn heed(job: &JobView) -> Result<(), Failure> {
    let filtering = job.filtering.as_deref();
    let message = filtering.and_then(|filtering| filtering.message.as_deref()).map(printable);
    if filtering.is_none_or(|filtering| filtering.entry != EntryWord::Refused) {
        if let Some(message) = message {
            stderr_line!("muster: job {}: {message}", job.id);
        }
        return Ok(());
    }
    let detail = job.outcome.as_ref().and_then(|outcome| outcome.detail.as_deref()).map(printable);
    let said: Vec<String> = detail.into_iter().chain(message).collect();
    Err(Failure::failed(format!("job {} was refused: {}", job.id, said.join("; "))))
}

/// Whether the words were written after `--`, and so are a command rather than a script. They are the last arguments,
/// and after the name of a script nothing is an option any more.
fn is_command_form(arguments: impl Iterator<Item = std::ffi::OsString>, words: usize) -> bool {
    let arguments: Vec<_> = arguments.collect();
    let before = arguments.len().checked_sub(words + 1);
    before.is_some_and(|at| arguments[at] == "--")
}

fn job_spec(connection: &ConnectionOptions, options: SubmitOptions, command_form: bool) -> Result<JobSpec, Failure> {
    let caller = Caller::this_process(connection)?;
    let mut words = options.words;
    if command_form {
        let name = file_name(&words[0]);
        return Ok(options.job.into_spec(Program::Tasks { argv: words }, &name, &caller));
    }
    let path = words.remove(0);
    let script = Script::read(&path)?;
    for warning in &script.warnings {
        stderr_line!("{warning}");
    }
    let job = options.job.over(JobOptions::from_script(&script)?);
    let name = if path == "-" { "stdin".to_owned() } else { file_name(&path) };
    Ok(job.into_spec(Program::Script { text: script.text, args: words }, &name, &caller))
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Waits until a job has ended and returns its status. Its end is reported on standard error if it did not end well or
/// standard error is a terminal.
fn wait_for(connection: &ConnectionOptions, client: &mut Client, job: JobId) -> CommandResult {
    // The wait blocks its connection, so progress is asked for on another one.
    let mut asking = connection.client()?;
    let ticker = Ticker::start(move |_| Some(progress_text(asking.job(job, Moment::Now).ok()?.job)));
    let ended = client.wait_for_job(job);
    drop(ticker);
    let view = ended?;
    let Some(outcome) = view.outcome else { return Err(Failure::failed(format!("job {job} has no outcome"))) };
    if outcome.exit_status.is_none_or(|status| !status.is_success()) || std::io::stderr().is_terminal() {
        stderr_line!("muster: job {job}: {outcome}");
    }
    Ok(outcome.shell_code())
}

/// Starts a step inside a job, waits for it and returns its status.
pub fn run_step(connection: &ConnectionOptions, options: RunOptions) -> CommandResult {
    let output = StepOutput::choose(options.output.as_deref(), options.error.is_some())?;
    let streams = StepStreams {
        stdin: options.input.map_or(StepInput::Nothing, StepInput::File),
        stdout: steps::StepOutput::File(output.pattern()),
        stderr: options.error.map(steps::StepOutput::File),
        append_output: output.appends(),
        terminal: None,
    };
    let group = StepGroup {
        programs: vec![StepProgram { argv: options.words.clone(), ..StepProgram::default() }],
        tasks: options.ntasks,
        nodes: options.nodes,
        binding: options.bind.binding(),
        gpus: options.gpus.wanted(),
        gpu_binding: options.gpus.binding(),
        container: options.container,
        ..StepGroup::default()
    };
    let mut client = connection.patient_client()?;
    // Steps share the cores of the job, but one with GPUs of its own is apart from others.
    let overlaps = group.gpus.is_none();
    let spec = StepSpec {
        name: options.words.first().cloned().unwrap_or_default(),
        groups: vec![group],
        streams,
        overlaps,
        warning: options
            .warn
            .map(|before| WarningSignal { signal: before.signal, seconds_before_end: before.seconds_before_end }),
        process_management: mpi::management(&mut client, options.mpi)?,
        ..StepSpec::default()
    };
    let step = loop {
        match client.launch_step(CommandId::new_now(), options.job, &spec, START_WAIT_SECONDS) {
            Err(error) if !overlaps && error.code() == Some(ErrorCode::Busy) => {}
            launched => break launched?,
        }
    };
    let ended = client.wait_for_step(options.job, step.run, step.step)?;
    output.finish()?;
    if let Some(why) = ended.why() {
        stderr_line!("muster: step {} of job {}: {why}", step.step, options.job);
    }
    Ok(ended.exit_status.map_or(1, muster_schemas::job::ExitStatus::shell_code))
}

/// How long a step of a script waits until the other nodes of its job have started.
const START_WAIT_SECONDS: u32 = 60;

/// The destination of a step's output. Its tasks run elsewhere, so it must be a file.
enum StepOutput {
    /// The file named, a pattern.
    Named(String),
    /// The file that is this process's standard output; the step appends to it.
    Inherited(PathBuf),
    /// A file that is copied to standard output and removed when the step has ended.
    Copied(PathBuf),
}

impl StepOutput {
    fn choose(named: Option<&str>, own_error: bool) -> Result<Self, Failure> {
        if let Some(pattern) = named {
            return Ok(Self::Named(pattern.to_owned()));
        }
        let link = Path::new("/proc/self/fd/1");
        let is_file = std::fs::metadata(link).is_ok_and(|target| target.is_file());
        // A step appends to both of its files or to none: a separate file for errors is truncated, and so the inherited
        // one would be truncated too.
        if is_file
            && !own_error
            && let Ok(path) = std::fs::read_link(link)
        {
            return Ok(Self::Inherited(path));
        }
        Ok(Self::Copied(own_file(&std::env::current_dir()?)?))
    }

    fn appends(&self) -> bool {
        matches!(self, Self::Inherited(_))
    }

    fn pattern(&self) -> String {
        match self {
            Self::Named(pattern) => pattern.clone(),
            Self::Inherited(path) | Self::Copied(path) => path.to_string_lossy().replace('%', "%%"),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        let Self::Copied(path) = &self else { return Ok(()) };
        let mut file = std::fs::File::open(path)?;
        std::io::copy(&mut file, &mut std::io::stdout().lock())?;
        Ok(())
    }
}

impl Drop for StepOutput {
    fn drop(&mut self) {
        if let Self::Copied(path) = self {
            // The file is in the user's folder and no longer needed; a failure to remove it does no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A new file in a folder that other hosts may share.
fn own_file(folder: &Path) -> std::io::Result<PathBuf> {
    let path = folder.join(format!(".muster-run-{}.out", CommandId::new_now()));
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    Ok(path)
}

/// Waits for several jobs and returns the first status that is not 0.
pub fn wait_for_all(connection: &ConnectionOptions, client: &mut Client, jobs: &[JobId]) -> CommandResult {
    let mut status = 0;
    tell_when_interrupted(jobs);
    for job in jobs {
        let ended = wait_for(connection, client, *job)?;
        status = if status == 0 { ended } else { status };
    }
    Ok(status)
}

/// A job's progress in one line: `job 7 is running (1:05)`, `job 8 is queued: 5 waiting, 3 running, 42 completed`.
fn progress_text(job: JobView) -> String {
    let elapsed = cells::elapsed_seconds(&job, Timestamp::now());
    let elapsed = elapsed.map(|seconds| format!(" ({})", format_duration(seconds))).unwrap_or_default();
    let remark = Some(cells::remark(&job)).filter(|remark| !remark.is_empty());
    let remark = remark.map(|remark| format!(": {remark}")).unwrap_or_default();
    printable(&format!("job {} is {}{elapsed}{remark}", job.id, job.state.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another host has a process with the same number, or a killed process has left its file.
    #[test]
    fn the_file_of_a_step_is_new_whoever_has_made_one_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = own_file(folder.path()).unwrap();
        let second = own_file(folder.path()).unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn words_after_two_dashes_are_a_command() {
        let form = |line: &str, words| is_command_form(line.split(' ').map(Into::into), words);
        assert!(form("submit -N 2 -- hostname -f", 2));
        assert!(!form("submit -N 2 job.sh -- x", 3));
        assert!(!form("submit job.sh", 1));
        assert!(!form("job.sh", 1));
    }
}
