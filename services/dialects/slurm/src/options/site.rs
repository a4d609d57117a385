//! Options that a site adds (SL-S-22): each a name, whether it takes a value, and what the help text says. They hold for one
//! component, and no later one. Their values go into variables of the tasks, and to the submission filters.

use super::{Argument, Heading, OPTIONS, OptionSpec, Place, table, values::Kind};
use crate::request::Settings;
use std::collections::BTreeMap;

/// The most options of a site.
pub const MAX_OPTIONS: usize = 64;
/// The longest name of an option or of its value, in bytes.
const MAX_NAME_BYTES: usize = 32;
/// The longest help text, in bytes.
const MAX_HELP_BYTES: usize = 200;
/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 1_024;
/// The beginning of the variables with their values. A site names none itself, so none can be one that programs know.
const VARIABLE: &str = "SITE_OPTION_";
/// What follows the name of a variable for a component of several.
const SUFFIX: &str = "_HET_GROUP_";
/// The value of a flag's variable.
const SET: &str = "1";

/// The options that a site adds. They live as long as the process: it reads them once, as it does Slurm's.
#[derive(Clone, Copy, Debug, Default)]
pub struct SiteOptions(&'static [OptionSpec]);

impl SiteOptions {
    /// The options of a site, each described as `NAME[=VALUE] HELP`.
    ///
    /// # Errors
    /// What is wrong with which of them, for people.
    pub fn of(descriptions: &[impl AsRef<str>]) -> Result<Self, String> {
        let described = all_described(descriptions)?;
        Ok(Self(Vec::leak(described.into_iter().map(Described::spec).collect())))
    }

    /// Whether they can be the options of a site.
    ///
    /// # Errors
    /// See [`SiteOptions::of`].
    pub fn check(descriptions: &[impl AsRef<str>]) -> Result<(), String> {
        all_described(descriptions).map(drop)
    }

    /// All of them.
    pub fn all(self) -> &'static [OptionSpec] {
        self.0
    }
}

fn all_described(descriptions: &[impl AsRef<str>]) -> Result<Vec<Described<'_>>, String> {
    if descriptions.len() > MAX_OPTIONS {
        return Err(format!("{} options, more than {MAX_OPTIONS}", descriptions.len()));
    }
    let described = descriptions.iter().map(|text| Described::parse(text.as_ref())).collect::<Result<Vec<_>, _>>()?;
    for (at, one) in described.iter().enumerate() {
        if described[..at].iter().any(|other| other.name == one.name) {
            return Err(format!("`{}` is described twice", one.name));
        }
    }
    Ok(described)
}

/// An option as a site describes it.
struct Described<'a> {
    name: &'a str,
    value: Option<&'a str>,
    help: &'a str,
}

impl<'a> Described<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let (words, help) = text.split_once(' ').unwrap_or((text, ""));
        let (name, value) = words.split_once('=').map_or((words, None), |(name, value)| (name, Some(value)));
        let refused = |why: &str| Err(format!("`{}`: {why}", short(text)));
        if !is_name(name) {
            return refused("a name is 2 to 32 of a-z, 0-9 and `-`, and begins with a letter");
        }
        // An option that begins like it can be given by this name, as an abbreviation.
        if OPTIONS.iter().any(|option| option.name.starts_with(name))
            || table::ALIASES.iter().any(|(alias, _)| alias.starts_with(name))
        {
            return refused("an option of Slurm has this name, or begins with it");
        }
        // The variables of components have such names.
        if name.contains("het-group") {
            return refused("`het-group` can be no part of its name");
        }
        if value.is_some_and(|value| !is_value_name(value)) {
            return refused("after `=` comes the name of the value for the help text: 1 to 32 visible characters");
        }
        let help = help.trim();
        if help.is_empty() || help.len() > MAX_HELP_BYTES || help.chars().any(char::is_control) {
            return refused("after a blank comes the help text: 1 to 200 bytes in one line");
        }
        Ok(Self { name, value, help })
    }

    fn spec(self) -> OptionSpec {
        OptionSpec {
            name: String::leak(self.name.to_owned()),
            short: None,
            argument: self.value.map_or(Argument::Flag, |_| Argument::Required(Kind::OfSite)),
            commands: table::ALL_COMMANDS,
            carried: false,
            place: Place::Site,
            variables: &[],
            heading: Heading::Site,
            value_name: String::leak(self.value.unwrap_or_default().to_owned()),
            help: String::leak(self.help.to_owned()),
        }
    }
}

/// Whether a text can be the name of such an option.
pub fn is_name(name: &str) -> bool {
    (2..=MAX_NAME_BYTES).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_value_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text can be a value of such an option.
pub fn is_value(text: &str) -> bool {
    (1..=MAX_VALUE_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn short(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(60).collect()
}

/// The variable with the value of an option.
fn variable(name: &str) -> String {
    format!("{VARIABLE}{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// Whether a variable has the value of such an option.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(VARIABLE)
}

/// The variables of the options of a component, or of a part of a step.
pub fn variables(settings: &Settings) -> impl Iterator<Item = (String, String)> {
    let of_site = settings.iter().filter(|(option, _)| option.place == Place::Site);
    of_site.map(|(option, text)| (variable(option.name), if text.is_empty() { SET } else { text }.to_owned()))
}

/// The variables of a job: those of its first component, and if it has several those of each with its number (SL-E-01).
pub fn of_job(components: &[Settings]) -> BTreeMap<String, String> {
    let suffixed = components.iter().enumerate().filter(|_| components.len() > 1).flat_map(|(offset, settings)| {
        variables(settings).map(move |(name, value)| (format!("{name}{SUFFIX}{offset}"), value))
    });
    components.first().into_iter().flat_map(variables).chain(suffixed).collect()
}

/// What a part of a step on this component inherits: instead of the variables of the first component those of its own.
pub fn of_component(component: u32, inherited: &[(String, String)]) -> Vec<(String, String)> {
    let suffix = format!("{SUFFIX}{component}");
    let own = inherited.iter().filter(|(name, _)| is_variable(name)).filter_map(|(name, value)| {
        let plain = name.strip_suffix(&suffix)?;
        Some((plain.to_owned(), value.clone()))
    });
    let others = inherited.iter().filter(|(name, _)| !is_variable(name) || name.contains(SUFFIX));
    others.cloned().chain(own).collect()
}
