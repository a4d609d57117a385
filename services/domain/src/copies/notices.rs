//! The mail about files that could not be copied: it goes to the owner whatever the job's notifications are (PBS-G-03).

use crate::state::State;
use muster_schemas::{
    event::{Event, Record},
    job::{Occasion, Sink},
    notify::NotifyItem,
};

/// Whether somebody is told of an event.
pub(crate) fn is_told(event: &Event) -> bool {
    matches!(event, Event::CopyingFailed { .. })
}

/// The mails that follow from a record: to the addresses of the job's other mails, else to its owner.
pub(crate) fn items(state: &State, record: &Record) -> Vec<NotifyItem> {
    let Event::CopyingFailed { job, node, reason, .. } = &record.event else { return Vec::new() };
    let Some(job) = state.job(*job) else { return Vec::new() };
    let mut to: Vec<String> = Vec::new();
    for notification in job.notifications() {
        if let Sink::Mail(address) = &notification.sink
            && !to.contains(address)
        {
            to.push(address.clone());
        }
    }
    if to.is_empty() {
        to.push(job.owner.user.clone());
    }
    let last = job.last_run.as_ref();
    let item = |(number, address): (u32, String)| NotifyItem {
        job: job.id,
        of: record.sequence,
        // Those of the job have numbers from 0.
        notification: u32::MAX - number,
        occasion: Occasion::Failed,
        sink: Sink::Mail(address),
        time: record.time,
        event: "files_not_copied".to_owned(),
        outcome: None,
        cluster: state.settings().name.clone(),
        name: job.name.to_string(),
        owner: (*job.owner).clone(),
        queue: job.lead().queue.to_string(),
        run: last.map(|last| last.run),
        nodes: vec![state.node_name(*node).into_owned()],
        submitted: job.submitted,
        started: None,
        task_outcomes: None,
        output: None,
        dialect: job.dialect.as_deref().map(str::to_owned),
        is_tried_once: false,
        why: Some(reason.clone()),
        program: None,
    };
    (0..).zip(to).map(item).collect()
}
