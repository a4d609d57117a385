//! Destinations of output and sources of input: file names with `%` patterns (SL-C-14, SL-R-25).

use crate::options::values::number;

/// The values for the name of an output file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The job's own number: `%j`.
    pub job: u64,
    /// The number of the array, or of the job itself without an array: `%A`.
    pub array: u64,
    /// The index in the array: `%a`, and its last digit `%b`.
    pub index: Option<u32>,
    /// The step: `batch` or a number: `%s`.
    pub step: String,
    /// The node's short name: `%N`.
    pub node: String,
    /// The node's index in the job, from 0: `%n`.
    pub node_rank: u32,
    /// The task's rank: `%t`.
    pub task: u32,
    /// How often the job was started before: `%r`.
    pub restarts: u32,
    /// The user: `%u`.
    pub user: String,
    /// The job's name: `%x`.
    pub name: String,
}

/// The widest padding in a pattern.
const WIDEST: usize = 10;

/// The default pattern of a batch job's output (SL-C-14).
pub const fn default_pattern(is_array: bool) -> &'static str {
    if is_array { "slurm-%A_%a.out" } else { "slurm-%j.out" }
}

/// Expands a pattern. A width pads numbers with zeros; a backslash anywhere turns off all expansion; any other text
/// stays unchanged; `none` is `/dev/null`.
pub fn expand(pattern: &str, facts: &Facts) -> String {
    if pattern.eq_ignore_ascii_case("none") {
        return "/dev/null".to_owned();
    }
    if pattern.contains('\\') {
        return pattern.replace('\\', "");
    }
    let mut path = String::with_capacity(pattern.len() + 16);
    for piece in pieces(pattern) {
        match piece {
            Piece::Text(text) => path.push_str(text),
            Piece::Symbol { symbol, width, written } => match value(symbol, facts) {
                Some(Value::Number(number)) => path.push_str(&format!("{number:0width$}")),
                Some(Value::Text(text)) => path.push_str(&text.replace('/', "_")),
                None => path.push_str(written),
            },
        }
    }
    path
}

enum Value {
    Number(u64),
    Text(String),
}

fn value(symbol: char, facts: &Facts) -> Option<Value> {
    let number = |number: u32| Value::Number(u64::from(number));
    Some(match symbol {
        '%' => Value::Text("%".to_owned()),
        'A' => Value::Number(facts.array),
        'a' => number(facts.index.unwrap_or(u32::MAX - 1)),
        'b' => number(facts.index.unwrap_or(u32::MAX - 1) % 10),
        'J' if facts.step == "batch" => Value::Number(facts.job),
        'J' => Value::Text(format!("{}.{}", facts.job, facts.step)),
        'j' => Value::Number(facts.job),
        'N' => Value::Text(facts.node.clone()),
        'n' => number(facts.node_rank),
        'r' => number(facts.restarts),
        's' => Value::Text(facts.step.clone()),
        't' => number(facts.task),
        'u' => Value::Text(facts.user.clone()),
        'x' => Value::Text(facts.name.clone()),
        _ => return None,
    })
}

enum Piece<'a> {
    Text(&'a str),
    Symbol { symbol: char, width: usize, written: &'a str },
}

fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        pieces.push(Piece::Text(&rest[..at]));
        let after = &rest[at + 1..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let Some(symbol) = after[digits..].chars().next() else {
            pieces.push(Piece::Text(&rest[at..]));
            return pieces;
        };
        let end = at + 1 + digits + symbol.len_utf8();
        let width = after[..digits].parse().unwrap_or(if digits == 0 { 0 } else { WIDEST });
        pieces.push(Piece::Symbol { symbol, width: width.min(WIDEST), written: &rest[at..end] });
        rest = &rest[end..];
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// The pattern of a step's files in terms of the job model: only the nodes know all the values.
pub fn model_pattern(pattern: &str) -> String {
    let model = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Symbol { symbol: 'J', .. } => "%J.%s".to_owned(),
        Piece::Symbol { symbol: 'j', width: 0, .. } => "%J".to_owned(),
        Piece::Symbol { written, .. } => written.to_owned(),
    };
    pieces(pattern).into_iter().map(model).collect()
}

/// Whether a pattern gives tasks or nodes separate files.
pub fn is_by_node(pattern: &str) -> bool {
    let is_own = |piece: &Piece<'_>| matches!(piece, Piece::Symbol { symbol: 't' | 'n' | 'N', .. });
    !pattern.contains('\\') && pieces(pattern).iter().any(is_own)
}

/// The pattern of a batch script's output in terms of the job model. In a batch script the node rank and the task rank
/// are 0 and the step is `batch` (SL-C-14).
pub fn batch_pattern(pattern: &str) -> String {
    if pattern.eq_ignore_ascii_case("none") {
        return "/dev/null".to_owned();
    }
    if pattern.contains('\\') {
        return pattern.replace('\\', "").replace('%', "%%");
    }
    let model = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Symbol { symbol: 'n' | 't', width, .. } => format!("{:0width$}", 0),
        Piece::Symbol { symbol: 's', .. } => "batch".to_owned(),
        Piece::Symbol { symbol: 'j' | 'J', width: 0, .. } => "%J".to_owned(),
        Piece::Symbol { written, .. } => written.to_owned(),
    };
    pieces(pattern).into_iter().map(model).collect()
}

/// The destination of the output of a step's tasks (SL-R-25).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutput {
    /// To `srun` itself, from every task.
    Srun,
    /// To `srun` itself, from the task of one rank.
    OneTask(u32),
    /// Nowhere.
    Nowhere,
    /// To files, by this pattern.
    Files(String),
}

impl StepOutput {
    /// The value of `--output` or `--error` of `srun`, in a step with this many tasks. A number that is not a rank is
    /// the name of a file.
    pub fn parse(text: Option<&str>, tasks: u32) -> Self {
        match text {
            None | Some("all") => Self::Srun,
            Some("none") => Self::Nowhere,
            Some(text) => match number(text).filter(|rank| *rank < tasks) {
                Some(rank) => Self::OneTask(rank),
                None => Self::Files(text.to_owned()),
            },
        }
    }
}

/// Which tasks get the input of `srun`, from `--input` (SL-R-21).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepInput {
    /// Every task.
    All,
    /// The task of one rank.
    OneTask(u32),
    /// None: they get no input.
    Nobody,
    /// Not that of `srun`: each task reads a file with this pattern.
    Files(String),
}

impl StepInput {
    /// The value of `--input` in a step with this many tasks.
    pub fn parse(text: Option<&str>, tasks: u32) -> Self {
        match text {
            None | Some("all") => Self::All,
            Some("none") => Self::Nobody,
            Some(text) => match number(text).filter(|rank| *rank < tasks) {
                Some(rank) => Self::OneTask(rank),
                None => Self::Files(text.to_owned()),
            },
        }
    }
}
