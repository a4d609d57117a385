//! The part of an executor that waits for disks: it writes orders into the spool, has shims forked, and finds out what
//! became of runs. It is a separate thread, so that nothing else waits, and work that arrives while it waits for the
//! disk shares the next wait.

use crate::{
    cleaning::{Cleaning, cannot_be_ended},
    containment::{Containment, Hierarchies, MARKER, processes},
    fork_server::ForkServer,
    gpus::GpuDevice,
    identity::Identities,
    journal::Journal,
    key::RunKey,
    listed_cpus,
    runtimes::RuntimeChoice,
    shim,
    site::{self, SitePrograms},
    spool::{End, RunFolder, RunLog, SITE_NODE_FILE, Spool, SpooledOrder},
};
use muster_schemas::{
    JobId, PartId, RunId, StepId, Timestamp,
    event::{EndCause, NodeExit, TraceContext},
    job::Program,
    node::LaunchOrder,
    resources::IndexSet,
    steps::StepTasks,
    unfit::UnfitCause,
};
use std::{
    collections::HashSet,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::UnboundedSender;

/// The most orders that share a write of the journal.
const MAX_BATCH: usize = 512;

/// Requests to the launcher.
#[derive(Debug)]
pub enum Work {
    /// Start this, unless it was started before.
    Launch(Box<LaunchOrder>, Option<Box<StepTasks>>),
    /// Create and hold the containment of this run, even if it was held before: this starts no process.
    Hold(Box<LaunchOrder>),
    /// Bind and limit the processes of this run, present and future, to this size.
    Resize(PartId, Size),
    /// Make sure that this is never started, and report that it has ended.
    Bury(RunKey),
    /// Find out what became of this.
    Inspect(RunKey),
    /// Find out what became of this unless its shim lives.
    Check(RunKey),
    /// Sync its result to the disk.
    SyncResult(RunKey),
    /// Remove all of it.
    Forget(RunKey),
    /// The fork server has died.
    RestartForkServer,
}

/// Findings of the launcher.
#[derive(Debug)]
pub enum Finding {
    /// Its shim lives, or has been requested.
    Alive {
        /// The run or step.
        key: RunKey,
        /// Its job.
        about: About,
        /// Whether its processes have been started.
        started: bool,
    },
    /// It has ended, or could not be started.
    Ended {
        /// The run or step.
        key: RunKey,
        /// Its job, if that is known.
        about: Option<About>,
        /// How it ended.
        end: End,
    },
    /// Nothing is known about it.
    Unknown(RunKey),
    /// There is a new fork server; this becomes readable when it dies.
    ForkServer(OwnedFd),
    /// Everything in the spool has been reported.
    Ready,
}

/// The share of the node that a run may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its cores.
    pub cores: IndexSet,
    /// Its memory; 0 means no limit.
    pub memory_bytes: u64,
}

/// Context for log lines and traces about a run.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The job.
    pub job: JobId,
    /// Its trace.
    pub trace: TraceContext,
    /// Whether it only holds resources here, and can come to this node again.
    pub holds_only: bool,
    /// Whether its tasks send output to a client.
    pub has_output: bool,
    /// Whether its tasks are a parallel program and meet those of other nodes.
    pub is_parallel: bool,
}

impl About {
    /// About a launch, with what only a step has.
    pub fn new(order: &LaunchOrder, tasks: Option<&StepTasks>) -> Self {
        let holds_only = order.launch.program == Program::None;
        let has_output = tasks.is_some_and(|tasks| tasks.streams.has_output());
        let is_parallel = order.nodes.len() > 1 && tasks.is_some_and(|tasks| tasks.process_group.is_some());
        Self { job: order.job, trace: order.trace, holds_only, has_output, is_parallel }
    }
}

impl From<&SpooledOrder> for About {
    fn from(spooled: &SpooledOrder) -> Self {
        Self::new(&spooled.order, spooled.tasks.as_ref())
    }
}

/// The launcher's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Changes when the machine boots.
    pub boot_id: String,
    /// The host's means to keep runs together.
    pub hierarchies: Hierarchies,
    /// The CPUs for cores, by number of the core; empty if processes are not bound.
    pub cpus: Vec<u32>,
    /// The property of nodes with the CPUs of cores.
    pub cpuset_property: String,
    /// The soft limit of open files of jobs.
    pub open_files: u64,
    /// The programs that the fork server can be started from, the best one first.
    pub shim_programs: Vec<PathBuf>,
    /// The program that serves the tasks of PMIx programs.
    pub pmix_program: Option<PathBuf>,
    /// The GPUs of the node; `None` if they are numbers and nothing else.
    pub gpus: Option<Vec<GpuDevice>>,
    /// The runtime of containers.
    pub container_runtime: RuntimeChoice,
    /// The programs of the site around jobs.
    pub site: Option<SitePrograms>,
    /// The work on a node once a job is over.
    pub cleaning: Cleaning,
}

/// Whether something that was launched before may be launched again if nothing of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// It may have started processes.
    Never,
    /// It only holds resources.
    May,
}

/// A launch to make.
struct Asked {
    order: LaunchOrder,
    tasks: Option<StepTasks>,
    again: Again,
}

impl Asked {
    fn once(order: LaunchOrder, tasks: Option<Box<StepTasks>>) -> Self {
        Self { order, tasks: tasks.map(|tasks| *tasks), again: Again::Never }
    }

    fn to_hold(order: LaunchOrder) -> Self {
        Self { order, tasks: None, again: Again::May }
    }
}

/// A launch that is not known yet.
struct Begun {
    key: RunKey,
    about: About,
    /// Whether its order is in the spool, and if not, why.
    spooled: Result<(), EndCause>,
}

/// The launcher.
#[derive(Debug)]
pub struct Launcher {
    spool: Spool,
    journal: Journal,
    settings: Settings,
    identities: Identities,
    fork_server: Option<ForkServer>,
    findings: UnboundedSender<Finding>,
    /// Runs whose shim died and whose processes are being ended.
    being_ended: Arc<Mutex<HashSet<RunKey>>>,
}

impl Launcher {
    /// Reads the journal of a spool.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(spool: Spool, settings: Settings, findings: UnboundedSender<Finding>) -> io::Result<Self> {
        Ok(Self {
            journal: Journal::open(spool.root())?,
            spool,
            settings,
            identities: Identities::default(),
            fork_server: None,
            findings,
            being_ended: Arc::default(),
        })
    }

    /// The highest run that the journal remembers.
    pub fn highest_run(&self) -> Option<RunId> {
        self.journal.highest_run()
    }

    /// Works until nobody can send work any more.
    pub fn run(mut self, work: &mpsc::Receiver<Work>) {
        self.recover();
        while let Ok(first) = work.recv() {
            let batch: Vec<Work> = std::iter::once(first).chain(work.try_iter().take(MAX_BATCH - 1)).collect();
            self.work(batch);
        }
        // The shim of a run that was launched a moment ago may not have made its group in them yet.
        let is_over = |key: &RunKey| matches!(self.spool.run(*key).log(), Ok(None | Some(RunLog { end: Some(_), .. })));
        if self.spool.keys().is_ok_and(|keys| keys.iter().all(is_over)) {
            self.settings.hierarchies.leave();
        }
    }

    /// Continues what an earlier executor left.
    fn recover(&mut self) {
        self.restart_fork_server();
        let keys = self.spool.keys().unwrap_or_else(|error| {
            tracing::error!(%error, "the spool cannot be read");
            vec![]
        });
        for part in self.settings.hierarchies.parts_with_groups() {
            if !keys.contains(&RunKey::whole(part)) {
                tracing::warn!(run = %part, "ending what an earlier executor left of a run");
                Containment::existing(&self.settings.hierarchies, part).end(self.settings.cleaning.deadline(), || {});
            }
        }
        for key in keys {
            self.inspect(key);
        }
        self.report(Finding::Ready);
    }

    fn report(&self, finding: Finding) {
        // Nobody listens once the executor stops.
        let _ = self.findings.send(finding);
    }

    /// Launches go first: other work of the batch on the same run can only have come after its launch.
    fn work(&mut self, batch: Vec<Work>) {
        let (mut launches, mut others) = (Vec::new(), Vec::new());
        for work in batch {
            match work {
                Work::Launch(order, tasks) => launches.push(Asked::once(*order, tasks)),
                Work::Hold(order) => launches.push(Asked::to_hold(*order)),
                other => others.push(other),
            }
        }
        self.launch(launches);
        for work in others {
            self.work_on(work);
        }
    }

    fn work_on(&mut self, work: Work) {
        match work {
            Work::Launch(order, tasks) => self.launch(vec![Asked::once(*order, tasks)]),
            Work::Hold(order) => self.launch(vec![Asked::to_hold(*order)]),
            Work::Resize(part, size) => self.resize(part, &size),
            Work::Bury(key) => self.bury(key),
            Work::Check(key) if matches!(self.spool.run(key).is_held(), Ok(true)) => {}
            Work::Check(key) | Work::Inspect(key) => self.inspect(key),
            Work::SyncResult(key) => self.sync_result(key),
            Work::Forget(key) => self.forget(key),
            Work::RestartForkServer => self.restart_fork_server(),
        }
    }

    /// Without groups, or without a CPU set, processes are bound one by one; later ones follow their own order.
    fn resize(&self, part: PartId, size: &Size) {
        let cpus = cpus_of(&size.cores, &self.settings.cpus);
        let containment = Containment::existing(&self.settings.hierarchies, part);
        if let Err(error) = containment.resize(size.memory_bytes, &cpus) {
            tracing::warn!(run = %part, %error, "a run cannot be limited to its new share of the node");
        }
    }

    fn sync_result(&self, key: RunKey) {
        if let Err(error) = self.spool.run(key).sync_result()
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(%key, %error, "a result may not outlive a crash of this machine");
        }
    }

    fn forget(&mut self, key: RunKey) {
        if let Err(error) = self.spool.recycle(key) {
            tracing::warn!(%key, %error, "a finished run cannot be removed from the spool");
        }
    }

    /// Writes the orders to the spool, records them with one synced write, then starts them.
    fn launch(&mut self, asked: Vec<Asked>) {
        let mut begun: Vec<Begun> = Vec::with_capacity(asked.len());
        for Asked { order, tasks, again } in asked {
            let (key, about) = (RunKey::of(&order), About::new(&order, tasks.as_ref()));
            if begun.iter().any(|known| known.key == key) {
                continue;
            }
            if self.spool.run(key).path().exists() {
                self.inspect(key);
            } else if again == Again::Never && self.journal.contains(key) {
                let cause = EndCause::Lost("it was launched here before, and nothing is left of it".into());
                self.report_unstarted(key, Some(about), cause);
            } else {
                begun.push(Begun { key, about, spooled: self.spool_order(order, tasks) });
            }
        }
        self.start(begun);
    }

    fn start(&mut self, begun: Vec<Begun>) {
        let keys: Vec<RunKey> = begun.iter().map(|begun| begun.key).collect();
        if keys.is_empty() {
            return;
        }
        let recorded = self.journal.record(&keys);
        let mut ready = Vec::with_capacity(keys.len());
        for Begun { key, about, spooled } in begun {
            let cause = match (spooled, &recorded) {
                (Ok(()), Ok(())) => {
                    ready.push(key);
                    continue;
                }
                (Ok(()), Err(error)) => {
                    self.forget(key);
                    unwritable(key, &format!("the launch journal cannot be written: {error}"))
                }
                (Err(cause), _) => cause,
            };
            self.report_unstarted(key, Some(about), cause);
        }
        self.fork_shims(&ready);
    }

    fn report_unstarted(&self, key: RunKey, about: Option<About>, cause: EndCause) {
        self.report(Finding::Ended { key, about, end: shim::exit_without_start(cause).into() });
    }

    fn spool_order(&mut self, order: LaunchOrder, tasks: Option<StepTasks>) -> Result<(), EndCause> {
        let key = RunKey::of(&order);
        require_gpus(&order.gpus, self.settings.gpus.as_deref())?;
        let identity = self.identities.in_group(&order.owner.user, order.group.as_deref());
        let identity = identity.map_err(EndCause::LaunchFailed)?;
        let spooled = SpooledOrder {
            boot_id: self.settings.boot_id.clone(),
            cpus: self.cpus_for(&order)?,
            identity,
            hierarchies: self.settings.hierarchies.clone(),
            open_files: self.settings.open_files,
            order,
            tasks,
            pmix_program: self.settings.pmix_program.clone(),
            gpus: self.settings.gpus.clone().unwrap_or_default(),
            container_runtime: self.settings.container_runtime.clone(),
            site: self.settings.site.clone(),
            cleaning: self.settings.cleaning.clone(),
        };
        self.spool.create(&spooled).map_err(|error| unwritable(key, &format!("the order cannot be written: {error}")))
    }

    /// The CPUs for the processes of an order: those of its cores, or those that the site lists for them (OAR-X-02). A step asks the
    /// order of its run what its node is.
    fn cpus_for(&self, order: &LaunchOrder) -> Result<Vec<u32>, EndCause> {
        let usable = &self.settings.cpus;
        if usable.is_empty() {
            return Ok(Vec::new());
        }
        let of_run = || self.spool.run(RunKey::whole(order.part)).log().ok().flatten()?.order;
        let run = if order.step == StepId(0) { None } else { of_run() };
        let facts = listed_cpus::facts_of(run.as_ref().map_or(order, |run| &run.order));
        let property = &self.settings.cpuset_property;
        let listed = facts.map(|facts| listed_cpus::listed(facts, property, &order.cores, usable));
        match listed.transpose() {
            Ok(listed) => Ok(listed.flatten().unwrap_or_else(|| cpus_of(&order.cores, usable))),
            Err(why) => {
                let why = UnfitCause::Containment.because(why);
                note_unfit(self.spool.root(), &why);
                Err(EndCause::Lost(why))
            }
        }
    }

    fn bury(&mut self, key: RunKey) {
        if self.spool.run(key).path().exists() {
            return self.inspect(key);
        }
        if !self.journal.contains(key)
            && let Err(error) = self.journal.record(&[key])
        {
            tracing::error!(%key, %error, "the launch journal cannot be written");
            // The ledger asks again.
            return self.report(Finding::Unknown(key));
        }
        self.report_unstarted(key, None, EndCause::Killed);
    }

    /// Has shims forked. A fork server that died is replaced, and gets all unclaimed runs.
    fn fork_shims(&mut self, keys: &[RunKey]) {
        if keys.is_empty() {
            return;
        }
        let launched = self.fork_server.as_mut().is_some_and(|server| server.launch(keys).is_ok());
        if !launched {
            self.restart_fork_server();
            for key in self.spool.keys().unwrap_or_default() {
                self.inspect_folder(key, false);
            }
        }
    }

    fn restart_fork_server(&mut self) {
        self.fork_server = None;
        for program in self.settings.shim_programs.clone() {
            match self.start_fork_server(&program) {
                Ok((server, death)) => {
                    self.fork_server = Some(server);
                    return self.report(Finding::ForkServer(death));
                }
                Err(error) => {
                    let name = program.display();
                    tracing::error!(program = %name, %error, "the fork server cannot be started from this program");
                    if error.kind() == io::ErrorKind::Unsupported && self.settings.shim_programs.len() > 1 {
                        self.settings.shim_programs.retain(|other| *other != program);
                    }
                }
            }
        }
    }

    fn start_fork_server(&self, program: &Path) -> io::Result<(ForkServer, OwnedFd)> {
        let server = ForkServer::start(program, self.spool.root())?;
        if let Some(why) = server.no_host() {
            tracing::warn!(spool = %self.spool.root().display(), why, "programs on the emulated nodes share this host's name, /dev/shm and /tmp");
        }
        let death = server.death()?;
        Ok((server, death))
    }

    fn inspect(&mut self, key: RunKey) {
        self.inspect_folder(key, true);
    }

    fn inspect_folder(&mut self, key: RunKey, may_restart: bool) {
        let folder = self.spool.run(key);
        if let Err(error) = self.try_inspect(key, &folder, may_restart) {
            tracing::error!(%key, %error, "a run in the spool cannot be inspected");
        }
    }

    fn try_inspect(&mut self, key: RunKey, folder: &RunFolder, may_restart: bool) -> io::Result<()> {
        let Some(mut log) = folder.log()? else {
            self.report(Finding::Unknown(key));
            return Ok(());
        };
        if log.claimed && log.end.is_none() {
            if folder.is_held()? {
                let Some(order) = &log.order else { return Ok(()) };
                self.report(Finding::Alive { key, about: order.into(), started: log.started.is_some() });
                return Ok(());
            }
            // It may have ended properly since the log was read.
            log = folder.log()?.unwrap_or_default();
        }
        let about = log.order.as_ref().map(About::from);
        let same_boot = log.order.as_ref().is_some_and(|spooled| spooled.boot_id == self.settings.boot_id);
        match (log.end, about) {
            (Some(end), about) => self.report(Finding::Ended { key, about, end }),
            (None, _) if log.claimed => self.end_abandoned(key, folder.clone(), log.order, log.started, same_boot),
            (None, Some(about)) if same_boot => {
                self.report(Finding::Alive { key, about, started: false });
                return self.launch_again(key, may_restart);
            }
            (None, Some(about)) => self.give_up(key, folder, Some(about), "the node was restarted")?,
            // The executor died while it wrote the order, before it began the launch.
            (None, None) if !self.journal.contains(key) => {
                self.report(Finding::Unknown(key));
                self.spool.recycle(key)?;
            }
            (None, None) => self.give_up(key, folder, None, "its order in the node's spool is damaged")?,
        }
        Ok(())
    }

    /// No shim has claimed it: only one can, so it does no harm to ask again.
    fn launch_again(&mut self, key: RunKey, may_restart: bool) -> io::Result<()> {
        if !self.journal.contains(key) {
            self.journal.record(&[key])?;
        }
        if may_restart {
            self.fork_shims(&[key]);
        } else if let Some(server) = &mut self.fork_server {
            server.launch(&[key])?;
        }
        Ok(())
    }

    /// It was ordered before the machine booted, or its order is damaged: nothing runs, and nothing may be started any
    /// more.
    fn give_up(&self, key: RunKey, folder: &RunFolder, about: Option<About>, why: &str) -> io::Result<()> {
        let exit = shim::exit_without_start(EndCause::Lost(why.into()));
        folder.close(&exit)?;
        self.report(Finding::Ended { key, about, end: exit.into() });
        Ok(())
    }

    /// The shim died and cannot clean up: a thread does so here, because it can take long.
    fn end_abandoned(
        &self,
        key: RunKey,
        folder: RunFolder,
        order: Option<SpooledOrder>,
        started: Option<Timestamp>,
        same_boot: bool,
    ) {
        let about = order.as_ref().map(About::from);
        let spool = self.spool.root().to_owned();
        if !self.lock_being_ended().insert(key) {
            return;
        }
        let (hierarchies, findings, being_ended) =
            (self.settings.hierarchies.clone(), self.findings.clone(), Arc::clone(&self.being_ended));
        let cleaning = self.settings.cleaning.clone();
        thread::spawn(move || {
            let deadline = order.as_ref().map_or_else(|| cleaning.deadline(), |order| order.cleaning.deadline());
            if same_boot && !end_processes(&hierarchies, key, deadline) {
                note_unfit(&spool, &cannot_be_ended(about.map(|about| about.job)));
            }
            // This can take long, too.
            if let Err(error) = folder.remove_container() {
                tracing::warn!(%key, %error, "the folder of a container cannot be removed");
            }
            if let Some(order) = order.filter(|_| same_boot && !key.is_step()) {
                run_epilog(&spool, &order, &folder);
            }
            let why = if same_boot { "its shim was killed" } else { "the node was restarted" };
            let exit = NodeExit { started, ..shim::exit_without_start(EndCause::Lost(why.into())) };
            match folder.close(&exit) {
                Ok(()) => drop(findings.send(Finding::Ended { key, about, end: exit.into() })),
                Err(error) => tracing::error!(%key, %error, "the end of a run cannot be written to the spool"),
            }
            being_ended.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        });
    }

    fn lock_being_ended(&self) -> std::sync::MutexGuard<'_, HashSet<RunKey>> {
        self.being_ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a run or step that cannot be written down. A node that says so of a run is taken out of service: it would end job
/// after job.
fn unwritable(key: RunKey, why: &str) -> EndCause {
    let why = UnfitCause::Spool.because(why);
    if key.is_step() { EndCause::LaunchFailed(why) } else { EndCause::Lost(why) }
}

/// Removes the group that the site has made for a run that has no shim, and runs the site's epilogs for it.
fn run_epilog(spool: &Path, order: &SpooledOrder, folder: &RunFolder) {
    let remove = |site: &SitePrograms| site.remove_group(&order.order, &order.identity);
    if let Some(Err(why)) = order.site.as_ref().map(remove) {
        note_unfit(spool, &format!("{}: {why}", cannot_be_ended(Some(order.order.job))));
    }
    let run = |site: &SitePrograms| site.run_epilogs(&order.order, &order.identity, &folder.file(SITE_NODE_FILE));
    if let Some(Err(why)) = order.site.as_ref().map(run) {
        note_unfit(spool, &why);
    }
}

fn note_unfit(spool: &Path, why: &str) {
    if let Err(error) = site::note_unfit(spool, why) {
        tracing::error!(%error, why, "it cannot be noted in the spool that the node is unfit");
    }
}

/// Ends the processes of a run or step that has no shim. Returns whether they are gone, at the deadline at the latest.
fn end_processes(hierarchies: &Hierarchies, key: RunKey, deadline: Option<Instant>) -> bool {
    if key.step == StepId(0) {
        let containment = Containment::existing(hierarchies, key.part);
        let is_over = containment.end(deadline, || {});
        return is_over & containment.end_marked(deadline, || {});
    }
    let marks = [format!("{MARKER}={}", hierarchies.marker(key.part)), format!("MUSTER_STEP_ID={}", key.step)];
    loop {
        let marked = processes::marked(&marks);
        if marked.is_empty() {
            return true;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        processes::signal_all(&marked, libc::SIGKILL);
        thread::sleep(Duration::from_millis(10));
    }
}

/// A job may have been given a GPU before the ledger knew that the node has not so many. It can run elsewhere.
fn require_gpus(wanted: &IndexSet, gpus: Option<&[GpuDevice]>) -> Result<(), EndCause> {
    let missing = |gpus: &[GpuDevice]| wanted.iter().find(|gpu| *gpu as usize >= gpus.len());
    match gpus.and_then(|gpus| Some((gpus.len(), missing(gpus)?))) {
        Some((found, gpu)) => Err(EndCause::Lost(format!("the node has no GPU {gpu}: {found} were found there"))),
        None => Ok(()),
    }
}

/// The CPUs for the cores of an order; none if the host does not have them all.
fn cpus_of(cores: &IndexSet, cpus: &[u32]) -> Vec<u32> {
    let bound: Option<Vec<u32>> = cores.iter().map(|core| cpus.get(core as usize).copied()).collect();
    bound.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_for_a_gpu_that_is_not_there_goes_elsewhere() {
        let gpus = ["nvidia:/dev/nvidia0".parse().unwrap()];
        let wanted = |last| IndexSet::from_range(0, last);
        assert_eq!(require_gpus(&wanted(0), Some(&gpus)), Ok(()));
        assert_eq!(require_gpus(&wanted(1), None), Ok(()), "they are numbers and nothing else");
        assert!(matches!(require_gpus(&wanted(1), Some(&gpus)), Err(EndCause::Lost(why)) if why.contains("no GPU 1")));
    }

    #[test]
    fn cores_beyond_the_hosts_are_not_bound() {
        assert_eq!(cpus_of(&IndexSet::from_range(0, 1), &[4, 6]), [4, 6]);
        assert_eq!(cpus_of(&IndexSet::from_range(1, 2), &[4, 6]), [0; 0]);
        assert_eq!(cpus_of(&IndexSet::new(), &[4, 6]), [0; 0]);
        assert_eq!(cpus_of(&IndexSet::from_range(0, 0), &[]), [0; 0]);
    }
}
