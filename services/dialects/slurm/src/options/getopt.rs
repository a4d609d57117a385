//! The options of `sbatch`, `salloc` and `srun` for [`crate::getopt`].

use super::{ALIASES, Argument, Command, OPTIONS, OptionSpec, table::find};
use crate::getopt::{Table, Takes};

/// The options of a command.
pub(super) struct Own(pub Command);

impl Table for Own {
    type Option = &'static OptionSpec;

    fn of_letter(&self, letter: char) -> Option<Self::Option> {
        OPTIONS.iter().find(|option| option.short == Some(letter) && option.commands.contains(self.0))
    }

    fn of_name(&self, name: &str) -> Option<Self::Option> {
        let aliased = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        find(self.0, aliased)
    }

    fn beginning(&self, start: &str) -> Vec<(&'static str, Self::Option)> {
        let names = OPTIONS.iter().map(|option| (option.name, option.name)).chain(ALIASES.iter().copied());
        let fitting = names.filter(|(written, _)| written.starts_with(start));
        fitting.filter_map(|(written, name)| Some((written, find(self.0, name)?))).collect()
    }

    fn are_same(&self, one: Self::Option, other: Self::Option) -> bool {
        std::ptr::eq(one, other)
    }

    fn name(&self, option: Self::Option) -> &'static str {
        option.name
    }

    fn takes(&self, option: Self::Option) -> Takes {
        match option.argument {
            Argument::Flag => Takes::Nothing,
            Argument::Required(_) => Takes::Value,
            Argument::Optional(_) => Takes::MaybeGlued,
        }
    }
}
