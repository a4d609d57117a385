//! Prints formulas, with no more brackets than they need.

use super::{
    Binary, Formula, Instruction, Unary, Variable,
    names::{INFIX, TRACE_ATTRIBUTES, VARIABLES},
};
use std::fmt;

const NOT: u8 = 2;
const COMPARE: u8 = 3;
const UNARY: u8 = 6;
const POWER: u8 = 7;
const VALUE: u8 = 8;

/// A part of a formula, and how tightly its outermost operator binds.
struct Part {
    text: String,
    binds: u8,
    /// Whether it is a call of this function, which takes further arguments.
    fold: Option<Binary>,
}

impl Part {
    fn value(text: String) -> Self {
        Self { text, binds: VALUE, fold: None }
    }

    /// Its text, in brackets if it binds less tightly than required.
    fn at_least(self, tightness: u8) -> String {
        if self.binds < tightness { format!("({})", self.text) } else { self.text }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<Part> = Vec::new();
        // Parsed code never takes more operands than there are.
        let pop = |parts: &mut Vec<Part>| parts.pop().ok_or(fmt::Error);
        for instruction in &self.code {
            let part = match *instruction {
                Instruction::Number(number) => Part::value(print_number(number)),
                Instruction::Variable(variable) => Part::value(self.print_variable(variable)),
                Instruction::One(unary) => print_unary(unary, pop(&mut parts)?),
                Instruction::Two(binary) => {
                    let right = pop(&mut parts)?;
                    print_binary(binary, pop(&mut parts)?, right)
                }
                Instruction::If => {
                    let (no, yes, condition) = (pop(&mut parts)?, pop(&mut parts)?, pop(&mut parts)?);
                    Part::value(format!("if({}, {}, {})", condition.text, yes.text, no.text))
                }
            };
            parts.push(part);
        }
        f.write_str(&pop(&mut parts)?.text)
    }
}

impl Formula {
    fn print_variable(&self, variable: Variable) -> String {
        match variable {
            Variable::Attribute(index) => {
                let name = self.attributes.get(index).map_or("", String::as_str);
                if TRACE_ATTRIBUTES.contains(&name) { name.into() } else { format!("attribute(\"{name}\")") }
            }
            _ => VARIABLES.iter().find(|(_, known)| *known == variable).map_or("", |(name, _)| name).into(),
        }
    }
}

/// The shortest text that reads as the same number.
fn print_number(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn print_unary(unary: Unary, part: Part) -> Part {
    let name = match unary {
        Unary::Negate => return Part { text: format!("-{}", part.at_least(UNARY)), binds: UNARY, fold: None },
        Unary::Not => return Part { text: format!("not {}", part.at_least(NOT)), binds: NOT, fold: None },
        Unary::Abs => "abs",
        Unary::Sqrt => "sqrt",
        Unary::Log2 => "log2",
        Unary::Log10 => "log10",
        Unary::Ln => "ln",
        Unary::Exp => "exp",
        Unary::Floor => "floor",
        Unary::Ceil => "ceil",
    };
    Part::value(format!("{name}({})", part.text))
}

fn print_binary(binary: Binary, left: Part, right: Part) -> Part {
    if let Some((name, _, binds)) = INFIX.iter().find(|(_, known, _)| *known == binary) {
        let (left_binds, right_binds) = match *binds {
            COMPARE => (COMPARE + 1, COMPARE + 1),
            POWER => (VALUE, UNARY),
            binds => (binds, binds + 1),
        };
        let text = format!("{} {name} {}", left.at_least(left_binds), right.at_least(right_binds));
        return Part { text, binds: *binds, fold: None };
    }
    let name = if binary == Binary::Min { "min" } else { "max" };
    // Further arguments instead of nested calls: a long list would be nested more deeply than the parser allows.
    let text = match left.text.strip_suffix(')') {
        Some(call) if left.fold == Some(binary) => format!("{call}, {})", right.text),
        _ => format!("{name}({}, {})", left.text, right.text),
    };
    Part { text, binds: VALUE, fold: Some(binary) }
}
