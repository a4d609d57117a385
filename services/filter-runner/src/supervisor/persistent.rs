//! Persistent filters: one process for many calls (HPC-F-67).

use super::{
    GRACE, Stop, Supervisor,
    answer::{self, Read},
    folder::Folder,
    micros,
    program::{Input, Program},
    state::Persistent,
    time_limit,
    wait::{Goal, Wake},
};
use crate::{
    call::{Captured, SurplusAnswer},
    contract::LOAD,
    protocol::{Lines, Order, Outcome},
};
use muster_schemas::filter::FilterExit;
use std::{collections::VecDeque, time::Instant};

/// How many ids of answered lines are remembered.
const MOST_ANSWERED: usize = 1000;
/// More surplus answers than this during one call are an error of the program.
const MOST_SURPLUS: usize = 100;

/// A line for a program.
struct Asked<'a> {
    line: &'a str,
    /// The `id` in it.
    id: &'a str,
    begun: Instant,
    /// The ids of lines answered before.
    answered: &'a VecDeque<String>,
}

impl Persistent {
    /// Reads what the program wrote without being asked: it cannot answer a later line.
    fn take_surplus(&mut self) -> Vec<SurplusAnswer> {
        self.program.stdout.drain();
        let mut surplus = Vec::new();
        while let Some(Ok(line)) = self.program.stdout.line() {
            match answer::read(&line, "", |id| self.answered.iter().any(|known| known == id)) {
                Ok(Read::Surplus(answer)) if surplus.len() < MOST_SURPLUS => surplus.push(answer),
                // Ignore anything else: it belongs to no call.
                _ => {}
            }
        }
        surplus
    }

    fn note_answered(&mut self, id: &str) {
        self.answered.push_back(id.to_owned());
        if self.answered.len() > MOST_ANSWERED {
            self.answered.pop_front();
        }
    }
}

impl Supervisor {
    /// Makes a call of a persistent filter. Its program is started first if it does not run, or restarted if it has
    /// changed.
    pub fn ask(&mut self, order: &Order, lines: &Lines) -> Result<Outcome, Stop> {
        let running = self.persistent.take();
        let vetted = self.programs.vet(&order.program, &order.trusted);
        let is_same = |running: &Persistent| {
            running.program.ended.is_none()
                && running.path == order.program
                && vetted.as_ref().is_ok_and(|hash| *hash == running.hash)
        };
        let mut persistent = match (running, &vetted) {
            (Some(running), _) if is_same(&running) => running,
            (running, _) => {
                if let Some(outdated) = running {
                    self.retire(outdated);
                }
                self.load(order, lines, vetted?)?
            }
        };
        match self.ask_running(&mut persistent, order, lines) {
            Ok(outcome) => {
                self.persistent = Some(persistent);
                Ok(outcome)
            }
            Err(stop) => {
                self.end(&mut persistent.program, true);
                persistent.program.stderr.drain();
                Err(stop.with_stderr(persistent.program.stderr.take()))
            }
        }
    }

    /// `Err` means that the program must be ended.
    fn ask_running(&mut self, running: &mut Persistent, order: &Order, lines: &Lines) -> Result<Outcome, Stop> {
        let folder = Folder::make(order)?;
        let mut surplus = running.take_surplus();
        let delivered = Instant::now();
        let asked = Asked { line: &lines.call, id: &lines.id, begun: delivered, answered: &running.answered };
        let answer = self.exchange(&mut running.program, order, &asked, &mut surplus)?;
        let duration = delivered.elapsed();
        running.note_answered(&lines.id);
        running.program.stderr.drain();
        let outcome = Outcome {
            result: FilterExit::Code(answer.code),
            files: folder.files(order),
            result_lines: Captured { bytes: answer.result_lines.into(), truncated: false },
            stdout: Captured::default(),
            stderr: running.program.stderr.take(),
            duration_micros: micros(duration),
            program_hash: running.hash.clone(),
            surplus,
        };
        self.folder = Some(folder);
        Ok(outcome)
    }

    /// Starts a program and has it load, with a separate time limit as long as a call's.
    fn load(&mut self, order: &Order, lines: &Lines, hash: Option<String>) -> Result<Persistent, Stop> {
        let home = Folder::make_home(order)?;
        let mut program = Program::start(order, &home, Input::Lines)?;
        let asked = Asked { line: &lines.load, id: LOAD, begun: program.started, answered: &VecDeque::new() };
        let refused = match self.exchange(&mut program, order, &asked, &mut Vec::new()) {
            Ok(answer) if answer.code == 0 => {
                let (path, unload) = (order.program.clone(), lines.unload.clone());
                let answered = VecDeque::from([LOAD.to_owned()]);
                return Ok(Persistent { program, path, hash, unload, answered, _home: home });
            }
            Ok(answer) => bad_answer(format!("it refused to load with code {}", answer.code)),
            Err(stop) => stop,
        };
        self.end(&mut program, true);
        program.stderr.drain();
        Err(refused.with_stderr(program.stderr.take()))
    }

    /// Writes a line and waits for its answer. Answers to earlier lines go to `surplus`.
    fn exchange(
        &mut self,
        program: &mut Program,
        order: &Order,
        asked: &Asked,
        surplus: &mut Vec<SurplusAnswer>,
    ) -> Result<answer::Answer, Stop> {
        program.stdin.push_line(asked.line);
        let was_answered = |id: &str| asked.answered.iter().any(|known| known == id);
        loop {
            let line = self.next_line(program, asked.begun + time_limit(order))?;
            match answer::read(&line, asked.id, was_answered).map_err(bad_answer)? {
                Read::Answer(answer) => return Ok(answer),
                Read::Surplus(_) if surplus.len() >= MOST_SURPLUS => {
                    return Err(bad_answer("it answers calls from before again and again".into()));
                }
                Read::Surplus(answer) => surplus.push(answer),
            }
        }
    }

    fn next_line(&mut self, program: &mut Program, deadline: Instant) -> Result<Vec<u8>, Stop> {
        match self.wait(program, Goal::Line, Some(deadline)) {
            Wake::RunnerGone => Err(Stop::RunnerGone),
            Wake::Late => Err(Stop::Result(FilterExit::TimedOut, Captured::default())),
            Wake::Exited => Err(ended(program)),
            Wake::Reached => match program.stdout.line() {
                Some(Ok(line)) => Ok(line),
                // A program that closes its standard output usually ends; its exit status says more.
                Some(Err(_)) if self.wait(program, Goal::Leave, Some(Instant::now() + GRACE)) == Wake::Reached => {
                    Err(ended(program))
                }
                Some(Err(what)) => Err(bad_answer(what.into())),
                None => Err(bad_answer("it wrote no line".into())),
            },
        }
    }

    /// Has a program unload and end, or ends it if it does not.
    pub fn retire(&mut self, mut persistent: Persistent) {
        persistent.program.stdin.push_line(&persistent.unload);
        persistent.program.stdin.finish();
        let wake = self.wait(&mut persistent.program, Goal::Leave, Some(Instant::now() + GRACE));
        self.end(&mut persistent.program, wake != Wake::Reached);
    }
}

fn bad_answer(what: String) -> Stop {
    Stop::Result(FilterExit::BadAnswer(what), Captured::default())
}

/// The program ended when an answer was due. A signal is reported as such, but an exit code would be taken for a
/// verdict.
fn ended(program: &Program) -> Stop {
    match program.result() {
        FilterExit::Code(code) => bad_answer(format!("it ended with exit code {code} instead of an answer")),
        result => Stop::Result(result, Captured::default()),
    }
}

impl Stop {
    fn with_stderr(self, stderr: Captured) -> Self {
        match self {
            Self::Result(result, _) => Self::Result(result, stderr),
            other => other,
        }
    }
}
