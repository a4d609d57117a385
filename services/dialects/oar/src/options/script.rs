//! The directives of a script: lines that begin with `#OAR` (OAR-C-05).

use super::getopt::{self, Given, Name, Words};
use crate::{
    refusal::{Code, Refusal},
    text::shown,
};

/// The beginning of a directive.
pub const PREFIX: &str = "#OAR";
/// The greatest number of directives of a script.
const MOST_DIRECTIVES: usize = 10_000;

/// The options of a script's directives. A script that does not begin with `#` has none.
///
/// # Errors
/// An option that is unknown or has no place in a script, with its line (exit 12).
pub fn directives(text: &str) -> Result<Vec<Given>, Refusal> {
    let mut options = Vec::new();
    if !text.starts_with('#') {
        return Ok(options);
    }
    for (line, content) in (1..).zip(text.lines()) {
        let Some(rest) = content.strip_prefix(PREFIX).filter(|rest| rest.starts_with([' ', '\t'])) else { continue };
        let place = format!("script, line {line}");
        options.push(getopt::read_directive(rest).map_err(|why| Refusal::option(Code::Script, &place, why))?);
        if options.len() > MOST_DIRECTIVES {
            return Err(Refusal::option(
                Code::Script,
                &place,
                format!("at most {MOST_DIRECTIVES} directives are read"),
            ));
        }
    }
    Ok(options)
}

/// Adds the options of a script to those of the command line. Requests, types and dependencies add up; for all others
/// the command line wins, and the warnings say so.
pub fn merge(words: &mut Words, directives: Vec<Given>) -> Vec<String> {
    let on_line: Vec<Name> = words.options.iter().map(|given| given.name).collect();
    let mut warnings = Vec::new();
    for given in directives {
        if given.name.adds_up() || !on_line.contains(&given.name) {
            words.options.push(given);
        } else {
            let (option, value) = (given.name.long(), shown(&given.value));
            warnings.push(format!("{option} of the command line replaces '{value}' of the script"));
        }
    }
    warnings
}
