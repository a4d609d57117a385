//! Scheduling programs of PBS in place of the built-in planner. A program runs on a thread of its own, and asks the
//! planner for each start.

mod message;
mod outcome;
mod picture;
mod site;

pub(crate) use message::{Asked, FromScript};
pub(crate) use muster_pbs_script::{
    action::{Code, Refusal},
    policy_word::ProgramWord,
    scheduler::Setup,
    trigger::Command as Trigger,
};
pub(crate) use outcome::{log, reasons, start_of};
pub(crate) use picture::picture;

use anyhow::{Context as _, bail};
use muster_pbs_plan::state_file::StateFile;
use muster_pbs_script::{
    cycles::Cycles,
    scheduler::{Hour, Scheduler},
};
use site::{Ask, LiveSite};
use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The program. Dropping it lets the program end.
#[derive(Debug)]
pub(crate) struct Script {
    work: Sender<Work>,
    triggers: Vec<Trigger>,
}

/// A cycle to run, if one is due.
struct Work {
    triggers: Vec<Trigger>,
    now: i64,
    state: StateFile,
    events: UnboundedSender<FromScript>,
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
        // The program's process dies with the thread that started it, so all its cycles are on one thread.
        let thread = thread::Builder::new().name("scheduler".into());
        let begin = move || match scheduler(&word, setup, iteration_seconds) {
            Ok(scheduler) => {
                if told.send(Ok(())).is_ok() {
                    run(scheduler, &orders);
                }
            }
            Err(faults) => drop(told.send(Err(faults))),
        };
        thread.spawn(begin).context("the thread of the scheduling program")?;
        if let Err(faults) = result.recv().context("the thread of the scheduling program ended")? {
            bail!("[planner] scheduler_policy {policy} cannot be put in force:\n{}", faults.join("\n"));
        }
        Ok(Self { work, triggers: Vec::new() })
    }

    /// Notes a trigger for the next cycle.
    pub fn note(&mut self, trigger: Trigger) {
        if !self.triggers.contains(&trigger) {
            self.triggers.push(trigger);
        }
    }

    /// Begins a cycle, if one is due. What happens in it comes over the channel, until its end.
    pub fn begin(&mut self, now: i64, state: StateFile) -> UnboundedReceiver<FromScript> {
        let (events, receiver) = unbounded_channel();
        let triggers = std::mem::take(&mut self.triggers);
        // If the thread is gone, the channel is closed.
        let _ = self.work.send(Work { triggers, now, state, events });
        receiver
    }
}

fn scheduler(word: &ProgramWord, setup: Setup, iteration_seconds: u32) -> Result<Scheduler, Vec<String>> {
    let now = muster_schemas::Timestamp::now().0 / 1_000_000;
    let mut scheduler = Scheduler::new(word, setup, Cycles::new(true, 0), now)?;
    scheduler.set_iteration(iteration_seconds);
    Ok(scheduler)
}

fn run(mut scheduler: Scheduler, orders: &Receiver<Work>) {
    let mut latest = 0;
    while let Ok(Work { triggers, now, state, events }) = orders.recv() {
        latest = now;
        triggers.into_iter().for_each(|trigger| scheduler.note(trigger));
        let mut site = LiveSite::new(state, Ask::new(events.clone()));
        let report = scheduler.step(Hour::prime(now), &mut site).map(Box::new);
        let _ = events.send(FromScript::Done { report, due: scheduler.due() });
    }
    scheduler.quit(latest);
}
