//! The state of a compilation: code so far, registers in use, names, and the mistakes.

use super::scopes::{Place, Scopes, Symbol, Variable};
use crate::{
    code::{Address, Code, Op, Register, Window},
    constants,
    fault::Faults,
    functions,
    syntax::{Item, Name, Source},
    types::{Basic, Type},
    words::suggestion,
};
use std::collections::{HashMap, HashSet};

/// Registers of a frame in each file.
const MOST_REGISTERS: Register = 4096;

/// Compiles one program.
pub(super) struct Compiler<'t, 'f> {
    pub(super) code: Code,
    pub(super) scopes: Scopes<'t>,
    pub(super) frame: Frame,
    /// The line of the instructions that are emitted.
    pub(super) line: u32,
    /// The instruction that counts statements, while no jump has come since.
    counting: Option<usize>,
    /// The place of each string among the constants.
    texts: HashMap<String, u32>,
    /// Globals so far: words and references.
    pub(super) globals: [usize; 2],
    /// Names that the text defines somewhere.
    later: HashSet<&'t str>,
    faults: &'f mut Faults,
}

/// The function that is compiled.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) result: Basic,
    /// The next free registers, and the most that were in use.
    words: Register,
    references: Register,
    most_words: Register,
    most_references: Register,
    pub(super) loops: Vec<Loop>,
}

/// The jumps out of a loop and to its next round, whose targets are set at its end.
#[derive(Debug, Default)]
pub(super) struct Loop {
    pub(super) breaks: Vec<usize>,
    pub(super) continues: Vec<usize>,
}

/// How many registers were in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(Register, Register);

/// Jumps whose target is not known yet.
pub(super) type Jumps = Vec<usize>;

impl Frame {
    fn new(result: Basic) -> Self {
        Self { result, words: 0, references: 0, most_words: 1, most_references: 1, loops: Vec::new() }
    }
}

impl<'t, 'f> Compiler<'t, 'f> {
    pub(super) fn new(source: &Source<'t>, faults: &'f mut Faults) -> Self {
        let name = |item: &Item<'t>| match item {
            Item::Variable(declaration) => declaration.name.text,
            Item::Function(function) => function.name.text,
        };
        let mut scopes = Scopes::default();
        scopes.open();
        Self {
            code: Code::default(),
            scopes,
            frame: Frame::new(Basic::Void),
            line: 1,
            counting: None,
            texts: HashMap::new(),
            globals: [0, 0],
            later: source.items.iter().map(name).collect(),
            faults,
        }
    }

    pub(super) fn fault(&mut self, at: Name<'_>, message: impl Into<String>) {
        self.faults.add(at.place, at.text, message);
    }

    /// Tells that a name means nothing here.
    pub(super) fn unknown(&mut self, at: Name<'_>, what: &str) {
        if self.faults.is_full() {
            return;
        }
        if self.later.contains(at.text) {
            return self.fault(at, format!("{what} '{}' is used before its definition", at.text));
        }
        let mut known: Vec<&str> = functions::names().chain(constants::names()).collect();
        known.extend(self.scopes.names());
        let near = suggestion(at.text, known);
        self.fault(at, format!("unknown {what} '{}'{near}", at.text));
    }

    /// Begins the frame of a function and gives the address of its code.
    pub(super) fn begin(&mut self, result: Basic) -> Address {
        self.frame = Frame::new(result);
        self.counting = None;
        self.here()
    }

    /// The sizes of the frame: words and references.
    pub(super) fn sizes(&mut self, at: Name<'_>) -> (u16, u16) {
        let (words, references) = (self.frame.most_words, self.frame.most_references);
        if words > MOST_REGISTERS || references > MOST_REGISTERS {
            self.fault(at, format!("more than {MOST_REGISTERS} variables and values at one time"));
        }
        (words, references)
    }

    pub(super) fn emit(&mut self, op: Op) -> usize {
        self.code.ops.push(op);
        self.code.lines.push(self.line);
        self.code.ops.len() - 1
    }

    /// Counts a statement.
    pub(super) fn count(&mut self) {
        if let Some(Op::Steps(count)) = self.counting.and_then(|place| self.code.ops.get_mut(place)) {
            *count += 1;
        } else {
            self.counting = Some(self.emit(Op::Steps(1)));
        }
    }

    /// Where the next instruction will be. Jumps may lead here, so statements are counted afresh.
    pub(super) fn here(&mut self) -> Address {
        self.counting = None;
        Address::try_from(self.code.ops.len()).unwrap_or(Address::MAX)
    }

    /// Emits a jump whose target is set later.
    pub(super) fn jump(&mut self, op: Op) -> usize {
        self.counting = None;
        self.emit(op)
    }

    /// Lets jumps lead to the next instruction.
    pub(super) fn land(&mut self, jumps: impl IntoIterator<Item = usize>) {
        let here = self.here();
        self.aim(jumps, here);
    }

    /// Lets jumps lead to an address.
    pub(super) fn aim(&mut self, jumps: impl IntoIterator<Item = usize>, address: Address) {
        for jump in jumps {
            if let Some(target) = self.code.ops.get_mut(jump).and_then(Op::target) {
                *target = address;
            }
        }
    }

    pub(super) fn word(&mut self) -> Register {
        let register = self.frame.words;
        self.frame.words = register.saturating_add(1);
        self.frame.most_words = self.frame.most_words.max(self.frame.words);
        register
    }

    pub(super) fn reference(&mut self) -> Register {
        let register = self.frame.references;
        self.frame.references = register.saturating_add(1);
        self.frame.most_references = self.frame.most_references.max(self.frame.references);
        register
    }

    /// A register in the file for a type.
    pub(super) fn register(&mut self, of_type: Type) -> Register {
        if of_type.is_reference() { self.reference() } else { self.word() }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.frame.words, self.frame.references)
    }

    /// Frees the registers that were taken since a mark.
    pub(super) fn free(&mut self, mark: Mark) {
        (self.frame.words, self.frame.references) = (mark.0, mark.1);
    }

    /// The window that starts at the next free registers.
    pub(super) fn window(&self) -> Window {
        Window { words: self.frame.words, references: self.frame.references }
    }

    /// The place of a word among the constants.
    pub(super) fn constant(&mut self, word: i64) -> u32 {
        place_in(&mut self.code.words, word)
    }

    pub(super) fn text_constant(&mut self, text: &str) -> u32 {
        if let Some(place) = self.texts.get(text) {
            return *place;
        }
        let place = u32::try_from(self.code.texts.len()).unwrap_or(u32::MAX);
        self.code.texts.push(text.to_owned());
        self.texts.insert(text.to_owned(), place);
        place
    }

    pub(super) fn range_constant(&mut self, range: [i64; 2]) -> u32 {
        place_in(&mut self.code.ranges, range)
    }

    /// Gives a variable of the innermost block a register and its first value.
    pub(super) fn declare(&mut self, name: Name<'t>, of_type: Type) -> Register {
        let register = self.register(of_type);
        let variable = Variable { of_type, place: Place::Local(register) };
        if !self.scopes.add(name.text, Symbol::Variable(variable)) {
            self.fault(name, format!("'{}' is declared twice in this block", name.text));
        }
        register
    }

    /// The variable of a name, which must be one.
    pub(super) fn variable(&mut self, at: Name<'_>) -> Option<Variable> {
        match self.scopes.find(at.text) {
            Some(Symbol::Variable(variable)) => Some(variable),
            Some(Symbol::Function(_)) => {
                self.fault(at, format!("'{}' is a function, not a variable", at.text));
                None
            }
            None => {
                self.unknown(at, "variable");
                None
            }
        }
    }
}

/// Constants are few in programs that people write; a search among the last ones keeps a long list fast.
fn place_in<T: PartialEq>(list: &mut Vec<T>, value: T) -> u32 {
    const LOOKED_AT: usize = 64;
    let first = list.len().saturating_sub(LOOKED_AT);
    let known = list.iter().skip(first).position(|known| *known == value).map(|place| first + place);
    let place = known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    });
    u32::try_from(place).unwrap_or(u32::MAX)
}
