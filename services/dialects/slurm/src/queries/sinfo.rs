//! The options of `sinfo` (SL-C-29).

use super::{
    Failure, Request, Surroundings, data_format,
    getopt::{Line, Opt, Takes::*, alias, opt, parse as read},
    iterate, nodes, printed_only, set, words,
};
use crate::{
    show::{
        data::DataFormat,
        sinfo::{Arrangement, Overview},
        squeue::Format,
    },
    words::StateTest,
};

const NAME: &str = "sinfo";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('a'), "all", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(Some('d'), "dead", Nothing),
    opt(Some('e'), "exact", Nothing),
    opt(None, "federation", Nothing),
    opt(Some('F'), "future", Nothing),
    opt(Some('o'), "format", Value),
    opt(Some('O'), "Format", Value),
    opt(None, "help", Nothing),
    opt(None, "hide", Nothing),
    opt(Some('i'), "iterate", Value),
    opt(None, "json", MaybeGlued),
    opt(None, "yaml", MaybeGlued),
    opt(Some('R'), "list-reasons", Nothing),
    opt(None, "local", Nothing),
    opt(Some('l'), "long", Nothing),
    opt(None, "noconvert", Nothing),
    opt(Some('N'), "Node", Nothing),
    opt(Some('n'), "nodes", Value),
    opt(Some('h'), "noheader", Nothing),
    opt(Some('p'), "partition", Value),
    opt(Some('T'), "reservation", Nothing),
    opt(Some('r'), "responding", Nothing),
    opt(Some('S'), "sort", Value),
    opt(Some('t'), "states", Value),
    alias("states", "state", Value),
    opt(Some('s'), "summarize", Nothing),
    opt(None, "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// What `sinfo` shows.
#[derive(Clone, Debug)]
pub struct Sinfo {
    /// The contents and their layout.
    pub overview: Overview,
    /// Reservations instead of nodes.
    pub reservations: bool,
    /// Repeats the list after this many seconds.
    pub iterate_seconds: Option<u64>,
    /// As data for programs.
    pub data: Option<DataFormat>,
    /// The lines of `-v` about the options.
    pub verbose: Vec<String>,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options, states and nodes, with Slurm's messages.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Sinfo>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let iterate_seconds = iterate(NAME, &line)?;
    Ok(Request::Run(Sinfo {
        overview: overview(&line, around)?,
        reservations: line.has("reservation"),
        iterate_seconds,
        data: data_format(&line),
        verbose: if line.has("verbose") { verbose(&line) } else { Vec::new() },
    }))
}

fn verbose(line: &Line) -> Vec<String> {
    let truth = |key: &str| if line.has(key) { "true" } else { "false" }.to_owned();
    let value = |key: &str| line.value(key).unwrap_or("n/a").to_owned();
    let pairs = [
        ("dead", truth("dead")),
        ("exact", u8::from(line.has("exact")).to_string()),
        ("format", value("format")),
        ("iterate", line.value("iterate").unwrap_or("0").to_owned()),
        ("long", truth("long")),
        ("no_header", truth("noheader")),
        ("node_field", truth("Node")),
        ("nodes", value("nodes")),
        ("partition", value("partition")),
        ("responding", truth("responding")),
        ("states", line.value("states").unwrap_or("(null)").to_owned()),
        ("sort", line.value("sort").unwrap_or("(null)").to_owned()),
        ("summarize", truth("summarize")),
        ("verbose", line.count("verbose").to_string()),
    ];
    let rule = "-----------------------------".to_owned();
    let lines = pairs.into_iter().map(|(name, value)| format!("{name:<11} = {value}"));
    std::iter::once(rule.clone()).chain(lines).chain([rule]).collect()
}

fn overview(line: &Line, around: &Surroundings<'_>) -> Result<Overview, Failure> {
    let variable = |name: &str| (around.variable)(name).filter(|text| !text.is_empty());
    let given = |key: &str, name: &str| line.value(key).map(str::to_owned).or_else(|| variable(name));
    let arrangement = match () {
        () if line.has("summarize") => Arrangement::Summary,
        () if line.has("list-reasons") => Arrangement::Reasons,
        () if line.has("Node") => Arrangement::Nodes,
        () => Arrangement::Partitions,
    };
    let test = |word: String| {
        StateTest::parse(&word).ok_or_else(|| Failure {
            lines: vec![
                format!("{NAME}: error: Bad state string: \"{word}\""),
                format!("{NAME}: error: Valid states include: {}", StateTest::WORDS.map(|(word, _)| word).join(",")),
            ],
            code: 1,
        })
    };
    let states = words(line.value("states").unwrap_or_default()).map(test).collect::<Result<_, _>>()?;
    Ok(Overview {
        arrangement,
        format: match (line.value("Format"), line.value("format")) {
            (Some(names), _) => Some(Format::Names(names.to_owned())),
            (None, Some(letters)) => Some(Format::Letters(letters.to_owned())),
            // The others have their own format.
            (None, None) if arrangement != Arrangement::Partitions => None,
            (None, None) => variable("SINFO_FORMAT").map(Format::Letters),
        },
        is_long: line.has("long"),
        no_header: line.has("noheader"),
        partitions: set(&given("partition", "SINFO_PARTITION").unwrap_or_default()),
        nodes: nodes(NAME, line.value("nodes").unwrap_or_default())?,
        states,
        responding: match (line.has("responding"), line.has("dead")) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        },
        is_exact: line.has("exact"),
        sort: given("sort", "SINFO_SORT"),
    })
}
