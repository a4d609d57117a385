//! The grammar of the HPC Pack dialect's verbs; the dialect reads their arguments.

use clap::Subcommand;

/// Verbs of `job` that only the HPC Pack dialect has, and one that stands for all of them.
#[derive(Debug, Subcommand)]
pub enum HpcpackVerb {
    /// HPC Pack: make a job that is submitted later; options as `/name:value`, `job VERB /help` lists them
    New {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: add a task to a job that is being made
    Add {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: submit a job by options, by `/jobfile:FILE` or by `/id:ID`, and wait until it is in the queue
    Submit {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: show a job, its `/history` or its description, `/xml`
    View {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: list jobs
    List {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: list the tasks of a job
    Listtasks {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: end jobs as finished
    Finish {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: make a job like another
    Clone {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// A verb of the HPC Pack dialect
    #[command(hide = true)]
    #[command(name = "hpcpack")]
    Named {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
}

impl HpcpackVerb {
    /// The verb and its arguments.
    pub fn words(self) -> Vec<String> {
        let (verb, words) = match self {
            Self::New { words } => ("new", words),
            Self::Add { words } => ("add", words),
            Self::Submit { words } => ("submit", words),
            Self::View { words } => ("view", words),
            Self::List { words } => ("list", words),
            Self::Listtasks { words } => ("listtasks", words),
            Self::Finish { words } => ("finish", words),
            Self::Clone { words } => ("clone", words),
            Self::Named { words } => return words,
        };
        [verb.to_owned()].into_iter().chain(words).collect()
    }
}
