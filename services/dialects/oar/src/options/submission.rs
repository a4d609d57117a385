//! A submission as typed settings.

use super::{
    anterior::{self, Anterior},
    array,
    getopt::{Name, Words},
    keys::{self, Keys},
    notify::{self, Notification},
    output::{self, Stream},
    reservation::{self, Times},
    types::{self, Kind, Reading, Type},
};
use crate::{
    predicate::Predicate,
    refusal::{Code, Refusal},
    request::{self, demand::Alternative, site::Site},
    text::{decimal, is_name, shown},
};

/// The signal of a checkpoint without `--signal`: SIGUSR2.
pub const CHECKPOINT_SIGNAL: u32 = 12;
/// The longest name of a job or a project, in bytes.
const LONGEST_NAME: usize = 255;

/// The jobs that a submission makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Array {
    /// One job.
    Single,
    /// This number of equal jobs, with indices from 1.
    Equal(usize),
    /// A job for each line of this file.
    Parameters(String),
}

/// Files that are sent with a job (OAR-K-07).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageIn {
    /// A folder or an archive.
    pub path: String,
    /// The checksum of the archive, which may spare sending it.
    pub md5: Option<String>,
}

/// What a job is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Whether it is a shell for the user who waits.
    pub is_interactive: bool,
    /// The command; `None` for an interactive job and one without command.
    pub command: Option<String>,
    /// Its shapes, at least one.
    pub alternatives: Vec<Alternative>,
    /// The filter of `-p`.
    pub filter: Predicate,
    /// The queue; `None` for the default one.
    pub queue: Option<String>,
    /// The project; may be empty.
    pub project: String,
    /// The name; may be empty.
    pub name: String,
    /// The working directory; `None` for the one of the submission.
    pub directory: Option<String>,
    /// Its types, in the order given.
    pub types: Vec<Type>,
    /// The jobs that must end before.
    pub dependencies: Vec<Anterior>,
    /// The times, if it is a reservation.
    pub reservation: Option<Times>,
    /// How many jobs.
    pub array: Array,
    /// How long before the walltime the checkpoint's signal is sent, in seconds; 0 for none.
    pub checkpoint: i64,
    /// The number of that signal.
    pub signal: u32,
    /// The receiver of its notifications.
    pub notify: Option<Notification>,
    /// The file of `-O`.
    pub stdout: Option<String>,
    /// The file of `-E`.
    pub stderr: Option<String>,
    /// Whether it begins in Hold.
    pub is_held: bool,
    /// Its keys.
    pub keys: Option<Keys>,
    /// The files that are sent with it.
    pub stage_in: Option<StageIn>,
    /// Strange but accepted, for people.
    pub warnings: Vec<String>,
}

impl Submission {
    /// Whether it has a type.
    pub fn is(&self, is_it: impl Fn(&Kind) -> bool) -> bool {
        self.types.iter().any(|one| is_it(&one.kind))
    }
}

/// Reads a command line to which the directives of the script were added.
///
/// # Errors
/// The first mistake.
pub fn read(words: &Words, site: &Site, reading: Reading<'_>) -> Result<Submission, Refusal> {
    let types = types::read(&words.values(Name::Type), reading)?;
    let is_interactive = words.has(Name::Interactive);
    check_interactive(words, &types, is_interactive)?;
    let mut warnings = Vec::new();
    let command = command(words, &types, is_interactive, &mut warnings)?;
    let mut alternatives = request::alternatives(&words.values(Name::Resource), site)?;
    let reservation = reservation_times(words, &mut alternatives, reading, &mut warnings)?;
    let owned = |name: Name| words.value(name).map(str::to_owned);
    let (stdout, stderr) = (owned(Name::Stdout), owned(Name::Stderr));
    for (stream, file) in [(Stream::Output, &stdout), (Stream::Errors, &stderr)] {
        file.as_ref().map_or(Ok(()), |file| output::check(stream, file))?;
    }
    Ok(Submission {
        is_interactive,
        command,
        alternatives,
        filter: filter(words, site)?,
        queue: queue(words)?,
        project: label(words, Name::Project)?,
        name: label(words, Name::JobName)?,
        directory: owned(Name::Directory),
        types,
        dependencies: anterior::read(&words.values(Name::Anterior))?,
        reservation,
        array: array(words)?,
        checkpoint: number(words, Name::Checkpoint, i64::from(u32::MAX))?.unwrap_or(0),
        signal: signal(words)?,
        notify: words.value(Name::Notify).map(notify::read).transpose()?,
        stdout,
        stderr,
        is_held: words.has(Name::Hold),
        keys: keys::read(words)?,
        stage_in: stage_in(words)?,
        warnings,
    })
}

/// What an interactive job cannot be (OAR-J-11).
fn check_interactive(words: &Words, types: &[Type], is_interactive: bool) -> Result<(), Refusal> {
    let is_noop = types.iter().any(|one| matches!(one.kind, Kind::Noop(_)));
    let is_pulled = types.iter().any(|one| one.kind == Kind::DesktopComputing);
    let is_reserved = words.has(Name::Reservation);
    let is_array = words.has(Name::Array) || words.has(Name::ArrayParamFile);
    let refused = |code, message: &str| Err(Refusal::new(code, message));
    match is_interactive {
        true if is_reserved => refused(Code::Reservation, "an interactive job cannot be a reservation"),
        true if words.has(Name::Array) => refused(Code::InteractiveArray, "an array cannot be interactive"),
        true if is_array => refused(Code::InteractiveParameters, "an array with parameters cannot be interactive"),
        true if is_noop => refused(Code::Conflict, "a job of the type noop has no shell: it cannot be interactive"),
        true if is_pulled => refused(Code::Conflict, "a job of the type desktop_computing cannot be interactive"),
        false if is_array && is_reserved => refused(Code::Reservation, "an array cannot be a reservation"),
        _ => Ok(()),
    }
}

fn command(
    words: &Words,
    types: &[Type],
    is_interactive: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, Refusal> {
    let command = words.operands.join(" ");
    let is_noop = types.iter().any(|one| matches!(one.kind, Kind::Noop(_)));
    if command.contains('\0') {
        return Err(Refusal::new(Code::NothingToRun, "the command has a NUL character"));
    }
    if is_interactive || is_noop {
        if !command.is_empty() {
            warnings.push(format!("the command '{}' is not run: the job has no command", shown(&command)));
        }
        return Ok(None);
    }
    if command.trim().is_empty() {
        return Err(Refusal::new(Code::NothingToRun, "nothing to run: a command, -I or -t noop is missing"));
    }
    Ok(Some(command))
}

fn reservation_times(
    words: &Words,
    alternatives: &mut Vec<Alternative>,
    reading: Reading<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<Times>, Refusal> {
    let Some(text) = words.value(Name::Reservation) else { return Ok(None) };
    let window = reservation::read(text, reading.now, reading.zone)?;
    if alternatives.len() > 1 {
        warnings.push("a reservation has one shape: only the first -l counts".to_owned());
        alternatives.truncate(1);
    }
    let Some(first) = alternatives.first_mut() else { return Ok(None) };
    if first.has_own_walltime && window.end.is_some() {
        warnings.push("the walltime of -l counts, not the end of -r".to_owned());
    }
    let own = first.has_own_walltime.then_some(first.walltime);
    first.walltime = window.walltime(own, first.walltime);
    window.times(first.walltime, reading.now).map(Some)
}

fn filter(words: &Words, site: &Site) -> Result<Predicate, Refusal> {
    let filters = words.values(Name::Property).into_iter().map(|text| request::filter(text, site));
    filters.reduce(|all, one| Ok(all?.and(one?))).unwrap_or(Ok(Predicate::ALWAYS))
}

fn queue(words: &Words) -> Result<Option<String>, Refusal> {
    match words.value(Name::Queue) {
        Some(queue) if !is_name(queue) => {
            Err(Refusal::option(Code::Queue, "-q", format!("'{}' is no name of a queue", shown(queue))))
        }
        queue => Ok(queue.map(str::to_owned)),
    }
}

/// A name that people choose. It goes into mails and tables, so it has no control characters (OAR-N-09).
fn label(words: &Words, name: Name) -> Result<String, Refusal> {
    let text = words.value(name).unwrap_or_default();
    if text.len() > LONGEST_NAME || text.contains(char::is_control) {
        let why = format!("expected at most {LONGEST_NAME} bytes without control characters");
        return Err(Refusal::option(Code::Rule, &name.long(), why));
    }
    Ok(text.to_owned())
}

fn array(words: &Words) -> Result<Array, Refusal> {
    match (words.value(Name::Array), words.value(Name::ArrayParamFile)) {
        (Some(_), Some(_)) => {
            Err(Refusal::new(Code::ArraySize, "the size of an array is the one of --array or of the file, not both"))
        }
        (Some(size), None) => array::size(size).map(Array::Equal),
        (None, Some(file)) => Ok(Array::Parameters(file.to_owned())),
        (None, None) => Ok(Array::Single),
    }
}

fn number(words: &Words, name: Name, most: i64) -> Result<Option<i64>, Refusal> {
    let Some(text) = words.value(name) else { return Ok(None) };
    let number = decimal::<i64>(text).filter(|number| *number <= most);
    let wrong = || format!("expected a number up to {most}, found '{}'", shown(text));
    number.map(Some).ok_or_else(|| Refusal::option(Code::Usage, &name.long(), wrong()))
}

fn signal(words: &Words) -> Result<u32, Refusal> {
    match number(words, Name::Signal, 64)? {
        None => Ok(CHECKPOINT_SIGNAL),
        Some(number) if number > 0 => Ok(number.unsigned_abs() as u32),
        Some(_) => Err(Refusal::option(Code::Usage, "--signal", "expected the number of a signal, from 1 to 64")),
    }
}

fn stage_in(words: &Words) -> Result<Option<StageIn>, Refusal> {
    let md5 = words.value(Name::StageInMd5).map(str::to_ascii_lowercase);
    let is_sum = |sum: &String| sum.len() == 32 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    if md5.as_ref().is_some_and(|sum| !is_sum(sum)) {
        return Err(Refusal::option(Code::Usage, "--stagein-md5sum", "expected 32 hexadecimal digits"));
    }
    match words.value(Name::StageIn) {
        Some(path) => Ok(Some(StageIn { path: path.to_owned(), md5 })),
        None if md5.is_some() => Err(Refusal::option(Code::Usage, "--stagein-md5sum", "--stagein is missing")),
        None => Ok(None),
    }
}
