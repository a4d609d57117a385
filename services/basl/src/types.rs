//! The types of values (PBS-X-03).

use std::fmt;

/// The kinds of objects of a batch system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Server,
    Que,
    Job,
    CNode,
}

/// What ranges are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Int,
    Float,
    Dayofweek,
    DateTime,
    Size,
}

/// What functions return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basic {
    Void,
    Int,
    Float,
    Dayofweek,
    DateTime,
    Size,
    String,
    Object(Kind),
    Set(Kind),
}

/// The type of a variable, parameter or expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Basic(Basic),
    Range(Scalar),
    /// A function that returns this.
    Fun(Basic),
    /// That of an expression with a mistake, which was told.
    Unknown,
}

impl Type {
    pub(crate) const VOID: Self = Self::Basic(Basic::Void);
    pub(crate) const INT: Self = Self::Basic(Basic::Int);
    pub(crate) const FLOAT: Self = Self::Basic(Basic::Float);
    pub(crate) const DAYOFWEEK: Self = Self::Basic(Basic::Dayofweek);
    pub(crate) const DATETIME: Self = Self::Basic(Basic::DateTime);
    pub(crate) const SIZE: Self = Self::Basic(Basic::Size);
    pub(crate) const STRING: Self = Self::Basic(Basic::String);

    pub(crate) const fn object(kind: Kind) -> Self {
        Self::Basic(Basic::Object(kind))
    }

    pub(crate) const fn set(kind: Kind) -> Self {
        Self::Basic(Basic::Set(kind))
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::INT | Self::FLOAT)
    }

    /// Whether its values are references; the others fit into a word.
    pub(crate) const fn is_reference(self) -> bool {
        matches!(self, Self::Range(_) | Self::Basic(Basic::String | Basic::Set(_)))
    }

    /// Whether a value of another type can be assigned to it: `Int` and `Float` mix.
    pub(crate) fn takes(self, value: Self) -> bool {
        self == value || (self.is_number() && value.is_number())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Server => "Server",
            Self::Que => "Que",
            Self::Job => "Job",
            Self::CNode => "CNode",
        })
    }
}

impl Scalar {
    /// The type of its ends.
    pub(crate) const fn basic(self) -> Basic {
        match self {
            Self::Int => Basic::Int,
            Self::Float => Basic::Float,
            Self::Dayofweek => Basic::Dayofweek,
            Self::DateTime => Basic::DateTime,
            Self::Size => Basic::Size,
        }
    }
}

impl Basic {
    /// What a range of it is made of, if there are such ranges.
    pub(crate) const fn scalar(self) -> Option<Scalar> {
        match self {
            Self::Int => Some(Scalar::Int),
            Self::Float => Some(Scalar::Float),
            Self::Dayofweek => Some(Scalar::Dayofweek),
            Self::DateTime => Some(Scalar::DateTime),
            Self::Size => Some(Scalar::Size),
            Self::Void | Self::String | Self::Object(_) | Self::Set(_) => None,
        }
    }
}

impl fmt::Display for Basic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Void => "Void",
            Self::Int => "Int",
            Self::Float => "Float",
            Self::Dayofweek => "Dayofweek",
            Self::DateTime => "DateTime",
            Self::Size => "Size",
            Self::String => "String",
            Self::Object(kind) => return kind.fmt(formatter),
            Self::Set(kind) => return write!(formatter, "Set {kind}"),
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic(basic) => basic.fmt(formatter),
            Self::Range(scalar) => write!(formatter, "Range {}", scalar.basic()),
            Self::Fun(result) => write!(formatter, "Fun {result}"),
            Self::Unknown => formatter.write_str("unknown"),
        }
    }
}
