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
    /// Any text.
    Text,
    /// The path of a file or folder.
    Path,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A number of bytes, or text such as `64G`.
    Size,
    /// A table of truth values, whole numbers and texts.
    Properties,
}

impl Kind {
    /// What a value must be, for people.
    pub fn range(&self) -> String {
        match self {
            Self::Boolean => "`true` or `false`".into(),
            Self::Integer { min, max: i64::MAX } => format!("a whole number from {min}"),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Text => "text".into(),
            Self::Path => "a path".into(),
            Self::OneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Texts => "a list of texts".into(),
            Self::Size => "a size such as `64G`, or a number of bytes".into(),
            Self::Properties => "a table of truth values, whole numbers and texts".into(),
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
    /// What holds without it, as TOML; empty if that is "nothing"; `None` if it must be given.
    pub default: Option<&'static str>,
    /// What it means.
    pub doc: &'static str,
    /// When a change takes effect; of no meaning in the cluster's sections.
    pub takes: Takes,
}

/// How a section is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `[name]`
    Table,
    /// `[[name]]`, any number of times.
    Tables,
    /// `[name]` with any names as keys, all of the one kind of the section's only key.
    Numbers,
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub shape: Shape,
    /// Whether it belongs to the cluster and so to its history, rather than to the process that reads it.
    pub cluster: bool,
    /// What it is about.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Section {
    /// The section as it is written in a file.
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
pub const SECTIONS: &[Section] = &[CLUSTER, QUEUES, NODES, LICENCES, BUS, TELEMETRY];

const CLUSTER: Section = Section {
    name: "cluster",
    shape: Shape::Table,
    cluster: true,
    doc: "What holds for the whole cluster.",
    keys: &[
        key("name", Kind::Text, "\"muster\"", "The cluster's name."),
        key("default_queue", Kind::Text, "\"default\"", "The queue of jobs that name none. Without an entry in `[[queues]]` a plain queue of this name is made."),
        key("operators", Kind::Texts, "[]", "Users who may manage everybody's jobs, and nodes."),
        key("administrators", Kind::Texts, "[]", "Users who may do everything. `root` always may, and so may the user that runs the ledger."),
        key("finished_job_retention_seconds", from_to(0, YEAR_SECONDS), "3600", "A finished job can be listed and depended on at least so long. After that it is read from the log: `muster job show`, `--at`."),
        key("node_lost_after_seconds", from_to(2, 86_400), "30", "A node that has not reported for so long is lost."),
        key("launch_timeout_seconds", from_to(1, 86_400), "60", "A launch that no node has confirmed within this time has failed."),
        key("kill_grace_seconds", from_to(0, 86_400), "10", "From SIGTERM to SIGKILL when a job is stopped."),
        key("default_memory_per_core_bytes", from_to(0, i64::MAX), "", "Memory that is set aside for each core of a job that asks for none. Without it none is set aside."),
        key("cancel_never_met", Kind::Boolean, "false", "Cancel jobs whose dependencies can never be met, rather than let them wait."),
        key("max_jobs", from_to(1, i64::MAX), "10000000", "At most so many jobs in the queue at a time; an array counts as one."),
    ],
};

const QUEUES: Section = Section {
    name: "queues",
    shape: Shape::Tables,
    cluster: true,
    doc: "A queue. Repeat the section for each.",
    keys: &[
        required("name", Kind::Text, "Its name, unique in the cluster."),
        key("priority", from_to(i64::MIN, i64::MAX), "0", "Jobs of a queue with a higher priority are looked at first."),
        key("default_job_priority", from_to(i64::MIN, i64::MAX), "0", "The priority of jobs that name none."),
        key("enabled", Kind::Boolean, "true", "Whether jobs can be submitted to it."),
        key("started", Kind::Boolean, "true", "Whether its jobs are started."),
        key("default_walltime_seconds", from_to(1, i64::MAX), "", "The walltime of jobs that name none. Without it they run without limit."),
        key("max_walltime_seconds", from_to(1, i64::MAX), "", "No job may ask for more."),
        key("nodes", Kind::Texts, "[]", "Only these nodes serve it (`[\"node[1-16]\"]`); empty means all."),
        key("users", Kind::Texts, "[]", "Only these users may submit to it; empty means all."),
        key("max_running_jobs", from_to(0, U32_MAX), "", "At most so many of its jobs run at a time; tasks of arrays count singly."),
        key("max_running_jobs_per_user", from_to(0, U32_MAX), "", "At most so many of its jobs of one user run at a time."),
        key("max_jobs", from_to(0, U32_MAX), "", "At most so many jobs wait and run in it at a time; an array counts as one."),
    ],
};

const NODES: Section = Section {
    name: "nodes",
    shape: Shape::Tables,
    cluster: true,
    doc: "A node, or many of one kind. Repeat the section for each kind.",
    keys: &[
        required("name", Kind::Text, "Its name, unique in the cluster, or names with ranges: `node[001-128]`."),
        required("cores", from_to(1, 65_536), "Cores that jobs may use."),
        key("sockets", from_to(1, 65_536), "1", "Sockets; the cores are dealt out to them in equal, consecutive parts."),
        required("memory", Kind::Size, "Memory that jobs may use."),
        key("gpus", Kind::Texts, "[]", "The model of each GPU, in order: `[\"a100\", \"a100\"]`."),
        key("properties", Kind::Properties, "{}", "What jobs can ask for with `--constraint`, and the groups that the node belongs to: `{ gpu = true, mem = 64, switch = \"s1\" }`."),
    ],
};

const LICENCES: Section = Section {
    name: "licences",
    shape: Shape::Numbers,
    cluster: true,
    doc: "Floating licences: for each name how many there are.",
    keys: &[key("NAME", from_to(0, U32_MAX), "", "How many jobs can have one at a time; 0 removes it.")],
};

const BUS: Section = Section {
    name: "bus",
    shape: Shape::Table,
    cluster: false,
    doc: "What connects the roles. `muster up` always uses the bus inside its process.",
    keys: &[
        key("url", Kind::Text, "", "Address of NATS, such as `nats://127.0.0.1:4222`; several separated by commas. Without it `muster serve` needs all roles in one process."),
        key("user", Kind::Text, "", "User name on NATS."),
        key("password_file", Kind::Path, "", "File with the user's password, in its first line."),
        key("credentials_file", Kind::Path, "", "NATS credentials file (`.creds`), instead of user and password."),
        key("ca_file", Kind::Path, "", "Certificate authorities to trust instead of the system's, in PEM; makes the connection use TLS."),
        key("certificate_file", Kind::Path, "", "Certificate to show to the server, in PEM."),
        key("key_file", Kind::Path, "", "Private key of that certificate, in PEM."),
    ],
};

const TELEMETRY: Section = Section {
    name: "telemetry",
    shape: Shape::Table,
    cluster: false,
    doc: "Log lines and traces. Metrics are at `/metrics` of the gateway.",
    keys: &[
        at_once(key("log_filter", Kind::Text, "\"info\"", "Which log lines are written: `error`, `warn`, `info`, `debug` or `trace`, also by module, as in `info,muster_ledger=debug`.")),
        key("log_format", Kind::OneOf(&["text", "json"]), "\"text\"", "What a log line looks like: `text` for people, `json` for programs."),
        key("otlp_endpoint", Kind::Text, "", "Base address of an OpenTelemetry collector that takes OTLP over plain http, such as `http://127.0.0.1:4318`. Without it nothing is exported."),
    ],
};
