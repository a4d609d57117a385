//! `sbatch` (SL-S, SL-C-06 to C-11).

use super::{
    Ended, print,
    site::{group_name, host, unreachable, variable},
};
use crate::{cli::ConnectionOptions, job_options};
use jiff::Zoned;
use muster_client::{Client, ClientError, JobQuery, Moment};
use muster_schemas::{
    CommandId, JobId,
    job::{ExitStatus, JobSpec},
    views::{ErrorBody, ErrorCode, JobView},
};
use muster_slurm::{
    environment,
    messages::{ExitStatuses, Refusal, Rejection, submitted, wait_status},
    options::{Command, CommandLine, help, parse, usage, version},
    queries::Failure,
    request::{Caller, Program, Rules, ScriptSource, Settings, Submission, components, listing, lower, warnings},
    script::{self, Wanted},
};
use nix::unistd::{Gid, Uid, User};
use std::io::Read as _;

const COMMAND: Command = Command::Sbatch;

/// Does what a command line of `sbatch` asks.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    submit(connection, words).map_err(|problem| match problem {
        Problem::Refused(refusal) => {
            Failure { lines: refusal.lines(COMMAND), code: refusal.exit_status(ExitStatuses::from_variables(variable)) }
        }
        Problem::Failed(failure) => failure,
    })
}

/// Why nothing was submitted.
enum Problem {
    /// For a reason that Slurm has words for.
    Refused(Refusal),
    /// For another one.
    Failed(Failure),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn failed(text: impl std::fmt::Display) -> Problem {
    Problem::Failed(Failure::error("sbatch", text))
}

fn submit(connection: &ConnectionOptions, words: &[String]) -> Result<u8, Problem> {
    let line = parse(COMMAND, words)?;
    for (option, text) in [("help", help as fn(Command) -> String), ("usage", usage)] {
        if line.gives(option) {
            print(&text(COMMAND));
            return Ok(0);
        }
    }
    if line.gives("version") {
        print(&version(env!("CARGO_PKG_VERSION")));
        return Ok(0);
    }
    let now = Zoned::now();
    let caller = caller(connection, words)?;
    let (program, settings) = read(&line, &caller, &now)?;
    tell(&line, &settings);
    if line.gives("test-only") {
        return Err(failed("--test-only: muster cannot tell yet when a job would start; nothing was submitted"));
    }
    let submission =
        Submission { components: &settings, program, caller: &caller, rules: &Rules::default(), now: &now };
    let mut spec = lower(&submission)?;
    let mut client = connection.client().map_err(failed)?;
    let info = client.info(Moment::Now).map_err(|error| Problem::Failed(unreachable("sbatch", &error)))?;
    add_variables(&mut spec, &settings, &caller, &info.cluster);
    let partition = spec.components.iter().filter_map(|component| component.queue.clone()).next();
    let answer = client.submit(CommandId::new_now(), vec![spec]);
    let answer = answer.map_err(|error| refused(error, partition))?;
    let job = *answer.jobs.first().ok_or_else(|| failed("the answer names no job"))?;
    if let Some(line) = submitted(job.number, None, line.gives("parsable"), line.gives("quiet")) {
        print(&format!("{line}\n"));
    }
    let waits = settings.first().is_some_and(|leader| leader.is_set("wait"));
    if waits { wait(&mut client, job).map_err(failed) } else { Ok(0) }
}

/// What runs, and the options of each component.
fn read(line: &CommandLine, caller: &Caller, now: &Zoned) -> Result<(Program, Vec<Settings>), Problem> {
    let (text, args, source) = match script::wanted(line)? {
        Wanted::Wrapped(command) => (script::wrap(&command), Vec::new(), ScriptSource::Wrapped),
        Wanted::StandardInput => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map_err(failed)?;
            (script::check(&bytes)?.to_owned(), Vec::new(), ScriptSource::StandardInput)
        }
        Wanted::File { name, args } => {
            let search = variable("PATH").unwrap_or_default();
            let candidates = script::candidates(&name, &caller.directory, &search);
            let read = candidates.into_iter().find_map(|path| Some((std::fs::read(&path).ok()?, path)));
            let (bytes, path) = read.ok_or(Refusal::CannotOpenScript(name))?;
            (script::check(&bytes)?.to_owned(), args, ScriptSource::File(path))
        }
    };
    let given = script::options(&text)?;
    given.warnings.iter().for_each(|warning| eprintln!("sbatch: warning: {warning}"));
    let defaults = environment::defaults(COMMAND, None, variable);
    let settings = components(&given.sections, &defaults, line, now)?;
    Ok((Program::Batch { text, args, source }, settings))
}

/// What is told before anything is done.
fn tell(line: &CommandLine, settings: &[Settings]) {
    let verbosity = line.verbosity().max(environment::verbosity(COMMAND, variable));
    for settings in settings {
        if verbosity > 0 {
            listing(COMMAND, settings, verbosity).iter().for_each(|line| eprintln!("{line}"));
        }
        warnings(COMMAND, settings).iter().for_each(|warning| eprintln!("{warning}"));
    }
}

/// This process, with the variable by which the commands inside the job find the same instance.
fn caller(connection: &ConnectionOptions, words: &[String]) -> Result<Caller, Problem> {
    let process = job_options::Caller::this_process(connection).map_err(failed)?;
    let user = User::from_uid(Uid::effective()).ok().flatten();
    let mut environment = process.environment;
    environment.retain(|(name, _)| !NOT_INHERITED.contains(&name.as_str()) && !is_of_outer_job(name));
    if let Some((name, value)) = process.instance {
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value));
    }
    let line: Vec<&str> = std::iter::once("sbatch").chain(words.iter().map(String::as_str)).collect();
    Ok(Caller {
        user: user.map_or_else(|| Uid::effective().to_string(), |user| user.name),
        group: group_name(Gid::effective()),
        directory: process.directory,
        environment,
        umask: process.umask,
        host: host(),
        session: nix::unistd::getsid(None).map_or(0, |session| session.as_raw().unsigned_abs()),
        submit_line: line.join(" "),
    })
}

/// The submitter's secret, and what belongs to the job that submits.
const NOT_INHERITED: [&str; 2] = ["MUSTER_TOKEN", "MUSTER_JOB_ID"];

/// Whether a variable describes the job inside which `sbatch` is called, so that it would be wrong in the new one.
fn is_of_outer_job(name: &str) -> bool {
    ["SLURM_JOB", "SLURM_STEP", "SLURM_ARRAY_", "SLURM_HET_", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"]
        .iter()
        .any(|start| name.starts_with(start))
        || name.contains("_HET_GROUP_")
        || matches!(name, "SLURM_NPROCS" | "SLURM_CPUS_PER_TASK" | "SLURM_NNODES" | "SLURM_NODELIST")
}

/// Adds the variables of the batch script that are known now (SL-E-03, SL-E-08); where it runs is added when it starts.
fn add_variables(spec: &mut JobSpec, settings: &[Settings], caller: &Caller, cluster: &str) {
    let count = settings.len();
    let variables = &mut spec.environment;
    let mut put = |name: &str, value: &str| variables.insert(name.to_owned(), value.to_owned());
    put("SLURM_CLUSTER_NAME", cluster);
    put("SLURM_SUBMIT_DIR", &caller.directory);
    put("SLURM_SUBMIT_HOST", &caller.host);
    if count > 1 {
        put("SLURM_HET_SIZE", &count.to_string());
    }
    if let Some(array) = &spec.array {
        let (first, last) = (array.indices.first().unwrap_or(0), array.indices.iter().last().unwrap_or(0));
        let second = array.indices.iter().nth(1).unwrap_or(first + 1);
        put("SLURM_ARRAY_TASK_COUNT", &array.indices.len().to_string());
        put("SLURM_ARRAY_TASK_MIN", &first.to_string());
        put("SLURM_ARRAY_TASK_MAX", &last.to_string());
        put("SLURM_ARRAY_TASK_STEP", &(second - first).to_string());
    }
    for (offset, settings) in settings.iter().enumerate() {
        for (option, names) in SIZES {
            let Some(text) = settings.text(option) else { continue };
            let value = match option {
                "mem" | "mem-per-cpu" => match muster_slurm::size::parse_megabytes(text) {
                    Some(megabytes) => megabytes.to_string(),
                    None => continue,
                },
                _ => text.to_owned(),
            };
            for name in names {
                if count > 1 {
                    put(&format!("{name}_HET_GROUP_{offset}"), &value);
                }
                if offset == 0 {
                    put(name, &value);
                }
            }
        }
    }
}

/// The options that the batch script sees in variables, if they were given.
const SIZES: [(&str, &[&str]); 12] = [
    ("account", &["SLURM_JOB_ACCOUNT"]),
    ("partition", &["SLURM_JOB_PARTITION"]),
    ("qos", &["SLURM_JOB_QOS"]),
    ("ntasks", &["SLURM_NTASKS", "SLURM_NPROCS"]),
    ("cpus-per-task", &["SLURM_CPUS_PER_TASK"]),
    ("ntasks-per-node", &["SLURM_NTASKS_PER_NODE"]),
    ("mem", &["SLURM_MEM_PER_NODE"]),
    ("mem-per-cpu", &["SLURM_MEM_PER_CPU"]),
    ("distribution", &["SLURM_DISTRIBUTION"]),
    ("dependency", &["SLURM_JOB_DEPENDENCY"]),
    ("reservation", &["SLURM_JOB_RESERVATION"]),
    ("licenses", &["SLURM_JOB_LICENSES"]),
];

/// A refusal of the system in Slurm's words (SL-C-09).
fn refused(error: ClientError, partition: Option<String>) -> Problem {
    let ClientError::Refused(ErrorBody { code, message }) = error else {
        return Problem::Failed(unreachable("sbatch", &error));
    };
    let says = |text: &str| message.contains(text);
    Problem::Refused(Refusal::Rejected(match code {
        ErrorCode::NotFound if says("queue `") => Rejection::Partition(partition.unwrap_or_default()),
        ErrorCode::NotFound | ErrorCode::PermissionDenied if says("reservation `") => Rejection::Reservation,
        ErrorCode::NotFound | ErrorCode::Conflict if says("job ") => Rejection::Dependency,
        ErrorCode::PermissionDenied => Rejection::Permission,
        ErrorCode::LimitReached => Rejection::Policy(None),
        ErrorCode::Invalid if says("licence") => Rejection::Licence,
        ErrorCode::Invalid if says("array") => Rejection::Array,
        ErrorCode::Invalid if says("dependenc") => Rejection::Dependency,
        ErrorCode::Invalid if says("memory") => Rejection::Memory,
        ErrorCode::Invalid if says("walltime_seconds") => Rejection::PartitionLimit,
        ErrorCode::Invalid if says("asks for node `") => Rejection::NodeName,
        ErrorCode::Invalid if says("can never run") => Rejection::NodeConfiguration,
        _ => Rejection::Other(message),
    }))
}

/// Waits for a job, or for all tasks of an array (SL-C-11).
fn wait(client: &mut Client, job: JobId) -> Result<u8, ClientError> {
    let view = client.wait_for_job(job)?;
    let ended = |view: &JobView| view.outcome.as_ref().and_then(|outcome| outcome.exit_status);
    if view.array.is_none() {
        return Ok(wait_status(&[ended(&view)]));
    }
    let tasks = client.jobs(&JobQuery { ids: vec![job], ..JobQuery::default() })?.jobs;
    let ends: Vec<Option<ExitStatus>> = tasks.iter().filter(|task| task.id.index.is_some()).map(ended).collect();
    Ok(wait_status(&ends))
}
