//! Reads words like `getopt_long` (SL-C-01, SL-C-02): long options may be abbreviated while only one fits, with their
//! value as `--opt=v` or `--opt v`; short options may be glued together and to their value. A [`Table`] has the
//! options.

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No.
    Nothing,
    /// Yes.
    Value,
    /// Optionally: glued, or the next word if that is not an option.
    Maybe,
    /// Optionally, but it must be glued.
    MaybeGlued,
}

/// The options of a command.
pub trait Table {
    /// An option.
    type Option: Copy;

    /// The option with a letter.
    fn of_letter(&self, letter: char) -> Option<Self::Option>;
    /// The option with a name, written in full.
    fn of_name(&self, name: &str) -> Option<Self::Option>;
    /// The names with this beginning, each with its option.
    fn beginning(&self, start: &str) -> Vec<(&'static str, Self::Option)>;
    /// Whether two names mean the same option.
    fn are_same(&self, one: Self::Option, other: Self::Option) -> bool;
    /// The name of an option in messages.
    fn name(&self, option: Self::Option) -> &'static str;
    /// Whether it takes a value.
    fn takes(&self, option: Self::Option) -> Takes;
}

/// An error in an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// No option has this name.
    UnknownOption(String),
    /// No option has this letter.
    UnknownLetter(char),
    /// Several options begin like this.
    AmbiguousOption {
        /// The text as given.
        text: String,
        /// The options that begin like this.
        possibilities: Vec<String>,
    },
    /// The option needs a value.
    ArgumentMissing(&'static str),
    /// The option with this letter needs a value.
    LetterNeedsArgument(char),
    /// The option takes no value.
    ArgumentNotAllowed(&'static str),
}

impl Wrong {
    /// The lines for standard error.
    pub fn lines(&self, command: &str) -> Vec<String> {
        let text = match self {
            Self::UnknownOption(name) => format!("unrecognized option '--{name}'"),
            Self::UnknownLetter(letter) => format!("invalid option -- '{letter}'"),
            Self::AmbiguousOption { text, possibilities } => {
                let names: Vec<String> = possibilities.iter().map(|name| format!("'--{name}'")).collect();
                format!("option '--{text}' is ambiguous; possibilities: {}", names.join(" "))
            }
            Self::ArgumentMissing(name) => format!("option '--{name}' requires an argument"),
            Self::LetterNeedsArgument(letter) => format!("option requires an argument -- '{letter}'"),
            Self::ArgumentNotAllowed(name) => format!("option '--{name}' doesn't allow an argument"),
        };
        vec![format!("{command}: {text}"), format!("Try \"{command} --help\" for more information")]
    }
}

/// The kind of the word that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Options, now consumed; there may be more.
    Options,
    /// A word that is not an option.
    Word,
    /// `--`, now consumed: no later word is an option, whatever it looks like.
    Separator,
    /// Nothing more.
    End,
}

/// Reads the word at `at`, and the value after it if its option takes one; passes each option to `take` with its value.
///
/// # Errors
/// An option that is unknown or ambiguous, lacks its value or has a superfluous one.
pub fn next<T: Table>(
    table: &T,
    words: &[&str],
    at: &mut usize,
    take: &mut impl FnMut(T::Option, Option<String>),
) -> Result<Step, Wrong> {
    let Some(word) = words.get(*at) else { return Ok(Step::End) };
    if *word == "--" {
        *at += 1;
        return Ok(Step::Separator);
    }
    let (long, letters) = (word.strip_prefix("--"), word.strip_prefix('-').filter(|letters| !letters.is_empty()));
    if long.is_none() && letters.is_none() {
        return Ok(Step::Word);
    }
    *at += 1;
    let mut rest = Rest { words, at };
    match (long, letters) {
        (Some(long), _) => read_long(table, long, &mut rest, take)?,
        (None, letters) => read_letters(table, letters.unwrap_or_default(), &mut rest, take)?,
    }
    Ok(Step::Options)
}

/// The words after an option.
struct Rest<'a, 'w> {
    words: &'w [&'w str],
    at: &'a mut usize,
}

impl Rest<'_, '_> {
    fn take(&mut self) -> Option<String> {
        let word = self.words.get(*self.at)?;
        *self.at += 1;
        Some((*word).to_owned())
    }

    fn take_unless_option(&mut self) -> Option<String> {
        self.words.get(*self.at).filter(|word| !word.starts_with('-'))?;
        self.take()
    }
}

fn read_long<T: Table>(
    table: &T,
    text: &str,
    rest: &mut Rest<'_, '_>,
    take: &mut impl FnMut(T::Option, Option<String>),
) -> Result<(), Wrong> {
    let (name, glued) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
    let option = find(table, name)?;
    let value = match (table.takes(option), glued) {
        (Takes::Nothing, Some(_)) => return Err(Wrong::ArgumentNotAllowed(table.name(option))),
        (_, Some(value)) => Some(value),
        (Takes::Value, None) => Some(rest.take().ok_or(Wrong::ArgumentMissing(table.name(option)))?),
        (Takes::Maybe, None) => rest.take_unless_option(),
        (Takes::Nothing | Takes::MaybeGlued, None) => None,
    };
    take(option, value);
    Ok(())
}

/// The option with a name, or the only one that begins like it.
fn find<T: Table>(table: &T, name: &str) -> Result<T::Option, Wrong> {
    if let Some(option) = table.of_name(name) {
        return Ok(option);
    }
    let fitting = if name.is_empty() { Vec::new() } else { table.beginning(name) };
    let Some((_, first)) = fitting.first().copied() else { return Err(Wrong::UnknownOption(name.to_owned())) };
    if fitting.iter().all(|(_, option)| table.are_same(*option, first)) {
        return Ok(first);
    }
    let mut possibilities: Vec<String> = fitting.iter().map(|(name, _)| (*name).to_owned()).collect();
    possibilities.dedup();
    Err(Wrong::AmbiguousOption { text: name.to_owned(), possibilities })
}

/// Reads letters that are glued together. The first that takes a value takes the rest of the word.
fn read_letters<T: Table>(
    table: &T,
    letters: &str,
    rest: &mut Rest<'_, '_>,
    take: &mut impl FnMut(T::Option, Option<String>),
) -> Result<(), Wrong> {
    for (place, letter) in letters.char_indices() {
        let option = table.of_letter(letter).ok_or(Wrong::UnknownLetter(letter))?;
        let glued = &letters[place + letter.len_utf8()..];
        let glued = (!glued.is_empty()).then(|| glued.to_owned());
        let value = match (table.takes(option), glued) {
            (Takes::Nothing, _) => {
                take(option, None);
                continue;
            }
            (_, Some(value)) => Some(value),
            (Takes::Value, None) => Some(rest.take().ok_or(Wrong::LetterNeedsArgument(letter))?),
            (Takes::Maybe, None) => rest.take_unless_option(),
            (Takes::MaybeGlued, None) => None,
        };
        take(option, value);
        return Ok(());
    }
    Ok(())
}
