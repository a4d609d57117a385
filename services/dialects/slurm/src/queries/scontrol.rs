//! The verbs of `scontrol` (SL-C-33).

use super::{
    Failure, Request, data_format,
    getopt::{Opt, Takes::*, opt, parse as read},
    means, printed_only,
    reservation::{Deleted, deleted},
    update::{Update, create, update},
};
use crate::{job_id::IdExpression, select::Action, show::data::DataFormat};

const NAME: &str = "scontrol";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('a'), "all", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(Some('d'), "details", Nothing),
    opt(None, "federation", Nothing),
    opt(Some('F'), "future", Nothing),
    opt(Some('h'), "help", Nothing),
    opt(None, "hide", Nothing),
    opt(None, "json", MaybeGlued),
    opt(None, "yaml", MaybeGlued),
    opt(None, "local", Nothing),
    opt(Some('o'), "oneliner", Nothing),
    opt(Some('Q'), "quiet", Nothing),
    opt(None, "sibling", Nothing),
    opt(Some('u'), "uid", Value),
    opt(None, "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// What `scontrol show` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    /// Jobs and components.
    Jobs,
    /// Nodes.
    Nodes,
    /// Partitions.
    Partitions,
    /// Steps.
    Steps,
    /// The configuration.
    Configuration,
    /// The names in a node list, one per line.
    Hostnames,
    /// Names as a node list.
    Hostlist,
    /// Names as a node list in numeric order.
    SortedHostlist,
    /// Licences.
    Licences,
    /// Reservations.
    Reservations,
    /// The federation.
    Federation,
    /// Persistent buffers, and the staging program.
    BurstBuffers,
    /// The daemons that run on this host.
    Daemons,
    /// Accounts, users and service classes with their limits.
    AssociationManager,
    /// Switches and blocks of nodes.
    Topology,
}

impl Entity {
    /// Whether it is shown as records, one after the other.
    pub const fn has_records(self) -> bool {
        matches!(self, Self::Jobs | Self::Nodes | Self::Partitions | Self::Reservations)
    }
}

/// What `scontrol` does.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Shows something.
    Show {
        /// What.
        entity: Entity,
        /// Which of them, as written; `None` means all.
        id: Option<String>,
    },
    /// Asks whether the controller answers.
    Ping,
    /// Acts on jobs.
    Act {
        /// How.
        action: Action,
        /// On which.
        ids: Vec<IdExpression>,
        /// And on the caller's jobs with these names.
        names: Vec<String>,
        /// `uhold` sets the owner's hold, `requeuehold` holds what it requeues.
        variant: Variant,
        /// Leaves out jobs that have ended or wait (`Incomplete`).
        only_incomplete: bool,
    },
    /// Shows the jobs that are completing.
    Completing,
    /// Changes something.
    Update(Update),
    /// Makes a reservation or a partition.
    Create(Update),
    /// Removes the reservation or partition of this name.
    Delete(Deleted),
    /// Moves jobs before others of their owner.
    Top(Vec<IdExpression>),
    /// Waits until the nodes of a job are ready.
    WaitJob(IdExpression),
    /// Writes a batch script to a file, or to standard output for `-`.
    WriteScript {
        /// The job or component.
        id: IdExpression,
        /// The file to write; `None` is `slurm-<job>.sh`.
        file: Option<String>,
    },
    /// Reads the configuration again.
    Reconfigure,
    /// Sends a message to a job.
    Notify {
        /// The job.
        id: IdExpression,
        /// The text.
        message: String,
    },
}

/// What an action does in addition to its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// Nothing.
    #[default]
    Plain,
    /// `uhold`: the hold is the owner's, whoever sets it.
    UserHold,
    /// `requeuehold`: the job is held afterwards.
    Held,
    /// `requeuehold State=SpecialExit`: the job is held afterwards, in a state of its own.
    SpecialExit,
}

/// A command line of `scontrol`.
#[derive(Clone, Debug, PartialEq)]
pub struct Scontrol {
    /// What to do.
    pub verb: Verb,
    /// One record per line (`-o`).
    pub one_line: bool,
    /// Shows more of each record (`-d`).
    pub details: bool,
    /// Without messages (`-Q`).
    pub quiet: bool,
    /// Tells when the state was read, and how many records it has (`-v`).
    pub is_verbose: bool,
    /// As data for programs.
    pub data: Option<DataFormat>,
    /// The user, by name or number, for whom it is to act (`-u`).
    pub as_user: Option<String>,
}

/// The verbs, with the fewest letters that abbreviate each.
const VERBS: [(&str, usize); 23] = [
    ("create", 1),
    ("completing", 2),
    ("delete", 2),
    ("details", 3),
    ("help", 2),
    ("hold", 2),
    ("notify", 1),
    ("oneliner", 1),
    ("ping", 1),
    ("quiet", 3),
    ("reconfigure", 3),
    ("release", 3),
    ("requeue", 3),
    ("requeuehold", 8),
    ("resume", 3),
    ("show", 2),
    ("suspend", 2),
    ("top", 3),
    ("uhold", 2),
    ("update", 1),
    ("version", 4),
    ("wait_job", 2),
    ("write", 2),
];

const ENTITIES: [(&str, usize, Entity); 27] = [
    ("assoc_mgr", 5, Entity::AssociationManager),
    ("burstbuffer", 3, Entity::BurstBuffers),
    ("config", 1, Entity::Configuration),
    ("cache", 2, Entity::AssociationManager),
    ("daemons", 1, Entity::Daemons),
    ("federation", 3, Entity::Federation),
    ("hostlist", 5, Entity::Hostlist),
    ("hostlistsorted", 9, Entity::SortedHostlist),
    ("hostnames", 5, Entity::Hostnames),
    ("job", 1, Entity::Jobs),
    ("jobid", 4, Entity::Jobs),
    ("jobs", 1, Entity::Jobs),
    ("license", 3, Entity::Licences),
    ("licenses", 3, Entity::Licences),
    ("node", 1, Entity::Nodes),
    ("nodename", 5, Entity::Nodes),
    ("nodes", 1, Entity::Nodes),
    ("partition", 1, Entity::Partitions),
    ("partitionname", 10, Entity::Partitions),
    ("partitions", 1, Entity::Partitions),
    ("reservation", 1, Entity::Reservations),
    ("reservationname", 12, Entity::Reservations),
    ("reservations", 1, Entity::Reservations),
    ("step", 1, Entity::Steps),
    ("stepid", 5, Entity::Steps),
    ("steps", 1, Entity::Steps),
    ("topology", 1, Entity::Topology),
];

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Unknown verbs, entities, ids and keys, and verbs without their arguments.
pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Request<Scontrol>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let [word, words @ ..] = line.words.as_slice() else {
        return Err(Failure::error(NAME, "no command given"));
    };
    let exact = VERBS.iter().find(|(verb, _)| verb.eq_ignore_ascii_case(word));
    let verb = exact.or_else(|| VERBS.iter().find(|(verb, least)| means(word, verb, *least)));
    let Some((verb, _)) = verb else { return Err(Failure::plain(format_args!("invalid keyword: {word}"))) };
    let verb = match *verb {
        "help" => return Ok(Request::Help),
        "version" => return Ok(Request::Version),
        "show" => show(words)?,
        "ping" => Verb::Ping,
        "reconfigure" => Verb::Reconfigure,
        "update" => Verb::Update(update(words)?),
        "create" => Verb::Create(create(words)?),
        "delete" => Verb::Delete(deleted(words)?),
        "top" => Verb::Top(only_ids("top", words)?),
        "wait_job" => Verb::WaitJob(one("wait_job", words)?),
        "write" => write(words)?,
        "notify" => notify(words)?,
        "completing" => Verb::Completing,
        "hold" => act(Action::Hold, Variant::Plain, verb, words)?,
        "uhold" => act(Action::Hold, Variant::UserHold, verb, words)?,
        "release" => act(Action::Release, Variant::Plain, verb, words)?,
        "requeue" => requeue(Variant::Plain, verb, words)?,
        "requeuehold" => requeue(Variant::Held, verb, words)?,
        "suspend" => act(Action::Suspend, Variant::Plain, verb, words)?,
        "resume" => act(Action::Resume, Variant::Plain, verb, words)?,
        other => return Err(Failure::plain(format_args!("{other} is only for interactive use"))),
    };
    Ok(Request::Run(Scontrol {
        verb,
        one_line: line.has("oneliner"),
        details: line.has("details"),
        quiet: line.has("quiet"),
        is_verbose: line.has("verbose"),
        data: data_format(&line),
        as_user: line.value("uid").map(str::to_owned),
    }))
}

/// `show ENTITY [ID]`, `show ENTITY=ID`.
fn show(words: &[String]) -> Result<Verb, Failure> {
    let [word, rest @ ..] = words else { return Err(too_few("show")) };
    let (word, glued) = word.split_once('=').map_or((word.as_str(), None), |(word, id)| (word, Some(id.to_owned())));
    let exact = ENTITIES.iter().find(|(entity, ..)| entity.eq_ignore_ascii_case(word));
    let entity = exact.or_else(|| ENTITIES.iter().find(|(entity, least, _)| means(word, entity, *least)));
    let Some((_, _, entity)) = entity else {
        return Err(Failure::plain(format_args!("invalid entity:{word} for keyword:show")));
    };
    let id = match (glued, rest) {
        (Some(id), []) => Some(id),
        (None, []) => None,
        (None, [id]) => Some(id.clone()),
        (_, [.., extra]) => return Err(Failure::plain(format_args!("too many arguments for keyword:show: {extra}"))),
    };
    Ok(Verb::Show { entity: *entity, id })
}

fn too_few(verb: &str) -> Failure {
    Failure::plain(format_args!("too few arguments for keyword:{verb}"))
}

/// Ids in several words or one list, each optionally as `jobid=<id>`.
fn ids(verb: &str, words: &[String]) -> Result<Vec<IdExpression>, Failure> {
    let mut all = Vec::new();
    for word in words {
        let text = match word.split_once('=') {
            Some((key, text)) if means(key, "jobid", 3) => text,
            _ => word,
        };
        let invalid = |word: &str| Failure::plain(format_args!("Invalid job id specified for job {word}"));
        all.extend(super::ids(text, invalid)?);
    }
    if all.is_empty() { Err(too_few(verb)) } else { Ok(all) }
}

/// Ids in one list.
fn only_ids(verb: &str, words: &[String]) -> Result<Vec<IdExpression>, Failure> {
    match words {
        [_, _, ..] => Err(Failure::plain(format_args!("too many arguments for keyword:{verb}"))),
        words => ids(verb, words),
    }
}

fn one(verb: &str, words: &[String]) -> Result<IdExpression, Failure> {
    match ids(verb, words)?.as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(Failure::plain(format_args!("too many arguments for keyword:{verb}"))),
    }
}

fn act(action: Action, variant: Variant, verb: &str, words: &[String]) -> Result<Verb, Failure> {
    named(action, variant, verb, words, false)
}

/// An action on ids, and on names of jobs as `JobName=<name>` or `Name=<name>`.
fn named(
    action: Action,
    variant: Variant,
    verb: &str,
    words: &[String],
    only_incomplete: bool,
) -> Result<Verb, Failure> {
    let (mut names, mut others) = (Vec::new(), Vec::new());
    for word in words {
        match word.split_once('=') {
            Some((key, name)) if means(key, "jobname", 4) || means(key, "name", 2) => names.push(name.to_owned()),
            _ => others.push(word.clone()),
        }
    }
    let ids = if others.is_empty() && !names.is_empty() { Vec::new() } else { ids(verb, &others)? };
    Ok(Verb::Act { action, ids, names, variant, only_incomplete })
}

/// `requeue [Incomplete] ID`, `requeuehold [Incomplete|State=SpecialExit] ID`.
fn requeue(variant: Variant, verb: &str, words: &[String]) -> Result<Verb, Failure> {
    let (mut variant, mut only_incomplete, mut rest) = (variant, false, words);
    while let [option, others @ ..] = rest {
        match option.split_once('=') {
            None if means(option, "incomplete", 1) => only_incomplete = true,
            Some((key, state)) if variant != Variant::Plain && means(key, "state", 2) => {
                if !means(state, "specialexit", 2) && !means(state, "special_exit", 2) {
                    return Err(Failure::plain(format_args!("Invalid state: {state}")));
                }
                variant = Variant::SpecialExit;
            }
            _ => break,
        }
        rest = others;
    }
    named(Action::Requeue, variant, verb, rest, only_incomplete)
}

/// `write batch_script ID [FILE]`.
fn write(words: &[String]) -> Result<Verb, Failure> {
    let [what, rest @ ..] = words else { return Err(too_few("write")) };
    if !means(what, "batch_script", 1) {
        return Err(Failure::plain(format_args!("invalid entity:{what} for keyword:write")));
    }
    match rest {
        [] => Err(too_few("write")),
        [id] => Ok(Verb::WriteScript { id: one("write", std::slice::from_ref(id))?, file: None }),
        [id, file] => Ok(Verb::WriteScript { id: one("write", std::slice::from_ref(id))?, file: Some(file.clone()) }),
        [.., extra] => Err(Failure::plain(format_args!("too many arguments for keyword:write: {extra}"))),
    }
}

fn notify(words: &[String]) -> Result<Verb, Failure> {
    match words {
        [id, message @ ..] if !message.is_empty() => {
            Ok(Verb::Notify { id: one("notify", std::slice::from_ref(id))?, message: message.join(" ") })
        }
        _ => Err(too_few("notify")),
    }
}
