//! What an order makes a notifier run.

use crate::{power::state::late, state::State};
use muster_schemas::{
    JobId,
    energy::{PowerOrder, SiteProgram},
    event::{Event, Owner, Record},
    job::{Occasion, Sink},
    notify::NotifyItem,
};

/// Whether a notifier acts on an event.
pub(crate) fn is_told(event: &Event) -> bool {
    matches!(event, Event::PowerOrdered { .. })
}

/// The item for a record by which nodes are put to sleep or woken: a program of the site, which is run once and gets the
/// names of the nodes (OAR-E-03, OAR-E-04).
pub(crate) fn item(state: &State, record: &Record) -> Option<NotifyItem> {
    let Event::PowerOrdered { order } = &record.event else { return None };
    let PowerOrder { nodes, program, account, limit_seconds, way, until } = &**order;
    let names: Vec<String> = nodes.iter().map(|node| state.node_name(*node).into_owned()).collect();
    let input = names.iter().map(|name| format!("{name}\n")).collect();
    Some(NotifyItem {
        job: JobId::job(0),
        of: record.sequence,
        notification: 0,
        occasion: Occasion::Ended,
        sink: Sink::Exec(String::new()),
        time: record.time,
        event: way.to_string(),
        outcome: None,
        cluster: state.settings().name.clone(),
        name: String::new(),
        // Never root, whatever the account is called.
        owner: Owner { user: account.clone(), uid: u32::MAX, gid: u32::MAX },
        queue: String::new(),
        run: None,
        nodes: names,
        submitted: record.time,
        started: None,
        task_outcomes: None,
        output: None,
        dialect: None,
        is_tried_once: true,
        why: None,
        program: Some(SiteProgram {
            words: program.clone(),
            input,
            limit_seconds: *limit_seconds,
            until: late(record.time, *until),
        }),
    })
}
