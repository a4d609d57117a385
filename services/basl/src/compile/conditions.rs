//! Conditions: comparisons, `AND`, `OR`, `!`, as jumps.

use super::{
    emitter::{Compiler, Jumps},
    expressions::Value,
};
use crate::{
    code::{Address, Op},
    syntax::{Binary, Expression, Name, Term, Test, Unary},
    types::{Basic, Type},
};

/// A target that is set later.
const LATER: Address = Address::MAX;

impl<'t> Compiler<'t, '_> {
    /// Emits jumps that are taken if a condition is, or is not, true. The right side of `AND` and `OR` is looked at
    /// only if the left side does not decide.
    pub(super) fn branch(&mut self, expression: &Expression<'t>, when: bool) -> Jumps {
        self.line = expression.at.place.line;
        match &expression.term {
            Term::Unary(Unary::Not, operand) => self.branch(operand, !when),
            Term::Binary(operator @ (Binary::And | Binary::Or), operands) => {
                let is_decided_by_one = (*operator == Binary::Or) == when;
                let mut first = self.branch(&operands[0], if is_decided_by_one { when } else { !when });
                let second = self.branch(&operands[1], when);
                if is_decided_by_one {
                    first.extend(second);
                    return first;
                }
                self.land(first);
                second
            }
            Term::Binary(Binary::Test(test), operands) => {
                self.comparison(expression.at, *test, &operands[0], &operands[1], when)
            }
            _ => self.truth(expression, when),
        }
    }

    /// A number: what is not zero is true.
    fn truth(&mut self, expression: &Expression<'t>, when: bool) -> Jumps {
        let mark = self.mark();
        let value = self.some_value(expression);
        let jump = match value.of_type {
            Type::Unknown => None,
            Type::INT if when => Some(Op::JumpUnlessZero { word: value.register, target: LATER }),
            Type::INT => Some(Op::JumpIfZero { word: value.register, target: LATER }),
            Type::FLOAT => {
                let right = self.word();
                self.word_constant(0, right);
                let test = if when { Test::Differs } else { Test::Equal };
                Some(Op::JumpIfFloat { test, left: value.register, right, target: LATER })
            }
            other => {
                self.fault(expression.at, format!("a condition needs Int or Float, not {other}"));
                None
            }
        };
        self.free(mark);
        jump.map(|jump| self.jump(jump)).into_iter().collect()
    }

    fn comparison(
        &mut self,
        at: Name<'t>,
        test: Test,
        left: &Expression<'t>,
        right: &Expression<'t>,
        when: bool,
    ) -> Jumps {
        let mark = self.mark();
        let (left, right) = (self.some_value(left), self.some_value(right));
        self.line = at.place.line;
        let test = if when { test } else { test.opposite() };
        let jump = self.compare(at, test, left, right);
        self.free(mark);
        jump.map(|jump| self.jump(jump)).into_iter().collect()
    }

    /// The jump that is taken if a comparison holds.
    pub(super) fn compare(&mut self, at: Name<'t>, test: Test, left: Value, right: Value) -> Option<Op> {
        let target = LATER;
        let is_order = !matches!(test, Test::Equal | Test::Differs);
        let (a, b) = (left.register, right.register);
        Some(match (left.of_type, right.of_type) {
            (Type::Unknown, _) | (_, Type::Unknown) => return None,
            (Type::INT, Type::INT) | (Type::DAYOFWEEK, Type::DAYOFWEEK) => {
                Op::JumpIfInt { test, left: a, right: b, target }
            }
            (Type::INT | Type::FLOAT, Type::INT | Type::FLOAT) => {
                let (left, right) = (self.as_float(left), self.as_float(right));
                Op::JumpIfFloat { test, left, right, target }
            }
            (Type::DATETIME, Type::DATETIME) => Op::JumpIfMoment { test, left: a, right: b, target },
            (Type::SIZE, Type::SIZE) => Op::JumpIfSize { test, left: a, right: b, target },
            (Type::STRING, Type::STRING) => Op::JumpIfText { test, left: a, right: b, target },
            (Type::Basic(one), Type::Basic(other))
                if one == other && !is_order && matches!(one, Basic::Object(_) | Basic::Set(_)) =>
            {
                match one {
                    Basic::Set(_) => Op::JumpIfSet { test, left: a, right: b, target },
                    _ => Op::JumpIfInt { test, left: a, right: b, target },
                }
            }
            (one, other) => {
                self.fault(at, format!("'{}' cannot compare {one} with {other}", at.text));
                return None;
            }
        })
    }

    /// A condition as a number: 1 or 0.
    pub(super) fn truth_value(&mut self, expression: &Expression<'t>) -> Value {
        let to = self.word();
        let when_false = self.branch(expression, false);
        self.word_constant(1, to);
        let end = self.jump(Op::Jump(LATER));
        self.land(when_false);
        self.word_constant(0, to);
        self.land([end]);
        Value { of_type: Type::INT, register: to }
    }
}
