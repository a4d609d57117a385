//! Why a submission is refused, and the codes that scripts know.

use crate::mistake::Mistake;
use std::fmt;

/// The kind of a refusal. It decides the exit status of `oarsub` and the code in place of a job id (OAR-C-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The command line cannot be read, or an option is not supported.
    Usage,
    /// A resubmission is refused; the code is the one of the reason.
    Resubmission(i32),
    /// There is no command to run, and the job is neither interactive nor of a kind without command.
    NothingToRun,
    /// The size of an array.
    ArraySize,
    /// The start of a reservation cannot be read, or an interactive job is to be a reservation.
    Reservation,
    /// A submission filter or a built-in rule of the site.
    Rule,
    /// A level of a request is not one of the site's.
    UnknownLevel,
    /// There are not enough resources for any alternative, or a filter is wrong.
    Resources,
    /// A notification that is neither mail nor exec.
    Notification,
    /// A queue that does not exist.
    Queue,
    /// A key pair that cannot be used.
    Keys,
    /// The name of the file for the standard output.
    Output,
    /// The name of the file for the errors.
    Errors,
    /// An interactive array.
    InteractiveArray,
    /// An interactive job with a file of parameters.
    InteractiveParameters,
    /// A script with directives, or a file of parameters.
    Script,
    /// Characters in a notification that could mean something to a shell.
    NotificationCharacters,
    /// A type that excludes another setting.
    Conflict,
    /// The syntax of a request.
    Syntax,
}

impl Code {
    /// The exit status of `oarsub`.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Usage => 1,
            Self::Resubmission(_) => 4,
            Self::NothingToRun => 5,
            Self::ArraySize => 6,
            Self::Reservation => 7,
            Self::Rule
            | Self::UnknownLevel
            | Self::Resources
            | Self::Notification
            | Self::Queue
            | Self::Keys
            | Self::Output
            | Self::Errors
            | Self::InteractiveArray => 8,
            Self::InteractiveParameters => 9,
            Self::Script => 12,
            Self::NotificationCharacters => 16,
            Self::Conflict => 17,
            Self::Syntax => 18,
        }
    }

    /// The negative number that the message has in place of a job id, if this kind of refusal has one.
    pub const fn job_id_code(self) -> Option<i32> {
        match self {
            Self::Rule => Some(-2),
            Self::UnknownLevel => Some(-3),
            Self::Resources => Some(-5),
            Self::Notification => Some(-6),
            Self::Queue => Some(-8),
            Self::Keys => Some(-10),
            Self::Output => Some(-12),
            Self::Errors => Some(-13),
            Self::Resubmission(code) => Some(code),
            _ => None,
        }
    }
}

/// Why a submission is refused. Nothing was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its kind.
    pub code: Code,
    /// The option or file with the mistake, and the place in its text; `None` if no single text is wrong.
    pub place: Option<(String, Option<usize>)>,
    /// The mistake, and the expected form.
    pub message: String,
}

impl Refusal {
    /// A refusal that concerns no single text.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, place: None, message: message.into() }
    }

    /// A refusal of the value of an option.
    pub fn option(code: Code, option: &str, message: impl Into<String>) -> Self {
        Self { code, place: Some((option.to_owned(), None)), message: message.into() }
    }

    /// A mistake in the value of an option or in a file.
    pub fn mistake(code: Code, option: &str, mistake: Mistake) -> Self {
        Self { code, place: Some((option.to_owned(), Some(mistake.column))), message: mistake.message }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((option, Some(column))) => write!(f, "{option}, column {column}: ")?,
            Some((option, None)) => write!(f, "{option}: ")?,
            None => {}
        }
        f.write_str(&self.message)?;
        self.code.job_id_code().map_or(Ok(()), |code| write!(f, " (job id {code})"))
    }
}

impl std::error::Error for Refusal {}
