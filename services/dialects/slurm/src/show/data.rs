//! `--json` and `--yaml`, in the shape of Slurm's `data_parser` (SL-A-11, SL-C-27).

mod yaml;

use crate::{options::values::signal_name, words::ExitCode};
use muster_schemas::time::Timestamp;
use serde_json::{Map, Value, json};

/// Slurm's plugin whose shape this is: that of [`RELEASE`](crate::options::RELEASE).
const DATA_PARSER: &str = "data_parser/v0.0.46";

/// The format of data for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    /// `--json`.
    Json,
    /// `--yaml`.
    Yaml,
}

impl DataFormat {
    /// The text of a document, with a line break at its end.
    pub fn text(self, document: &Value) -> String {
        match self {
            Self::Json => format!("{document:#}\n"),
            Self::Yaml => yaml::text(document),
        }
    }
}

/// The caller that a document is for, and the cluster that it is about.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The command, with its arguments.
    pub command: &'a [String],
    /// The login name of the caller.
    pub user: &'a str,
    /// The caller's group.
    pub group: &'a str,
    /// The name of the cluster.
    pub cluster: &'a str,
    /// The version of Slurm that is shown.
    pub release: &'a str,
}

impl Asker<'_> {
    fn meta(&self) -> Value {
        let mut numbers = self.release.split('.');
        let mut next = || numbers.next().unwrap_or_default();
        let (major, minor, micro) = (next(), next(), next());
        json!({
            "plugin": { "type": "", "name": "", "data_parser": DATA_PARSER, "accounting_storage": "" },
            "client": { "source": "", "user": self.user, "group": self.group },
            "command": self.command,
            "slurm": {
                "version": { "major": major, "micro": micro, "minor": minor },
                "release": self.release,
                "cluster": self.cluster,
            },
        })
    }

    /// A document with something under its name.
    pub fn one(&self, name: &str, value: Value) -> Value {
        self.document(name, Vec::new(), &[(name, value)])
    }

    /// A document with one list under its name, and what this kind of document has in addition.
    pub fn document(&self, name: &str, list: Vec<Value>, more: &[(&str, Value)]) -> Value {
        let mut all = Map::new();
        all.insert(name.to_owned(), list.into());
        all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        all.insert("meta".to_owned(), self.meta());
        all.insert("errors".to_owned(), json!([]));
        all.insert("warnings".to_owned(), json!([]));
        all.into()
    }
}

/// Objects as one with the members of all.
pub(super) fn joined(parts: impl IntoIterator<Item = Value>) -> Value {
    let mut all = Map::new();
    for part in parts {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    all.into()
}

/// A number that need not be known.
pub(super) fn number(value: Option<u64>) -> Value {
    json!({ "set": value.is_some(), "infinite": false, "number": value.unwrap_or(0) })
}

/// A limit; without one it is infinite.
pub(super) fn limit(value: Option<u64>) -> Value {
    json!({ "set": value.is_some(), "infinite": value.is_none(), "number": value.unwrap_or(0) })
}

/// A moment in seconds since 1970; 0 if it is not known.
pub(super) fn seconds(time: Option<Timestamp>) -> u64 {
    time.and_then(|time| u64::try_from(time.unix_seconds()).ok()).unwrap_or(0)
}

/// A moment as a number that is always set, as Slurm gives the times of jobs.
pub fn moment(time: Option<Timestamp>) -> Value {
    number(Some(seconds(time)))
}

/// How something ended.
pub(super) fn exit_code(exit: ExitCode) -> Value {
    let signal = (exit.signal > 0).then_some(u64::from(exit.signal));
    let status = match (exit.status, exit.signal) {
        (0, 0) => "SUCCESS",
        (_, 0) => "ERROR",
        _ => "SIGNALED",
    };
    json!({
        "status": [status],
        "return_code": number(Some(exit.status.into())),
        "signal": { "id": number(signal), "name": signal_name(exit.signal).unwrap_or_default() },
    })
}

/// The state of a partition, from its short word.
pub(super) fn partition_state(short: &str) -> &'static str {
    match short {
        "up" => "UP",
        "down" => "DOWN",
        "drain" => "DRAIN",
        _ => "INACTIVE",
    }
}

/// Limited resources in the form of accounting, memory in megabytes; those without a limit are left out.
pub(super) fn counted(cpus: Option<u64>, megabytes: Option<u64>, nodes: Option<u64>, gpus: Option<u64>) -> Value {
    let known = [
        cpus.map(|count| resource("cpu", "", 1, count)),
        megabytes.map(|count| resource("mem", "", 2, count)),
        nodes.map(|count| resource("node", "", 4, count)),
        gpus.map(|count| resource("gres", "gpu", 1001, count)),
    ];
    known.into_iter().flatten().collect()
}

fn resource(kind: &str, name: &str, id: u32, count: u64) -> Value {
    json!({ "type": kind, "name": name, "id": id, "count": count })
}

/// Resources in the form of accounting: `cpu`, `mem` in megabytes, `node`, `billing` and `gres/gpu`, as far as there
/// are any.
pub(super) fn tres(cpus: u64, megabytes: Option<u64>, nodes: u64, gpus: u64) -> Value {
    let known = [
        Some(resource("cpu", "", 1, cpus)),
        megabytes.map(|megabytes| resource("mem", "", 2, megabytes)),
        Some(resource("node", "", 4, nodes)),
        Some(resource("billing", "", 5, cpus)),
        (gpus > 0).then(|| resource("gres", "gpu", 1001, gpus)),
    ];
    known.into_iter().flatten().collect()
}
