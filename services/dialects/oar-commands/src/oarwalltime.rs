//! `oarwalltime`: asks for another walltime of a running job (OAR-G-16).

use super::{
    ended::{Ended, Failure, print},
    site::{Site, seconds},
    words::{self, Known, Takes},
};
use muster_cli::connection::ConnectionOptions;
use muster_client::Moment;
use muster_oar::{
    planning::walltime,
    text::{decimal, hours, shown},
};
use muster_schemas::{
    CommandId, JobId,
    command::JobSelection,
    event::JobChange,
    job::JobState,
    views::{ErrorCode, JobDetail, ModifyRequest, Timetable},
};

const OPTIONS: [Known; 4] = [
    ('\0', "force", Takes::Nothing),
    ('\0', "delay-next-jobs", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str =
    "usage: oarwalltime JOB\n       oarwalltime [--delay-next-jobs] JOB [+|-]HOURS[:MINUTES[:SECONDS]]\n";
/// The exit status of a mistake on the command line.
const SYNTAX: u8 = 4;

/// Runs a command line of `oarwalltime`.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let (line, change) = change_of(line);
    let words = words::read(&line, &OPTIONS).map_err(|failure| Failure { status: SYNTAX, ..failure })?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    let [id] = &words.operands[..] else { return Err(Failure { text: USAGE.trim_end().to_owned(), status: SYNTAX }) };
    let wrong = || Failure { text: format!("expected the id of a job, found '{}'", shown(id)), status: SYNTAX };
    let id = decimal::<u64>(id).filter(|id| *id > 0).ok_or_else(wrong)?;
    let mut site = Site::open(connection)?;
    let found = site.client.job(JobId::job(id), Moment::Now);
    let detail = found.map_err(|error| Failure {
        status: if error.code() == Some(ErrorCode::NotFound) { 2 } else { 1 },
        text: error.to_string(),
    })?;
    match change {
        None => status(&mut site, id, &detail),
        Some(text) => ask(&mut site, id, &detail, &text, words.has("delay-next-jobs")),
    }
}

/// The command line without its last word, if that is a walltime: `-0:30` is no option.
fn change_of(line: &[String]) -> (Vec<String>, Option<String>) {
    let operands = line.iter().filter(|word| !word.starts_with("--")).count();
    match line.split_last() {
        Some((last, rest)) if operands > 1 && !last.starts_with("--") => (rest.to_vec(), Some(last.clone())),
        _ => (line.to_vec(), None),
    }
}

/// Facts about a running job.
struct Running {
    start: i64,
    walltime: i64,
    /// The latest end that delays nobody; `None` if nobody waits for its nodes.
    next: Option<i64>,
}

impl Running {
    fn of(site: &mut Site, detail: &JobDetail) -> Result<Self, Failure> {
        let run = detail.runs.iter().rev().find(|run| run.ended.is_none());
        let run = run.filter(|_| matches!(detail.job.state, JobState::Running | JobState::Suspended));
        let not_running = || Failure::new(format_args!("Forbidden: job {} is not running", detail.job.own_number()));
        let run = run.ok_or_else(not_running)?;
        let walltime = detail.job.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let walltime =
            walltime.ok_or_else(|| Failure::new("Forbidden: the job has no walltime, so it needs no other"))?;
        let start = seconds(run.started.unwrap_or(run.allocated));
        let nodes: Vec<&str> = run.nodes.iter().map(|node| node.node.as_str()).collect();
        let next = next(&site.client.timetable(None, None, Moment::Now)?, detail.job.id, &nodes);
        Ok(Self { start, walltime, next })
    }

    /// The most that it can get without delaying others, in seconds.
    fn most(&self) -> Option<i64> {
        let next = self.next?;
        Some((next - self.start).max(self.walltime))
    }
}

/// When the next job, or a reservation, is to start on one of these nodes.
fn next(plan: &Timetable, job: JobId, nodes: &[&str]) -> Option<i64> {
    let is_mine = |node: &str| nodes.contains(&node);
    let waiting = plan.waiting.iter().filter(|wait| wait.job != job);
    let promises = waiting.filter(|wait| wait.nodes.is_empty() || wait.nodes.iter().any(|part| is_mine(&part.node)));
    let starts = promises.filter_map(|wait| wait.promised_start.or(wait.expected_start));
    let reserved = plan.reservations.iter().filter(|one| one.nodes.iter().any(|node| is_mine(node)));
    let closed = plan.closures.iter().filter(|one| is_mine(&one.node));
    let all = starts.chain(reserved.map(|one| one.start)).chain(closed.map(|one| one.from));
    all.map(seconds).min()
}

fn status(site: &mut Site, id: u64, detail: &JobDetail) -> Ended {
    let first = detail.spec.components.first().and_then(|part| part.alternatives.first());
    let asked = first.and_then(|shape| shape.walltime_seconds).and_then(|seconds| i64::try_from(seconds).ok());
    let now = detail.job.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0);
    let granted = hours((now - asked.unwrap_or(now)).max(0));
    let state = if detail.job.outcome.is_some() { "is not running" } else { "is not running yet" };
    let text = match Running::of(site, detail) {
        Ok(running) => {
            let possible = running.most().map_or_else(|| "UNLIMITED".to_owned(), |most| hours(most - running.walltime));
            format!(
                "Walltime change status for job {id} (job is running):\n  Current walltime: {:>11}\n  Possible increase: \
                 {possible:>10}\n  Already granted: {granted:>12}\n  Pending/unsatisfied: {:>8}\n",
                hours(running.walltime),
                hours(0)
            )
        }
        Err(_) => format!("Walltime change status for job {id} (job {state}):\n  N/A\n"),
    };
    print(&text);
    Ok(0)
}

/// Less is granted at once, more as far as nobody is delayed.
fn ask(site: &mut Site, id: u64, detail: &JobDetail, text: &str, may_delay: bool) -> Ended {
    let running = Running::of(site, detail)?;
    let change = match text.trim_start_matches(['+', '-']).bytes().all(|byte| b"0:".contains(&byte)) {
        // `+0` takes back what is pending elsewhere; here nothing is.
        true if text.starts_with(['+', '-']) => 0,
        _ => walltime::change(text, running.walltime).map_err(|text| Failure { text, status: SYNTAX })?,
    };
    let asked = running.walltime.saturating_add(change);
    let elapsed = (site.now() - running.start).max(0);
    let granted = match change {
        less if less < 0 => asked.max(elapsed).max(1),
        _ if may_delay => asked,
        _ => running.most().map_or(asked, |most| asked.min(most)),
    };
    if granted != running.walltime {
        let change = JobChange { walltime_seconds: u64::try_from(granted).ok(), ..JobChange::default() };
        let request = ModifyRequest { jobs: JobSelection::Ids(vec![detail.job.id]), change };
        site.client.modify(CommandId::new_now(), &request).map_err(|error| Failure {
            status: if error.code() == Some(ErrorCode::PermissionDenied) { 3 } else { 1 },
            text: format!("Forbidden: {error}; the walltime stays {}", hours(running.walltime)),
        })?;
    }
    let rest = if change > 0 { asked - granted } else { 0 };
    if rest > 0 {
        print(&format!(
            "Accepted: the walltime of job {id} is {}; {} more would delay the next job on its nodes. Nothing stays \
             pending: ask again later.\n",
            hours(granted),
            hours(rest)
        ));
    } else {
        print(&format!("Accepted: the walltime of job {id} is {}.\n", hours(granted)));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-G-16
    #[test]
    fn a_walltime_with_a_sign_is_no_option() {
        let line = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(change_of(&line("7 -0:30")), (line("7"), Some("-0:30".into())));
        assert_eq!(change_of(&line("7")), (line("7"), None));
        assert_eq!(change_of(&line("--delay-next-jobs 7 +1")), (line("--delay-next-jobs 7"), Some("+1".into())));
        assert_eq!(change_of(&line("--help")), (line("--help"), None));
    }
}
