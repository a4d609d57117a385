//! Reads the command lines of all commands but `oarsub`: letters may be glued together and to their value, long names may
//! have `=`, and options and operands may be mixed.

use super::ended::Failure;
use muster_oar::text::{shown, suggestion};

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A value.
    Value,
    /// The next word, unless it begins with a dash or there is none.
    Maybe,
}

/// An option: its letter (NUL for none), its long name, and what it takes.
pub type Known = (char, &'static str, Takes);

/// A command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Words {
    options: Vec<(&'static str, String)>,
    /// The words that are no options.
    pub operands: Vec<String>,
}

impl Words {
    /// Whether an option is given.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The last value of an option; empty for one without value.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).last()
    }

    /// All values of an option.
    pub fn values<'w>(&'w self, name: &str) -> impl Iterator<Item = &'w str> {
        self.options.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a command line.
///
/// # Errors
/// An unknown option, or one without its value.
pub fn read(words: &[String], known: &[Known]) -> Result<Words, Failure> {
    let mut read = Words::default();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            read.operands.extend(words.map(str::to_owned));
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, glued) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let Some((_, name, takes)) = known.iter().find(|(_, known, _)| *known == name) else {
                let near = suggestion(name, known.iter().map(|(_, known, _)| *known));
                return Err(Failure::new(format_args!("no option is called --{}{near}", shown(name))));
            };
            let value = value(name, *takes, glued, &mut words)?;
            read.options.push((name, value));
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            read.operands.push(word.to_owned());
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let found = known.iter().find(|(known, ..)| *known == letter && letter != '\0');
            let Some((_, name, takes)) = found else {
                return Err(Failure::new(format_args!("no option is called -{}", shown(&letter.to_string()))));
            };
            if *takes == Takes::Nothing {
                read.options.push((name, String::new()));
                continue;
            }
            let rest = &letters[at + letter.len_utf8()..];
            let value = value(name, *takes, Some(rest).filter(|rest| !rest.is_empty()), &mut words)?;
            read.options.push((name, value));
            break;
        }
    }
    Ok(read)
}

fn value<'w>(
    name: &str,
    takes: Takes,
    glued: Option<&str>,
    words: &mut std::iter::Peekable<impl Iterator<Item = &'w str>>,
) -> Result<String, Failure> {
    let value = match (takes, glued) {
        (Takes::Nothing, Some(_)) => return Err(Failure::new(format_args!("--{name} takes no value"))),
        (Takes::Nothing, None) => "",
        (_, Some(value)) => value,
        (Takes::Maybe, None) => words.next_if(|word| !word.starts_with('-')).unwrap_or_default(),
        (Takes::Value, None) => {
            words.next().ok_or_else(|| Failure::new(format_args!("the value of --{name} is missing")))?
        }
    };
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Known; 3] = [('j', "job", Takes::Value), ('f', "full", Takes::Nothing), ('u', "user", Takes::Maybe)];

    fn words(line: &str) -> Result<Words, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words, &KNOWN).map_err(|failure| failure.text)
    }

    /// OAR-C-08
    #[test]
    fn letters_are_glued_and_mixed_with_operands() {
        let read = words("a -fj7 --user --job=8 b -u ann -- -x").expect("it can be read");
        assert_eq!(read.values("job").collect::<Vec<_>>(), ["7", "8"]);
        assert_eq!(read.values("user").collect::<Vec<_>>(), ["", "ann"]);
        assert!(read.has("full"));
        assert_eq!(read.operands, ["a", "b", "-x"]);
        assert_eq!(words("-j").expect_err("no value"), "the value of --job is missing");
        assert_eq!(words("--ful").expect_err("unknown"), "no option is called --ful; is 'full' meant?");
        assert_eq!(words("--full=1").expect_err("a value"), "--full takes no value");
        assert_eq!(words("-z").expect_err("unknown"), "no option is called -z");
    }
}
