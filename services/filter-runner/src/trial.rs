//! Tries out a filter (HPC-F-69): makes an ordinary call that belongs to no job, and puts its answer into words.

use crate::call::{Answer, Call, Captured, FileAfter};
use bytes::Bytes;
use muster_schemas::{
    JobId,
    filter::{ActivationParameters, FilterAction, FilterKind, FilterSpec},
};
use std::fmt::Write as _;

impl Call {
    /// A call that [`Runner::run`](crate::Runner::run) makes under the same account, limits and environment as any
    /// other, for job 0, which no real job is. It judges a submission, or an activation if there are parameters.
    pub fn trial(
        filter: FilterSpec,
        time_limit_seconds: u32,
        document: Bytes,
        parameters: Option<ActivationParameters>,
    ) -> Self {
        Self {
            invocation_id: uuid::Uuid::new_v4().to_string(),
            attempt: 1,
            kind: if parameters.is_some() { FilterKind::Activation } else { FilterKind::Submission },
            action: FilterAction::Filter,
            filter,
            time_limit_seconds,
            job: JobId::job(0),
            document,
            document_json: None,
            parameters,
            component: None,
        }
    }
}

impl Answer {
    /// The answer in lines for people: how the program ended, how long it took, what it did to its files and what it
    /// wrote. `before` is the document of the call.
    pub fn report(&self, before: &[u8]) -> String {
        let mut report = format!("result: {}\nduration: {:.3} s\n", self.result, self.duration.as_secs_f64());
        // Writing to a string cannot fail.
        let _ = writeln!(report, "program: {}", self.program_hash.as_deref().map_or("not read".into(), blake3));
        let _ = writeln!(report, "job.xml: {}", describe(&self.document, before));
        section(&mut report, "result file", &self.result_lines);
        section(&mut report, "standard output", &self.stdout);
        section(&mut report, "standard error", &self.stderr);
        report
    }
}

fn blake3(hash: &str) -> String {
    format!("BLAKE3 {hash}")
}

fn describe(after: &FileAfter, before: &[u8]) -> String {
    match after {
        FileAfter::Unchanged => "unchanged".into(),
        FileAfter::Missing => "gone".into(),
        FileAfter::NotRegular(what) => format!("not readable: {what}"),
        FileAfter::TooLarge(bytes) => format!("{bytes} bytes, more than are read"),
        FileAfter::Changed(after) => {
            let mut text = "changed".to_owned();
            for (sign, line) in differences(&String::from_utf8_lossy(before), &String::from_utf8_lossy(after)) {
                let _ = write!(text, "\n  {sign} {line}");
            }
            text
        }
    }
}

/// The lines between the common beginning and the common end, before and after.
fn differences<'a>(before: &'a str, after: &'a str) -> Vec<(char, &'a str)> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut before.iter().zip(&after));
    let (before, after) = (&before[head..], &after[head..]);
    let tail = same(&mut before.iter().rev().zip(after.iter().rev()));
    let old = before[..before.len() - tail].iter().map(|line| ('-', *line));
    let new = after[..after.len() - tail].iter().map(|line| ('+', *line));
    old.chain(new).collect()
}

fn section(report: &mut String, name: &str, captured: &Captured) {
    if captured.bytes.is_empty() {
        return;
    }
    let _ = writeln!(report, "{name}:");
    for line in captured.text().lines() {
        let _ = writeln!(report, "  {line}");
    }
    if captured.truncated {
        report.push_str("  (the rest was dropped)\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_the_lines_between_what_is_the_same() {
        assert_eq!(differences("a\nb\nc\n", "a\nx\ny\nc\n"), [('-', "b"), ('+', "x"), ('+', "y")]);
        assert_eq!(differences("a\na\n", "a\n"), [('-', "a")]);
        assert_eq!(differences("", "a"), [('+', "a")]);
        assert_eq!(differences("a", "a"), []);
    }
}
