//! The options of `squeue` (SL-C-24 to C-26).

use super::{
    Failure, Request, Surroundings, data_format,
    getopt::{Line, Opt, Takes::*, alias, opt, parse as read},
    ids, iterate, known_states, nodes, printed_only, set, states,
};
use crate::{
    job_id::IdExpression,
    show::data::DataFormat,
    show::squeue::{
        DEFAULT_FORMAT, DEFAULT_SORT, Filter, Format, LONG_FORMAT, Listing, START_FORMAT, START_SORT, STEP_FORMAT,
        States,
    },
    words::State,
};

const NAME: &str = "squeue";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('A'), "account", Value),
    alias("account", "accounts", Value),
    opt(Some('a'), "all", Nothing),
    opt(Some('r'), "array", Nothing),
    opt(None, "array-unique", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(None, "federation", Nothing),
    opt(Some('o'), "format", Value),
    opt(Some('O'), "Format", Value),
    opt(None, "help", Nothing),
    opt(None, "hide", Nothing),
    opt(Some('i'), "iterate", Value),
    opt(Some('j'), "jobs", Maybe),
    opt(None, "json", MaybeGlued),
    opt(None, "yaml", MaybeGlued),
    opt(Some('L'), "licenses", Value),
    opt(None, "local", Nothing),
    opt(Some('l'), "long", Nothing),
    opt(None, "me", Nothing),
    opt(Some('n'), "name", Value),
    alias("name", "names", Value),
    opt(None, "noconvert", Nothing),
    opt(Some('w'), "nodelist", Value),
    alias("nodelist", "node", Value),
    alias("nodelist", "nodes", Value),
    opt(Some('h'), "noheader", Nothing),
    opt(Some('p'), "partition", Value),
    alias("partition", "partitions", Value),
    opt(Some('P'), "priority", Nothing),
    opt(Some('q'), "qos", Value),
    opt(Some('R'), "reservation", Value),
    opt(None, "sibling", Nothing),
    opt(Some('S'), "sort", Value),
    opt(None, "start", Nothing),
    opt(Some('t'), "states", Value),
    alias("states", "state", Value),
    opt(Some('s'), "steps", Maybe),
    opt(None, "usage", Nothing),
    opt(Some('u'), "user", Value),
    alias("user", "users", Value),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// What `squeue` lists.
#[derive(Clone, Debug)]
pub struct Squeue {
    /// Only these jobs and parts; empty means all.
    pub ids: Vec<IdExpression>,
    /// Lists steps instead of jobs: those of these jobs, or these steps; empty means all.
    pub steps: Option<Vec<IdExpression>>,
    /// The contents and their layout.
    pub listing: Listing,
    /// Repeats the list after this many seconds.
    pub iterate_seconds: Option<u64>,
    /// As data for programs.
    pub data: Option<DataFormat>,
    /// The lines that `-v` prints first.
    pub verbose: Vec<String>,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options, ids, states and nodes, with Slurm's messages.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Squeue>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    if let Some(word) = line.words.first() {
        return Err(Failure::error(NAME, format_args!("Unrecognized option: {word}")));
    }
    let list = |key: &str| match line.value(key).filter(|text| !text.is_empty()) {
        None => Ok(Vec::new()),
        Some(text) => ids(text, |word| Failure::error(NAME, format_args!("Invalid job id: {word}"))),
    };
    let iterate_seconds = iterate(NAME, &line)?;
    let listing = listing(&line, around)?;
    let verbose = if line.has("verbose") { verbose(&line, &listing) } else { Vec::new() };
    let jobs = list("jobs")?;
    let steps = match line.has("steps") {
        // Without named steps, those of the named jobs.
        true => Some(list("steps")?).map(|steps| if steps.is_empty() { jobs.clone() } else { steps }),
        false => None,
    };
    Ok(Request::Run(Squeue { ids: jobs, steps, listing, iterate_seconds, data: data_format(&line), verbose }))
}

fn listing(line: &Line, around: &Surroundings<'_>) -> Result<Listing, Failure> {
    let variable = |name: &str| (around.variable)(name).filter(|text| !text.is_empty());
    let given = |key: &str, name: &str| line.value(key).map(str::to_owned).or_else(|| variable(name));
    let is_start = line.has("start");
    let format = match (line.value("Format"), line.value("format")) {
        (Some(names), _) => Some(Format::Names(names.to_owned())),
        (None, Some(letters)) => Some(Format::Letters(letters.to_owned())),
        // These have their own format.
        (None, None) if is_start || line.has("steps") || line.has("long") => None,
        (None, None) => {
            variable("SQUEUE_FORMAT").map(Format::Letters).or_else(|| variable("SQUEUE_FORMAT2").map(Format::Names))
        }
    };
    let usual = match () {
        () if line.has("steps") => STEP_FORMAT,
        () if is_start => START_FORMAT,
        () if line.has("long") => LONG_FORMAT,
        () => DEFAULT_FORMAT,
    };
    Ok(Listing {
        format: format.unwrap_or_else(|| Format::Letters(usual.to_owned())),
        filter: filter(line, around, is_start)?,
        sort: given("sort", "SQUEUE_SORT")
            .unwrap_or_else(|| if is_start { START_SORT } else { DEFAULT_SORT }.to_owned()),
        no_header: line.has("noheader"),
        is_dated: line.has("long") || line.has("iterate"),
        is_by_task: line.has("array") || variable("SQUEUE_ARRAY").is_some(),
    })
}

fn filter(line: &Line, around: &Surroundings<'_>, is_start: bool) -> Result<Filter, Failure> {
    let given = |key: &str, name: &str| {
        let variable = || (around.variable)(name).filter(|text| !text.is_empty());
        line.value(key).map(str::to_owned).or_else(variable).unwrap_or_default()
    };
    let mut users = set(&given("user", "SQUEUE_USERS"));
    if let Some(unknown) = users.iter().find(|user| !(around.knows_user)(user)) {
        return Err(Failure::error(NAME, format_args!("Invalid user: {unknown}")));
    }
    if line.has("me") {
        users = [around.user.to_owned()].into();
    }
    let states_text = given("states", "SQUEUE_STATES");
    let wanted = match states_text.as_str() {
        "" if is_start => States::These(vec![State::Pending]),
        "" => States::Unfinished,
        text if text.eq_ignore_ascii_case("all") => States::All,
        text => States::These(states(text).map_err(|word| Failure {
            lines: vec![
                format!("{NAME}: error: Invalid job state specified: {word}"),
                format!("{NAME}: error: Valid job states include: {}", known_states()),
            ],
            code: 1,
        })?),
    };
    Ok(Filter {
        states: wanted,
        users,
        partitions: set(&given("partition", "SQUEUE_PARTITION")),
        names: set(&given("name", "SQUEUE_NAMES")),
        accounts: set(&given("account", "SQUEUE_ACCOUNT")),
        classes: set(&given("qos", "SQUEUE_QOS")),
        nodes: nodes(NAME, line.value("nodelist").unwrap_or_default())?,
        reservations: set(line.value("reservation").unwrap_or_default()),
        licences: set(&given("licenses", "SQUEUE_LICENSES")),
    })
}

/// The lines of `-v` about the options (SL-C-27).
fn verbose(line: &Line, listing: &Listing) -> Vec<String> {
    let truth = |key: &str| if line.has(key) { "true" } else { "false" }.to_owned();
    let value = |key: &str| line.value(key).unwrap_or("(null)").to_owned();
    let format = match &listing.format {
        Format::Letters(format) | Format::Names(format) => format.clone(),
    };
    let pairs = [
        ("all", truth("all")),
        ("array", truth("array")),
        ("format", format),
        ("iterate", line.value("iterate").unwrap_or("0").to_owned()),
        ("job_flag", u8::from(line.has("jobs")).to_string()),
        ("jobs", value("jobs")),
        ("names", value("name")),
        ("nodes", line.value("nodelist").unwrap_or_default().to_owned()),
        ("partitions", value("partition")),
        ("reservation", value("reservation")),
        ("sort", listing.sort.clone()),
        ("start_flag", truth("start")),
        ("states", value("states")),
        ("step_flag", u8::from(line.has("steps")).to_string()),
        ("steps", value("steps")),
        ("users", value("user")),
        ("verbose", line.count("verbose").to_string()),
    ];
    let rule = "-----------------------------".to_owned();
    let lines = pairs.into_iter().map(|(name, value)| format!("{name:<11} = {value}"));
    [rule.clone()].into_iter().chain(lines).chain([rule]).collect()
}
