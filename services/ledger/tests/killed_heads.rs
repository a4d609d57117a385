//! Three ledgers, each a process of its own, on three NATS servers. Ledgers and servers are killed and paused while callers
//! submit jobs. What callers were told is true, every caller is told, and all ledgers have the same history. How long callers
//! waited is printed.
//!
//! `MUSTER_CRASH_ROUNDS` is the number of faults, `MUSTER_CRASH_SEED` repeats the choices of a run.

#[path = "../../../tests/tests/cluster/history.rs"]
mod history;
mod support;

use history::{Call, Outcome, contradictions};
use muster_bus::{
    Bus as _, LedgerClient, NatsBus, NatsConfig, NatsRounds,
    rounds::{Next, Position, RoundKind, Rounds as _},
    testing::NatsCluster,
};
use muster_ledger::{Config, Replication, limits::NoLimits, log::Log, serve_member};
use muster_schemas::{
    command::{Command as Wish, Query, QueryAnswer},
    event::{Event, TraceContext},
    ids::{CommandId, Sequence},
    job::JobSpec,
    ledgers::{LedgerReport, LedgerRole},
    subjects::{self, ROUNDS_STREAM},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use support::{config, job, root, submitted};
use tokio::{sync::oneshot, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

const NAMES: [&str; 3] = ["head1", "head2", "head3"];
/// Tells a process that it is a ledger: its name, its folder, and where the servers are.
const MEMBER: &str = "MUSTER_TEST_MEMBER";
/// How long a process is paused: much longer than a ledger leads without a sign of life.
const PAUSE: Duration = Duration::from_secs(10);
/// Longer than any fault lasts.
const PATIENCE: Duration = Duration::from_secs(90);

/// What each ledger of the other tests runs, until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is a ledger, which the other tests start"]
async fn a_ledger() {
    let Ok(member) = std::env::var(MEMBER) else { return };
    let [name, folder, url] = member.split(' ').collect::<Vec<_>>()[..] else { panic!("{member}") };
    let nats = NatsConfig { url: url.to_owned(), replicas: 3, ..NatsConfig::default() };
    let rounds = NatsRounds::connect(&nats).await.unwrap();
    let bus = NatsBus::connect(nats).await.unwrap();
    let config = Config { replication: Replication::Stream, name: name.to_owned(), ..config(Path::new(folder)) };
    let (ready, _is_ready) = oneshot::channel();
    let shutdown = CancellationToken::new();
    let mut told = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            told.recv().await;
            shutdown.cancel();
        }
    });
    serve_member(bus, config, Arc::new(NoLimits), Box::new(rounds), ready, shutdown).await.unwrap();
}

/// What is done to the heads.
#[derive(Clone, Copy, Debug)]
enum Fault {
    KillLeadingLedger,
    PauseLeadingLedger,
    KillOtherLedger,
    KillLeadingServer,
    PauseLeadingServer,
    KillOtherServer,
}

const FAULTS: [Fault; 6] = [
    Fault::KillLeadingLedger,
    Fault::PauseLeadingLedger,
    Fault::KillOtherLedger,
    Fault::KillLeadingServer,
    Fault::PauseLeadingServer,
    Fault::KillOtherServer,
];

struct Heads {
    servers: NatsCluster,
    folder: tempfile::TempDir,
    ledgers: BTreeMap<&'static str, Child>,
    client: LedgerClient,
}

impl Heads {
    async fn start() -> Self {
        let servers = NatsCluster::start().await;
        let bus = NatsBus::connect(servers.config()).await.unwrap();
        // An attempt lasts as long as a caller waits at all: without the word of the ledger that answers now, whoever had
        // asked one that is gone would get no answer.
        let client = LedgerClient::new(bus).with_patience(PATIENCE).with_attempts_of(PATIENCE);
        let mut heads = Self { servers, folder: tempfile::tempdir().unwrap(), ledgers: BTreeMap::new(), client };
        let [first, others @ ..] = NAMES;
        heads.launch(first);
        heads.client.query(&Query::Head).await.expect("the first ledger leads");
        for name in others {
            std::fs::create_dir(heads.data(name)).unwrap();
            std::fs::copy(heads.data(first).join("ledger.key"), heads.data(name).join("ledger.key")).unwrap();
            heads.launch(name);
        }
        heads
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn launch(&mut self, name: &'static str) {
        let log = std::fs::File::options().append(true).create(true).open(self.data(&format!("{name}.log"))).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_ledger", "--ignored", "--nocapture"]);
        command.env(MEMBER, format!("{name} {} {}", self.data(name).display(), self.servers.url()));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.ledgers.insert(name, command.spawn().unwrap());
    }

    fn signal(&self, name: &str, signal: nix::sys::signal::Signal) {
        let pid = i32::try_from(self.ledgers[name].id()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    }

    /// The ledger that has appended the last message.
    async fn leader(&self) -> &'static str {
        let mut rounds = NatsRounds::connect(&self.servers.config()).await.unwrap();
        let look = move || {
            let begun = Instant::now();
            loop {
                if let Ok(info) = rounds.info()
                    && let Next::Message(_, message) = rounds.next(Position(info.last.0 - 1), Duration::ZERO)
                {
                    return message.header.ledger;
                }
                assert!(begun.elapsed() < PATIENCE, "nobody says who leads");
            }
        };
        let leader = tokio::task::spawn_blocking(look).await.unwrap();
        NAMES.into_iter().find(|name| *name == leader).unwrap()
    }

    /// Does it, waits until callers are answered again, and undoes it. Returns how long they waited.
    async fn suffer(&mut self, fault: Fault, calls: &Calls, random: &mut SmallRng) -> Duration {
        use nix::sys::signal::Signal::{SIGCONT, SIGSTOP};
        let ledger = self.leader().await;
        let server = self.servers.leader_of(ROUNDS_STREAM).await;
        let (other, further) = (random.random_range(1..3), random.random_range(0..300));
        sleep(Duration::from_millis(further)).await;
        let begun = Instant::now();
        match fault {
            Fault::KillLeadingLedger | Fault::KillOtherLedger => {
                let at = NAMES.iter().position(|name| *name == ledger).unwrap();
                let victim = if matches!(fault, Fault::KillOtherLedger) { NAMES[(at + other) % 3] } else { ledger };
                let mut process = self.ledgers.remove(victim).unwrap();
                process.kill().unwrap();
                process.wait().unwrap();
                let waited = calls.answered_after(begun).await;
                self.launch(victim);
                waited
            }
            Fault::PauseLeadingLedger => {
                self.signal(ledger, SIGSTOP);
                let waited = calls.answered_after(begun).await;
                sleep(PAUSE.saturating_sub(begun.elapsed())).await;
                self.signal(ledger, SIGCONT);
                waited
            }
            Fault::KillLeadingServer | Fault::KillOtherServer => {
                let victim = if matches!(fault, Fault::KillOtherServer) { (server + other) % 3 } else { server };
                self.servers.servers[victim].kill();
                let waited = calls.answered_after(begun).await;
                self.servers.servers[victim].restart();
                waited
            }
            Fault::PauseLeadingServer => {
                self.servers.servers[server].pause();
                let waited = calls.answered_after(begun).await;
                sleep(PAUSE.saturating_sub(begun.elapsed())).await;
                self.servers.servers[server].resume();
                waited
            }
        }
    }

    /// Ids and names of all jobs in the history.
    async fn jobs(&self) -> Vec<(String, String)> {
        let (mut jobs, mut next) = (Vec::new(), Sequence(1));
        loop {
            let query = Query::Replay { from: next, max_bytes: 1 << 20 };
            let QueryAnswer::Records(page) = self.client.query(&query).await.expect("an answer") else {
                panic!("no records")
            };
            if page.records.is_empty() {
                return jobs;
            }
            next = page.last().next();
            jobs.extend(page.records.iter().filter_map(|record| match &record.event {
                Event::JobSubmitted { job, spec, .. } => Some((job.to_string(), spec.name.clone())),
                _ => None,
            }));
        }
    }

    /// Where the log of each ledger ends, once all end at the same record.
    async fn ends(&self) -> BTreeMap<String, String> {
        let begun = Instant::now();
        loop {
            let ends = NAMES.map(|name| {
                let head = Log::open_read_only(&self.data(name).join("ledger/log")).and_then(|log| log.head());
                (name, head.map(|head| (head.sequence, muster_ledger::hex(&head.hash))).ok())
            });
            let first = ends[0].1.as_ref().map(|(sequence, _)| *sequence);
            let are_equal = ends.iter().all(|(_, end)| end.is_some() && end.as_ref().map(|end| end.0) == first);
            if are_equal || begun.elapsed() > PATIENCE {
                return ends.map(|(name, end)| (name.to_owned(), format!("{end:?}"))).into();
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        for (name, ledger) in &mut self.ledgers {
            drop(ledger.kill());
            drop(ledger.wait());
            if std::thread::panicking() {
                let log = std::fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default();
                eprintln!("--- {name}\n{log}");
            }
        }
    }
}

/// What callers ask, and are told.
#[derive(Clone, Default)]
struct Calls {
    done: Arc<Mutex<Vec<Call>>>,
    stop: Arc<AtomicBool>,
}

impl Calls {
    /// How long it took from a moment until a call that began after it was answered.
    async fn answered_after(&self, moment: Instant) -> Duration {
        loop {
            let first = {
                let calls = self.done.lock().unwrap();
                let after = calls.iter().rev().take_while(|call| call.ended >= moment);
                after.filter(|call| call.begun >= moment && call.id.is_some()).map(|call| call.ended).min()
            };
            if let Some(first) = first {
                return first - moment;
            }
            assert!(moment.elapsed() < PATIENCE, "nobody is answered any more");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The longest that a caller had to wait who had asked before this moment, and was answered after it.
    fn longest_across(&self, moment: Instant) -> Duration {
        let calls = self.done.lock().unwrap();
        let across = calls.iter().filter(|call| call.begun < moment && call.ended >= moment);
        across.map(|call| call.ended - moment).max().unwrap_or_default()
    }

    /// Submits one job after the other until told to stop; a new caller asks every so often, also while others wait.
    async fn make(self, client: LedgerClient) {
        let mut asking = JoinSet::new();
        for number in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            asking.spawn(self.clone().ask(client.clone(), format!("call-{number}")));
            while asking.try_join_next().is_some() {}
            sleep(Duration::from_millis(20)).await;
        }
        while let Some(asked) = asking.join_next().await {
            asked.expect("the caller has not failed");
        }
    }

    async fn ask(self, client: LedgerClient, name: String) {
        let spec = JobSpec { name: name.clone(), ..job() };
        let envelope = muster_schemas::command::CommandEnvelope {
            id: CommandId::new_now(),
            actor: root(),
            trace: TraceContext::default(),
            command: Wish::Submit { jobs: vec![spec] },
        };
        let begun = Instant::now();
        let id = client.send(&envelope).await.ok().map(|answer| submitted(&answer)[0].to_string());
        let call = Call { name, begun, ended: Instant::now(), id };
        self.done.lock().unwrap().push(call);
    }
}

/// Suffers faults under load and checks the history of all calls.
async fn suffer_all(faults: &[Fault], mut random: SmallRng) {
    let mut heads = Heads::start().await;
    let calls = Calls::default();
    let making = tokio::spawn(calls.clone().make(heads.client.clone()));
    calls.answered_after(Instant::now()).await;
    for fault in faults {
        let begun = Instant::now();
        let waited = heads.suffer(*fault, &calls, &mut random).await;
        let across = calls.longest_across(begun);
        let (waited, across) = (waited.as_secs_f64(), across.as_secs_f64());
        println!("{fault:?}: new callers are answered after {waited:.2} s, the last earlier one after {across:.2} s");
    }
    calls.stop.store(true, Ordering::Relaxed);
    making.await.unwrap();
    let calls = calls.done.lock().unwrap().clone();
    let jobs = heads.jobs().await;
    println!(
        "{} calls, {} answered, {} jobs",
        calls.len(),
        calls.iter().filter(|call| call.id.is_some()).count(),
        jobs.len()
    );
    let unanswered: Vec<&Call> = calls.iter().filter(|call| call.id.is_none()).collect();
    assert!(unanswered.is_empty(), "these were on their way when a ledger or a server failed: {unanswered:?}");
    // There are no nodes, so nothing runs.
    let marks = jobs.iter().map(|(id, _)| (id.clone(), 1)).collect();
    let found = contradictions(&calls, &Outcome { jobs, marks, heads: heads.ends().await });
    assert!(found.is_empty(), "{found:#?}");
}

fn random() -> SmallRng {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seed = number("MUSTER_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("repeat the choices with MUSTER_CRASH_SEED={seed}");
    SmallRng::seed_from_u64(seed)
}

/// M-LOG-18: the ledger that leads is killed, and paused and resumed; the server that leads the stream is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn history_is_one_when_whoever_leads_is_killed_or_paused() {
    suffer_all(&[Fault::KillLeadingLedger, Fault::PauseLeadingLedger, Fault::KillLeadingServer], random()).await;
}

/// M-LOG-18: many faults of every kind, in an order of chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "it takes minutes; MUSTER_CRASH_ROUNDS says how many faults"]
async fn history_is_one_through_many_faults() {
    let mut random = random();
    let rounds = std::env::var("MUSTER_CRASH_ROUNDS").ok().map_or(20, |text| text.parse().expect("a number"));
    let faults: Vec<Fault> = (0..rounds).map(|_| FAULTS[random.random_range(0..FAULTS.len())]).collect();
    suffer_all(&faults, random).await;
}

/// What the ledgers have reported last, by name.
struct Reports {
    /// Reports are heard as long as this lives.
    _bus: Arc<NatsBus>,
    heard: muster_bus::Subscription,
    last: BTreeMap<String, LedgerReport>,
}

impl Reports {
    async fn of(heads: &Heads) -> Self {
        let bus = NatsBus::connect(heads.servers.config()).await.unwrap();
        let heard = bus.subscribe(subjects::LEDGER_REPORTS).await.unwrap();
        Self { _bus: bus, heard, last: BTreeMap::new() }
    }

    /// Waits until these ledgers have these roles, and all that follow have everything.
    async fn become_these(&mut self, roles: &[(&str, LedgerRole)]) {
        let begun = Instant::now();
        loop {
            let is_so = |(name, role): &(&str, LedgerRole)| {
                let report = self.last.get(*name);
                report.is_some_and(|report| {
                    report.role == *role && (*role == LedgerRole::Stopped || report.lag.is_some())
                })
            };
            if roles.iter().all(is_so) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{roles:?}: {:#?}", self.last);
            let heard = tokio::time::timeout(PATIENCE, self.heard.next()).await;
            let report: LedgerReport = heard.expect("a report").expect("the bus is open").message.decode().unwrap();
            self.last.insert(report.name.clone(), report);
        }
    }
}

/// What follows each end of a reign in the stream: whose reign ended, and the next message.
async fn after_each_end(heads: &Heads) -> Vec<(String, RoundKind, String)> {
    let mut rounds = NatsRounds::connect(&heads.servers.config()).await.unwrap();
    let read = move || {
        let (mut at, mut ended, mut found) = (Position(0), None, Vec::new());
        while let Next::Message(place, message) = rounds.next(at, Duration::ZERO) {
            let header = message.header;
            if let Some(ledger) = ended.take() {
                found.push((ledger, header.kind, header.ledger.clone()));
            }
            ended = (header.kind == RoundKind::Yield).then_some(header.ledger);
            at = place;
        }
        found
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

/// M-LOG-19: the ledger that is named leads next, and one that is stopped by SIGTERM hands over by itself: in the stream the end of
/// a reign is followed by the next claim. All callers are answered meanwhile, and each ledger reports what it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lead_is_handed_over_under_load() {
    let mut heads = Heads::start().await;
    let mut reports = Reports::of(&heads).await;
    let [first, second, third] = NAMES;
    let follow = |name| (name, LedgerRole::Standby);
    let lead = |name| (name, LedgerRole::Leader);
    reports.become_these(&[lead(first), follow(second), follow(third)]).await;
    let calls = Calls::default();
    let making = tokio::spawn(calls.clone().make(heads.client.clone()));
    calls.answered_after(Instant::now()).await;

    for (from, to) in [(first, third), (third, second)] {
        let command = Wish::HandOver { to: Some(to.to_owned()) };
        let answer = heads.client.command(root(), TraceContext::default(), command).await.unwrap();
        assert!(answer.result.is_ok(), "{answer:?}");
        reports.become_these(&[lead(to), follow(from)]).await;
        calls.answered_after(Instant::now()).await;
    }

    heads.signal(second, nix::sys::signal::Signal::SIGTERM);
    reports.become_these(&[(second, LedgerRole::Stopped)]).await;
    calls.answered_after(Instant::now()).await;
    let mut stopped = heads.ledgers.remove(second).unwrap();
    assert!(stopped.wait().unwrap().success());
    let ends = after_each_end(&heads).await;
    let planned: Vec<_> = ends.iter().map(|(from, kind, to)| (&from[..], *kind, &to[..])).collect();
    assert_eq!(planned[..2], [(first, RoundKind::Claim, third), (third, RoundKind::Claim, second)]);
    let (from, kind, to) = planned[2];
    assert!(from == second && kind == RoundKind::Claim && to != second, "{planned:?}");
    heads.launch(second);
    reports.become_these(&[follow(second)]).await;

    calls.stop.store(true, Ordering::Relaxed);
    making.await.unwrap();
    let calls = calls.done.lock().unwrap().clone();
    let unanswered: Vec<&Call> = calls.iter().filter(|call| call.id.is_none()).collect();
    assert!(unanswered.is_empty(), "{unanswered:?}");
    let jobs = heads.jobs().await;
    let marks = jobs.iter().map(|(id, _)| (id.clone(), 1)).collect();
    let found = contradictions(&calls, &Outcome { jobs, marks, heads: heads.ends().await });
    assert!(found.is_empty(), "{found:#?}");
}
