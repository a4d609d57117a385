//! The contract with filters: arguments, environment and lines of JSON (HPC-F-60 to HPC-F-67).
//!
//! A persistent filter is started as `PROGRAM serve` and reads one JSON object per line:
//!
//! ```text
//! {"type":"load","id":"load","filter_name":"check"}
//! {"type":"call","id":"0192...","attempt":1,"kind":"activation","action":"filter","filter_name":"check","job_id":42,
//!  "time_limit_seconds":15,"job_xml":"/run/.../job.xml","pass":7,"index":3,"backfill":true,"count":16, ...}
//! {"type":"unload","id":"unload","filter_name":"check"}
//! ```
//!
//! It answers the first two with a line `{"id": ..., "code": 0 to 255}`, to which it may add `message` and `hold_until`
//! (as in the result file, or a number of seconds from now); a code other than 0 for `load` means that it cannot serve.
//! It changes a job by rewriting the file `job_xml`. After `unload`, or at the end of its input, it has 2 s to end.

use crate::{
    RunnerConfig,
    call::Call,
    protocol::{DOCUMENT, DOCUMENT_JSON, Lines, RESULT_FILE, SCRIPT},
};
use muster_schemas::{
    JobId,
    filter::{ActivationParameters, FilterAction, FilterForm, FilterKind},
};
use serde_json::{Value, json};

/// The arguments and environment of a filter's process.
pub struct Start {
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub lines: Option<Lines>,
}

/// The start for a call with its files in `folder`.
pub fn start(config: &RunnerConfig, call: &Call, folder: &str) -> Start {
    match call.filter.form {
        _ if call.kind.is_staging() => one_call(config, call, folder, &[call.kind.word()]),
        FilterForm::Exec => one_call(config, call, folder, &[]),
        FilterForm::Verbs => one_call(config, call, folder, &[call.kind.word(), call.action.word()]),
        FilterForm::Persistent => Start {
            arguments: vec!["serve".into()],
            environment: common_environment(config, call),
            lines: Some(lines(call, folder)),
        },
    }
}

fn one_call(config: &RunnerConfig, call: &Call, folder: &str, verbs: &[&str]) -> Start {
    let mut arguments: Vec<String> = verbs.iter().map(ToString::to_string).collect();
    arguments.push(format!("{folder}/{}", document_name(call)));
    let mut environment = common_environment(config, call);
    environment.extend(call_environment(call, folder));
    environment.extend(component_environment(call));
    if let Some(parameters) = &call.parameters {
        let ActivationParameters { pass, index, backfill, count, .. } = parameters;
        arguments.extend([pass.to_string(), index.to_string(), backfill.to_string(), count.to_string()]);
        environment.extend(activation_environment(parameters));
    }
    Start { arguments, environment, lines: None }
}

fn common_environment(config: &RunnerConfig, call: &Call) -> Vec<(String, String)> {
    let variables = [
        ("PATH", &config.path),
        ("LANG", &config.lang),
        ("TZ", &config.time_zone),
        ("CCP_SCHEDULER", &config.scheduler),
        ("MUSTER_FILTER_NAME", &call.filter.name),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.clone())).to_vec()
}

fn call_environment(call: &Call, folder: &str) -> [(String, String); 7] {
    [
        ("MUSTER_JOB_ID", call.job.to_string()),
        ("MUSTER_FILTER_KIND", call.kind.word().to_owned()),
        ("MUSTER_FILTER_ACTION", call.action.word().to_owned()),
        ("MUSTER_INVOCATION_ID", call.invocation_id.clone()),
        ("MUSTER_ATTEMPT", call.attempt.to_string()),
        ("MUSTER_FILTER_TIMEOUT", call.time_limit_seconds.to_string()),
        ("MUSTER_RESULT_FILE", format!("{folder}/{RESULT_FILE}")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// The name of the document's file (HPC-F-64, SL-B-03).
pub const fn document_name(call: &Call) -> &'static str {
    if call.kind.is_staging() { SCRIPT } else { DOCUMENT }
}

/// The component that a call is about, and how many there are (SL-S-21).
fn component_environment(call: &Call) -> impl Iterator<Item = (String, String)> {
    call.component.into_iter().flat_map(|part| {
        [("MUSTER_COMPONENT_OFFSET", part.offset), ("MUSTER_COMPONENT_COUNT", part.count)]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
    })
}

fn activation_environment(parameters: &ActivationParameters) -> [(String, String); 7] {
    [
        ("MUSTER_SCHEDULER_PASS", parameters.pass.to_string()),
        ("MUSTER_JOB_INDEX", parameters.index.to_string()),
        ("MUSTER_BACKFILL", parameters.backfill.to_string()),
        ("MUSTER_RESOURCE_COUNT", parameters.count.to_string()),
        ("MUSTER_BACKFILL_ENABLED", parameters.backfill_enabled.to_string()),
        ("MUSTER_PLANNER_EPOCH", parameters.planner_epoch.to_string()),
        ("MUSTER_CURRENT_RESOURCES", parameters.current.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// The `id` of the first line for a persistent program.
pub const LOAD: &str = "load";

fn lines(call: &Call, folder: &str) -> Lines {
    let name = &call.filter.name;
    Lines {
        load: json!({ "type": "load", "id": LOAD, "filter_name": name }).to_string(),
        call: call_line(call, folder).to_string(),
        id: call.invocation_id.clone(),
        unload: json!({ "type": "unload", "id": "unload", "filter_name": name }).to_string(),
    }
}

/// A number, except for array tasks, whose ids are not numbers.
fn job_id(job: JobId) -> Value {
    if job.index.is_none() { job.number.into() } else { job.to_string().into() }
}

fn call_line(call: &Call, folder: &str) -> Value {
    let mut line = json!({
        "type": "call",
        "id": call.invocation_id,
        "attempt": call.attempt,
        "kind": call.kind.word(),
        "action": call.action.word(),
        "filter_name": call.filter.name,
        "job_id": job_id(call.job),
        "time_limit_seconds": call.time_limit_seconds,
        "job_xml": format!("{folder}/{DOCUMENT}"),
    });
    if call.document_json.is_some() {
        line["job_json"] = format!("{folder}/{DOCUMENT_JSON}").into();
    }
    if let Some(part) = call.component {
        line["component_offset"] = part.offset.into();
        line["component_count"] = part.count.into();
    }
    if let Some(parameters) = &call.parameters {
        line["pass"] = parameters.pass.into();
        line["index"] = parameters.index.into();
        line["backfill"] = parameters.backfill.into();
        line["count"] = parameters.count.into();
        line["backfill_enabled"] = parameters.backfill_enabled.into();
        line["planner_epoch"] = parameters.planner_epoch.into();
        line["current_resources"] = parameters.current.into();
    }
    line
}

/// The reason why a call cannot be made at all, if there is one.
pub fn flaw(call: &Call) -> Option<String> {
    let texts = [&call.filter.name, &call.invocation_id];
    if texts.iter().any(|text| text.contains('\0')) {
        return Some("the filter's name or the invocation id holds a NUL byte".into());
    }
    if call.parameters.is_some() != (call.kind == FilterKind::Activation) {
        return Some("activation filters, and only they, have parameters".into());
    }
    if call.time_limit_seconds == 0 {
        return Some("its time limit is 0 s".into());
    }
    (call.filter.form == FilterForm::Exec && call.action == FilterAction::Revert)
        .then(|| "a filter that is called in the Microsoft way cannot be reverted (HPC-F-56)".into())
}
