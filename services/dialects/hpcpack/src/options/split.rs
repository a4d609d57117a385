//! Separates options from words.

use super::OptionError;
use muster_schemas::policy::words;

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It needs one, which is not empty.
    Value,
    /// It may be empty; the colon is required.
    MaybeEmpty,
    /// `true` or `false`; without a value, `true`.
    Truth,
    /// It takes none.
    Nothing,
}

/// A command line.
pub(super) struct CommandLine<'a> {
    /// The options with their values, in order.
    pub(super) options: Vec<(&'static str, String)>,
    /// Words that are not options.
    pub(super) words: Vec<&'a str>,
    pub(super) errors: Vec<OptionError>,
}

/// Splits a command line. Once there are more words than `command_after`, everything is a word, because the command has
/// its own options. After `--` everything is a word too.
pub(super) fn split<'a>(
    arguments: &[&'a str],
    known: &[(&'static str, Takes)],
    command_after: Option<usize>,
) -> CommandLine<'a> {
    let mut line = CommandLine { options: Vec::new(), words: Vec::new(), errors: Vec::new() };
    let mut arguments = arguments.iter().copied();
    for argument in arguments.by_ref() {
        if argument == "--" {
            break;
        }
        match as_option(argument) {
            Some((name, value)) => match read(name, value, argument, known) {
                Ok((name, _)) if line.options.iter().any(|(given, _)| *given == name) => {
                    line.errors.push(OptionError::Usage(format!("/{name} is given twice")));
                }
                Ok(option) => line.options.push(option),
                Err(text) => line.errors.push(OptionError::Usage(text)),
            },
            None => {
                line.words.push(argument);
                if command_after.is_some_and(|words| line.words.len() > words) {
                    break;
                }
            }
        }
    }
    line.words.extend(arguments);
    line
}

/// Name and value of an option; `None` for a word, such as a path with more than one part.
fn as_option(argument: &str) -> Option<(&str, Option<&str>)> {
    let (rest, separator) = match (argument.strip_prefix("--"), argument.strip_prefix('/')) {
        (Some(rest), _) => (rest, '='),
        (None, Some("?")) => return Some(("help", None)),
        (None, Some(rest)) => (rest, ':'),
        // A number may be negative; anything else that begins with a dash counts as an option.
        (None, None) if argument.starts_with('-') && argument.parse::<f64>().is_err() && argument != "-" => {
            return Some((argument, None));
        }
        (None, None) => return None,
    };
    let (name, value) = match rest.split_once(separator) {
        Some((name, value)) => (name, Some(value)),
        None => (rest, None),
    };
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_name || separator == '=').then_some((name, value))
}

fn read(
    name: &str,
    value: Option<&str>,
    argument: &str,
    known: &[(&'static str, Takes)],
) -> Result<(&'static str, String), String> {
    let Some((name, takes)) = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
        let nearest = words::nearest(&name.to_lowercase(), known.iter().map(|(known, _)| *known));
        let hint = nearest.map(|nearest| format!("; nearest known is /{nearest}")).unwrap_or_default();
        return Err(format!("unknown option `{}`{hint}; put a path after `--`", words::shorten(argument)));
    };
    match (takes, value) {
        (Takes::Value, None | Some("")) => Err(format!("/{name} needs a value: /{name}:VALUE")),
        (Takes::MaybeEmpty, None) => Err(format!("/{name} needs a value, which may be empty: /{name}:")),
        (Takes::Nothing, Some(_)) => Err(format!("/{name} has no value")),
        (Takes::Truth, None | Some("")) => Ok((name, "true".to_owned())),
        (Takes::Truth, Some(value)) if !is_truth(value) => {
            Err(format!("/{name}:{}: expected true or false", words::shorten(value)))
        }
        (_, value) => Ok((name, value.unwrap_or_default().to_owned())),
    }
}

fn is_truth(value: &str) -> bool {
    matches!(value, "0" | "1") || value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
}
