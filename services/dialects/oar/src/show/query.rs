//! `--sql` of `oarstat`: the filter language over the fields of jobs (OAR-C-14).

use super::jobs::Job;
use crate::{
    mistake::Mistake,
    predicate::{self, Predicate},
    resources::{
        property::Fields,
        value::{Kind, Value},
    },
};
use std::collections::BTreeMap;

/// The fields of jobs that filters can name, as OAR calls them.
pub fn fields() -> Fields {
    let texts = [
        "job_name",
        "job_user",
        "project",
        "state",
        "queue_name",
        "command",
        "job_type",
        "reservation",
        "message",
        "launching_directory",
        "properties",
    ];
    let integers = [
        "job_id",
        "array_id",
        "array_index",
        "submission_time",
        "start_time",
        "stop_time",
        "exit_code",
        "resubmit_job_id",
    ];
    let of = |kind: Kind| move |name: &str| (name.to_owned(), kind);
    texts.into_iter().map(of(Kind::Text)).chain(integers.into_iter().map(of(Kind::Integer))).collect()
}

/// Reads a filter of jobs.
///
/// # Errors
/// The first mistake.
pub fn read(text: &str) -> Result<Predicate, Mistake> {
    predicate::read(text, &fields())
}

/// The values of a job.
pub fn values(job: &Job) -> BTreeMap<String, Value> {
    let integer = |value: u64| Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let mut values: BTreeMap<String, Value> = [
        ("job_id", integer(job.id)),
        ("array_id", integer(job.array)),
        ("array_index", integer(job.index)),
        ("resubmit_job_id", integer(job.replaces)),
        ("submission_time", Value::Integer(job.submitted)),
        ("start_time", Value::Integer(job.start.unwrap_or(0))),
        ("stop_time", Value::Integer(job.stop.unwrap_or(0))),
        ("job_name", Value::text(&job.name)),
        ("job_user", Value::text(&job.owner)),
        ("project", Value::text(&job.project)),
        ("state", Value::text(job.state.word())),
        ("queue_name", Value::text(&job.queue)),
        ("command", Value::text(&job.command)),
        ("job_type", Value::text(if job.is_interactive { "INTERACTIVE" } else { "PASSIVE" })),
        ("reservation", Value::text(if job.is_reservation { "Scheduled" } else { "None" })),
        ("message", Value::text(&job.message)),
        ("launching_directory", Value::text(&job.directory)),
        ("properties", Value::text(&job.properties)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    values.extend(job.wait_status.map(|status| ("exit_code".to_owned(), Value::Integer(i64::from(status)))));
    values
}
