//! Keys of `oar.conf`.

use crate::text::{decimal, shown, suggestion};
use Meaning::{Advice, Nothing, Set, Usual};

/// What the file says that a configuration of muster can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// Keys of `[cluster]`, with their values.
    pub cluster: Vec<(&'static str, u64)>,
    /// The length of a window of accounting.
    pub window_seconds: Option<u64>,
}

/// What a key of OAR is here.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// A key of the configuration, set to the same number.
    Set(Key),
    /// This value is the way things are here; another one is told, with what to do.
    Usual(&'static str, &'static str),
    /// What to do instead, whatever the value.
    Advice(&'static str),
    /// It is about the inside of OAR, so it says nothing here.
    Nothing,
}

/// A key of the configuration.
#[derive(Clone, Copy, Debug)]
enum Key {
    WindowSeconds,
    NodeLostAfter,
}

const ENERGY: &str = "energy is saved by settings of its own, see the chapter on OAR";
const QUOTAS: &str = "quotas are settings of their own, see the chapter on OAR";
const FAIR: &str = "fair share is a policy: `muster config policies` lists those there are";
const AGENTS: &str = "agents that pull have settings of their own, see the chapter on OAR";
const FILES: &str = "scripts before and after jobs are settings of the executors, see the chapter on operation";
const MAIL: &str = "mail is set in [notifier]";
const CHANGES: &str = "walltime_increases of each queue says how far owners lengthen the walltimes of running jobs";
const FRONT: &str = "front hosts of jobs are settings of their own, see the chapter on OAR";
const FAST: &str = "the planner plans as often as something changes";

/// The keys that are known, with their meanings. Those of the planner's passes, of accounting, quotas and energy are all
/// named; those about the database and the log of OAR mean nothing here.
const KEYS: &[(&str, Meaning)] = &[
    ("ACCOUNTING_WINDOW", Set(Key::WindowSeconds)),
    ("FINAUD_FREQUENCY", Set(Key::NodeLostAfter)),
    ("OARSUB_DEFAULT_RESOURCES", Usual("/resource_id=1", "a job without -l gets one core")),
    ("OARSUB_NODES_RESOURCES", Usual("network_address", "the level of nodes is `nodes`, `host` or `network_address`")),
    ("OARSUB_FORCE_JOB_KEY", Usual("no", "nodes of a job are reached by oarsh without a key")),
    ("NODE_FILE_DB_FIELD", Usual("network_address", "the node file has names of nodes")),
    ("NODE_FILE_DB_FIELD_DISTINCT_VALUES", Usual("resource_id", "the node file has a line for each core")),
    ("JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD", Usual("cpuset", "jobs are confined to the cores that they have")),
    ("JOB_RESOURCE_MANAGER_FILE", Advice("jobs are confined by the executors themselves")),
    ("CPUSET_PATH", Advice("jobs are confined by control groups that the executors make")),
    ("DETACH_JOB_FROM_SERVER", Usual("1", "jobs run detached from the server always")),
    ("PROLOGUE_EPILOGUE_TIMEOUT", Usual("60", FILES)),
    ("SERVER_PROLOGUE_EPILOGUE_TIMEOUT", Usual("60", FILES)),
    ("PROLOGUE_EXEC_FILE", Advice(FILES)),
    ("EPILOGUE_EXEC_FILE", Advice(FILES)),
    ("SERVER_PROLOGUE_EXEC_FILE", Advice(FILES)),
    ("SERVER_EPILOGUE_EXEC_FILE", Advice(FILES)),
    ("SUSPEND_RESUME_SCRIPT_TIMEOUT", Usual("60", "scripts around a suspension are not run")),
    ("SUSPEND_RESUME_FILE", Advice("jobs are suspended by the executors themselves")),
    ("JUST_AFTER_SUSPEND_EXEC_FILE", Advice("scripts around a suspension are not run")),
    ("JUST_BEFORE_RESUME_EXEC_FILE", Advice("scripts around a suspension are not run")),
    ("USERS_ALLOWED_HOLD_RESUME", Usual("no", "operators suspend jobs")),
    ("SCHEDULER_AVAILABLE_SUSPENDED_RESOURCE_TYPE", Usual("default", "cores of suspended jobs are free for others")),
    ("JOBDEL_SOFTWALLTIME", Usual("20", "kill_grace_seconds of [cluster] is the time from SIGTERM to SIGKILL")),
    ("JOBDEL_WALLTIME", Usual("300", "a node that does not answer is lost after node_lost_after_seconds")),
    ("DEAD_SWITCH_TIME", Usual("0", "a node stays Absent or Suspected until an operator says Dead")),
    ("CHECK_NODES_WITH_RUNNING_JOB", Usual("no", "all nodes report, also those with jobs")),
    ("SCHEDULER_TIMEOUT", Usual("30", "a pass of the planner has the limit of [planner]")),
    ("SCHEDULER_JOB_SECURITY_TIME", Usual("0", "there is no guard time: the next job starts when the last is gone")),
    ("SCHEDULER_GANTT_HOLE_MINIMUM_TIME", Usual("0", "holes of any length are used")),
    ("SCHEDULER_RESOURCE_ORDER", Advice("nodes with less `weight` come first, see the chapter on the planner")),
    (
        "SCHEDULER_PRIORITY_HIERARCHY_ORDER",
        Advice("idle nodes come first by the policy, see the chapter on the planner"),
    ),
    ("SCHEDULER_MIN_TIME_BETWEEN_2_CALLS", Advice(FAST)),
    ("SCHEDULER_NB_PROCESSES", Advice(FAST)),
    ("SCHEDULER_FAIRSHARING_MAX_JOB_PER_USER", Usual("30", FAIR)),
    ("SCHEDULER_LOG_DECISIONS", Nothing),
    ("SCHEDULER_BESTEFFORT_KILL_DURATION_BEFORE_RESERVATION", Usual("0", "classes say who makes way for whom")),
    ("SCHEDULER_TOKEN_SCRIPTS", Advice("[licences] has floating things that jobs share")),
    ("RESERVATION_WAITING_RESOURCES_TIMEOUT", Usual("300", "reserved_nodes_wait_seconds of [cluster]")),
    ("MAX_CONCURRENT_JOBS_STARTING_OR_TERMINATING", Advice("starts are not limited")),
    ("WALLTIME_CHANGE_ENABLED", Advice(CHANGES)),
    ("WALLTIME_MAX_INCREASE", Advice("write max_seconds in walltime_increases of each queue")),
    ("WALLTIME_MIN_FOR_CHANGE", Advice("write min_walltime_seconds in walltime_increases of each queue")),
    ("WALLTIME_CHANGE_APPLY_TIME", Advice("write apply_seconds in walltime_increases of each queue")),
    ("WALLTIME_INCREMENT", Advice("write step_seconds in walltime_increases of each queue")),
    ("WALLTIME_ALLOWED_USERS_TO_FORCE", Advice("write may_force in walltime_increases of each queue")),
    ("WALLTIME_ALLOWED_USERS_TO_DELAY_JOBS", Advice("write may_delay in walltime_increases of each queue")),
    ("SCHEDULER_NODE_MANAGER_WAKE_UP_CMD", Advice(ENERGY)),
    ("SCHEDULER_NODE_MANAGER_SLEEP_CMD", Advice(ENERGY)),
    ("SCHEDULER_NODE_MANAGER_IDLE_TIME", Usual("600", ENERGY)),
    ("SCHEDULER_NODE_MANAGER_SLEEP_TIME", Usual("600", ENERGY)),
    ("SCHEDULER_NODE_MANAGER_WAKEUP_TIME", Usual("600", ENERGY)),
    ("ENERGY_SAVING_INTERNAL", Usual("no", ENERGY)),
    ("ENERGY_SAVING_MODE", Advice(ENERGY)),
    ("ENERGY_SAVING_NODE_MANAGER_WAKE_UP_CMD", Advice(ENERGY)),
    ("ENERGY_SAVING_NODE_MANAGER_SLEEP_CMD", Advice(ENERGY)),
    ("ENERGY_SAVING_NODE_MANAGER_WAKEUP_TIMEOUT", Usual("900", ENERGY)),
    ("ENERGY_SAVING_NODES_KEEPALIVE", Advice(ENERGY)),
    ("ENERGY_SAVING_WINDOW_SIZE", Usual("25", ENERGY)),
    ("ENERGY_SAVING_WINDOW_TIME", Usual("60", ENERGY)),
    ("ENERGY_SAVING_WINDOW_TIMEOUT", Usual("120", ENERGY)),
    ("ENERGY_SAVING_WINDOW_FORKER_BYPASS", Advice(ENERGY)),
    ("ENERGY_MAX_CYCLES_UNTIL_REFRESH", Advice(ENERGY)),
    ("QUOTAS", Usual("no", QUOTAS)),
    ("QUOTAS_CONF_FILE", Advice(QUOTAS)),
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
    ("DEPLOY_HOSTNAME", Advice(FRONT)),
    ("COSYSTEM_HOSTNAME", Advice(FRONT)),
    ("MAIL_SMTP_SERVER", Advice(MAIL)),
    ("MAIL_SENDER", Advice(MAIL)),
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
        match KEYS.iter().find(|(known, _)| *known == key).map(|(_, meaning)| *meaning) {
            Some(Set(known)) => settings.set(known, key, &value, &mut warn),
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
    fn set(&mut self, key: Key, name: &str, value: &str, warn: &mut impl FnMut(String)) {
        let (least, most) = match key {
            Key::WindowSeconds => (1, 3_153_600_000),
            Key::NodeLostAfter => (2, 86_400),
        };
        match (decimal::<u64>(value.trim()).filter(|number| (least..=most).contains(number)), key) {
            (Some(seconds), Key::WindowSeconds) => self.window_seconds = Some(seconds),
            (Some(seconds), Key::NodeLostAfter) => {
                self.cluster.retain(|(known, _)| *known != "node_lost_after_seconds");
                self.cluster.push(("node_lost_after_seconds", seconds));
            }
            (None, _) => warn(format!("{name}: expected seconds from {least} to {most}, found '{}'", shown(value))),
        }
    }
}
