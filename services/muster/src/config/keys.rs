//! Every key of the configuration file.

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number in a range, both ends included.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// Seconds, with fractions: from a hundredth to a year.
    Seconds,
    /// Any text.
    Text,
    /// The path of a file or folder.
    Path,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// Names of nodes, with ranges.
    Nodes,
    /// A list of such names.
    NodeLists,
    /// A number of bytes, or text such as `64G`.
    Size,
    /// A table of truth values, whole numbers and texts.
    Properties,
    /// A table of texts.
    NamedTexts,
    /// A table of whole numbers from 0.
    NamedNumbers,
    /// Where a queue passes its jobs on: a table of `destinations`, `held_jobs`, `waiting_jobs` and `lifetime_seconds`.
    Route,
    /// How much is kept: a table of `max_age_seconds` and `max_bytes`.
    Limits,
    /// What owners may lengthen: a table of seconds and of lists of users.
    Increases,
    /// How running jobs of a queue make way: a table of `by` and `grace_seconds`.
    MakesWay,
}

impl Kind {
    /// What a value must be, for people.
    pub fn range(&self) -> String {
        match self {
            Self::Boolean => "`true` or `false`".into(),
            Self::Integer { min: i64::MIN, max: i64::MAX } => "a whole number".into(),
            Self::Integer { min, max: i64::MAX } => format!("a whole number from {min}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Seconds => "a number from 0.01 to 31536000".into(),
            Self::Text => "text".into(),
            Self::Path => "a path".into(),
            Self::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Texts => "a list of texts".into(),
            Self::Nodes => "text such as `node[001-128]`".into(),
            Self::NodeLists => "a list of texts such as `node[001-128]`".into(),
            Self::Size => "a size such as `64G`, or a number of bytes".into(),
            Self::Properties => "a table of truth values, whole numbers and texts".into(),
            Self::NamedTexts => "a table of texts".into(),
            Self::NamedNumbers => "a table of whole numbers from 0".into(),
            Self::Route => "a table with `destinations`, `held_jobs`, `waiting_jobs` and `lifetime_seconds`".into(),
            Self::Limits => "a table with `max_age_seconds` and `max_bytes`; an age of 0 is no limit".into(),
            Self::MakesWay => "a table of `by` (`requeue`, `cancel` or `suspend`) and `grace_seconds` (0 to 86400)".into(),
            Self::Increases => {
                "a table of `max_seconds`, `min_walltime_seconds`, `apply_seconds`, `step_seconds`, `may_force`, `may_delay`"
                    .into()
            }
        }
    }
}

/// When a change of a key takes effect in a running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// On SIGHUP.
    AtOnce,
    /// At the next start.
    AtRestart,
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// The default, as TOML; empty if that is "nothing"; `None` if the key is required.
    pub default: Option<&'static str>,
    /// What it means.
    pub doc: &'static str,
    /// When a change takes effect; meaningless in the cluster's sections.
    pub takes: Takes,
}

/// The syntax of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `[name]`
    Table,
    /// `[[name]]`, any number of times.
    Tables,
    /// `[name]` with any names as keys; all values have the kind of the section's only key.
    Numbers,
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Its syntax.
    pub shape: Shape,
    /// Whether it belongs to the cluster, and so to its history, rather than to the process that reads it.
    pub cluster: bool,
    /// What it configures.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Section {
    /// The section's heading in a file.
    pub fn title(&self) -> String {
        match self.shape {
            Shape::Table | Shape::Numbers => format!("[{}]", self.name),
            Shape::Tables => format!("[[{}]]", self.name),
        }
    }
}

const fn key(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default: Some(default), doc, takes: Takes::AtRestart }
}

const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, default: None, doc, takes: Takes::AtRestart }
}

const fn at_once(key: Key) -> Key {
    Key { takes: Takes::AtOnce, ..key }
}

const fn from_to(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

const YEAR_SECONDS: i64 = 31_536_000;
const U32_MAX: i64 = u32::MAX as i64;

/// All sections, in the order of the reference.
pub const SECTIONS: &[Section] = &[
    CLUSTER,
    QUEUES,
    NODES,
    LICENCES,
    STAGING,
    ACCOUNTS,
    ENERGY,
    BUS,
    TELEMETRY,
    LEDGER,
    PLANNER,
    EXECUTOR,
    NOTIFIER,
    NOTIFIER_MAIL,
    NOTIFIER_COMMAND,
    NOTIFIER_RETRY,
    FILTER_RUNNER,
    ACCOUNTING,
    GATEWAY,
    PBS,
    QUOTAS,
    SLURM,
];

const CLUSTER: Section = Section {
    name: "cluster",
    shape: Shape::Table,
    cluster: true,
    doc: "Settings of the whole cluster.",
    keys: &[
        key("name", Kind::Text, "\"muster\"", "The cluster's name."),
        key(
            "default_queue",
            Kind::Text,
            "\"default\"",
            "The queue of jobs that name none. Without an entry in `[[queues]]` a plain queue of this name is made.",
        ),
        key("operators", Kind::Texts, "[]", "Users who may manage everybody's jobs, and nodes."),
        key(
            "administrators",
            Kind::Texts,
            "[]",
            "Users who may do everything. `root` always may, and so may the user that runs the ledger.",
        ),
        key(
            "finished_job_retention_seconds",
            from_to(0, YEAR_SECONDS),
            "3600",
            "Minimum time for which a finished job can be listed and depended on. After that it is read from the log: `muster job show`, `--at`.",
        ),
        key("node_lost_after_seconds", from_to(2, 86_400), "30", "A node that has not reported for this long is lost."),
        key(
            "launch_timeout_seconds",
            from_to(1, 86_400),
            "60",
            "A launch that no node has confirmed within this time has failed.",
        ),
        key("kill_grace_seconds", from_to(0, 86_400), "10", "Time from SIGTERM to SIGKILL when a job is stopped."),
        key(
            "default_memory_per_core_bytes",
            from_to(0, i64::MAX),
            "",
            "Memory that is set aside for each core of a job that asks for none. Without it none is set aside.",
        ),
        key(
            "cancel_never_met",
            Kind::Boolean,
            "false",
            "Cancel jobs whose dependencies can never be met, rather than let them wait.",
        ),
        key(
            "max_jobs",
            from_to(1, i64::MAX),
            "10000000",
            "Maximum number of waiting and running jobs; each array task counts as one.",
        ),
        key(
            "attributes",
            Kind::NamedTexts,
            "{}",
            "Values of dialects that nothing else reads, such as limits that `qmgr` sets for the server.",
        ),
        key(
            "is_idle",
            Kind::Boolean,
            "false",
            "The planner starts no jobs. Running jobs continue, and jobs can be submitted.",
        ),
        key(
            "agent_lost_after_seconds",
            from_to(2, 86_400),
            "",
            "A node with the property `pull` is lost when its agent has not asked for work for this long; without it 90. Three times the period of the agent is good.",
        ),
        key(
            "agents_make_nodes",
            Kind::Boolean,
            "false",
            "An agent whose token is for a node that does not exist makes the node.",
        ),
        key(
            "ends_domain_jobs",
            Kind::Boolean,
            "false",
            "End the runs inside a planning domain with the job that holds their resources.",
        ),
        key(
            "reserved_nodes_wait_seconds",
            from_to(0, 31_536_000),
            "",
            "A job with a fixed start waits this long for promised nodes that take no jobs, then starts without them; without it 300.",
        ),
        key(
            "unlimited_fixed_starts",
            Kind::Texts,
            "[]",
            "Users of whom any number of jobs with a fixed start may wait; of others, two.",
        ),
        key(
            "make_way_ahead_seconds",
            from_to(0, 31_536_000),
            "",
            "Running jobs that make way for a job with a fixed start end this long before it; without it 60.",
        ),
        key(
            "node_order",
            Kind::Texts,
            "[]",
            "The order in which jobs get nodes: properties of nodes, `name` and `awake`, the most important first, with a `-` in front for the other direction. Without it nodes of less `weight` come first.",
        ),
        key(
            "guard_seconds",
            from_to(0, 3_600),
            "",
            "Plans keep resources free for this long after the walltime of each job; without it not at all.",
        ),
        key(
            "first_job_number",
            from_to(1, 1 << 40),
            "",
            "No job from now on gets a lower number. Without it this stays as it is, and numbers of a new cluster begin at 1.",
        ),
    ],
};

const QUEUES: Section = Section {
    name: "queues",
    shape: Shape::Tables,
    cluster: true,
    doc: "A queue. Repeat the section for each.",
    keys: &[
        required("name", Kind::Text, "Its name, unique in the cluster."),
        key(
            "priority",
            from_to(i64::MIN, i64::MAX),
            "0",
            "Jobs of a queue with a higher priority are looked at first.",
        ),
        key("default_job_priority", from_to(i64::MIN, i64::MAX), "0", "The priority of jobs that name none."),
        key("enabled", Kind::Boolean, "true", "Whether jobs can be submitted to it."),
        key("started", Kind::Boolean, "true", "Whether its jobs are started."),
        key(
            "default_walltime_seconds",
            from_to(1, i64::MAX),
            "",
            "The walltime of jobs that name none. Without it they run without limit.",
        ),
        key("max_walltime_seconds", from_to(1, i64::MAX), "", "No job may ask for more."),
        key("nodes", Kind::NodeLists, "[]", "Only these nodes serve it (`[\"node[1-16]\"]`); empty means all."),
        key("users", Kind::Texts, "[]", "Only these users may submit to it; empty means all."),
        key("max_running_jobs", from_to(0, U32_MAX), "", "Maximum number of its running jobs; each array task counts."),
        key("max_running_jobs_per_user", from_to(0, U32_MAX), "", "Maximum number of its running jobs for one user."),
        key(
            "max_jobs",
            from_to(0, U32_MAX),
            "",
            "Maximum number of its waiting and running jobs; each array task counts as one.",
        ),
        key(
            "attributes",
            Kind::NamedTexts,
            "{}",
            "Values of dialects that nothing else reads, such as limits that `qmgr` sets for the queue.",
        ),
        key(
            "route",
            Kind::Route,
            "",
            "It starts no jobs, and passes them on to the first of these queues that takes them.",
        ),
        key(
            "least_asked",
            Kind::NamedNumbers,
            "{}",
            "No job may ask for less, of `cores`, `nodes`, `gpus`, `memory_bytes`, `cpu_seconds` and `walltime_seconds`. What a job does not ask for at all is not compared.",
        ),
        key(
            "most_asked",
            Kind::NamedNumbers,
            "{}",
            "No job may ask for more, in the same words. A job that asks for tasks and not for nodes has as many `nodes` as both allow.",
        ),
        key(
            "walltime_increases",
            Kind::Increases,
            "",
            "How far owners may lengthen the walltimes of their running jobs ([OAR](../oar.md#longer-walltimes)). Without it only operators may.",
        ),
        key(
            "makes_way",
            Kind::MakesWay,
            "",
            "How its running jobs make way for jobs of queues with a higher `priority` ([Slurm](../slurm.md#preemption-between-partitions)). Without it they do not. Under [planning by turns](../planner.md#turns), as the policies of PBS plan, it has no effect.",
        ),
    ],
};

const NODES: Section = Section {
    name: "nodes",
    shape: Shape::Tables,
    cluster: true,
    doc: "A node, or many of one kind. Repeat the section for each kind.",
    keys: &[
        required("name", Kind::Nodes, "Its name, unique in the cluster, or names with ranges: `node[001-128]`."),
        required("cores", from_to(1, 65_536), "Cores that jobs may use."),
        key(
            "sockets",
            from_to(1, 65_536),
            "1",
            "Sockets; the cores are dealt out to them in equal, consecutive parts.",
        ),
        required("memory", Kind::Size, "Memory that jobs may use."),
        key("gpus", Kind::Texts, "[]", "The model of each GPU, in order: `[\"a100\", \"a100\"]`."),
        key(
            "properties",
            Kind::Properties,
            "{}",
            "What jobs can ask for with `--constraint`, and the groups that the node belongs to: `{ gpu = true, mem = 64, switch = \"s1\" }`.",
        ),
    ],
};

const LICENCES: Section = Section {
    name: "licences",
    shape: Shape::Numbers,
    cluster: true,
    doc: "Floating licences: for each name how many there are.",
    keys: &[key("NAME", from_to(0, U32_MAX), "", "How many jobs can have one at a time; 0 removes it.")],
};

const STAGING: Section = Section {
    name: "staging",
    shape: Shape::Table,
    cluster: true,
    doc: "The site's program that brings the files of jobs in before they start and out after their end, run by the filter-runners ([staging](../filters.md#staging)).",
    keys: &[
        key("program", Kind::Path, "", "Its absolute path on the runners. Without it nothing is staged."),
        key("stage_in_timeout_seconds", from_to(1, 604_800), "86400", "Time limit for staging in one component."),
        key("stage_out_timeout_seconds", from_to(1, 604_800), "86400", "Time limit for staging out one component."),
        key(
            "copy_retry_seconds",
            from_to(0, 604_800),
            "1800",
            "How long a job waits whose files its node could not copy (`stagein` of PBS); 0 means 1800. The two time limits above \
             hold for these copies too, for all files of a job in one direction.",
        ),
        key(
            "copy_limit_bytes",
            from_to(0, i64::MAX),
            "0",
            "The greatest size of the files that a node copies for a job in one direction; 0 means no limit.",
        ),
        key(
            "copy_failures_before_hold",
            from_to(0, U32_MAX),
            "0",
            "After this many failures to copy the files of a job it is held; 0 means never.",
        ),
    ],
};

const ACCOUNTS: Section = Section {
    name: "accounts",
    shape: Shape::Table,
    cluster: true,
    doc: "Which checks of accounts, associations and service classes (QOS) are enforced. Create these with `sacctmgr`. Without this section nothing changes.",
    keys: &[
        key(
            "enforce",
            Kind::Texts,
            "[]",
            "What holds: `associations` (only users with an association submit, on its account), `limits`, `classes` (only those that exist and may be used), `safe` (a job that could never start under the limits is refused instead of waiting). `limits` and `classes` need no `associations`; `safe` brings `limits`.",
        ),
        key(
            "queue_classes",
            Kind::Properties,
            "{}",
            "Service classes of queues. Their limits apply to every job in the queue, in addition to those of the job's own class: `{ night = \"long\" }`.",
        ),
        key(
            "usage_half_life_seconds",
            from_to(1, 315_360_000),
            "",
            "After how long what jobs used counts half for [`fair_share`](policy.md#fair-share). Without it nothing is counted.",
        ),
    ],
};

const ENERGY: Section = Section {
    name: "energy",
    shape: Shape::Table,
    cluster: true,
    doc: "Nodes that sleep while nothing runs on them ([energy](../energy.md)). Without programs no node is put to sleep or woken.",
    keys: &[
        key(
            "sleep_program",
            Kind::Texts,
            "[]",
            "The program that puts nodes to sleep, with its words; it gets their names on its standard input, one a line.",
        ),
        key("wake_program", Kind::Texts, "[]", "The program that wakes nodes, in the same way."),
        key(
            "account",
            Kind::Text,
            "\"nobody\"",
            "The account that both run as, if the notifier runs as root. It must not be root's.",
        ),
        key(
            "idle_seconds",
            from_to(1, 604_800),
            "600",
            "A node is put to sleep after it has been without job for this long.",
        ),
        key(
            "sleep_seconds",
            from_to(0, 604_800),
            "600",
            "It is not put to sleep if something is planned on it within this time.",
        ),
        key(
            "wake_up_seconds",
            from_to(0, 604_800),
            "600",
            "How long a node takes to wake: it is woken so long before something is planned on it.",
        ),
        key(
            "wake_timeouts",
            Kind::Texts,
            "[]",
            "How long nodes may take to report after their wake-up was ordered, by their number: `[\"1:500\", \"11:1000\"]`. Without steps 900 s.",
        ),
        key(
            "sleep_timeout_seconds",
            from_to(1, 604_800),
            "900",
            "How long a node may still report after it was ordered to sleep.",
        ),
        key(
            "program_timeout_seconds",
            from_to(1, 604_800),
            "120",
            "A program is killed after this time and has failed.",
        ),
        key(
            "nodes_at_once",
            from_to(1, 10_000),
            "25",
            "The most nodes that are woken, and that are put to sleep, in one period.",
        ),
        key("pause_seconds", from_to(0, 604_800), "60", "The length of a period."),
        key(
            "keep_awake",
            Kind::Texts,
            "[]",
            "Idle nodes that are kept awake: `[\"2\", \"gpu=true,rack=r1:1\"]` keeps two, and one with these properties.",
        ),
        key("watts_busy", from_to(0, U32_MAX), "", "What a node with jobs uses, in watts, for estimates."),
        key("watts_idle", from_to(0, U32_MAX), "", "What it uses awake without jobs."),
        key("watts_asleep", from_to(0, U32_MAX), "", "What it uses asleep."),
        key("watts_waking", from_to(0, U32_MAX), "", "What it uses while it falls asleep or wakes."),
    ],
};

const BUS: Section = Section {
    name: "bus",
    shape: Shape::Table,
    cluster: false,
    doc: "Connects the roles. `muster up` always uses the bus inside its process.",
    keys: &[
        key(
            "url",
            Kind::Text,
            "",
            "Address of NATS, such as `nats://127.0.0.1:4222`, or `tls://HOST:PORT`; several, separated by commas, are a cluster. Without it `muster serve` needs the ledger and all other roles in one process.",
        ),
        key("user", Kind::Text, "", "The user to log in as."),
        key("password_file", Kind::Path, "", "File whose first line is the password of that user."),
        key("credentials_file", Kind::Path, "", "NATS credentials file (`.creds`) to log in with instead."),
        key(
            "inbox_prefix",
            Kind::Text,
            "",
            "Prefix of the subjects for answers: `_INBOX` and more, without dots. Without it `_INBOX_USER`, so that each user can be kept from the answers to others.",
        ),
        key(
            "tls_ca_file",
            Kind::Path,
            "",
            "Certificates (PEM) that the server's certificate is checked against, in addition to the system's.",
        ),
        key("tls_certificate_file", Kind::Path, "", "Certificate (PEM) to show to the server; needs `tls_key_file`."),
        key("tls_key_file", Kind::Path, "", "Key (PEM) of that certificate."),
        key("tls_required", Kind::Boolean, "false", "Refuse connections without TLS."),
        key("replicas", from_to(1, 5), "1", "How many servers of a NATS cluster keep each stream."),
        key(
            "log",
            Kind::Limits,
            "{ max_age_seconds = 86400, max_bytes = 268435456 }",
            "How much of the log NATS keeps. The ledger has all of it; this only spares it questions.",
        ),
        key(
            "events",
            Kind::Limits,
            "{ max_age_seconds = 604800, max_bytes = 1073741824 }",
            "How many of the public events NATS keeps, for integrations that were away.",
        ),
    ],
};

const LEDGER: Section = Section {
    name: "ledger",
    shape: Shape::Table,
    cluster: false,
    doc: "The log and everything derived from it. It is kept in `ledger/` in the data folder (`--data`).",
    keys: &[
        key(
            "snapshot_every_records",
            from_to(1000, i64::MAX),
            "20000",
            "Number of records between snapshots of the state. While its snapshot is kept, a query of the past replays no more than this.",
        ),
        key(
            "keep_snapshots",
            from_to(1, 100_000),
            "64",
            "Number of newest snapshots that are all kept; older ones are thinned out.",
        ),
        key(
            "checkpoint_every_records",
            from_to(100, i64::MAX),
            "10000",
            "Number of records between signed checkpoints of log and state. Checkpoints never take more than a tenth of one processor.",
        ),
        key(
            "checkpoint_every_seconds",
            from_to(1, YEAR_SECONDS),
            "60",
            "Longest time that records wait for a checkpoint, within the same bound.",
        ),
        key(
            "command_retention_seconds",
            from_to(86_400, YEAR_SECONDS),
            "172800",
            "A command that is sent again within this time gets its first answer.",
        ),
        key(
            "archive_after_days",
            from_to(0, U32_MAX),
            "",
            "Records older than this are moved to archive files, once they fill one. Without it everything stays in the log.",
        ),
        key(
            "public_address",
            Kind::Text,
            "",
            "The address of a gateway that all nodes reach, such as `https://head:7457`. Jobs find it in `MUSTER_SERVER`, and in `MUSTER_TOKEN` a token that is good for their own job while it runs. Without it they call the gateway that their submitter called.",
        ),
        key(
            "replication",
            Kind::OneOf(&["alone", "stream"]),
            "\"alone\"",
            "Whether this is the only ledger (`alone`), or one of several that keep one history (`stream`), of which one leads. Several need three NATS servers, and the `ledger.key` of the first.",
        ),
        key(
            "name",
            Kind::Text,
            "",
            "The name of this ledger among several, such as that of its host: letters, digits, `-`, `_` and `.`, at most 64. It must not change.",
        ),
        key(
            "wait_for_standby",
            Kind::Boolean,
            "false",
            "Whether answers wait until another ledger has what they say in its own log, on disk. It is the same in the files of all ledgers. While none of the others follows, nothing is decided.",
        ),
    ],
};

const PLANNER: Section = Section {
    name: "planner",
    shape: Shape::Table,
    cluster: false,
    doc: "Chooses which jobs start where: the policy in force (`muster config show --policy`), unless an external planner is named.",
    keys: &[
        key(
            "command",
            Kind::Texts,
            "[]",
            "A program that plans instead, with its arguments: `[\"python3\", \"/etc/muster/planner.py\"]`. It is started without a shell, as the user and in the folder of the service.",
        ),
        key(
            "external",
            Kind::OneOf(&["bus"]),
            "",
            "Where else the program that plans is: `bus`, if it serves the subject `muster.planner.external`.",
        ),
        key(
            "takeover_seconds",
            from_to(1, 3600),
            "3",
            "How long a plan may be due of which the log shows nothing before a second planner, which stands by, takes over.",
        ),
        key(
            "pass_limit_seconds",
            from_to(1, 3600),
            "30",
            "How long the built-in planner may look at jobs in one pass. What it has by then counts; jobs that it did not come to wait, and are told so.",
        ),
        key("answer_timeout_seconds", from_to(1, 3600), "30", "Time limit for each answer of an external planner."),
        key(
            "max_waiting",
            from_to(1, 1_000_000),
            "10000",
            "Maximum number of waiting jobs shown to an external planner, first in order.",
        ),
        key(
            "fallback",
            Kind::Boolean,
            "false",
            "While the external planner does not work, plan by the policy in force; otherwise no job starts.",
        ),
        key(
            "scheduler_policy",
            Kind::Text,
            "",
            "A scheduling program of PBS that plans instead: `basl:FILE`, `tcl:BODY[,INIT]` or `external:COMMAND`.",
        ),
        key(
            "scheduler_folder",
            Kind::Path,
            "",
            "The folder of that program: its files are below it, and it runs there. The program is read again on SIGHUP.",
        ),
        key(
            "scheduler_print_file",
            Kind::Path,
            "",
            "The file for what that program prints, below its folder, as with PBS's `-p`. Without it `sched_out`.",
        ),
        key(
            "scheduler_end_script",
            Kind::Path,
            "",
            "A script below that folder which a Tcl program runs at its end, as with PBS's `-t`.",
        ),
        key(
            "scheduler_config_file",
            Kind::Path,
            "",
            "The configuration of a BaSL program below that folder, as with PBS's `-c`: which answer of a node's monitor a function gives.",
        ),
        key(
            "scheduler_time_zone",
            Kind::Text,
            "",
            "Time zone in which that program reads clocks and calendars, such as `Europe/Zurich`; without it that of the server (`qmgr -c 'set server timezone = ...'`), or else UTC.",
        ),
        key("scheduler_alarm_seconds", from_to(1, 3600), "180", "Time limit for each cycle of that program."),
        key(
            "schedule_iteration_seconds",
            from_to(1, YEAR_SECONDS),
            "600",
            "A cycle of that program starts at the latest this long after the start of the last one.",
        ),
        key("predict", Kind::Boolean, "true", "Whether the starts of waiting jobs are predicted."),
        key(
            "prediction_change_seconds",
            from_to(0, YEAR_SECONDS),
            "60",
            "A prediction goes to the log if it differs from the last one by more than this, ...",
        ),
        key(
            "prediction_change_percent",
            from_to(0, 100),
            "10",
            "... and by more than this part of what is left of the wait.",
        ),
    ],
};

const TELEMETRY: Section = Section {
    name: "telemetry",
    shape: Shape::Table,
    cluster: false,
    doc: "Log lines, traces and metrics. Metrics are at `/metrics` of the gateway too.",
    keys: &[
        at_once(key(
            "log_filter",
            Kind::Text,
            "\"info\"",
            "Which log lines are written: `error`, `warn`, `info`, `debug` or `trace`, also by module, as in `info,muster_ledger=debug`.",
        )),
        key(
            "log_format",
            Kind::OneOf(&["text", "json"]),
            "\"text\"",
            "What a log line looks like: `text` for people, `json` for programs.",
        ),
        key(
            "otlp_endpoint",
            Kind::Text,
            "",
            "Base address of an OpenTelemetry collector that takes OTLP over plain http, such as `http://127.0.0.1:4318`. Without it nothing is exported.",
        ),
        key(
            "cluster",
            Kind::Text,
            "",
            "The cluster name in everything that this process exports. Without it the `name` in `[cluster]`, if the file has one.",
        ),
        key(
            "metrics_listen",
            Kind::Text,
            "",
            "Address and port where this process shows its metrics in the format of Prometheus at `/metrics`, such as `127.0.0.1:9464`. Whoever reaches it may read them.",
        ),
    ],
};

const EXECUTOR: Section = Section {
    name: "executor",
    shape: Shape::Table,
    cluster: false,
    doc: "Runs the jobs of a node.",
    keys: &[
        key(
            "node",
            Kind::Text,
            "",
            "The name of the node as the cluster knows it. Without it this host's name up to the first dot; `--node` beats both.",
        ),
        key(
            "spool_dir",
            Kind::Path,
            "",
            "The folder for what the node must not forget. Only this executor uses it; it is on a local file system that survives a reboot, and job users can traverse its parents. Without it `spool/NODE` in the data folder.",
        ),
        key(
            "heartbeat_seconds",
            from_to(1, 300),
            "3",
            "From one sign of life to the next; keep it well below `node_lost_after_seconds`.",
        ),
        key(
            "containment",
            Kind::OneOf(&["auto", "cgroup2", "cgroup1", "process"]),
            "\"auto\"",
            "How the processes of a job are kept together; `auto` takes the best that the host offers. `process` makes no groups.",
        ),
        key(
            "bind_cpus",
            Kind::Boolean,
            "true",
            "Whether processes are bound to the cores that their job was given. `muster up` never does.",
        ),
        key(
            "cpuset_property",
            Kind::Text,
            "\"cpuset\"",
            "The property of a node that lists the CPUs of its cores, for jobs that are submitted with OAR's commands: see the chapter \
             on OAR.",
        ),
        key(
            "open_files",
            from_to(64, 1_048_576),
            "1024",
            "The limit of open files that jobs start with; they can raise it themselves.",
        ),
        key(
            "gpus",
            Kind::Texts,
            "",
            "The GPUs of the node in the order of their numbers, each with its kind and its device files: `[\"nvidia:/dev/nvidia0\", \"amd:/dev/dri/renderD128,/dev/dri/card0\"]`. Without it those that the drivers of this host show.",
        ),
        key(
            "gpu_check_seconds",
            from_to(1, 3600),
            "60",
            "How often each GPU is looked at: whether its device files exist, and whether it answers.",
        ),
        key(
            "container_runtime",
            Kind::Text,
            "\"auto\"",
            "The program that starts containers of jobs: `auto` (the best that is there for an image), `none`, or the absolute path of \
             apptainer, singularity, podman, crun or runc.",
        ),
        key(
            "prolog",
            Kind::Path,
            "",
            "The site's program before the first process of a job on this node, an absolute path. If it fails, the node is drained \
             and the job ends here as on a lost node.",
        ),
        key(
            "epilog",
            Kind::Path,
            "",
            "The site's program after the last process of a job on this node, an absolute path. If it fails, the node is drained.",
        ),
        key(
            "job_prolog",
            Kind::Path,
            "",
            "The site's program before the command of a job, on the job's first node only, an absolute path. Its arguments are the \
             job, its owner, a file with its nodes, and its walltime in seconds. If it fails, the node is drained and the \
             job ends here as on a lost node.",
        ),
        key(
            "job_epilog",
            Kind::Path,
            "",
            "The site's program after the command of a job, on the job's first node only, an absolute path. Its arguments are the \
             job, its owner, and a file with its nodes. If it fails, the node is drained.",
        ),
        key(
            "suspend_program",
            Kind::Path,
            "",
            "The site's program that suspends the processes of a job on this node and lets them continue, in place of muster's own \
             way, an absolute path. Its arguments are `suspend` or `resume`, the job, its owner, and a file with the numbers of the \
             processes. If it fails, the node is drained and the job ends here as on a lost node.",
        ),
        key(
            "after_suspend_program",
            Kind::Path,
            "",
            "The site's program right after the processes of a job were suspended, on the job's first node only, an absolute path. Its \
             argument is the job. If it fails, the job continues, and shows why.",
        ),
        key(
            "before_resume_program",
            Kind::Path,
            "",
            "The site's program right before suspended processes of a job continue, on the job's first node only, an absolute path. Its \
             argument is the job. If it fails, the job ends as on a lost node.",
        ),
        key(
            "isolation_manager",
            Kind::Path,
            "",
            "The site's program that makes and removes the groups in which jobs are isolated, in place of muster's own groups, an \
             absolute path. Its arguments are `create` or `remove`, the group, the job, its owner, and for `create` the CPUs with \
             commas between them. It comes with `isolation_reader` and `isolation_joiner`.",
        ),
        key(
            "isolation_reader",
            Kind::Path,
            "",
            "The site's program that prints the group of a process, an absolute path. Its argument is the number of the process.",
        ),
        key(
            "isolation_joiner",
            Kind::Path,
            "",
            "The site's program that takes a process into a group, an absolute path. Its arguments are the group and the number of \
             the process.",
        ),
        key(
            "health_check_program",
            Kind::Path,
            "",
            "The site's check of the node, an absolute path. If it fails, the node is drained, with the first line of its output as \
             the reason.",
        ),
        key("health_check_interval_seconds", from_to(1, 86_400), "300", "From one check of the node to the next."),
        key(
            "site_program_account",
            Kind::Text,
            "\"nobody\"",
            "The account that these programs run as. They run as root only if it is `root`.",
        ),
        key(
            "site_program_timeout_seconds",
            from_to(1, 3_600),
            "30",
            "How long one of these programs may take; keep it well below `launch_timeout_seconds`: a prolog is part of the launch.",
        ),
        key(
            "cleaned_folders",
            Kind::Texts,
            "[]",
            "Folders such as `/tmp` and `/dev/shm`, absolute paths, in which the files of a user are removed when the user's last job \
             has left the node, and with them what the user's processes shared by System V's means. Files of root stay.",
        ),
        key(
            "unkillable_seconds",
            from_to(1, 3_600),
            "60",
            "How long the processes of a job are killed again and again. Then the node is drained, and the job is over.",
        ),
        key(
            "copy_command",
            Kind::Texts,
            "[\"scp\", \"-Brp\", \"--\"]",
            "The program that copies files of jobs from and to other hosts, with its first words. It gets two more, from and to, of \
             which one is `HOST:PATH`, and runs as the owner of the job. Files of this host are copied with `cp -rp`.",
        ),
        key(
            "load_interval_seconds",
            from_to(0, 3600),
            "0",
            "How often the load of the node is measured, one record each time; 0 for never. Policies that choose nodes by their load need it.",
        ),
        key("load_file", Kind::Path, "\"/proc/loadavg\"", "The file whose first word is the load of the node."),
        key(
            "stat_file",
            Kind::Path,
            "\"/proc/stat\"",
            "The file whose first line tells how long the node's processors were busy, and with what, as that of `/proc/stat`. The system's \
             own part of the time since the measurement before is recorded beside the load.",
        ),
        key(
            "shim_program",
            Kind::Path,
            "",
            "The program that shims are started from, if not the `muster` that is installed with the running program. One of another \
             version is not used; the running program then is.",
        ),
    ],
};

const NOTIFIER: Section = Section {
    name: "notifier",
    shape: Shape::Table,
    cluster: false,
    doc: "Notifies people and programs about jobs.",
    keys: &[key("max_deliveries", from_to(1, 1000), "8", "Maximum number of simultaneous deliveries.")],
};

const NOTIFIER_MAIL: Section = Section {
    name: "notifier.mail",
    shape: Shape::Table,
    cluster: false,
    doc: "How mail is sent: to a server, or by a program.",
    keys: &[
        key(
            "program",
            Kind::Path,
            "",
            "A program that sends mail instead of a server, called as `PROGRAM -s SUBJECT -- ADDRESS` with the text on its \
             standard input; not together with `host`.",
        ),
        key(
            "account",
            Kind::Text,
            "\"nobody\"",
            "The unprivileged account that the program runs as, never root's. Only a notifier that is root can switch to it; another runs it as itself.",
        ),
        key(
            "end_of_options",
            Kind::Boolean,
            "true",
            "Whether to put `--` before the address. A program that was written for Slurm may want exactly three words.",
        ),
        key(
            "host",
            Kind::Text,
            "\"\"",
            "The mail server's name or address. Without it and without a program, mail is given up at once.",
        ),
        key("port", from_to(1, 65_535), "25", "Its port: 25 for relays, 587 for `starttls`, 465 for `tls`."),
        key(
            "tls",
            Kind::OneOf(&["none", "starttls", "tls"]),
            "\"none\"",
            "Whether and how the connection is encrypted: not at all, before anything is said, or from the first byte.",
        ),
        key("ca_file", Kind::Path, "", "Certificates (PEM) of authorities to trust in addition to the system's."),
        key("username", Kind::Text, "", "The user name, if the server wants one."),
        key("password_file", Kind::Path, "", "File with the password."),
        key("from", Kind::Text, "\"muster@localhost\"", "The sender of mail."),
        key("timeout_seconds", from_to(1, 3600), "30", "A server that does not answer for this long has failed."),
    ],
};

const NOTIFIER_COMMAND: Section = Section {
    name: "notifier.command",
    shape: Shape::Table,
    cluster: false,
    doc: "How the commands of `--notify exec:COMMAND` are run.",
    keys: &[
        key("time_limit_seconds", from_to(1, 86_400), "60", "A command that takes longer is killed and has failed."),
        key(
            "max_output_bytes",
            from_to(0, 1 << 20),
            "2048",
            "Amount of a failed command's output that is kept for the error.",
        ),
    ],
};

const NOTIFIER_RETRY: Section = Section {
    name: "notifier.retry",
    shape: Shape::Table,
    cluster: false,
    doc: "When a delivery that failed is tried again.",
    keys: &[
        key(
            "first_pause_seconds",
            Kind::Seconds,
            "5.0",
            "The pause after the first failure; each further one is twice as long, give or take a quarter.",
        ),
        key("longest_pause_seconds", Kind::Seconds, "3600.0", "No pause is longer."),
        key("max_attempts", from_to(1, 1_000_000), "30", "Maximum number of attempts before a delivery is given up."),
        key(
            "max_age_seconds",
            from_to(1, YEAR_SECONDS),
            "86400",
            "Maximum age of the event before a delivery is given up.",
        ),
    ],
};

const FILTER_RUNNER: Section = Section {
    name: "filter_runner",
    shape: Shape::Table,
    cluster: false,
    doc: "Runs a site's filters. The filters themselves are set in the running system (`muster filter list`).",
    keys: &[
        key(
            "name",
            Kind::Text,
            "\"\"",
            "The runner's name, which no other runner of the cluster may have. Empty means the host's name and the number of the process.",
        ),
        key(
            "account",
            Kind::Text,
            "\"muster-filter\"",
            "The unprivileged account that filters run under. Only a runner that is root can switch to it, and it must be there; another runs them as itself.",
        ),
        key(
            "administrators",
            Kind::Texts,
            "[]",
            "Users, in addition to root, who may own filter programs and the folders on their path. A program that others can change is not run.",
        ),
        key(
            "slots",
            from_to(1, 65_536),
            "16",
            "Number of programs that run at the same time; further calls wait for other runners.",
        ),
        key(
            "persistent_processes",
            from_to(1, 1024),
            "1",
            "Number of processes that serve one persistent filter, each handling one call at a time.",
        ),
        key(
            "scratch",
            Kind::Path,
            "",
            "Private folders of calls are made here, best on a file system in memory. Without it `/run/muster/filters` for root, else a folder in `$XDG_RUNTIME_DIR`.",
        ),
        key("path", Kind::Text, "\"/usr/local/bin:/usr/bin:/bin\"", "`PATH` of filters."),
        key("lang", Kind::Text, "\"C.UTF-8\"", "`LANG` of filters."),
        key("time_zone", Kind::Text, "\"UTC\"", "`TZ` of filters."),
        key(
            "scheduler",
            Kind::Text,
            "\"\"",
            "`CCP_SCHEDULER` of filters, by which the commands that they call find the system: the address of a gateway, such as `http://head:7457`, or a data folder. Empty means the data folder of this process.",
        ),
        key(
            "supervisor",
            Kind::Path,
            "\"/proc/self/exe\"",
            "The program that the processes are started from that supervise filters, if not the one that runs. It must be muster.",
        ),
    ],
};

const ACCOUNTING: Section = Section {
    name: "accounting",
    shape: Shape::Table,
    cluster: false,
    doc: "Counts usage.",
    keys: &[
        key(
            "window_seconds",
            from_to(1, 100 * YEAR_SECONDS),
            "86400",
            "How long a window is. Windows are counted from 1970-01-01 00:00 UTC; a changed length counts the log again.",
        ),
        key(
            "snapshot_file",
            Kind::Path,
            "",
            "A file to keep the books in between starts. Without it `accounting.books` in the data folder.",
        ),
        key(
            "snapshot_every_records",
            from_to(1, i64::MAX),
            "1000000",
            "Number of records after which the file is rewritten; it is also rewritten at a clean stop.",
        ),
    ],
};

const PBS: Section = Section {
    name: "pbs",
    shape: Shape::Table,
    cluster: false,
    doc: "Settings for PBS's commands and policy files.",
    keys: &[
        key(
            "flavour",
            Kind::OneOf(&["pbspro", "torque"]),
            "\"pbspro\"",
            "The member of the family that `qstat`, the names of output files and the variables of jobs imitate where the members differ: `pbspro` (OpenPBS, PBS Pro) or `torque`. Command lines are understood in the forms of both.",
        ),
        key(
            "server",
            Kind::Text,
            "\"\"",
            "The server's name in job identifiers, the part after the dot. Without it the cluster's name.",
        ),
        key(
            "nodes_are_whole",
            Kind::Boolean,
            "true",
            "Whether `-l nodes=N` without `ppn` asks for whole nodes. If not, it asks for a processor on each, as in TORQUE.",
        ),
        key(
            "kept_resources",
            Kind::Texts,
            "[]",
            "Names of resources that `-l` may ask for and that are only kept and shown, such as `filesystems`. A number of another resource that is not known is one of licences, which the cluster counts; any other value of it is refused.",
        ),
        key(
            "policy_folder",
            Kind::Path,
            "",
            "A `sched_priv` folder. The process with the gateway puts its policy files in force at its start and on SIGHUP, and makes the policy again when the configuration changes or a month begins. Its user must be an administrator. As long as no policy was ever put in force, mistakes in them keep everything from starting.",
        ),
        key(
            "preset",
            Kind::OneOf(&["sgi_origin", "cray_t3e", "ibm_sp", "multitask"]),
            "",
            "The preset whose file `config` in that folder is in force. Without it PBS's fifo policy is.",
        ),
    ],
};

const QUOTAS: Section = Section {
    name: "quotas",
    shape: Shape::Table,
    cluster: false,
    doc: "The limits on what jobs of queues, accounts, kinds and users hold at once.",
    keys: &[key(
        "file",
        Kind::Path,
        "",
        "A file with [quotas](../quotas.md). The process with the gateway puts its rules in force at its start and on SIGHUP. Its user must be an administrator. A file with a mistake changes nothing.",
    )],
};

const SLURM: Section = Section {
    name: "slurm",
    shape: Shape::Table,
    cluster: false,
    doc: "Settings that Slurm's commands ask the gateway for.",
    keys: &[
        key(
            "accounting_storage_type",
            Kind::Text,
            "",
            "What `AccountingStorageType` of `scontrol show config` says, for programs that expect a database, such as `accounting_storage/slurmdbd`. Without it `accounting_storage/muster`. Nothing else changes.",
        ),
        key(
            "burst_buffer_directives",
            Kind::Texts,
            "[]",
            "Words, such as `BB` and `DW`: lines of a batch script that begin with `#` and one of them say what is staged for their component ([staging](../slurm.md#burst-buffers)). Without a word they are comments.",
        ),
        key(
            "burst_buffer_type",
            Kind::OneOf(&["datawarp", "script"]),
            "\"datawarp\"",
            "`datawarp`: `create_persistent name=`, `persistentdw name=` and `destroy_persistent name=` speak of persistent buffers. `script`: only the staging program understands the lines.",
        ),
        key(
            "clusters",
            Kind::Texts,
            "[]",
            "Other clusters, which `--clusters` (`-M`) can name: each `NAME=ADDRESS`, the address that of a gateway, such as `http://head:7457`, or a data folder on the host of the command. The cluster that the gateway serves itself need not be among them.",
        ),
        key(
            "mpi_default",
            Kind::OneOf(&["none", "pmi2", "pmix"]),
            "\"pmi2\"",
            "How the tasks of an `srun`, a `muster run` or a `muster step run` without `--mpi` find each other if they are an MPI program: `pmi2` (PMI-1 and PMI-2, as MPICH is built for), `pmix` (as Open MPI is built for; nodes need the package `libpmix2`), or `none`.",
        ),
        key(
            "scheduler_parameters",
            Kind::Text,
            "\"\"",
            "Words with commas between them, as `SchedulerParameters` of `slurm.conf`. `whole_hetjob` (or `whole_pack`): cancel, hold and release act on the whole job if they are given the number of a component; `L+n` is still that component alone. `disable_hetjob_steps`: no step spans components. `repeat_het_groups` (not in Slurm): an `srun` may name a component in more than one of its groups, which then share the component's nodes out among them. `enable_user_top`: users who are no operators may use `scontrol top`. `max_switch_wait=SECONDS`: how long jobs wait for few switches at most, 300 if it is not there. Others mean nothing here.",
        ),
        key(
            "site_options",
            Kind::Texts,
            "[]",
            "Options that the site adds to `sbatch`, `salloc` and `srun`: each `NAME HELP`, or `NAME=VALUE HELP` for one with a value, such as `\"scratch=SIZE scratch space that tasks may use\"` ([Slurm](../slurm.md#options-of-the-site)). At most 64.",
        ),
        key(
            "version",
            Kind::Text,
            "",
            "The version of Slurm that `-V`, `scontrol show config` and data for programs show, such as `25.05.3`. Without it that of the Slurm whose commands these are. Nothing else changes.",
        ),
    ],
};

const GATEWAY: Section = Section {
    name: "gateway",
    shape: Shape::Table,
    cluster: false,
    doc: "The HTTP API.",
    keys: &[
        key(
            "socket",
            Kind::Path,
            "",
            "The Unix socket to listen on; everybody on the host may connect, and the kernel says who it is. Without it `muster.sock` in the data folder.",
        ),
        key(
            "listen",
            Kind::Text,
            "",
            "The TCP address to listen on, such as `127.0.0.1:7457`. Callers show a token. An address that other hosts reach needs `tls_certificate` and `tls_key`, or `allow_clear_tokens`.",
        ),
        key(
            "tls_certificate",
            Kind::Path,
            "",
            "The gateway's certificate in PEM, followed by those that lead to its authority. Connections over TCP are encrypted then: addresses begin with `https://`. It is read again when it changes.",
        ),
        key("tls_key", Kind::Path, "", "The private key of `tls_certificate`, in PEM. Its mode is 0600 or 0640."),
        key(
            "allow_clear_tokens",
            Kind::Boolean,
            "false",
            "Listen on an address of other hosts without TLS, where tokens can be read on the way: for a gateway behind a proxy that ends TLS.",
        ),
        key(
            "tokens_file",
            Kind::Path,
            "",
            "The tokens that are accepted over TCP: on each line a token of at least 16 characters and the login name of its user. Its mode is 0600. It is read again when it changes.",
        ),
        key(
            "agents_file",
            Kind::Path,
            "",
            "The tokens of agents: on each line what `muster agent token NODE` prints, the hash of a token and the name of its node. It is read again when it changes. Without it agents are refused.",
        ),
        key(
            "agents_folder",
            Kind::Path,
            "",
            "Where the gateway keeps the files of jobs on their way to agents and back. Without it `agents` in the data folder.",
        ),
        key(
            "max_archive_bytes",
            from_to(1024, 1 << 40),
            "1073741824",
            "The largest archive of a job's files, as it is sent and as it is unpacked.",
        ),
        key("max_body_bytes", from_to(1024, 1 << 30), "67108864", "The largest request body."),
        key(
            "max_connections",
            from_to(16, 1_000_000),
            "",
            "Connections at a time. Without it half as many as files may be open (`LimitNOFILE=`), and at most 8192. The last 8 are for root and the user of the gateway.",
        ),
        key(
            "max_connections_per_caller",
            from_to(1, 1_000_000),
            "",
            "Connections of one caller at a time: of a user of the host, of a token's user, or of an address that has shown no token. Without it an eighth of all. It does not apply to root and the user of the gateway.",
        ),
        key(
            "max_bytes_in_flight",
            from_to(1024, i64::MAX),
            "536870912",
            "Bytes of request bodies and of answers over 64 KiB that may be on their way at a time. The last eighth is for bodies of at most 1 MiB.",
        ),
        key(
            "max_bytes_in_flight_per_caller",
            from_to(1024, i64::MAX),
            "134217728",
            "The same of one caller; at least `max_body_bytes`. One answer of any size is always sent.",
        ),
        key(
            "head_seconds",
            from_to(1, 3600),
            "30",
            "A connection without a request ends after this time, and so does one that takes longer for the head of a request. Those that wait for an answer or follow events do not.",
        ),
        key(
            "body_seconds",
            from_to(1, 3600),
            "20",
            "How long the body of a request may make no progress. On average it must bring 64 KiB per second, with an allowance of twice this time.",
        ),
    ],
};
