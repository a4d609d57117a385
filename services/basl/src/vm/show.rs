//! `print`.

use super::Vm;
use crate::{
    code::Shown,
    constants::{self, DAYS},
    limits,
    moment::Moment,
    size::Size,
    types::Scalar,
    values::Reference,
};

impl Vm<'_, '_> {
    /// Prints a value and a newline. Text beyond the limit is left out: a program should not stop because it is talkative.
    pub(super) fn print(&mut self, shown: Shown, word: i64, reference: &Reference) {
        let text = match shown {
            Shown::Scalar(scalar) => scalar_text(scalar, word, false),
            Shown::Range(scalar) => {
                let [low, high] = reference.range().map(|end| scalar_text(scalar, end, true));
                format!("({low}, {high})")
            }
            Shown::String => string_text(reference),
            Shown::Object(kind) => match self.world.shown(kind, word) {
                Reference::Null => constants::nothing(kind).to_owned(),
                name => name.text().to_owned(),
            },
        };
        if self.printed.len() + text.len() >= limits::PRINTED {
            self.is_cut = true;
        }
        if !self.is_cut {
            self.printed.push_str(&text);
            self.printed.push('\n');
        }
    }
}

/// As C printed them.
fn scalar_text(scalar: Scalar, word: i64, is_in_range: bool) -> String {
    match scalar {
        Scalar::Int => word.to_string(),
        Scalar::Float if is_in_range => format!("{:7.2}", f64::from_bits(word.cast_unsigned())),
        Scalar::Float => format!("{:.6}", f64::from_bits(word.cast_unsigned())),
        Scalar::Dayofweek => usize::try_from(word).ok().and_then(|day| DAYS.get(day)).unwrap_or(&"").to_string(),
        Scalar::DateTime => Moment::from_word(word).to_string(),
        Scalar::Size => Size::from_word(word).to_string(),
    }
}

fn string_text(reference: &Reference) -> String {
    match reference {
        Reference::Text(text) => text.as_str().to_owned(),
        _ => "null".to_owned(),
    }
}
