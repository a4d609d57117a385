//! The names of output files: `name.o123`, `name.e123`, with the index for the tasks of an array, and what `-o`, `-e`,
//! `-j` and `-k` change.

use super::{
    rules::Caller,
    settings::{Join, Settings},
};
use crate::flavour::Flavour;

/// The output files of a job, as patterns of the job model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFiles {
    /// Standard output.
    pub stdout: Option<String>,
    /// Standard error; `None` for the same.
    pub stderr: Option<String>,
    /// A sentence for each request without effect.
    pub warnings: Vec<String>,
}

/// What the names depend on.
#[derive(Clone, Copy, Debug)]
pub struct OutputNames<'a> {
    /// The submitter.
    pub caller: &'a Caller,
    /// The member of the family: its arrays are named in its way.
    pub flavour: Flavour,
    /// The server's name.
    pub server: &'a str,
    /// Whether the job is an array.
    pub is_array: bool,
}

/// The pattern of a default name; `letter` is `o` or `e`.
pub fn default_pattern(flavour: Flavour, letter: char, is_array: bool) -> String {
    match (is_array, flavour) {
        (false, _) => format!("%x.{letter}%A"),
        (true, Flavour::PbsPro) => format!("%x.{letter}%A.%a"),
        (true, Flavour::Torque) => format!("%x.{letter}%A-%a"),
    }
}

/// Text in a pattern.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

impl OutputNames<'_> {
    /// The files of a job with these options.
    pub fn files(&self, settings: &Settings) -> JobFiles {
        let mut files = JobFiles::default();
        let keep = settings.keep;
        let stdout = self.file('o', settings.output.as_deref(), keep.output && !keep.direct, &mut files.warnings);
        let stderr = self.file('e', settings.error.as_deref(), keep.error && !keep.direct, &mut files.warnings);
        (files.stdout, files.stderr) = match settings.join {
            Join::ToOutput => (Some(stdout), None),
            Join::ToError => (Some(stderr), None),
            Join::Neither => (Some(stdout), Some(stderr)),
        };
        files
    }

    fn file(&self, letter: char, given: Option<&str>, is_kept: bool, warnings: &mut Vec<String>) -> String {
        let name = default_pattern(self.flavour, letter, self.is_array);
        if is_kept {
            return format!("{}/{name}", escaped(self.caller.home.trim_end_matches('/')));
        }
        let Some(given) = given else { return self.caller_folder(&name) };
        let path = self.without_host(given, letter, warnings);
        let is_folder = path.ends_with('/') || (self.caller.is_folder)(&self.caller.absolute(path));
        let pattern = self.pattern(path);
        let pattern = if pattern.starts_with('/') { pattern } else { self.caller_folder(&pattern) };
        match is_folder {
            true => format!("{}/{name}", pattern.trim_end_matches('/')),
            false => self.with_index(pattern),
        }
    }

    fn caller_folder(&self, pattern: &str) -> String {
        format!("{}/{pattern}", escaped(self.caller.directory.trim_end_matches('/')))
    }

    /// The tasks of an array do not write to one file.
    fn with_index(&self, pattern: String) -> String {
        if !self.is_array || pattern.contains("%a") || pattern.starts_with("/dev/") {
            return pattern;
        }
        match self.flavour {
            Flavour::PbsPro => format!("{pattern}.%a"),
            Flavour::Torque => format!("{pattern}-%a"),
        }
    }

    /// The path of `host:path`.
    fn without_host<'p>(&self, given: &'p str, letter: char, warnings: &mut Vec<String>) -> &'p str {
        let Some((host, path)) = given.split_once(':').filter(|(host, _)| !host.contains('/')) else { return given };
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let is_here = host.is_empty() || host == "localhost" || short(host) == short(&self.caller.host);
        if !is_here {
            warnings.push(format!(
                "warning: the host of -{letter} has no effect here: output is written where the job runs, to {path}"
            ));
        }
        path
    }

    /// A path as a pattern: `^array_index^` of PBS Pro and the variables that TORQUE expands get their meaning.
    fn pattern(&self, path: &str) -> String {
        let path = escaped(path).replace("^array_index^", "%a");
        let mut pattern = String::with_capacity(path.len());
        let mut rest = path.as_str();
        while let Some(at) = rest.find('$') {
            pattern.push_str(&rest[..at]);
            let (name, after) = variable_at(&rest[at..]);
            match self.meaning(name) {
                Some(meaning) => pattern.push_str(&meaning),
                None => pattern.push_str(&rest[at..rest.len() - after.len()]),
            }
            rest = after;
        }
        pattern.push_str(rest);
        pattern
    }

    fn meaning(&self, name: &str) -> Option<String> {
        let server = if self.server.is_empty() { String::new() } else { format!(".{}", escaped(self.server)) };
        match (name, self.is_array) {
            ("PBS_JOBID", false) => Some(format!("%A{server}")),
            ("PBS_JOBID", true) => Some(format!("%A[%a]{server}")),
            ("PBS_ARRAYID" | "PBS_ARRAY_INDEX", true) => Some("%a".to_owned()),
            ("PBS_JOBNAME", _) => Some("%x".to_owned()),
            ("", _) => None,
            (name, _) => self.caller.variable(name).map(escaped),
        }
    }
}

/// The name of the variable that a text begins with, after its `$`, and what follows.
fn variable_at(text: &str) -> (&str, &str) {
    let after = text.strip_prefix('$').unwrap_or(text);
    if let Some((name, rest)) = after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
        return (name, rest);
    }
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
    after.split_at(end)
}
