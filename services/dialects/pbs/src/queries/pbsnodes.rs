//! `pbsnodes`.

use crate::{flavour::Flavour, getopt, refusal::Refusal};

/// The most nodes that a command names.
const MOST_NODES: usize = 100_000;
/// The longest comment, in bytes.
const MOST_COMMENT_BYTES: usize = 1_024;

/// An action on nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodesAction {
    /// They are shown.
    #[default]
    Show,
    /// Those out of service are listed in a line each (`-l`).
    ListMarked,
    /// They take no new jobs (`-o`).
    Offline,
    /// They take jobs again (`-r`, `-c`).
    Clear,
    /// Only their comment changes (`-C`, TORQUE's `-N`).
    Comment,
}

/// The form in which nodes are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodesFormat {
    /// All attributes.
    #[default]
    Text,
    /// All attributes in one line, with this delimiter (`-F dsv`).
    Dsv(String),
    /// All attributes as JSON (`-F json`).
    Json,
    /// All attributes as XML (TORQUE's `-x`).
    Xml,
}

/// A request of `pbsnodes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodesRequest {
    /// The action.
    pub action: NodesAction,
    /// The form in which they are shown.
    pub format: NodesFormat,
    /// Whether each gets one line with columns (`-S`).
    pub summary: bool,
    /// Whether that line is about jobs (`-j`).
    pub jobs: bool,
    /// Whether nothing in that line is cut (`-L`).
    pub long: bool,
    /// Only nodes in this state (TORQUE's `-l STATE`).
    pub state: Option<String>,
    /// Whether comments are listed (TORQUE's `-n`).
    pub notes: bool,
    /// The new comment (`-C`, TORQUE's `-N`); an empty one removes it.
    pub comment: Option<String>,
    /// Whether nothing is written on standard error (`-q`).
    pub quiet: bool,
    /// The server (`-s`).
    pub server: Option<String>,
    /// The nodes by name; empty for all.
    pub nodes: Vec<String>,
}

const LETTERS: &str = "acC:dD:F:HjlLnN:opqrs:Svx";
/// The states by which TORQUE lists nodes.
const STATES: [&str; 12] = [
    "free",
    "offline",
    "down",
    "reserve",
    "job-exclusive",
    "job-sharing",
    "busy",
    "state-unknown",
    "time-shared",
    "active",
    "all",
    "up",
];

/// Reads a command line.
///
/// # Errors
/// An unknown option, options that exclude each other, or no node where one is needed.
pub fn pbsnodes(words: &[String], flavour: Flavour) -> Result<NodesRequest, Refusal> {
    let read = getopt::read(LETTERS, words)?;
    if words.is_empty() && flavour == Flavour::PbsPro {
        return Err(Refusal::Operands("options or the names of nodes are missing".to_owned()));
    }
    for (letter, why) in [
        ('d', "nodes are taken out of service one by one, with -o"),
        ('p', "`qmgr -c \"delete node NAME\"` removes a node"),
    ] {
        if read.has(letter) {
            return Err(Refusal::unsupported(&format!("-{letter}"), why));
        }
    }
    let comment = read.value('C').or_else(|| read.value('N').map(|note| if note == "n" { "" } else { note }));
    let mut request = NodesRequest {
        action: action(&read, comment.is_some())?,
        format: format(&read)?,
        summary: read.has('S'),
        jobs: read.has('j'),
        long: read.has('L'),
        notes: read.has('n'),
        comment: comment.map(str::to_owned),
        quiet: read.has('q'),
        server: read.value('s').map(str::to_owned),
        ..NodesRequest::default()
    };
    check_comment(comment.unwrap_or_default())?;
    let is_shown = request.action == NodesAction::Show;
    if request.summary && !(is_shown && matches!(request.format, NodesFormat::Text | NodesFormat::Dsv(_))) {
        return Err(Refusal::Operands("-S goes with lists of nodes as text and with -F dsv".to_owned()));
    }
    if request.notes && request.action != NodesAction::ListMarked {
        return Err(Refusal::Operands("-n requires -l".to_owned()));
    }
    let shows_all = read.has('a');
    let mut names = read.all_operands();
    if request.action == NodesAction::ListMarked
        && let Some(state) = names.first().and_then(|word| STATES.iter().find(|state| word.eq_ignore_ascii_case(state)))
    {
        request.state = Some((*state).to_owned());
        names.remove(0);
    }
    require_names(&names)?;
    let needs_names = match request.action {
        NodesAction::Show => !shows_all && flavour == Flavour::PbsPro && request.format != NodesFormat::Xml,
        NodesAction::ListMarked => false,
        NodesAction::Offline | NodesAction::Clear | NodesAction::Comment => true,
    };
    if needs_names && names.is_empty() {
        return Err(Refusal::Operands("the name of a node is missing".to_owned()));
    }
    // The original ignores names beside -a.
    request.nodes = if shows_all && is_shown && flavour == Flavour::PbsPro { Vec::new() } else { names };
    Ok(request)
}

fn action(read: &getopt::Words, has_comment: bool) -> Result<NodesAction, Refusal> {
    let chosen: Vec<char> = ['a', 'l', 'o', 'r', 'c'].into_iter().filter(|letter| read.has(*letter)).collect();
    match (chosen.as_slice(), has_comment) {
        ([] | ['a'], false) => Ok(NodesAction::Show),
        ([], true) => Ok(NodesAction::Comment),
        (['l'], false) => Ok(NodesAction::ListMarked),
        (['o'], _) => Ok(NodesAction::Offline),
        (['r' | 'c'], _) => Ok(NodesAction::Clear),
        _ => Err(Refusal::Operands("conflicting options.".to_owned())),
    }
}

fn format(read: &getopt::Words) -> Result<NodesFormat, Refusal> {
    let delimiter = read.value('D');
    let format = match read.value('F').map(str::to_ascii_lowercase).as_deref() {
        None | Some("default") if read.has('x') => NodesFormat::Xml,
        None | Some("default") => NodesFormat::Text,
        Some("dsv") => NodesFormat::Dsv(delimiter.unwrap_or("|").to_owned()),
        Some("json") => NodesFormat::Json,
        Some(other) => return Err(Refusal::value("-F", other, "expected default, dsv or json")),
    };
    match (delimiter, &format) {
        (Some(_), NodesFormat::Text | NodesFormat::Json | NodesFormat::Xml) => {
            Err(Refusal::Operands("-D goes with -F dsv".to_owned()))
        }
        _ => Ok(format),
    }
}

fn check_comment(comment: &str) -> Result<(), Refusal> {
    match comment.len() > MOST_COMMENT_BYTES || comment.contains(char::is_control) {
        true => {
            let why = format!("expected at most {MOST_COMMENT_BYTES} bytes without line ends");
            Err(Refusal::value("-C", comment, why))
        }
        false => Ok(()),
    }
}

fn require_names(names: &[String]) -> Result<(), Refusal> {
    if names.len() > MOST_NODES {
        return Err(Refusal::Operands(format!("at most {MOST_NODES} nodes are taken")));
    }
    match names.iter().any(|name| name.is_empty() || name.len() > 1_024) {
        true => Err(Refusal::Operands("the name of a node has 1 to 1024 bytes".to_owned())),
        false => Ok(()),
    }
}

/// Whether a node in a state is listed by `-l STATE`, or by `-l` without one.
pub fn is_in_state(state: &str, wanted: Option<&str>) -> bool {
    let has = |word: &str| state.split(',').any(|one| one == word);
    match wanted {
        None => crate::show::marked(state),
        Some("all") => true,
        Some("up") => !crate::show::marked(state),
        Some("down") => has("down") || has("state-unknown"),
        Some("active") => ["busy", "job-busy", "job-exclusive", "job-sharing"].into_iter().any(has),
        Some("busy") => has("busy") || has("job-busy"),
        Some(word) => has(word),
    }
}
