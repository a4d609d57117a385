//! What names mean.

use crate::{code::Register, types::Type};
use std::collections::HashMap;

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbol {
    Variable(Variable),
    /// The number of one of the program's functions.
    Function(u16),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) of_type: Type,
    pub(super) place: Place,
}

/// Where a variable is: in the frame of its function or among the globals, and there in the file for its type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Local(Register),
    Global(u16),
}

/// The names that are known at a place of the text; inner blocks come last.
#[derive(Debug, Default)]
pub(super) struct Scopes<'t>(Vec<HashMap<&'t str, Symbol>>);

impl<'t> Scopes<'t> {
    pub(super) fn open(&mut self) {
        self.0.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.0.pop();
    }

    /// Whether the innermost block had no such name.
    pub(super) fn add(&mut self, name: &'t str, symbol: Symbol) -> bool {
        self.0.last_mut().is_some_and(|scope| scope.insert(name, symbol).is_none())
    }

    pub(super) fn find(&self, name: &str) -> Option<Symbol> {
        self.0.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'t str> {
        self.0.iter().flat_map(|scope| scope.keys().copied())
    }
}
