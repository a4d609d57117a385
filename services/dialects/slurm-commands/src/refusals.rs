//! Refusals by a command go to the log, like those by the system (SL-L-10): who, what and why.
//!
//! A command that ends with an error prints it with [`tell`]. The system knows what it refused itself; [`report`] tells
//! it the rest after the command has printed everything. Whether that succeeds makes no difference to the user.

use muster_cli::{connection::ConnectionOptions, stderr_line};
use muster_client::ClientError;
use muster_schemas::{
    CommandId,
    views::{ErrorCode, RefusalNote},
};
use muster_slurm::queries::Failure;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// The longest time that the user waits for this report.
const PATIENCE: Duration = Duration::from_millis(200);
/// The most refusals to report; the log takes no more from one user in a short time.
const MOST_NOTES: usize = 20;
/// The commands that only show something, and ask for nothing that could be refused.
const LISTS: [&str; 9] = ["squeue", "sinfo", "sacct", "sdiag", "seff", "sprio", "sreport", "sshare", "sstat"];
/// The commands whose first word is a verb.
const WITH_VERBS: [&str; 2] = ["scontrol", "sacctmgr"];
/// Their verbs that only show something; they may be abbreviated.
const SHOWING: [&str; 7] = ["show", "list", "ping", "version", "completing", "write", "wait_job"];
/// Their options whose value is the next word.
const WITH_VALUES: [&str; 4] = ["-M", "--clusters", "-u", "--uid"];

/// Whether the next error is in the log already, or is not a refusal.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);
/// The reasons of refusals that the system does not know.
static UNKNOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes a failed request: the system has its own refusals in its log, and a missing answer is not a refusal.
pub fn not_done(error: &ClientError) {
    // The system refuses these without a record.
    let has_no_record = matches!(error.code(), Some(ErrorCode::Busy | ErrorCode::Malformed | ErrorCode::TooLarge));
    IS_KNOWN.store(!has_no_record, Ordering::Relaxed);
}

/// Notes that the next error is in the log already, or is not a refusal.
pub fn is_known() {
    IS_KNOWN.store(true, Ordering::Relaxed);
}

/// Notes the start of another request.
pub fn is_new() {
    IS_KNOWN.store(false, Ordering::Relaxed);
}

/// Prints a failure and returns its exit status.
pub fn tell(failure: &Failure) -> u8 {
    // If it cannot be printed, the status still tells.
    failure.lines.iter().for_each(|line| stderr_line!("{line}"));
    remember(&failure.lines);
    failure.code
}

/// Remembers a refusal for the reason in these lines.
pub fn remember(lines: &[String]) {
    let is_known = IS_KNOWN.swap(false, Ordering::Relaxed);
    if is_known || lines.is_empty() || is_usage(lines) {
        return;
    }
    let mut unknown = UNKNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if unknown.len() < MOST_NOTES {
        unknown.push(lines.join("\n"));
    }
}

/// Whether the words are not a valid command line: any program answers like this.
fn is_usage(lines: &[String]) -> bool {
    lines.last().is_some_and(|line| line.starts_with("Try \""))
}

/// Tells the system of refusals that it does not know, within [`PATIENCE`]; without a system it does nothing.
pub fn report(connection: &ConnectionOptions, tool: &str, words: &[String]) {
    let unknown = std::mem::take(&mut *UNKNOWN.lock().unwrap_or_else(PoisonError::into_inner));
    if unknown.is_empty() {
        return;
    }
    let (Some(what), Ok(client)) = (what(tool, words), connection.client()) else { return };
    // Without patience it does not wait for an absent gateway either.
    let mut client = client.with_patience(Duration::ZERO);
    // SAFETY: ignoring a signal runs no code of this program. A closed output does not end it.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let prefix = format!("{tool}: ");
    let (done, is_done) = mpsc::channel::<()>();
    // A thread, because nothing else limits the time for everything that a connection does.
    let noting = thread::Builder::new().spawn(move || {
        let _at_the_end = done;
        for said in unknown {
            let note = RefusalNote { what: what.clone(), why: why(&said, &prefix) };
            if client.note_refusal(CommandId::new_now(), &note).is_err_and(|error| !error.is_refusal()) {
                return;
            }
        }
    });
    if noting.is_ok() {
        let _ = is_done.recv_timeout(PATIENCE);
    }
}

/// The request in short form; `None` if it would change nothing.
fn what(tool: &str, words: &[String]) -> Option<String> {
    if LISTS.contains(&tool) {
        return None;
    }
    let mut is_value = false;
    let mut is_verb = |word: &&String| {
        let was_value = std::mem::replace(&mut is_value, WITH_VALUES.contains(&word.as_str()));
        !was_value && !word.starts_with('-')
    };
    let verb = words.iter().find(&mut is_verb).filter(|_| WITH_VERBS.contains(&tool));
    let Some(verb) = verb else { return Some(tool.to_owned()) };
    let verb = verb.to_ascii_lowercase();
    if SHOWING.iter().any(|shows| shows.starts_with(&verb)) {
        return None;
    }
    let verb: String = verb.chars().filter(|letter| !letter.is_control()).collect();
    Some(cut(&format!("{tool} {verb}"), RefusalNote::MOST_WHAT_BYTES))
}

/// The reason in one line, without the prefix of the command's lines.
fn why(said: &str, prefix: &str) -> String {
    let lines = said.lines().map(|line| {
        let line = line.strip_prefix(prefix).unwrap_or(line);
        ["error: ", "fatal: "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line).trim()
    });
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    cut(&lines.join("; "), RefusalNote::MOST_WHY_BYTES)
}

fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::views::ErrorBody;

    fn of(tool: &str, line: &str) -> Option<String> {
        what(tool, &line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_was_asked_for_is_the_command_and_its_verb() {
        assert_eq!(of("sbatch", "-n1 : -n2 job.sh").as_deref(), Some("sbatch"));
        assert_eq!(of("scontrol", "-o SUSPEND 7").as_deref(), Some("scontrol suspend"));
        assert_eq!(of("sacctmgr", "-i add account x").as_deref(), Some("sacctmgr add"));
        assert_eq!(of("scontrol", "").as_deref(), Some("scontrol"));
        assert_eq!(of("scontrol", "-M alpha --uid root hold 9").as_deref(), Some("scontrol hold"));
        assert_eq!(of("scontrol", "shutdown").as_deref(), Some("scontrol shutdown"));
        assert_eq!(of("sacctmgr", "load file").as_deref(), Some("sacctmgr load"));
        for (tool, line) in [
            ("squeue", "-j x"),
            ("scontrol", "show job 9"),
            ("scontrol", "-M alpha sh job 9"),
            ("scontrol", "write batch_script 9"),
            ("sacctmgr", "list users"),
        ] {
            assert_eq!(of(tool, line), None, "{tool} {line}");
        }
        assert_eq!(of("scontrol", &"é".repeat(99)).map(|what| what.len()), Some(63));
    }

    #[test]
    fn the_reason_is_one_line_of_a_bounded_length() {
        let said = "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: no";
        assert_eq!(why(said, "sbatch: "), "invalid partition specified: x; Batch job submission failed: no");
        assert_eq!(why("Job is pending execution for job 7\n\n", "scontrol: "), "Job is pending execution for job 7");
        assert_eq!(why(&"é".repeat(600), "srun: ").len(), RefusalNote::MOST_WHY_BYTES);
    }

    #[test]
    fn what_the_system_refused_or_is_no_refusal_is_not_told_again() {
        let lines = |text: &str| vec![text.to_owned()];
        let left = || std::mem::take(&mut *UNKNOWN.lock().unwrap());
        let refused = |code| ClientError::Refused(ErrorBody { code, message: String::new() });
        is_new();
        remember(&lines("decided here"));
        not_done(&refused(ErrorCode::PermissionDenied));
        remember(&lines("decided there"));
        remember(&lines("decided here again"));
        not_done(&refused(ErrorCode::Busy));
        remember(&lines("nothing was free"));
        not_done(&ClientError::AnswerLost(String::new()));
        remember(&lines("nobody answers"));
        is_known();
        remember(&lines("a disk is full"));
        remember(&["x: invalid option -- 'y'".to_owned(), "Try \"x --help\" for more information".to_owned()]);
        remember(&[]);
        assert_eq!(left(), ["decided here", "decided here again", "nothing was free"]);
        (0..2 * MOST_NOTES).for_each(|_| remember(&lines("again")));
        assert_eq!(left().len(), MOST_NOTES);
    }
}
