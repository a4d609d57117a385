//! Messages of the protocol of external programs (PBS-X-22), one JSON object for each line.

use crate::{
    action::{Accepted, Action, Refusal},
    cycle::Cycle,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// Bytes of a bad line that its answer repeats.
const SHOWN: usize = 80;

/// A message to the program.
#[derive(Debug, Serialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum ToProgram<'m> {
    /// The first one.
    Init {
        /// The version.
        v: u32,
        /// The command, as words.
        args: &'m [String],
        /// The zone of local times.
        tz: &'m str,
    },
    /// A cycle begins.
    Cycle {
        /// Its number.
        seq: u64,
        /// Its reason.
        cmd: &'static str,
        /// The reason's number.
        code: i32,
        /// Its time, in seconds since 1970.
        now: i64,
        /// `prime` or `non_prime`.
        mode: &'static str,
        /// Whether it is dedicated time.
        dedicated: bool,
        /// How long it may take.
        deadline_ms: u64,
    },
    /// The end.
    Quit {},
}

impl<'m> ToProgram<'m> {
    /// The beginning of a cycle.
    pub fn cycle(cycle: &Cycle, deadline_ms: u64) -> Self {
        Self::Cycle {
            seq: cycle.begun.seq,
            cmd: cycle.begun.reason.name(),
            code: cycle.begun.reason.number(),
            now: cycle.now,
            mode: if cycle.is_prime { "prime" } else { "non_prime" },
            dedicated: cycle.is_dedicated,
            deadline_ms,
        }
    }
}

/// The answer to a request. The data come last, as simple programs expect.
#[derive(Debug, Serialize)]
struct Reply<'r, D> {
    t: &'static str,
    id: &'r Value,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<D>,
}

/// A line with data.
pub fn data(id: &Value, data: impl Serialize) -> String {
    text(&Reply { t: "reply", id, ok: true, code: None, text: None, data: Some(data) })
}

/// The line for an accepted action.
pub fn accepted(id: &Value, accepted: &Accepted) -> String {
    data(id, accepted)
}

/// The line for a refusal.
pub fn refused(id: &Value, refusal: &Refusal) -> String {
    let code = serde_json::to_value(refusal.code).ok();
    text(&Reply::<()> { t: "reply", id, ok: false, code, text: Some(&refusal.text), data: None })
}

/// The line of a message.
pub fn text(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// A message from the program.
#[derive(Clone, Debug, PartialEq)]
pub enum FromProgram {
    /// It is ready.
    Ready {
        /// The version that it speaks.
        v: u32,
    },
    /// It wants to know something.
    Stat {
        /// The request's number.
        id: Value,
        /// The cycle that it means.
        seq: Option<u64>,
        /// What.
        what: What,
    },
    /// It wants something done.
    Act {
        /// The request's number.
        id: Value,
        /// The cycle that it means.
        seq: Option<u64>,
        /// What.
        action: Action,
    },
    /// The cycle is over.
    End {
        /// The cycle that it means.
        seq: u64,
    },
}

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// The server.
    Server,
    /// All queues.
    Queues,
    /// All jobs.
    Jobs,
    /// All nodes.
    Nodes,
    /// Jobs in state Q in execution queues.
    Selstat,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ready {
    v: u32,
    #[serde(default)]
    #[expect(dead_code, reason = "a program may say its name, and nobody uses it")]
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stat {
    what: What,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    seq: u64,
}

/// A line that is no message.
#[derive(Clone, Debug, PartialEq)]
pub struct Bad {
    /// The request's number, if it has one.
    pub id: Value,
    /// The mistake.
    pub text: String,
}

/// Reads a line.
///
/// # Errors
/// It is no message: no JSON object, of no known kind, or with missing, unknown or senseless fields.
pub fn read(line: &str) -> Result<FromProgram, Bad> {
    let bad = |id: &Value, text: String| Bad { id: id.clone(), text };
    let mut fields: Map<String, Value> = serde_json::from_str(line).map_err(|error| {
        let begin: String = line.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect();
        bad(&Value::Null, format!("expected a JSON object, found `{begin}`: {error}"))
    })?;
    let id = match fields.get("id") {
        Some(id @ (Value::Number(_) | Value::String(_))) => id.clone(),
        _ => Value::Null,
    };
    let Some(kind) = fields.get("t").and_then(Value::as_str).map(str::to_owned) else {
        return Err(bad(&id, "the field t is missing".into()));
    };
    let wrong = |error: serde_json::Error| bad(&id, format!("{kind}: {error}"));
    match kind.as_str() {
        "ready" => {
            fields.remove("t");
            let Ready { v, .. } = serde_json::from_value(Value::Object(fields)).map_err(wrong)?;
            Ok(FromProgram::Ready { v })
        }
        "end" => {
            fields.remove("t");
            let End { seq } = serde_json::from_value(Value::Object(fields)).map_err(wrong)?;
            Ok(FromProgram::End { seq })
        }
        word if word == "stat" || Action::WORDS.contains(&word) => {
            if id.is_null() {
                return Err(bad(&id, format!("{kind}: the field id is missing")));
            }
            fields.remove("id");
            let seq = match fields.remove("seq") {
                None => None,
                Some(seq) => Some(seq.as_u64().ok_or_else(|| bad(&id, format!("{kind}: seq is no number")))?),
            };
            if word == "stat" {
                fields.remove("t");
                let Stat { what } = serde_json::from_value(Value::Object(fields)).map_err(wrong)?;
                return Ok(FromProgram::Stat { id, seq, what });
            }
            let action = serde_json::from_value(Value::Object(fields)).map_err(wrong)?;
            Ok(FromProgram::Act { id, seq, action })
        }
        _ => {
            let shown: String = kind.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect();
            Err(bad(&id, format!("there is no message `{shown}`")))
        }
    }
}
