//! One word after the other, as `getopt_long` takes them.

use super::{ALIASES, Argument, Command, Given, OPTIONS, OptionSpec, table::find};
use crate::messages::Refusal;

/// What the next word was.
pub(super) enum Step {
    /// Options; there may be more.
    More,
    /// No option: what begins here is the command's own.
    End,
}

/// Reads the word at `at`, and the value behind it if its option needs one.
pub(super) fn next(
    command: Command,
    arguments: &[&str],
    at: &mut usize,
    options: &mut Vec<Given>,
) -> Result<Step, Refusal> {
    let Some(word) = arguments.get(*at) else { return Ok(Step::End) };
    if *word == "--" {
        *at += 1;
        return Ok(Step::End);
    }
    if let Some(long) = word.strip_prefix("--") {
        *at += 1;
        options.push(read_long(command, long, arguments, at)?);
        return Ok(Step::More);
    }
    match word.strip_prefix('-') {
        Some(letters) if !letters.is_empty() => {
            *at += 1;
            read_short(command, letters, arguments, at, options)?;
            Ok(Step::More)
        }
        _ => Ok(Step::End),
    }
}

fn read_long(command: Command, text: &str, arguments: &[&str], at: &mut usize) -> Result<Given, Refusal> {
    let (name, glued) = match text.split_once('=') {
        None => (text, None),
        Some((name, value)) => (name, Some(value.to_owned())),
    };
    let option = long_option(command, name)?;
    let value = match (option.argument, glued) {
        (Argument::Flag, Some(_)) => return Err(Refusal::ArgumentNotAllowed(option.name)),
        (Argument::Required(_), None) => {
            let value = arguments.get(*at).ok_or(Refusal::ArgumentMissing(option.name))?;
            *at += 1;
            Some((*value).to_owned())
        }
        (_, glued) => glued,
    };
    Ok(Given { option, value })
}

/// The option with this name, or the only one that begins with it.
fn long_option(command: Command, name: &str) -> Result<&'static OptionSpec, Refusal> {
    let aliased = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    if let Some(option) = find(command, aliased) {
        return Ok(option);
    }
    let names = OPTIONS.iter().map(|option| (option.name, option.name)).chain(ALIASES.iter().copied());
    let fitting: Vec<(&str, &'static OptionSpec)> = names
        .filter(|(written, _)| !name.is_empty() && written.starts_with(name))
        .filter_map(|(written, name)| Some((written, find(command, name)?)))
        .collect();
    let Some((_, first)) = fitting.first().copied() else {
        return Err(Refusal::UnknownOption(name.to_owned()));
    };
    if fitting.iter().all(|(_, option)| std::ptr::eq(*option, first)) {
        return Ok(first);
    }
    let mut possibilities: Vec<&str> = fitting.iter().map(|(written, _)| *written).collect();
    possibilities.dedup();
    let possibilities = possibilities.iter().map(|name| (*name).to_owned()).collect();
    Err(Refusal::AmbiguousOption { text: name.to_owned(), possibilities })
}

/// Reads letters that were glued together. The first that takes a value takes the rest.
fn read_short(
    command: Command,
    letters: &str,
    arguments: &[&str],
    at: &mut usize,
    options: &mut Vec<Given>,
) -> Result<(), Refusal> {
    for (position, letter) in letters.char_indices() {
        let option = OPTIONS
            .iter()
            .find(|option| option.short == Some(letter) && option.commands.contains(command))
            .ok_or(Refusal::UnknownLetter(letter))?;
        let glued = &letters[position + letter.len_utf8()..];
        let value = match option.argument {
            Argument::Flag => {
                options.push(Given { option, value: None });
                continue;
            }
            Argument::Optional(_) => (!glued.is_empty()).then(|| glued.to_owned()),
            Argument::Required(_) if glued.is_empty() => {
                let value = arguments.get(*at).ok_or(Refusal::LetterNeedsArgument(letter))?;
                *at += 1;
                Some((*value).to_owned())
            }
            Argument::Required(_) => Some(glued.to_owned()),
        };
        options.push(Given { option, value });
        return Ok(());
    }
    Ok(())
}
