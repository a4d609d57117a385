//! `sbatch` (SL-S, SL-C-06 to C-11).

use super::{
    Ended, clusters, forecast, print,
    site::{self, now, os_text, variable},
    submission::{
        self, Problem, caller, carry_limits, fit_to_deadlines, forget_outer_job, lead_back, printed_only, tell,
        text_of, verdict, with_site_options,
    },
};
use muster_cli::{connection::ConnectionOptions, stderr_line};
use muster_client::{Client, ClientError, JobQuery, Moment};
use muster_schemas::{
    JobId,
    job::{ExitStatus, JobSpec, image_from},
    views::JobView,
};
use muster_slurm::{
    burst_buffer::{may_have_directives, with_directives},
    environment,
    messages::{Refusal, submitted, wait_status},
    moment::Now,
    options::{Command, CommandLine, Given, parse, parse_with},
    queries::Failure,
    request::{Caller, Program, Rules, ScriptSource, Settings, Submission, components, lower},
    script::{self, Wanted},
};
use std::io::Read as _;

const COMMAND: Command = Command::Sbatch;

/// Runs a command line of `sbatch`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    submit(connection, words).map_err(|problem| problem.failure(COMMAND))
}

fn failed(text: impl std::fmt::Display) -> Problem {
    submission::failed(COMMAND, text)
}

fn submit(connection: &ConnectionOptions, words: &[String]) -> Result<u8, Problem> {
    let line = with_site_options(COMMAND, connection, |site| parse_with(COMMAND, site, words))?.with_files(text_of)?;
    if let Some(text) = printed_only(COMMAND, connection, &line) {
        print(&text);
        return Ok(0);
    }
    let now = Now::new(now);
    let mut caller = caller(COMMAND, connection, words)?;
    carry_limits(&mut caller);
    forget_outer_job(&mut caller);
    let Asked { program, settings, umask } = read(connection, &line, &caller, &now)?;
    caller.umask = umask.unwrap_or(caller.umask);
    tell(COMMAND, &line, &settings);
    let mut client = connection.patient_client().map_err(failed)?;
    let rules = rules(&mut client, &program, &settings)?;
    let submission = Submission { components: &settings, program, caller: &caller, rules: &rules, now: &now };
    let mut spec = lower(&submission)?;
    lead_back(&mut spec.environment, &caller);
    if let Some(file) = settings.first().and_then(|leader| leader.text("export-file")) {
        // Exported variables override those of the file.
        for (name, value) in variables_of(file)? {
            spec.environment.entry(name).or_insert(value);
        }
    }
    add_variables(&mut spec, &settings, &caller);
    let cluster = clusters::of_job(connection, COMMAND, &settings, &spec)?;
    if let Some(cluster) = &cluster {
        cluster.lead(&mut spec.environment);
        client = cluster.connection.patient_client().map_err(failed)?;
    }
    forecast::settle(COMMAND, &mut client, &mut spec)?;
    fit_to_deadlines(&mut client, COMMAND, &settings, &mut spec, &now)?;
    if settings.iter().any(|settings| settings.is_set("test-only")) {
        return forecast::tell(COMMAND, &mut client, spec);
    }
    let answer = submission::submit(COMMAND, &mut client, &mut spec)?;
    let job = *answer.jobs.first().ok_or_else(|| failed("the answer names no job"))?;
    if answer.is_judged
        && let Some(rejection) = verdict(&mut client, job).map_err(failed)?
    {
        return Err(Refusal::Rejected(rejection).into());
    }
    let name = cluster.as_ref().map(|cluster| cluster.name.as_str());
    // The script may set these options too.
    let says = |option: &str| line.gives(option) || settings.first().is_some_and(|leader| leader.is_set(option));
    if let Some(line) = submitted(job.number, name, says("parsable"), says("quiet")) {
        print(&format!("{line}\n"));
    }
    if settings.first().is_some_and(|leader| leader.is_set("wait")) {
        return wait(&mut client, job).map_err(failed);
    }
    Ok(0)
}

/// The job that a script without a command line submits: it knows nothing of the caller's variables.
pub fn of_script(connection: &ConnectionOptions, client: &mut Client, text: &str) -> Result<JobSpec, Failure> {
    spec_of(connection, client, text).map_err(|problem| problem.failure(COMMAND))
}

fn spec_of(connection: &ConnectionOptions, client: &mut Client, text: &str) -> Result<JobSpec, Problem> {
    let line = parse(COMMAND, &[] as &[String])?;
    let now = Now::new(now);
    let mut caller = caller(COMMAND, connection, &[])?;
    forget_outer_job(&mut caller);
    let given = with_site_options(COMMAND, connection, |site| script::options_with(text, site))?;
    let sections = given.sections;
    let settings = components(&sections, &environment::defaults(COMMAND, None, |_| None), &line, &now)?;
    let program = Program::Batch { text: text.to_owned(), args: Vec::new(), source: ScriptSource::StandardInput };
    let rules = rules(client, &program, &settings)?;
    let mut spec = lower(&Submission { components: &settings, program, caller: &caller, rules: &rules, now: &now })?;
    lead_back(&mut spec.environment, &caller);
    add_variables(&mut spec, &settings, &caller);
    forecast::settle(COMMAND, client, &mut spec)?;
    Ok(spec)
}

/// The site's rules for submissions. The site is only asked if they matter.
fn rules(client: &mut Client, program: &Program, settings: &[Settings]) -> Result<Rules, Problem> {
    let has_directives = matches!(program, Program::Batch { text, .. } if may_have_directives(text));
    let needs_them = |settings: &Settings| settings.is_set("bb") || settings.is_set("switches");
    if !has_directives && !settings.iter().any(needs_them) {
        return Ok(Rules::default());
    }
    let info = client.info(Moment::Now).map_err(|error| submission::unanswered(COMMAND, &error))?;
    Ok(site::rules(&info))
}

/// What a command line and its script ask for.
struct Asked {
    program: Program,
    /// The options of each component.
    settings: Vec<Settings>,
    /// The mask for new files, if the script sets it.
    umask: Option<u32>,
}

fn read(connection: &ConnectionOptions, line: &CommandLine, caller: &Caller, now: &Now) -> Result<Asked, Problem> {
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
    let given = with_site_options(COMMAND, connection, |site| script::options_with(&text, site))?;
    let is_foreign_ignored =
        line.gives("ignore-pbs") || given.gives("ignore-pbs") || variable("SBATCH_IGNORE_PBS").is_some();
    let given = if is_foreign_ignored { given } else { given.with_foreign_lines(&text)? };
    given.warnings.iter().for_each(|warning| stderr_line!("sbatch: warning: {warning}"));
    let defaults = environment::defaults(COMMAND, None, variable);
    let named = |section: Vec<Given>| section.into_iter().map(|given| given.with_file(text_of)).collect();
    let sections = given.sections.into_iter().map(named).collect::<Result<Vec<_>, Refusal>>()?;
    let settings = components(&sections, &defaults, line, now)?;
    let text = match settings.first().and_then(|leader| leader.text("bbf")).filter(|path| !path.is_empty()) {
        None => text,
        Some(path) => with_directives(&text, &directives_of(path)?),
    };
    Ok(Asked { program: Program::Batch { text, args, source }, settings, umask: given.umask })
}

/// The text of a `--bbf` file (SL-B-08).
fn directives_of(path: &str) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| failed(format!("Could not load {path}: {}", os_text(&error))))
}

/// The variables in a file of `--export-file`, which can be an open descriptor.
fn variables_of(file: &str) -> Result<Vec<(String, String)>, Problem> {
    let descriptor = file.parse::<u32>().ok().filter(|number| *number > 2);
    let path = descriptor.map_or_else(|| file.to_owned(), |number| format!("/dev/fd/{number}"));
    let bytes = std::fs::read(&path).map_err(|error| failed(format!("Could not load {file}: {}", os_text(&error))))?;
    Ok(environment::of_file(&String::from_utf8_lossy(&bytes)))
}

/// Adds the variables of the batch script that are known now (SL-E-03, SL-E-08); its place is added when it starts.
fn add_variables(spec: &mut JobSpec, settings: &[Settings], caller: &Caller) {
    let count = settings.len();
    let variables = &mut spec.environment;
    let mut put = |name: &str, value: &str| variables.insert(name.to_owned(), value.to_owned());
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
    let export = settings.first().and_then(|leader| leader.text("export"));
    if let Some(export) = export {
        put("SLURM_EXPORT_ENV", export);
    }
    if environment::loads_login(export) || settings.first().is_some_and(|leader| leader.is_set("get-user-env")) {
        put(environment::LOADS_LOGIN, "1");
    }
    for (offset, settings) in settings.iter().enumerate() {
        if settings.is_set("overcommit") && offset == 0 {
            put("SLURM_OVERCOMMIT", "1");
        }
        for (option, names) in SIZES {
            let Some(text) = settings.text(option) else { continue };
            let value = match option {
                "mem" | "mem-per-cpu" | "mem-per-gpu" => match muster_slurm::size::parse_megabytes(text) {
                    Some(megabytes) => megabytes.to_string(),
                    None => continue,
                },
                "container" => image_from(&caller.directory, text),
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

/// The options that the batch script sees as variables, if they were given.
const SIZES: [(&str, &[&str]); 26] = [
    ("account", &["SLURM_JOB_ACCOUNT"]),
    ("partition", &["SLURM_JOB_PARTITION"]),
    ("qos", &["SLURM_JOB_QOS"]),
    ("ntasks", &["SLURM_NTASKS", "SLURM_NPROCS"]),
    ("cpus-per-task", &["SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK"]),
    ("gpus", &["SLURM_GPUS"]),
    ("gpus-per-node", &["SLURM_GPUS_PER_NODE"]),
    ("gpus-per-task", &["SLURM_GPUS_PER_TASK"]),
    ("gpus-per-socket", &["SLURM_GPUS_PER_SOCKET"]),
    ("cpus-per-gpu", &["SLURM_CPUS_PER_GPU"]),
    ("mem-per-gpu", &["SLURM_MEM_PER_GPU"]),
    ("gpu-bind", &["SLURM_GPU_BIND"]),
    ("gpu-freq", &["SLURM_GPU_FREQ"]),
    ("ntasks-per-gpu", &["SLURM_NTASKS_PER_GPU"]),
    ("ntasks-per-node", &["SLURM_NTASKS_PER_NODE"]),
    ("mem", &["SLURM_MEM_PER_NODE"]),
    ("mem-per-cpu", &["SLURM_MEM_PER_CPU"]),
    ("distribution", &["SLURM_DISTRIBUTION"]),
    ("hint", &["SLURM_HINT"]),
    ("ntasks-per-core", &["SLURM_NTASKS_PER_CORE"]),
    ("ntasks-per-socket", &["SLURM_NTASKS_PER_SOCKET"]),
    ("threads-per-core", &["SLURM_THREADS_PER_CORE"]),
    ("dependency", &["SLURM_JOB_DEPENDENCY"]),
    ("reservation", &["SLURM_JOB_RESERVATION"]),
    ("licenses", &["SLURM_JOB_LICENSES"]),
    ("container", &["SLURM_CONTAINER"]),
];

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
