//! Formulas of a site: arithmetic over what a job asks for and how long it has waited.
//!
//! A formula is read once, with every name resolved, and then evaluated for many jobs. It has no loops and no state,
//! and its value is the same on every machine: the transcendental functions are not those of the platform.
//!
//! A value that a job does not have is *missing* (NaN). The result of arithmetic with it is missing too, and so are the
//! logarithm of a number that is not above 0, the root of a number below 0, and a division by 0. Comparisons with a
//! missing value do not hold (except `!=`), and neither does a missing condition.

mod addends;
mod names;
mod parse;
mod print;

pub use addends::Addend;

use std::fmt;

/// Maximum number of pending operands, and of nested levels. Evaluation needs no larger stack.
const MOST_DEPTH: usize = 32;

/// A parsed formula. It prints as text that parses to the same formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// In postfix order: operands before their operators.
    code: Vec<Instruction>,
    attributes: Vec<String>,
}

/// Where the values of a job come from.
pub trait Variables {
    /// The value of the variable; NaN if the job has none.
    fn value(&self, variable: Variable) -> f64;
}

/// A fact about a job that a formula can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variable {
    /// `submit`: when it was put into the queue, in seconds since 1970 (in a simulation, as the trace says).
    Submit,
    /// `age0`: seconds from the first submission of all jobs considered to its own, at least 1.
    Age0,
    /// `wait`: seconds since it was put into the queue.
    Wait,
    /// `walltime`: seconds that it asks for; infinite if it names none.
    Walltime,
    /// `procs` or `cores`: the minimum number of cores that it asks for.
    Procs,
    /// `nodes`: the minimum number of nodes that it asks for.
    Nodes,
    /// `memory_bytes`: the memory that it asks for, over all nodes.
    MemoryBytes,
    /// `gpus`: the GPUs that it asks for.
    Gpus,
    /// `priority`: its priority.
    Priority,
    /// `queue_priority`: the priority of its queue.
    QueuePriority,
    /// `fair_share`: the factor of its user in its account, from 0 to 1 ([`crate::fair_tree`]).
    FairShare,
    /// The rank of its owner's part of the machine, the greatest first; no formula can use it.
    ShareRank,
    /// How far its owner and account are above their targets; no formula can use it.
    UseShare,
    /// `attribute("NAME")`: a numeric attribute, by its index in [`Formula::attributes`] or
    /// [`super::order::CompiledOrder::attributes`].
    Attribute(usize),
}

/// Why a text is not a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// The position of the faulty character, from 1.
    pub column: usize,
    /// The text there, cut off after some 60 characters; empty at the end of the text.
    pub token: String,
    /// The text that was expected instead.
    pub expected: String,
    /// The known name most similar to the token, if any is.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message())
    }
}

impl std::error::Error for FormulaError {}

impl FormulaError {
    /// The fault, without the column.
    pub fn message(&self) -> String {
        let found = match self.token.as_str() {
            "" => "the end".to_owned(),
            token => format!("`{token}`"),
        };
        let hint = self.nearest.map(|name| format!("; nearest known name is `{name}`")).unwrap_or_default();
        format!("expected {}, found {found}{hint}", self.expected)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Instruction {
    Number(f64),
    Variable(Variable),
    One(Unary),
    Two(Binary),
    /// The condition, the value if it holds, the value if not.
    If,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unary {
    Negate,
    Not,
    Abs,
    Sqrt,
    Log2,
    Log10,
    Ln,
    Exp,
    Floor,
    Ceil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Min,
    Max,
}

impl Formula {
    /// The attributes that it uses; [`Variable::Attribute`] is an index into them.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// Whether its value changes while a job waits.
    pub fn depends_on_time(&self) -> bool {
        self.variables().any(|variable| matches!(variable, Variable::Wait | Variable::FairShare))
    }

    /// Its value for a job; NaN if it is missing.
    pub fn evaluate(&self, variables: &impl Variables) -> f64 {
        let mut stack = [0.0; MOST_DEPTH];
        // Parsed code never takes more operands than there are, nor needs more room.
        let mut top = 0;
        for instruction in &self.code {
            match *instruction {
                Instruction::Number(number) => {
                    stack[top] = number;
                    top += 1;
                }
                Instruction::Variable(variable) => {
                    stack[top] = variables.value(variable);
                    top += 1;
                }
                Instruction::One(unary) => stack[top - 1] = unary.of(stack[top - 1]),
                Instruction::Two(binary) => {
                    top -= 1;
                    stack[top - 1] = binary.of(stack[top - 1], stack[top]);
                }
                Instruction::If => {
                    top -= 2;
                    stack[top - 1] = if holds(stack[top - 1]) { stack[top] } else { stack[top + 1] };
                }
            }
        }
        stack[0]
    }

    /// The same formula with its attributes numbered as in `all`; missing ones are added to it.
    pub(crate) fn renumbered(mut self, all: &mut Vec<String>) -> Self {
        let number = |name: &String| match all.iter().position(|known| known == name) {
            Some(number) => number,
            None => {
                all.push(name.clone());
                all.len() - 1
            }
        };
        let numbers: Vec<usize> = self.attributes.iter().map(number).collect();
        for instruction in &mut self.code {
            if let Instruction::Variable(Variable::Attribute(index)) = instruction {
                *index = numbers[*index];
            }
        }
        self.attributes.clone_from(all);
        self
    }
}

/// Whether a condition holds: it is neither 0 nor missing.
fn holds(value: f64) -> bool {
    value != 0.0 && !value.is_nan()
}

fn truth(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

impl Unary {
    fn of(self, x: f64) -> f64 {
        let above_0 = |log: fn(f64) -> f64| if x > 0.0 { log(x) } else { f64::NAN };
        match self {
            Self::Negate => -x,
            Self::Not => truth(!holds(x)),
            Self::Abs => x.abs(),
            Self::Sqrt => x.sqrt(),
            Self::Log2 => above_0(libm::log2),
            Self::Log10 => above_0(libm::log10),
            Self::Ln => above_0(libm::log),
            Self::Exp => libm::exp(x),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
        }
    }
}

impl Binary {
    fn of(self, x: f64, y: f64) -> f64 {
        match self {
            Self::Or => truth(holds(x) || holds(y)),
            Self::And => truth(holds(x) && holds(y)),
            Self::Equal => truth(x == y),
            Self::NotEqual => truth(x != y),
            Self::Less => truth(x < y),
            Self::LessOrEqual => truth(x <= y),
            Self::Greater => truth(x > y),
            Self::GreaterOrEqual => truth(x >= y),
            Self::Add => x + y,
            Self::Subtract => x - y,
            Self::Multiply => x * y,
            Self::Divide if y == 0.0 => f64::NAN,
            Self::Divide => x / y,
            Self::Remainder => x % y,
            Self::Power => libm::pow(x, y),
            // Not `f64::min`: its choice between 0 and -0 depends on the machine, and it ignores missing values.
            Self::Min | Self::Max if x.is_nan() || y.is_nan() => f64::NAN,
            Self::Min => {
                if y < x {
                    y
                } else {
                    x
                }
            }
            Self::Max => {
                if y > x {
                    y
                } else {
                    x
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
