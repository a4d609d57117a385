//! Rules for submissions as OAR has them: pieces of Perl, which are recognised and never run (OAR-C-07).

/// A rule that OAR installs by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it does.
    pub meaning: &'static str,
    /// Its replacement here.
    pub instead: &'static str,
    /// All of these are in its text.
    marks: &'static [&'static str],
}

/// The default rules of OAR. The first whose marks are all in a text is meant, so those with more marks come first.
pub const KNOWN: [Known; 17] = [
    known("puts a job without queue into the queue default", "rule #1, default_queue", &["not defined($queue_name)"]),
    known("keeps root and oar from submitting", "rule #2; name others in a filter", &["$user eq \"root\""]),
    known("keeps jobs off resources that drain", "rule #3", &["drain='NO'"]),
    known("keeps the queue admin for the group admin", "rule #4, users of the queue", &["$queue_name eq \"admin\""]),
    known("refuses a deploy job that asks for parts of nodes", "rule #8", &["@bad_resources", "deploy"]),
    known("refuses system properties as levels", "rule #5", &["@bad_resources"]),
    known("refuses best-effort reservations", "rule #6", &["besteffort", "reservation"]),
    known("puts best-effort jobs into their queue", "rule #6", &["$queue_name = \"besteffort\""]),
    known("gives jobs of the queue besteffort their type", "rule #6", &["push", "\"besteffort\""]),
    known("keeps best-effort jobs on resources for them", "rule #6", &["besteffort = 'YES'"]),
    known("keeps deploy jobs on resources for them", "rule #8", &["deploy = 'YES'"]),
    known("keeps jobs for agents on resources for them", "rule #9", &["desktop_computing"]),
    known("limits the reservations of a user", "rule #10", &["unlimited_reservation"]),
    known("limits the walltime of interactive jobs", "rule #11, 12 hours", &["\"INTERACTIVE\"", "walltime"]),
    known("gives a job without walltime the default one", "rule #12, 2 hours", &["default_wall"]),
    known("refuses unknown types", "rule #13", &["@types", "type_list"]),
    known("asks for resources of type default", "rule #14", &["type='default'"]),
];

const fn known(meaning: &'static str, instead: &'static str, marks: &'static [&'static str]) -> Known {
    Known { meaning, instead, marks }
}

/// The variables by which a rule reaches the job.
const VARIABLES: [&str; 12] = [
    "$queue_name",
    "$jobproperties",
    "$jobType",
    "$type_list",
    "@{$type_list}",
    "$ref_resource_list",
    "$max_nb_resa",
    "$initial_request_string",
    "$project",
    "$jobWalltime",
    "$user",
    "[ADMISSION RULE]",
];

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// A default rule of OAR.
    Default(Known),
    /// Another rule in Perl; the line, from 1, in which it first reaches for the job, and the word there.
    Rule(usize, &'static str),
    /// A program of its own: it begins with `#!`.
    Program,
    /// Something else.
    Other,
}

/// Says what the text of a rule is. Comments, and how much blank is between words, do not matter.
pub fn recognised(text: &str) -> Text {
    if text.starts_with("#!") {
        return Text::Program;
    }
    let code = text.lines().map(|line| if line.trim_start().starts_with('#') { "" } else { line });
    let squeezed: String = code.clone().flat_map(str::split_whitespace).collect();
    let has = |mark: &&str| squeezed.contains(&mark.split_whitespace().collect::<String>());
    if let Some(known) = KNOWN.iter().find(|known| known.marks.iter().all(has)) {
        return Text::Default(*known);
    }
    let first = |line: &str| VARIABLES.into_iter().find(|variable| line.contains(variable));
    let found = (1..).zip(code).find_map(|(at, line)| Some((at, first(line)?)));
    found.map_or(Text::Other, |(at, variable)| Text::Rule(at, variable))
}
