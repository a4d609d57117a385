//! The parts of a formula that is a sum, so that people can be told what makes up its value.

use super::{Binary, Formula, Instruction, Unary, Variable};

/// A part of a sum: a constant times a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Addend {
    /// The product of the numbers that the part is multiplied by; negative if it is subtracted.
    pub weight: f64,
    /// The rest of the part.
    pub rest: Formula,
}

impl Formula {
    /// The parts that its value is the sum of, in order. A formula that is no sum has one part.
    pub fn addends(&self) -> Vec<Addend> {
        let mut parts = Vec::new();
        divide(&self.code, 1.0, &mut parts);
        let addend = |(weight, code): (f64, &[Instruction])| Addend {
            weight,
            rest: Self { code: code.to_vec(), attributes: self.attributes.clone() },
        };
        parts.into_iter().map(addend).collect()
    }

    /// Whether it is only this variable.
    pub fn is_variable(&self, variable: Variable) -> bool {
        self.code == [Instruction::Variable(variable)]
    }

    /// The variables that it uses, in order, each as often as it is used.
    pub fn variables(&self) -> impl Iterator<Item = Variable> {
        self.code.iter().filter_map(|instruction| match instruction {
            Instruction::Variable(variable) => Some(*variable),
            _ => None,
        })
    }
}

fn divide<'c>(code: &'c [Instruction], weight: f64, parts: &mut Vec<(f64, &'c [Instruction])>) {
    match code.last() {
        Some(Instruction::Two(sum @ (Binary::Add | Binary::Subtract))) => {
            let (left, right) = operands(code);
            divide(left, weight, parts);
            divide(right, if *sum == Binary::Add { weight } else { -weight }, parts);
        }
        Some(Instruction::One(Unary::Negate)) => divide(&code[..code.len() - 1], -weight, parts),
        Some(Instruction::Two(Binary::Multiply)) => {
            let (left, right) = operands(code);
            match (constant(left), constant(right)) {
                (Some(number), _) => divide(right, weight * number, parts),
                (None, Some(number)) => divide(left, weight * number, parts),
                (None, None) => parts.push((weight, code)),
            }
        }
        _ => parts.push((weight, code)),
    }
}

/// The value of a part that is the same for every job.
fn constant(code: &[Instruction]) -> Option<f64> {
    match code {
        [Instruction::Number(number)] => Some(*number),
        [Instruction::Number(number), Instruction::One(Unary::Negate)] => Some(-number),
        _ => None,
    }
}

/// The operands of the binary operator at the end.
fn operands(code: &[Instruction]) -> (&[Instruction], &[Instruction]) {
    let operator = code.len() - 1;
    // In postfix order the right operand is the shortest end that leaves one value.
    let (mut at, mut missing) = (operator, 1);
    while missing > 0 {
        at -= 1;
        missing = missing - 1 + arity(code[at]);
    }
    (&code[..at], &code[at..operator])
}

const fn arity(instruction: Instruction) -> usize {
    match instruction {
        Instruction::Number(_) | Instruction::Variable(_) => 0,
        Instruction::One(_) => 1,
        Instruction::Two(_) => 2,
        Instruction::If => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(f64, String)> {
        let formula = Formula::parse(text).expect("a formula");
        formula.addends().into_iter().map(|part| (part.weight, part.rest.to_string())).collect()
    }

    #[test]
    fn a_sum_is_divided_into_its_parts_with_their_weights() {
        let expected = [(1000.0, "min(wait / 604800, 1)"), (-50.0, "procs"), (1.0, "priority"), (-7.0, "1")];
        let found = parts("1000 * min(wait / 604800, 1) - procs * 50 + priority - 7 * 1");
        assert_eq!(found.iter().map(|(weight, text)| (*weight, text.as_str())).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_no_sum_is_one_part() {
        assert_eq!(parts("if(wait > 5, procs + 1, 2)").len(), 1);
        assert_eq!(parts("wait * procs"), [(1.0, "wait * procs".to_owned())]);
        assert_eq!(parts("-2 * (wait + 3 * procs)"), [(-2.0, "wait".to_owned()), (-6.0, "procs".to_owned())]);
    }

    #[test]
    fn the_parts_add_up_to_the_whole() {
        struct Job;
        impl super::super::Variables for Job {
            fn value(&self, variable: Variable) -> f64 {
                if variable == Variable::Wait { 30.0 } else { 4.0 }
            }
        }
        let formula = Formula::parse("10 * sqrt(wait) - (procs / 8 + attribute(\"x\")) * 3").expect("a formula");
        let sum: f64 = formula.addends().iter().map(|part| part.weight * part.rest.evaluate(&Job)).sum();
        assert!((sum - formula.evaluate(&Job)).abs() < 1e-9, "{sum}");
        assert_eq!(formula.variables().count(), 3);
    }
}
