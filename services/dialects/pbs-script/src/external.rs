//! External programs, which speak JSON on their standard streams (PBS-X-21 to PBS-X-24).

mod message;

use crate::{
    action::{Code, Refusal},
    child::{Process, Room, end_text},
    cycle::{Bounds, Cycle, Docket, End},
    duplex::{Broken, Duplex},
    health::Health,
    printed::Printer,
    program::Program,
    site::selected,
    source,
};
use message::{FromProgram, ToProgram, VERSION, What};
use std::{
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

/// Bad lines after which a cycle ends.
const MOST_BAD_LINES: u32 = 3;
/// Lines that are answered between two cycles; a program that says more there is ended.
const MOST_STRAY_LINES: u32 = 1000;
/// How long an answer between two cycles may take.
const STRAY: Duration = Duration::from_millis(200);

/// An external program in force.
#[derive(Debug)]
pub struct External {
    command: Vec<String>,
    folder: PathBuf,
    zone: Option<String>,
    bounds: Bounds,
    printer: Printer,
    running: Option<Running>,
    health: Health,
}

/// The running program.
#[derive(Debug)]
struct Running {
    process: Process,
    link: Duplex,
    stray_lines: u32,
}

/// How the exchange of a cycle ended.
enum Stop {
    Broken(Broken),
    BadLines(String),
    Wrong(String),
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl External {
    /// A program that is started with the first cycle. Its standard error goes to the print file, below the folder.
    ///
    /// # Errors
    /// The print file cannot be opened, or there is no command.
    pub fn new(
        command: Vec<String>,
        folder: PathBuf,
        print: Option<PathBuf>,
        zone: Option<String>,
        bounds: &Bounds,
    ) -> Result<Self, Vec<String>> {
        if command.first().is_none_or(String::is_empty) {
            return Err(vec!["there is no command".into()]);
        }
        source::require_guarded_command(&folder, &command).map_err(|why| vec![why])?;
        let print = print.map(|path| source::below(&folder, &path));
        let printer = Printer::new(print.as_deref(), bounds.print_bytes).map_err(|error| vec![error])?;
        let bounds = bounds.clone();
        Ok(Self { command, folder, zone, bounds, printer, running: None, health: Health::default() })
    }

    /// The number of the process, if it runs.
    pub fn process(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.process.id())
    }

    fn start(&self) -> Result<Running, End> {
        let told = |error: std::io::Error| End::Failed(format!("the program cannot be started: {error}"));
        let (nowhere, errors) = self.printer.streams().map_err(told)?;
        drop(nowhere);
        let room = Room { folder: &self.folder, zone: self.zone.as_deref(), memory_bytes: self.bounds.memory_bytes };
        let streams = (Stdio::piped(), Stdio::piped(), errors);
        let mut process = Process::start(&self.command, room, streams).map_err(End::Failed)?;
        let (Some(input), Some(output)) = (process.take_input(), process.take_output()) else {
            return Err(End::Failed("the program was started without its streams".into()));
        };
        let link = Duplex::new(input.into(), output.into(), self.bounds.message_bytes);
        let link = link.map_err(|errno| told(errno.into()))?;
        let mut running = Running { process, link, stray_lines: 0 };
        let deadline = Instant::now() + self.bounds.ready;
        match running.greet(&self.command, self.zone.as_deref().unwrap_or("UTC"), deadline) {
            Ok(()) => Ok(running),
            Err(Stop::Broken(Broken::TimeOver)) => {
                let limit = self.bounds.ready.as_secs_f32();
                Err(End::Failed(format!("the program was not ready within {limit} s{}", self.printer.last_words())))
            }
            Err(stop) => Err(self.stopped(running, stop)),
        }
    }

    fn run(&mut self, cycle: &Cycle, docket: &mut Docket<'_>) -> End {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => match self.start() {
                Ok(running) => running,
                Err(end) => return end,
            },
        };
        if let Err(stop) = running.answer_strays() {
            return self.stopped(running, stop);
        }
        running.stray_lines = 0;
        match running.exchange(cycle, docket, &self.bounds) {
            Ok(()) => {
                self.running = Some(running);
                End::Done(None)
            }
            Err(stop) => self.stopped(running, stop),
        }
    }

    /// Ends a process that failed, and says why.
    fn stopped(&self, running: Running, stop: Stop) -> End {
        let end = |running: Running, grace| end_text(running.process.end(grace));
        match stop {
            Stop::Broken(Broken::TimeOver) => {
                end(running, Duration::ZERO);
                End::TimeOver(format!("the cycle took longer than {} s", self.bounds.cycle.as_secs_f32()))
            }
            Stop::Broken(Broken::TooLong) => {
                end(running, Duration::ZERO);
                End::Failed(format!("the program sent a line of more than {} bytes", self.bounds.message_bytes))
            }
            Stop::Broken(Broken::Closed) => {
                let how = end(running, self.bounds.ready.min(Duration::from_secs(1)));
                End::Failed(format!("the program closed its streams: {how}{}", self.printer.last_words()))
            }
            Stop::BadLines(last) => {
                end(running, Duration::ZERO);
                End::Failed(format!("the program sent {MOST_BAD_LINES} bad lines in a cycle; the last one: {last}"))
            }
            Stop::Wrong(what) => {
                end(running, Duration::ZERO);
                End::Failed(what)
            }
        }
    }
}

impl Running {
    /// The first exchange. The program must be ready before the deadline.
    fn greet(&mut self, command: &[String], zone: &str, deadline: Instant) -> Result<(), Stop> {
        self.link.send(&message::text(&ToProgram::Init { v: VERSION, args: command, tz: zone }), deadline)?;
        match message::read(&self.link.line(deadline)?) {
            Ok(FromProgram::Ready { v: VERSION }) => Ok(()),
            Ok(FromProgram::Ready { v }) => {
                Err(Stop::Wrong(format!("the program speaks version {v} of the protocol, this is version {VERSION}")))
            }
            Ok(_) => Err(Stop::Wrong("the program sent another message before `ready`".into())),
            Err(bad) => Err(Stop::Wrong(format!("the program was expected to say `ready`: {}", bad.text))),
        }
    }

    /// Answers what was said outside of a cycle (PBS-X-23).
    fn answer_strays(&mut self) -> Result<(), Stop> {
        while let Some(line) = self.link.waiting()? {
            self.stray_lines += 1;
            if self.stray_lines > MOST_STRAY_LINES {
                return Err(Stop::Wrong("the program does not stop talking between two cycles".into()));
            }
            let refusal = match message::read(&line) {
                Ok(FromProgram::Stat { id, .. } | FromProgram::Act { id, .. }) => {
                    message::refused(&id, &Refusal::new(Code::StaleCycle, "no cycle is in progress"))
                }
                Ok(FromProgram::End { .. } | FromProgram::Ready { .. }) => continue,
                Err(bad) => message::refused(&bad.id, &Refusal::new(Code::BadRequest, bad.text)),
            };
            self.link.send(&refusal, Instant::now() + STRAY)?;
        }
        Ok(())
    }

    fn exchange(&mut self, cycle: &Cycle, docket: &mut Docket<'_>, bounds: &Bounds) -> Result<(), Stop> {
        let deadline = Instant::now() + bounds.cycle;
        let seq = cycle.begun.seq;
        let millis = u64::try_from(bounds.cycle.as_millis()).unwrap_or(u64::MAX);
        self.link.send(&message::text(&ToProgram::cycle(cycle, millis)), deadline)?;
        let mut bad_lines = 0;
        loop {
            let bad = match message::read(&self.link.line(deadline)?) {
                Ok(FromProgram::End { seq: said }) if said == seq => return Ok(()),
                // The end of a cycle that has long been over.
                Ok(FromProgram::End { seq: said }) if said < seq => continue,
                Ok(FromProgram::End { seq: said }) => {
                    message::Bad { id: serde_json::Value::Null, text: format!("there was no cycle {said} so far") }
                }
                Ok(FromProgram::Ready { .. }) => {
                    message::Bad { id: serde_json::Value::Null, text: "`ready` is said once".into() }
                }
                Ok(FromProgram::Stat { id, seq: said, what }) => {
                    let reply = match checked(docket, said, seq) {
                        Ok(()) => stat(&id, what, docket, bounds),
                        Err(refusal) => message::refused(&id, &refusal),
                    };
                    self.link.send(&reply, deadline)?;
                    continue;
                }
                Ok(FromProgram::Act { id, seq: said, action }) => {
                    let answer = checked(docket, said, seq).and_then(|()| docket.act(action));
                    let reply = match answer {
                        Ok(accepted) => message::accepted(&id, &accepted),
                        Err(refusal) => message::refused(&id, &refusal),
                    };
                    self.link.send(&reply, deadline)?;
                    continue;
                }
                Err(bad) => bad,
            };
            bad_lines += 1;
            docket.lines.add(&format!("bad line from the program: {}", bad.text));
            if bad_lines == MOST_BAD_LINES {
                return Err(Stop::BadLines(bad.text));
            }
            let refusal = Refusal::new(Code::BadRequest, bad.text);
            self.link.send(&message::refused(&bad.id, &refusal), deadline)?;
        }
    }
}

/// Whether a request counts in this cycle.
fn checked(docket: &mut Docket<'_>, said: Option<u64>, seq: u64) -> Result<(), Refusal> {
    docket.count()?;
    match said {
        Some(said) if said != seq => {
            Err(Refusal::new(Code::StaleCycle, format!("cycle {said} is not in progress, but cycle {seq}")))
        }
        _ => Ok(()),
    }
}

fn stat(id: &serde_json::Value, what: What, docket: &Docket<'_>, bounds: &Bounds) -> String {
    let state = docket.state();
    let reply = match what {
        What::Server => message::data(id, &state.server),
        What::Queues => message::data(id, &state.queues),
        What::Nodes => message::data(id, &state.nodes),
        What::Jobs => message::data(id, &state.jobs),
        What::Selstat => message::data(id, selected(state).collect::<Vec<_>>()),
    };
    if reply.len() <= bounds.reply_bytes {
        return reply;
    }
    let text = format!("the answer has more than {} bytes", bounds.reply_bytes);
    message::refused(id, &Refusal::new(Code::TooMany, text))
}

impl Program for External {
    fn cycle(&mut self, cycle: &Cycle, docket: &mut Docket<'_>) -> End {
        let end = self.run(cycle, docket);
        match end.trouble() {
            Some(trouble) => {
                docket.lines.add(trouble);
                self.health.fail(cycle.now);
            }
            None => self.health.recover(),
        }
        end
    }

    fn reload(&mut self, cycle: &Cycle) -> Result<(), Vec<String>> {
        self.quit(cycle.now);
        Ok(())
    }

    fn set_zone(&mut self, zone: &str, now: i64) {
        self.quit(now);
        self.zone = Some(zone.to_owned());
    }

    fn quit(&mut self, _: i64) {
        let Some(mut running) = self.running.take() else { return };
        if running.link.send(&message::text(&ToProgram::Quit {}), Instant::now() + STRAY).is_ok() {
            let _ = running.process.end(self.bounds.ready);
        }
    }

    fn health(&self) -> Health {
        self.health
    }

    fn forgive(&mut self) {
        self.health.recover();
    }

    fn tend(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        match running.answer_strays() {
            // The next cycle finds out that it ended.
            Ok(()) | Err(Stop::Broken(Broken::Closed)) => self.running = Some(running),
            Err(stop) => drop(self.stopped(running, stop)),
        }
    }
}
