//! Reads command lines as `getopt` does: letters may be glued together and to their value, options and operands may be
//! mixed, and `--` ends the options.

use crate::refusal::Refusal;

/// An option as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its letter.
    pub letter: char,
    /// Its value; empty for an option without one.
    pub value: String,
}

/// A command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The options, in order.
    pub options: Vec<Given>,
    /// Long names without value, such as `version` for `--version`.
    pub names: Vec<&'static str>,
    /// The words that are no options and stand before any `--`.
    pub operands: Vec<String>,
    /// The words after `--`, if there is one.
    pub rest: Option<Vec<String>>,
}

impl Words {
    /// The operands, whether they stand before or after `--`.
    pub fn all_operands(self) -> Vec<String> {
        self.operands.into_iter().chain(self.rest.unwrap_or_default()).collect()
    }

    /// Whether an option without value is given.
    pub fn has(&self, letter: char) -> bool {
        self.options.iter().any(|given| given.letter == letter)
    }

    /// The value of an option; the last one counts.
    pub fn value(&self, letter: char) -> Option<&str> {
        self.options.iter().rev().find(|given| given.letter == letter).map(|given| given.value.as_str())
    }
}

/// The long names that every command of the family has beside what is asked for first.
const NAMES: [&str; 1] = ["version"];

/// Reads a command line. `letters` is as for `getopt`: each letter that takes a value is followed by a colon.
///
/// # Errors
/// An unknown option, or one without its value.
pub fn read<S: AsRef<str>>(letters: &str, words: &[S]) -> Result<Words, Refusal> {
    let mut read = Words::default();
    let mut words = words.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        if word == "--" {
            read.rest = Some(words.map(str::to_owned).collect());
            break;
        }
        if let Some(name) = word.strip_prefix("--") {
            let known = NAMES.into_iter().find(|known| *known == name);
            read.names.push(known.ok_or_else(|| Refusal::UnknownName(name.to_owned()))?);
            continue;
        }
        match word.strip_prefix('-').filter(|glued| !glued.is_empty()) {
            Some(glued) => read_letters(letters, glued, &mut words, &mut read.options)?,
            None => read.operands.push(word.to_owned()),
        }
    }
    Ok(read)
}

/// Reads letters that are glued together. The first that takes a value takes the rest of the word, or the next word.
fn read_letters<'w>(
    letters: &str,
    glued: &str,
    words: &mut impl Iterator<Item = &'w str>,
    options: &mut Vec<Given>,
) -> Result<(), Refusal> {
    for (place, letter) in glued.char_indices() {
        let takes_value = takes_value(letters, letter).ok_or(Refusal::UnknownLetter(letter))?;
        if !takes_value {
            options.push(Given { letter, value: String::new() });
            continue;
        }
        let behind = &glued[place + letter.len_utf8()..];
        let value = match behind {
            "" => words.next().ok_or(Refusal::ValueMissing(letter))?,
            behind => behind,
        };
        options.push(Given { letter, value: value.to_owned() });
        return Ok(());
    }
    Ok(())
}

/// Whether the option takes a value; `None` if there is no such option.
fn takes_value(letters: &str, letter: char) -> Option<bool> {
    if letter == ':' {
        return None;
    }
    let at = letters.find(letter)?;
    Some(letters[at + letter.len_utf8()..].starts_with(':'))
}
