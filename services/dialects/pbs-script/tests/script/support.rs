//! States, folders and schedulers for the tests.

use muster_pbs_plan::state_file::{JobState, NodeState, QueueState, State, StateFile};
use muster_pbs_script::{
    action::Action,
    cycle::Bounds,
    cycles::Cycles,
    policy_word::ProgramWord,
    scheduler::{Hour, Report, Scheduler, Setup},
    state_site::{StateSite, moment},
    trigger::Command,
};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// 1998-05-15 10:00:00 UTC, a Friday.
pub const TEN: i64 = 895_226_400;

/// How long to poll for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn job(id: &str, queue: &str, request: &[(&str, &str)]) -> JobState {
    let mut job = JobState { id: id.into(), queue: queue.into(), user: "ann".into(), ..JobState::default() };
    for (name, value) in request {
        job.request.set(name, value).expect("a value of the resource");
    }
    job
}

pub fn queue(name: &str) -> QueueState {
    QueueState { name: name.into(), kind: Some("execution".into()), started: Some(true), ..QueueState::default() }
}

pub fn node(name: &str, state: &str, loadave: Option<&str>) -> NodeState {
    let loadave = loadave.and_then(muster_pbs_policy::values::Decimal::parse);
    NodeState { name: name.into(), state: Some(state.into()), ncpus: Some(4), loadave, ..NodeState::default() }
}

pub fn state(queues: Vec<QueueState>, nodes: Vec<NodeState>, jobs: Vec<JobState>) -> StateFile {
    StateFile { server: Default::default(), queues, nodes, jobs, ..StateFile::at(moment(TEN)) }
}

/// A site with jobs in the queue `batch`.
pub fn site(jobs: &[&str]) -> StateSite {
    let jobs = jobs.iter().map(|id| job(id, "batch", &[])).collect();
    StateSite::new(state(vec![queue("batch")], vec![node("node1", "free", Some("1.5"))], jobs))
}

/// A scheduler, and the folder in which it runs.
pub struct Bench {
    pub folder: TempDir,
    pub scheduler: Scheduler,
}

/// Files by name, and the value of `scheduler_policy`.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

pub fn short() -> Bounds {
    Bounds { cycle: Duration::from_secs(20), ..Bounds::default() }
}

pub fn setup(folder: &Path, bounds: Bounds) -> Setup {
    Setup { bounds, ..Setup::new(folder) }
}

pub fn bench_with(policy: &str, files: &[(&str, &str)], bounds: Bounds) -> Bench {
    let folder = folder(files);
    let word = ProgramWord::parse(policy).expect("a policy");
    let setup = setup(folder.path(), bounds);
    let scheduler = Scheduler::new(&word, setup, Cycles::new(true, 0), TEN);
    Bench { scheduler: scheduler.unwrap_or_else(|faults| panic!("{faults:#?}")), folder }
}

pub fn bench(policy: &str, files: &[(&str, &str)]) -> Bench {
    bench_with(policy, files, short())
}

impl Bench {
    /// One cycle, which must be due.
    pub fn cycle(&mut self, now: i64, site: &mut StateSite) -> Report {
        self.scheduler.step(Hour::prime(now), site).expect("a cycle is due")
    }

    /// A cycle after a trigger.
    pub fn on(&mut self, trigger: Command, now: i64, site: &mut StateSite) -> Report {
        self.scheduler.note(trigger);
        self.cycle(now, site)
    }

    /// What the program has printed, once it contains a text.
    pub fn printed(&self, wanted: &str) -> String {
        let path = self.folder.path().join("sched_out");
        poll_for(wanted, || fs::read_to_string(&path).unwrap_or_default(), |text| text.contains(wanted))
    }
}

/// Looks again and again until something is so.
pub fn poll_for<T: std::fmt::Debug>(wanted: &str, mut look: impl FnMut() -> T, is_so: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = look();
        if is_so(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited for {wanted}, saw {seen:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The jobs that were started, in order.
pub fn started(report: &Report) -> Vec<&str> {
    let accepted = report.decisions.iter().filter(|decision| decision.answer.is_ok());
    accepted.filter(|decision| decision.action.is_start()).filter_map(|decision| decision.action.job()).collect()
}

/// The comments that were made.
pub fn comments(report: &Report) -> Vec<(&str, &str)> {
    let comment = |action: &'_ Action| matches!(action, Action::Comment { .. });
    let made = report.decisions.iter().filter(|decision| comment(&decision.action) && decision.answer.is_ok());
    made.filter_map(|decision| match &decision.action {
        Action::Comment { job, text } => Some((job.as_str(), text.as_str())),
        _ => None,
    })
    .collect()
}

/// Whether Tcl's interpreter is here; without it a test of Tcl cannot run.
pub fn has_tcl() -> bool {
    let is_here =
        ["/usr/bin/tclsh", "/usr/local/bin/tclsh", "/usr/bin/tclsh8.6"].iter().any(|path| Path::new(path).exists());
    if !is_here {
        muster_surroundings::skipped("tclsh is not installed");
    }
    is_here
}

pub fn state_of(site: &StateSite, id: &str) -> State {
    site.job(id).expect("a job").state
}

/// Whether a process is gone, or only its parent has to know.
pub fn is_gone(process: u32) -> bool {
    match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    }
}
