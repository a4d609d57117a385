//! The events of a job under the names that OAR has for them (OAR-J-25).

use muster_oar::show::jobs::Event;
use muster_schemas::unfit::{self, UnfitCause};
use serde_json::Value;

/// The signal of a checkpoint without another one: SIGUSR2.
pub const CHECKPOINT_SIGNAL: u8 = 12;

const KILLED: &str = "FRAG_JOB_REQUEST";
const HELD: &str = "HOLD_RUNNING_JOB";
const RESUMED: &str = "RESUME_JOB";
const IN_ERROR: &str = "SWITCH_INTO_ERROR_STATE";

/// The events of a job, oldest first, as OAR calls them; those that it has no name for keep their own. `signal` is the
/// job's own for checkpoints.
pub fn named(public: &[Value], signal: Option<u8>) -> Vec<Event> {
    let signal = signal.unwrap_or(CHECKPOINT_SIGNAL);
    let mut events: Vec<Event> = Vec::new();
    for one in public {
        let Some((at, own)) = at_and_type(one) else { continue };
        let text = text(own, one);
        let has = |name: &str| events.iter().any(|event| event.name == name);
        let resumes_again = events.iter().rev().find(|event| [HELD, RESUMED].contains(&event.name.as_str()));
        let is_resumed = resumes_again.is_some_and(|event| event.name == RESUMED);
        let mut names = names(own, one, signal);
        // A job that waits ends at once, without being stopped first.
        let is_killed_at_once = own == "job.finished" && word(&one["data"]["outcome"]) == "cancelled" && !has(KILLED);
        if is_killed_at_once {
            names.insert(0, KILLED.to_owned());
        }
        if own == "job.resumed" && is_resumed {
            names = vec!["JOB_RESUMED".to_owned()];
        }
        events.extend(names.into_iter().map(|name| Event { at, name, text: text.clone() }));
    }
    events
}

/// When an event was, in seconds, and its kind without what all kinds have.
pub(crate) fn at_and_type(public: &Value) -> Option<(i64, &str)> {
    let at = public["time"].as_str()?.parse::<jiff::Timestamp>().ok()?.as_second();
    Some((at, public["type"].as_str()?.trim_start_matches("muster.").trim_end_matches(".v1")))
}

/// Whether a node was the one who acted.
pub(crate) fn is_by_node(public: &Value) -> bool {
    public["actor"].as_str().is_some_and(|actor| actor.starts_with("node:"))
}

/// A word, or the first key of something that has more to say.
fn word(value: &Value) -> &str {
    let key = || value.as_object().and_then(|entries| entries.keys().next()).map(String::as_str);
    value.as_str().or_else(key).unwrap_or_default()
}

fn text(own: &str, public: &Value) -> String {
    let actor = public["data"]["actor"].as_str().or(public["actor"].as_str());
    let actor = actor.map(|actor| format!(" by {actor}")).unwrap_or_default();
    let why = ["outcome", "reason"].map(|key| word(&public["data"][key])).into_iter().find(|why| !why.is_empty());
    let told = || Some(told(&public["data"])).filter(|text| own == "job.message" && !text.is_empty());
    let detail =
        public["data"]["detail"].as_str().or_else(told).map(|detail| format!(" ({detail})")).unwrap_or_default();
    format!("{own}{actor}{}{detail}", why.map(|why| format!(": {why}")).unwrap_or_default())
}

/// The names of an event: one, or none for what OAR does not tell.
fn names(own: &str, public: &Value, signal: u8) -> Vec<String> {
    let data = &public["data"];
    let is_checkpoint = data["signal"].as_u64() == Some(u64::from(signal));
    let name = match (own, word(&data["reason"])) {
        ("job.finished", _) => return vec![end(data).to_owned()],
        ("job.stopping", "cancelled" | "cancelled_at_once") => KILLED,
        ("job.stopping", "preempted") => "BESTEFFORT_KILL",
        ("job.stopping", "node_lost") => "EXTERMINATE_JOB",
        ("job.message", _) if is_failed_program(public) => "SUSPEND_SCRIPT_ERROR",
        ("job.requeued", _) => "RESUBMIT_JOB_AUTOMATICALLY",
        ("job.held", _) => "HOLD_WAITING_JOB",
        ("job.suspended", _) => HELD,
        ("job.released" | "job.resuming" | "job.resumed", _) => RESUMED,
        ("job.signalled", _) if is_checkpoint => "CHECKPOINT",
        ("job.signal_delivered", _) if is_checkpoint => return delivered(data),
        (other, _) => return vec![other.replace(['.', '-'], "_").to_uppercase()],
    };
    vec![name.to_owned()]
}

/// The names of the signal of a checkpoint that its node has sent. One whose time had come nobody asked for before.
fn delivered(data: &Value) -> Vec<String> {
    let asked = data["was_due"].as_bool().unwrap_or_default().then_some("CHECKPOINT");
    let has_reached = data["processes"].as_u64().is_some_and(|processes| processes > 0);
    let outcome = if has_reached { "CHECKPOINT_SUCCESS" } else { "CHECKPOINT_ERROR" };
    asked.into_iter().chain([outcome]).map(str::to_owned).collect()
}

/// Whether a node says that the program after a suspension failed. People can write the same words.
fn is_failed_program(public: &Value) -> bool {
    is_by_node(public) && unfit::begins_with(told(&public["data"]), unfit::AFTER_SUSPEND_PROGRAM)
}

/// What a message on a job says.
fn told(data: &Value) -> &str {
    data["text"].as_str().unwrap_or_default()
}

/// The name of a job's end.
fn end(data: &Value) -> &'static str {
    let detail = || data["detail"].as_str().unwrap_or_default().to_lowercase();
    match word(&data["outcome"]) {
        "completed" | "failed" | "declared_finished" => "SWITCH_INTO_TERMINATE_STATE",
        "timed_out" => "WALLTIME",
        "node_lost" => lost(data["detail"].as_str().unwrap_or_default()),
        "launch_failed" if detail().contains("directory") => "WORKING_DIRECTORY",
        "launch_failed" if ["stdout", "stderr", "output"].iter().any(|word| detail().contains(word)) => "OUTPUT_FILES",
        _ => IN_ERROR,
    }
}

/// The name of an end by a node that was lost: the node says why, after its name. About one that was taken down an operator does.
fn lost(detail: &str) -> &'static str {
    let told = detail.split_once(": ").filter(|(node, _)| !node.contains(' '));
    match told.and_then(|(_, why)| UnfitCause::of_reason(why)) {
        Some(UnfitCause::Containment) => "CPUSET_ERROR",
        Some(UnfitCause::JobProlog) => "PROLOGUE_ERROR",
        Some(UnfitCause::SuspendProgram) => "SUSPEND_ERROR",
        Some(UnfitCause::BeforeResumeProgram) => "RESUME_SCRIPT_ERROR",
        _ => "EXTERMINATE_JOB",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str, data: &Value) -> Value {
        json!({ "type": format!("muster.{kind}.v1"), "time": "2026-11-26T10:00:00Z", "data": data })
    }

    fn names_of(events: &[(&str, Value)]) -> Vec<String> {
        let events: Vec<Value> = events.iter().map(|(kind, data)| event(kind, data)).collect();
        named(&events, None).into_iter().map(|event| event.name).collect()
    }

    /// OAR-J-25, OAR-S-30, OAR-X-06
    #[test]
    fn each_event_has_one_name() {
        let told = names_of(&[
            ("job.submitted", json!({})),
            ("job.suspended", json!({})),
            ("job.resuming", json!({})),
            ("job.resumed", json!({})),
            ("job.suspended", json!({})),
            ("job.resumed", json!({})),
            ("job.signalled", json!({ "signal": 12 })),
            ("job.signal_delivered", json!({ "signal": 12, "was_due": false, "processes": 2 })),
            ("job.signal_delivered", json!({ "signal": 12, "was_due": true, "processes": 0 })),
            ("job.signalled", json!({ "signal": 1 })),
            ("job.stopping", json!({ "reason": "cancelled" })),
            ("job.finished", json!({ "outcome": "cancelled" })),
        ]);
        assert_eq!(
            told,
            [
                "JOB_SUBMITTED",
                "HOLD_RUNNING_JOB",
                "RESUME_JOB",
                "JOB_RESUMED",
                "HOLD_RUNNING_JOB",
                "RESUME_JOB",
                "CHECKPOINT",
                "CHECKPOINT_SUCCESS",
                "CHECKPOINT",
                "CHECKPOINT_ERROR",
                "JOB_SIGNALLED",
                "FRAG_JOB_REQUEST",
                "SWITCH_INTO_ERROR_STATE"
            ]
        );
        let finished = |outcome: &str, detail: &str| {
            names_of(&[("job.finished", json!({ "outcome": outcome, "detail": detail }))]).join(" ")
        };
        assert_eq!(finished("cancelled", ""), "FRAG_JOB_REQUEST SWITCH_INTO_ERROR_STATE");
        assert_eq!(finished("timed_out", ""), "WALLTIME");
        assert_eq!(finished("failed", ""), "SWITCH_INTO_TERMINATE_STATE");
        let unfit = |cause: UnfitCause| finished("node_lost", &format!("node1: {}", cause.because("no space")));
        assert_eq!(unfit(UnfitCause::Containment), "CPUSET_ERROR");
        assert_eq!(unfit(UnfitCause::JobProlog), "PROLOGUE_ERROR");
        assert_eq!(unfit(UnfitCause::SuspendProgram), "SUSPEND_ERROR");
        assert_eq!(unfit(UnfitCause::BeforeResumeProgram), "RESUME_SCRIPT_ERROR");
        assert_eq!(finished("node_lost", "node1 was taken down: job prolog is to be mended"), "EXTERMINATE_JOB");
        let message = |actor: &str, text: &str| {
            let mut message = event("job.message", &json!({ "text": text }));
            message["actor"] = json!(actor);
            named(&[message], None).remove(0).name
        };
        let failed = format!("{} /x failed (exit status: 1)", unfit::AFTER_SUSPEND_PROGRAM);
        assert_eq!(message("node:node1", &failed), "SUSPEND_SCRIPT_ERROR");
        assert_eq!(message("user:ann", &failed), "JOB_MESSAGE");
        assert_eq!(message("node:node1", "ready"), "JOB_MESSAGE");
        assert_eq!(finished("node_lost", "node1: its shim was killed"), "EXTERMINATE_JOB");
        assert_eq!(finished("launch_failed", "working directory '/x': gone"), "WORKING_DIRECTORY");
        assert_eq!(names_of(&[("job.stopping", json!({ "reason": "preempted" }))]), ["BESTEFFORT_KILL"]);
        assert_eq!(names_of(&[("job.stopping", json!({ "reason": { "concluded": 0 } }))]), ["JOB_STOPPING"]);
    }
}
