//! BaSL programs (PBS-X-07, PBS-X-08, PBS-X-12, PBS-X-13).

mod mapped;
mod picture;

use crate::{
    action::{Action, Change, Code},
    cycle::{Cycle, Docket, End},
    program::Program,
    source,
};
use mapped::Monitored;
use muster_basl::{Action as Told, Actions, Answer, Clock, Fault, Globals, Limits, Machine, Program as Text, Snapshot};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// A BaSL program in force.
#[derive(Debug)]
pub struct Basl {
    file: PathBuf,
    /// The checksum of the text of the program.
    sha256: String,
    machine: Machine,
    monitored: Monitored,
}

impl Basl {
    /// Reads a program and its configuration and puts it in force, with the globals of an earlier cycle if there are any that fit
    /// it.
    ///
    /// # Errors
    /// All mistakes in both files.
    pub fn new(
        file: &Path,
        config: Option<PathBuf>,
        globals: Option<Globals>,
        cycle: &Cycle,
    ) -> Result<Self, Vec<String>> {
        let ((program, sha256), monitored) = both(read(file), Monitored::read(config))?;
        let mut basl = Self { file: file.to_owned(), sha256, machine: in_force(program, cycle)?, monitored };
        if let Some(globals) = globals {
            basl.resume(globals);
        }
        Ok(basl)
    }
}

/// Both results, or the mistakes of both.
fn both<A, B>(one: Result<A, Vec<String>>, other: Result<B, Vec<String>>) -> Result<(A, B), Vec<String>> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => Err(one.err().into_iter().chain(other.err()).flatten().collect()),
    }
}

/// The program of a file, and the checksum of its text.
fn read(file: &Path) -> Result<(Arc<Text>, String), Vec<String>> {
    let text = source::read(file).map_err(|error| vec![error])?;
    let program = Text::check(&file.display().to_string(), &text);
    let program = program.map_err(|faults| faults.iter().map(Fault::located).collect::<Vec<_>>())?;
    Ok((Arc::new(program), source::sha256(&text)))
}

fn in_force(program: Arc<Text>, cycle: &Cycle) -> Result<Machine, Vec<String>> {
    let clock = Clock::new(cycle.now, cycle.zone.clone());
    Machine::new(program, &clock, &mut Limits::default()).map_err(|fault| vec![fault.to_string()])
}

impl Program for Basl {
    fn cycle(&mut self, cycle: &Cycle, docket: &mut Docket<'_>) -> End {
        let clock = Clock::new(cycle.now, cycle.zone.clone());
        let mut snapshot = picture::snapshot(docket.state());
        self.monitored.tell(&mut snapshot, &|node, query| docket.fact(node, query));
        let deadline = Instant::now() + docket.bounds().cycle;
        let mut is_over = || Instant::now() >= deadline;
        let mut limits = Limits { statements: docket.bounds().statements, is_over: Some(&mut is_over) };
        let mut hands = Hands { snapshot: &snapshot, docket };
        let outcome = self.machine.cycle(&snapshot, &clock, &mut hands, &mut limits);
        docket.lines.add(&outcome.printed);
        if outcome.is_printed_cut {
            docket.lines.add("the program printed more than is shown");
        }
        match outcome.fault {
            None => End::Done(outcome.exit),
            Some(fault) => {
                docket.lines.add(&fault.to_string());
                if outcome.is_time_over { End::TimeOver(fault.to_string()) } else { End::Fault(fault.to_string()) }
            }
        }
    }

    fn reload(&mut self, cycle: &Cycle) -> Result<(), Vec<String>> {
        let ((program, sha256), monitored) = both(read(&self.file), Monitored::read(self.monitored.file()))?;
        (self.machine, self.sha256, self.monitored) = (in_force(program, cycle)?, sha256, monitored);
        Ok(())
    }

    fn quit(&mut self, _: i64) {}

    fn globals(&self) -> Option<&Globals> {
        Some(self.machine.globals())
    }

    fn resume(&mut self, globals: Globals) {
        if let Ok(machine) = Machine::restore(self.machine.program().clone(), globals) {
            self.machine = machine;
        }
    }

    fn sources(&self) -> Vec<(String, String)> {
        std::iter::once((source::name(&self.file), self.sha256.clone())).chain(self.monitored.source()).collect()
    }
}

/// Carries out what the program decides.
struct Hands<'h, 's> {
    snapshot: &'h Snapshot,
    docket: &'h mut Docket<'s>,
}

impl Actions for Hands<'_, '_> {
    fn act(&mut self, job: usize, action: Told, parameter: &str) -> Answer {
        let Some(job) = self.snapshot.jobs.get(job) else { return Answer::Refused };
        let job_id = job.id.clone();
        let Some(action) = action_of(job.id.clone(), action, parameter) else {
            self.docket.lines.add(&format!("{action:?} of job {job_id}: the parameter makes no sense: {parameter}"));
            return Answer::Refused;
        };
        let is_start = action.is_start();
        match self.docket.act(action) {
            Err(refusal) => {
                if refusal.code != Code::NoResources {
                    self.docket.lines.add(&format!("job {job_id}: {}", refusal.text));
                }
                Answer::Refused
            }
            Ok(accepted) if is_start && !accepted.nodes.is_empty() => {
                let place = |name: &String| self.snapshot.nodes.iter().position(|node| node.name == *name);
                Answer::StartedOn(accepted.nodes.iter().filter_map(place).collect())
            }
            Ok(_) => Answer::Done,
        }
    }

    fn reserve(&mut self, specification: &str, number: i64) -> Option<i64> {
        let number = u32::try_from(number).ok()?;
        let action = Action::Reserve { number, resources: vec![specification.to_owned()] };
        self.docket.act(action).ok()?.reservation.map(i64::from)
    }

    fn release(&mut self, number: i64) -> bool {
        u32::try_from(number).is_ok_and(|number| self.docket.act(Action::Unreserve { number }).is_ok())
    }
}

/// The action with BaSL's parameter (PBS-X-11); `None` if that makes no sense.
fn action_of(job: String, action: Told, parameter: &str) -> Option<Action> {
    let words = || (!parameter.is_empty()).then(|| parameter.to_owned());
    let pair = || parameter.split_once('=').map(|(name, value)| (name.trim(), value.to_owned()));
    Some(match action {
        Told::SyncRun => Action::Run { job, place: words() },
        Told::AsyncRun => Action::AsyRun { job, place: words() },
        Told::Delete => {
            let delay = match words() {
                None => None,
                Some(text) => Some(text.strip_prefix("deldelay=")?.trim().parse().ok()?),
            };
            Action::Delete { job, delay }
        }
        Told::Rerun => Action::Rerun { job },
        Told::Hold => Action::Hold { job, kinds: words() },
        Told::Release => Action::Release { job, kinds: words() },
        Told::Signal => Action::Signal { job, signal: words()? },
        Told::ModifyAttribute => match pair()? {
            ("comment", text) => Action::Comment { job, text },
            (name, value) => {
                Action::Alter { job, changes: vec![Change { name: name.to_owned(), resource: None, value }] }
            }
        },
        Told::ModifyResource => {
            let (resource, value) = pair()?;
            let change = Change { name: "Resource_List".into(), resource: Some(resource.to_owned()), value };
            Action::Alter { job, changes: vec![change] }
        }
    })
}
