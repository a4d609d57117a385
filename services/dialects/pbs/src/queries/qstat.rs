//! `qstat`.

use super::operands::{Destination, Operand, operands};
use crate::{
    flavour::Flavour,
    getopt::{self, Words},
    refusal::Refusal,
    show::Units,
    text::split,
};

/// The kind of things that the request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Jobs.
    #[default]
    Jobs,
    /// Queues (`-Q`, `-q`).
    Queues,
    /// Servers (`-B`).
    Servers,
}

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A table.
    #[default]
    List,
    /// The other table of jobs (`-a -i -r -u -n -s -H -T -G -M`), or that of queues (`-q`).
    Alternate,
    /// All attributes (`-f`).
    Full,
    /// All attributes in one line (`-f -F dsv`), with this delimiter.
    Dsv(String),
    /// All attributes as JSON (`-f -F json`).
    Json,
    /// All attributes as XML (TORQUE's `-x`).
    Xml,
}

/// A request of `qstat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatRequest {
    /// The kind of things that the request is about.
    pub mode: Mode,
    /// The form of the answer.
    pub format: Format,
    /// Only jobs in these states, by letter; empty for all.
    pub states: String,
    /// Jobs that are over, too (PBS Pro's `-x` and `-H`). TORQUE lists them without being asked.
    pub history: bool,
    /// Only jobs of these users (`-u`); empty for all.
    pub users: Vec<String>,
    /// The tasks of arrays one by one (`-t`).
    pub tasks: bool,
    /// Only arrays (PBS Pro's `-J`).
    pub only_arrays: bool,
    /// Without jobs that are over (TORQUE's `-c`).
    pub without_complete: bool,
    /// The part done in per cent (PBS Pro's `-p`).
    pub percent: bool,
    /// The nodes of each job (`-n`).
    pub nodes: bool,
    /// The comment of each job (`-s`).
    pub comments: bool,
    /// Nodes and comments in the line of the job, or unbroken lines of all attributes in TORQUE (`-1`).
    pub one_line: bool,
    /// Wide columns, or unbroken lines (`-w`).
    pub wide: bool,
    /// Expected starts (PBS Pro's `-T`).
    pub estimates: bool,
    /// The unit of sizes (`-G`, `-M`).
    pub units: Units,
    /// What it is about; empty for everything.
    pub operands: Vec<Operand>,
    /// Whether only the version is asked for.
    pub version: bool,
}

const LETTERS_PBS_PRO: &str = "ainpqrstwxu:fGHJMQEBW:T1F:D:";
const LETTERS_TORQUE: &str = "acCeE:fF:D:giln1pqrstu:xGMQRBW:w";

/// Reads a command line.
///
/// # Errors
/// An unknown option, or options that exclude each other.
pub fn qstat(words: &[String], flavour: Flavour) -> Result<StatRequest, Refusal> {
    let letters = if flavour == Flavour::PbsPro { LETTERS_PBS_PRO } else { LETTERS_TORQUE };
    let read = getopt::read(letters, words)?;
    let mut request = StatRequest { version: read.names.contains(&"version"), ..StatRequest::default() };
    let words = request_words(&read)?;
    for letter in words.letters.chars() {
        take(&mut request, letter, flavour);
    }
    if let Some(users) = &words.users {
        request.users = users_of(users)?;
    }
    set_format(&mut request, &words, flavour)?;
    request.operands = match request.mode {
        Mode::Jobs => operands(&read.all_operands())?,
        Mode::Queues | Mode::Servers => {
            let name = |word: &String| Destination::parse(word).map(Operand::Destination);
            read.all_operands().iter().map(name).collect::<Result<_, _>>()?
        }
    };
    Ok(request)
}

/// The options, those in `-W` included.
#[derive(Default)]
struct Given {
    letters: String,
    users: Option<String>,
    format: Option<String>,
    delimiter: Option<String>,
}

fn request_words(read: &Words) -> Result<Given, Refusal> {
    let mut given = Given::default();
    for option in &read.options {
        match option.letter {
            'u' => {
                given.letters.push('u');
                given.users = Some(option.value.clone());
            }
            'F' => given.format = Some(option.value.to_ascii_lowercase()),
            'D' => given.delimiter = Some(option.value.clone()),
            'W' => within(&option.value, &mut given)?,
            letter => given.letters.push(letter),
        }
    }
    Ok(given)
}

/// The letters in `-W`; what follows a `u` is its value.
fn within(text: &str, given: &mut Given) -> Result<(), Refusal> {
    for (at, letter) in text.char_indices() {
        match letter {
            ' ' => {}
            'u' => {
                given.letters.push('u');
                given.users = Some(text[at + 1..].trim_start().to_owned());
                return Ok(());
            }
            'a' | 'i' | 'r' | 'H' | 'n' | 's' | 'q' | 'G' | 'M' | '1' => given.letters.push(letter),
            letter => return Err(Refusal::UnknownLetter(letter)),
        }
    }
    Ok(())
}

fn take(request: &mut StatRequest, letter: char, flavour: Flavour) {
    match letter {
        'i' => request.states = "EHQTW".to_owned(),
        'r' => request.states = "RSB".to_owned(),
        'H' => (request.states, request.history) = ("MFX".to_owned(), true),
        'x' if flavour == Flavour::PbsPro => request.history = true,
        't' => request.tasks = true,
        'J' => request.only_arrays = true,
        'c' => request.without_complete = true,
        'p' => request.percent = true,
        'n' => request.nodes = true,
        's' => request.comments = true,
        '1' => request.one_line = true,
        'w' => request.wide = true,
        'T' => request.estimates = true,
        'G' => request.units = Units::Gigabytes,
        'M' => request.units = Units::Megawords,
        'q' | 'Q' => request.mode = Mode::Queues,
        'B' => request.mode = Mode::Servers,
        _ => {}
    }
}

fn users_of(text: &str) -> Result<Vec<String>, Refusal> {
    let names = split(text, ',').into_iter().map(|user| user.trim().split('@').next().unwrap_or_default().to_owned());
    let users: Vec<String> = names.filter(|user| !user.is_empty()).collect();
    match users.is_empty() {
        true => Err(Refusal::value("-u", text, "expected the names of users")),
        false => Ok(users),
    }
}

/// The form that the options ask for, if they go together.
fn set_format(request: &mut StatRequest, given: &Given, flavour: Flavour) -> Result<(), Refusal> {
    let conflict = || Refusal::Operands("conflicting options.".to_owned());
    let has = |letter: char| given.letters.contains(letter);
    let chosen = ['a', 'i', 'r', 'q', 'H'].into_iter().filter(|letter| has(*letter)).count();
    let is_alternate = "airqHunsTGM".chars().any(has);
    let is_full = has('f');
    let is_exclusive = (has('B') && has('Q')) || ((has('B') || has('Q')) && is_alternate) || (has('G') && has('M'));
    if chosen > 1 || is_exclusive || (has('q') && is_full) || (has('f') && flavour == Flavour::Torque && chosen > 0) {
        return Err(conflict());
    }
    if has('1') && !(has('n') || has('s') || (is_full && flavour == Flavour::Torque)) {
        return Err(conflict());
    }
    let format = given.format.as_deref();
    if (format.is_some_and(|format| format != "default") && !is_full) || (format.is_some() && request.wide) {
        return Err(conflict());
    }
    if given.delimiter.is_some() && format != Some("dsv") {
        return Err(Refusal::Operands("-D goes with -F dsv".to_owned()));
    }
    request.format = match (format, is_full, is_alternate) {
        (Some("json"), ..) => Format::Json,
        (Some("dsv"), ..) => Format::Dsv(given.delimiter.clone().unwrap_or_else(|| "|".to_owned())),
        (Some("default") | None, ..) if has('x') && flavour == Flavour::Torque => Format::Xml,
        // The nodes or comments of a list win over -f.
        (Some("default") | None, true, _) if !(has('n') || has('s')) || flavour == Flavour::Torque => Format::Full,
        (Some("default") | None, _, true) => Format::Alternate,
        (Some("default") | None, ..) => Format::List,
        (Some(other), ..) => return Err(Refusal::value("-F", other, "expected default, dsv or json")),
    };
    Ok(())
}
