//! The events of a job for people: with the names of its filters, which single events lack, and the output of filters.

use crate::table::printable;
use serde_json::Value;
use std::collections::BTreeMap;

/// The maximum number of lines of an output that are shown, counted from its end; the event has all that were kept.
const MOST_LINES: usize = 10;
/// The maximum number of characters of a line of output that are shown.
const MOST_CHARACTERS: usize = 200;

/// The number of chains whose filter names are remembered; older chains, long since ended, are forgotten.
const MOST_CHAINS: usize = 10_000;

/// Tells the events of a job, beginning with its first.
#[derive(Debug, Default)]
pub struct Story {
    /// The filters of each chain so far, in order.
    chains: BTreeMap<u64, Vec<String>>,
}

impl Story {
    /// The sentence of an event, and the lines below it.
    pub fn tell(&mut self, event: &Value) -> (String, Vec<String>) {
        let (summary, data) = (event["summary"].as_str().unwrap_or_default(), &event["data"]);
        if let (Some(chain), Some(filters)) = (data["chain"].as_u64(), data["filters"].as_array()) {
            let name = |filter: &Value| filter["spec"]["name"].as_str().unwrap_or_default().to_owned();
            self.chains.insert(chain, filters.iter().map(name).collect());
            if self.chains.len() > MOST_CHAINS {
                self.chains.pop_first();
            }
        }
        let sentence = self.named(summary, &data["call"]).unwrap_or_else(|| summary.to_owned());
        let outputs = ["stdout", "stderr"].map(|stream| tail(stream, data[stream].as_str().unwrap_or_default()));
        let is_cut = data["is_output_cut"].as_bool().unwrap_or(false);
        let cut = is_cut.then(|| "(it wrote more than is kept: 64 KiB of each stream)".to_owned());
        (printable(&sentence), outputs.concat().into_iter().chain(cut).collect())
    }

    /// The sentence of a call with its filter by name; the call after the last filter of a chain is the check.
    fn named(&self, summary: &str, call: &Value) -> Option<String> {
        let (kind, position) = (call["kind"].as_str()?, usize::try_from(call["position"].as_u64()?).ok()?);
        let numbered = format!("{kind} filter {}", position + 1);
        let filters = self.chains.get(&call["chain"].as_u64()?);
        match filters.and_then(|filters| filters.get(position)) {
            Some(name) => Some(summary.replacen(&numbered, &format!("{kind} filter '{name}'"), 1)),
            // A chain without filters has no event of its own.
            None if position == filters.map_or(0, Vec::len) => {
                Some(summary.replacen(&format!("call of {numbered}"), "the check", 1))
            }
            None => None,
        }
    }
}

/// The last lines of an output, each with its stream in front.
fn tail(stream: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let more = (left_out > 0).then(|| format!("{stream} | ({left_out} lines before these are in the event: --json)"));
    let shown = lines[left_out..].iter().map(|line| format!("{stream} | {}", printable(&shortened(line))));
    more.into_iter().chain(shown).collect()
}

/// The beginning of a line, and how much longer it is.
fn shortened(line: &str) -> String {
    let line = line.replace('\t', "    ");
    match line.char_indices().nth(MOST_CHARACTERS) {
        None => line,
        Some((end, _)) => {
            let more = line[end..].chars().count();
            format!("{}... ({more} more characters are in the event: --json)", &line[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(position: u32, chain: u32, summary: &str) -> Value {
        json!({"summary": summary, "data": {"call": {"kind": "submission", "chain": chain, "position": position}}})
    }

    #[test]
    fn calls_have_the_names_of_their_filters_and_the_check_is_none() {
        let mut story = Story::default();
        let names = [json!({"spec": {"name": "first"}}), json!({"spec": {"name": "second"}})];
        story.tell(&json!({"summary": "it began", "data": {"chain": 7, "filters": names}}));
        let mut tell = |position, chain, summary| story.tell(&call(position, chain, summary)).0;
        let told = "job 1: call of submission filter 2 gave exit code 0";
        assert_eq!(tell(1, 7, told), "job 1: call of submission filter 'second' gave exit code 0");
        let told = "job 1: revert by submission filter 1 is done";
        assert_eq!(tell(0, 7, told), "job 1: revert by submission filter 'first' is done");
        let told = "job 1: call of submission filter 3 goes to runner r";
        assert_eq!(tell(2, 7, told), "job 1: the check goes to runner r");
        let told = "job 1: call of submission filter 1 goes to runner r";
        assert_eq!(tell(0, 8, told), "job 1: the check goes to runner r", "of a chain without filters");
        let told = "job 1: call of submission filter 5 goes to runner r";
        assert_eq!(tell(4, 7, told), told);
    }

    #[test]
    fn the_end_of_what_a_filter_wrote_stands_below_its_verdict() {
        let output: String = (1..=12).map(|number| format!("line {number}\n")).collect();
        let event = json!({"summary": "it said no", "data": {"stdout": "", "stderr": output + "\u{1b}[2J"}});
        let (sentence, below) = Story::default().tell(&event);
        assert_eq!((sentence.as_str(), below.len()), ("it said no", MOST_LINES + 1));
        assert_eq!(below[0], "stderr | (3 lines before these are in the event: --json)");
        assert_eq!(below[1], "stderr | line 4");
        assert!(!below[10].contains('\u{1b}'), "{}", below[10]);
    }

    /// HPC-F-63
    #[test]
    fn a_long_line_is_shortened_and_it_is_said_that_an_output_was_cut() {
        let line = "\u{e4}".repeat(MOST_CHARACTERS);
        let event = |is_cut| json!({"summary": "it said no", "data": {"stdout": format!("{line}xyz"), "stderr": line, "is_output_cut": is_cut}});
        let (_, below) = Story::default().tell(&event(true));
        assert_eq!(below[0], format!("stdout | {line}... (3 more characters are in the event: --json)"));
        assert_eq!(below[1], format!("stderr | {line}"));
        assert_eq!(below[2], "(it wrote more than is kept: 64 KiB of each stream)");
        assert_eq!(Story::default().tell(&event(false)).1.len(), 2);
    }
}
