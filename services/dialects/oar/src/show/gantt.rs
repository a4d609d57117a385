//! `oarstat --gantt`: what jobs held, hold and are to hold in a span, and the states of resources there (OAR-G-18).

use crate::{options::date, resources::state::State};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Reads `"YYYY-MM-DD hh:mm:ss, YYYY-MM-DD hh:mm:ss"`.
///
/// # Errors
/// The first mistake, or a span that ends before it begins, as a sentence.
pub fn span(text: &str, now: i64, zone: &TimeZone) -> Result<(i64, i64), String> {
    let (from, to) = text.split_once(',').ok_or("expected two dates with a comma between")?;
    let moment = |part: &str| {
        let part = part.trim();
        let is_day = part.contains('-') && !part.contains([' ', 'T']);
        let whole = if is_day { format!("{part} 00:00:00") } else { part.to_owned() };
        date::seconds(&whole, now, zone)
    };
    let (from, to) = (moment(from)?, moment(to)?);
    if from < to { Ok((from, to)) } else { Err("the span ends before it begins".to_owned()) }
}

/// A job's place in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The job.
    pub job: u64,
    /// Its user.
    pub user: String,
    /// Its queue.
    pub queue: String,
    /// Its state, in OAR's words.
    pub state: &'static str,
    /// From when on it holds its resources, or is to.
    pub start: i64,
    /// Until when; `None` if nobody knows.
    pub stop: Option<i64>,
    /// Its resources; empty for a prediction without a place.
    pub resources: Vec<u32>,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// Whether this is a prediction.
    pub is_prediction: bool,
}

impl Placed {
    /// Whether it touches the span.
    pub fn touches(&self, from: i64, to: i64) -> bool {
        self.start < to && self.stop.is_none_or(|stop| stop > from)
    }
}

/// The states of a node's resources, each with its begin.
pub type States = Vec<(i64, State)>;

/// The spans in which resources are not alive, between two moments. A state holds until the next one.
pub fn away(states: &States, from: i64, to: i64) -> Vec<(i64, i64, State)> {
    let ends = states.iter().skip(1).map(|(at, _)| *at).chain([i64::MAX]);
    let spans = states.iter().zip(ends).map(|((at, state), end)| ((*at).max(from), end.min(to), *state));
    let mut away: Vec<(i64, i64, State)> = Vec::new();
    for (begin, end, state) in spans.filter(|(begin, end, state)| begin < end && *state != State::Alive) {
        match away.last_mut() {
            Some(last) if last.1 == begin && last.2 == state => last.1 = end,
            _ => away.push((begin, end, state)),
        }
    }
    away
}

/// The document. `resources` names each resource's node, `states` has those of each node.
pub fn document(
    jobs: &[Placed],
    resources: &BTreeMap<u32, String>,
    states: &BTreeMap<String, States>,
    (from, to): (i64, i64),
) -> Value {
    let job = |placed: &Placed| {
        let document = json!({
            "job_id": placed.job,
            "user": placed.user,
            "queue": placed.queue,
            "state": placed.state,
            "start_time": placed.start,
            "stop_time": placed.stop,
            "resources": placed.resources,
            "network_addresses": placed.nodes,
            "prediction": placed.is_prediction,
        });
        (placed.job.to_string(), document)
    };
    let jobs = jobs.iter().filter(|placed| placed.touches(from, to));
    let resource = |(id, node): (&u32, &String)| {
        let spans = states.get(node).map(|states| away(states, from, to)).unwrap_or_default();
        let spans: Vec<Value> = spans
            .into_iter()
            .map(|(begin, end, state)| json!({ "start": begin, "stop": end, "state": state.word() }))
            .collect();
        (id.to_string(), json!({ "network_address": node, "dead_resources": spans }))
    };
    json!({
        "from": from,
        "to": to,
        "jobs": jobs.map(job).collect::<BTreeMap<String, Value>>(),
        "resources": resources.iter().map(resource).collect::<BTreeMap<String, Value>>(),
    })
}
