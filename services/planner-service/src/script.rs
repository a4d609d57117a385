//! Scheduling programs of PBS in place of the built-in planner. A program runs on a thread of its own, and asks the
//! planner for each start.

mod commands;
mod groups;
mod limits;
mod message;
mod note;
mod outcome;
mod picture;
mod site;

pub(crate) use commands::{command_of, id_of, refusal_of, seen};
pub(crate) use message::{Asked, Done, FromScript};
pub(crate) use muster_pbs_script::{
    action::{Action, Code, Refusal},
    policy_word::ProgramWord,
    scheduler::Setup,
    state_site::hosts_of,
    trigger::{Command as Trigger, IN_ORDER},
};
pub(crate) use note::note;
pub(crate) use outcome::{log, reasons, start_of};
pub(crate) use picture::picture;

use anyhow::{Context as _, bail};
use groups::Groups;
use muster_domain::State;
use muster_pbs::qmgr::{schedule_iteration, time_zone};
use muster_pbs_plan::state_file::StateFile;
pub(crate) use muster_pbs_script::scheduler::Hour;
use muster_pbs_script::{cycles::Cycles, scheduler::Scheduler, state_site::Reservations};
use muster_schemas::{Timestamp, cycle::ProgramCycle, policy::PolicySource};
use site::{Ask, LiveSite};
use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Instant,
};
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

/// The program. Dropping it lets the program end.
#[derive(Debug)]
pub(crate) struct Script {
    policy: String,
    work: Sender<Work>,
    triggers: Vec<Trigger>,
    has_resumed: bool,
}

/// What the thread of the program does.
enum Work {
    /// Run a cycle, if one is due.
    Cycle(Box<Due>),
    /// Go on behind the last cycle of an earlier planner.
    Resume(Box<ProgramCycle>),
    /// Read the files again.
    Reload(oneshot::Sender<Result<(), Vec<String>>>),
    /// Scheduling was switched on.
    SwitchOn,
}

/// A cycle to run, if one is due.
struct Due {
    triggers: Vec<Trigger>,
    hour: Hour,
    state: StateFile,
    /// How long after its start the next one starts at the latest.
    iteration_seconds: u32,
    /// The name of the zone of local times.
    zone: String,
    events: UnboundedSender<FromScript>,
}

/// How often cycles begin at least: what the server says counts more than the file of this host (PBS-C-07).
pub(crate) fn iteration_seconds(state: &State, of_host: u32) -> u32 {
    schedule_iteration(&state.settings().attributes).unwrap_or(of_host)
}

/// The name of the zone of local times: that of this host's file, else that of the server, else UTC (PBS-T-07).
pub(crate) fn zone(state: &State, of_host: Option<&str>) -> String {
    let of_server = || time_zone(&state.settings().attributes)?.iana_name().map(str::to_owned);
    of_host.map(str::to_owned).or_else(of_server).unwrap_or_else(|| "UTC".to_owned())
}

/// The hour of a cycle: programs are told prime and dedicated time as the policy in force has them; without such a policy it
/// is always prime time.
pub(crate) fn hour(state: &State, now: Timestamp) -> Hour {
    let turns = state.policy().turns.as_deref();
    let windows = turns.and_then(|turns| turns.windows.as_ref());
    Hour {
        now: now.0.div_euclid(1_000_000),
        is_prime: turns.is_none_or(|turns| !turns.is_other(now)),
        is_dedicated: windows.is_some_and(|windows| windows.current(now).is_some()),
    }
}

impl Script {
    /// Starts the thread of a program.
    ///
    /// # Errors
    /// All reasons why the program cannot be put in force.
    pub fn start(word: ProgramWord, setup: Setup, iteration_seconds: u32) -> anyhow::Result<Self> {
        let (work, orders) = channel();
        let (told, result) = channel();
        let policy = word.to_string();
        let name = policy.clone();
        // The program's process dies with the thread that started it, so all its cycles are on one thread.
        let thread = thread::Builder::new().name("scheduler".into());
        let begin = move || match scheduler(&word, setup, iteration_seconds) {
            Ok(scheduler) => {
                if told.send(Ok(())).is_ok() {
                    run(scheduler, &name, &orders);
                }
            }
            Err(faults) => drop(told.send(Err(faults))),
        };
        thread.spawn(begin).context("the thread of the scheduling program")?;
        if let Err(faults) = result.recv().context("the thread of the scheduling program ended")? {
            bail!("[planner] scheduler_policy {policy} cannot be put in force:\n{}", faults.join("\n"));
        }
        Ok(Self { policy, work, triggers: Vec::new(), has_resumed: false })
    }

    /// The program, as `basl:FILE`.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Notes a trigger for the next cycle.
    pub fn note(&mut self, trigger: Trigger) {
        if !self.triggers.contains(&trigger) {
            self.triggers.push(trigger);
        }
    }

    /// Notes that scheduling was switched on (PBS-C-01). A program that failed too often may try again.
    pub fn switch_on(&mut self) {
        let _ = self.work.send(Work::SwitchOn);
    }

    /// Before the first cycle: continues behind the last one of an earlier planner, if there was one (PBS-X-07).
    pub fn resume(&mut self, last: Option<&ProgramCycle>) {
        if !std::mem::replace(&mut self.has_resumed, true)
            && let Some(last) = last
        {
            let _ = self.work.send(Work::Resume(Box::new(last.clone())));
        }
    }

    /// Begins a cycle, if one is due. What happens in it comes over the channel, until its end.
    pub fn begin(
        &mut self,
        hour: Hour,
        state: StateFile,
        iteration_seconds: u32,
        zone: String,
    ) -> UnboundedReceiver<FromScript> {
        let (events, receiver) = unbounded_channel();
        let triggers = std::mem::take(&mut self.triggers);
        // If the thread is gone, the channel is closed.
        let _ = self.work.send(Work::Cycle(Box::new(Due { triggers, hour, state, iteration_seconds, zone, events })));
        receiver
    }

    /// Reads the files of the program again, between two cycles (PBS-C-14). The answer comes over the channel.
    pub fn reload(&self) -> oneshot::Receiver<Result<(), Vec<String>>> {
        let (told, result) = oneshot::channel();
        let _ = self.work.send(Work::Reload(told));
        result
    }
}

fn scheduler(word: &ProgramWord, setup: Setup, iteration_seconds: u32) -> Result<Scheduler, Vec<String>> {
    let mut scheduler = Scheduler::new(word, setup, Cycles::new(true, 0), seconds_now())?;
    scheduler.set_iteration(iteration_seconds);
    Ok(scheduler)
}

fn seconds_now() -> i64 {
    Timestamp::now().0.div_euclid(1_000_000)
}

fn run(mut scheduler: Scheduler, policy: &str, orders: &Receiver<Work>) {
    let (mut reserved, mut groups) = (Reservations::default(), Groups::default());
    while let Ok(work) = orders.recv() {
        match work {
            Work::Cycle(due) => cycle(&mut scheduler, &mut reserved, &mut groups, *due),
            Work::Resume(last) => resume(&mut scheduler, policy, &last),
            Work::Reload(told) => {
                let done = scheduler.reload(seconds_now());
                if done.is_ok() {
                    reserved = Reservations::default();
                }
                let _ = told.send(done);
            }
            Work::SwitchOn => scheduler.set_scheduling(true),
        }
    }
    scheduler.quit(seconds_now());
}

fn cycle(scheduler: &mut Scheduler, reserved: &mut Reservations, groups: &mut Groups, due: Due) {
    let Due { triggers, hour, mut state, iteration_seconds, zone, events } = due;
    groups.name(&mut state.jobs, Instant::now());
    scheduler.set_iteration(iteration_seconds);
    scheduler.set_zone(&zone, hour.now);
    triggers.into_iter().for_each(|trigger| scheduler.note(trigger));
    let mut site = LiveSite::new(state, Ask::new(events.clone()), reserved);
    let report = scheduler.step(hour, &mut site).map(Box::new);
    if report.is_some() {
        *reserved = site.reservations();
    }
    let _ = events.send(FromScript::Done { report, sources: sources(scheduler), due: scheduler.due() });
}

/// The number of the last cycle is continued. Its globals are so only for the same text of the program: another one begins with
/// its own assignments.
fn resume(scheduler: &mut Scheduler, policy: &str, last: &ProgramCycle) {
    let is_same = last.program == policy && last.sources == sources(scheduler);
    let globals = last.globals.as_deref().filter(|_| is_same);
    let globals = globals.and_then(|text| serde_json::from_str(text).ok());
    scheduler.resume(last.number, globals);
}

fn sources(scheduler: &Scheduler) -> Vec<PolicySource> {
    scheduler.sources().into_iter().map(|(name, sha256)| PolicySource { name, sha256 }).collect()
}
