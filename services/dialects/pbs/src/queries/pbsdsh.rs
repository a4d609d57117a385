//! `pbsdsh`: a program on the nodes of the job that it is called in.

use crate::{getopt, refusal::Refusal, text::decimal};

/// A request of `pbsdsh`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadRequest {
    /// Which lines of the node file it is for.
    pub on: SpreadOver,
    /// Whether one copy runs after the other (`-s`).
    pub one_by_one: bool,
    /// Whether its output is dropped (`-o`).
    pub is_silent: bool,
    /// Whether it is told what is started, and how it has ended (`-v`).
    pub is_verbose: bool,
    /// The program and its words.
    pub words: Vec<String>,
}

/// Which lines of a node file a program runs for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpreadOver {
    /// All.
    #[default]
    All,
    /// Each node once (`-u`).
    EachNode,
    /// The first ones (`-c`).
    First(usize),
    /// One of them, from 0 (`-n`).
    One(usize),
    /// Those of a node (`-h`).
    Node(String),
}

/// Reads a command line. The first word that is no option begins the program.
///
/// # Errors
/// An unknown option, a wrong value, or no program.
pub fn pbsdsh(words: &[String]) -> Result<SpreadRequest, Refusal> {
    const LETTERS: &str = "c:n:h:osuv";
    // The words of the program are its own, also those that begin with `-`.
    let mut begin = 0;
    while let Some(word) = words.get(begin).filter(|word| word.starts_with('-') && *word != "--") {
        let takes_next = word.len() == 2 && matches!(word.as_str(), "-c" | "-n" | "-h");
        begin += if takes_next { 2 } else { 1 };
    }
    let begin = begin.min(words.len());
    let read = getopt::read(LETTERS, &words[..begin])?;
    let number = |letter: char| {
        let one = |text: &str| {
            let number =
                decimal::<u32>(text).ok_or_else(|| Refusal::value(&format!("-{letter}"), text, "expected a number"));
            number.map(|number| number as usize)
        };
        read.value(letter).map(one).transpose()
    };
    let on = match (number('n')?, number('c')?, read.value('h'), read.has('u')) {
        (Some(one), None, None, false) => SpreadOver::One(one),
        (None, Some(first), None, false) => SpreadOver::First(first),
        (None, None, Some(node), false) => SpreadOver::Node(node.to_owned()),
        (None, None, None, true) => SpreadOver::EachNode,
        (None, None, None, false) => SpreadOver::All,
        _ => return Err(Refusal::Operands("only one of -c, -n, -h and -u can be given".to_owned())),
    };
    let program = &words[begin..];
    let program = program.strip_prefix(&["--".to_owned()]).unwrap_or(program);
    if program.is_empty() {
        return Err(Refusal::Operands("a program is missing".to_owned()));
    }
    Ok(SpreadRequest {
        on,
        one_by_one: read.has('s'),
        is_silent: read.has('o'),
        is_verbose: read.has('v'),
        words: program.to_vec(),
    })
}

impl SpreadOver {
    /// The hosts of the lines of a node file, each with its place in the file.
    ///
    /// # Errors
    /// The file has no such line.
    pub fn of<'f>(&self, lines: &[&'f str]) -> Result<Vec<(usize, &'f str)>, Refusal> {
        let all = lines.iter().copied().enumerate();
        let chosen: Vec<(usize, &str)> = match self {
            Self::All => all.collect(),
            Self::EachNode => all.filter(|(at, host)| !lines[..*at].contains(host)).collect(),
            Self::First(count) => all.take(*count).collect(),
            Self::One(one) => all.filter(|(at, _)| at == one).collect(),
            Self::Node(node) => all.filter(|(_, host)| host == node).take(1).collect(),
        };
        match chosen.is_empty() {
            true => Err(Refusal::Operands(format!("the job has {} places, and none of them is meant", lines.len()))),
            false => Ok(chosen),
        }
    }
}
