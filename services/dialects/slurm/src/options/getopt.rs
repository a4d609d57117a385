//! The options of `sbatch`, `salloc` and `srun` for [`crate::getopt`].

use super::{ALIASES, Argument, Command, OPTIONS, OptionSpec, SiteOptions, table::find};
use crate::getopt::{Table, Takes};

/// The options of a command, and those that the site adds.
pub(super) struct Own {
    pub command: Command,
    pub site: SiteOptions,
}

impl Table for Own {
    type Option = &'static OptionSpec;

    fn of_letter(&self, letter: char) -> Option<Self::Option> {
        OPTIONS.iter().find(|option| option.short == Some(letter) && option.commands.contains(self.command))
    }

    fn of_name(&self, name: &str) -> Option<Self::Option> {
        let aliased = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        find(self.command, aliased).or_else(|| self.site.all().iter().find(|option| option.name == name))
    }

    fn beginning(&self, start: &str) -> Vec<(&'static str, Self::Option)> {
        let names = OPTIONS.iter().map(|option| (option.name, option.name)).chain(ALIASES.iter().copied());
        let fitting = names.filter(|(written, _)| written.starts_with(start));
        let of_site = self.site.all().iter().filter(|option| option.name.starts_with(start));
        let of_site = of_site.map(|option| (option.name, option));
        fitting.filter_map(|(written, name)| Some((written, find(self.command, name)?))).chain(of_site).collect()
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
