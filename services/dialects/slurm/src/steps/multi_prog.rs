//! Files of ranks and programs for `--multi-prog` (SL-R-24).

use crate::options::values::number;
use std::collections::BTreeMap;

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultiProgError {
    /// Something other than ranks at the beginning of a line.
    #[error("line {line}: `{text}` is not a rank, a range such as 0-3, a list of them or `*`")]
    Ranks {
        /// The line, from 1.
        line: usize,
        /// The text there.
        text: String,
    },
    /// Ranks without a program.
    #[error("line {line}: no program after the ranks")]
    NoProgram {
        /// The line, from 1.
        line: usize,
    },
    /// An unclosed quote.
    #[error("line {line}: unmatched quote")]
    Quote {
        /// The line, from 1.
        line: usize,
    },
}

/// Why a file does not give each task one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankError {
    /// A rank that the step does not have.
    Beyond {
        /// The line, from 1.
        line: usize,
        /// The rank.
        rank: u32,
    },
    /// A rank that already has a program.
    Duplicate {
        /// The line, from 1.
        line: usize,
        /// The rank.
        rank: u32,
    },
    /// A rank without a program.
    NoRecord {
        /// The rank.
        rank: u32,
    },
}

impl RankError {
    /// Slurm's messages about a file with this path.
    pub fn lines(&self, path: &str) -> Vec<String> {
        let of_line =
            |why: String, line: &usize| vec![why, format!("Line {line} of configuration file {path} invalid")];
        match self {
            Self::Beyond { line, rank } => of_line(format!("Invalid task id, {rank} >= ntasks"), line),
            Self::Duplicate { line, rank } => of_line(format!("Duplicate record for task {rank}"), line),
            Self::NoRecord { rank } => {
                vec![format!("Configuration file {path} invalid, no record for task id {rank}")]
            }
        }
    }
}

/// A file with the program of each rank of a step. A line is `RANKS PROGRAM [ARGUMENTS]`; ranks are a list, a range or
/// `*` for all tasks without an earlier line. `%t` is the rank, `%o` its offset in the ranks of the line. A line with
/// `#` in column one is a comment; a backslash at the end of a line continues it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    records: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    /// The line, from 1.
    line: usize,
    ranks: Ranks,
    program: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ranks {
    /// Ranges with their first and last rank.
    Listed(Vec<(u32, u32)>),
    /// All ranks without a line of their own.
    Others,
}

impl ProgramFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, MultiProgError> {
        let mut records = Vec::new();
        for (line, text) in lines(text) {
            if text.starts_with('#') {
                continue;
            }
            let words = split(&text).ok_or(MultiProgError::Quote { line })?;
            let Some((ranks, program)) = words.split_first() else { continue };
            if program.is_empty() {
                return Err(MultiProgError::NoProgram { line });
            }
            let ranks = Ranks::parse(ranks).ok_or_else(|| MultiProgError::Ranks { line, text: ranks.clone() })?;
            records.push(Record { line, ranks, program: program.to_vec() });
        }
        Ok(Self { records })
    }

    /// The number of tasks: the requested one, else one more than the highest rank. As in Slurm, `*` stands for the
    /// ranks up to that point, so it belongs in the last line.
    ///
    /// # Errors
    /// Not every task has exactly one program.
    pub fn tasks(&self, asked: Option<u32>) -> Result<u32, RankError> {
        let mut tasks = asked.unwrap_or(1);
        // Ranges of ranks by their first rank; they do not overlap.
        let mut known: BTreeMap<u32, u32> = BTreeMap::new();
        for Record { line, ranks, .. } in &self.records {
            let line = *line;
            let Ranks::Listed(ranges) = ranks else {
                known = BTreeMap::from([(0, tasks.saturating_sub(1))]);
                continue;
            };
            for &(first, last) in ranges {
                if last >= tasks {
                    if asked.is_some() {
                        return Err(RankError::Beyond { line, rank: last });
                    }
                    tasks = last.saturating_add(1);
                }
                if let Some(rank) = first_in(&known, first, last) {
                    return Err(RankError::Duplicate { line, rank });
                }
                known.insert(first, last);
            }
        }
        first_missing(&known, tasks).map_or(Ok(tasks), |rank| Err(RankError::NoRecord { rank }))
    }

    /// The program and arguments of each task of a step with this many.
    ///
    /// # Errors
    /// See [`Self::tasks`].
    pub fn programs(&self, tasks: u32) -> Result<Vec<Vec<String>>, RankError> {
        self.tasks(Some(tasks))?;
        let mut programs: Vec<Option<Vec<String>>> = vec![None; tasks as usize];
        for Record { ranks, program, .. } in &self.records {
            let mut offset = 0..;
            let mut fill = |rank: u32| {
                if let Some(place @ None) = programs.get_mut(rank as usize) {
                    *place = offset.next().map(|offset| filled(program, rank, offset));
                }
            };
            match ranks {
                Ranks::Listed(ranges) => ranges.iter().for_each(|(first, last)| (*first..=*last).for_each(&mut fill)),
                Ranks::Others => (0..tasks).for_each(fill),
            }
        }
        let complete = (0..).zip(programs).map(|(rank, program)| program.ok_or(RankError::NoRecord { rank }));
        complete.collect()
    }
}

/// The lines with their numbers, from 1. Continued lines are joined under the number of the first.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut joined: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (at, line) in (1..).zip(text.lines()) {
        let (line, goes_on) = line.strip_suffix('\\').map_or((line, false), |begin| (begin, true));
        match joined.last_mut().filter(|_| is_continued) {
            Some((_, begun)) => begun.push_str(line),
            None => joined.push((at, line.to_owned())),
        }
        is_continued = goes_on;
    }
    joined
}

impl Ranks {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Others);
        }
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            number(first).zip(number(last)).filter(|(first, last)| first <= last)
        };
        text.split(',').map(range).collect::<Option<_>>().map(Self::Listed)
    }
}

/// The first rank of a range that overlaps another one.
fn first_in(known: &BTreeMap<u32, u32>, first: u32, last: u32) -> Option<u32> {
    let is_in_one = known.range(..=first).next_back().is_some_and(|(_, end)| *end >= first);
    if is_in_one { Some(first) } else { known.range(first..=last).next().map(|(begin, _)| *begin) }
}

/// The first rank of a step outside all ranges.
fn first_missing(known: &BTreeMap<u32, u32>, tasks: u32) -> Option<u32> {
    let mut next = 0;
    for (first, last) in known {
        if *first > next {
            break;
        }
        next = next.max(last.saturating_add(1));
    }
    (next < tasks).then_some(next)
}

fn filled(program: &[String], rank: u32, offset: u32) -> Vec<String> {
    program.iter().map(|word| word.replace("%t", &rank.to_string()).replace("%o", &offset.to_string())).collect()
}

/// The words of a line; quotes group, and a backslash takes the next character literally. `None` if a quote is not
/// closed.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, c) if c.is_ascii_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
