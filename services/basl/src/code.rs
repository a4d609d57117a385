//! What programs are compiled to: instructions for a machine with two files of registers. Words hold numbers, days,
//! moments, sizes and objects; references hold strings, sets and ranges.

use crate::{
    functions::Plain,
    getters::{Getter, Named},
    syntax::{Arithmetic, Test},
    types::{Basic, Kind, Scalar, Type},
};

/// A register, counted from the start of the frame of its function.
pub(crate) type Register = u16;
/// The place of an instruction.
pub(crate) type Address = u32;

/// An instruction. `to` is where the result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Counts statements.
    Steps(u32),
    Word {
        to: Register,
        constant: u32,
    },
    Text {
        to: Register,
        constant: u32,
    },
    /// `NULLSTR` or an empty set.
    Null {
        to: Register,
    },
    Range {
        to: Register,
        constant: u32,
    },
    Move {
        to: Register,
        from: Register,
    },
    MoveReference {
        to: Register,
        from: Register,
    },
    Load {
        to: Register,
        global: u16,
    },
    Store {
        global: u16,
        from: Register,
    },
    LoadReference {
        to: Register,
        global: u16,
    },
    StoreReference {
        global: u16,
        from: Register,
    },
    Step {
        word: Register,
        by: i8,
    },
    StepFloat {
        word: Register,
        by: i8,
    },
    Int {
        arithmetic: Arithmetic,
        to: Register,
        left: Register,
        right: Register,
    },
    Float {
        arithmetic: Arithmetic,
        to: Register,
        left: Register,
        right: Register,
    },
    Size {
        arithmetic: Arithmetic,
        to: Register,
        left: Register,
        right: Register,
    },
    Join {
        to: Register,
        left: Register,
        right: Register,
    },
    NegateInt {
        to: Register,
        from: Register,
    },
    NegateFloat {
        to: Register,
        from: Register,
    },
    NegateSize {
        to: Register,
        from: Register,
    },
    ToFloat {
        to: Register,
        from: Register,
    },
    ToInt {
        to: Register,
        from: Register,
    },
    Jump(Address),
    JumpIfZero {
        word: Register,
        target: Address,
    },
    JumpUnlessZero {
        word: Register,
        target: Address,
    },
    JumpIfInt {
        test: Test,
        left: Register,
        right: Register,
        target: Address,
    },
    JumpIfFloat {
        test: Test,
        left: Register,
        right: Register,
        target: Address,
    },
    JumpIfSize {
        test: Test,
        left: Register,
        right: Register,
        target: Address,
    },
    JumpIfMoment {
        test: Test,
        left: Register,
        right: Register,
        target: Address,
    },
    JumpIfText {
        test: Test,
        left: Register,
        right: Register,
        target: Address,
    },
    JumpIfSet {
        test: Test,
        left: Register,
        right: Register,
        target: Address,
    },
    JumpIfInRange {
        scalar: Scalar,
        word: Register,
        range: Register,
        target: Address,
    },
    JumpIfInSet {
        word: Register,
        set: Register,
        target: Address,
    },
    /// The next element of a set, or nothing and a jump after the last one.
    Next {
        set: Register,
        index: Register,
        to: Register,
        exit: Address,
    },
    Get {
        getter: Getter,
        to: Register,
        object: Register,
    },
    GetReference {
        getter: Getter,
        to: Register,
        object: Register,
    },
    /// By the name that a register holds.
    GetNamed {
        named: Named,
        to: Register,
        object: Register,
        name: Register,
    },
    GetNamedReference {
        named: Named,
        to: Register,
        object: Register,
        name: Register,
    },
    /// By a name that the program's text has.
    GetKnown {
        named: Named,
        to: Register,
        object: Register,
        constant: u16,
    },
    GetKnownReference {
        named: Named,
        to: Register,
        object: Register,
        constant: u16,
    },
    /// Calls have their arguments, and their result, at the start of a window of registers.
    Plain {
        plain: Plain,
        window: Window,
    },
    Sort {
        key: Key,
        kind: Kind,
        window: Window,
    },
    /// The second word of the window is the key function. With a value, it comes last.
    Find {
        key: Key,
        has_value: bool,
        window: Window,
    },
    Filter {
        key: Key,
        window: Window,
    },
    Call {
        function: u16,
        window: Window,
    },
    /// A call of a function that a register holds; the shape has the types of the arguments.
    CallValue {
        callee: Register,
        shape: u16,
        window: Window,
    },
    Return {
        from: Register,
    },
    ReturnReference {
        from: Register,
    },
    ReturnNothing,
    Print {
        shown: Shown,
        from: Register,
    },
    Exit {
        from: Register,
    },
}

impl Op {
    /// Where it may jump to.
    pub(crate) fn target(&mut self) -> Option<&mut Address> {
        match self {
            Self::Jump(target)
            | Self::JumpIfZero { target, .. }
            | Self::JumpUnlessZero { target, .. }
            | Self::JumpIfInt { target, .. }
            | Self::JumpIfFloat { target, .. }
            | Self::JumpIfSize { target, .. }
            | Self::JumpIfMoment { target, .. }
            | Self::JumpIfText { target, .. }
            | Self::JumpIfSet { target, .. }
            | Self::JumpIfInRange { target, .. }
            | Self::JumpIfInSet { target, .. }
            | Self::Next { exit: target, .. } => Some(target),
            _ => None,
        }
    }
}

/// Where the arguments of a call start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) words: Register,
    pub(crate) references: Register,
}

/// What key functions return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Int,
    Float,
    String,
    DateTime,
    Size,
}

impl Key {
    /// The key of a type, if sets can be sorted by it.
    pub(crate) const fn of(basic: Basic) -> Option<Self> {
        match basic {
            Basic::Int => Some(Self::Int),
            Basic::Float => Some(Self::Float),
            Basic::String => Some(Self::String),
            Basic::DateTime => Some(Self::DateTime),
            Basic::Size => Some(Self::Size),
            Basic::Void | Basic::Dayofweek | Basic::Object(_) | Basic::Set(_) => None,
        }
    }
}

/// How `print` shows a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Scalar(Scalar),
    String,
    Object(Kind),
    Range(Scalar),
}

/// A compiled function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Basic,
    /// Its first instruction.
    pub(crate) start: Address,
    /// Registers of its frame.
    pub(crate) words: u16,
    pub(crate) references: u16,
}

/// A global variable. Its number counts globals of the same file of registers.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    pub(crate) name: String,
    pub(crate) of_type: Type,
    pub(crate) number: u16,
}

/// A whole program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// The line of each instruction.
    pub(crate) lines: Vec<u32>,
    pub(crate) words: Vec<i64>,
    pub(crate) texts: Vec<String>,
    pub(crate) ranges: Vec<[i64; 2]>,
    pub(crate) shapes: Vec<Vec<Type>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) globals: Vec<Global>,
    /// The function of the assignments to globals.
    pub(crate) start: u16,
    /// `sched_main`.
    pub(crate) main: u16,
}

/// A function as a value: a number from 0 is one of the program, one below 0 is a getter.
pub(crate) fn function_value(function: u16) -> i64 {
    i64::from(function)
}

/// As [`function_value`].
pub(crate) fn getter_value(getter: Getter) -> i64 {
    let place = Getter::ALL.iter().position(|(_, known, ..)| *known == getter).unwrap_or_default();
    -1 - i64::try_from(place).unwrap_or_default()
}

/// What a function value stands for.
pub(crate) enum Callee {
    Function(u16),
    Getter(Getter, Kind, Basic),
}

/// The function of a value.
pub(crate) fn callee(value: i64) -> Option<Callee> {
    if value >= 0 {
        return u16::try_from(value).ok().map(Callee::Function);
    }
    let place = usize::try_from(-1 - value).ok()?;
    Getter::ALL.get(place).map(|(_, getter, kind, result)| Callee::Getter(*getter, *kind, *result))
}
