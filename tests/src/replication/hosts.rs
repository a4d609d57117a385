//! The ledgers, those who ask them, and what happens to them.

use super::{
    stream::{Sabotage, Shared},
    terms::{BEGIN, Options, Report, SECOND},
    truth::Truth,
};
use bytes::Bytes;
use muster_bus::rounds::RoundHeader;
use muster_ledger::{
    replication::Peers,
    stepped::{Input, Member, Output, Role, Stepped},
};
use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    codec,
    command::{Answer, Command, CommandEnvelope, JobSelection, RefusalCode},
    event::{Actor, Event, Owner, Record, TraceContext},
    job::JobSpec,
    node::Heartbeat,
    resources::NodeSpec,
};
use rand::{Rng, rngs::SmallRng};
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tempfile::TempDir;

const NAMES: [&str; 3] = ["a", "b", "c"];
const CLIENTS: usize = 4;
const PAGE_BYTES: usize = 8 << 10;

/// What a ledger wants to read of another, and what it got.
#[derive(Debug, Default)]
struct Mail {
    wants: Option<(String, Sequence)>,
    page: Option<(String, Sequence, Bytes)>,
}

#[derive(Clone, Default)]
struct Mailbox(Arc<Mutex<Mail>>);

impl Mailbox {
    fn with<T>(&self, work: impl FnOnce(&mut Mail) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Peers for Mailbox {
    fn page(&mut self, ledger: &str, from: Sequence) -> Result<Bytes, String> {
        self.with(|mail| {
            match mail.page.take() {
                Some((who, at, page)) if who == ledger && at == from => return Ok(page),
                // Of another ledger, which is asked next.
                other => mail.page = other.filter(|(_, at, _)| *at == from),
            }
            mail.wants.get_or_insert_with(|| (ledger.to_owned(), from));
            Err("it was asked".into())
        })
    }
}

struct Host {
    folder: PathBuf,
    member: Option<Member>,
    mailbox: Mailbox,
    inbox: Vec<Input>,
    down_until: Timestamp,
    paused_until: Timestamp,
    cut_until: Timestamp,
    /// The rate of its clock, in thousandths.
    rate: i64,
    old: Option<PathBuf>,
    /// Whether it has written more since that copy was made.
    has_gone_on: bool,
}

impl Host {
    /// The time that its clock shows.
    fn clock(&self, now: Timestamp) -> Timestamp {
        BEGIN.plus_micros(now.micros_since(BEGIN) * self.rate / 1000)
    }
}

#[derive(Default)]
struct Client {
    asked: Option<CommandEnvelope>,
    again_at: Timestamp,
    target: usize,
}

pub(super) struct Hosts {
    _folder: TempDir,
    shared: Shared,
    hosts: Vec<Host>,
    clients: Vec<Client>,
    random: SmallRng,
    options: Options,
    truth: Truth,
    report: Report,
    /// The host that once comes back with an old copy.
    restores: usize,
    /// Commands that were put to a ledger, by number.
    asked: HashMap<usize, CommandEnvelope>,
    next_number: usize,
    next_id: u128,
    answers: BTreeMap<CommandId, Answer>,
    /// Submissions, and how many jobs each has.
    submitted: Vec<(CommandId, usize)>,
    /// The last record of an answer that somebody has.
    acknowledged: u64,
    /// Whether the stream has broken a promise.
    is_broken: bool,
    /// The last message with records that it has lost.
    lost: Option<(u64, RoundHeader)>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A folder with a begun log that has a queue and a node.
fn begin(folder: &Path) -> Result<(u64, [u8; 32]), String> {
    let mut ledger = Stepped::open(folder, BEGIN).map_err(text)?;
    let node = NodeSpec {
        name: "n1".into(),
        cores: 1,
        sockets: 1,
        memory_bytes: 0,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    };
    let queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    let config = ClusterConfig { queues, nodes: vec![node], ..ClusterConfig::default() };
    let command = Command::Configure { change: Box::new(config.into()), keep_unnamed: true };
    let envelope = envelope(CommandId(uuid_of(1)), Actor::Ledger, command);
    ledger.round(vec![Input::Command(0, Box::new(envelope))], BEGIN);
    let mut last = None;
    ledger.each_stored(Sequence(1), |stored| last = Some(*blake3::hash(stored).as_bytes())).map_err(text)?;
    Ok((ledger.head().0, last.ok_or("the log is empty")?))
}

fn uuid_of(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

fn envelope(id: CommandId, actor: Actor, command: Command) -> CommandEnvelope {
    CommandEnvelope { id, actor, trace: TraceContext::default(), command }
}

impl Hosts {
    pub(super) fn new(shared: &Shared, mut random: SmallRng, options: Options) -> Result<Self, String> {
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = tempfile::Builder::new().prefix("muster-replication").tempdir_in(base).map_err(text)?;
        let first = folder.path().join("first");
        let (last, hash) = begin(&first)?;
        let mut hosts = Vec::new();
        for name in NAMES {
            let own = folder.path().join(name);
            crate::copy_folder(&first, &own).map_err(text)?;
            shared.with(|stream| stream.links.push(Default::default()));
            let rate = random.random_range(950..=1050);
            hosts.push(Host {
                folder: own,
                member: None,
                mailbox: Mailbox::default(),
                inbox: Vec::new(),
                down_until: BEGIN,
                paused_until: BEGIN,
                cut_until: BEGIN,
                rate,
                old: None,
                has_gone_on: false,
            });
        }
        let restores = random.random_range(0..NAMES.len());
        Ok(Self {
            _folder: folder,
            shared: shared.clone(),
            hosts,
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            random,
            options,
            truth: Truth::new(last, hash),
            report: Report::default(),
            restores,
            asked: HashMap::new(),
            next_number: 0,
            next_id: 1000,
            answers: BTreeMap::new(),
            submitted: Vec::new(),
            acknowledged: 0,
            is_broken: false,
            lost: None,
        })
    }

    pub(super) fn note_broken(&mut self, lost: Option<(u64, RoundHeader)>) {
        self.is_broken = true;
        self.lost = lost;
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.random_range(0..one_in) == 0
    }

    /// Lets things go wrong, now and then.
    pub(super) fn trouble(&mut self, now: Timestamp) {
        let soon = |random: &mut SmallRng, most: i64| now.plus_micros(random.random_range(100_000..most * SECOND));
        for at in 0..self.hosts.len() {
            if self.hosts[at].member.is_some() && self.chance(900) {
                self.crash(at);
                self.hosts[at].down_until = soon(&mut self.random, 6);
            }
            if self.chance(700) {
                self.hosts[at].paused_until = soon(&mut self.random, 4);
                self.report.pauses += 1;
            }
            if self.chance(900) {
                self.hosts[at].cut_until = soon(&mut self.random, 5);
            }
        }
        if self.chance(1500) {
            let until = now.plus_micros(self.random.random_range(4 * SECOND..9 * SECOND));
            self.shared.with(|stream| stream.down_until = until);
            self.report.elections += 1;
        }
    }

    fn crash(&mut self, at: usize) {
        let copies = at == self.restores && self.hosts[at].old.is_none();
        let host = &mut self.hosts[at];
        host.member = None;
        host.inbox.clear();
        self.report.crashes += 1;
        if copies {
            let old = host.folder.with_extension("old");
            host.old = crate::copy_folder(&host.folder, &old).is_ok().then_some(old);
        }
    }

    /// Nothing goes wrong any more.
    pub(super) fn calm_down(&mut self, now: Timestamp) -> Result<(), String> {
        self.shared.with(|stream| {
            stream.is_calm = true;
            stream.down_until = now;
        });
        for host in &mut self.hosts {
            (host.down_until, host.paused_until, host.cut_until) = (now, now, now);
        }
        Ok(())
    }

    fn is_calm(&self) -> bool {
        self.shared.with(|stream| stream.is_calm)
    }

    /// Everything that is due.
    pub(super) fn step(&mut self, now: Timestamp) -> Result<(), String> {
        let cut: Vec<bool> = self.hosts.iter().map(|host| now < host.cut_until).collect();
        self.shared.with(|stream| {
            stream.advance(now);
            for (link, is_cut) in stream.links.iter_mut().zip(cut) {
                link.is_cut = is_cut;
            }
        });
        self.look_at_stream()?;
        self.ask(now);
        for at in 0..self.hosts.len() {
            if now < self.hosts[at].down_until || now < self.hosts[at].paused_until {
                continue;
            }
            self.read_end(at, now)?;
            if self.hosts[at].member.is_none() {
                self.start(at, now)?;
            }
            self.step_host(at, now)?;
        }
        self.deliver_pages();
        Ok(())
    }

    fn start(&mut self, at: usize, now: Timestamp) -> Result<(), String> {
        let may_restore = self.hosts[at].has_gone_on && !self.is_calm() && self.random.random_bool(0.5);
        // If a stream has lost records and a disk the only log with them, nobody can notice.
        let is_restored = may_restore && !self.is_broken;
        let host = &mut self.hosts[at];
        if is_restored && let Some(old) = host.old.take() {
            fs::remove_dir_all(&host.folder).and_then(|()| crate::copy_folder(&old, &host.folder)).map_err(text)?;
            // Once is enough: the stream and the others have what it misses.
            self.restores = usize::MAX;
            self.report.restored += 1;
        }
        host.has_gone_on = host.old.is_some();
        let connection = Box::new(self.shared.connect(at));
        let clock = host.clock(now);
        let peers = Box::new(host.mailbox.clone());
        let member = Member::open(&host.folder, NAMES[at], (connection, peers), None, clock);
        host.member = Some(member.map_err(|error| format!("ledger {}: {error:#}", NAMES[at]))?);
        Ok(())
    }

    fn step_host(&mut self, at: usize, now: Timestamp) -> Result<(), String> {
        let host = &mut self.hosts[at];
        let clock = host.clock(now);
        let Some(member) = &mut host.member else { return Ok(()) };
        if host.inbox.is_empty() && member.next_wake() > clock {
            return Ok(());
        }
        let inputs = std::mem::take(&mut host.inbox);
        let before = self.shared.with(|stream| stream.links[at]);
        let output = member.step(inputs, clock);
        let after = self.shared.with(|stream| stream.links[at]);
        if let Some(violation) = &output.violation {
            return Err(violation.to_string());
        }
        let is_settled = after.stands > before.stands;
        self.look_at_stream()?;
        self.check_output(at, &output, before.is_in_doubt && !is_settled)?;
        self.take_answers(at, output)?;
        self.check_log(at)
    }

    /// Nothing leaves while the fate of a round is unknown.
    fn check_output(&self, at: usize, output: &Output, is_in_doubt: bool) -> Result<(), String> {
        let is_told = |(_, answer): &(usize, Answer)| !is_not_now(answer);
        let has_left = output.answers.iter().any(is_told)
            || !output.beats.is_empty()
            || !output.orders.is_empty()
            || !output.commits.is_empty();
        match is_in_doubt && has_left {
            true => {
                Err(format!("ledger {} tells something while the fate of its round is unknown: {output:?}", NAMES[at]))
            }
            false => Ok(()),
        }
    }

    fn look_at_stream(&mut self) -> Result<(), String> {
        for (at, message) in self.shared.with(|stream| stream.take_news()) {
            let seen = self.truth.see(at, &message);
            if !self.is_broken {
                seen?;
            }
        }
        Ok(())
    }

    fn check_log(&self, at: usize) -> Result<(), String> {
        let Some(member) = self.hosts[at].member.as_ref().filter(|_| !self.is_broken) else { return Ok(()) };
        if let Role::Stopped(why) = member.role() {
            return Err(format!("ledger {} has stopped: {why}", NAMES[at]));
        }
        let (last, hash) = member.head().map_err(text)?;
        self.truth.check_prefix(last.0, &hash).map_err(|what| format!("the log of ledger {}: {what}", NAMES[at]))
    }

    fn take_answers(&mut self, at: usize, output: Output) -> Result<(), String> {
        let (head, _) = match &self.hosts[at].member {
            Some(member) => member.head().map_err(text)?,
            None => return Ok(()),
        };
        for (number, answer) in output.answers {
            let Some(asked) = self.asked.get(&number) else { continue };
            let id = asked.id;
            if is_not_now(&answer) {
                continue;
            }
            if !self.is_broken && (answer.sequence > head || answer.sequence.0 > self.truth.last()) {
                return Err(format!(
                    "ledger {} answers with record {}: its log ends at {head}, and the stream at {}",
                    NAMES[at],
                    answer.sequence,
                    self.truth.last()
                ));
            }
            self.acknowledged = self.acknowledged.max(answer.sequence.0);
            // An answer can get lost on its way.
            let is_lost = self.random.random_range(0..5) == 0 && !self.shared.with(|stream| stream.is_calm);
            let client = self
                .clients
                .iter_mut()
                .filter(|_| !is_lost)
                .find(|client| client.asked.as_ref().is_some_and(|asked| asked.id == id));
            if let Some(client) = client {
                client.asked = None;
                self.report.acknowledged += 1;
            }
            let is_submission = self.submitted.iter().any(|(submitted, _)| *submitted == id);
            match self.answers.insert(id, answer.clone()) {
                Some(first) if first != answer && is_submission && !self.is_broken => {
                    return Err(format!("command {id} got two answers: {first:?} and {answer:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Asks a ledger where the log ends: it names the real end, or nothing.
    fn read_end(&mut self, at: usize, now: Timestamp) -> Result<(), String> {
        let host = &self.hosts[at];
        let late_micros = if self.options.sabotage == Some(Sabotage::LateClock) { 2 * SECOND } else { 0 };
        let clock = host.clock(now).plus_micros(-late_micros);
        let Some(named) = host.member.as_ref().and_then(|member| member.answer_head(clock)) else {
            return Ok(());
        };
        self.report.reads += 1;
        match named.0 < self.acknowledged && !self.is_broken {
            true => Err(format!(
                "ledger {} says that the log ends at {named}, and record {} was acknowledged",
                NAMES[at], self.acknowledged
            )),
            false => Ok(()),
        }
    }

    /// Clients put commands, and repeat them until they have an answer. A node reports.
    fn ask(&mut self, now: Timestamp) {
        for number in 0..self.clients.len() {
            if now < self.clients[number].again_at {
                continue;
            }
            self.clients[number].again_at = now.plus_micros(self.random.random_range(20_000..600_000));
            if self.clients[number].asked.is_none() {
                if self.is_calm() {
                    continue;
                }
                let command = self.command();
                self.clients[number].asked = Some(command);
            } else {
                self.clients[number].target = self.random.random_range(0..NAMES.len());
            }
            let target = self.clients[number].target;
            let Some(asked) = self.clients[number].asked.clone() else { continue };
            for _ in 0..self.random.random_range(1..=2) {
                self.put(target, asked.clone());
            }
        }
        if self.chance(20) {
            let at = self.random.random_range(0..NAMES.len());
            let heartbeat = Heartbeat {
                node: "n1".into(),
                boot_id: "boot".into(),
                parts: Vec::new(),
                highest_run: None,
                as_of: None,
            };
            self.next_number += 1;
            self.hosts[at].inbox.push(Input::Heartbeat(self.next_number, heartbeat));
        }
    }

    fn put(&mut self, target: usize, asked: CommandEnvelope) {
        self.next_number += 1;
        self.asked.insert(self.next_number, asked.clone());
        if self.hosts[target].member.is_some() {
            self.hosts[target].inbox.push(Input::Command(self.next_number, Box::new(asked)));
        }
    }

    fn command(&mut self) -> CommandEnvelope {
        self.next_id += 1;
        let id = CommandId(uuid_of(self.next_id));
        let actor = Actor::User(Owner { user: "root".into(), uid: 0, gid: 0 });
        let command = if self.chance(30) {
            let to = self.random.random_bool(0.5).then(|| NAMES[self.random.random_range(0..NAMES.len())].to_owned());
            Command::HandOver { to }
        } else if self.chance(3) {
            Command::Cancel { jobs: JobSelection::Ids(vec![JobId::job(self.random.random_range(1..200))]) }
        } else {
            let jobs = self.random.random_range(1..4);
            self.submitted.push((id, jobs));
            Command::Submit { jobs: vec![JobSpec::default(); jobs] }
        };
        envelope(id, actor, command)
    }

    fn deliver_pages(&mut self) {
        for at in 0..self.hosts.len() {
            let Some((name, from)) = self.hosts[at].mailbox.with(|mail| mail.wants.take()) else { continue };
            let asked =
                NAMES.iter().position(|other| *other == name).and_then(|other| self.hosts[other].member.as_ref());
            if let Some(Ok(page)) = asked.map(|member| member.page_for_others(from, PAGE_BYTES)) {
                self.report.pages += 1;
                self.hosts[at].mailbox.with(|mail| mail.page = Some((name, from, Bytes::from(page))));
            }
        }
    }

    /// Checks that have to hold once there was no fault for long enough.
    pub(super) fn check_end(mut self) -> Result<Report, String> {
        self.report.unknown = self.shared.with(|stream| stream.unknown);
        self.report.reigns = self.truth.reigns;
        self.report.handed_over = self.truth.handed_over;
        let has_stopped = |host: &&Host| matches!(host.member.as_ref().map(Member::role), Some(Role::Stopped(_)));
        self.report.alarms = self.hosts.iter().filter(has_stopped).count() as u64;
        let mut leaders = 0;
        let mut ends = Vec::new();
        for (host, name) in self.hosts.iter().zip(NAMES) {
            let Some(member) = &host.member else { return Err(format!("ledger {name} is not there")) };
            match member.role() {
                Role::Stopped(why) if !self.is_broken => return Err(format!("ledger {name} has stopped: {why}")),
                Role::Stopped(_) => continue,
                Role::Leader(_) => leaders += 1,
                Role::Standby => {}
            }
            let digest = member.replayed().map_err(|error| format!("{error:#}"))?.digest();
            if Some(digest) != member.state_digest() {
                return Err(format!("the state of ledger {name} is not the one that its records lead to"));
            }
            ends.push((member.head().map_err(text)?, digest));
        }
        ends.dedup();
        if ends.len() > 1 {
            let ends: Vec<Sequence> = ends.iter().map(|((last, _), _)| *last).collect();
            return Err(format!("the ledgers end differently, at {ends:?}"));
        }
        for (host, name) in self.hosts.iter().zip(NAMES) {
            if let Some(member) = host.member.as_ref().filter(|member| !matches!(member.role(), Role::Stopped(_))) {
                self.check_commands(name, member)?;
            }
        }
        if self.is_broken {
            return match &self.lost {
                Some((at, lost)) if self.report.alarms == 0 && !self.is_in_logs(lost)? => {
                    let ends: Vec<Sequence> = ends.iter().map(|((last, _), _)| *last).collect();
                    Err(format!("message {at} is lost, and nobody has noticed; the logs end at {ends:?}: {lost:?}"))
                }
                _ => Ok(self.report),
            };
        }
        match leaders {
            1 => Ok(self.report),
            leaders => Err(format!("{leaders} ledgers lead")),
        }
    }

    /// Whether the records of a message are in all logs. Whoever appended it and did not hear of it appends it again, and so
    /// puts it back into a stream that has lost it.
    fn is_in_logs(&self, message: &RoundHeader) -> Result<bool, String> {
        for member in self.hosts.iter().filter_map(|host| host.member.as_ref()) {
            let mut is_found = false;
            member
                .each_stored(|stored| {
                    let record = codec::decode::<Record>(&stored[32..]);
                    is_found |= record.is_ok_and(|record| record.sequence == message.last)
                        && *blake3::hash(stored).as_bytes() == message.after;
                })
                .map_err(text)?;
            if !is_found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Every acknowledged submission is in the log, once.
    fn check_commands(&self, name: &str, member: &Member) -> Result<(), String> {
        let mut submissions: BTreeMap<CommandId, usize> = BTreeMap::new();
        let mut fault = None;
        member
            .each_stored(|stored| match codec::decode::<Record>(&stored[32..]) {
                Ok(Record { command, event: Event::JobSubmitted { .. }, .. }) => {
                    *submissions.entry(command).or_default() += 1;
                }
                Ok(_) => {}
                Err(error) => fault = Some(error.to_string()),
            })
            .map_err(text)?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        for (id, jobs) in &self.submitted {
            let is_accepted = self.answers.get(id).is_some_and(|answer| answer.result.is_ok());
            let found = submissions.get(id).copied().unwrap_or(0);
            if is_accepted && found == 0 && self.report.alarms == 0 {
                return Err(format!("the acknowledged command {id} is not in the log of ledger {name}"));
            }
            if found > 0 && found != *jobs {
                return Err(format!("command {id} of {jobs} jobs is {found} jobs in the log of ledger {name}"));
            }
        }
        Ok(())
    }
}

/// Whether an answer says that the ledger does not take commands now.
fn is_not_now(answer: &Answer) -> bool {
    answer.result.as_ref().is_err_and(|refusal| refusal.code == RefusalCode::Unavailable)
}
