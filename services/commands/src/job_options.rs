//! The options that describe a job, on the command line and in `#MUSTER` lines, and the job made from them.

use crate::{
    exit::Failure,
    script::{Script, Word},
    values::{self, EnvironmentEntry, GpuCount, SignalBefore},
};
use clap::{CommandFactory, FromArgMatches, Parser, error::ContextKind};
use muster_cli::caller::Caller;
use muster_schemas::{
    Timestamp, domains,
    job::{
        ArraySpec, Checkpoint, Component, Dependencies, Dependency, Holds, JobSpec, JobType, Launch, Notification,
        Occasion, Program, RequeuePolicy, Sink, WarningSignal,
    },
    resources::{Alternative, Count, Gpus, Level, LevelCount, Memory, NodeFilter, Per, Request, Sharing},
};
use std::collections::BTreeMap;

/// Variables of the submitter that a job does not inherit: its secret, and the id of the submitting job.
const NOT_INHERITED: [&str; 2] = ["MUSTER_TOKEN", "MUSTER_JOB_ID"];

/// Options that describe a job.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct JobOptions {
    /// How many nodes: a number, a range `2-4`, or `all`
    #[arg(short = 'N', long, value_name = "COUNT", value_parser = values::parse_count, help_heading = "Resources")]
    pub nodes: Option<Count>,
    /// How many tasks (processes of `-- COMMAND`) in all; default one for each node
    #[arg(short = 'n', long, value_name = "N", value_parser = values::parse_positive, help_heading = "Resources")]
    pub ntasks: Option<u32>,
    /// Maximum number of tasks per node
    #[arg(long, value_name = "N", value_parser = values::parse_positive, help_heading = "Resources")]
    pub ntasks_per_node: Option<u32>,
    /// CPUs (cores) for each task; default 1
    #[arg(short = 'c', long, value_name = "N", value_parser = values::parse_positive, help_heading = "Resources")]
    pub cpus_per_task: Option<u32>,
    /// Memory on each node, such as 4G
    #[arg(long, value_name = "SIZE", value_parser = values::parse_size, help_heading = "Resources")]
    pub mem: Option<u64>,
    /// Memory for each CPU, such as 2G
    #[arg(long, value_name = "SIZE", value_parser = values::parse_size, conflicts_with = "mem", help_heading = "Resources")]
    pub mem_per_cpu: Option<u64>,
    /// GPUs for the whole job: `2` or `MODEL:2`
    #[arg(long, value_name = "[MODEL:]N", value_parser = values::parse_gpus, help_heading = "Resources")]
    pub gpus: Option<GpuCount>,
    /// GPUs on each node
    #[arg(long, value_name = "[MODEL:]N", value_parser = values::parse_gpus, conflicts_with = "gpus", help_heading = "Resources")]
    pub gpus_per_node: Option<GpuCount>,
    /// Walltime: `30m`, `1:30:00`, `2-12:00:00`; a number alone is minutes
    #[arg(short = 't', long, value_name = "TIME", value_parser = values::parse_walltime, help_heading = "Resources")]
    pub time: Option<u64>,
    /// Floating licences, such as `matlab:2,ansys`
    #[arg(short = 'L', long, value_name = "LIST", value_parser = values::parse_licences, help_heading = "Resources")]
    pub licences: Option<BTreeMap<String, u32>>,
    /// Only nodes with these properties: `gpu & !old`, `mem>=64`
    #[arg(short = 'C', long, value_name = "CONDITION", value_parser = values::parse_condition, help_heading = "Resources")]
    pub constraint: Option<NodeFilter>,
    /// Only these nodes, such as `node[1-4],node9`
    #[arg(short = 'w', long, value_name = "NODES", value_parser = parse_hosts, help_heading = "Resources")]
    pub nodelist: Option<Hosts>,
    /// Never these nodes
    #[arg(short = 'x', long, value_name = "NODES", value_parser = parse_hosts, help_heading = "Resources")]
    pub exclude: Option<Hosts>,
    /// No other job on the nodes while it runs
    #[arg(long, help_heading = "Resources")]
    pub exclusive: bool,
    /// Every core, GPU and byte of the nodes, and no other job there while it runs
    #[arg(long, help_heading = "Resources")]
    pub whole_nodes: bool,

    /// The job's name; default the name of the script or command
    #[arg(short = 'J', long, value_name = "NAME", help_heading = "Job")]
    pub name: Option<String>,
    /// The queue; default the cluster's default queue
    #[arg(short = 'q', long, value_name = "QUEUE", help_heading = "Job")]
    pub queue: Option<String>,
    /// The account or project that is charged
    #[arg(short = 'A', long, value_name = "ACCOUNT", help_heading = "Job")]
    pub account: Option<String>,
    /// Higher goes first; default the queue's
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Job")]
    pub priority: Option<i64>,
    /// One task for each index: `0-9`, `1,3,5-9:2`, at most two at a time `0-9%2`
    #[arg(long, value_name = "INDICES", value_parser = values::parse_array, help_heading = "Job")]
    pub array: Option<ArraySpec>,
    /// A note, shown with the job
    #[arg(long, value_name = "TEXT", help_heading = "Job")]
    pub comment: Option<String>,

    /// Wait for other jobs: `KIND:ID[:ID]`, KIND one of started, ended, ok, failed, not-failed, same-index, running; or `singleton`
    #[arg(long, value_name = "CONDITION", value_parser = parse_after, help_heading = "When it starts")]
    pub after: Vec<DependencyGroups>,
    /// Hold it until it is released
    #[arg(long, help_heading = "When it starts")]
    pub hold: bool,
    /// Not before this time: `22:00`, `2026-11-20 08:30`, `+2h`
    #[arg(long, value_name = "WHEN", value_parser = values::parse_future, allow_hyphen_values = true, help_heading = "When it starts")]
    pub begin: Option<Timestamp>,
    /// Run in this advance reservation
    #[arg(long, value_name = "NAME", help_heading = "When it starts")]
    pub reservation: Option<String>,
    /// Cancel it if it has not started by then
    #[arg(long, value_name = "WHEN", value_parser = values::parse_deadline, allow_hyphen_values = true, help_heading = "When it starts")]
    pub deadline: Option<Timestamp>,

    /// Run in a container of this image: the path of an OCI bundle or of an image file, or a name that the runtime of the nodes knows
    #[arg(long, value_name = "IMAGE", value_parser = values::parse_image, help_heading = "Job")]
    pub container: Option<String>,
    /// Hold its resources for other jobs, which run inside: a planning domain, called by NAME or else by the job's number
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = "Job"
    )]
    pub opens_domain: Option<String>,
    /// Run on what the jobs of this planning domain hold
    #[arg(long, value_name = "ID|NAME", help_heading = "When it starts")]
    pub in_domain: Option<String>,
    /// The job's working directory; default the present one
    #[arg(short = 'D', long, value_name = "DIR", help_heading = "Input and output")]
    pub chdir: Option<String>,
    /// Standard output; %j job, %a index, %A array, %x name, %N node, %t task, %u user
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Input and output")]
    pub output: Option<String>,
    /// Standard error; default the same file as standard output
    #[arg(short = 'e', long, value_name = "FILE", help_heading = "Input and output")]
    pub error: Option<String>,
    /// Standard input; default /dev/null
    #[arg(short = 'i', long, value_name = "FILE", help_heading = "Input and output")]
    pub input: Option<String>,
    /// Append to the output files
    #[arg(long, help_heading = "Input and output")]
    pub append: bool,
    /// Set a variable (`NAME=VALUE`) or pass on the one set here (`NAME`, with --clean-env)
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = values::parse_environment_entry, help_heading = "Input and output")]
    pub env: Vec<EnvironmentEntry>,
    /// Do not pass on the environment, only HOME, USER, LOGNAME, SHELL, PATH and LANG
    #[arg(long, help_heading = "Input and output")]
    pub clean_env: bool,

    /// Send mail to this address
    #[arg(long, value_name = "ADDRESS", help_heading = "Notifications and signals")]
    pub mail: Vec<String>,
    /// Notify about the job: `exec:COMMAND` or `mail:ADDRESS`
    #[arg(long, value_name = "SINK", value_parser = parse_sink, help_heading = "Notifications and signals")]
    pub notify: Vec<Sink>,
    /// When to notify: started, ended, failed, requeued, suspended, held, walltime_over, end_asked; default started and ended; with each_task, for each task of an array
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::parse_occasion, help_heading = "Notifications and signals")]
    pub notify_on: Vec<Occasion>,
    /// Signal the script, or all processes of tasks, before the walltime is over; default 60 seconds before
    #[arg(long, value_name = "SIGNAL[@SECONDS]", value_parser = values::parse_signal_before, help_heading = "Notifications and signals")]
    pub warn: Option<SignalBefore>,
    /// The signal that makes the job save its state; sent before the walltime is over and before a preemption
    #[arg(long, value_name = "SIGNAL[@SECONDS]", value_parser = values::parse_signal_before, help_heading = "Notifications and signals")]
    pub checkpoint: Option<SignalBefore>,
    /// Time from SIGTERM to SIGKILL; default the cluster's
    #[arg(long, value_name = "SECONDS", help_heading = "Notifications and signals")]
    pub kill_grace: Option<u32>,
    /// Start it again if one of its nodes is lost
    #[arg(long, help_heading = "Notifications and signals")]
    pub requeue: bool,
    /// Start it again if it ends with one of these exit codes
    #[arg(long, value_name = "CODES", value_delimiter = ',', help_heading = "Notifications and signals")]
    pub requeue_on_exit: Vec<u8>,
    /// With --requeue: maximum number of runs in total; default 10
    #[arg(long, value_name = "N", value_parser = values::parse_positive, help_heading = "Notifications and signals")]
    pub max_runs: Option<u32>,
}

/// Node names of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(pub Vec<String>);

/// Dependencies of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyGroups(pub Vec<Vec<Dependency>>);

fn parse_hosts(text: &str) -> Result<Hosts, String> {
    values::parse_hosts(text).map(Hosts)
}

fn parse_after(text: &str) -> Result<DependencyGroups, String> {
    values::parse_after(text).map(DependencyGroups)
}

fn parse_sink(text: &str) -> Result<Sink, String> {
    match text.split_once(':') {
        Some(("exec", command)) if !command.trim().is_empty() => Ok(Sink::Exec(command.to_owned())),
        Some(("mail", address)) if !address.is_empty() => Ok(Sink::Mail(address.to_owned())),
        _ => Err("it is exec:COMMAND or mail:ADDRESS".into()),
    }
}

/// The grammar of `#MUSTER` lines.
#[derive(Parser)]
#[command(name = "#MUSTER", no_binary_name = true, disable_help_flag = true, args_override_self = true)]
struct ScriptGrammar {
    #[command(flatten)]
    options: JobOptions,
}

impl JobOptions {
    /// The options in a script's `#MUSTER` lines. If an option is given twice, the last one counts; lists add up.
    pub fn from_script(script: &Script) -> Result<Self, Failure> {
        let all = script.option_lines.iter().flatten();
        match parse_words(all.map(|word| word.text.as_str())) {
            Ok(options) => Ok(options),
            Err(error) => Err(locate(script, &error)),
        }
    }

    /// These options where they are set, else the others. `--env` of both applies, these last.
    pub fn over(self, others: Self) -> Self {
        fn list<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
            if first.is_empty() { second } else { first }
        }
        // Memory and GPUs can each be given in two ways: either one replaces both.
        let names_memory = self.mem.is_some() || self.mem_per_cpu.is_some();
        let names_gpus = self.gpus.is_some() || self.gpus_per_node.is_some();
        Self {
            nodes: self.nodes.or(others.nodes),
            ntasks: self.ntasks.or(others.ntasks),
            ntasks_per_node: self.ntasks_per_node.or(others.ntasks_per_node),
            cpus_per_task: self.cpus_per_task.or(others.cpus_per_task),
            mem: self.mem.or(others.mem.filter(|_| !names_memory)),
            mem_per_cpu: self.mem_per_cpu.or(others.mem_per_cpu.filter(|_| !names_memory)),
            gpus: self.gpus.or(others.gpus.filter(|_| !names_gpus)),
            gpus_per_node: self.gpus_per_node.or(others.gpus_per_node.filter(|_| !names_gpus)),
            time: self.time.or(others.time),
            licences: self.licences.or(others.licences),
            constraint: self.constraint.or(others.constraint),
            nodelist: self.nodelist.or(others.nodelist),
            exclude: self.exclude.or(others.exclude),
            exclusive: self.exclusive || others.exclusive,
            whole_nodes: self.whole_nodes || others.whole_nodes,
            name: self.name.or(others.name),
            queue: self.queue.or(others.queue),
            account: self.account.or(others.account),
            priority: self.priority.or(others.priority),
            array: self.array.or(others.array),
            comment: self.comment.or(others.comment),
            after: list(self.after, others.after),
            hold: self.hold || others.hold,
            begin: self.begin.or(others.begin),
            reservation: self.reservation.or(others.reservation),
            deadline: self.deadline.or(others.deadline),
            container: self.container.or(others.container),
            opens_domain: self.opens_domain.or(others.opens_domain),
            in_domain: self.in_domain.or(others.in_domain),
            chdir: self.chdir.or(others.chdir),
            output: self.output.or(others.output),
            error: self.error.or(others.error),
            input: self.input.or(others.input),
            append: self.append || others.append,
            env: others.env.into_iter().chain(self.env).collect(),
            clean_env: self.clean_env || others.clean_env,
            mail: list(self.mail, others.mail),
            notify: list(self.notify, others.notify),
            notify_on: list(self.notify_on, others.notify_on),
            warn: self.warn.or(others.warn),
            checkpoint: self.checkpoint.or(others.checkpoint),
            kill_grace: self.kill_grace.or(others.kill_grace),
            requeue: self.requeue || others.requeue,
            requeue_on_exit: list(self.requeue_on_exit, others.requeue_on_exit),
            max_runs: self.max_runs.or(others.max_runs),
        }
    }

    /// The job that these options describe.
    pub fn into_spec(self, program: Program, default_name: &str, caller: &Caller) -> JobSpec {
        let launch = self.launch(program);
        let component = Component {
            queue: self.queue.clone(),
            account: self.account.clone(),
            priority: self.priority,
            begin: self.begin,
            deadline: self.deadline,
            reservation: self.reservation.clone(),
            dependencies: Dependencies { all_of: self.after.iter().flat_map(|groups| groups.0.clone()).collect() },
            holds: Holds { user: self.hold, ..Holds::default() },
            launch,
            alternatives: vec![self.alternative()],
            ..Component::default()
        };
        JobSpec {
            components: vec![component],
            working_directory: self.chdir.as_ref().map_or_else(
                || caller.directory.clone(),
                |directory| std::path::Path::new(&caller.directory).join(directory).to_string_lossy().into_owned(),
            ),
            environment: self.environment(caller),
            umask: Some(caller.umask),
            notifications: self.notifications(),
            checkpoint: self
                .checkpoint
                .map(|before| Checkpoint { signal: before.signal, seconds_before_end: before.seconds_before_end }),
            requeue: self.requeue_policy(),
            types: self.types(),
            attributes: self.comment.iter().map(|comment| ("muster.comment".to_owned(), comment.clone())).collect(),
            name: self.name.unwrap_or_else(|| default_name.to_owned()),
            array: self.array,
            ..JobSpec::default()
        }
    }

    /// The planning domains of the job, as types.
    fn types(&self) -> Vec<JobType> {
        let opened =
            self.opens_domain.as_deref().map(|name| domains::opening(Some(name).filter(|name| !name.is_empty())));
        opened.into_iter().chain(self.in_domain.as_deref().map(domains::entering)).collect()
    }

    /// The program to launch, with its files and signals.
    pub fn launch(&self, program: Program) -> Launch {
        Launch {
            program,
            stdout: self.output.clone(),
            stderr: self.error.clone(),
            stdin: self.input.clone(),
            append_output: self.append,
            warning: self
                .warn
                .map(|before| WarningSignal { signal: before.signal, seconds_before_end: before.seconds_before_end }),
            kill_grace_seconds: self.kill_grace,
            container: self.container.clone(),
            stage_in: None,
        }
    }

    fn alternative(&self) -> Alternative {
        let memory = match (self.mem, self.mem_per_cpu) {
            (Some(bytes), _) => Some(Memory { bytes, per: Per::Node }),
            (None, Some(bytes)) => Some(Memory { bytes, per: Per::Core }),
            (None, None) => None,
        };
        let gpus = match (&self.gpus, &self.gpus_per_node) {
            (Some(gpus), _) => Some((gpus, Per::Request)),
            (None, Some(gpus)) => Some((gpus, Per::Node)),
            (None, None) => None,
        };
        let sharing = match (self.whole_nodes, self.exclusive) {
            (true, _) => Sharing::WholeNodes,
            (false, true) => Sharing::Exclusive,
            (false, false) => Sharing::Shared,
        };
        let request = Request {
            path: self.nodes.iter().map(|count| LevelCount { level: Level::Node, count: *count }).collect(),
            tasks: self.ntasks,
            tasks_per_node: self.ntasks_per_node,
            cpus_per_task: self.cpus_per_task.unwrap_or(1),
            memory,
            gpus: gpus.map(|(gpus, per)| Gpus { count: gpus.count, per, model: gpus.model.clone() }),
            filter: self.constraint.clone(),
            nodes: self.nodelist.clone().map(|hosts| hosts.0).unwrap_or_default(),
            excluded_nodes: self.exclude.clone().map(|hosts| hosts.0).unwrap_or_default(),
            sharing,
            ..Request::default()
        };
        Alternative {
            cpu_seconds: None,
            requests: vec![request],
            walltime_seconds: self.time,
            licences: self.licences.clone().unwrap_or_default(),
            ..Alternative::default()
        }
    }

    fn environment(&self, caller: &Caller) -> BTreeMap<String, String> {
        const BASIC: [&str; 6] = ["HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG"];
        let inherited = |name: &str| !NOT_INHERITED.contains(&name) && (!self.clean_env || BASIC.contains(&name));
        let mut environment: BTreeMap<String, String> =
            caller.environment.iter().filter(|(name, _)| inherited(name)).cloned().collect();
        environment.extend(caller.instance.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        for entry in &self.env {
            let callers =
                || caller.environment.iter().find(|(name, _)| *name == entry.name).map(|(_, value)| value.clone());
            if let Some(value) = entry.value.clone().or_else(callers) {
                environment.insert(entry.name.clone(), value);
            }
        }
        environment
    }

    fn notifications(&self) -> Vec<Notification> {
        let mails = self.mail.iter().map(|address| Sink::Mail(address.clone()));
        let sinks = mails.chain(self.notify.iter().cloned());
        sinks.map(|sink| Notification { on: self.notify_on.clone(), sink, spares_cancelled: false }).collect()
    }

    fn requeue_policy(&self) -> RequeuePolicy {
        let default = RequeuePolicy::default();
        RequeuePolicy {
            on_node_lost: self.requeue,
            on_exit_codes: self.requeue_on_exit.iter().map(|code| i32::from(*code)).collect(),
            max_runs: self.max_runs.unwrap_or(default.max_runs),
            ..default
        }
    }
}

fn parse_words<'a>(words: impl Iterator<Item = &'a str>) -> Result<JobOptions, clap::Error> {
    let matches = ScriptGrammar::command().try_get_matches_from(words)?;
    Ok(ScriptGrammar::from_arg_matches(&matches)?.options)
}

/// Tells where in the script an error of its options is, by parsing each line alone.
fn locate(script: &Script, error: &clap::Error) -> Failure {
    for line in &script.option_lines {
        if let Err(error) = parse_words(line.iter().map(|word| word.text.as_str())) {
            return located_in(line, &error);
        }
    }
    let all: Vec<Word> = script.option_lines.iter().flatten().cloned().collect();
    located_in(&all, error)
}

fn located_in(words: &[Word], error: &clap::Error) -> Failure {
    let context = |kind| error.get(kind).map(ToString::to_string);
    let argument = context(ContextKind::InvalidArg);
    let value = context(ContextKind::InvalidValue).filter(|value| !value.is_empty());
    let option = argument.as_deref().map(|argument| argument.split([' ', '=']).next().unwrap_or(argument));
    let is_option = |word: &&Word| {
        let text = word.text.as_str();
        option
            .is_some_and(|option| text == option || text.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')))
    };
    let is_value = |word: &&Word| value.as_deref().is_some_and(|value| word.text.ends_with(value));
    let word = words.iter().find(is_value).or_else(|| words.iter().find(is_option)).or(words.first());
    let message = describe(error, option, value.as_deref());
    match word {
        Some(word) => Failure::in_file(&word.position, message),
        None => Failure::usage(message),
    }
}

fn describe(error: &clap::Error, option: Option<&str>, value: Option<&str>) -> String {
    use clap::error::ErrorKind;
    let option = option.map(values::shorten).unwrap_or_default();
    let reason = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    match (error.kind(), value) {
        (ErrorKind::UnknownArgument, _) if !option.starts_with('-') => {
            format!("`{option}` is not an option; a {} line has options only", crate::script::MARKER)
        }
        (ErrorKind::UnknownArgument, _) => {
            let suggestion = error.get(ContextKind::SuggestedArg).map(|name| format!("; did you mean `{name}`?"));
            format!("unknown option `{option}` in {} line{}", crate::script::MARKER, suggestion.unwrap_or_default())
        }
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, Some(value)) => {
            format!("invalid value `{}` for `{option}`{reason}", values::shorten(value))
        }
        (ErrorKind::InvalidValue, None) => format!("`{option}` needs a value"),
        _ => {
            let text = error.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
