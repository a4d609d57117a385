//! Copies files of jobs to this node and from it, as the owners of the jobs (PBS-G-01).
//!
//! A plain copy serves if the other side is this node; else a program that the configuration names. Both run as the owner,
//! and their words never begin with `-`. They end with this process: the ledger orders again what was not reported.

use crate::{
    identity::{self, Identity},
    runtimes::FOLDERS,
    supervised::{self, Conditions, Outcome},
};
use muster_bus::LedgerClient;
use muster_schemas::{
    CommandId, JobId, RunId, Sequence,
    command::{Command, CommandEnvelope, Refusal, RefusalCode},
    copies::{CopyDirection, CopyOrder, CopyReport, FileCopy},
    event::{Actor, TraceContext},
};
use std::{
    collections::BTreeMap,
    ffi::CString,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time};

/// How many jobs have their files copied at a time, and how many of one owner; the others wait. Their time counts meanwhile.
const AT_ONCE: usize = 64;
const AT_ONCE_OF_OWNER: usize = 8;
/// How many copies are remembered, so that an order which comes late is not obeyed again.
const REMEMBERED: usize = 4_096;
/// The pause before a report that the ledger has not taken is repeated.
const REPORT_AGAIN: Duration = Duration::from_secs(2);
/// The mask for new files.
const UMASK: u32 = 0o077;
/// The longest reason, in bytes.
const MAX_REASON_BYTES: usize = 500;
/// How long it may take to measure files.
const MEASURING: Duration = Duration::from_secs(60);

/// The copying on this node.
#[derive(Debug)]
pub struct Copies {
    ledger: LedgerClient,
    copier: Arc<Copier>,
    known: BTreeMap<Sequence, Copying>,
    slots: Arc<Semaphore>,
    slots_of_owners: BTreeMap<String, Arc<Semaphore>>,
}

/// A copying that was ordered.
#[derive(Debug)]
struct Copying {
    job: JobId,
    run: Option<RunId>,
    /// Whether it is to end without a report. Its task has the only other reference.
    is_stopped: Arc<AtomicBool>,
}

impl Copies {
    /// No copying yet.
    pub fn new(ledger: LedgerClient, copier: Copier) -> Self {
        Self {
            ledger,
            copier: Arc::new(copier),
            known: BTreeMap::new(),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
            slots_of_owners: BTreeMap::new(),
        }
    }

    /// Begins to copy, once for each order.
    pub fn begin(&mut self, order: CopyOrder) {
        if self.known.contains_key(&order.copy) {
            return;
        }
        while self.known.len() >= REMEMBERED {
            let over = self.known.iter().find(|(_, copying)| Arc::strong_count(&copying.is_stopped) == 1);
            let Some(oldest) = over.map(|(copy, _)| *copy) else { break };
            self.known.remove(&oldest);
        }
        let is_stopped = Arc::new(AtomicBool::new(false));
        self.known.insert(order.copy, Copying { job: order.job, run: order.run, is_stopped: is_stopped.clone() });
        let (ledger, copier, slots) = (self.ledger.clone(), self.copier.clone(), self.slots.clone());
        self.slots_of_owners.retain(|_, slots| slots.available_permits() < AT_ONCE_OF_OWNER);
        let of_owner = self.slots_of_owners.entry(order.owner.user.clone());
        let of_owner = of_owner.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE_OF_OWNER))).clone();
        let began = Instant::now();
        tokio::spawn(async move {
            // First those of its owner: whoever waits for them takes no slot from others.
            let Ok(_slot_of_owner) = of_owner.acquire_owned().await else { return };
            let Ok(_slot) = slots.acquire_owned().await else { return };
            let (job, copy, actor) = (order.job, order.copy, Actor::Executor(copier.node.clone()));
            let stop = is_stopped.clone();
            let copied =
                tokio::task::spawn_blocking(move || copier.copy(&order, began, &|| stop.load(Ordering::Relaxed)));
            let report = match copied.await {
                Ok(None) => return,
                Ok(Some(report)) => report,
                Err(error) => {
                    let failure = Some(format!("the copying itself failed: {error}"));
                    CopyReport { bytes: None, milliseconds: 0, failure }
                }
            };
            tracing::debug!(%job, ?report, "files were copied");
            tell(&ledger, actor, Command::NodeCopied { job, copy, report }, &is_stopped).await;
        });
    }

    /// Ends the copying that a run waits for.
    pub fn stop_run(&mut self, run: RunId) {
        self.stop_where(|copying| copying.run == Some(run));
    }

    /// Ends a copying that nobody needs.
    pub fn stop(&mut self, job: JobId, copy: Sequence) {
        if let Some(copying) = self.known.get(&copy).filter(|copying| copying.job == job) {
            copying.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    /// Ends all of it, because this executor ends.
    pub fn stop_all(&mut self) {
        self.stop_where(|_| true);
    }

    fn stop_where(&self, which: impl Fn(&Copying) -> bool) {
        for copying in self.known.values().filter(|copying| which(copying)) {
            copying.is_stopped.store(true, Ordering::Relaxed);
        }
    }
}

/// Reports until the ledger knows, or nobody wants to.
async fn tell(ledger: &LedgerClient, actor: Actor, command: Command, is_stopped: &AtomicBool) {
    let envelope = CommandEnvelope { id: CommandId::new_now(), actor, trace: TraceContext::default(), command };
    while !is_stopped.load(Ordering::Relaxed) {
        match ledger.send(&envelope).await.map(|answer| answer.result) {
            Ok(Err(Refusal { code: RefusalCode::Unavailable | RefusalCode::StorageFailed, message })) => {
                tracing::warn!(message, "the ledger does not take a report on copied files now");
            }
            Err(error) => tracing::warn!(%error, "a report on copied files has not reached the ledger"),
            Ok(_) => return,
        }
        time::sleep(REPORT_AGAIN).await;
    }
}

/// Copies files.
#[derive(Debug)]
pub struct Copier {
    /// The name of this node.
    pub node: String,
    /// All names of this host.
    pub names: Vec<String>,
    /// The program that copies from and to other hosts, with its first words.
    pub command: Vec<String>,
}

/// One end of a copy.
struct End {
    word: String,
    /// Whether it is on this node.
    is_here: bool,
}

impl Copier {
    /// Copies what is ordered, in order, until the first failure; its time counts from when it was ordered. `None` if it was
    /// stopped.
    pub fn copy(&self, order: &CopyOrder, ordered: Instant, is_stopped: &dyn Fn() -> bool) -> Option<CopyReport> {
        if is_stopped() {
            return None;
        }
        let began = Instant::now();
        let mut job = Job {
            order,
            deadline: ordered + Duration::from_secs(order.limit_seconds.into()),
            bytes: Some(0),
            is_stopped,
        };
        let result = identity::Identities::default().of(&order.owner.user).and_then(|owner| self.all(&mut job, &owner));
        if is_stopped() {
            return None;
        }
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(CopyReport { bytes: job.bytes, milliseconds, failure: result.err().map(|why| short(&why)) })
    }

    fn all(&self, job: &mut Job<'_>, owner: &Identity) -> Result<(), String> {
        job.order.files.iter().try_for_each(|file| self.one(job, owner, file))
    }

    fn one(&self, job: &mut Job<'_>, owner: &Identity, file: &FileCopy) -> Result<(), String> {
        let here = |path: &str| End { word: absolute(path, &owner.home), is_here: true };
        let other = match self.is_own(&file.host) {
            true => here(&file.remote),
            false => End { word: format!("{}:{}", file.host, file.remote), is_here: false },
        };
        let (from, to) = match job.order.direction {
            CopyDirection::In => (other, here(&file.local)),
            CopyDirection::Out => (here(&file.local), other),
        };
        // Files of another host can be measured only when they are here.
        if from.is_here {
            let size = job.size(owner, &from.word);
            job.add(size)?;
        }
        let mut words = match from.is_here && to.is_here {
            true => ["cp", "-rp", "--"].map(str::to_owned).to_vec(),
            false => self.command.clone(),
        };
        words.extend([from.word.clone(), to.word.clone()]);
        job.run(owner, &words).map_err(|why| format!("{} could not be copied to {}: {why}", from.word, to.word))?;
        if !from.is_here {
            let name = file.remote.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let inside = job.size(owner, &format!("{}/{name}", to.word));
            let size = inside.or_else(|| job.size(owner, &to.word));
            job.add(size)?;
        }
        Ok(())
    }

    fn is_own(&self, host: &str) -> bool {
        host.is_empty() || host == "localhost" || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// The copying for one job.
struct Job<'a> {
    order: &'a CopyOrder,
    deadline: Instant,
    /// The bytes so far; `None` once something could not be measured.
    bytes: Option<u64>,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Job<'_> {
    /// Counts the size of a file.
    fn add(&mut self, size: Option<u64>) -> Result<(), String> {
        self.bytes = self.bytes.zip(size).map(|(all, one)| all.saturating_add(one));
        let (all, most) = (self.bytes.unwrap_or(0).max(size.unwrap_or(0)), self.order.limit_bytes);
        if most > 0 && all > most {
            return Err(format!("the files have {all} bytes, and at most {most} may be copied"));
        }
        Ok(())
    }

    /// The size of a file or folder as its owner sees it; `None` if it cannot be measured.
    fn size(&self, owner: &Identity, path: &str) -> Option<u64> {
        let deadline = self.deadline.min(Instant::now() + MEASURING);
        let words = ["du", "-sb", "--", path].map(str::to_owned);
        let (outcome, said) = self.supervise(owner, &words, deadline).ok()?;
        let is_measured = matches!(outcome, Outcome::Ended(status) if status.success());
        said.split_whitespace().next().filter(|_| is_measured)?.parse().ok()
    }

    fn run(&self, owner: &Identity, words: &[String]) -> Result<(), String> {
        match self.supervise(owner, words, self.deadline) {
            Ok((Outcome::Ended(status), _)) if status.success() => Ok(()),
            Ok((Outcome::Ended(status), said)) => {
                let first = said.lines().map(str::trim).find(|line| !line.is_empty());
                Err(first.map_or_else(|| status.to_string(), |first| format!("{first} ({status})")))
            }
            Ok((Outcome::TookTooLong, _)) => Err(format!("it took longer than {} s", self.order.limit_seconds)),
            Ok((Outcome::Stopped, _)) => Err("it was stopped".to_owned()),
            Err(error) => Err(format!("{}: {error}", words.first().map_or("no program", String::as_str))),
        }
    }

    fn supervise(&self, owner: &Identity, words: &[String], deadline: Instant) -> std::io::Result<(Outcome, String)> {
        let (program, arguments) = words.split_first().ok_or_else(|| std::io::Error::other("no program is named"))?;
        let mut command = process::Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", FOLDERS.join(":"))
            .env("HOME", &owner.home)
            .env("USER", &owner.user)
            .env("LOGNAME", &owner.user)
            .env("LC_ALL", "C");
        let limit = self.order.limit_bytes;
        let conditions = Conditions {
            deadline,
            file_bytes: (limit > 0).then_some(limit),
            place: Some((CString::new(owner.home.as_str())?, UMASK)),
            dies_with_caller: true,
        };
        supervised::run(command, owner, &conditions, self.is_stopped)
    }
}

/// A path of the owner on this node: a relative one begins in the home folder, so no word begins with `-`.
fn absolute(path: &str, home: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", home.trim_end_matches('/')) }
}

fn short(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    text.get(..text.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or(&text).to_owned()
}
