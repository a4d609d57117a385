//! Runs compiled programs. All calls are frames of one list, so that no program can exhaust the stack of the process.

mod arithmetic;
mod keyed;
mod plain;
mod show;
mod stop;

pub(crate) use stop::Stop;

use crate::{
    actions::Actions,
    code::{Address, Callee, Code, Op, Register, Window, callee},
    globals::Registers,
    limits::{self, Limits},
    moment::{Clock, Moment},
    size::Size,
    syntax::Test,
    text::{Meter, Text},
    types::{Scalar, Type},
    values::{NOTHING, Reference, Set},
    world::World,
};
use std::rc::Rc;

/// A running program.
pub(crate) struct Vm<'a, 'l> {
    code: &'a Code,
    clock: &'a Clock,
    actions: &'a mut dyn Actions,
    limits: &'a mut Limits<'l>,
    world: World,
    pub(crate) globals: Registers,
    /// The strings of the program, and the numbers of the resources of these names.
    texts: Vec<Text>,
    resources: Vec<u32>,
    words: Vec<i64>,
    references: Vec<Reference>,
    frames: Vec<Frame>,
    /// How many searches and sorts are inside each other.
    keyed: usize,
    /// Queues that `QueFilter` made.
    queues_made: usize,
    meter: Meter,
    statements: u64,
    /// The number of statements at which limits are looked at.
    next_look: u64,
    /// Where it was stopped.
    line: Option<u32>,
    printed: String,
    is_cut: bool,
    started: usize,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: u16,
    return_to: Address,
    /// Where its registers start.
    words: usize,
    references: usize,
}

/// What a run leaves.
pub(crate) struct Remains {
    pub(crate) globals: Registers,
    pub(crate) printed: String,
    pub(crate) is_cut: bool,
    pub(crate) statements: u64,
    pub(crate) started: usize,
    /// The line at which it stopped before its end.
    pub(crate) line: u32,
}

impl<'a, 'l> Vm<'a, 'l> {
    pub(crate) fn new(
        code: &'a Code,
        mut world: World,
        globals: Registers,
        clock: &'a Clock,
        actions: &'a mut dyn Actions,
        limits: &'a mut Limits<'l>,
    ) -> Self {
        let resources = code.texts.iter().map(|text| world.resource_number(text)).collect();
        Self {
            code,
            clock,
            actions,
            next_look: limits.statements.saturating_add(1).min(limits::BETWEEN_LOOKS),
            limits,
            world,
            globals,
            texts: code.texts.iter().map(|text| Text::fixed(text)).collect(),
            resources,
            words: Vec::new(),
            references: Vec::new(),
            frames: Vec::new(),
            keyed: 0,
            queues_made: 0,
            meter: Meter::default(),
            statements: 0,
            line: None,
            printed: String::new(),
            is_cut: false,
            started: 0,
        }
    }

    /// Runs a function without parameters to its end.
    pub(crate) fn run(&mut self, function: u16) -> Result<(), Stop> {
        self.invoke(function, 0, 0)
    }

    pub(crate) fn remains(self) -> Remains {
        Remains {
            globals: self.globals,
            printed: self.printed,
            is_cut: self.is_cut,
            statements: self.statements,
            started: self.started,
            line: self.line.unwrap_or(1),
        }
    }

    /// Calls a function whose arguments are in place, and returns when it does.
    fn invoke(&mut self, function: u16, words: usize, references: usize) -> Result<(), Stop> {
        let floor = self.frames.len();
        let start = self.enter(function, words, references, 0)?;
        self.execute(start, floor)
    }

    /// Opens the frame of a call and gives the address of its code.
    #[inline]
    fn enter(&mut self, function: u16, words: usize, references: usize, return_to: Address) -> Result<usize, Stop> {
        let Some(called) = self.code.functions.get(usize::from(function)) else {
            return Err(Stop::fault("a function is missing"));
        };
        if self.frames.len() >= limits::CALLS {
            return Err(Stop::fault(format!("more than {} calls inside each other", limits::CALLS)));
        }
        let most_words = words + usize::from(called.words);
        let most_references = references + usize::from(called.references);
        if most_words > self.words.len() || most_references > self.references.len() {
            if most_words > limits::WORDS || most_references > limits::REFERENCES {
                return Err(Stop::fault("the variables of all calls inside each other need too much memory"));
            }
            self.words.resize(self.words.len().max(most_words), 0);
            self.references.resize(self.references.len().max(most_references), Reference::Null);
        }
        self.frames.push(Frame { function, return_to, words, references });
        Ok(called.start as usize)
    }

    /// Closes the innermost frame. Its strings and sets are given up, except the result.
    #[inline]
    fn leave(&mut self, result: Reference) -> Frame {
        let frame = self.frames.pop().unwrap_or(Frame { function: 0, return_to: 0, words: 0, references: 0 });
        let count = self.code.functions.get(usize::from(frame.function)).map_or(0, |called| called.references);
        let end = (frame.references + usize::from(count)).min(self.references.len());
        self.references[frame.references..end].fill(Reference::Null);
        if !matches!(result, Reference::Null) {
            self.references[frame.references] = result;
        }
        frame
    }

    /// Counts work that is not a statement of its own.
    fn charge(&mut self, count: usize) -> Result<(), Stop> {
        self.statements = self.statements.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if self.statements >= self.next_look { self.look() } else { Ok(()) }
    }

    /// Looks whether the cycle is over.
    #[cold]
    fn look(&mut self) -> Result<(), Stop> {
        if self.statements > self.limits.statements {
            let message =
                format!("more than {} statements in one cycle: is there an endless loop?", self.limits.statements);
            return Err(Stop::fault(message));
        }
        if self.limits.is_over.as_mut().is_some_and(|is_over| is_over()) {
            return Err(Stop::TimeOver);
        }
        let last = self.limits.statements.saturating_add(1);
        self.next_look = self.statements.saturating_add(limits::BETWEEN_LOOKS).min(last);
        Ok(())
    }

    /// Runs from an address until the frames are as few as they were.
    #[expect(clippy::too_many_lines, reason = "one arm for each instruction")]
    fn execute(&mut self, start: usize, floor: usize) -> Result<(), Stop> {
        let code = self.code;
        let (mut words, mut references) = match self.frames.last() {
            Some(frame) => (frame.words, frame.references),
            None => return Ok(()),
        };
        let mut next = start;
        macro_rules! word {
            ($register:expr) => {
                self.words[words + usize::from($register)]
            };
        }
        macro_rules! float {
            ($register:expr) => {
                f64::from_bits(self.words[words + usize::from($register)].cast_unsigned())
            };
        }
        macro_rules! size {
            ($register:expr) => {
                Size::from_word(self.words[words + usize::from($register)])
            };
        }
        macro_rules! reference {
            ($register:expr) => {
                self.references[references + usize::from($register)]
            };
        }
        let stop = 'run: loop {
            macro_rules! attempt {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(stop) => break 'run Stop::from(stop),
                    }
                };
            }
            macro_rules! jump {
                ($condition:expr, $target:expr) => {
                    if $condition {
                        next = $target as usize;
                    }
                };
            }
            macro_rules! returned {
                ($result:expr, $word:expr) => {{
                    let (result, word): (Reference, Option<i64>) = ($result, $word);
                    let frame = self.leave(result);
                    if let Some(word) = word {
                        self.words[frame.words] = word;
                    }
                    if self.frames.len() <= floor {
                        return Ok(());
                    }
                    next = frame.return_to as usize;
                    if let Some(caller) = self.frames.last() {
                        (words, references) = (caller.words, caller.references);
                    }
                }};
            }
            let Some(op) = code.ops.get(next).copied() else { break Stop::fault("the code ends without a return") };
            next += 1;
            match op {
                Op::Steps(count) => {
                    self.statements += u64::from(count);
                    if self.statements >= self.next_look {
                        attempt!(self.look());
                    }
                }
                Op::Word { to, constant } => word!(to) = code.words[constant as usize],
                Op::Text { to, constant } => reference!(to) = Reference::Text(self.texts[constant as usize].clone()),
                Op::Null { to } => reference!(to) = Reference::Null,
                Op::Range { to, constant } => reference!(to) = Reference::Range(code.ranges[constant as usize]),
                Op::Move { to, from } => word!(to) = word!(from),
                Op::MoveReference { to, from } => reference!(to) = reference!(from).clone(),
                Op::Load { to, global } => word!(to) = self.globals.words[usize::from(global)],
                Op::Store { global, from } => self.globals.words[usize::from(global)] = word!(from),
                Op::LoadReference { to, global } => {
                    reference!(to) = self.globals.references[usize::from(global)].clone();
                }
                Op::StoreReference { global, from } => {
                    self.globals.references[usize::from(global)] = reference!(from).clone();
                }
                Op::Step { word, by } => {
                    word!(word) = attempt!(word!(word).checked_add(i64::from(by)).ok_or(arithmetic::INT_RANGE));
                }
                Op::StepFloat { word, by } => {
                    word!(word) = attempt!(arithmetic::finite(float!(word) + f64::from(by)));
                }
                Op::Int { arithmetic, to, left, right } => {
                    word!(to) = attempt!(arithmetic::int(arithmetic, word!(left), word!(right)));
                }
                Op::Float { arithmetic, to, left, right } => {
                    word!(to) = attempt!(arithmetic::float(arithmetic, float!(left), float!(right)));
                }
                Op::Size { arithmetic, to, left, right } => {
                    word!(to) = attempt!(arithmetic::size(arithmetic, size!(left), size!(right)));
                }
                Op::Join { to, left, right } => {
                    reference!(to) = attempt!(join(&reference!(left), &reference!(right), &self.meter));
                }
                Op::NegateInt { to, from } => {
                    word!(to) = attempt!(word!(from).checked_neg().ok_or(arithmetic::INT_RANGE));
                }
                Op::NegateFloat { to, from } => word!(to) = (-float!(from)).to_bits().cast_signed(),
                Op::NegateSize { to, from } => word!(to) = size!(from).negated().to_word(),
                Op::ToFloat { to, from } => word!(to) = (word!(from) as f64).to_bits().cast_signed(),
                Op::ToInt { to, from } => word!(to) = attempt!(arithmetic::truncated(float!(from))),
                Op::Jump(target) => next = target as usize,
                Op::JumpIfZero { word, target } => jump!(word!(word) == 0, target),
                Op::JumpUnlessZero { word, target } => jump!(word!(word) != 0, target),
                Op::JumpIfInt { test, left, right, target } => jump!(test.holds(&word!(left), &word!(right)), target),
                Op::JumpIfFloat { test, left, right, target } => {
                    jump!(test.holds(&float!(left), &float!(right)), target);
                }
                Op::JumpIfSize { test, left, right, target } => {
                    let order = size!(left).order(size!(right)) as i8;
                    jump!(test.holds(&order, &0), target);
                }
                Op::JumpIfMoment { test, left, right, target } => {
                    let (left, right) = (self.seconds(word!(left)), self.seconds(word!(right)));
                    jump!(test.holds(&left, &right), target);
                }
                Op::JumpIfText { test, left, right, target } => {
                    jump!(test.holds(&reference!(left).text(), &reference!(right).text()), target);
                }
                Op::JumpIfSet { test, left, right, target } => {
                    let is_same = are_same(&reference!(left), &reference!(right));
                    jump!(is_same == (test == Test::Equal), target);
                }
                Op::JumpIfInRange { scalar, word, range, target } => {
                    let is_inside = self.is_in_range(scalar, word!(word), reference!(range).range());
                    jump!(is_inside, target);
                }
                Op::JumpIfInSet { word, set, target } => {
                    jump!(is_in_set(word!(word), &reference!(set)), target);
                }
                Op::Next { set, index, to, exit } => {
                    let place = word!(index);
                    match reference!(set).set().and_then(|set| element(set, place)) {
                        Some(element) => {
                            word!(to) = element;
                            word!(index) = place + 1;
                        }
                        None => {
                            word!(to) = NOTHING;
                            next = exit as usize;
                        }
                    }
                }
                Op::Get { getter, to, object } => word!(to) = self.world.word(getter, word!(object)),
                Op::GetReference { getter, to, object } => {
                    reference!(to) = self.world.reference(getter, word!(object));
                }
                Op::GetNamed { named, to, object, name } => {
                    let name = reference!(name).text();
                    word!(to) = self.world.named_word(named, word!(object), self.world.resource(name), name);
                }
                Op::GetNamedReference { named, to, object, name } => {
                    let name = reference!(name).text();
                    let found = self.world.named_reference(named, word!(object), self.world.resource(name), name);
                    reference!(to) = found;
                }
                Op::GetKnown { named, to, object, constant } => {
                    let (number, name) = self.known(constant);
                    word!(to) = self.world.named_word(named, word!(object), Some(number), name);
                }
                Op::GetKnownReference { named, to, object, constant } => {
                    let (number, name) = self.known(constant);
                    let found = self.world.named_reference(named, word!(object), Some(number), name);
                    reference!(to) = found;
                }
                Op::Plain { plain, window } => {
                    let window = at(words, references, window);
                    attempt!(self.plain(plain, window));
                }
                Op::Sort { key, kind, window } => {
                    let window = at(words, references, window);
                    attempt!(self.sort(key, kind, window));
                }
                Op::Find { key, has_value, window } => {
                    let window = at(words, references, window);
                    attempt!(self.find(key, has_value, window));
                }
                Op::Filter { key, window } => {
                    let window = at(words, references, window);
                    attempt!(self.filter(key, window));
                }
                Op::Call { function, window } => {
                    let at = at(words, references, window);
                    let return_to = Address::try_from(next).unwrap_or(Address::MAX);
                    next = attempt!(self.enter(function, at.words, at.references, return_to));
                    (words, references) = (at.words, at.references);
                }
                Op::CallValue { callee: register, shape, window } => {
                    let at = at(words, references, window);
                    if let Some(function) = attempt!(self.called(word!(register), shape, at)) {
                        let return_to = Address::try_from(next).unwrap_or(Address::MAX);
                        next = attempt!(self.enter(function, at.words, at.references, return_to));
                        (words, references) = (at.words, at.references);
                    }
                }
                Op::Return { from } => returned!(Reference::Null, Some(word!(from))),
                Op::ReturnReference { from } => returned!(std::mem::take(&mut reference!(from)), None),
                Op::ReturnNothing => returned!(Reference::Null, None),
                Op::Print { shown, from } => {
                    let (word, value) = (self.register(words, from), self.reference(references, from));
                    self.print(shown, word, &value);
                }
                Op::Exit { from } => break Stop::Exit(word!(from)),
            }
        };
        let line = next.checked_sub(1).and_then(|place| code.lines.get(place)).copied();
        self.line = self.line.or(line);
        Err(stop)
    }

    /// A word, if the frame has so many.
    fn register(&self, words: usize, register: Register) -> i64 {
        self.words.get(words + usize::from(register)).copied().unwrap_or_default()
    }

    fn reference(&self, references: usize, register: Register) -> Reference {
        self.references.get(references + usize::from(register)).cloned().unwrap_or_default()
    }

    fn seconds(&self, word: i64) -> i64 {
        self.clock.seconds(Moment::from_word(word))
    }

    /// A string of the program and the number of the resource of this name.
    fn known(&self, constant: u16) -> (u32, &str) {
        let place = usize::from(constant);
        (self.resources[place], self.texts[place].as_str())
    }

    fn is_in_range(&self, scalar: Scalar, word: i64, [low, high]: [i64; 2]) -> bool {
        let float = |word: i64| f64::from_bits(word.cast_unsigned());
        match scalar {
            Scalar::Int | Scalar::Dayofweek => low <= word && word <= high,
            Scalar::Float => float(low) <= float(word) && float(word) <= float(high),
            Scalar::Size => {
                let word = Size::from_word(word);
                word.order(Size::from_word(low)).is_ge() && word.order(Size::from_word(high)).is_le()
            }
            Scalar::DateTime => {
                let [low, high, at] = [low, high, word].map(Moment::from_word);
                self.clock.contains(low, high, at)
            }
        }
    }

    /// A call of a function that is a value: that of the program which is to be entered, or nothing if a getter did it.
    fn called(&mut self, value: i64, shape: u16, at: At) -> Result<Option<u16>, Stop> {
        let shape: &[Type] = self.code.shapes.get(usize::from(shape)).map_or(&[], Vec::as_slice);
        match callee(value) {
            Some(Callee::Function(number)) => {
                let function = self.code.functions.get(usize::from(number));
                match function {
                    Some(function) if function.parameters == shape => Ok(Some(number)),
                    _ => {
                        let name = function.map_or("", |function| function.name.as_str());
                        Err(Stop::fault(format!("'{name}' does not take these arguments")))
                    }
                }
            }
            Some(Callee::Getter(getter, kind, result)) if shape == [Type::object(kind)] => {
                let object = self.words[at.words];
                match Type::Basic(result).is_reference() {
                    true => self.references[at.references] = self.world.reference(getter, object),
                    false => self.words[at.words] = self.world.word(getter, object),
                }
                Ok(None)
            }
            _ => Err(Stop::fault("a predefined function does not take these arguments")),
        }
    }
}

/// The window of a call among all registers.
#[derive(Clone, Copy, Debug)]
struct At {
    words: usize,
    references: usize,
}

fn at(words: usize, references: usize, window: Window) -> At {
    At { words: words + usize::from(window.words), references: references + usize::from(window.references) }
}

/// Two strings behind each other.
fn join(left: &Reference, right: &Reference, meter: &Meter) -> Result<Reference, Stop> {
    let length = left.text().len() + right.text().len();
    if length > limits::TEXT {
        return Err(Stop::fault(format!("a string has {length} bytes; the maximum is {}", limits::TEXT)));
    }
    if meter.get() + length > limits::TEXTS {
        return Err(Stop::fault(format!("all strings together have more than {} bytes", limits::TEXTS)));
    }
    // A string that is joined with nothing stays as it is.
    match (left, right) {
        (left, Reference::Null) => Ok(left.clone()),
        (Reference::Null, right) => Ok(right.clone()),
        (left, right) => Ok(Reference::Text(Text::joined(left.text(), right.text(), meter))),
    }
}

fn element(set: &Set, place: i64) -> Option<i64> {
    let place = usize::try_from(place).ok()?;
    set.borrow().get(place).map(|element| i64::from(*element))
}

fn is_in_set(word: i64, set: &Reference) -> bool {
    let Ok(word) = u32::try_from(word) else { return false };
    set.set().is_some_and(|set| set.borrow().contains(&word))
}

/// Whether two sets have the same elements in the same order.
fn are_same(left: &Reference, right: &Reference) -> bool {
    match (left.set(), right.set()) {
        (Some(left), Some(right)) => Rc::ptr_eq(left, right) || *left.borrow() == *right.borrow(),
        (Some(one), None) | (None, Some(one)) => one.borrow().is_empty(),
        (None, None) => true,
    }
}
