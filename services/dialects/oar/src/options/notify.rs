//! Notifications: `--notify "[END,ERROR]mail:ann@example.org"` and `--notify "exec:/path args"`.

use crate::{
    refusal::{Code, Refusal},
    text::{shown, suggestion},
};
use std::{collections::BTreeSet, fmt};

/// The longest value, in bytes.
const LONGEST: usize = 4096;

/// What a job's user is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// The job was launched.
    Running,
    /// It is Terminated.
    End,
    /// It is in Error.
    Error,
    /// Somebody asked for its deletion.
    Info,
    /// It was suspended.
    Suspended,
    /// It is being resumed.
    Resuming,
}

impl Tag {
    /// All tags.
    pub const ALL: [Self; 6] = [Self::Running, Self::End, Self::Error, Self::Info, Self::Suspended, Self::Resuming];

    /// The word for it in mails and arguments.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::End => "END",
            Self::Error => "ERROR",
            Self::Info => "INFO",
            Self::Suspended => "SUSPENDED",
            Self::Resuming => "RESUMING",
        }
    }
}

/// The receiver of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Mail to these addresses.
    Mail(Vec<String>),
    /// A program with arguments of the user's own, on the host of the submission, without a shell.
    Exec {
        /// Its path.
        path: String,
        /// The user's own arguments.
        arguments: Vec<String>,
    },
}

/// A notification of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// What it is about.
    pub tags: BTreeSet<Tag>,
    /// The receiver.
    pub sink: Sink,
}

/// Reads a notification (OAR-N-01, OAR-N-05).
///
/// # Errors
/// A form that is neither (-6), or characters that a program's line must not have (exit 16).
pub fn read(text: &str) -> Result<Notification, Refusal> {
    if text.len() > LONGEST || text.contains(char::is_control) {
        return Err(refused(format!("expected at most {LONGEST} bytes without control characters")));
    }
    let (tags, rest) = match text.trim_start().strip_prefix('[') {
        None => (Tag::ALL.into(), text.trim_start()),
        Some(rest) => {
            let (tags, rest) = rest.split_once(']').ok_or_else(|| refused("the list of tags has no ]".to_owned()))?;
            (tags_of(tags)?, rest.trim_start())
        }
    };
    let (method, target) = rest.split_once(':').map_or((rest, ""), |(method, target)| (method.trim(), target.trim()));
    let sink = match method {
        "mail" => mail(target)?,
        "exec" => exec(target)?,
        _ => return Err(refused(format!("expected mail:ADDRESS or exec:PATH, found '{}'", shown(rest)))),
    };
    Ok(Notification { tags, sink })
}

fn refused(why: String) -> Refusal {
    Refusal::option(Code::Notification, "--notify", why)
}

fn tags_of(list: &str) -> Result<BTreeSet<Tag>, Refusal> {
    let tag = |word: &str| {
        let word = word.trim().to_ascii_uppercase();
        let found = Tag::ALL.into_iter().find(|tag| tag.word() == word);
        found.ok_or_else(|| {
            let near = suggestion(&word, Tag::ALL.map(Tag::word));
            refused(format!("no tag is called '{}'{near}", shown(&word)))
        })
    };
    list.split(',').map(tag).collect()
}

fn mail(target: &str) -> Result<Sink, Refusal> {
    let is_address = |address: &str| {
        let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>()[],;:\\\"".contains(&byte));
        !address.is_empty() && is_plain && !address.starts_with('-')
    };
    let addresses: Vec<String> = target.split(',').map(|address| address.trim().to_owned()).collect();
    match addresses.iter().find(|address| !is_address(address)) {
        Some(wrong) => Err(refused(format!("'{}' is no mail address", shown(wrong)))),
        None => Ok(Sink::Mail(addresses)),
    }
}

fn exec(target: &str) -> Result<Sink, Refusal> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | ' ');
    if let Some(wrong) = target.chars().find(|c| !is_plain(*c)) {
        let why = format!("exec takes letters, digits, _ . / - and blanks; found '{}'", shown(&wrong.to_string()));
        return Err(Refusal::option(Code::NotificationCharacters, "--notify", why));
    }
    let mut words = target.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
    match words.next() {
        Some(path) if path.starts_with('/') => Ok(Sink::Exec { path, arguments: words.collect() }),
        _ => Err(refused("exec takes the whole path of a program".to_owned())),
    }
}

/// The subject of a mail (OAR-N-02).
pub fn subject(tag: Tag, job: u64, name: &str, server: &str) -> String {
    format!("*OAR* [{}]: {job} ({name}) on {server}", tag.word())
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
