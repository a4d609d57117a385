//! What `sacctmgr show` knows beside accounts: changes of them, nodes out of service, and kinds of resources.

use super::Listed;
use crate::show::{
    cells::{moment, put},
    columns::Field,
    sinfo::NodeRecord,
};
use muster_schemas::{accounts::AccountChange, time::Timestamp};
use serde::Deserialize;

/// A kind of resource that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tres {
    /// Its kind.
    pub kind: &'static str,
    /// Its name within the kind.
    pub name: &'static str,
    /// Its number in Slurm.
    pub id: u32,
}

/// The kinds of resources with Slurm's numbers.
pub static TRES: [Tres; 9] = [
    Tres { kind: "cpu", name: "", id: 1 },
    Tres { kind: "mem", name: "", id: 2 },
    Tres { kind: "energy", name: "", id: 3 },
    Tres { kind: "node", name: "", id: 4 },
    Tres { kind: "billing", name: "", id: 5 },
    Tres { kind: "fs", name: "disk", id: 6 },
    Tres { kind: "vmem", name: "", id: 7 },
    Tres { kind: "pages", name: "", id: 8 },
    Tres { kind: "gres", name: "gpu", id: 1001 },
];

/// A change of accounts, users, associations or service classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// When it was made.
    pub time: Option<Timestamp>,
    /// What was done, in Slurm's words.
    pub action: &'static str,
    /// Who made it.
    pub actor: String,
    /// What was changed.
    pub subject: String,
    /// The change in words.
    pub info: String,
}

/// The parts of a public event that a transaction needs.
#[derive(Deserialize)]
struct Event {
    time: Option<Timestamp>,
    /// `user:NAME`, or the name of a service.
    #[serde(default)]
    actor: String,
    data: Changes,
}

#[derive(Deserialize)]
struct Changes {
    changes: Vec<AccountChange>,
}

/// The transactions of an event about accounts, in JSON; none if it is about something else.
pub fn transactions(event: &str) -> Vec<Transaction> {
    let Ok(Event { time, actor, data }) = serde_json::from_str(event) else { return Vec::new() };
    let actor = actor.strip_prefix("user:").unwrap_or(&actor).to_owned();
    let of = |change: &AccountChange| {
        let (action, subject) = described(change);
        Transaction { time, action, actor: actor.clone(), subject, info: change.to_string() }
    };
    data.changes.iter().map(of).collect()
}

fn described(change: &AccountChange) -> (&'static str, String) {
    let named = |words: [&'static str; 3], names: [Option<String>; 2]| {
        let [before, after] = names;
        let [add, modify, remove] = words;
        let word = match (&before, &after) {
            (None, _) => add,
            (_, None) => remove,
            _ => modify,
        };
        (word, after.or(before).unwrap_or_default())
    };
    match change {
        AccountChange::Account { before, after } => {
            let words = ["Add Accounts", "Modify Accounts", "Remove Accounts"];
            named(words, [before, after].map(|spec| spec.as_ref().map(|spec| spec.name.clone())))
        }
        AccountChange::User { before, after } => {
            let words = ["Add Users", "Modify Users", "Remove Users"];
            named(words, [before, after].map(|spec| spec.as_ref().map(|spec| spec.name.clone())))
        }
        AccountChange::Association { before, after } => {
            let words = ["Add Associations", "Modify Associations", "Remove Associations"];
            named(words, [before, after].map(|spec| spec.as_ref().map(|spec| spec.of.to_string())))
        }
        AccountChange::Class { before, after } => {
            let words = ["Add QOS", "Modify QOS", "Remove QOS"];
            named(words, [before, after].map(|spec| spec.as_ref().map(|spec| spec.name.clone())))
        }
        AccountChange::AssociationUse { of } => ("Modify Associations", of.to_string()),
        AccountChange::ClassUse { name } => ("Modify QOS", name.clone()),
    }
}

/// A node that is out of service.
#[derive(Clone, Debug)]
pub struct Outage {
    /// The name of the cluster.
    pub cluster: String,
    /// The node.
    pub node: NodeRecord,
}

macro_rules! field {
    ($names:expr, $header:literal, $width:literal, $write:expr) => {
        Field { letter: None, names: $names, header: $header, width: $width, write: $write, is_detailed: false }
    };
}

impl Listed for Tres {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Type"], "Type", 8, |row, _, out| out.push_str(row.kind)),
        field!(&["Name"], "Name", 15, |row, _, out| out.push_str(row.name)),
        field!(&["ID"], "ID", 6, |row, _, out| put(row.id, out)),
    ];
    const USUAL: &'static str = "Type,Name,ID";
}

impl Listed for Transaction {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Time", "TimeStamp"], "Time", 19, |row, clock, out| moment(row.time, "Unknown", clock, out)),
        field!(&["Action"], "Action", 20, |row, _, out| out.push_str(row.action)),
        field!(&["Actor"], "Actor", 10, |row, _, out| out.push_str(&row.actor)),
        field!(&["Where"], "Where", 20, |row, _, out| out.push_str(&row.subject)),
        field!(&["Info"], "Info", 20, |row, _, out| out.push_str(&row.info)),
    ];
    const USUAL: &'static str = "Time,Action,Actor,Where,Info";
}

impl Listed for Outage {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Cluster"], "Cluster", 10, |row, _, out| out.push_str(&row.cluster)),
        field!(&["NodeName", "Nodes"], "Node Name", -15, |row, _, out| out.push_str(&row.node.name)),
        field!(&["TimeStart", "Start"], "TimeStart", 19, |row, clock, out| {
            moment(row.node.reason_time, "Unknown", clock, out);
        }),
        field!(&["TimeEnd", "End"], "TimeEnd", 19, |_, _, out| out.push_str("Unknown")),
        field!(&["State"], "State", 6, |row, _, out| out.push_str(&row.node.state.flags())),
        field!(&["Reason"], "Reason", 30, |row, _, out| out.push_str(row.node.reason.as_deref().unwrap_or_default())),
        field!(&["User"], "User", 15, |row, _, out| out.push_str(row.node.reason_user.as_deref().unwrap_or_default())),
    ];
    const USUAL: &'static str = "Cluster,NodeName%15,TimeStart,TimeEnd,State,Reason,User";
}
