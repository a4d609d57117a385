//! What a program consists of, as it is written.

use crate::{
    fault::Position,
    moment::Moment,
    size::Size,
    types::{Kind, Scalar, Type},
};

/// A name and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'t> {
    pub(crate) text: &'t str,
    pub(crate) place: Position,
}

/// A program.
#[derive(Debug, Default)]
pub(crate) struct Source<'t> {
    /// In the order of the text.
    pub(crate) items: Vec<Item<'t>>,
    /// Assignments to globals.
    pub(crate) assignments: Vec<Statement<'t>>,
    pub(crate) main: Option<Function<'t>>,
}

#[derive(Debug)]
pub(crate) enum Item<'t> {
    Variable(Declaration<'t>),
    Function(Function<'t>),
}

/// A variable or a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declaration<'t> {
    pub(crate) of_type: Type,
    pub(crate) name: Name<'t>,
}

#[derive(Debug)]
pub(crate) struct Function<'t> {
    pub(crate) result: Type,
    pub(crate) name: Name<'t>,
    pub(crate) parameters: Vec<Declaration<'t>>,
    pub(crate) body: Block<'t>,
}

#[derive(Debug, Default)]
pub(crate) struct Block<'t> {
    pub(crate) declarations: Vec<Declaration<'t>>,
    pub(crate) statements: Vec<Statement<'t>>,
    /// Where its closing brace is.
    pub(crate) end: Position,
}

#[derive(Debug)]
pub(crate) struct Statement<'t> {
    /// The first token.
    pub(crate) at: Name<'t>,
    pub(crate) form: Form<'t>,
}

#[derive(Debug)]
pub(crate) enum Form<'t> {
    Empty,
    Expression(Expression<'t>),
    /// The value is assigned to the last target, and that to the one before it.
    Assignment {
        targets: Vec<Name<'t>>,
        value: Expression<'t>,
    },
    If {
        condition: Expression<'t>,
        then: Block<'t>,
        otherwise: Option<Block<'t>>,
    },
    While {
        condition: Expression<'t>,
        body: Block<'t>,
    },
    For {
        start: Box<Statement<'t>>,
        test: Expression<'t>,
        action: Box<Statement<'t>>,
        body: Block<'t>,
    },
    Foreach {
        variable: Name<'t>,
        set: Expression<'t>,
        body: Block<'t>,
    },
    Switch {
        variable: Name<'t>,
        cases: Vec<Case<'t>>,
        default: Option<Block<'t>>,
    },
    Print(Expression<'t>),
    Break,
    Continue,
    Return(Option<Expression<'t>>),
    Exit(Expression<'t>),
    Block(Block<'t>),
}

#[derive(Debug)]
pub(crate) struct Case<'t> {
    /// Whether it is `case in`.
    pub(crate) is_in: bool,
    pub(crate) value: Expression<'t>,
    pub(crate) body: Block<'t>,
}

#[derive(Debug)]
pub(crate) struct Expression<'t> {
    /// The token that messages about it name.
    pub(crate) at: Name<'t>,
    /// How many expressions are inside each other.
    pub(crate) height: u16,
    pub(crate) term: Term<'t>,
}

#[derive(Debug)]
pub(crate) enum Term<'t> {
    Constant(Constant),
    /// A variable, or a function as an argument.
    Variable,
    Call(Vec<Expression<'t>>),
    /// `++` or `--` behind a variable.
    Step {
        by: i8,
    },
    Unary(Unary, Box<Expression<'t>>),
    Binary(Binary, Box<[Expression<'t>; 2]>),
}

/// A value that the text names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    Int(i64),
    Float(f64),
    Dayofweek(u8),
    DateTime(Moment),
    Size(Size),
    /// Without a text it is `NULLSTR`.
    String(Option<String>),
    /// `NOJOB` and the like.
    Nothing(Kind),
    /// `EMPTYSETJOB` and the like.
    Empty(Kind),
    /// The registers of its ends.
    Range(Scalar, [i64; 2]),
}

impl Constant {
    /// The type of the value.
    pub(crate) fn of_type(&self) -> Type {
        match self {
            Self::Int(_) => Type::INT,
            Self::Float(_) => Type::FLOAT,
            Self::Dayofweek(_) => Type::DAYOFWEEK,
            Self::DateTime(_) => Type::DATETIME,
            Self::Size(_) => Type::SIZE,
            Self::String(_) => Type::STRING,
            Self::Nothing(kind) => Type::object(*kind),
            Self::Empty(kind) => Type::set(*kind),
            Self::Range(scalar, _) => Type::Range(*scalar),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Plus,
    Minus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Arithmetic(Arithmetic),
    Test(Test),
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Equal,
    Differs,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Test {
    /// The one that is true when this one is false.
    pub(crate) const fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::Differs,
            Self::Differs => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }

    /// Compares.
    #[inline]
    pub(crate) fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Differs => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}
