//! The command line of the small `sacctmgr`: what it shows, and its changes of accounts, users and service classes.

use super::{
    Failure, Request, data_format,
    getopt::{Opt, Takes::*, opt, parse as read},
    printed_only,
};
use crate::{
    moment,
    show::{columns::ListStyle, data::DataFormat},
};
use jiff::Zoned;
use muster_schemas::time::Timestamp;

const NAME: &str = "sacctmgr";

pub(super) static OPTIONS: &[Opt] = &[
    opt(None, "associations", Nothing),
    opt(Some('h'), "help", Nothing),
    opt(Some('i'), "immediate", Nothing),
    opt(None, "json", MaybeGlued),
    opt(None, "yaml", MaybeGlued),
    opt(Some('n'), "noheader", Nothing),
    opt(Some('p'), "parsable", Nothing),
    opt(Some('P'), "parsable2", Nothing),
    opt(Some('Q'), "quiet", Nothing),
    opt(Some('r'), "readonly", Nothing),
    opt(Some('s'), "withassoc", Nothing),
    opt(None, "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// The things that `sacctmgr` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Accounts.
    Account,
    /// Limits of a user in an account.
    Association,
    /// Clusters.
    Cluster,
    /// The configuration of accounting.
    Configuration,
    /// Users who manage an account.
    Coordinator,
    /// Nodes that are out of service.
    Event,
    /// Service classes.
    Qos,
    /// Jobs that only the database takes for running.
    Runaway,
    /// Statistics of the database.
    Statistics,
    /// Changes of accounts.
    Transaction,
    /// Kinds of resources that are counted.
    Tres,
    /// Users.
    User,
}

const KINDS: [(&str, Kind); 20] = [
    ("account", Kind::Account),
    ("accounts", Kind::Account),
    ("associations", Kind::Association),
    ("assoc", Kind::Association),
    ("cluster", Kind::Cluster),
    ("clusters", Kind::Cluster),
    ("configuration", Kind::Configuration),
    ("coordinator", Kind::Coordinator),
    ("coordinators", Kind::Coordinator),
    ("events", Kind::Event),
    ("qos", Kind::Qos),
    ("runawayjobs", Kind::Runaway),
    ("runaway_jobs", Kind::Runaway),
    ("stats", Kind::Statistics),
    ("statistics", Kind::Statistics),
    ("transactions", Kind::Transaction),
    ("txn", Kind::Transaction),
    ("tres", Kind::Tres),
    ("user", Kind::User),
    ("users", Kind::User),
];

/// What `sacctmgr` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// `show`, `list`.
    Show,
    /// `add`, `create`.
    Add,
    /// `modify`.
    Modify,
    /// `delete`, `remove`.
    Delete,
}

const DEEDS: [(&str, Deed); 8] = [
    ("show", Deed::Show),
    ("list", Deed::Show),
    ("add", Deed::Add),
    ("create", Deed::Add),
    ("modify", Deed::Modify),
    ("update", Deed::Modify),
    ("delete", Deed::Delete),
    ("remove", Deed::Delete),
];

/// A command line of `sacctmgr`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sacctmgr {
    /// What to do.
    pub deed: Deed,
    /// What it is about.
    pub kind: Kind,
    /// Names and `key=value` conditions; keys in lower case, a bare name has the key `name`.
    pub wanted: Vec<(String, String)>,
    /// The changes after `set`.
    pub set: Vec<(String, String)>,
    /// The columns of `format=`.
    pub format: Option<String>,
    /// In columns, or with a separator between the values.
    pub style: ListStyle,
    /// Without the lines above the columns.
    pub no_header: bool,
    /// Without asking (`-i`).
    pub immediate: bool,
    /// Users and accounts with their associations (`withassoc`).
    pub with_associations: bool,
    /// Only associations in the default accounts of their users (`onlydefaults`).
    pub only_defaults: bool,
    /// Accounts indented below the accounts above them (`tree`).
    pub tree: bool,
    /// Without telling what it does (`-Q`).
    pub quiet: bool,
    /// As data for programs.
    pub data: Option<DataFormat>,
}

impl Sacctmgr {
    /// Whether a row with this value is selected. Bare words and `names=` are names of what the command is about.
    pub fn takes(&self, key: &str, value: &str) -> bool {
        let about = match self.kind {
            Kind::Account | Kind::Association => "account",
            Kind::User | Kind::Coordinator => "user",
            Kind::Cluster => "cluster",
            Kind::Event => "nodes",
            Kind::Tres => "type",
            Kind::Qos | Kind::Configuration | Kind::Runaway | Kind::Statistics | Kind::Transaction => "name",
        };
        let is_key = |word: &str| {
            let plural = format!("{key}s");
            let is_begun = word.len() >= 2 && (key.starts_with(word) || plural.starts_with(word));
            is_begun || word == "acct" && key == "account" || matches!(word, "name" | "names") && key == about
        };
        let lists = self.wanted.iter().filter(|(word, _)| is_key(word));
        lists.into_iter().all(|(_, list)| {
            list.split(',').any(|name| name.trim().trim_matches(['"', '\'']).eq_ignore_ascii_case(value))
        })
    }
}

/// The conditions on outages beside those on their nodes, by the beginnings of their words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutageCondition {
    Start,
    End,
    Flags,
    State,
}

impl OutageCondition {
    /// `sta` begins `start` and `state`: it is the first of them.
    fn begun_by(word: &str) -> Option<Self> {
        let known = [("start", Self::Start), ("end", Self::End), ("condflags", Self::Flags), ("state", Self::State)];
        let is_begun = |name: &str| name.starts_with(word) || format!("{name}s").starts_with(word);
        known.into_iter().find(|(name, _)| is_begun(name)).map(|(_, condition)| condition)
    }
}

impl Sacctmgr {
    /// Outages that begin at this time or later are not meant. All outages that are known still last, so that they are in any
    /// period that ends after they have begun, whenever it starts, and `CondFlags=Open` is about all of them.
    ///
    /// # Errors
    /// A time or a flag that is none.
    pub fn period_end(&self, now: &Zoned) -> Result<Option<Timestamp>, Failure> {
        let mut first_end: Option<Timestamp> = None;
        for (word, value) in &self.wanted {
            let value = value.trim_matches(['"', '\'']);
            let time = || {
                let invalid = || Failure::error(NAME, format_args!("Invalid time specification (pos=0): {value}"));
                moment::parse_past(value, now).ok_or_else(invalid)
            };
            match OutageCondition::begun_by(word) {
                Some(OutageCondition::Start) => {
                    time()?;
                }
                Some(OutageCondition::End) => {
                    let end = time()?;
                    first_end = Some(first_end.map_or(end, |known| known.min(end)));
                }
                Some(OutageCondition::Flags) if !value.eq_ignore_ascii_case("open") => {
                    return Err(Failure::error(NAME, format_args!("Invalid condflag {value}")));
                }
                Some(OutageCondition::Flags | OutageCondition::State) | None => {}
            }
        }
        Ok(first_end)
    }

    /// The lists of states of outages.
    pub fn states(&self) -> impl Iterator<Item = &str> {
        let is_state = |word: &str| OutageCondition::begun_by(word) == Some(OutageCondition::State);
        self.wanted.iter().filter(move |(word, _)| is_state(word)).map(|(_, list)| list.as_str())
    }
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Unknown verbs and kinds.
pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Request<Sacctmgr>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    match line.words.as_slice() {
        [only] if only.eq_ignore_ascii_case("help") => return Ok(Request::Help),
        [only] if only.eq_ignore_ascii_case("version") => return Ok(Request::Version),
        _ => {}
    }
    let [verb, rest @ ..] = line.words.as_slice() else { return Err(Failure::plain("too few arguments for sacctmgr")) };
    let deed = beginning(verb, &DEEDS).ok_or_else(|| unknown_verb(verb))?;
    if line.has("readonly") && deed != Deed::Show {
        return Err(Failure::plain("Can't run this command in readonly mode."));
    }
    let [kind, rest @ ..] = rest else {
        return Err(Failure::plain(format_args!("too few arguments for keyword:{verb}")));
    };
    let no_kind = || Failure::plain(format_args!("No valid entity in {verb} command: {kind}"));
    let kind = beginning(kind, &KINDS).ok_or_else(no_kind)?;
    let mut command = Sacctmgr {
        deed,
        kind,
        wanted: Vec::new(),
        set: Vec::new(),
        format: None,
        style: match (line.has("parsable2"), line.has("parsable")) {
            (true, _) => ListStyle::Separated { by: "|".to_owned(), ends: false },
            (false, true) => ListStyle::Separated { by: "|".to_owned(), ends: true },
            (false, false) => ListStyle::Columns,
        },
        no_header: line.has("noheader"),
        immediate: line.has("immediate"),
        with_associations: line.has("withassoc") || line.has("associations"),
        only_defaults: false,
        tree: false,
        quiet: line.has("quiet"),
        data: data_format(&line),
    };
    conditions(rest, &mut command);
    if deed == Deed::Show {
        check_shown(&command)?;
    }
    Ok(Request::Run(command))
}

/// Verbs of Slurm's command that concern its database.
const OF_DATABASE: [&str; 7] = ["archive", "clear", "dump", "load", "ping", "reconfigure", "shutdown"];

fn unknown_verb(verb: &str) -> Failure {
    let is = |known: &&&str| verb.len() >= 3 && is_beginning(verb, known);
    match OF_DATABASE.iter().find(is) {
        Some(known) => Failure::error(
            NAME,
            format_args!(
                "{known} is for a database, and there is none: accounts are part of the scheduler's log; `muster backup` \
                 copies it, and `sacctmgr show` and `add` read and make accounts"
            ),
        ),
        None => Failure::plain(format_args!("invalid keyword: {verb}")),
    }
}

/// The conditions that select rows of what is shown, by the beginnings of their words.
const fn selecting(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Account => &["name", "account", "acct", "cluster", "user", "description", "organization", "parent"],
        Kind::Association => &["name", "account", "acct", "cluster", "user", "partition", "parent"],
        Kind::User => &["name", "user", "account", "acct", "cluster", "defaultaccount", "adminlevel", "partition"],
        Kind::Qos | Kind::Coordinator => &["name", "cluster"],
        Kind::Cluster => &["name", "cluster"],
        // What the times and flags among them select says `period_end`.
        Kind::Event => &["name", "nodes", "cluster", "start", "end", "state", "condflags", "reason", "user"],
        Kind::Transaction => &["action", "actor", "cluster"],
        Kind::Tres => &["type", "name", "id"],
        Kind::Configuration | Kind::Runaway | Kind::Statistics => &["cluster"],
    }
}

/// Refuses conditions that select nothing here: ignored, they would show too much.
fn check_shown(command: &Sacctmgr) -> Result<(), Failure> {
    if command.tree && command.kind != Kind::Association {
        return Err(Failure::plain(" Only associations are shown as a tree."));
    }
    let known = selecting(command.kind);
    let is_known = |word: &str| {
        word.len() >= 2 && known.iter().any(|known| known.starts_with(word) || format!("{known}s").starts_with(word))
    };
    match command.wanted.iter().chain(&command.set).find(|(word, _)| !is_known(word)) {
        None => Ok(()),
        Some((word, value)) => Err(Failure {
            lines: vec![format!(" Unknown condition: {word}={value}"), " Use keyword 'set' to modify value".to_owned()],
            code: 1,
        }),
    }
}

fn beginning<T: Copy>(word: &str, known: &[(&str, T)]) -> Option<T> {
    let is = |keyword: &str| word.len() >= 3 && is_beginning(word, keyword);
    known.iter().find(|(keyword, _)| is(keyword)).map(|(_, value)| *value)
}

/// `withassoc`, also in the plural.
fn is_with_associations(word: &str) -> bool {
    ["withassoc", "withassocs"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

fn is_beginning(word: &str, keyword: &str) -> bool {
    keyword.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Words of `show` that are not names, and change nothing: everything is always shown, and what is deleted is gone.
const SHOWN: [&str; 7] =
    ["withcoordinator", "withdeleted", "withrawqoslevel", "wopinfo", "woplimits", "all_clusters", "all_time"];

/// `[where] key=value ... [set] key=value ...`; a bare word is a name.
fn conditions(words: &[String], command: &mut Sacctmgr) {
    let mut is_set = false;
    for word in words {
        let pair = match word.split_once('=') {
            None if word.eq_ignore_ascii_case("set") => {
                is_set = true;
                continue;
            }
            None if word.eq_ignore_ascii_case("where") => {
                is_set = false;
                continue;
            }
            None if is_with_associations(word) => {
                command.with_associations = true;
                continue;
            }
            None if word.len() >= 4 && is_beginning(word, "onlydefaults") => {
                command.only_defaults = true;
                continue;
            }
            None if word.eq_ignore_ascii_case("tree") => {
                command.tree = true;
                continue;
            }
            None if word.len() >= 4 && SHOWN.iter().any(|shown| is_beginning(word, shown)) => continue,
            None => ("name".to_owned(), word.clone()),
            Some((key, value)) => (key.to_lowercase(), value.to_owned()),
        };
        match pair.0.as_str() {
            "format" => command.format = Some(pair.1),
            _ if is_set => command.set.push(pair),
            _ => command.wanted.push(pair),
        }
    }
}
