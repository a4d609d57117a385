//! Tcl programs in a real interpreter (PBS-X-14 to PBS-X-20).

mod attributes;
mod commands;
mod door;
mod list;
mod monitors;
mod time;

use crate::{
    child::{Process, Room, USUAL_PATH, end_text},
    cycle::{Bounds, Cycle, Docket, End},
    duplex::{Broken, Duplex},
    health::Health,
    printed::Printer,
    program::Program,
    source,
};
use commands::{Desk, Reply};
use door::Door;
use jiff::tz::TimeZone;
use list::{line, words_of};
use std::{
    io::Write as _,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

/// Defines the commands and serves the planner.
const PRELUDE: &str = include_str!("tcl/prelude.tcl");
/// Names of interpreters, best first.
const INTERPRETERS: [&str; 5] = ["tclsh", "tclsh8.6", "tclsh8.5", "tclsh9.0", "tclsh8.7"];

/// The files of a Tcl program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Where the interpreter runs; other paths are below it unless they are absolute.
    pub folder: PathBuf,
    /// The script of each cycle.
    pub body: PathBuf,
    /// The script that runs once.
    pub init: Option<PathBuf>,
    /// The script that runs at the end (`-t`).
    pub termination: Option<PathBuf>,
    /// What takes standard output and error (`-p`).
    pub print: Option<PathBuf>,
}

/// A Tcl program in force.
#[derive(Debug)]
pub struct Tcl {
    files: Files,
    scripts: Scripts,
    tclsh: String,
    bounds: Bounds,
    printer: Printer,
    zone: Option<String>,
    running: Option<Interpreter>,
    health: Health,
}

#[derive(Clone, Debug)]
struct Scripts {
    body: String,
    init: Option<String>,
    termination: Option<String>,
}

/// A running interpreter.
#[derive(Debug)]
struct Interpreter {
    process: Process,
    link: Duplex,
}

impl Scripts {
    /// Reads all, so that all mistakes are told.
    fn read(files: &Files) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let mut read = |path: &Path| {
            let text = source::read_to_run(&source::below(&files.folder, path));
            text.map_err(|fault| faults.push(fault)).ok()
        };
        let body = read(&files.body);
        let init = files.init.as_deref().map(&mut read);
        let termination = files.termination.as_deref().map(&mut read);
        match body {
            Some(body) if faults.is_empty() => {
                Ok(Self { body, init: init.flatten(), termination: termination.flatten() })
            }
            _ => Err(faults),
        }
    }
}

/// The interpreter in the folders of a search path (PBS-X-16).
///
/// # Errors
/// There is none, for people.
fn interpreter_in(path: &str) -> Result<String, String> {
    let folders = path.split(':');
    let mut paths = INTERPRETERS.iter().flat_map(|name| folders.clone().map(move |folder| format!("{folder}/{name}")));
    let found = paths.find(|path| Path::new(path).is_file());
    found.ok_or_else(|| format!("Tcl programs need tclsh, which is not in {path}; Debian has it as tcl"))
}

impl Tcl {
    /// Reads the scripts. The interpreter is started with the first cycle.
    ///
    /// # Errors
    /// All reasons why the program cannot be put in force.
    pub fn new(files: Files, zone: Option<String>, bounds: &Bounds) -> Result<Self, Vec<String>> {
        let tclsh = interpreter_in(USUAL_PATH).map_err(|why| vec![why])?;
        let scripts = Scripts::read(&files)?;
        let print = files.print.as_deref().map(|path| source::below(&files.folder, path));
        let printer = Printer::new(print.as_deref(), bounds.print_bytes).map_err(|error| vec![error])?;
        let bounds = bounds.clone();
        Ok(Self { files, scripts, tclsh, bounds, printer, zone, running: None, health: Health::default() })
    }

    /// The number of the interpreter's process, if it runs.
    pub fn process(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.process.id())
    }

    fn start(&self) -> Result<Interpreter, String> {
        let told = |error: std::io::Error| format!("the interpreter cannot be started: {error}");
        let deadline = Instant::now() + self.bounds.ready;
        let door = Door::new().map_err(told)?;
        let port = door.port().map_err(told)?;
        let (output, errors) = self.printer.streams().map_err(told)?;
        let room =
            Room { folder: &self.files.folder, zone: self.zone.as_deref(), memory_bytes: self.bounds.memory_bytes };
        let command = std::slice::from_ref(&self.tclsh);
        let mut process = Process::start(command, room, (Stdio::piped(), output, errors))?;
        // Everything fits into the pipe, so this does not wait for the interpreter.
        let script = format!("{PRELUDE}\n::muster::serve {port} {}\n", door.secret());
        if let Some(mut input) = process.take_input() {
            input.write_all(script.as_bytes()).map_err(told)?;
        }
        let stream = door.admit(deadline, || process.is_over()).map_err(told)?;
        let Some(stream) = stream else {
            let how = if process.is_over() { end_text(process.end(Duration::ZERO)) } else { self.not_ready() };
            return Err(format!("the interpreter did not connect: {how}{}", self.printer.last_words()));
        };
        stream.set_nodelay(true).map_err(told)?;
        let from = OwnedFd::from(stream.try_clone().map_err(told)?);
        let link = Duplex::new(stream.into(), from, self.bounds.message_bytes);
        let link = link.map_err(|errno| told(errno.into()))?;
        Ok(Interpreter { process, link })
    }

    fn not_ready(&self) -> String {
        format!("it was not ready within {} s", self.bounds.ready.as_secs_f32())
    }

    /// The interpreter, with INIT run in it. An error in INIT is logged, and does not end it.
    fn ready(&mut self, cycle: &Cycle, docket: &mut Docket<'_>) -> Result<Interpreter, End> {
        if let Some(mut running) = self.running.take() {
            return match running.link.waiting() {
                Ok(None) => Ok(running),
                Ok(Some(_)) => Err(End::Failed("the interpreter spoke between two cycles".into())),
                Err(broken) => Err(self.broken(running, broken)),
            };
        }
        let mut running = self.start().map_err(End::Failed)?;
        let deadline = Instant::now() + self.bounds.cycle;
        let sent = running.link.send(&line(&["body".into(), self.scripts.body.clone()]), deadline);
        if let Err(broken) = sent {
            return Err(self.broken(running, broken));
        }
        if let Some(init) = &self.scripts.init {
            let mut desk = Desk::new(None, cycle.now, &cycle.zone);
            let done = running.evaluate(&["run".into(), init.clone()], &mut desk, &self.bounds, deadline);
            match done {
                Ok(None) => {}
                Ok(Some(stack)) => docket.lines.add(&format!("error in the script INIT: {stack}")),
                Err(broken) => return Err(self.broken(running, broken)),
            }
        }
        Ok(running)
    }

    /// Ends an interpreter that failed, and says why.
    fn broken(&self, running: Interpreter, broken: Broken) -> End {
        match broken {
            Broken::TimeOver => {
                drop(running);
                End::TimeOver(format!("the cycle took longer than {} s", self.bounds.cycle.as_secs_f32()))
            }
            Broken::TooLong => {
                drop(running);
                End::Failed(format!("the interpreter sent more than {} bytes at once", self.bounds.message_bytes))
            }
            Broken::Closed => {
                let how = end_text(running.process.end(self.bounds.ready.min(Duration::from_secs(1))));
                End::Failed(format!("the interpreter is gone: {how}{}", self.printer.last_words()))
            }
        }
    }

    fn run(&mut self, cycle: &Cycle, docket: &mut Docket<'_>) -> End {
        let mut running = match self.ready(cycle, docket) {
            Ok(running) => running,
            Err(end) => return end,
        };
        let deadline = Instant::now() + self.bounds.cycle;
        let mut desk = Desk::new(Some(docket), cycle.now, &cycle.zone);
        let done = running.evaluate(&["cycle".into()], &mut desk, &self.bounds, deadline);
        desk.close();
        match done {
            Err(broken) => self.broken(running, broken),
            Ok(fault) => {
                self.running = Some(running);
                match fault {
                    None => End::Done(None),
                    Some(stack) => {
                        docket.lines.add(&stack);
                        End::Fault(stack.lines().next().unwrap_or_default().to_owned())
                    }
                }
            }
        }
    }
}

impl Interpreter {
    /// Has a script evaluated, and answers its commands. Gives the stack of an error.
    fn evaluate(
        &mut self,
        order: &[String],
        desk: &mut Desk<'_, '_>,
        bounds: &Bounds,
        deadline: Instant,
    ) -> Result<Option<String>, Broken> {
        self.link.send(&line(order), deadline)?;
        loop {
            let said = words_of(&self.link.line(deadline)?).unwrap_or_default();
            let plain: Vec<&str> = said.iter().map(String::as_str).collect();
            match plain.as_slice() {
                ["end", "done", _] => return Ok(None),
                ["end", "fault", stack] => return Ok(Some((*stack).to_owned())),
                _ => {
                    let mut reply = line(&desk.answer(&said).words());
                    if reply.len() > bounds.reply_bytes {
                        let text = format!("the answer has more than {} bytes", bounds.reply_bytes);
                        reply = line(&Reply::Error(text).words());
                    }
                    self.link.send(&reply, deadline)?;
                }
            }
        }
    }
}

impl Program for Tcl {
    fn cycle(&mut self, cycle: &Cycle, docket: &mut Docket<'_>) -> End {
        let end = self.run(cycle, docket);
        match end.trouble().filter(|_| end.is_failure()) {
            Some(trouble) => {
                docket.lines.add(trouble);
                self.health.fail(cycle.now);
            }
            None => self.health.recover(),
        }
        end
    }

    fn reload(&mut self, _: &Cycle) -> Result<(), Vec<String>> {
        self.scripts = Scripts::read(&self.files)?;
        self.running = None;
        Ok(())
    }

    /// The script `-t` runs as long as a cycle may take.
    fn set_zone(&mut self, zone: &str, now: i64) {
        self.quit(now);
        self.zone = Some(zone.to_owned());
    }

    fn quit(&mut self, now: i64) {
        let Some(mut running) = self.running.take() else { return };
        let deadline = Instant::now() + self.bounds.cycle;
        if let Some(termination) = &self.scripts.termination {
            let zone = self.zone.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
            let mut desk = Desk::new(None, now, &zone);
            let done = running.evaluate(&["run".into(), termination.clone()], &mut desk, &self.bounds, deadline);
            if let Ok(Some(stack)) = done {
                self.printer.add(&format!("{stack}\n"));
            }
        }
        if running.link.send(&line(&["quit".into()]), deadline).is_ok() {
            let _ = running.process.end(self.bounds.ready);
        }
    }

    fn health(&self) -> Health {
        self.health
    }

    fn sources(&self) -> Vec<(String, String)> {
        let Scripts { body, init, termination } = &self.scripts;
        let paths = [Some(&self.files.body), self.files.init.as_ref(), self.files.termination.as_ref()];
        let texts = [Some(body), init.as_ref(), termination.as_ref()];
        let both = paths.into_iter().zip(texts).filter_map(|(path, text)| path.zip(text));
        both.map(|(path, text)| (source::name(path), source::sha256(text))).collect()
    }

    fn forgive(&mut self) {
        self.health.recover();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-X-16: without an interpreter a program is refused with that reason; the best of several is taken.
    #[test]
    fn an_interpreter_is_looked_for() {
        let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let path = format!("{}:{}", first.path().display(), second.path().display());
        let expected = format!("Tcl programs need tclsh, which is not in {path}; Debian has it as tcl");
        assert_eq!(interpreter_in(&path), Err(expected));
        std::fs::write(first.path().join("tclsh8.6"), "").expect("a file");
        assert_eq!(interpreter_in(&path), Ok(format!("{}/tclsh8.6", first.path().display())));
        std::fs::write(second.path().join("tclsh"), "").expect("a file");
        assert_eq!(interpreter_in(&path), Ok(format!("{}/tclsh", second.path().display())));
    }
}
