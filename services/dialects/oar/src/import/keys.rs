//! Keys of `oar.conf`.

use super::toml::quoted;
use crate::{
    order::Order,
    text::{decimal, shown, suggestion},
};
use Meaning::{Advice, Attribute, Increase, Nothing, Set, Usual};
use std::collections::BTreeMap;

/// The sections of the configuration that keys of OAR go to, in the order in which they are written.
pub(super) const SECTIONS: [&str; 7] =
    ["cluster", "accounting", "planner", "energy", "executor", "quotas", "notifier.mail"];

/// What the file says that a configuration of muster can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// The keys of sections, with their values as TOML has them.
    sections: BTreeMap<&'static str, BTreeMap<&'static str, String>>,
    /// What queues say of longer walltimes.
    increases: BTreeMap<&'static str, String>,
    /// The attributes of queues.
    attributes: BTreeMap<&'static str, String>,
    /// Whether walltimes can be lengthened at all.
    has_increases: bool,
    /// Whether quotas are in force.
    has_quotas: bool,
    /// The guard time, in seconds, if the file names one.
    guard_seconds: Option<u64>,
}

/// What a key of OAR is here.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// A key of a section of the configuration, whose value says the same; and what is different nevertheless, if
    /// anything is.
    Set(&'static str, &'static str, Form, &'static str),
    /// A key of `walltime_increases` of the queues.
    Increase(&'static str, Form),
    /// An attribute of the queues.
    Attribute(&'static str),
    /// This value is the way things are here; another one is told, with what to do.
    Usual(&'static str, &'static str),
    /// What to do instead, whatever the value.
    Advice(&'static str),
    /// It is about the inside of OAR, so it says nothing here.
    Nothing,
}

/// The form of a value.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A whole number, from and to.
    Number(u64, u64),
    /// A number of seconds; -1 is no limit.
    Limit,
    /// An absolute path.
    Path,
    /// A command line without characters that mean something to a shell.
    Command,
    /// Any text.
    Text,
    /// Users, separated by spaces; `*` is all.
    Users,
    /// Seconds, or steps such as `1:500 11:1000`.
    Steps,
    /// Idle nodes that are kept awake: `cluster=a:10 & mem=64:2`.
    KeepAwake,
    /// An order of resources: `scheduler_priority ASC, network_address ASC`.
    Order,
}

/// The longest time that OAR's -1 stands for, in seconds.
const NO_LIMIT: u64 = 315_360_000;
const SECONDS: Form = Form::Number(0, 604_800);
const SAME: &str = "";
/// How long a launch may take here beside its prolog, in seconds.
const LAUNCH_SECONDS: u64 = 60;
const SITE_ACCOUNT: &str = "it runs as the account in site_program_account of [executor], by default nobody";
const BESIDE_SUSPENSION: &str =
    "it runs on the first node of the job, as the account in site_program_account of [executor]";

const ENERGY: &str = "energy is saved by settings of its own, see the chapter on OAR";
const QUOTAS: &str = "quotas are settings of their own, see the chapter on OAR";
const FAIR: &str = "fair share is a policy: `muster config policies` lists those there are";
const AGENTS: &str = "agents that pull have settings of their own, see the chapter on OAR";
const FILES: &str = "scripts before and after jobs run on nodes, see the chapter on operation";
const MAIL: &str = "people who want mail about all jobs subscribe to events";
const FAST: &str = "the planner plans as often as something changes";

/// How long before a reservation best-effort jobs end.
const MAKE_WAY_AHEAD: &str = "make_way_ahead_seconds";
/// The guard time, by which they end at the latest.
const GUARD_TIME: &str = "SCHEDULER_JOB_SECURITY_TIME";
/// The guard time of a file that names none, in seconds.
const USUAL_GUARD_SECONDS: u64 = 60;

/// The keys that say whether others count.
const ENABLES_INCREASES: &str = "WALLTIME_CHANGE_ENABLED";
const ENABLES_QUOTAS: &str = "QUOTAS";

/// The keys that are known, with their meanings. Those of the planner's passes, of accounting, quotas and energy are all
/// named; those about the database and the log of OAR mean nothing here.
const KEYS: &[(&str, Meaning)] = &[
    ("ACCOUNTING_WINDOW", Set("accounting", "window_seconds", Form::Number(1, 3_153_600_000), SAME)),
    ("FINAUD_FREQUENCY", Set("cluster", "node_lost_after_seconds", Form::Number(2, 86_400), SAME)),
    ("OARSUB_DEFAULT_RESOURCES", Usual("/resource_id=1", "a job without -l gets one core")),
    ("OARSUB_NODES_RESOURCES", Usual("network_address", "the level of nodes is `nodes`, `host` or `network_address`")),
    ("OARSUB_FORCE_JOB_KEY", Usual("no", "nodes of a job are reached by oarsh without a key")),
    ("NODE_FILE_DB_FIELD", Usual("network_address", "the node file has names of nodes")),
    ("NODE_FILE_DB_FIELD_DISTINCT_VALUES", Usual("resource_id", "the node file has a line for each core")),
    ("JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD", Set("executor", "cpuset_property", Form::Text, SAME)),
    (
        "JOB_RESOURCE_MANAGER_FILE",
        Advice("executors confine jobs; `isolation_manager` of [executor] is another such program"),
    ),
    ("CPUSET_PATH", Advice("jobs are confined by control groups that the executors make")),
    ("DETACH_JOB_FROM_SERVER", Usual("1", "jobs run detached from the server always")),
    ("PROLOGUE_EPILOGUE_TIMEOUT", Set("executor", "site_program_timeout_seconds", Form::Number(1, 3_600), SAME)),
    ("SERVER_PROLOGUE_EPILOGUE_TIMEOUT", Usual("60", FILES)),
    ("PROLOGUE_EXEC_FILE", Set("executor", "job_prolog", Form::Path, SITE_ACCOUNT)),
    ("EPILOGUE_EXEC_FILE", Set("executor", "job_epilog", Form::Path, SITE_ACCOUNT)),
    ("SERVER_PROLOGUE_EXEC_FILE", Advice(FILES)),
    ("SERVER_EPILOGUE_EXEC_FILE", Advice(FILES)),
    (
        "SUSPEND_RESUME_SCRIPT_TIMEOUT",
        Usual("60", "`site_program_timeout_seconds` of `[executor]` is for all such programs"),
    ),
    (
        "SUSPEND_RESUME_FILE",
        Advice(
            "executors suspend jobs themselves; a program as suspend_program of [executor] gets other arguments and needs the account \
             root, see the chapter on operation",
        ),
    ),
    ("JUST_AFTER_SUSPEND_EXEC_FILE", Set("executor", "after_suspend_program", Form::Path, BESIDE_SUSPENSION)),
    ("JUST_BEFORE_RESUME_EXEC_FILE", Set("executor", "before_resume_program", Form::Path, BESIDE_SUSPENSION)),
    ("USERS_ALLOWED_HOLD_RESUME", Usual("no", "operators suspend jobs")),
    ("SCHEDULER_AVAILABLE_SUSPENDED_RESOURCE_TYPE", Usual("default", "cores of suspended jobs are free for others")),
    (
        "JOBDEL_SOFTWALLTIME",
        Set(
            "cluster",
            "kill_grace_seconds",
            Form::Number(0, 86_400),
            "after that time SIGKILL follows, not SIGTERM again",
        ),
    ),
    ("JOBDEL_WALLTIME", Set("executor", "unkillable_seconds", Form::Number(1, 3_600), SAME)),
    ("DEAD_SWITCH_TIME", Usual("0", "a node stays Absent or Suspected until an operator says Dead")),
    ("CHECK_NODES_WITH_RUNNING_JOB", Usual("no", "all nodes report, also those with jobs")),
    ("SCHEDULER_TIMEOUT", Set("planner", "pass_limit_seconds", Form::Number(1, 3_600), SAME)),
    (GUARD_TIME, Set("cluster", "guard_seconds", Form::Number(0, 3_600), SAME)),
    ("SCHEDULER_GANTT_HOLE_MINIMUM_TIME", Usual("0", "holes of any length are used")),
    ("SCHEDULER_RESOURCE_ORDER", Set("cluster", "node_order", Form::Order, SAME)),
    (
        "SCHEDULER_PRIORITY_HIERARCHY_ORDER",
        Advice("nodes where nobody has to make way come first always, see the chapter on the planner"),
    ),
    ("SCHEDULER_MIN_TIME_BETWEEN_2_CALLS", Advice(FAST)),
    ("SCHEDULER_NB_PROCESSES", Advice(FAST)),
    ("SCHEDULER_FAIRSHARING_MAX_JOB_PER_USER", Usual("30", FAIR)),
    ("SCHEDULER_LOG_DECISIONS", Nothing),
    (
        "SCHEDULER_BESTEFFORT_KILL_DURATION_BEFORE_RESERVATION",
        Set("cluster", MAKE_WAY_AHEAD, Form::Number(0, 31_536_000), SAME),
    ),
    ("SCHEDULER_TOKEN_SCRIPTS", Advice("[licences] has floating things that jobs share")),
    (
        "RESERVATION_WAITING_RESOURCES_TIMEOUT",
        Set("cluster", "reserved_nodes_wait_seconds", Form::Number(0, 31_536_000), SAME),
    ),
    ("MAX_CONCURRENT_JOBS_STARTING_OR_TERMINATING", Advice("starts are not limited")),
    (ENABLES_INCREASES, Nothing),
    ("WALLTIME_MAX_INCREASE", Increase("max_seconds", Form::Limit)),
    ("WALLTIME_MIN_FOR_CHANGE", Increase("min_walltime_seconds", Form::Limit)),
    ("WALLTIME_CHANGE_APPLY_TIME", Increase("apply_seconds", Form::Limit)),
    ("WALLTIME_INCREMENT", Increase("step_seconds", Form::Limit)),
    ("WALLTIME_ALLOWED_USERS_TO_FORCE", Increase("may_force", Form::Users)),
    ("WALLTIME_ALLOWED_USERS_TO_DELAY_JOBS", Increase("may_delay", Form::Users)),
    ("SCHEDULER_NODE_MANAGER_WAKE_UP_CMD", Set("energy", "wake_program", Form::Command, SAME)),
    ("SCHEDULER_NODE_MANAGER_SLEEP_CMD", Set("energy", "sleep_program", Form::Command, SAME)),
    ("SCHEDULER_NODE_MANAGER_IDLE_TIME", Set("energy", "idle_seconds", Form::Number(1, 604_800), SAME)),
    ("SCHEDULER_NODE_MANAGER_SLEEP_TIME", Set("energy", "sleep_seconds", SECONDS, SAME)),
    ("SCHEDULER_NODE_MANAGER_WAKEUP_TIME", Set("energy", "wake_up_seconds", SECONDS, SAME)),
    // Either way the system itself decides which nodes sleep.
    ("ENERGY_SAVING_INTERNAL", Nothing),
    ("ENERGY_SAVING_MODE", Advice(ENERGY)),
    ("ENERGY_SAVING_NODE_MANAGER_WAKE_UP_CMD", Set("energy", "wake_program", Form::Command, SAME)),
    ("ENERGY_SAVING_NODE_MANAGER_SLEEP_CMD", Set("energy", "sleep_program", Form::Command, SAME)),
    ("ENERGY_SAVING_NODE_MANAGER_WAKEUP_TIMEOUT", Set("energy", "wake_timeouts", Form::Steps, SAME)),
    ("ENERGY_SAVING_NODES_KEEPALIVE", Set("energy", "keep_awake", Form::KeepAwake, SAME)),
    ("ENERGY_SAVING_WINDOW_SIZE", Set("energy", "nodes_at_once", Form::Number(1, 10_000), SAME)),
    ("ENERGY_SAVING_WINDOW_TIME", Set("energy", "pause_seconds", SECONDS, SAME)),
    ("ENERGY_SAVING_WINDOW_TIMEOUT", Set("energy", "program_timeout_seconds", Form::Number(1, 604_800), SAME)),
    ("ENERGY_SAVING_WINDOW_FORKER_BYPASS", Advice(ENERGY)),
    ("ENERGY_MAX_CYCLES_UNTIL_REFRESH", Advice(ENERGY)),
    (ENABLES_QUOTAS, Nothing),
    ("QUOTAS_CONF_FILE", Set("quotas", "file", Form::Path, SAME)),
    ("QUOTAS_FILE", Advice(QUOTAS)),
    ("SCHEDULER_QUOTA_FILE", Advice(QUOTAS)),
    ("QUOTAS_PERIOD", Advice(QUOTAS)),
    ("QUOTAS_WINDOW_TIME_LIMIT", Advice(QUOTAS)),
    ("FAIRSHARING_ENABLED", Usual("no", FAIR)),
    ("JOB_PRIORITY", Advice(FAIR)),
    ("PRIORITY_CONF_FILE", Advice(FAIR)),
    ("GANTT_WINDOW", Advice(FAIR)),
    ("DESKTOP_COMPUTING_ALLOW_CREATE_NODE", Advice(AGENTS)),
    ("DESKTOP_COMPUTING_EXPIRY", Advice(AGENTS)),
    ("STAGEIN_DIR", Advice(AGENTS)),
    ("STAGEOUT_DIR", Advice(AGENTS)),
    ("STAGEIN_CACHE_EXPIRY", Usual("300", AGENTS)),
    ("DEPLOY_HOSTNAME", Attribute("oar.deploy_host")),
    ("COSYSTEM_HOSTNAME", Attribute("oar.cosystem_host")),
    ("MAIL_SMTP_SERVER", Set("notifier.mail", "host", Form::Text, SAME)),
    ("MAIL_SENDER", Set("notifier.mail", "from", Form::Text, SAME)),
    ("MAIL_RECIPIENT", Advice(MAIL)),
    ("OARSTAT_DEFAULT_OUTPUT_FORMAT", Usual("1", "oarstat has the first of its tables")),
    ("ACTIVATE_PINGCHECKER_AT_JOB_END", Usual("no", "all nodes report, also those with jobs")),
    ("PINGCHECKER_TAKTUK_ARG_COMMAND", Nothing),
    ("PINGCHECKER_SENTINELLE_SCRIPT_COMMAND", Nothing),
    ("PINGCHECKER_FPING_COMMAND", Nothing),
    ("PINGCHECKER_NMAP_COMMAND", Nothing),
    ("PINGCHECKER_GENERIC_COMMAND", Nothing),
    ("TAKTUK_CMD", Nothing),
    ("OPENSSH_CMD", Nothing),
    ("OARSH_OARSTAT_CMD", Nothing),
    ("OARSH_OPENSSH_DEFAULT_OPTIONS", Nothing),
    ("OAR_SSH_CONNECTION_TIMEOUT", Nothing),
    ("OAR_RUNTIME_DIRECTORY", Nothing),
    ("OARDIR", Nothing),
    ("LOG_LEVEL", Nothing),
    ("LOG_FILE", Nothing),
    ("LOG_CATEGORIES", Nothing),
    ("SERVER_HOSTNAME", Nothing),
    ("SERVER_PORT", Nothing),
    ("META_SCHED_CMD", Nothing),
];

/// Reads the file.
pub(super) fn read(text: &str, warnings: &mut Vec<String>) -> Settings {
    let mut settings = Settings::default();
    let mut lines = (1..).zip(text.lines());
    while let Some((at, line)) = lines.next() {
        let mut line = line.trim().to_owned();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // A value continues in the next line.
        while let Some(open) = line.strip_suffix('\\') {
            let next = lines.next().map(|(_, next)| next.trim()).unwrap_or_default();
            line = format!("{open}{next}");
        }
        let mut warn = |text: String| warnings.push(format!("oar.conf, line {at}: {text}"));
        let pair = line.split_once('=').map(|(key, value)| (key.trim(), unquoted(value)));
        let Some((key, value)) = pair.filter(|(key, _)| is_key(key)) else {
            warn(format!("expected KEY=VALUE, found '{}'", shown(&line)));
            continue;
        };
        settings.note(key, &value);
        match KEYS.iter().find(|(known, _)| *known == key).map(|(_, meaning)| *meaning) {
            Some(meaning @ (Set(..) | Increase(..) | Attribute(_))) => {
                if let Err(why) = settings.take(meaning, &value) {
                    warn(format!("{key} is '{}': {why}", shown(&value)));
                }
            }
            Some(Usual(usual, _)) if same(usual, &value) => {}
            Some(Usual(_, advice)) => warn(format!("{key} is '{}': {advice}", shown(&value))),
            Some(Advice(advice)) => warn(format!("{key}: {advice}")),
            Some(Nothing) => {}
            None if key.starts_with("DB_") || key.starts_with("OAR_RUNTIME") => {}
            None => {
                let near = suggestion(key, KEYS.iter().map(|(known, _)| *known));
                warn(format!("{key} is not known here{near}"));
            }
        }
    }
    settings.settle(warnings);
    settings
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A value without its quotes, or without the comment behind it.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some((value, _)) = text.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return value.to_owned();
        }
    }
    text.split('#').next().unwrap_or_default().trim().to_owned()
}

/// Whether a value is the usual one. Resources are the same with and without the slash before the level.
fn same(usual: &str, value: &str) -> bool {
    let plain = |text: &str| text.trim().trim_start_matches('/').to_ascii_lowercase();
    plain(usual) == plain(value)
}

impl Settings {
    /// The keys of a section, with their values.
    pub fn section(&self, name: &str) -> impl Iterator<Item = (&'static str, &str)> {
        self.sections.get(name).into_iter().flatten().map(|(key, value)| (*key, value.as_str()))
    }

    /// The lines of each queue.
    pub fn of_queues(&self) -> Vec<String> {
        let table = |entries: &BTreeMap<&str, String>| {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{} = {value}", quoted(key))).collect();
            format!("{{ {} }}", entries.join(", "))
        };
        let of = |key: &str, entries: &BTreeMap<&str, String>| {
            (!entries.is_empty()).then(|| format!("{key} = {}", table(entries)))
        };
        let lines = [of("walltime_increases", &self.increases), of("attributes", &self.attributes)];
        lines.into_iter().flatten().collect()
    }

    /// Takes a value over.
    ///
    /// # Errors
    /// Why it is not taken over, or what is different with it.
    fn take(&mut self, meaning: Meaning, value: &str) -> Result<(), String> {
        let value = value.trim();
        match meaning {
            Set(section, key, form, note) => {
                let taken = form.read(value)?;
                self.sections.entry(section).or_default().insert(key, taken);
                let left_out = if let Form::Order = form { left_out(value) } else { Vec::new() };
                match (left_out.is_empty(), note.is_empty()) {
                    (false, _) => Err(format!("{} of resources say nothing about nodes here", left_out.join(", "))),
                    (true, false) => Err(note.to_owned()),
                    (true, true) => Ok(()),
                }
            }
            Increase(key, form) => {
                let value = form.read(value)?;
                self.increases.insert(key, value);
                Ok(())
            }
            Attribute(_) if ["", "localhost", "127.0.0.1", "::1"].contains(&value) => {
                Err("here it must be the name of a node of the cluster".to_owned())
            }
            Attribute(key) => {
                self.attributes.insert(key, quoted(value));
                Ok(())
            }
            Usual(..) | Advice(_) | Nothing => Ok(()),
        }
    }

    /// Notes what other keys depend on.
    fn note(&mut self, key: &str, value: &str) {
        let is_on = ["yes", "1", "true"].contains(&value.trim().to_ascii_lowercase().as_str());
        match key {
            ENABLES_INCREASES => self.has_increases = is_on,
            ENABLES_QUOTAS => self.has_quotas = is_on,
            GUARD_TIME => self.guard_seconds = decimal::<u64>(value.trim()).filter(|seconds| *seconds <= 31_536_000),
            _ => {}
        }
    }

    /// Drops what is switched off, leaves time for launches that begin with a prolog, and has best-effort jobs end ahead of
    /// reservations by the guard time at least.
    fn settle(&mut self, warnings: &mut Vec<String>) {
        let programs = self.sections.get("executor");
        let has_prolog = programs.is_some_and(|keys| keys.contains_key("job_prolog"));
        let seconds = programs.and_then(|keys| keys.get("site_program_timeout_seconds")?.parse::<u64>().ok());
        if let Some(seconds) = seconds.filter(|_| has_prolog) {
            let launch = (seconds + LAUNCH_SECONDS).to_string();
            self.sections.entry("cluster").or_default().insert("launch_timeout_seconds", launch);
        }
        let ahead = self.sections.get("cluster").and_then(|keys| keys.get(MAKE_WAY_AHEAD)?.parse::<u64>().ok());
        let least = self.guard_seconds.unwrap_or(USUAL_GUARD_SECONDS);
        if ahead.is_some() || self.guard_seconds.is_some() {
            let ahead = ahead.unwrap_or(0).max(least).to_string();
            self.sections.entry("cluster").or_default().insert(MAKE_WAY_AHEAD, ahead);
        }
        if !self.has_increases {
            self.increases.clear();
        }
        let has_file = self.sections.contains_key("quotas");
        match (self.has_quotas, has_file) {
            (false, _) => drop(self.sections.remove("quotas")),
            (true, false) => {
                warnings.push(format!("oar.conf: {ENABLES_QUOTAS} is on without QUOTAS_CONF_FILE: {QUOTAS}"))
            }
            (true, true) => {}
        }
    }
}

impl Form {
    /// A value as TOML has it.
    ///
    /// # Errors
    /// What was expected.
    fn read(self, value: &str) -> Result<String, String> {
        let texts =
            |words: Vec<String>| format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "));
        let words = || value.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        let is_plain =
            |text: &str| !text.contains(|letter: char| letter.is_control() || "'\"`$&|;<>*?(){}\\".contains(letter));
        let expected = |what: String| format!("expected {what}; it is not taken over");
        match self {
            Self::Number(least, most) => decimal::<u64>(value)
                .filter(|number| (least..=most).contains(number))
                .map(|number| number.to_string())
                .ok_or_else(|| expected(format!("a number from {least} to {most}"))),
            Self::Limit if value == "-1" => Ok(NO_LIMIT.to_string()),
            Self::Limit => decimal::<u64>(value)
                .filter(|number| *number <= NO_LIMIT)
                .map(|number| number.to_string())
                .ok_or_else(|| expected("a number of seconds for all queues".to_owned())),
            Self::Path if value.starts_with('/') && is_plain(value) => Ok(quoted(value)),
            Self::Path => Err(expected("an absolute path without arguments".to_owned())),
            Self::Command if value.starts_with('/') && is_plain(value) => Ok(texts(words())),
            Self::Command => Err(expected("a command line that no shell has to read".to_owned())),
            Self::Text => Ok(quoted(value)),
            Self::Users => Ok(texts(words())),
            Self::Steps => {
                let steps = if value.contains(':') { words() } else { vec![format!("1:{value}")] };
                let is_step = |step: &String| {
                    step.split_once(':').is_some_and(|(nodes, seconds)| {
                        decimal::<u64>(nodes).is_some_and(|nodes| nodes > 0) && decimal::<u64>(seconds).is_some()
                    })
                };
                let are_steps = !steps.is_empty() && steps.iter().all(is_step);
                if are_steps { Ok(texts(steps)) } else { Err(expected("seconds, or NODES:SECONDS ...".to_owned())) }
            }
            Self::Order => {
                let order = Order::read(value, None).map_err(|mistake| expected(format!("an order: {mistake}")))?;
                Ok(texts(order.of_nodes().0))
            }
            Self::KeepAwake => {
                let parts: Option<Vec<String>> = value.split('&').map(kept_awake).collect();
                parts.map(texts).ok_or_else(|| expected("PROPERTY=VALUE:NODES & ...".to_owned()))
            }
        }
    }
}

/// The keys of an order of resources that say nothing about nodes.
fn left_out(text: &str) -> Vec<String> {
    let order = Order::read(text, None).unwrap_or(Order(Vec::new()));
    order.of_nodes().1.into_iter().map(str::to_owned).collect()
}

/// A part of the nodes that are kept awake: equal properties, joined by `and`, and a number.
fn kept_awake(part: &str) -> Option<String> {
    let (filter, count) = part.trim().rsplit_once(':')?;
    let count = decimal::<u64>(count.trim())?;
    let lower = filter.replace(" AND ", " and ");
    let pair = |text: &str| {
        let (name, value) = text.split_once('=')?;
        let (name, value) = (name.trim(), value.trim().trim_matches(['\'', '"']));
        let is_word =
            |word: &str| !word.is_empty() && word.chars().all(|one| one.is_ascii_alphanumeric() || "_-.".contains(one));
        let value = match value {
            "YES" => "true",
            "NO" => "false",
            other => other,
        };
        (is_word(name) && is_word(value)).then(|| format!("{name}={value}"))
    };
    let pairs: Option<Vec<String>> = lower.split(" and ").map(pair).collect();
    Some(format!("{}:{count}", pairs?.join(",")))
}
