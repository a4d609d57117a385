//! Options of the commands, `/name:value` or `--name=value` (HPC-C-01, C-05), as edits of a description.

mod edits;
mod error;
mod split;
mod table;

use crate::{
    codes::{Code, Refusal},
    description::{TaskDescription, attributes::check_text},
};
pub use edits::Edit;
pub(crate) use edits::quoted;
use edits::{TaskMaker, job_edits};
pub use error::OptionError;
pub use split::Takes;
use split::{CommandLine, split};
use std::{collections::BTreeMap, fmt};
use table::Meaning;
pub use table::Verb;

/// A command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobCommand {
    /// The job ids as given, checked to be numbers.
    pub ids: Vec<u64>,
    /// Changes of the job's description, in order. `job new` and `job submit` apply them to an empty one, or to the one
    /// in `/jobfile`.
    pub edits: Vec<Edit>,
    /// The task of `job add` and of `job submit` with a command.
    pub task: Option<TaskDescription>,
    /// All other options, by name in lower case; empty if no value was given.
    pub others: BTreeMap<&'static str, String>,
}

impl JobCommand {
    /// The value of one of the other options, such as `jobfile`.
    pub fn other(&self, name: &str) -> Option<&str> {
        self.others.get(name).map(String::as_str)
    }

    /// Whether one of the other options is given and not `false`.
    pub fn is_set(&self, name: &str) -> bool {
        self.other(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }
}

/// Reads the arguments of a verb of `job`, such as `submit`. With `/help` nothing else is required.
///
/// # Errors
/// Everything that is wrong, in the order of the command line (HPC-C-01).
pub fn job(verb: Verb, arguments: &[impl AsRef<str>]) -> Result<JobCommand, Vec<OptionError>> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let options = verb.options();
    let known: Vec<(&'static str, Takes)> = options.iter().map(|option| (option.name, option.takes)).collect();
    let CommandLine { options: given, words, mut errors } = split(&arguments, &known, verb.command_after());
    let meaning = |name: &str| options.iter().find(|option| option.name == name).map(|option| option.meaning);
    let (mut command, mut maker) = (JobCommand::default(), TaskMaker::default());
    let mut sizes = Vec::new();
    for (name, value) in given {
        let result = match meaning(name) {
            Some(Meaning::Other) | None => {
                let checked = check_other(name, &value);
                command.others.insert(name, value);
                checked
            }
            Some(meaning) => {
                if meaning.is_size() {
                    sizes.push(name);
                }
                apply(verb, meaning, &value, &mut command, &mut maker)
            }
        };
        if let Err(refusal) = result {
            errors.push(OptionError::Refused { option: name.to_owned(), refusal });
        }
    }
    if command.others.contains_key("help") && errors.is_empty() {
        return Ok(command);
    }
    if let [first, second, ..] = sizes[..] {
        errors.push(OptionError::Usage(format!("/{first} and /{second} cannot be given together")));
    }
    take_words(verb, &words, &mut command, maker, &mut errors);
    clashes(verb, &command, &mut errors);
    if errors.is_empty() { Ok(command) } else { Err(errors) }
}

/// Checks the value of an option that does not change a description.
fn check_other(name: &str, value: &str) -> Result<(), Refusal> {
    match name {
        "message" => check_text("CancelMessage", value),
        "progressmsg" => check_text("ProgressMessage", value),
        "progress" if !value.parse().is_ok_and(|percent: u8| percent <= 100) => {
            Err(Refusal::new(Code::JobXmlNotValid, format!("`{value}`: expected a whole number from 0 to 100")))
        }
        _ => Ok(()),
    }
}

fn apply(
    verb: Verb,
    meaning: Meaning,
    value: &str,
    command: &mut JobCommand,
    maker: &mut TaskMaker,
) -> Result<(), Refusal> {
    if let Some(edits) = job_edits(meaning, value)? {
        command.edits.extend(edits);
        // The size of a job submitted with its command is also that of its task.
        return if verb == Verb::Submit { maker.take_size(meaning, value) } else { Ok(()) };
    }
    maker.take(meaning, value)
}

/// Takes ids and command from the words that are not options.
fn take_words(verb: Verb, words: &[&str], command: &mut JobCommand, maker: TaskMaker, errors: &mut Vec<OptionError>) {
    let (ids, rest) = words.split_at(words.len().min(*verb.ids().end()));
    for id in ids {
        match id.parse().ok().filter(|id| *id > 0) {
            Some(id) => command.ids.push(id),
            None => errors.push(OptionError::Usage(format!("`{id}` is no job id"))),
        }
    }
    if ids.len() < *verb.ids().start() {
        errors.push(OptionError::Usage(format!("job {verb} needs a job id")));
    }
    if verb.command_after().is_none() {
        errors.extend(rest.first().map(|word| OptionError::Usage(format!("`{word}` is one word too many"))));
    } else if !rest.is_empty() || maker.is_used() || verb == Verb::Add && command.other("taskfile").is_none() {
        match maker.finish(rest) {
            Ok(task) => command.task = Some(task),
            Err(error) => errors.push(error),
        }
    }
}

/// Refuses options that contradict each other (HPC-C-03, C-06).
fn clashes(verb: Verb, command: &JobCommand, errors: &mut Vec<OptionError>) {
    let clash =
        |first: &str, second: &str| OptionError::Usage(format!("{first} and {second} cannot be given together"));
    let is_given = |name: &str| command.others.contains_key(name);
    if command.is_set("force") && command.is_set("graceful") {
        errors.push(clash("/force", "/graceful"));
    }
    if verb == Verb::View && command.is_set("history") && command.is_set("xml") {
        errors.push(clash("/history", "/xml"));
    }
    if verb == Verb::Submit {
        if is_given("id") && is_given("jobfile") {
            errors.push(clash("/id", "/jobfile"));
        }
        for name in ["id", "jobfile"] {
            if is_given(name) && command.task.is_some() {
                errors.push(clash(&format!("/{name}"), "a command"));
            }
        }
        if !is_given("id") && !is_given("jobfile") && command.task.is_none() {
            errors.push(OptionError::Usage("job submit needs a command, /jobfile or /id".into()));
        }
        if is_given("id") && !command.edits.is_empty() {
            errors.push(clash("/id", "options that change the job"));
        }
    }
    if command.other("id").is_some_and(|id| id.parse::<u64>().is_err()) {
        errors.push(OptionError::Usage("/id: expected a job id".into()));
    }
}

/// The command line of a command other than `job`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherCommand<'a> {
    /// The options, by name in lower case; empty if no value was given.
    pub options: BTreeMap<&'static str, String>,
    /// The words between them.
    pub words: Vec<&'a str>,
}

/// Reads options of other commands, such as `jobtemplate add`.
///
/// # Errors
/// Everything that is wrong, in the order of the command line.
pub fn others<'a>(
    arguments: &[&'a str],
    known: &[(&'static str, Takes)],
) -> Result<OtherCommand<'a>, Vec<OptionError>> {
    let CommandLine { options, words, errors } = split(arguments, known, None);
    if errors.is_empty() { Ok(OtherCommand { options: options.into_iter().collect(), words }) } else { Err(errors) }
}

impl Verb {
    /// The options of the verb, one on each line, as users type them.
    pub fn help(self) -> String {
        let line = |option: &table::Known| match option.takes {
            Takes::Value => format!("  /{}:VALUE", option.name),
            Takes::MaybeEmpty => format!("  /{}:[VALUE]", option.name),
            Takes::Truth => format!("  /{}[:true|false]", option.name),
            Takes::Nothing => format!("  /{}", option.name),
        };
        let mut lines: Vec<String> = self.options().iter().map(line).collect();
        lines.sort_unstable();
        lines.join("\n")
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
