//! The result of a command: events and an answer, or a refusal. A refused command changes nothing.

mod access;
mod accounts;
mod arrays;
mod clients;
mod components;
mod configure;
mod control;
mod decision;
mod elastic;
mod filters;
mod modify;
mod nodes;
mod plan;
mod planning;
mod reports;
mod select;
mod steps;
mod submit;
mod tasks;
mod timers;

pub use decision::Decision;

use crate::state::State;
use access::Access;
use decision::{conflict, invalid, not_found, refuse};
use muster_schemas::{
    Timestamp,
    command::{Command, Refusal},
    event::{Actor, Event},
};

/// Decides a command against a state at a time, which must not be earlier than [`State::time`].
///
/// # Errors
/// The refusal gives the reason, for people.
pub fn decide(state: &State, actor: &Actor, command: &Command, now: Timestamp) -> Result<Decision, Refusal> {
    decide_owned(state, actor, command.clone(), now)
}

/// As [`decide`], for callers that have no more use for the command, so that submissions need not be copied.
///
/// # Errors
/// As [`decide`].
pub fn decide_owned(state: &State, actor: &Actor, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    let access = Access { state, actor };
    let mut decision = match command {
        Command::Submit { jobs } => submit::submit(state, &access, jobs, now),
        Command::Hold { jobs, holds, reason } => control::hold(&access, &jobs, holds, &reason),
        Command::Release { jobs, holds } => control::release(&access, &jobs, holds),
        Command::Modify { jobs, change } => modify::modify(&access, &jobs, change, now),
        Command::Cancel { jobs } => control::cancel(&access, &jobs),
        Command::Signal { jobs, signal } => control::signal(&access, &jobs, signal),
        Command::Suspend { jobs } => control::suspend(&access, &jobs),
        Command::Resume { jobs } => control::resume(&access, &jobs),
        Command::Requeue { jobs, hold, delay_seconds } => {
            let not_before = (delay_seconds > 0).then(|| now.plus_seconds(i64::from(delay_seconds)));
            control::requeue(&access, &jobs, hold, not_before)
        }
        Command::Configure { change, keep_unnamed } => configure::configure(&access, &change, keep_unnamed),
        Command::TellJobs { jobs, text } => control::tell(&access, &jobs, &text),
        Command::DrainNodes { nodes, reason, is_down: false } => nodes::drain(&access, &nodes, &reason),
        Command::DrainNodes { nodes, reason, is_down: true } => nodes::take_down(&access, &nodes, &reason),
        Command::ResumeNodes { nodes } => nodes::resume(&access, &nodes),
        Command::SetPolicy { policy } => planning::set_policy(&access, *policy),
        Command::Reserve { reservation } => planning::reserve(&access, *reservation, now),
        Command::ChangeReservation { reservation } => planning::change_reservation(&access, *reservation, now),
        Command::RemoveReservation { name } => planning::remove_reservation(&access, &name),
        Command::SetNodeClosures { nodes, closures } => planning::set_closures(&access, &nodes, closures, now),
        Command::CommitPlan { plan } => plan::commit(&access, *plan, now),
        Command::NodeHello { boot_id, parts, highest_run, as_of } => {
            let known = reports::Known { parts: &parts, as_of: as_of.map(|mark| mark.sequence) };
            reports::hello(&access, &boot_id, known, highest_run, now)
        }
        Command::NodeStarted { part } => reports::started(&access, part),
        Command::NodeEnded { part, exit } => reports::ended(&access, part, exit),
        Command::NodeStepEnded { part, step, exit, statuses } => steps::ended(&access, part, step, exit, statuses),
        Command::NodeSilent { node, reason } => nodes::silent(&access, node, &reason, now),
        Command::NotificationDone { job, of, notification, occasion, result } => {
            access.require_notifier()?;
            Ok(notification_done(state, Event::NotificationDone { job, of, notification, occasion, result }))
        }
        Command::Tick => timers::tick(&access, now),
        Command::Checkpoint { of, state_digest, signature } => {
            access.require_ledger()?;
            Ok(Decision::done(vec![Event::Checkpoint { of, state_digest, signature }]))
        }
        Command::Archived { first, last, last_hash, file } => {
            access.require_ledger()?;
            Ok(Decision::done(vec![Event::RangeArchived { first, last, last_hash, file }]))
        }
        command @ (Command::SubmitDocument { .. }
        | Command::ConfigureJob { .. }
        | Command::EnterJob { .. }
        | Command::HoldUntil { .. }
        | Command::EndJobs { .. }
        | Command::SetParameters { .. }
        | Command::SetTemplate { .. }
        | Command::RemoveTemplate { .. }
        | Command::ClaimCalls { .. }
        | Command::ReportCalls { .. }
        | Command::RunnersMissing { .. }
        | Command::CallsLost { .. }
        | Command::PlannerHello) => filters::decide(&access, command, now),
        Command::LaunchStep { job, spec } => steps::launch::launch(&access, job, *spec),
        Command::SignalStep { job, step, component, signal } => {
            steps::launch::signal(&access, job, step, component, signal)
        }
        Command::EndStep { job, step, component, is_forced } => {
            steps::launch::end(&access, job, step, component, is_forced)
        }
        Command::ConcludeJob { job, status } => clients::conclude(&access, job, status),
        Command::KeepJob { job, seconds } => clients::keep(&access, job, seconds),
        Command::NoteRefusal { what, why } => clients::note_refusal(&access, &what, &why),
        Command::ChangeAccounts { changes } => accounts::change(&access, changes),
        Command::ChangeClass { jobs, class } => accounts::change_class(&access, &jobs, &class),
    }?;
    arrays::finish(state, &mut decision.events);
    filters::consequences::add(state, &mut decision.events);
    Ok(decision)
}

/// A notification comes to its end once; a job that the state has forgotten needs none.
fn notification_done(state: &State, event: Event) -> Decision {
    let Event::NotificationDone { job, of, notification, .. } = &event else { return Decision::done(vec![event]) };
    let wanted = state.job(*job).is_some_and(|job| {
        let known = (*notification as usize) < job.notifications().len();
        known && !job.notified.as_ref().is_some_and(|done| done.contains(&(*of, *notification)))
    });
    Decision::done(if wanted { vec![event] } else { Vec::new() })
}
