//! Calls of the program's functions and of predefined ones.

use super::{
    emitter::Compiler,
    expressions::{Value, WRONG},
    scopes::{Symbol, Variable},
};
use crate::{
    code::{Key, Op, Window},
    constants::number,
    functions::{self, Builtin},
    getters::Named,
    syntax::{Constant, Expression, Name, Term},
    types::{Basic, Kind, Type},
};

impl<'t> Compiler<'t, '_> {
    pub(super) fn call(&mut self, at: Name<'t>, arguments: &[Expression<'t>]) -> Value {
        match self.scopes.find(at.text) {
            Some(Symbol::Function(number)) => self.call_function(at, number, arguments),
            Some(Symbol::Variable(variable)) => self.call_variable(at, variable, arguments),
            None => match functions::builtin(at.text) {
                Some(builtin) => self.call_builtin(at, builtin, arguments),
                None => {
                    self.unknown(at, "function");
                    for argument in arguments {
                        self.value(argument);
                    }
                    WRONG
                }
            },
        }
    }

    /// Computes arguments to the start of a window. Whether their number is right.
    fn arguments(&mut self, at: Name<'t>, parameters: &[Type], arguments: &[Expression<'t>]) -> Option<Window> {
        let window = self.window();
        for (place, argument) in arguments.iter().enumerate() {
            match parameters.get(place) {
                Some(of_type) => {
                    let to = self.register(*of_type);
                    self.value_into(argument, *of_type, to, &format!("argument {} of {}", place + 1, at.text));
                }
                None => {
                    self.value(argument);
                }
            }
        }
        self.line = at.place.line;
        if parameters.len() != arguments.len() {
            self.wrong_count(at, &parameters.len().to_string(), arguments.len());
            return None;
        }
        Some(window)
    }

    fn wrong_count(&mut self, at: Name<'t>, needed: &str, given: usize) {
        let plural = if needed == "1" { "" } else { "s" };
        self.fault(at, format!("'{}' takes {needed} argument{plural}, not {given}", at.text));
    }

    /// The result at the start of a window, in registers that stay taken.
    fn result(&mut self, window: Window, result: Basic) -> Value {
        let of_type = Type::Basic(result);
        let register = if of_type.is_reference() { window.references } else { window.words };
        Value { of_type, register }
    }

    /// Emits a call and leaves only its result in a register.
    fn finish(&mut self, mark: super::emitter::Mark, op: Op, window: Window, result: Basic) -> Value {
        self.emit(op);
        self.free(mark);
        self.register(Type::Basic(result));
        self.result(window, result)
    }

    fn call_function(&mut self, at: Name<'t>, number: u16, arguments: &[Expression<'t>]) -> Value {
        let Some(function) = self.code.functions.get(usize::from(number)) else { return WRONG };
        let (parameters, result) = (function.parameters.clone(), function.result);
        let mark = self.mark();
        let window = self.arguments(at, &parameters, arguments);
        let op = Op::Call { function: number, window: window.unwrap_or(self.window()) };
        self.finish(mark, op, window.unwrap_or(self.window()), result)
    }

    /// A call of a function that is a parameter. What it takes is known only when it is called.
    fn call_variable(&mut self, at: Name<'t>, variable: Variable, arguments: &[Expression<'t>]) -> Value {
        let Type::Fun(result) = variable.of_type else {
            if variable.of_type != Type::Unknown {
                self.fault(at, format!("'{}' is {}, not a function", at.text, variable.of_type));
            }
            return WRONG;
        };
        let mark = self.mark();
        let callee = self.load(variable).register;
        let window = self.window();
        let mut shape = Vec::new();
        for argument in arguments {
            let inner = self.mark();
            let value = self.some_value(argument);
            self.free(inner);
            let to = self.register(value.of_type);
            self.convert(value, value.of_type, to);
            shape.push(value.of_type);
        }
        self.line = at.place.line;
        self.code.shapes.push(shape);
        let Ok(shape) = u16::try_from(self.code.shapes.len() - 1) else {
            self.fault(at, "too many calls of functions that are parameters");
            return WRONG;
        };
        self.finish(mark, Op::CallValue { callee, shape, window }, window, result)
    }

    fn call_builtin(&mut self, at: Name<'t>, builtin: Builtin, arguments: &[Expression<'t>]) -> Value {
        match builtin {
            Builtin::Getter(getter, kind, result) => {
                let Some(object) = self.object_argument(at, kind, 1, arguments) else { return WRONG };
                let to = self.register(Type::Basic(result));
                self.emit(match Type::Basic(result).is_reference() {
                    true => Op::GetReference { getter, to, object },
                    false => Op::Get { getter, to, object },
                });
                Value { of_type: Type::Basic(result), register: to }
            }
            Builtin::Named(named, kind, result) => self.call_named(at, named, kind, result, arguments),
            Builtin::Plain(plain, parameters, result) => {
                let mark = self.mark();
                let Some(window) = self.arguments(at, parameters, arguments) else { return WRONG };
                self.finish(mark, Op::Plain { plain, window }, window, result)
            }
            Builtin::Sort => self.call_sort(at, arguments),
            Builtin::QueJobFind => self.call_search(at, false, arguments),
            Builtin::QueFilter => self.call_search(at, true, arguments),
        }
    }

    /// The register of the first argument, an object.
    fn object_argument(
        &mut self,
        at: Name<'t>,
        kind: Kind,
        count: usize,
        arguments: &[Expression<'t>],
    ) -> Option<crate::code::Register> {
        if arguments.len() != count {
            self.wrong_count(at, &count.to_string(), arguments.len());
        }
        let (first, rest) = arguments.split_first()?;
        let value = self.value(first);
        self.line = at.place.line;
        if arguments.len() != count {
            for argument in rest {
                self.value(argument);
            }
            return None;
        }
        let is_right = value.of_type == Type::object(kind);
        if !is_right && value.of_type != Type::Unknown {
            let message = format!("argument 1 of {} is {kind}, not {}", at.text, value.of_type);
            self.fault(first.at, message);
        }
        is_right.then_some(value.register)
    }

    fn call_named(
        &mut self,
        at: Name<'t>,
        named: Named,
        kind: Kind,
        result: Basic,
        arguments: &[Expression<'t>],
    ) -> Value {
        let of_type = Type::Basic(result);
        let object = self.object_argument(at, kind, 2, arguments);
        let Some(name) = arguments.get(1).filter(|_| arguments.len() == 2) else { return WRONG };
        if let Term::Constant(Constant::String(Some(text))) = &name.term
            && let Ok(constant) = u16::try_from(self.text_constant(text))
        {
            let Some(object) = object else { return WRONG };
            let to = self.register(of_type);
            self.emit(match of_type.is_reference() {
                true => Op::GetKnownReference { named, to, object, constant },
                false => Op::GetKnown { named, to, object, constant },
            });
            return Value { of_type, register: to };
        }
        let register = self.reference();
        self.value_into(name, Type::STRING, register, &format!("argument 2 of {}", at.text));
        self.line = at.place.line;
        let Some(object) = object else { return WRONG };
        let to = self.register(of_type);
        self.emit(match of_type.is_reference() {
            true => Op::GetNamedReference { named, to, object, name: register },
            false => Op::GetNamed { named, to, object, name: register },
        });
        Value { of_type, register: to }
    }

    /// `Sort(set, key, order)`
    fn call_sort(&mut self, at: Name<'t>, arguments: &[Expression<'t>]) -> Value {
        let [set, key, order] = arguments else {
            self.wrong_count(at, "3", arguments.len());
            return WRONG;
        };
        let mark = self.mark();
        let window = self.window();
        let set_register = self.reference();
        let inner = self.mark();
        let value = self.value(set);
        self.free(inner);
        let kind = match value.of_type {
            Type::Basic(Basic::Set(kind)) => {
                self.convert(value, value.of_type, set_register);
                Some(kind)
            }
            Type::Unknown => None,
            other => {
                self.fault(set.at, format!("argument 1 of Sort is a Set, not {other}"));
                None
            }
        };
        let key = self.key(at, key, kind);
        let order_register = self.word();
        self.value_into(order, Type::INT, order_register, "argument 3 of Sort");
        let (Some(kind), Some(key)) = (kind, key) else { return WRONG };
        self.line = at.place.line;
        self.finish(mark, Op::Sort { key, kind, window }, window, Basic::Int)
    }

    /// Computes a key function into the next word and tells what it returns.
    fn key(&mut self, at: Name<'t>, function: &Expression<'t>, kind: Option<Kind>) -> Option<Key> {
        let to = self.word();
        let mark = self.mark();
        let value = self.value(function);
        self.free(mark);
        let result = match value.of_type {
            Type::Fun(result) => result,
            Type::Unknown => return None,
            other => {
                self.fault(function.at, format!("argument 2 of {} is a function, not {other}", at.text));
                return None;
            }
        };
        self.convert(value, value.of_type, to);
        if let (Some(kind), Some(parameters)) = (kind, self.parameters_of(function))
            && parameters != [Type::object(kind)]
        {
            self.fault(function.at, format!("the one parameter of a key function of {} must be {kind}", at.text));
            return None;
        }
        let key = Key::of(result);
        if key.is_none() {
            self.fault(function.at, format!("a key function cannot return {result}"));
        }
        key
    }

    /// The parameters of a function that an expression names, if it names one.
    fn parameters_of(&self, expression: &Expression<'t>) -> Option<Vec<Type>> {
        if !matches!(expression.term, Term::Variable) {
            return None;
        }
        match self.scopes.find(expression.at.text) {
            Some(Symbol::Function(number)) => {
                self.code.functions.get(usize::from(number)).map(|function| function.parameters.clone())
            }
            Some(Symbol::Variable(_)) => None,
            None => match functions::builtin(expression.at.text)? {
                Builtin::Getter(_, kind, _) => Some(vec![Type::object(kind)]),
                _ => None,
            },
        }
    }

    /// `QueJobFind(que, key, comparison[, value])` or `QueFilter(que, key, comparison, value)`
    fn call_search(&mut self, at: Name<'t>, is_filter: bool, arguments: &[Expression<'t>]) -> Value {
        let (que, key, test, wanted) = match arguments {
            [que, key, test, wanted] => (que, key, test, Some(wanted)),
            [que, key, test] if !is_filter => (que, key, test, None),
            _ => {
                self.wrong_count(at, if is_filter { "4" } else { "3 or 4" }, arguments.len());
                return WRONG;
            }
        };
        let mark = self.mark();
        let window = self.window();
        let que_register = self.word();
        self.value_into(que, Type::object(Kind::Que), que_register, &format!("argument 1 of {}", at.text));
        let key = self.key(at, key, Some(Kind::Job));
        let test_register = self.word();
        self.value_into(test, Type::INT, test_register, &format!("argument 3 of {}", at.text));
        self.check_test(test, wanted.is_some());
        if let (Some(wanted), Some(key)) = (wanted, key) {
            self.wanted(at, wanted, key);
        }
        self.line = at.place.line;
        let Some(key) = key else { return WRONG };
        match is_filter {
            true => self.finish(mark, Op::Filter { key, window }, window, Basic::Object(Kind::Que)),
            false => {
                let op = Op::Find { key, has_value: wanted.is_some(), window };
                self.finish(mark, op, window, Basic::Object(Kind::Job))
            }
        }
    }

    /// The value with which keys are compared: of the key's type, or `Int` for `Float`.
    fn wanted(&mut self, at: Name<'t>, wanted: &Expression<'t>, key: Key) {
        let of_type = match key {
            Key::Int => Type::INT,
            Key::Float => Type::FLOAT,
            Key::String => Type::STRING,
            Key::DateTime => Type::DATETIME,
            Key::Size => Type::SIZE,
        };
        let to = self.register(of_type);
        let mark = self.mark();
        let value = self.value(wanted);
        self.free(mark);
        let is_right = value.of_type == of_type || (value.of_type == Type::INT && of_type == Type::FLOAT);
        match value.of_type {
            Type::Unknown => {}
            _ if is_right => self.convert(value, of_type, to),
            other => {
                self.fault(wanted.at, format!("argument 4 of {} is {of_type}, as the key is, not {other}", at.text))
            }
        }
    }

    /// A comparison that the text names must go with the number of arguments.
    fn check_test(&mut self, test: &Expression<'t>, has_value: bool) {
        let Term::Constant(Constant::Int(value)) = test.term else { return };
        let is_extreme = matches!(value, number::OP_MAX | number::OP_MIN);
        let message = match (value, has_value) {
            (number::OP_EQ..=number::OP_LE, true) => return,
            _ if is_extreme && !has_value => return,
            (_, true) => "a comparison with a value is OP_EQ, OP_NEQ, OP_LT, OP_LE, OP_GT or OP_GE",
            (_, false) => "without a value the comparison is OP_MAX or OP_MIN",
        };
        self.fault(test.at, message);
    }
}
