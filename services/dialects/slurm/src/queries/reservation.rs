//! `scontrol create`, `update` and `delete` of reservations (SL-C-33, SL-C-38).

use super::{
    Failure,
    reservation_flags::{FlagFault, Flags, PART_NODES, REPLACE, REPLACE_DOWN},
    update::{Change, Pair, Subject, Update},
};
use crate::{duration::TimeLimit, features, hostlist, moment, options::values};
use muster_schemas::{
    plan::{ReservationSpec, ReservedNodes},
    time::Timestamp,
};
use std::collections::BTreeMap;

const NAME: &str = "scontrol";
const NOT_CREATED: &str = "No reservation created.";
const NOT_UPDATED: &str = "No reservation update.";
/// The length of a reservation without an end, as in Slurm.
const YEAR_SECONDS: i64 = 365 * 86_400;

/// The context for reading reservations.
pub struct Known<'a> {
    /// The current time in the caller's zone.
    pub now: &'a jiff::Zoned,
    /// The names of all nodes.
    pub nodes: &'a [String],
    /// The nodes of a partition; `None` if there is none with this name.
    pub partition: &'a dyn Fn(&str) -> Option<Vec<String>>,
    /// Whether there is a reservation with this name.
    pub is_taken: &'a dyn Fn(&str) -> bool,
    /// Whether there is a user with this name.
    pub knows_user: &'a dyn Fn(&str) -> bool,
}

/// The reservation that `create` makes.
///
/// # Errors
/// It lacks a time, nodes or users, or muster has no reservations of this kind.
pub fn created(update: &Update, known: &Known<'_>) -> Result<ReservationSpec, Failure> {
    let mut draft = Draft { said: NOT_CREATED, ..Draft::default() };
    draft.take(update, known)?;
    let start = draft.start.ok_or_else(|| draft.failure("A start time must be given."))?;
    let end = draft.end(start)?;
    let nodes = draft.nodes(known)?;
    let nodes = nodes
        .ok_or_else(|| draft.failure("CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified."))?;
    let first = draft.users.first().or(draft.accounts.first());
    let first = first.ok_or_else(|| draft.failure("Either Users/Groups and/or Accounts must be specified."))?;
    let name = match &update.subject {
        Subject::Reservation(Some(name)) => name.clone(),
        _ => {
            let mut names = (1..).map(|number: u32| format!("{first}_{number}"));
            names.find(|name| !(known.is_taken)(name)).unwrap_or_else(|| first.clone())
        }
    };
    let mut spec = ReservationSpec {
        name,
        start,
        end,
        nodes,
        users: draft.users.clone(),
        accounts: draft.accounts.clone(),
        repeats_after_seconds: 0,
        attributes: BTreeMap::new(),
        ..ReservationSpec::default()
    };
    draft.check_replacing(&spec)?;
    draft.flags.give(&mut spec, draft.start, true, known.now);
    Ok(spec)
}

/// The reservation as changed by `update`.
///
/// # Errors
/// See [`created`].
pub fn changed(update: &Update, before: &ReservationSpec, known: &Known<'_>) -> Result<ReservationSpec, Failure> {
    let mut draft = Draft {
        said: NOT_UPDATED,
        users: before.users.clone(),
        accounts: before.accounts.clone(),
        flags: Flags::of(before),
        named: match &before.nodes {
            ReservedNodes::Named(names) => names.clone(),
            ReservedNodes::Count { .. } => Vec::new(),
        },
        ..Draft::default()
    };
    draft.take(update, known)?;
    let start = draft.start.unwrap_or(before.start);
    let end = match (draft.end, draft.duration) {
        (None, None) => before.end,
        _ => draft.end(start)?,
    };
    let nodes = if draft.names_nodes { draft.nodes(known)? } else { None };
    let mut spec = ReservationSpec {
        start,
        end,
        nodes: nodes.unwrap_or_else(|| before.nodes.clone()),
        users: draft.users.clone(),
        accounts: draft.accounts.clone(),
        ..before.clone()
    };
    draft.check_replacing(&spec)?;
    draft.flags.give(&mut spec, draft.start, false, known.now);
    Ok(spec)
}

/// The command line about a reservation.
#[derive(Default)]
struct Draft {
    /// The text after an error.
    said: &'static str,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    /// In seconds; the inner `None` means without end.
    duration: Option<Option<u64>>,
    users: Vec<String>,
    accounts: Vec<String>,
    named: Vec<String>,
    names_nodes: bool,
    count: Option<u32>,
    partition: Option<String>,
    features: Option<String>,
    flags: Flags,
    /// Whether all nodes are named by the word for it.
    names_all: bool,
    /// Whether nodes are named.
    names_nodes_by_name: bool,
    /// Whether it becomes one of all nodes of a partition.
    adds_part_nodes: bool,
}

impl Draft {
    fn failure(&self, text: &str) -> Failure {
        Failure::error(NAME, format_args!("{text}  {}", self.said))
    }

    fn take(&mut self, update: &Update, known: &Known<'_>) -> Result<(), Failure> {
        // The partition must be known before nodes are read, because they may belong to it.
        self.partition = update.value("PartitionName").map(str::to_owned);
        for pair in &update.pairs {
            self.take_pair(pair, known)?;
        }
        if self.partition.as_deref().is_some_and(|name| (known.partition)(name).is_none()) {
            return Err(self.refused("Invalid partition name specified"));
        }
        self.check_together()
    }

    /// Refuses what would count only together with something else.
    fn check_together(&mut self) -> Result<(), Failure> {
        if self.features.as_deref().is_some_and(|text| !text.is_empty()) && self.count.is_none() {
            return Err(self.failure("Features count only with NodeCnt."));
        }
        if self.count.is_some() && self.names_nodes_by_name {
            return Err(self.failure("Either Nodes or NodeCnt can be specified, not both."));
        }
        let has_all = self.partition.is_some() && self.names_all;
        if self.adds_part_nodes && !has_all {
            return Err(self.failure("Part_Nodes flag requires specifying a Partition and ALL nodes."));
        }
        // Other nodes are no longer all of a partition.
        if self.names_nodes && !has_all {
            self.flags.remove(PART_NODES);
        }
        Ok(())
    }

    /// Refuses to replace nodes that are named.
    fn check_replacing(&self, spec: &ReservationSpec) -> Result<(), Failure> {
        let replaces = [REPLACE, REPLACE_DOWN].iter().any(|flag| self.flags.has(flag));
        match replaces && matches!(spec.nodes, ReservedNodes::Named(_)) {
            true => Err(self.failure("Replace flags count only with NodeCnt.")),
            false => Ok(()),
        }
    }

    fn take_pair(&mut self, pair: &Pair, known: &Known<'_>) -> Result<(), Failure> {
        let Pair { key, value, change } = pair;
        let is_list = matches!(*key, "Users" | "Accounts" | "Nodes" | "Flags");
        if *change != Change::Set && !is_list {
            return Err(self.failure(&format!("The +=/-= notation is not supported when updating {key}.")));
        }
        match *key {
            "StartTime" => {
                let start = moment::parse(value, known.now);
                self.start = Some(start.ok_or_else(|| self.failure(&format!("Invalid start time {key}={value}.")))?);
            }
            "EndTime" => {
                let end = moment::parse(value, known.now);
                self.end = Some(end.ok_or_else(|| self.failure(&format!("Invalid end time {key}={value}.")))?);
            }
            "Duration" => {
                let limit = TimeLimit::parse(value);
                let limit = limit.ok_or_else(|| self.failure(&format!("Invalid duration {key}={value}.")))?;
                self.duration = Some(limit.seconds());
            }
            "Users" => self.change_users(*change, value, known)?,
            "Accounts" => {
                let names = self.names(value, "accounts")?;
                change_list(&mut self.accounts, *change, names);
            }
            "Nodes" => self.change_nodes(*change, value, known)?,
            "NodeCnt" => {
                let count = values::count(value).filter(|count| *count > 0);
                let invalid = || self.failure(&format!("Invalid node count {value}."));
                self.count = Some(count.ok_or_else(invalid)?);
                self.names_nodes = true;
            }
            "PartitionName" => self.names_nodes = true,
            "Features" => self.features = Some(value.clone()),
            "Flags" => self.change_flags(*change, value)?,
            other => {
                return Err(
                    self.failure(&format!("muster reserves whole nodes for users and accounts, not by {other}."))
                );
            }
        }
        Ok(())
    }

    /// The names in a list. Slurm can also exclude those with a `-` before the name.
    fn names(&self, value: &str, what: &str) -> Result<Vec<String>, Failure> {
        let names: Vec<String> = super::words(value).collect();
        match names.iter().any(|name| name.starts_with('-')) {
            true => Err(self.failure(&format!("muster has no reservations that keep single {what} out."))),
            false => Ok(names),
        }
    }

    fn change_users(&mut self, change: Change, value: &str, known: &Known<'_>) -> Result<(), Failure> {
        let names = self.names(value, "users")?;
        if names.iter().any(|name| !(known.knows_user)(name)) {
            return Err(self.refused("Invalid user id"));
        }
        change_list(&mut self.users, change, names);
        Ok(())
    }

    fn change_nodes(&mut self, change: Change, value: &str, known: &Known<'_>) -> Result<(), Failure> {
        self.names_all = value.eq_ignore_ascii_case("all");
        self.names_nodes_by_name = true;
        let names = match self.names_all {
            true => self.all_nodes(known)?,
            false => hostlist::expand(value).map_err(|_| self.refused("Invalid node name specified"))?,
        };
        if names.iter().any(|name| !known.nodes.contains(name)) {
            return Err(self.refused("Invalid node name specified"));
        }
        change_list(&mut self.named, change, names);
        self.names_nodes = true;
        Ok(())
    }

    /// All nodes of the named partition, else of the cluster.
    fn all_nodes(&self, known: &Known<'_>) -> Result<Vec<String>, Failure> {
        match &self.partition {
            None => Ok(known.nodes.to_vec()),
            Some(name) => (known.partition)(name).ok_or_else(|| self.refused("Invalid partition name specified")),
        }
    }

    fn change_flags(&mut self, change: Change, value: &str) -> Result<(), Failure> {
        let had_part_nodes = self.flags.has(PART_NODES);
        self.flags.change(value, change == Change::Subtract).map_err(|fault| {
            self.failure(&match fault {
                FlagFault::Unknown(flag) => format!("muster has no reservations with the flag {flag}."),
                FlagFault::TwoPeriods => {
                    "Only one of Hourly, Daily, Weekday, Weekend and Weekly can be specified.".to_owned()
                }
            })
        })?;
        self.adds_part_nodes |= !had_part_nodes && self.flags.has(PART_NODES);
        Ok(())
    }

    /// The error that the system would give.
    fn refused(&self, text: &str) -> Failure {
        refused(self.said == NOT_CREATED, text)
    }

    fn end(&self, start: Timestamp) -> Result<Timestamp, Failure> {
        let lasting = |seconds: Option<u64>| {
            let seconds = seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(YEAR_SECONDS);
            start.plus_seconds(seconds)
        };
        let end = match (self.end, self.duration) {
            (None, None) => return Err(self.failure("An end time or duration must be given.")),
            (Some(end), Some(duration)) if lasting(duration) != end => {
                return Err(self.failure("StartTime + Duration does not equal EndTime."));
            }
            (Some(end), _) => end,
            (None, Some(duration)) => lasting(duration),
        };
        if end <= start { Err(self.failure("Start time cannot be after end time.")) } else { Ok(end) }
    }

    /// Nodes by name if some are named, else by count, else all of the partition; `None` if nodes are not mentioned.
    fn nodes(&self, known: &Known<'_>) -> Result<Option<ReservedNodes>, Failure> {
        if let (Some(count), true) = (self.count, self.named.is_empty() || self.said == NOT_UPDATED) {
            let filter = match self.features.as_deref().filter(|text| !text.is_empty()) {
                None => None,
                Some(text) => match features::parse(text).as_deref() {
                    Some([way]) if way.some_nodes.is_empty() => way.filter(),
                    _ => return Err(self.refused("Invalid feature specification")),
                },
            };
            return Ok(Some(ReservedNodes::Count { count, filter, queue: self.partition.clone() }));
        }
        if !self.named.is_empty() {
            return Ok(Some(ReservedNodes::Named(self.named.clone())));
        }
        match &self.partition {
            Some(_) => self.all_nodes(known).map(|names| Some(ReservedNodes::Named(names))),
            None => Ok(None),
        }
    }
}

/// The message for a reservation that the system refuses, with the reason.
pub fn refused(is_new: bool, text: &str) -> Failure {
    let what = if is_new { "Error creating the reservation" } else { "Error updating the reservation" };
    Failure::plain(format_args!("{what}: {text}"))
}

fn change_list(list: &mut Vec<String>, change: Change, names: Vec<String>) {
    match change {
        Change::Set => *list = names,
        Change::Add => {
            for name in names {
                if !list.contains(&name) {
                    list.push(name);
                }
            }
        }
        Change::Subtract => list.retain(|name| !names.contains(name)),
    }
}

/// The thing that `delete` removes, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// A partition.
    Partition(String),
    /// A reservation.
    Reservation(String),
}

/// The thing that `delete` removes.
///
/// # Errors
/// It names something else.
pub fn deleted(words: &[String]) -> Result<Deleted, Failure> {
    let form = || Failure::error(NAME, "Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'");
    let (entity, name) = match words {
        [word] => word.split_once('=').ok_or_else(form)?,
        [entity, name] => (entity.as_str(), name.as_str()),
        _ => return Err(form()),
    };
    if super::means(entity, "ReservationName", 3) {
        return Ok(Deleted::Reservation(name.to_owned()));
    }
    if super::means(entity, "PartitionName", 3) {
        return Ok(Deleted::Partition(name.to_owned()));
    }
    match super::means(entity, "NodeName", 3) {
        true => Err(Failure::error(NAME, format_args!("muster deletes reservations and partitions, not {entity}"))),
        false => Err(Failure::plain(format_args!("Invalid deletion entity: {}", words[0]))),
    }
}
