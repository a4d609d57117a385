//! Reads the words of `oarsub`: letters may be glued together and to their value, long names may be shortened, options
//! and operands may be mixed, and `--` ends the options.

use crate::{
    refusal::{Code, Refusal},
    text::{shown, suggestion},
};

/// An option of `oarsub` (OAR-C-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the option of its name")]
pub enum Name {
    Anterior,
    Array,
    ArrayParamFile,
    Checkpoint,
    Connect,
    Directory,
    Dumper,
    ExportJobKey,
    Help,
    Hold,
    ImportJobKey,
    ImportJobKeyInline,
    Interactive,
    JobName,
    Json,
    Notify,
    Project,
    Property,
    Queue,
    Reservation,
    Resource,
    Resubmit,
    ScanScript,
    Signal,
    SshPrivateKey,
    SshPublicKey,
    StageIn,
    StageInMd5,
    Stderr,
    Stdout,
    Type,
    UseJobKey,
    Verbose,
    Version,
    Xml,
    Yaml,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    /// The next word if it is a number.
    Number,
}

use Takes::{Nothing, Number, Value};

const OPTIONS: [(Name, &str, char, Takes); 36] = [
    (Name::Anterior, "anterior", 'a', Value),
    (Name::Array, "array", '\0', Value),
    (Name::ArrayParamFile, "array-param-file", '\0', Value),
    (Name::Checkpoint, "checkpoint", '\0', Value),
    (Name::Connect, "connect", 'C', Number),
    (Name::Directory, "directory", 'd', Value),
    (Name::Dumper, "dumper", 'D', Nothing),
    (Name::ExportJobKey, "export-job-key-to-file", 'e', Value),
    (Name::Help, "help", 'h', Nothing),
    (Name::Hold, "hold", '\0', Nothing),
    (Name::ImportJobKey, "import-job-key-from-file", 'i', Value),
    (Name::ImportJobKeyInline, "import-job-key-inline", '\0', Value),
    (Name::Interactive, "interactive", 'I', Nothing),
    (Name::JobName, "name", 'n', Value),
    (Name::Json, "json", 'J', Nothing),
    (Name::Notify, "notify", '\0', Value),
    (Name::Project, "project", '\0', Value),
    (Name::Property, "property", 'p', Value),
    (Name::Queue, "queue", 'q', Value),
    (Name::Reservation, "reservation", 'r', Value),
    (Name::Resource, "resource", 'l', Value),
    (Name::Resubmit, "resubmit", '\0', Value),
    (Name::ScanScript, "scanscript", 'S', Nothing),
    (Name::Signal, "signal", '\0', Value),
    (Name::SshPrivateKey, "ssh_private_key", '\0', Value),
    (Name::SshPublicKey, "ssh_public_key", '\0', Value),
    (Name::StageIn, "stagein", 's', Value),
    (Name::StageInMd5, "stagein-md5sum", '\0', Value),
    (Name::Stderr, "stderr", 'E', Value),
    (Name::Stdout, "stdout", 'O', Value),
    (Name::Type, "type", 't', Value),
    (Name::UseJobKey, "use-job-key", 'k', Nothing),
    (Name::Verbose, "verbose", 'v', Nothing),
    (Name::Version, "version", 'V', Nothing),
    (Name::Xml, "xml", 'X', Nothing),
    (Name::Yaml, "yaml", 'Y', Nothing),
];

impl Name {
    /// The long form, with its dashes.
    pub fn long(self) -> String {
        let name = OPTIONS.iter().find(|(option, ..)| *option == self).map_or("", |(_, name, ..)| name);
        format!("--{name}")
    }

    /// Whether a script may give it in a directive.
    pub const fn may_be_directive(self) -> bool {
        !matches!(
            self,
            Self::Connect
                | Self::Dumper
                | Self::Help
                | Self::Interactive
                | Self::Json
                | Self::Resubmit
                | Self::ScanScript
                | Self::Verbose
                | Self::Version
                | Self::Xml
                | Self::Yaml
        )
    }

    /// Whether several values add up.
    pub const fn adds_up(self) -> bool {
        matches!(self, Self::Anterior | Self::Resource | Self::Type)
    }
}

/// An option as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The option.
    pub name: Name,
    /// Its value; empty for an option without one.
    pub value: String,
}

/// A command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The options, in order.
    pub options: Vec<Given>,
    /// The words that are no options: the command.
    pub operands: Vec<String>,
}

impl Words {
    /// The last value of an option.
    pub fn value(&self, name: Name) -> Option<&str> {
        self.options.iter().rev().find(|given| given.name == name).map(|given| given.value.as_str())
    }

    /// All values of an option.
    pub fn values(&self, name: Name) -> Vec<&str> {
        self.options.iter().filter(|given| given.name == name).map(|given| given.value.as_str()).collect()
    }

    /// Whether an option is given.
    pub fn has(&self, name: Name) -> bool {
        self.value(name).is_some()
    }
}

/// Reads a command line without the name of the program.
///
/// # Errors
/// An unknown or ambiguous option, or one without its value.
pub fn read<S: AsRef<str>>(words: &[S]) -> Result<Words, Refusal> {
    let mut read = Words::default();
    let mut words = words.iter().map(AsRef::as_ref).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            read.operands.extend(words.map(str::to_owned));
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, glued) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let (name, takes) = long_option(name)?;
            read.options.push(with_value(name, takes, glued, &mut words)?);
            continue;
        }
        match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            Some(letters) => read_letters(letters, &mut words, &mut read.options)?,
            None => read.operands.push(word.to_owned()),
        }
    }
    Ok(read)
}

/// The option of a long name, or of the beginning of one.
fn long_option(name: &str) -> Result<(Name, Takes), Refusal> {
    let exact = OPTIONS.iter().find(|(_, long, ..)| *long == name);
    let mut begun = OPTIONS.iter().filter(|(_, long, ..)| !name.is_empty() && long.starts_with(name));
    match (exact.or_else(|| begun.next()), exact.is_none().then(|| begun.next()).flatten()) {
        (Some((_, first, ..)), Some((_, second, ..))) => {
            let message = format!("the option --{name} could be --{first} or --{second}");
            Err(Refusal::new(Code::Usage, message))
        }
        (Some((name, _, _, takes)), None) => Ok((*name, *takes)),
        (None, _) => {
            let near = suggestion(name, OPTIONS.iter().map(|(_, long, ..)| *long));
            Err(Refusal::new(Code::Usage, format!("no option is called --{}{near}", shown(name))))
        }
    }
}

type Rest<'w, W> = std::iter::Peekable<W>;

fn with_value<'w, W: Iterator<Item = &'w str>>(
    name: Name,
    takes: Takes,
    glued: Option<&str>,
    words: &mut Rest<'w, W>,
) -> Result<Given, Refusal> {
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let value = match (takes, glued) {
        (Takes::Nothing, None) => "",
        (Takes::Nothing, Some(_)) => return Err(Refusal::option(Code::Usage, &name.long(), "takes no value")),
        (_, Some(value)) => value,
        (Takes::Number, None) => words.next_if(is_number).unwrap_or_default(),
        (Takes::Value, None) => {
            words.next().ok_or_else(|| Refusal::option(Code::Usage, &name.long(), "the value is missing"))?
        }
    };
    Ok(Given { name, value: value.to_owned() })
}

/// Reads letters that are glued together. The first that takes a value takes the rest of the word, or the next word.
fn read_letters<'w, W: Iterator<Item = &'w str>>(
    letters: &str,
    words: &mut Rest<'w, W>,
    options: &mut Vec<Given>,
) -> Result<(), Refusal> {
    for (place, letter) in letters.char_indices() {
        let known = OPTIONS.iter().find(|(_, _, known, _)| *known == letter && letter != '\0');
        let Some((name, _, _, takes)) = known else {
            return Err(Refusal::new(Code::Usage, format!("no option is called -{}", shown(&letter.to_string()))));
        };
        if *takes == Takes::Nothing {
            options.push(Given { name: *name, value: String::new() });
            continue;
        }
        let behind = &letters[place + letter.len_utf8()..];
        options.push(with_value(*name, *takes, Some(behind).filter(|behind| !behind.is_empty()), words)?);
        return Ok(());
    }
    Ok(())
}

/// Reads one option with its value as a script's directive gives it: the value is the rest of the line, without quotes
/// around it.
///
/// # Errors
/// The first mistake, as a sentence.
pub fn read_directive(text: &str) -> Result<Given, String> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (name, takes, value) = match word.strip_prefix("--") {
        Some(long) => {
            let (name, glued) = long.split_once('=').unwrap_or((long, ""));
            let behind = long.split_once('=').map_or(rest, |_| text[word.len() - glued.len()..].trim());
            let (name, takes) = long_option(name).map_err(|refusal| refusal.message)?;
            (name, takes, behind)
        }
        None => {
            let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
            let letter = letters.next().unwrap_or_default();
            let known = OPTIONS.iter().find(|(_, _, known, _)| *known == letter && letter != '\0');
            let (name, _, _, takes) = known.ok_or_else(|| format!("'{}' is no option", shown(word)))?;
            (*name, *takes, text[1 + letter.len_utf8()..].trim())
        }
    };
    if !name.may_be_directive() {
        return Err(format!("{} is an option of the command line alone", name.long()));
    }
    match (takes, unquoted(value)) {
        (Takes::Nothing, "") => Ok(Given { name, value: String::new() }),
        (Takes::Nothing, value) => Err(format!("{} takes no value, found '{}'", name.long(), shown(value))),
        (_, "") => Err(format!("the value of {} is missing", name.long())),
        (_, value) => Ok(Given { name, value: value.to_owned() }),
    }
}

/// The text without one pair of quotes around all of it.
fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}
