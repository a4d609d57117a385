//! The answers of persistent filters: a line of JSON each (HPC-F-67).

use crate::call::SurplusAnswer;
use serde::Deserialize;
use serde_json::Value;

/// An answer of a program. Unknown keys are ignored.
#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    code: u8,
    message: Option<String>,
    hold_until: Option<Value>,
}

/// A valid answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// As an exit code.
    pub code: u8,
    /// The rest, in the lines that another filter would write to its result file (HPC-F-66).
    pub result_lines: String,
}

/// The kind of a line read while waiting for an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// The answer.
    Answer(Answer),
    /// Another answer to an earlier line.
    Surplus(SurplusAnswer),
}

/// Reads a line while waiting for the answer to the line `id`. `was_answered` knows the ids of earlier lines.
///
/// # Errors
/// The error in the line, for people.
pub fn read(line: &[u8], id: &str, was_answered: impl Fn(&str) -> bool) -> Result<Read, String> {
    let answer: Line = serde_json::from_slice(line).map_err(|error| {
        let text = String::from_utf8_lossy(line);
        format!("it answered `{}`, not `{{\"id\": ..., \"code\": 0 to 255}}`: {error}", shortened(&text))
    })?;
    if answer.id != id && was_answered(&answer.id) {
        return Ok(Read::Surplus(SurplusAnswer { id: answer.id, code: answer.code }));
    }
    if answer.id != id {
        return Err(format!("it answered to `{}` when `{id}` was asked", shortened(&answer.id)));
    }
    let hold_until = answer.hold_until.map(|value| match value {
        Value::String(text) => text,
        // A number means seconds from now, which the result file writes with a sign.
        Value::Number(seconds) => format!("+{seconds}"),
        other => other.to_string(),
    });
    let lines = [("hold-until", hold_until), ("message", answer.message)];
    let lines = lines.into_iter().filter_map(|(key, value)| Some(format!("{key}={}\n", in_one_line(&value?))));
    Ok(Read::Answer(Answer { code: answer.code, result_lines: lines.collect() }))
}

/// A value with line ends would read as several keys.
fn in_one_line(value: &str) -> String {
    value.replace(['\n', '\r'], " ")
}

fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HPC-F-67
    #[test]
    fn an_answer_has_a_code_and_perhaps_a_message_and_a_hold() {
        let answer = |line: &str| match read(line.as_bytes(), "a", |_| false) {
            Ok(Read::Answer(answer)) => Ok((answer.code, answer.result_lines)),
            other => Err(other),
        };
        assert_eq!(answer(r#"{"id":"a","code":0}"#), Ok((0, String::new())));
        assert_eq!(
            answer(r#"{"id":"a","code":3,"hold_until":"+60","message":"no\nlicence","more":1}"#),
            Ok((3, "hold-until=+60\nmessage=no licence\n".into()))
        );
        assert_eq!(answer(r#"{"id":"a","code":3,"hold_until":90}"#), Ok((3, "hold-until=+90\n".into())));
    }

    /// HPC-F-67
    #[test]
    fn anything_else_is_a_bad_line() {
        for line in
            ["", "0", "{}", r#"{"id":"a","code":256}"#, r#"{"id":"a","code":-1}"#, r#"{"id":"b","code":0}"#, "\u{1}"]
        {
            assert!(read(line.as_bytes(), "a", |_| false).is_err(), "{line}");
        }
        assert!(read(&[0xff; 1000], "a", |_| false).is_err());
    }

    /// HPC-F-86
    #[test]
    fn an_answer_to_a_line_from_before_is_told_apart() {
        let surplus = SurplusAnswer { id: "b".into(), code: 4 };
        assert_eq!(read(br#"{"id":"b","code":4}"#, "a", |id| id == "b"), Ok(Read::Surplus(surplus)));
        let Ok(Read::Answer(answer)) = read(br#"{"id":"a","code":4}"#, "a", |_| true) else {
            panic!("it is asked again")
        };
        assert_eq!(answer.code, 4);
    }
}
