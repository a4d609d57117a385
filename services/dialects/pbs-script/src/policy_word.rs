//! The words of `scheduler_policy`: which kind of program schedules (PBS-X-01, PBS-X-14, PBS-X-21).

use std::{fmt, path::PathBuf};

/// Default of the Tcl body, below the folder of the scheduler (PBS-X-14).
pub const DEFAULT_BODY: &str = "sched_tcl";

/// A scheduling program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramWord {
    /// `basl:FILE`
    Basl {
        /// The program.
        file: PathBuf,
    },
    /// `tcl:BODY[,INIT]`
    Tcl {
        /// The file that runs in each cycle.
        body: PathBuf,
        /// The file that runs once.
        init: Option<PathBuf>,
    },
    /// `external:COMMAND`, in words. A word may stand in quotes, single or double; a backslash outside single quotes
    /// takes the next character as it is. No shell reads it.
    External {
        /// The program and its arguments.
        command: Vec<String>,
    },
}

/// A value of `scheduler_policy` that is none. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scheduler_policy: expected {expected}, found `{found}`")]
pub struct BadWord {
    /// What was expected.
    pub expected: &'static str,
    /// What was found, without control characters and cut to a reasonable length.
    pub found: String,
}

/// Characters of a bad value that messages show.
const SHOWN: usize = 80;
/// Characters of a good one.
const LONGEST: usize = 4096;

const FORMS: &str = "basl:FILE, tcl:BODY[,INIT] or external:COMMAND";

impl ProgramWord {
    /// Reads a value.
    ///
    /// # Errors
    /// It is no such value.
    pub fn parse(text: &str) -> Result<Self, BadWord> {
        let bad = |expected| BadWord { expected, found: shown(text) };
        if text.len() > LONGEST || text.contains(char::is_control) {
            return Err(bad("one line of at most 4096 characters"));
        }
        let (kind, rest) = text.trim().split_once(':').ok_or_else(|| bad(FORMS))?;
        let rest = rest.trim();
        match kind.trim_end() {
            "basl" => match rest {
                "" => Err(bad("a file after `basl:`")),
                file => Ok(Self::Basl { file: file.into() }),
            },
            "tcl" => Self::tcl(rest).ok_or_else(|| bad("two files at most after `tcl:`, as tcl:BODY,INIT")),
            "external" => match words(rest) {
                None => Err(bad("a closing quote, or a character after the backslash, in the command")),
                Some(command) if command.first().is_none_or(String::is_empty) => {
                    Err(bad("a program after `external:`"))
                }
                Some(command) => Ok(Self::External { command }),
            },
            _ => Err(bad(FORMS)),
        }
    }

    fn tcl(rest: &str) -> Option<Self> {
        let (body, init) = match rest.split_once(',') {
            Some((body, init)) => (body.trim(), Some(init.trim())),
            None => (rest, None),
        };
        if init.is_some_and(|init| init.is_empty() || init.contains(',')) {
            return None;
        }
        let body = if body.is_empty() { DEFAULT_BODY } else { body };
        Some(Self::Tcl { body: body.into(), init: init.map(PathBuf::from) })
    }
}

/// As a person would write it.
impl fmt::Display for ProgramWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basl { file } => write!(f, "basl:{}", file.display()),
            Self::Tcl { body, init: None } => write!(f, "tcl:{}", body.display()),
            Self::Tcl { body, init: Some(init) } => write!(f, "tcl:{},{}", body.display(), init.display()),
            Self::External { command } => write!(f, "external:{}", command.join(" ")),
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(SHOWN).collect()
}

/// The words of a command; nothing if a quote is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None | Some('"'), '\\') => word.get_or_insert_default().push(letters.next()?),
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => all.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    quote.is_none().then_some(all)
}
