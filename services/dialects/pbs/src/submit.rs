//! `qsub`: what its options, the script's directives and the site's defaults ask for, and the job that they describe.

mod change;
mod equals;
mod letters;
mod lower;
mod paths;
mod rules;
mod settings;
mod sizing;

pub use change::{Changed, Present, change};
pub use letters::{ARGUMENTS_VARIABLE, LETTERS, SERVER_VARIABLE, SHELL_VARIABLE, USAGE, defaults, line, variable};
pub use lower::{Program, Submission, lower, shell_words};
pub use paths::{JobFiles, OutputNames, default_pattern};
pub use rules::{Caller, Rules};
pub use settings::{Join, Keep, MailPoints, Reading, Settings};
