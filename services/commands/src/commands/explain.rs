//! `muster explain`: why a job waits, or how its start came about.

use crate::{
    cli::{ConnectionOptions, ExplainOptions},
    exit::CommandResult,
    show::{self, counted, local_time},
    table::printable,
    terminal::waiting,
    values::{format_duration, format_size},
};
use jiff::tz::TimeZone;
use muster_schemas::{
    JobId, Timestamp,
    views::{
        ChangeKind, Explanation, JobAhead, LimitView, NodePromise, PromiseView, StartExplanation, SuggestedChange,
        WaitExplanation,
    },
};
use std::io::Write as _;

/// The maximum number of nodes of a promise that are shown.
const SHOWN_NODES: usize = 8;

/// Explains a job.
pub fn explain(connection: &ConnectionOptions, options: &ExplainOptions) -> CommandResult {
    let mut client = connection.client()?;
    let explanation = waiting("planning", || client.explanation(options.job, options.query.moment()))?;
    if options.query.json {
        show::print_json(&explanation)?;
    } else {
        let text = show::with_local_times(&text(&explanation, &local_time), &TimeZone::system());
        std::io::stdout().write_all(text.as_bytes())?;
    }
    Ok(0)
}

type ShowTime<'t> = &'t dyn Fn(Timestamp) -> String;

/// The explanation for people.
fn text(explanation: &Explanation, time: ShowTime) -> String {
    let job = explanation.job;
    if let Some(wait) = &explanation.waiting {
        return page(&format!("Job {job} waits"), wait_lines(job, wait, explanation.time, time));
    }
    let title = format!("Job {job} is {}", explanation.state.word());
    match &explanation.start {
        Some(start) => page(&title, start_lines(start, time)),
        None => format!("{title} and has never started\n"),
    }
}

/// Lines with their keys; a line without a key continues the one before.
fn page(title: &str, lines: Vec<(&str, String)>) -> String {
    let width = lines.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let lines = lines.iter().map(|(key, value)| format!("  {key:width$}  {}\n", printable(value)));
    std::iter::once(format!("{title}\n")).chain(lines).collect()
}

fn wait_lines(job: JobId, wait: &WaitExplanation, now: Timestamp, time: ShowTime) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Reason", wait.reason.text.clone())];
    if wait.starts_now {
        lines = vec![("Reason", "none: the next plan starts it".to_owned())];
    }
    match wait.ahead {
        None => lines.push(("In front", "it has no place in the order until that is over".to_owned())),
        Some(0) => lines.push(("In front", "no other job".to_owned())),
        Some(count) => {
            lines.push(("In front", format!("{} of those that wait", counted(count, "job"))));
            lines.extend(wait.first_ahead.iter().map(|ahead| ("", ahead_text(ahead, time))));
        }
    }
    let mut keys = std::iter::once("Limits").chain(std::iter::repeat(""));
    lines.extend(keys.by_ref().zip(&wait.limits).map(|(key, limit)| (key, limit_text(limit))));
    if let Some(promise) = &wait.promise {
        lines.push(("Reserved", promise_text(promise, time)));
    }
    let expected = wait.expected_start.map_or_else(
        || "cannot be foreseen".to_owned(),
        |start| match (start.micros_since(now) + 500_000) / 1_000_000 {
            ..=0 => "now".to_owned(),
            seconds => format!("{}, in {}", time(start), format_duration(seconds)),
        },
    );
    lines.push(("Expected start", expected));
    match wait.fits_alone {
        Some(true) if !wait.starts_now => lines.push(("Without others", "it would start now".to_owned())),
        Some(false) => lines.push(("Without others", "it would not fit now either".to_owned())),
        _ => {}
    }
    if !wait.starts_now && wait.ahead.is_some() {
        let mut keys = std::iter::once("Starts now with").chain(std::iter::repeat(""));
        lines.extend(keys.by_ref().zip(&wait.changes).map(|(key, change)| (key, change_text(job, change))));
        if wait.changes.is_empty() {
            lines.push(("Starts now with", "no single change of its request".to_owned()));
        }
    }
    lines
}

fn ahead_text(ahead: &JobAhead, time: ShowTime) -> String {
    let reason = ahead.reason.as_ref().map_or("not looked at yet", |reason| reason.text.as_str());
    match ahead.promised_start {
        Some(start) => format!("job {}: reserved from {} on", ahead.job, time(start)),
        None => format!("job {}: {reason}", ahead.job),
    }
}

fn limit_text(limit: &LimitView) -> String {
    format!("{}: {} in use, it wants {}", limit.text, limit.used, limit.wanted)
}

fn promise_text(promise: &PromiseView, time: ShowTime) -> String {
    let end = promise.end.map_or_else(String::new, |end| format!(" to {}", time(end)));
    let shown = &promise.nodes[..promise.nodes.len().min(SHOWN_NODES)];
    let mut nodes: Vec<String> = shown.iter().map(node_text).collect();
    if promise.nodes.len() > SHOWN_NODES {
        nodes.push(format!("and {} more", promise.nodes.len() - SHOWN_NODES));
    }
    format!("{}{end} on {}", time(promise.start), nodes.join(", "))
}

/// The promised share of a node: `node1 (4 CPUs, 1 GPU)`.
pub fn node_text(node: &NodePromise) -> String {
    let mut parts = vec![counted(node.cores, "CPU")];
    if node.gpus > 0 {
        parts.push(counted(node.gpus, "GPU"));
    }
    if node.memory_bytes > 0 {
        parts.push(format_size(node.memory_bytes));
    }
    format!("{} ({})", node.node, parts.join(", "))
}

/// The change, with the command for it if one option does it.
fn change_text(job: JobId, change: &SuggestedChange) -> String {
    let option = match (change.kind, change.change.walltime_seconds, &change.change.queue) {
        (ChangeKind::Walltime, Some(seconds), _) => {
            format!("--time {}", format_duration(i64::try_from(seconds).unwrap_or(i64::MAX)))
        }
        (ChangeKind::Queue, _, Some(queue)) => format!("--set-queue {queue}"),
        _ => return change.text.clone(),
    };
    format!("{}: muster job modify {option} {job}", change.text)
}

fn start_lines(start: &StartExplanation, time: ShowTime) -> Vec<(&'static str, String)> {
    let nodes = start.nodes.iter().map(|node| format!("{}({})", node.node, node.cores));
    let mut lines = vec![
        ("Got its place", format!("{} (run {}, record {})", time(start.allocated), start.run, start.sequence)),
        ("Nodes", nodes.collect::<Vec<_>>().join(" ")),
        ("Waited", format!("{} since {}", format_duration(start.waited_seconds), time(start.queued))),
    ];
    lines.extend(start.promised_start.map(|promised| ("Reserved", format!("from {} on", time(promised)))));
    lines.extend(start.expected_start.map(|expected| ("Foreseen", time(expected))));
    let mut keys = std::iter::once("Because").chain(std::iter::repeat(""));
    lines.extend(
        keys.by_ref().zip(&start.because).map(|(key, what)| (key, format!("{}: {}", time(what.time), what.text))),
    );
    let mut keys = std::iter::once("Waited for").chain(std::iter::repeat(""));
    let reasons = start.reasons.iter().map(|past| format!("since {}: {}", time(past.since), past.reason.text));
    lines.extend(keys.by_ref().zip(reasons));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{
        RunId, Sequence,
        event::JobChange,
        job::JobState,
        views::{Occurrence, PastReason, ReasonView, ReasonWord, RunNodeView},
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    fn shown(time: Timestamp) -> String {
        format!("@{}", time.unix_seconds())
    }

    fn reason(text: &str) -> ReasonView {
        ReasonView { code: ReasonWord::Resources, text: text.into(), job: None }
    }

    fn explanation(state: JobState) -> Explanation {
        let (sequence, time) = (Sequence(40), at(1000));
        Explanation { job: JobId::job(7), state, sequence, time, waiting: None, start: None }
    }

    #[test]
    fn why_a_job_waits_reads_well() {
        let node =
            |node: &str| NodePromise { node: node.into(), cores: 4, gpus: 1, memory_bytes: 1 << 30, exclusive: false };
        let change = |kind, text: &str, change| SuggestedChange { kind, text: text.into(), change };
        let shorter = JobChange { walltime_seconds: Some(1800), ..JobChange::default() };
        let queue = JobChange { queue: Some("fast".into()), ..JobChange::default() };
        let wait = WaitExplanation {
            reason: reason("it would delay job 3"),
            starts_now: false,
            fits_alone: Some(true),
            ahead: Some(2),
            first_ahead: vec![
                JobAhead { job: JobId::job(3), reason: Some(reason("cores")), promised_start: Some(at(2000)) },
                JobAhead { job: JobId::job(5), reason: Some(reason("not enough memory")), promised_start: None },
            ],
            limits: vec![LimitView { text: "9 cores of ada".into(), used: 4, wanted: 4, most: 9 }],
            promise: Some(PromiseView { start: at(4600), end: Some(at(8200)), nodes: vec![node("n1"), node("n2")] }),
            expected_start: Some(at(4600)),
            changes: vec![
                change(ChangeKind::Walltime, "walltime 30 min instead of 2 h", shorter),
                change(ChangeKind::Nodes, "1 node instead of 2", JobChange::default()),
                change(ChangeKind::Queue, "queue fast", queue),
            ],
        };
        let text = text(&Explanation { waiting: Some(wait), ..explanation(JobState::Queued) }, &shown);
        let expected = "\
Job 7 waits
  Reason           it would delay job 3
  In front         2 jobs of those that wait
                   job 3: reserved from @2000 on
                   job 5: not enough memory
  Limits           9 cores of ada: 4 in use, it wants 4
  Reserved         @4600 to @8200 on n1 (4 CPUs, 1 GPU, 1G), n2 (4 CPUs, 1 GPU, 1G)
  Expected start   @4600, in 1:00:00
  Without others   it would start now
  Starts now with  walltime 30 min instead of 2 h: muster job modify --time 30:00 7
                   1 node instead of 2
                   queue fast: muster job modify --set-queue fast 7
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_held_job_has_no_place_and_no_remedy() {
        let wait = WaitExplanation {
            reason: reason("held by user"),
            starts_now: false,
            fits_alone: None,
            ahead: None,
            first_ahead: Vec::new(),
            limits: Vec::new(),
            promise: None,
            expected_start: None,
            changes: Vec::new(),
        };
        let text = text(&Explanation { waiting: Some(wait), ..explanation(JobState::Held) }, &shown);
        let expected = "\
Job 7 waits
  Reason          held by user
  In front        it has no place in the order until that is over
  Expected start  cannot be foreseen
";
        assert_eq!(text, expected);
    }

    #[test]
    fn how_a_start_came_about_reads_well() {
        let node = RunNodeView {
            node: "n1".into(),
            component: 0,
            cores: "0-3".parse().unwrap(),
            gpus: Default::default(),
            memory_bytes: 0,
            tasks: 4,
            exclusive: false,
            exit: None,
        };
        let start = StartExplanation {
            run: RunId(9),
            sequence: Sequence(33),
            allocated: at(900),
            queued: at(300),
            waited_seconds: 600,
            nodes: vec![node],
            seen: Some(Sequence(31)),
            promised_start: None,
            expected_start: Some(at(950)),
            because: vec![Occurrence {
                sequence: Sequence(31),
                time: at(899),
                text: "run 4 of job 3 ended: completed".into(),
            }],
            reasons: vec![PastReason { since: at(301), reason: reason("not enough cores is free") }],
            reasons_from: Sequence(1),
        };
        let text = text(&Explanation { start: Some(start), ..explanation(JobState::Running) }, &shown);
        let expected = "\
Job 7 is running
  Got its place  @900 (run 9, record 33)
  Nodes          n1(0-3)
  Waited         10:00 since @300
  Foreseen       @950
  Because        @899: run 4 of job 3 ended: completed
  Waited for     since @301: not enough cores is free
";
        assert_eq!(text, expected);
    }
}
