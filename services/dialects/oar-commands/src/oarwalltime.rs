//! `oarwalltime`: asks for another walltime of a running job (OAR-G-16).

use super::{
    ended::{Ended, Failure, print},
    site::{Site, seconds},
    words::{self, Known, Takes},
};
use muster_cli::connection::ConnectionOptions;
use muster_client::Moment;
use muster_oar::{
    request::walltime,
    text::{decimal, hours, shown},
};
use muster_schemas::{
    CommandId, JobId,
    command::JobSelection,
    event::JobChange,
    job::JobState,
    views::{ErrorCode, JobDetail, ModifyRequest, Timetable},
    walltimes::WalltimeIncrease,
};

const OPTIONS: [Known; 5] = [
    ('\0', "force", Takes::Nothing),
    ('\0', "whole", Takes::Nothing),
    ('\0', "delay-next-jobs", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oarwalltime JOB\n       oarwalltime [--force] [--whole] [--delay-next-jobs] JOB [+|-]HOURS[:MINUTES[:SECONDS]]\n";
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
        Some(text) => {
            let increase = WalltimeIncrease {
                seconds: 0,
                is_whole: words.has("whole"),
                may_delay: words.has("delay-next-jobs"),
                is_forced: words.has("force"),
            };
            ask(&mut site, id, &detail, &text, increase)
        }
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
    let asked = detail.increase.unwrap_or_default();
    let state = if detail.job.outcome.is_some() { "is not running" } else { "is not running yet" };
    let text = match Running::of(site, detail) {
        Ok(running) => {
            let possible = running.most().map_or_else(|| "UNLIMITED".to_owned(), |most| hours(most - running.walltime));
            format!(
                "Walltime change status for job {id} (job is running):\n  Current walltime: {:>11}\n  Possible increase: \
                 {possible:>10}\n  Already granted: {:>12}\n  Pending/unsatisfied: {:>8}{}\n",
                hours(running.walltime),
                hours(signed(asked.granted_seconds)),
                hours(signed(asked.pending.seconds)),
                manner(&asked.pending)
            )
        }
        Err(_) => format!("Walltime change status for job {id} (job {state}):\n  N/A\n"),
    };
    print(&text);
    Ok(0)
}

fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// How what is pending is to be granted, if not in the usual way.
fn manner(pending: &WalltimeIncrease) -> String {
    let words = [(pending.is_forced, "force"), (pending.is_whole, "whole"), (pending.may_delay, "delay-next-jobs")];
    let told: Vec<&str> =
        words.iter().filter(|(is_so, _)| *is_so && pending.seconds > 0).map(|(_, word)| *word).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) }
}

/// Less is granted at once, more as far as nobody is delayed; the rest stays pending.
fn ask(site: &mut Site, id: u64, detail: &JobDetail, text: &str, manner: WalltimeIncrease) -> Ended {
    let running = Running::of(site, detail)?;
    let change = match text.trim_start_matches(['+', '-']).bytes().all(|byte| b"0:".contains(&byte)) {
        // `+0` takes back what is pending.
        true if text.starts_with(['+', '-']) => 0,
        _ => walltime::change(text, running.walltime).map_err(|text| Failure { text, status: SYNTAX })?,
    };
    let wanted = if change < 0 {
        let elapsed = (site.now() - running.start).max(0);
        let less = running.walltime.saturating_add(change).max(elapsed).max(1);
        JobChange { walltime_seconds: u64::try_from(less).ok(), ..JobChange::default() }
    } else {
        let seconds = u64::try_from(change).unwrap_or(0);
        JobChange { increase: Some(WalltimeIncrease { seconds, ..manner }), ..JobChange::default() }
    };
    let request = ModifyRequest { jobs: JobSelection::Ids(vec![detail.job.id]), change: wanted };
    site.client.modify(CommandId::new_now(), &request).map_err(|error| Failure {
        status: if error.code() == Some(ErrorCode::PermissionDenied) { 3 } else { 1 },
        text: format!("Forbidden: {error}; the walltime stays {}", hours(running.walltime)),
    })?;
    let after = site.client.job(detail.job.id, Moment::Now)?;
    let walltime = after.job.walltime_seconds.map_or(running.walltime, signed);
    let pending = after.increase.map_or(0, |asked| signed(asked.pending.seconds));
    if change > 0 && pending > 0 {
        print(&format!(
            "Accepted: the walltime of job {id} is {}; {} more stay pending until they delay no job.\n",
            hours(walltime),
            hours(pending)
        ));
    } else {
        print(&format!("Accepted: the walltime of job {id} is {}.\n", hours(walltime)));
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
