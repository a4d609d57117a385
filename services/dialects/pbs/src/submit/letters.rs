//! The letters of `qsub`: those of PBS Pro and of TORQUE together.

use crate::{
    getopt::{self, Given, Words},
    refusal::Refusal,
    script,
};

/// The letters, as for `getopt`.
pub const LETTERS: &str = "a:A:b:c:C:d:D:e:fF:hIj:J:k:K:l:L:m:M:nN:o:p:P:q:r:R:S:t:T:u:v:Vw:W:xXz";

/// What `qsub` prints for a command line that it cannot read.
pub const USAGE: &str = "\
usage: qsub [-a date_time] [-A account_string] [-c interval] [-C directive_prefix]
\t[-d path] [-e path] [-f] [-F script_arguments] [-h] [-I] [-j oe|eo|n]
\t[-J X-Y[:Z][%N]] [-k keep] [-K seconds] [-l resource_list] [-m mail_options]
\t[-M user_list] [-n] [-N jobname] [-o path] [-p priority] [-P project]
\t[-q queue] [-r y|n] [-R o|e|oe] [-S path] [-t array_request] [-u user_list]
\t[-v variable_list] [-V] [-w path] [-W otherattributes=value...] [-z]
\t[script | -- command [arg1 ...]]
       qsub --version
";

/// Reads a command line.
///
/// # Errors
/// An unknown option, one without its value, or more than one script.
pub fn line<S: AsRef<str>>(words: &[S]) -> Result<Words, Refusal> {
    let read = getopt::read(LETTERS, words)?;
    let extra = match (read.operands.len(), &read.rest) {
        (0 | 1, None) => None,
        (0, Some(rest)) if !rest.is_empty() => None,
        (0, Some(_)) => Some("a command is missing after --".to_owned()),
        (_, Some(_)) => Some("a script and a command exclude each other".to_owned()),
        (_, None) => Some("one script can be given; -F has its arguments".to_owned()),
    };
    match extra {
        Some(text) => Err(Refusal::Operands(text)),
        None => Ok(read),
    }
}

/// Reads the options in a variable with the defaults of a site or user, such as `PBS_QSUB_ARGS`, or in a directive.
///
/// # Errors
/// An unknown option, one without its value, or a word that is no option.
pub fn variable(words: &[String]) -> Result<Vec<Given>, Refusal> {
    let read = getopt::read(LETTERS, words)?;
    match read.operands.first().or(read.rest.as_ref().and_then(|rest| rest.first())) {
        Some(word) => Err(Refusal::Script(format!("`{}` is not an option", crate::refusal::shown(word)))),
        None => Ok(read.options),
    }
}

/// The variable with default options.
pub const ARGUMENTS_VARIABLE: &str = "PBS_QSUB_ARGS";
/// The variable with the default shell of scripts.
pub const SHELL_VARIABLE: &str = "PBS_SHELL";
/// The variable with the default server.
pub const SERVER_VARIABLE: &str = "PBS_DEFAULT";

/// The default options in the environment: those of [`ARGUMENTS_VARIABLE`], and the shell of [`SHELL_VARIABLE`].
///
/// # Errors
/// As for [`variable`], with the variable's name.
pub fn defaults(lookup: impl Fn(&str) -> Option<String>) -> Result<Vec<Given>, Refusal> {
    let shell = lookup(SHELL_VARIABLE).filter(|shell| !shell.is_empty());
    let mut given: Vec<Given> = shell.map(|value| Given { letter: 'S', value }).into_iter().collect();
    if let Some(text) = lookup(ARGUMENTS_VARIABLE) {
        let read = script::words(&text, 0).and_then(|words| variable(&words));
        given.extend(read.map_err(|wrong| Refusal::Script(format!("{ARGUMENTS_VARIABLE}: {wrong}")))?);
    }
    Ok(given)
}

/// The options of a script's directives.
///
/// # Errors
/// As for [`variable`], with the line.
pub(super) fn directives(text: &str, prefix: Option<&str>) -> Result<Vec<Given>, Refusal> {
    let mut all = Vec::new();
    let Some(prefix) = prefix else { return Ok(all) };
    for directive in script::directives(text, prefix)? {
        let at_line = |wrong: Refusal| match wrong {
            Refusal::Value { .. } | Refusal::Unsupported { .. } => wrong,
            other => Refusal::Script(format!("directive error in line {}: {other}", directive.line)),
        };
        all.extend(variable(&directive.words).map_err(at_line)?);
    }
    Ok(all)
}
