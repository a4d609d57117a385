//! MPI programs whose tasks do not find each other (SL-W-03). A program that asks for another interface than its step
//! offers, or for none, often runs as that many programs of one task each, and says nothing.
//!
//! Nothing tells the shim that a process has begun as such a program. It is taken to be one if it needs or has loaded an MPI
//! library and no task here has asked for what the step offers.

use super::libraries::{Library, is_launcher};
use muster_schemas::steps::ProcessManagement;
use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    time::Duration,
};

/// How long after the start of the tasks their processes are looked at: for programs that scripts start. At the last look, a
/// program that has found nobody is reported although it has not ended.
const LOOKS: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];
/// How many tasks are looked at: all of a step run alike.
const MAX_TASKS: usize = 4;
/// How many processes of a task are looked at.
const MAX_PROCESSES: usize = 16;

/// The MPI libraries of a step's tasks, as far as they are known. None of the tasks has asked for what the step offers.
pub struct Lookout {
    offered: ProcessManagement,
    /// Those that the programs of the tasks need.
    needed: BTreeMap<u32, Library>,
    /// One that a process of a task has loaded, and the task.
    seen: Option<(u32, Library)>,
    /// When the tasks are looked at next.
    looks: VecDeque<Duration>,
}

/// What a task is told about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The task.
    pub rank: u32,
    /// For people.
    pub text: String,
}

impl Lookout {
    /// For tasks whose programs need these libraries.
    pub fn new(offered: ProcessManagement, needed: BTreeMap<u32, Library>) -> Self {
        Self { offered, needed, seen: None, looks: VecDeque::new() }
    }

    /// The tasks have started.
    pub fn begin(&mut self, now: Duration) {
        self.looks = LOOKS.iter().map(|after| now + *after).collect();
    }

    /// When the tasks are looked at next.
    pub fn next(&self) -> Option<Duration> {
        self.looks.front().copied()
    }

    /// Looks at the living tasks, by process, if it is time to.
    pub fn look(&mut self, tasks: &BTreeMap<i32, u32>, now: Duration) -> Option<Warning> {
        let before = self.looks.len();
        self.looks.retain(|due| *due > now);
        if self.looks.len() == before {
            return None;
        }
        self.look_at(tasks);
        if !self.looks.is_empty() {
            return None;
        }
        // One of the right kind may begin later.
        let is_other = |rank: &&u32| self.library_of(**rank).is_some_and(|library| library.asks != self.offered);
        let rank = tasks.values().filter(is_other).min()?;
        self.library_of(*rank).map(|library| self.warning(*rank, library))
    }

    /// A task has ended; the others live.
    pub fn ended(&mut self, rank: u32, is_success: bool, tasks: &BTreeMap<i32, u32>) -> Option<Warning> {
        let Some(library) = self.library_of(rank) else {
            self.look_at(tasks);
            return None;
        };
        // A program that has failed, or has ended before the others, has its own reasons, unless it asks for something else.
        let is_it = library.asks != self.offered || (is_success && tasks.is_empty());
        let warning = is_it.then(|| self.warning(rank, library));
        self.seen.take_if(|(seen, _)| *seen == rank);
        warning
    }

    fn library_of(&self, rank: u32) -> Option<&Library> {
        let seen = self.seen.as_ref().filter(|(seen, _)| *seen == rank).map(|(_, library)| library);
        self.needed.get(&rank).or(seen)
    }

    fn look_at(&mut self, tasks: &BTreeMap<i32, u32>) {
        if self.seen.is_none() {
            self.seen = tasks.iter().take(MAX_TASKS).find_map(|(task, rank)| Some((*rank, loaded_by(*task)?)));
        }
    }

    fn warning(&self, rank: u32, Library { name, .. }: &Library) -> Warning {
        let (offered, other) = match self.offered {
            ProcessManagement::Pmi => ("PMI", "pmix"),
            ProcessManagement::Pmix => ("PMIx", "pmi2"),
        };
        let text = format!(
            "muster: warning: task {rank} uses {name} and has not asked for the {offered} that the step offers: its tasks do not \
             find each other. Start it with --mpi={other}; --mpi=none says that each task is to run alone.\n"
        );
        Warning { rank, text }
    }
}

/// The library that a task or a process below it has loaded. What a launcher starts asks the launcher.
fn loaded_by(task: i32) -> Option<Library> {
    let mut processes = vec![task];
    let mut next = 0;
    while let Some(process) = processes.get(next).copied() {
        next += 1;
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        if is_launcher(&name) {
            continue;
        }
        if let Some(library) = Library::of_process(process) {
            return Some(library);
        }
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        let room = MAX_PROCESSES.saturating_sub(processes.len());
        processes.extend(children.split_whitespace().filter_map(|child| child.parse::<i32>().ok()).take(room));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(7);

    fn lookout(offered: ProcessManagement, name: Option<(&str, ProcessManagement)>) -> Lookout {
        let library = name.map(|(name, asks)| (0, Library { name: name.to_owned(), asks }));
        let mut lookout = Lookout::new(offered, library.into_iter().collect());
        lookout.begin(START);
        lookout
    }

    fn own() -> BTreeMap<i32, u32> {
        BTreeMap::from([(std::process::id() as i32, 0)])
    }

    /// SL-W-03: a program of another kind is reported at its end, however it ends, and after a time; one of the same kind when
    /// all have ended without having asked, the last one well.
    #[test]
    fn a_program_that_has_asked_for_nothing_is_reported() {
        let open_mpi = Some(("libmpi.so.40", ProcessManagement::Pmix));
        let told = lookout(ProcessManagement::Pmi, open_mpi).ended(0, false, &BTreeMap::new());
        assert_eq!(
            told.map(|warning| warning.text).as_deref(),
            Some(
                "muster: warning: task 0 uses libmpi.so.40 and has not asked for the PMI that the step offers: its tasks do \
                 not find each other. Start it with --mpi=pmix; --mpi=none says that each task is to run alone.\n"
            )
        );
        let mut same = lookout(ProcessManagement::Pmix, open_mpi);
        assert_eq!(same.ended(0, false, &BTreeMap::new()), None);
        assert_eq!(same.ended(0, true, &own()), None, "another task can still ask");
        assert!(same.ended(0, true, &BTreeMap::new()).is_some_and(|warning| warning.text.contains("--mpi=pmi2")));
    }

    #[test]
    fn programs_without_mpi_are_not_reported() {
        let mut lookout = lookout(ProcessManagement::Pmi, None);
        assert_eq!(lookout.ended(0, true, &own()), None);
        while let Some(due) = lookout.next() {
            assert_eq!(lookout.look(&own(), due), None);
        }
        assert_eq!(lookout.ended(0, true, &BTreeMap::new()), None);
    }

    #[test]
    fn a_program_that_runs_on_is_reported_at_the_last_look() {
        let mut other = lookout(ProcessManagement::Pmi, Some(("libmpi.so.40", ProcessManagement::Pmix)));
        assert_eq!(other.look(&own(), START), None, "no look is due");
        let told: Vec<bool> =
            std::iter::from_fn(|| other.next().map(|due| other.look(&own(), due).is_some())).collect();
        assert_eq!(told, [false, false, false, false, true]);
        let mut same = lookout(ProcessManagement::Pmi, Some(("libmpich.so.12", ProcessManagement::Pmi)));
        assert_eq!(same.look(&own(), START + LOOKS[4]), None, "it may ask later");
    }
}
