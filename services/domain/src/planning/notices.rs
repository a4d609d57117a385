//! The mail about a scheduling program that failed too often: scheduling is off until somebody switches it on (PBS-X-24).

use crate::state::State;
use muster_schemas::{
    JobId,
    event::{Event, Owner, Record},
    job::{Occasion, Sink},
    notify::NotifyItem,
};

/// The user who is told where nobody is named as an operator or administrator.
const ROOT: &str = "root";

/// Whether somebody is told of an event.
pub(crate) fn is_told(event: &Event) -> bool {
    matches!(event, Event::ProgramCycled { cycle } if cycle.gave_up)
}

/// The mails that follow from a record: to the operators, else to the administrators, else to root.
pub(crate) fn items(state: &State, record: &Record) -> Vec<NotifyItem> {
    let Event::ProgramCycled { cycle } = &record.event else { return Vec::new() };
    let settings = state.settings();
    let named = [&settings.operators, &settings.administrators].into_iter().find(|users| !users.is_empty());
    let users = named.cloned().unwrap_or_else(|| vec![ROOT.to_owned()]);
    let trouble = cycle.trouble.as_deref().unwrap_or("it says nothing");
    let why = format!("{} failed too often in a row; the last time: {trouble}", cycle.program);
    let item = |(notification, user): (u32, String)| NotifyItem {
        job: JobId::job(0),
        of: record.sequence,
        notification,
        occasion: Occasion::Failed,
        sink: Sink::Mail(user.clone()),
        time: record.time,
        event: "scheduling_switched_off".to_owned(),
        outcome: None,
        cluster: settings.name.clone(),
        name: String::new(),
        owner: Owner { user, uid: u32::MAX, gid: u32::MAX },
        queue: String::new(),
        run: None,
        nodes: Vec::new(),
        submitted: record.time,
        started: None,
        task_outcomes: None,
        output: None,
        dialect: None,
        is_tried_once: false,
        why: Some(why.clone()),
        program: None,
    };
    (0..).zip(users).map(item).collect()
}
