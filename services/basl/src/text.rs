//! Strings of a running program.

use std::{cell::Cell, fmt, rc::Rc};

/// Counts the bytes of the strings that a program has joined and holds.
pub(crate) type Meter = Rc<Cell<usize>>;

/// A shared string.
#[derive(Clone)]
pub(crate) struct Text(Rc<Inner>);

struct Inner {
    text: Box<str>,
    meter: Option<Meter>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            meter.set(meter.get().saturating_sub(self.text.len()));
        }
    }
}

impl Text {
    /// A string that is there for the whole cycle.
    pub(crate) fn fixed(text: &str) -> Self {
        Self(Rc::new(Inner { text: text.into(), meter: None }))
    }

    /// Two strings behind each other.
    pub(crate) fn joined(left: &str, right: &str, meter: &Meter) -> Self {
        let mut text = String::with_capacity(left.len() + right.len());
        text.push_str(left);
        text.push_str(right);
        meter.set(meter.get() + text.len());
        Self(Rc::new(Inner { text: text.into(), meter: Some(Rc::clone(meter)) }))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(formatter)
    }
}
