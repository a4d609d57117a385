//! The columns of the list of jobs, and the order of its rows.

use clap::ValueEnum;
use std::str::FromStr;

/// A column of `muster jobs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JobColumn {
    /// The job's number.
    Job,
    /// Its name.
    Name,
    /// Its owner.
    User,
    /// The account that is charged.
    Account,
    /// Its queue.
    Queue,
    /// The dialect that it was submitted in.
    Dialect,
    /// Its priority.
    Priority,
    /// Its state, or how it ended.
    State,
    /// How long it has run.
    Time,
    /// The longest time that it may run.
    Walltime,
    /// How many CPUs it has or asks for.
    Cpus,
    /// How many tasks it has.
    Tasks,
    /// The nodes that it has, or how many it asks for.
    Nodes,
    /// When it was submitted.
    Submitted,
    /// When it started.
    Started,
    /// When it ended.
    Ended,
    /// Why it waits, or another remark about it.
    Reason,
}

impl JobColumn {
    /// The columns shown by default.
    pub const USUAL: [Self; 9] = [
        Self::Job,
        Self::Name,
        Self::User,
        Self::Queue,
        Self::State,
        Self::Time,
        Self::Cpus,
        Self::Nodes,
        Self::Reason,
    ];

    /// The word that names it in options.
    pub fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// A column that rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The column.
    pub column: JobColumn,
    /// Whether the greatest comes first.
    pub is_descending: bool,
}

impl FromStr for SortKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, is_descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
        let column = JobColumn::from_str(name, false).map_err(|_| {
            let words: Vec<String> = JobColumn::value_variants().iter().map(|column| column.word()).collect();
            format!("it is one of {}, or one of them with a `-` in front", words.join(", "))
        })?;
        Ok(Self { column, is_descending })
    }
}
