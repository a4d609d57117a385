//! Functions, blocks and statements.

use super::{
    emitter::{Compiler, Jumps, Loop},
    expressions::Value,
    scopes::{Place, Symbol, Variable},
};
use crate::{
    code::{Address, Function, Global, Op, Register, Shown},
    fault::Position,
    functions,
    syntax::{self, Block, Case, Constant, Declaration, Expression, Form, Item, Name, Statement, Term, Test},
    types::{Basic, Type},
    values::NOTHING,
};

/// A target that is set later.
const LATER: Address = Address::MAX;

/// Cases of a switch.
const MOST_CASES: usize = 1000;

/// Whether execution can come to the end of a statement.
type Passes = bool;

impl<'t> Compiler<'t, '_> {
    /// A global variable or a function.
    pub(super) fn item(&mut self, item: &Item<'t>) {
        match item {
            Item::Variable(declaration) => self.global(declaration),
            Item::Function(function) => self.function(function),
        }
    }

    fn global(&mut self, declaration: &Declaration<'t>) {
        let (name, of_type) = (declaration.name, declaration.of_type);
        let count = &mut self.globals[usize::from(of_type.is_reference())];
        let Ok(number) = u16::try_from(*count) else { return self.fault(name, "too many global variables") };
        *count += 1;
        self.code.globals.push(Global { name: name.text.to_owned(), of_type, number });
        self.define(name, Symbol::Variable(Variable { of_type, place: Place::Global(number) }));
    }

    /// Gives a name of the program a meaning, unless it has one.
    fn define(&mut self, name: Name<'t>, symbol: Symbol) {
        if functions::builtin(name.text).is_some() {
            return self.fault(name, format!("'{}' is a predefined function", name.text));
        }
        if !self.scopes.add(name.text, symbol) {
            self.fault(name, format!("'{}' is defined twice", name.text));
        }
    }

    fn function(&mut self, function: &syntax::Function<'t>) {
        let result = match function.result {
            Type::Basic(result) => result,
            // Told where it stands.
            _ => Basic::Void,
        };
        let Ok(number) = u16::try_from(self.code.functions.len()) else {
            return self.fault(function.name, "too many functions");
        };
        let parameters = function.parameters.iter().map(|parameter| parameter.of_type).collect();
        let name = function.name.text.to_owned();
        self.code.functions.push(Function { name, parameters, result, start: 0, words: 0, references: 0 });
        self.define(function.name, Symbol::Function(number));
        self.body(number, function, result);
    }

    /// Compiles the body of a function whose entry exists.
    fn body(&mut self, number: u16, function: &syntax::Function<'t>, result: Basic) {
        self.line = function.name.place.line;
        let start = self.begin(result);
        self.scopes.open();
        for parameter in &function.parameters {
            self.declare(parameter.name, parameter.of_type);
        }
        let passes = self.inside(&function.body);
        self.scopes.close();
        if passes && result != Basic::Void {
            let at = Name { text: "}", place: function.body.end };
            self.fault(at, format!("'{}' can end without return({result})", function.name.text));
        }
        self.line = function.body.end.line;
        self.emit(Op::ReturnNothing);
        let (words, references) = self.sizes(function.name);
        if let Some(entry) = self.code.functions.get_mut(usize::from(number)) {
            (entry.start, entry.words, entry.references) = (start, words, references);
        }
    }

    /// The assignments to globals, as a function.
    pub(super) fn start(&mut self, assignments: &[Statement<'t>]) {
        self.code.start = u16::try_from(self.code.functions.len()).unwrap_or(u16::MAX);
        let start = self.begin(Basic::Void);
        for assignment in assignments {
            self.statement(assignment);
        }
        self.emit(Op::ReturnNothing);
        let (words, references) = self.sizes(Name { text: "sched_main", place: Position::START });
        let name = "the assignments to globals".to_owned();
        self.code.functions.push(Function {
            name,
            parameters: Vec::new(),
            result: Basic::Void,
            start,
            words,
            references,
        });
    }

    pub(super) fn main(&mut self, main: &syntax::Function<'t>) {
        let Ok(number) = u16::try_from(self.code.functions.len()) else {
            return self.fault(main.name, "too many functions");
        };
        self.code.main = number;
        let name = main.name.text.to_owned();
        let result = Basic::Void;
        self.code.functions.push(Function { name, parameters: Vec::new(), result, start: 0, words: 0, references: 0 });
        self.body(number, main, result);
    }

    fn block(&mut self, block: &Block<'t>) -> Passes {
        self.scopes.open();
        let mark = self.mark();
        let passes = self.inside(block);
        self.free(mark);
        self.scopes.close();
        passes
    }

    /// Declarations and statements, in a scope that is open.
    fn inside(&mut self, block: &Block<'t>) -> Passes {
        for declaration in &block.declarations {
            self.line = declaration.name.place.line;
            let register = self.declare(declaration.name, declaration.of_type);
            self.clear(declaration.of_type, register);
        }
        let mut passes = true;
        for statement in &block.statements {
            passes &= self.statement(statement);
        }
        passes
    }

    /// The value of a variable that was never assigned (PBS-X-07).
    fn clear(&mut self, of_type: Type, to: Register) {
        match of_type {
            Type::Basic(Basic::Object(_)) => self.word_constant(NOTHING, to),
            _ if of_type.is_reference() => {
                self.emit(Op::Null { to });
            }
            _ => self.word_constant(0, to),
        }
    }

    fn statement(&mut self, statement: &Statement<'t>) -> Passes {
        self.line = statement.at.place.line;
        self.count();
        let mark = self.mark();
        let passes = self.form(statement.at, &statement.form);
        self.free(mark);
        passes
    }

    fn form(&mut self, at: Name<'t>, form: &Form<'t>) -> Passes {
        match form {
            Form::Empty => {}
            Form::Expression(expression) => self.expression_statement(expression),
            Form::Assignment { targets, value } => self.assignment(targets, value),
            Form::Block(block) => return self.block(block),
            Form::If { condition, then, otherwise } => return self.condition(condition, then, otherwise.as_ref()),
            Form::While { condition, body } => return self.while_loop(condition, body),
            Form::For { start, test, action, body } => self.for_loop(start, test, action, body),
            Form::Foreach { variable, set, body } => self.foreach(*variable, set, body),
            Form::Switch { variable, cases, default } => return self.switch(*variable, cases, default.as_ref()),
            Form::Print(value) => self.print(value),
            Form::Break => return self.leave(at, |inside| &mut inside.breaks),
            Form::Continue => return self.leave(at, |inside| &mut inside.continues),
            Form::Return(value) => return self.return_value(at, value.as_ref()),
            Form::Exit(value) => {
                let from = self.word();
                self.value_into(value, Type::INT, from, "the value of exit");
                self.emit(Op::Exit { from });
                return false;
            }
        }
        true
    }

    fn expression_statement(&mut self, expression: &Expression<'t>) {
        match expression.term {
            Term::Step { by } => self.step_statement(expression.at, by),
            _ => {
                self.value(expression);
            }
        }
    }

    fn assignment(&mut self, targets: &[Name<'t>], value: &Expression<'t>) {
        let variables: Vec<Option<Variable>> = targets.iter().map(|target| self.variable(*target)).collect();
        let mut source: Option<Value> = None;
        for (target, variable) in targets.iter().zip(variables).rev() {
            let Some(variable) = variable else {
                if source.is_none() {
                    self.value(value);
                }
                return;
            };
            let of_type = variable.of_type;
            let register = match variable.place {
                Place::Local(register) => register,
                Place::Global(_) => self.register(of_type),
            };
            match source {
                None => self.value_into(value, of_type, register, &format!("'{}'", target.text)),
                Some(value) if of_type.takes(value.of_type) => self.convert(value, of_type, register),
                Some(value) => self.fault(*target, format!("'{}' is {of_type}, not {}", target.text, value.of_type)),
            }
            if matches!(variable.place, Place::Global(_)) {
                self.store(variable, register);
            }
            source = Some(Value { of_type, register });
        }
    }

    fn condition(&mut self, condition: &Expression<'t>, then: &Block<'t>, otherwise: Option<&Block<'t>>) -> Passes {
        let when_false = self.branch(condition, false);
        let then_passes = self.block(then);
        let Some(otherwise) = otherwise else {
            self.land(when_false);
            return true;
        };
        let end = self.jump(Op::Jump(LATER));
        self.land(when_false);
        let passes = self.block(otherwise);
        self.land([end]);
        then_passes || passes
    }

    /// Compiles the body of a loop. The jumps of `continue` still need their target.
    fn body_of_loop(&mut self, body: &Block<'t>) -> Loop {
        self.frame.loops.push(Loop::default());
        self.block(body);
        self.frame.loops.pop().unwrap_or_default()
    }

    /// Each look at the condition counts, so that a loop without statements ends too.
    fn while_loop(&mut self, condition: &Expression<'t>, body: &Block<'t>) -> Passes {
        let top = self.here();
        self.line = condition.at.place.line;
        self.count();
        let is_endless = matches!(condition.term, Term::Constant(Constant::Int(value)) if value != 0);
        let end = if is_endless { Jumps::new() } else { self.branch(condition, false) };
        let inside = self.body_of_loop(body);
        self.jump(Op::Jump(top));
        self.aim(inside.continues, top);
        let passes = !is_endless || !inside.breaks.is_empty();
        self.land(end.into_iter().chain(inside.breaks));
        passes
    }

    fn for_loop(&mut self, start: &Statement<'t>, test: &Expression<'t>, action: &Statement<'t>, body: &Block<'t>) {
        let mark = self.mark();
        self.form(start.at, &start.form);
        self.free(mark);
        let top = self.here();
        self.line = test.at.place.line;
        self.count();
        let end = self.branch(test, false);
        let inside = self.body_of_loop(body);
        self.land(inside.continues);
        self.line = action.at.place.line;
        let mark = self.mark();
        self.form(action.at, &action.form);
        self.free(mark);
        self.jump(Op::Jump(top));
        self.land(end.into_iter().chain(inside.breaks));
    }

    fn foreach(&mut self, name: Name<'t>, set: &Expression<'t>, body: &Block<'t>) {
        let variable = self.variable(name);
        let held = self.reference();
        let mark = self.mark();
        let value = self.value(set);
        self.free(mark);
        let kind = match value.of_type {
            Type::Basic(Basic::Set(kind)) => {
                self.convert(value, value.of_type, held);
                Some(kind)
            }
            Type::Unknown => None,
            other => {
                self.fault(set.at, format!("foreach needs a Set, not {other}"));
                None
            }
        };
        if let (Some(kind), Some(variable)) = (kind, variable)
            && variable.of_type != Type::object(kind)
            && variable.of_type != Type::Unknown
        {
            self.fault(name, format!("'{}' is {}; the set consists of {kind}", name.text, variable.of_type));
        }
        let index = self.word();
        self.word_constant(0, index);
        let to = match variable.map(|variable| variable.place) {
            Some(Place::Local(register)) => register,
            _ => self.word(),
        };
        let top = self.here();
        self.line = name.place.line;
        self.count();
        let next = self.jump(Op::Next { set: held, index, to, exit: LATER });
        if let Some(variable) = variable {
            self.store_global(variable, to);
        }
        let inside = self.body_of_loop(body);
        self.jump(Op::Jump(top));
        self.aim(inside.continues, top);
        self.land([next]);
        if let Some(variable) = variable {
            self.store_global(variable, to);
        }
        self.land(inside.breaks);
    }

    fn store_global(&mut self, variable: Variable, from: Register) {
        if matches!(variable.place, Place::Global(_)) {
            self.store(variable, from);
        }
    }

    fn switch(&mut self, name: Name<'t>, cases: &[Case<'t>], default: Option<&Block<'t>>) -> Passes {
        let value = self.variable(name).map(|variable| self.load(variable));
        let mut seen: Vec<&Constant> = Vec::new();
        let mut ends = Jumps::new();
        let mut passes = false;
        if cases.len() > MOST_CASES {
            self.fault(name, format!("more than {MOST_CASES} cases in a switch"));
        }
        for case in cases.iter().take(MOST_CASES) {
            if let Term::Constant(constant) = &case.value.term {
                if seen.contains(&constant) {
                    self.fault(case.value.at, "a case with this value stands above");
                }
                seen.push(constant);
            }
            let mark = self.mark();
            let taken = self.case_jump(value, case);
            self.free(mark);
            let next = self.jump(Op::Jump(LATER));
            self.land(taken);
            passes |= self.block(&case.body);
            ends.push(self.jump(Op::Jump(LATER)));
            self.land([next]);
        }
        match default {
            Some(block) => passes |= self.block(block),
            None => passes = true,
        }
        self.land(ends);
        passes
    }

    /// The jump that is taken if a case holds.
    fn case_jump(&mut self, value: Option<Value>, case: &Case<'t>) -> Option<usize> {
        self.line = case.value.at.place.line;
        let is_right = match case.value.term {
            Term::Constant(_) => true,
            Term::Variable => case.is_in,
            _ => false,
        };
        if !is_right {
            let needed = if case.is_in { "a constant range, or a variable" } else { "a constant" };
            self.fault(case.value.at, format!("the value of a case is {needed}"));
        }
        let wanted = self.some_value(&case.value);
        let value = value?;
        let op = if case.is_in {
            self.case_in(value, wanted, case.value.at)?
        } else {
            let is_mixed =
                value.of_type != wanted.of_type && !(value.of_type.is_number() && wanted.of_type.is_number());
            if is_mixed && value.of_type != Type::Unknown && wanted.of_type != Type::Unknown {
                let message = format!("the switch is over {}, this case is {}", value.of_type, wanted.of_type);
                self.fault(case.value.at, message);
                return None;
            }
            self.compare(case.value.at, Test::Equal, value, wanted)?
        };
        Some(self.jump(op))
    }

    fn case_in(&mut self, value: Value, wanted: Value, at: Name<'t>) -> Option<Op> {
        let (word, target) = (value.register, LATER);
        match (value.of_type, wanted.of_type) {
            (Type::Unknown, _) | (_, Type::Unknown) => None,
            (Type::Basic(Basic::Object(kind)), Type::Basic(Basic::Set(of))) if kind == of => {
                Some(Op::JumpIfInSet { word, set: wanted.register, target })
            }
            (Type::Basic(basic), Type::Range(scalar)) if basic == scalar.basic() => {
                Some(Op::JumpIfInRange { scalar, word, range: wanted.register, target })
            }
            (one, other) => {
                self.fault(at, format!("the switch is over {one}, which {other} cannot contain"));
                None
            }
        }
    }

    fn print(&mut self, expression: &Expression<'t>) {
        let value = self.some_value(expression);
        self.line = expression.at.place.line;
        let shown = match value.of_type {
            Type::Unknown => return,
            Type::Range(scalar) => Some(Shown::Range(scalar)),
            Type::STRING => Some(Shown::String),
            Type::Basic(Basic::Object(kind)) => Some(Shown::Object(kind)),
            Type::Basic(basic) => basic.scalar().map(Shown::Scalar),
            Type::Fun(_) => None,
        };
        match shown {
            Some(shown) => {
                self.emit(Op::Print { shown, from: value.register });
            }
            None => self.fault(expression.at, format!("print cannot show {}", value.of_type)),
        }
    }

    /// `break` or `continue`.
    fn leave(&mut self, at: Name<'t>, list: impl FnOnce(&mut Loop) -> &mut Jumps) -> Passes {
        let jump = self.jump(Op::Jump(LATER));
        match self.frame.loops.last_mut() {
            Some(inside) => list(inside).push(jump),
            None => self.fault(at, format!("'{}' outside of a loop", at.text)),
        }
        false
    }

    fn return_value(&mut self, at: Name<'t>, value: Option<&Expression<'t>>) -> Passes {
        let result = Type::Basic(self.frame.result);
        match value {
            None if result == Type::VOID => {
                self.emit(Op::ReturnNothing);
            }
            None => self.fault(at, format!("this function returns {result}")),
            Some(value) if result == Type::VOID => {
                self.value(value);
                self.fault(value.at, "this function returns no value: write return()");
            }
            Some(value) => {
                let from = self.register(result);
                self.value_into(value, result, from, "the value of return");
                self.line = at.place.line;
                self.emit(if result.is_reference() { Op::ReturnReference { from } } else { Op::Return { from } });
            }
        }
        false
    }
}
