//! The global variables of a program between two cycles.

use crate::{
    code::{Code, Global},
    moment::Moment,
    size::Size,
    text::Text,
    types::{Basic, Scalar, Type},
    values::{NOTHING, Reference},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Bytes of a stored string: no program holds a longer one.
const LONGEST_TEXT: usize = 1 << 20;

/// The values of globals by name, to be stored with the end of a cycle (PBS-X-07). Objects and sets point into the
/// snapshot of their cycle and are not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Globals(pub BTreeMap<String, Saved>);

/// A stored value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Saved {
    /// An `Int`.
    Int(i64),
    /// A `Float`; finite.
    Float(f64),
    /// A `Dayofweek`, 0 for Sunday.
    Dayofweek(u8),
    /// A `DateTime`.
    DateTime {
        /// Year, month and day.
        date: Option<(u16, u8, u8)>,
        /// Hour, minute and second.
        time: Option<(u8, u8, u8)>,
    },
    /// A `Size`, as `10mb`.
    Size(String),
    /// A `String`; nothing for `NULLSTR`.
    String(Option<String>),
    /// The two ends of a `Range`.
    Range(Box<[Saved; 2]>),
}

/// Stored globals that are not those of a program: it was changed since. Nothing was restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored value of the global variable '{name}' does not fit the program, in which it is {needed}")]
pub struct Misfit {
    /// The variable.
    pub name: String,
    /// What the program has under this name.
    pub needed: String,
}

/// The registers of all globals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) words: Vec<i64>,
    pub(crate) references: Vec<Reference>,
}

impl Registers {
    /// Those of stored values. A global that is not stored has the value of a variable that was never assigned.
    pub(crate) fn of(code: &Code, globals: &Globals) -> Self {
        let count = |is_reference: bool| {
            code.globals.iter().filter(|global| global.of_type.is_reference() == is_reference).count()
        };
        let mut registers = Self { words: vec![0; count(false)], references: vec![Reference::Null; count(true)] };
        for global in &code.globals {
            registers.restore(global, globals.0.get(&global.name));
        }
        registers
    }

    fn restore(&mut self, global: &Global, saved: Option<&Saved>) {
        let place = usize::from(global.number);
        if global.of_type.is_reference() {
            let value = saved.and_then(reference_of).unwrap_or_default();
            if let Some(register) = self.references.get_mut(place) {
                *register = value;
            }
        } else if let Some(register) = self.words.get_mut(place) {
            let is_object = matches!(global.of_type, Type::Basic(Basic::Object(_)));
            *register = saved.and_then(word_of).unwrap_or(if is_object { NOTHING } else { 0 });
        }
    }

    /// The values to be stored.
    pub(crate) fn saved(&self, code: &Code) -> Globals {
        let value = |global: &Global| Some((global.name.clone(), self.save(global)?));
        Globals(code.globals.iter().filter_map(value).collect())
    }

    fn save(&self, global: &Global) -> Option<Saved> {
        let place = usize::from(global.number);
        let range = |scalar: Scalar| {
            let ends = self.references.get(place)?.range();
            Some(Saved::Range(Box::new(ends.map(|end| saved_word(scalar, end)))))
        };
        match global.of_type {
            Type::STRING => Some(Saved::String(match self.references.get(place)? {
                Reference::Text(text) => Some(text.as_str().to_owned()),
                _ => None,
            })),
            Type::Range(scalar) => range(scalar),
            Type::Basic(basic) => Some(saved_word(basic.scalar()?, *self.words.get(place)?)),
            Type::Fun(_) | Type::Unknown => None,
        }
    }
}

impl Globals {
    /// Whether all values fit the globals of a program.
    pub(crate) fn fit(&self, code: &Code) -> Result<(), Misfit> {
        let globals: HashMap<&str, &Global> =
            code.globals.iter().map(|global| (global.name.as_str(), global)).collect();
        for (name, saved) in &self.0 {
            let global = globals.get(name.as_str());
            if !global.is_some_and(|global| fits(global.of_type, saved)) {
                let needed = global.map_or("not defined".to_owned(), |global| global.of_type.to_string());
                return Err(Misfit { name: name.clone(), needed });
            }
        }
        Ok(())
    }
}

fn fits(of_type: Type, saved: &Saved) -> bool {
    match (of_type, saved) {
        (Type::STRING, Saved::String(text)) => text.as_ref().is_none_or(|text| text.len() <= LONGEST_TEXT),
        (Type::Range(scalar), Saved::Range(ends)) => ends.iter().all(|end| is_scalar(scalar.basic(), end)),
        (Type::Basic(basic), saved) => is_scalar(basic, saved),
        _ => false,
    }
}

fn is_scalar(basic: Basic, saved: &Saved) -> bool {
    let is_of_type = match saved {
        Saved::Int(_) => basic == Basic::Int,
        Saved::Float(value) => basic == Basic::Float && value.is_finite(),
        Saved::Dayofweek(day) => basic == Basic::Dayofweek && *day < 7,
        Saved::DateTime { .. } => basic == Basic::DateTime,
        Saved::Size(_) => basic == Basic::Size,
        Saved::String(_) | Saved::Range(_) => false,
    };
    is_of_type && word_of(saved).is_some()
}

fn word_of(saved: &Saved) -> Option<i64> {
    let wide = |(a, b, c): (u8, u8, u8)| (i64::from(a), i64::from(b), i64::from(c));
    match saved {
        Saved::Int(value) => Some(*value),
        Saved::Float(value) => Some(value.to_bits().cast_signed()),
        Saved::Dayofweek(day) => Some(i64::from(*day)),
        Saved::DateTime { date, time } => {
            let date = date.map(|(year, month, day)| (i64::from(year), i64::from(month), i64::from(day)));
            Moment::new(date, time.map(wide)).map(Moment::to_word)
        }
        Saved::Size(text) => Size::parse(text).map(Size::to_word),
        Saved::String(_) | Saved::Range(_) => None,
    }
}

fn reference_of(saved: &Saved) -> Option<Reference> {
    match saved {
        Saved::String(text) => text.as_ref().map(|text| Reference::Text(Text::fixed(text))),
        Saved::Range(ends) => Some(Reference::Range([word_of(&ends[0])?, word_of(&ends[1])?])),
        _ => None,
    }
}

fn saved_word(scalar: Scalar, word: i64) -> Saved {
    match scalar {
        Scalar::Int => Saved::Int(word),
        Scalar::Float => Saved::Float(f64::from_bits(word.cast_unsigned())),
        Scalar::Dayofweek => Saved::Dayofweek(u8::try_from(word).unwrap_or_default()),
        Scalar::DateTime => {
            let (date, time) = Moment::from_word(word).parts();
            Saved::DateTime { date, time }
        }
        Scalar::Size => Saved::Size(Size::from_word(word).to_string()),
    }
}
