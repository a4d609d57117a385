//! Options that a site adds (SL-S-22): each a name, whether it takes a value, and what the help text says. They hold for one
//! component, and no later one.

use super::{Argument, Heading, OPTIONS, OptionSpec, Place, table, values::Kind};

/// The most options of a site.
pub const MAX_OPTIONS: usize = 64;
/// The longest name of an option or of its value, in bytes.
const MAX_NAME_BYTES: usize = 32;
/// The longest help text, in bytes.
const MAX_HELP_BYTES: usize = 200;
/// The beginning of the variables with the values. A site names none itself, so none can be one that programs know.
const VARIABLE: &str = "SITE_OPTION_";

/// The options that a site adds. They live as long as the process: it reads them once, as it does Slurm's.
#[derive(Clone, Copy, Debug, Default)]
pub struct SiteOptions(&'static [OptionSpec]);

impl SiteOptions {
    /// The options of a site, each described as `NAME[=VALUE] HELP`.
    ///
    /// # Errors
    /// The first one that is wrong, and why, for people.
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

fn short(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(60).collect()
}

/// The variable with the value of an option.
pub(crate) fn variable(name: &str) -> String {
    format!("{VARIABLE}{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// Whether a variable has the value of such an option.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(VARIABLE)
}
