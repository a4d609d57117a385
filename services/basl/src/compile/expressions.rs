//! Values.

use super::{
    emitter::Compiler,
    scopes::{Place, Symbol, Variable},
};
use crate::{
    code::{self, Op, Register},
    functions::{self, Builtin},
    syntax::{Arithmetic, Binary, Constant, Expression, Name, Term, Unary},
    types::{Basic, Type},
    values::NOTHING,
};

/// A value in a register of the file for its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) of_type: Type,
    pub(super) register: Register,
}

/// The value of an expression with a mistake.
pub(super) const WRONG: Value = Value { of_type: Type::Unknown, register: 0 };

impl<'t> Compiler<'t, '_> {
    /// Computes a value into any register. Registers that it takes for itself stay taken.
    pub(super) fn value(&mut self, expression: &Expression<'t>) -> Value {
        self.line = expression.at.place.line;
        match &expression.term {
            Term::Constant(constant) => self.constant_value(constant),
            Term::Variable => self.variable_value(expression.at),
            Term::Call(arguments) => self.call(expression.at, arguments),
            Term::Step { by } => self.step(expression.at, *by),
            Term::Unary(Unary::Not, _) | Term::Binary(Binary::And | Binary::Or | Binary::Test(_), _) => {
                self.truth_value(expression)
            }
            Term::Unary(operator, operand) => self.signed(expression.at, *operator, operand),
            Term::Binary(Binary::Arithmetic(arithmetic), operands) => {
                self.arithmetic(expression.at, *arithmetic, &operands[0], &operands[1])
            }
        }
    }

    /// Computes a value that must not be `Void`.
    pub(super) fn some_value(&mut self, expression: &Expression<'t>) -> Value {
        let value = self.value(expression);
        if value.of_type == Type::VOID {
            self.fault(expression.at, format!("'{}' returns no value", expression.at.text));
            return WRONG;
        }
        value
    }

    /// Computes a value into a register of a type; numbers are converted.
    pub(super) fn value_into(&mut self, expression: &Expression<'t>, of_type: Type, to: Register, what: &str) {
        let mark = self.mark();
        let value = self.value(expression);
        self.free(mark);
        if value.of_type == Type::Unknown || of_type == Type::Unknown {
            return;
        }
        if !of_type.takes(value.of_type) {
            return self.fault(expression.at, format!("{what} is {of_type}, not {}", value.of_type));
        }
        self.convert(value, of_type, to);
    }

    /// Moves a value into a register, as another type of number if need be.
    pub(super) fn convert(&mut self, value: Value, of_type: Type, to: Register) {
        let from = value.register;
        match (value.of_type, of_type) {
            (Type::INT, Type::FLOAT) => self.emit(Op::ToFloat { to, from }),
            (Type::FLOAT, Type::INT) => self.emit(Op::ToInt { to, from }),
            _ if from == to => return,
            _ if of_type.is_reference() => self.emit(Op::MoveReference { to, from }),
            _ => self.emit(Op::Move { to, from }),
        };
    }

    fn constant_value(&mut self, constant: &Constant) -> Value {
        let of_type = constant.of_type();
        let to = self.register(of_type);
        let word = match constant {
            Constant::Int(value) => *value,
            Constant::Float(value) => value.to_bits().cast_signed(),
            Constant::Dayofweek(value) => i64::from(*value),
            Constant::DateTime(value) => value.to_word(),
            Constant::Size(value) => value.to_word(),
            Constant::Nothing(_) => NOTHING,
            Constant::String(Some(text)) => {
                let constant = self.text_constant(text);
                self.emit(Op::Text { to, constant });
                return Value { of_type, register: to };
            }
            Constant::String(None) | Constant::Empty(_) => {
                self.emit(Op::Null { to });
                return Value { of_type, register: to };
            }
            Constant::Range(_, ends) => {
                let constant = self.range_constant(*ends);
                self.emit(Op::Range { to, constant });
                return Value { of_type, register: to };
            }
        };
        self.word_constant(word, to);
        Value { of_type, register: to }
    }

    pub(super) fn word_constant(&mut self, word: i64, to: Register) {
        let constant = self.constant(word);
        self.emit(Op::Word { to, constant });
    }

    /// The value of a variable, or a function as a value.
    fn variable_value(&mut self, at: Name<'t>) -> Value {
        match self.scopes.find(at.text) {
            Some(Symbol::Variable(variable)) => self.load(variable),
            Some(Symbol::Function(function)) => {
                let result = self.code.functions.get(usize::from(function)).map(|function| function.result);
                self.function_value(code::function_value(function), result.unwrap_or(Basic::Void))
            }
            None => match functions::builtin(at.text) {
                Some(Builtin::Getter(getter, _, result)) => self.function_value(code::getter_value(getter), result),
                Some(_) => {
                    self.fault(at, "only functions whose one parameter is an object can be passed on");
                    WRONG
                }
                None => {
                    self.unknown(at, "variable");
                    WRONG
                }
            },
        }
    }

    fn function_value(&mut self, word: i64, result: Basic) -> Value {
        let register = self.word();
        self.word_constant(word, register);
        Value { of_type: Type::Fun(result), register }
    }

    pub(super) fn load(&mut self, variable: Variable) -> Value {
        let of_type = variable.of_type;
        let register = match variable.place {
            Place::Local(register) => register,
            Place::Global(global) => {
                let to = self.register(of_type);
                self.emit(if of_type.is_reference() {
                    Op::LoadReference { to, global }
                } else {
                    Op::Load { to, global }
                });
                to
            }
        };
        Value { of_type, register }
    }

    /// Puts a register into a variable.
    pub(super) fn store(&mut self, variable: Variable, from: Register) {
        let of_type = variable.of_type;
        match variable.place {
            Place::Global(global) if of_type.is_reference() => {
                self.emit(Op::StoreReference { global, from });
            }
            Place::Global(global) => {
                self.emit(Op::Store { global, from });
            }
            Place::Local(to) => self.convert(Value { of_type, register: from }, of_type, to),
        }
    }

    /// `++` or `--`: the value is that before the step.
    fn step(&mut self, at: Name<'t>, by: i8) -> Value {
        let Some(variable) = self.variable(at) else { return WRONG };
        if variable.of_type == Type::Unknown {
            return WRONG;
        }
        if !variable.of_type.is_number() {
            self.fault(at, format!("++ and -- need Int or Float, not {}", variable.of_type));
            return WRONG;
        }
        let before = self.word();
        let value = self.load(variable);
        self.emit(Op::Move { to: before, from: value.register });
        self.step_register(variable, value.register, by);
        Value { of_type: variable.of_type, register: before }
    }

    /// `++` or `--` as a statement, where nobody asks for the value.
    pub(super) fn step_statement(&mut self, at: Name<'t>, by: i8) {
        let Some(variable) = self.variable(at).filter(|variable| variable.of_type.is_number()) else {
            self.step(at, by);
            return;
        };
        let value = self.load(variable);
        self.step_register(variable, value.register, by);
    }

    fn step_register(&mut self, variable: Variable, word: Register, by: i8) {
        self.emit(if variable.of_type == Type::FLOAT { Op::StepFloat { word, by } } else { Op::Step { word, by } });
        if matches!(variable.place, Place::Global(_)) {
            self.store(variable, word);
        }
    }

    fn signed(&mut self, at: Name<'t>, operator: Unary, operand: &Expression<'t>) -> Value {
        let mark = self.mark();
        let value = self.some_value(operand);
        self.line = at.place.line;
        if value.of_type == Type::Unknown {
            return WRONG;
        }
        let from = value.register;
        if !value.of_type.is_number() && value.of_type != Type::SIZE {
            self.fault(at, format!("a sign needs Int, Float or Size, not {}", value.of_type));
            return WRONG;
        }
        if operator == Unary::Plus {
            return value;
        }
        self.free(mark);
        let to = self.word();
        self.emit(match value.of_type {
            Type::FLOAT => Op::NegateFloat { to, from },
            Type::SIZE => Op::NegateSize { to, from },
            _ => Op::NegateInt { to, from },
        });
        Value { of_type: value.of_type, register: to }
    }

    fn arithmetic(
        &mut self,
        at: Name<'t>,
        arithmetic: Arithmetic,
        left: &Expression<'t>,
        right: &Expression<'t>,
    ) -> Value {
        let mark = self.mark();
        let (left, right) = (self.some_value(left), self.some_value(right));
        self.line = at.place.line;
        let result = match (left.of_type, right.of_type) {
            (Type::Unknown, _) | (_, Type::Unknown) => return WRONG,
            (Type::INT, Type::INT) => Type::INT,
            (Type::INT | Type::FLOAT, Type::INT | Type::FLOAT) if arithmetic != Arithmetic::Remainder => Type::FLOAT,
            (Type::SIZE, Type::SIZE) if arithmetic != Arithmetic::Remainder => Type::SIZE,
            (Type::STRING, Type::STRING) if arithmetic == Arithmetic::Add => Type::STRING,
            (left, right) => {
                self.fault(at, format!("'{}' cannot take {left} and {right}", at.text));
                return WRONG;
            }
        };
        let (left, right) = match result {
            Type::FLOAT => (self.as_float(left), self.as_float(right)),
            _ => (left.register, right.register),
        };
        self.free(mark);
        let to = self.register(result);
        self.emit(match result {
            Type::FLOAT => Op::Float { arithmetic, to, left, right },
            Type::SIZE => Op::Size { arithmetic, to, left, right },
            Type::STRING => Op::Join { to, left, right },
            _ => Op::Int { arithmetic, to, left, right },
        });
        Value { of_type: result, register: to }
    }

    /// A number as a float.
    pub(super) fn as_float(&mut self, value: Value) -> Register {
        if value.of_type == Type::FLOAT {
            return value.register;
        }
        let to = self.word();
        self.emit(Op::ToFloat { to, from: value.register });
        to
    }
}
