//! Files of ranks and programs for `--multi-prog` (SL-R-24).

use crate::options::values::number;

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultiProgError {
    /// Something else than ranks at the beginning of a line.
    #[error("line {line}: `{text}` is not a rank, a range such as 0-3, a list of them or `*`")]
    Ranks {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// Ranks and nothing to run.
    #[error("line {line}: no program behind the ranks")]
    NoProgram {
        /// The line, from 1.
        line: usize,
    },
    /// A quote that is not closed.
    #[error("line {line}: unmatched quote")]
    Quote {
        /// The line, from 1.
        line: usize,
    },
    /// No line is for this task.
    #[error("no line is for the task of rank {rank}")]
    NoLine {
        /// The rank.
        rank: u32,
    },
}

/// The program and arguments of each task of a step. A line is `RANKS PROGRAM [ARGUMENTS]`; ranks are a list, a range or `*`
/// for all tasks without a line of their own. `%t` is the rank, `%o` its offset in the ranks of the line. A line with `#` in
/// column one is a comment. The first line for a rank counts; ranks that the step does not have are ignored.
///
/// # Errors
/// The first line that cannot be read, or the first task without one.
pub fn programs(text: &str, tasks: u32) -> Result<Vec<Vec<String>>, MultiProgError> {
    let mut programs: Vec<Option<Vec<String>>> = vec![None; tasks as usize];
    let mut for_others: Option<Vec<String>> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let words = split(line).ok_or(MultiProgError::Quote { line: number })?;
        let Some((ranks, program)) = words.split_first() else { continue };
        if program.is_empty() {
            return Err(MultiProgError::NoProgram { line: number });
        }
        if ranks == "*" {
            for_others.get_or_insert_with(|| program.to_vec());
            continue;
        }
        let ranges = ranges(ranks).ok_or_else(|| MultiProgError::Ranks { line: number, text: ranks.clone() })?;
        let mut before: u32 = 0;
        for (first, last) in ranges {
            for rank in (first..=last).take_while(|rank| *rank < tasks) {
                let offset = before.saturating_add(rank - first);
                programs[rank as usize].get_or_insert_with(|| filled(program, rank, offset));
            }
            before = before.saturating_add(last - first).saturating_add(1);
        }
    }
    let mut offset = 0;
    let mut complete = Vec::with_capacity(programs.len());
    for (rank, program) in (0..tasks).zip(programs) {
        complete.push(match (program, &for_others) {
            (Some(program), _) => program,
            (None, Some(others)) => {
                offset += 1;
                filled(others, rank, offset - 1)
            }
            (None, None) => return Err(MultiProgError::NoLine { rank }),
        });
    }
    Ok(complete)
}

fn ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        number(first).zip(number(last)).filter(|(first, last)| first <= last)
    };
    text.split(',').map(range).collect()
}

fn filled(program: &[String], rank: u32, offset: u32) -> Vec<String> {
    program.iter().map(|word| word.replace("%t", &rank.to_string()).replace("%o", &offset.to_string())).collect()
}

/// The words of a line; quotes group, a backslash takes the next character as it is. `None` if a quote is not closed.
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
