//! Which refusals leave a record (SL-L-10): those of users' requests, including those that their programs decided
//! themselves. Refused reports of nodes about runs of others leave one too (OAR-J-07). There is only a limited number for each sender
//! in a short time, so that nobody can fill the log with refusals.

use muster_schemas::{
    agent::AGENT_NOTE,
    command::{Command, Refusal, RefusalCode},
    event::{Actor, Event},
    views::RefusalNote,
};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The most refusals of one user that are recorded in one [`WINDOW`].
const MOST_RECORDS: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);
/// The most users whose refusals are counted at a time; refusals of further users leave no record.
const MOST_USERS: usize = 10_000;

/// A report of a node about a run, as its refusal names it.
const REPORT: &str = "report";

/// Recent refusals. They are lost with the process, and do not belong to the state.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    window: Option<Instant>,
    users: HashMap<String, Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    recorded: u32,
    /// Since the last record.
    unrecorded: u64,
}

/// The kind of request in a command, if its refusal leaves a record.
pub(crate) const fn audited(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Submit { .. } | Command::SubmitDocument { .. } => "submit",
        Command::Modify { .. } => "modify",
        Command::ConfigureJob { .. } => "configure_job",
        Command::EnterJob { .. } => "enter",
        Command::ChangeClass { .. } => "change_class",
        Command::ChangeAccounts { .. } => "change_accounts",
        Command::Cancel { .. } | Command::EndJobs { .. } => "cancel",
        Command::Hold { .. } | Command::HoldUntil { .. } => "hold",
        Command::Release { .. } => "release",
        Command::Requeue { .. } => "requeue",
        Command::Suspend { .. } => "suspend",
        Command::Resume { .. } => "resume",
        Command::Signal { .. } => "signal",
        Command::TellJobs { .. } => "tell",
        Command::ShrinkJob { .. } => "shrink",
        Command::CopyAhead { .. } => "copy_ahead",
        Command::RunJob { .. } => "run",
        Command::SetCrontab { .. } => "set_crontab",
        Command::SetTrigger { .. } => "set_trigger",
        Command::ClearTriggers { .. } => "clear_triggers",
        Command::LaunchStep { .. } => "launch_step",
        Command::SignalStep { .. } => "signal_step",
        Command::SetStepWalltime { .. } => "set_step_walltime",
        Command::EndStep { .. } => "end_step",
        Command::Configure { .. } => "configure",
        Command::DrainNodes { .. } => "drain_nodes",
        Command::SetPower { .. } => "set_power",
        Command::HandOver { .. } => "hand_over",
        Command::ResumeNodes { .. } => "resume_nodes",
        Command::Reserve { .. } => "reserve",
        Command::ChangeReservation { .. } => "change_reservation",
        Command::RemoveReservation { .. } => "remove_reservation",
        Command::NodeStarted { .. } | Command::NodeEnded { .. } | Command::NodeStepEnded { .. } => REPORT,
        _ => return None,
    })
}

/// A refusal by a program of the caller, and its reason, if the command reports one.
pub(crate) fn noted(command: &Command) -> Option<(String, Refusal)> {
    let Command::NoteRefusal { what, why } = command else { return None };
    Some((what.clone(), Refusal::new(RefusalCode::Invalid, why.clone())))
}

impl Refusals {
    /// The record of a refusal, if it leaves one.
    pub fn record(&mut self, actor: &Actor, command: &str, refusal: &Refusal, now: Instant) -> Option<Event> {
        let who = match actor {
            Actor::User(owner) => &owner.user,
            // No user has such a name.
            Actor::Executor(node) if command == AGENT_NOTE => &format!("{AGENT_NOTE}/{node}"),
            // The run has no part on this node (OAR-J-07).
            Actor::Executor(node) if command == REPORT && refusal.code == RefusalCode::Conflict => {
                &format!("{REPORT}/{node}")
            }
            _ => return None,
        };
        // It waits for others and will ask again.
        if refusal.code == RefusalCode::Busy {
            return None;
        }
        let window = *self.window.get_or_insert(now);
        if now.saturating_duration_since(window) >= WINDOW {
            self.window = Some(now);
            // Unrecorded refusals are counted in the next record of the same user.
            self.users.retain(|_, counts| counts.unrecorded > 0);
            self.users.values_mut().for_each(|counts| counts.recorded = 0);
        }
        if !self.users.contains_key(who) && self.users.len() >= MOST_USERS {
            return None;
        }
        let counts = self.users.entry(who.clone()).or_default();
        if counts.recorded >= MOST_RECORDS {
            counts.unrecorded += 1;
            return None;
        }
        counts.recorded += 1;
        let end = refusal.message.floor_char_boundary(RefusalNote::MOST_WHY_BYTES);
        Some(Event::CommandRefused {
            command: command.to_owned(),
            code: refusal.code,
            message: refusal.message[..end].to_owned(),
            unrecorded: std::mem::take(&mut counts.unrecorded),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::event::Owner;

    fn user(name: &str) -> Actor {
        Actor::User(Owner { user: name.into(), uid: 1000, gid: 100 })
    }

    /// SL-L-10: each refusal leaves a record, but one user cannot fill the log with them: those left out are counted.
    #[test]
    fn refusals_of_one_user_are_recorded_up_to_a_number_and_then_counted() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let refusal = Refusal::new(RefusalCode::LimitReached, "é".repeat(1_000));
        let mut told = |name: &str, at: Duration| refusals.record(&user(name), "submit", &refusal, start + at);
        for _ in 0..MOST_RECORDS {
            let event = told("ada", Duration::ZERO).expect("there are few yet");
            let Event::CommandRefused { command, code, message, unrecorded } = event else { panic!("{event:?}") };
            assert_eq!((command.as_str(), code, unrecorded), ("submit", RefusalCode::LimitReached, 0));
            assert_eq!(message, "é".repeat(512));
        }
        for _ in 0..7 {
            assert_eq!(told("ada", Duration::from_secs(59)), None);
        }
        assert!(told("bob", Duration::from_secs(59)).is_some());
        let again = told("ada", WINDOW);
        assert!(matches!(again, Some(Event::CommandRefused { unrecorded: 7, .. })), "{again:?}");
        assert!(matches!(told("ada", WINDOW), Some(Event::CommandRefused { unrecorded: 0, .. })));
        assert_eq!(refusals.record(&Actor::Planner, "submit", &refusal, start), None);
        let busy = Refusal::new(RefusalCode::Busy, "others run");
        assert_eq!(refusals.record(&user("eve"), "launch_step", &busy, start + WINDOW), None, "it asks again");
    }

    /// OAR-J-07: a report about a run of others names its sender, and one node cannot fill the log with such reports.
    #[test]
    fn reports_about_runs_of_others_are_recorded_up_to_a_number() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let foreign = Refusal::new(RefusalCode::Conflict, "node n1 reports about run 7, of which it has no part");
        let node = |name: &str| Actor::Executor(name.into());
        let what = audited(&Command::NodeStarted { part: muster_schemas::PartId::from_number(7) }).expect("it is told");
        for _ in 0..MOST_RECORDS {
            assert!(refusals.record(&node("n1"), what, &foreign, start).is_some());
        }
        assert_eq!(refusals.record(&node("n1"), what, &foreign, start), None);
        assert!(refusals.record(&node("n2"), what, &foreign, start).is_some());
        let unknown = Refusal::new(RefusalCode::NotFound, "node n3 is not part of the cluster");
        assert_eq!(refusals.record(&node("n3"), what, &unknown, start), None);
        assert_eq!(refusals.record(&node("n3"), "drain_nodes", &foreign, start), None);
    }
}
