//! Commands that do one thing to jobs: `qdel`, `qhold`, `qrls`, `qsig`, `qrerun`, `qmove`, `qorder`, `qmsg` and `qrun`.

use super::operands::{Destination, ids};
use crate::{getopt, job_id::PbsJobId, refusal::Refusal, text::decimal};
use muster_schemas::job::Holds;

/// A request of `qdel`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// The jobs.
    pub jobs: Vec<PbsJobId>,
    /// Whether to delete without waiting for nodes that do not answer (`-W force`, TORQUE's `-p`).
    pub force: bool,
    /// Seconds from SIGTERM to SIGKILL (`-W n`, TORQUE's `-W n`).
    pub delay_seconds: Option<u32>,
    /// Whether to remove the job's history too (PBS Pro's `-x`).
    pub history: bool,
    /// The message that the owner gets (TORQUE's `-m`).
    pub message: Option<String>,
    /// Whether all jobs of the caller are meant: TORQUE's `qdel all`.
    pub all: bool,
    /// Tasks of the arrays (TORQUE's `-t`).
    pub tasks: Option<String>,
}

/// Reads a command line of `qdel`.
///
/// # Errors
/// An unknown option or a wrong value, or no job.
pub fn qdel(words: &[String]) -> Result<Deletion, Refusal> {
    let read = getopt::read("aAcEm:pt:vW:x", words)?;
    let mut deletion = Deletion { history: read.has('x'), force: read.has('p'), ..Deletion::default() };
    deletion.message = read.value('m').map(str::to_owned);
    deletion.tasks = read.value('t').map(str::to_owned);
    for given in read.options.iter().filter(|given| given.letter == 'W') {
        for word in given.value.split(',').map(str::trim) {
            match word {
                "force" => deletion.force = true,
                "suppress_email" => {}
                _ if word.starts_with("suppress_email=") => {}
                word => match decimal::<u32>(word.strip_prefix("delay=").unwrap_or(word)) {
                    Some(seconds) => deletion.delay_seconds = Some(seconds),
                    None => return Err(Refusal::value("-W", word, "expected force or a number of seconds")),
                },
            }
        }
    }
    let words = read.all_operands();
    if words.iter().any(|word| word.eq_ignore_ascii_case("all")) {
        deletion.all = true;
        return Ok(deletion);
    }
    deletion.jobs = ids(&words)?;
    Ok(deletion)
}

/// The letters of holds, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldLetters {
    /// The jobs.
    pub jobs: Vec<PbsJobId>,
    /// The holds.
    pub holds: Holds,
    /// Tasks of the arrays (TORQUE's `-t`).
    pub tasks: Option<String>,
}

fn holds(words: &[String]) -> Result<HoldLetters, Refusal> {
    let read = getopt::read("h:t:", words)?;
    let text = read.value('h').unwrap_or("u");
    let mut holds = Holds::default();
    for letter in text.chars() {
        match letter {
            'u' => holds.user = true,
            'o' => holds.operator = true,
            's' => holds.system = true,
            'n' if text.len() == 1 => {}
            'p' => return Err(Refusal::unsupported("-h p", "it is for jobs whose password is wrong")),
            _ => return Err(Refusal::value("-h", text, "expected letters of uos, or n")),
        }
    }
    if text.is_empty() {
        return Err(Refusal::value("-h", text, "expected letters of uos, or n"));
    }
    let tasks = read.value('t').map(str::to_owned);
    Ok(HoldLetters { jobs: ids(&read.all_operands())?, holds, tasks })
}

/// Reads a command line of `qhold`.
///
/// # Errors
/// An unknown option, letters that are no holds, or no job.
pub fn qhold(words: &[String]) -> Result<HoldLetters, Refusal> {
    holds(words)
}

/// Reads a command line of `qrls`.
///
/// # Errors
/// As for [`qhold`].
pub fn qrls(words: &[String]) -> Result<HoldLetters, Refusal> {
    holds(words)
}

/// A request of `qsig`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A signal's number, 0 to 64.
    Number(u8),
    /// `suspend` and `admin-suspend`.
    Suspend,
    /// `resume` and `admin-resume`.
    Resume,
}

/// The names of signals with their numbers on Linux.
const SIGNALS: [(&str, u8); 22] = [
    ("NULL", 0),
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
];

/// Reads a command line of `qsig`; the signal is SIGTERM if none is named.
///
/// # Errors
/// An unknown option or signal, or no job.
pub fn qsig(words: &[String]) -> Result<(Signal, Vec<PbsJobId>), Refusal> {
    let read = getopt::read("as:", words)?;
    let text = read.value('s').unwrap_or("SIGTERM");
    let signal = match text {
        "suspend" | "admin-suspend" => Signal::Suspend,
        "resume" | "admin-resume" => Signal::Resume,
        text => {
            let name = text.strip_prefix("SIG").unwrap_or(text);
            let known = SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
            let number = known.or_else(|| decimal::<u8>(text).filter(|number| *number <= 64));
            Signal::Number(number.ok_or_else(|| Refusal::value("-s", text, "this is not a signal"))?)
        }
    };
    Ok((signal, ids(&read.all_operands())?))
}

/// Reads a command line of `qrerun`: whether it is forced, and the jobs.
///
/// # Errors
/// An unknown option or no job.
pub fn qrerun(words: &[String]) -> Result<(bool, Vec<PbsJobId>), Refusal> {
    let read = getopt::read("fW:", words)?;
    let force = match read.value('W') {
        None => read.has('f'),
        Some("force") => true,
        Some(other) => return Err(Refusal::value("-W", other, "expected force")),
    };
    Ok((force, ids(&read.all_operands())?))
}

/// Reads a command line of `qmove`: where to, and the jobs.
///
/// # Errors
/// An unknown option, or a missing destination or job.
pub fn qmove(words: &[String]) -> Result<(Destination, Vec<PbsJobId>), Refusal> {
    let words = getopt::read("", words)?.all_operands();
    let Some((destination, jobs)) = words.split_first() else {
        return Err(Refusal::Operands("a destination is missing".to_owned()));
    };
    Ok((Destination::parse(destination)?, ids(jobs)?))
}

/// Two jobs whose places in their queue are exchanged.
pub type Order = (PbsJobId, PbsJobId);

/// Reads a command line of `qorder`.
///
/// # Errors
/// Anything but two jobs.
pub fn qorder(words: &[String]) -> Result<Order, Refusal> {
    let mut jobs = ids(&getopt::read("", words)?.all_operands())?.into_iter();
    match (jobs.next(), jobs.next(), jobs.next()) {
        (Some(one), Some(other), None) => Ok((one, other)),
        _ => Err(Refusal::Operands("two job identifiers are expected".to_owned())),
    }
}

/// A request of `qmsg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The text.
    pub text: String,
    /// Whether it goes to standard output.
    pub to_output: bool,
    /// Whether it goes to standard error; so if nothing is named.
    pub to_error: bool,
    /// The jobs.
    pub jobs: Vec<PbsJobId>,
}

/// Reads a command line of `qmsg`.
///
/// # Errors
/// An unknown option, or a missing text or job.
pub fn qmsg(words: &[String]) -> Result<Message, Refusal> {
    let read = getopt::read("EO", words)?;
    let (to_output, to_error) = (read.has('O'), read.has('E') || !read.has('O'));
    let words = read.all_operands();
    let Some((text, jobs)) = words.split_first() else {
        return Err(Refusal::Operands("a message is missing".to_owned()));
    };
    if text.len() > 4_096 {
        return Err(Refusal::Operands("a message has at most 4096 bytes".to_owned()));
    }
    Ok(Message { text: text.clone(), to_output, to_error, jobs: ids(jobs)? })
}

/// Reads a command line of `qrun`: whether it returns at once (`-a`), the nodes (`-H`), and the jobs.
///
/// # Errors
/// An unknown option or no job.
pub fn qrun(words: &[String]) -> Result<(bool, Option<String>, Vec<PbsJobId>), Refusal> {
    let read = getopt::read("aH:", words)?;
    let nodes = read.value('H').map(str::to_owned).filter(|nodes| !nodes.is_empty() && nodes != "-");
    Ok((read.has('a'), nodes, ids(&read.all_operands())?))
}

/// Reads a command line of `pbs_stagein`: the node (`-H`), and the jobs.
///
/// # Errors
/// An unknown option or no job.
pub fn pbs_stagein(words: &[String]) -> Result<(Option<String>, Vec<PbsJobId>), Refusal> {
    let read = getopt::read("H:", words)?;
    let node = read.value('H').map(str::to_owned).filter(|node| !node.is_empty() && node != "-");
    Ok((node, ids(&read.all_operands())?))
}

/// The names of the nodes in the location of `qrun -H`: those of PBS Pro's chunks, `(node1:ncpus=2)+(node2:ncpus=1)`, or of a
/// TORQUE host list, `node1/0+node2`. What each gives is left to the planner.
///
/// # Errors
/// It names no node.
pub fn run_nodes(location: &str) -> Result<Vec<String>, Refusal> {
    let name = |chunk: &str| {
        let inside = chunk.trim().trim_start_matches('(').trim_end_matches(')');
        inside.split([':', '/']).next().unwrap_or_default().trim().to_owned()
    };
    let mut names: Vec<String> = Vec::new();
    for name in location.split('+').map(name) {
        if name.is_empty() {
            return Err(Refusal::value("-H", location, "expected the names of nodes, with + between them"));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Reads a command line of `printjob`: whether attributes are left out (`-a`), and the jobs.
///
/// # Errors
/// An unknown option or no job.
pub fn printjob(words: &[String]) -> Result<(bool, Vec<PbsJobId>), Refusal> {
    let read = getopt::read("as", words)?;
    Ok((read.has('a'), ids(&read.all_operands())?))
}
