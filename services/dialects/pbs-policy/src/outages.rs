//! Outages, as the program `DEDICATED_TIME_COMMAND` of the presets prints them (PBS-P-14).

use crate::{
    dedicated::{self, DedicatedTime},
    findings::{Finding, Findings},
    lines::{self, MOST_BYTES, MOST_LINES, Word},
};
use std::collections::BTreeMap;

/// The name of what the program prints, in findings.
const ANSWER: &str = "outages";

/// The outages of hosts, by the short names of these in lower case.
pub type Outages = BTreeMap<String, DedicatedTime>;

/// Reads what the program has printed: lines `HOST MM/DD/YYYY HH:MM-HH:MM MM/DD/YYYY text`; an indented line continues
/// the text.
///
/// # Errors
/// All mistakes. Outages that cannot be read are not known.
pub fn read(answer: &str) -> Result<Outages, Vec<Finding>> {
    let mut findings = Findings::new(ANSWER);
    let mut outages = Outages::new();
    if answer.len() > MOST_BYTES || answer.lines().nth(MOST_LINES).is_some() {
        findings.error(Word::of_file(""), format!("expected at most {MOST_BYTES} bytes and {MOST_LINES} lines"));
    } else {
        let lines = lines::lines(answer.as_bytes());
        for line in lines.filter(|line| !lines::is_comment(line) && !line.text.starts_with(lines::is_blank)) {
            if let Some((host, period)) = read_line(&lines::words(&line), &mut findings) {
                outages.entry(short_name(host.text)).or_default().periods.push(period);
            }
        }
    }
    let (errors, _) = findings.into_sorted();
    if errors.is_empty() { Ok(outages) } else { Err(errors) }
}

/// The first part of the name of a host, in lower case.
pub fn short_name(host: &str) -> String {
    host.split('.').next().unwrap_or_default().to_lowercase()
}

fn read_line<'a>(
    words: &[Word<'a>],
    findings: &mut Findings,
) -> Option<(Word<'a>, (jiff::civil::DateTime, jiff::civil::DateTime))> {
    let expected = "expected HOST MM/DD/YYYY HH:MM-HH:MM MM/DD/YYYY and a text";
    let [host, from_date, times, to_date, ..] = words else {
        findings.error(*words.last()?, expected);
        return None;
    };
    let Some((from_time, to_time)) = times.text.split_once('-') else {
        findings.error(*times, "expected HH:MM-HH:MM");
        return None;
    };
    let [from_time, to_time] = [from_time, to_time].map(|text| Word { text, ..*times });
    let period = dedicated::read_period(&[*from_date, from_time, *to_date, to_time], findings)?;
    Some((*host, period))
}
