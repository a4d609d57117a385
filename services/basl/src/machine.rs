//! A program with its globals, from cycle to cycle.

use crate::{
    actions::{Action, Actions, Answer},
    fault::Fault,
    globals::{Globals, Misfit, Registers},
    limits::Limits,
    moment::Clock,
    program::Program,
    snapshot::Snapshot,
    vm::{Remains, Stop, Vm},
    world::world,
};
use std::sync::Arc;

/// A program that is in force.
#[derive(Clone, Debug)]
pub struct Machine {
    program: Arc<Program>,
    globals: Globals,
}

/// What a cycle left. What was decided in it went to [`Actions`] and stays valid, also if a fault ended the cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the program printed, a line for each `print`.
    pub printed: String,
    /// Whether it printed more than 1 MiB, and the rest is left out.
    pub is_printed_cut: bool,
    /// How many statements it ran.
    pub statements: u64,
    /// How many jobs it started.
    pub started: usize,
    /// The value of `exit`, if that ended the cycle.
    pub exit: Option<i64>,
    /// What ended the cycle before its end. The globals are those of the cycle before (PBS-X-13).
    pub fault: Option<Fault>,
    /// Whether the fault is that the time of the cycle was over.
    pub is_time_over: bool,
}

/// Before the first cycle there is nothing to act on.
struct NoActions;

impl Actions for NoActions {
    fn act(&mut self, _: usize, _: Action, _: &str) -> Answer {
        Answer::Refused
    }
}

impl Machine {
    /// Puts a program in force: its assignments to globals run once (PBS-X-07). They see no jobs, queues or nodes.
    ///
    /// # Errors
    /// If an assignment has no result, as a division by zero.
    pub fn new(program: Arc<Program>, clock: &Clock, limits: &mut Limits<'_>) -> Result<Self, Fault> {
        let start = program.code.start;
        let mut machine = Self { program, globals: Globals::default() };
        let outcome = machine.run(start, &Snapshot::default(), clock, &mut NoActions, limits);
        match outcome.fault {
            Some(fault) => Err(fault),
            None => Ok(machine),
        }
    }

    /// Puts a program in force with the globals of an earlier cycle, after a restart or a take-over.
    ///
    /// # Errors
    /// If the globals are not those of this program.
    pub fn restore(program: Arc<Program>, globals: Globals) -> Result<Self, Misfit> {
        globals.fit(&program.code)?;
        Ok(Self { program, globals })
    }

    /// The globals that survive, to be stored with the end of the cycle.
    pub const fn globals(&self) -> &Globals {
        &self.globals
    }

    /// The program.
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs `sched_main` once (PBS-X-08).
    pub fn cycle(
        &mut self,
        snapshot: &Snapshot,
        clock: &Clock,
        actions: &mut dyn Actions,
        limits: &mut Limits<'_>,
    ) -> Outcome {
        self.run(self.program.code.main, snapshot, clock, actions, limits)
    }

    fn run(
        &mut self,
        function: u16,
        snapshot: &Snapshot,
        clock: &Clock,
        actions: &mut dyn Actions,
        limits: &mut Limits<'_>,
    ) -> Outcome {
        let code = &self.program.code;
        let globals = Registers::of(code, &self.globals);
        let mut vm = Vm::new(code, world(snapshot, clock), globals, clock, actions, limits);
        let stop = vm.run(function).err();
        let Remains { globals, printed, is_cut, statements, started, line } = vm.remains();
        let is_time_over = stop == Some(Stop::TimeOver);
        let exit = if let Some(Stop::Exit(status)) = stop { Some(status) } else { None };
        let message = match stop {
            None | Some(Stop::Exit(_)) => {
                self.globals = globals.saved(&self.program.code);
                None
            }
            Some(Stop::Fault(message)) => Some(message),
            Some(Stop::TimeOver) => Some("the time of the cycle is over".to_owned()),
        };
        let file = self.program.file.clone();
        let fault = message.map(|message| Fault { file, line, column: 0, message, token: None });
        Outcome { printed, is_printed_cut: is_cut, statements, started, exit, fault, is_time_over }
    }
}
