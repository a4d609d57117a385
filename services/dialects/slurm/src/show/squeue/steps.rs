//! `squeue -s`: the running steps (SL-C-23).

use super::{Format, Listing, ListingError};
use crate::{
    duration,
    show::{
        Clock,
        cells::{self, moment, or_null, put, short_limit},
        columns::{Field, Layout},
        step::{StepRecord, place},
    },
};

/// The columns of steps, by letter and by name.
pub static STEP_FIELDS: &[Field<StepRecord>] = &[
    Field::new(Some('a'), &["account"], "ACCOUNT", |step, _, out| or_null(step.account.as_deref(), out)),
    Field::new(Some('A'), &["numtasks", "numtask"], "TASKS", |step, _, out| put(step.tasks, out)),
    Field::new(Some('i'), &["stepid"], "STEPID", |step, _, out| out.push_str(&step.shown_id())),
    Field::new(Some('j'), &["stepname"], "NAME", |step, _, out| out.push_str(&step.name)),
    Field::new(Some('l'), &["timelimit"], "TIME_LIMIT", |step, _, out| short_limit(step.limit_seconds, out)),
    Field::new(Some('M'), &["timeused"], "TIME", |step, clock, out| {
        out.push_str(&duration::short(step.used_seconds(clock)));
    }),
    Field::new(Some('N'), &["nodes"], "NODELIST", |step, _, out| {
        out.push_str(&crate::hostlist::compress_sorted(&step.nodes));
    }),
    Field::new(Some('P'), &["partition"], "PARTITION", |step, _, out| out.push_str(&step.partition)),
    Field::new(Some('S'), &["starttime"], "START_TIME", |step, clock, out| moment(step.started, "N/A", clock, out)),
    Field::new(Some('t'), &["stepstate"], "STATE", |step, _, out| out.push_str(step.state.long())),
    Field::new(Some('u'), &["username"], "USER", |step, _, out| out.push_str(&step.user)),
    Field::new(Some('U'), &["userid"], "USER", |step, _, out| put(step.person.uid, out)),
    Field::new(Some('C'), &["numcpus"], "CPUS", |step, _, out| put(step.cpus, out)),
    Field::new(None, &["jobid"], "JOBID", |step, _, out| put(step.job, out)),
    Field::new(None, &["arrayjobid"], "ARRAY_JOB_ID", |step, _, out| put(step.job, out)),
];

/// The whole listing of steps, by job and step. From the filter only users, partitions and nodes apply.
///
/// # Errors
/// A column that does not exist; nothing is listed then.
pub fn list_steps(mut steps: Vec<StepRecord>, listing: &Listing, clock: &Clock) -> Result<String, ListingError> {
    let layout = match &listing.format {
        Format::Letters(format) => Layout::printf(format, STEP_FIELDS)?,
        Format::Names(format) => Layout::named(format, STEP_FIELDS)?,
    };
    let filter = &listing.filter;
    steps.retain(|step| {
        !step.state.is_finished()
            && (filter.users.is_empty() || filter.users.contains(&step.user))
            && (filter.partitions.is_empty() || filter.partitions.contains(&step.partition))
            && (filter.nodes.is_empty() || step.nodes.iter().any(|node| filter.nodes.contains(node)))
    });
    steps.sort_by_key(|step| (step.job, place(step.step)));
    let mut out = String::new();
    if listing.is_dated {
        cells::date_line(clock.now, clock, &mut out);
    }
    if !listing.no_header {
        layout.write_header(&mut out);
    }
    for step in &steps {
        layout.write_row(step, clock, &mut out);
    }
    Ok(out)
}
