//! The result of a command: events and an answer, or a refusal. A refused command changes nothing.

pub(crate) mod access;
pub(crate) mod decision;
mod reigns;
mod timers;

pub(crate) use access::Access;
pub use decision::Decision;
pub(crate) use decision::{conflict, invalid, not_found, one_if, refuse};

use crate::{
    accounts, copies, crontabs,
    filters::decide::{calls, consequences, entry, holds, settings},
    jobs::decide::{arrays, clients, control, modify, submit},
    lending,
    nodes::{self, decide::configure},
    planning::{self, decide::plan},
    power, reservations,
    runs::{self, decide::Known, shrink},
    state::State,
    steps::{self, decide::launch},
    triggers, validate,
};
use muster_schemas::{
    Timestamp,
    command::{Command, Refusal},
    event::{Actor, Event},
};

/// Decides a command against a state at a time, which must not be earlier than [`State::time`].
///
/// # Errors
/// The refusal, with the reason for people.
pub fn decide(state: &State, actor: &Actor, command: &Command, now: Timestamp) -> Result<Decision, Refusal> {
    decide_owned(state, actor, command.clone(), now)
}

/// Like [`decide`], for callers that no longer need the command, so that submissions are not copied.
///
/// # Errors
/// As [`decide`].
pub fn decide_owned(state: &State, actor: &Actor, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    let access = Access { state, actor };
    access.require_planners(&command)?;
    let mut decision = match command {
        Command::Submit { jobs } => submit::submit(state, &access, jobs, now),
        Command::Hold { jobs, holds, reason } => control::hold(&access, &jobs, holds, &reason),
        Command::Release { jobs, holds } => control::release(&access, &jobs, holds),
        Command::Modify { jobs, change } => modify::modify(&access, &jobs, change, now),
        Command::Cancel { jobs } => control::cancel(&access, &jobs),
        Command::Signal { jobs, signal } => control::signal(&access, &jobs, signal),
        Command::Suspend { jobs } => lending::decide::suspend(&access, &jobs),
        Command::Resume { jobs } => lending::decide::resume(&access, &jobs),
        Command::SuspensionUnwanted { part, why } => lending::decide::unwanted(&access, part, &why),
        Command::Requeue { jobs, hold, delay_seconds } => {
            let not_before = (delay_seconds > 0).then(|| now.plus_seconds(i64::from(delay_seconds)));
            control::requeue(&access, &jobs, hold, not_before)
        }
        Command::Configure { change, keep_unnamed } => configure::configure(&access, &change, keep_unnamed),
        Command::ShrinkJob { job, nodes, keep, component } => shrink::shrink(&access, job, component, nodes, &keep),
        Command::TellJobs { jobs, text } => control::tell(&access, &jobs, &text),
        Command::DrainNodes { nodes, reason, is_down: false } => nodes::decide::drain(&access, &nodes, &reason),
        Command::DrainNodes { nodes, reason, is_down: true } => nodes::decide::take_down(&access, &nodes, &reason),
        Command::ResumeNodes { nodes } => nodes::decide::resume(&access, &nodes),
        Command::SetPolicy { policy } => planning::decide::set_policy(&access, *policy),
        Command::RefusePolicy { name, sources, mistakes } => {
            planning::decide::refuse_policy(&access, name, sources, mistakes)
        }
        Command::WarnOfPolicy { name, warnings } => planning::decide::warn_of_policy(&access, name, warnings),
        Command::Reserve { reservation } => reservations::decide::reserve(&access, *reservation, now),
        Command::ChangeReservation { reservation } => {
            reservations::decide::change_reservation(&access, *reservation, now)
        }
        Command::RemoveReservation { name } => reservations::decide::remove_reservation(&access, &name),
        Command::SetNodeClosures { nodes, closures } => {
            reservations::decide::set_closures(&access, &nodes, closures, now)
        }
        Command::CommitPlan { plan } => plan::commit(&access, *plan, now),
        Command::NodeHello { boot_id, parts, highest_run, as_of } => {
            let known = Known { parts: &parts, as_of: as_of.map(|mark| mark.sequence) };
            runs::decide::hello(&access, &boot_id, known, highest_run, now)
        }
        Command::NodeStarted { part } => runs::decide::started(&access, part),
        Command::NodeSignalled { part, signal, was_due, processes } => {
            runs::decide::signalled(&access, part, signal, was_due, processes)
        }
        Command::NodeEnded { part, exit } => runs::decide::ended(&access, part, exit),
        Command::NodeStepEnded { part, step, exit, statuses } => {
            steps::decide::ended(&access, part, step, exit, statuses)
        }
        Command::NodeGpusChecked { report } => nodes::decide::gpus_checked(&access, &report),
        Command::NodeLoadMeasured { load_millionths, system_percent, used } => {
            nodes::decide::load_measured(&access, load_millionths, system_percent, used, now)
        }
        Command::NodeSilent { node, reason } => nodes::decide::silent(&access, node, &reason, now),
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
        Command::SubmitDocument { spec, intake } => entry::submit_document(&access, *spec, *intake, now),
        Command::ConfigureJob { job, made_from, spec, intake } => {
            entry::configure(&access, (job, made_from), *spec, *intake, now)
        }
        Command::EnterJob { job } => entry::enter(&access, job, now),
        Command::HoldUntil { jobs, until } => holds::hold_until(&access, &jobs, until, now),
        Command::EndJobs { jobs, ending } if ending.gives_up => control::give_up(&access, &jobs, &ending, now),
        Command::EndJobs { jobs, ending } => control::end(&access, &jobs, &ending),
        Command::SetParameters { filters, scheduling } => settings::set_parameters(&access, filters, scheduling),
        Command::SetTemplate { template } => settings::set_template(&access, *template),
        Command::RemoveTemplate { name } => settings::remove_template(&access, &name),
        Command::ClaimCalls { calls } => calls::claim(&access, &calls, now),
        Command::ReportCalls { reports, has_others } => calls::report(&access, reports, has_others, now),
        Command::RunnersMissing { since } => calls::runners_missing(&access, since),
        Command::CallsLost { calls } => calls::lost(&access, &calls, now),
        Command::PlannerHello => planning::decide::planner_hello(&access),
        Command::NoteCycle { cycle } => planning::decide::note_cycle(&access, *cycle),
        Command::LaunchStep { job, spec } => launch::launch(&access, job, *spec),
        Command::SetStepWalltime { job, step, walltime_seconds } => {
            launch::set_walltime(&access, job, step, walltime_seconds)
        }
        Command::SignalStep { job, step, component, signal } => launch::signal(&access, job, step, component, signal),
        Command::EndStep { job, step, component, is_forced } => launch::end(&access, job, step, component, is_forced),
        Command::ConcludeJob { job, status } => clients::conclude(&access, job, status),
        Command::KeepJob { job, seconds } => clients::keep(&access, job, seconds),
        Command::NoteRefusal { what, why } => clients::note_refusal(&access, &what, &why),
        Command::ChangeAccounts { changes } => accounts::decide::change(&access, changes),
        Command::SetCrontab { text, entries, user } => {
            crontabs::decide::set(&access, &text, entries, user.as_deref(), now)
        }
        Command::SetTrigger { spec } => triggers::decide::set(&access, *spec),
        Command::ClearTriggers { which } => triggers::decide::clear(&access, &which),
        Command::RunJob { job, placement } => plan::run(&access, job, placement, now),
        Command::CopyAhead { job, node } => copies::decide::ahead(&access, job, node.as_deref()),
        Command::NodeCopied { job, copy, report } => copies::decide::copied(&access, job, copy, report, now),
        Command::SetPower { nodes, way } => power::decide::set(&access, &nodes, way),
        Command::ChangeClass { jobs, class } => accounts::decide::change_class(&access, &jobs, &class),
        Command::HandOver { to } => reigns::hand_over(&access, to),
        Command::AgentJoins { node } => nodes::decide::agents::join(&access, *node),
    }?;
    power::decide::add(state, &mut decision.events);
    arrays::finish(state, &mut decision.events);
    consequences::add(state, &mut decision.events);
    copies::decide::add(state, &mut decision.events);
    Ok(decision)
}

/// A notification ends once; a job that the state has forgotten needs none.
fn notification_done(state: &State, event: Event) -> Decision {
    let Event::NotificationDone { job, of, notification, result, .. } = &event else {
        return Decision::done(vec![event]);
    };
    if job.number == 0 {
        // A notification about no job is on record too: other ledgers drop it then.
        let told = power::decide::told(state, *of, result);
        return Decision::done(if told.is_empty() { vec![event] } else { told });
    }
    // A number beyond the present notifications can be one from before they were changed.
    let wanted = state.job(*job).is_some_and(|job| {
        // Mails that no notification of the job asks for are numbered from the end.
        let most = validate::MAX_LIST as u32;
        let known = *notification < most || *notification > u32::MAX - most;
        known && !job.notified.as_ref().is_some_and(|done| done.contains(&(*of, *notification)))
    });
    Decision::done(if wanted { vec![event] } else { Vec::new() })
}
