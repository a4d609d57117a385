//! `muster doctor`: finds faults of this installation.

use crate::{
    cli::{ConnectionOptions, DoctorOptions},
    config::{self, Loaded},
    connection::SOCKET,
    exit::CommandResult,
    show,
    table::{Cell, Style, Table, left},
    terminal,
    values::format_size,
};
use muster_bus::{NatsBus, NatsConfig, NatsRounds};
use muster_client::{JobQuery, Moment};
use muster_executor::{ContainmentMode, containment::Hierarchies};
use muster_ledger::Replication;
use muster_schemas::{
    Timestamp,
    job::JobState,
    views::{InfoView, NodeStateWord, ReasonWord},
};
use serde::Serialize;
use std::{
    io::{Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    time::Duration,
};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Good,
    /// It works, but somebody should look at it.
    Warning,
    /// Something does not work.
    Bad,
}

/// The result for one thing that was checked.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    verdict: Verdict,
    /// What was found; if it is not good, also what to do.
    text: String,
}

/// Where a NATS server tells its settings, if `ops/nats/nats-cluster.conf` is its configuration.
const MONITORING: &str = "127.0.0.1:8222";
/// The tag of NATS servers that sync every write.
const SYNC_TAG: &str = "sync:always";
/// No answer of a NATS server about itself is larger.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// The settings of the NATS server with this monitoring address.
fn monitored(address: &str) -> Result<serde_json::Value, String> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let ask = || {
        let to: std::net::SocketAddr = address.parse().map_err(std::io::Error::other)?;
        let mut connection = std::net::TcpStream::connect_timeout(&to, PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        write!(connection, "GET /varz HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
        let mut answer = String::new();
        connection.take(MAX_SETTINGS_BYTES).read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer: String = ask().map_err(|error: std::io::Error| format!("{address}: {error}"))?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).map_err(|_| format!("{address} is no NATS server"))
}

/// Checks everything and prints the findings.
pub fn doctor(connection: &ConnectionOptions, options: &DoctorOptions) -> CommandResult {
    let mut findings = Findings::default();
    let loaded = findings.configuration(options.config.as_deref());
    if connection.server.is_none() {
        let data_dir = connection.data_dir()?;
        findings.data_folder(&data_dir);
        findings.free_space(&data_dir);
        findings.private_files(&data_dir);
    }
    findings.clock();
    findings.containment(loaded.as_ref().map(|loaded| loaded.configuration.executor.containment).unwrap_or_default());
    if let Some(loaded) = &loaded {
        findings.filters(loaded);
        findings.secrets(loaded);
        if loaded.file.names("bus", "url") {
            findings.nats(loaded.configuration.bus.clone());
        }
        if loaded.configuration.ledger.replication == Replication::Stream {
            findings.rounds(&loaded.configuration.bus);
            findings.synced_writes();
        }
    }
    let is_of_several = loaded.as_ref().is_some_and(|loaded| loaded.file.names("bus", "url"));
    findings.system(connection, is_of_several);
    findings.tell(options.json)
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, what: &'static str, verdict: Verdict, text: impl Into<String>) {
        self.0.push(Finding { what, verdict, text: text.into() });
    }

    fn tell(self, json: bool) -> CommandResult {
        let bad = self.0.iter().any(|finding| finding.verdict == Verdict::Bad);
        if json {
            show::print_json(&self.0)?;
            return Ok(u8::from(bad));
        }
        let mut table = Table::new([left(""), left("CHECK"), left("FOUND")]);
        for Finding { what, verdict, text } in &self.0 {
            let cell = match verdict {
                Verdict::Good => Cell::styled("good", Style::Good),
                Verdict::Warning => Cell::styled("look", Style::Warning),
                Verdict::Bad => Cell::styled("BAD", Style::Bad),
            };
            table.push([cell, (*what).into(), text.into()]);
        }
        terminal::print_table(&table)?;
        Ok(u8::from(bad))
    }

    fn configuration(&mut self, path: Option<&Path>) -> Option<Loaded> {
        match config::load(path) {
            Ok(loaded) => {
                let text = match &loaded.path {
                    Some(path) => format!("{} is right", path.display()),
                    None => format!("none at {}; defaults hold", config::DEFAULT_PATH),
                };
                self.add("configuration", Verdict::Good, text);
                Some(loaded)
            }
            Err(failure) => {
                self.add("configuration", Verdict::Bad, failure.message);
                None
            }
        }
    }

    fn data_folder(&mut self, data_dir: &Path) {
        const WHAT: &str = "data folder";
        match std::fs::metadata(data_dir) {
            Err(error) => self.add(WHAT, Verdict::Bad, format!("{}: {error}", data_dir.display())),
            Ok(found) if !found.is_dir() => {
                self.add(WHAT, Verdict::Bad, format!("{} is not a folder", data_dir.display()))
            }
            Ok(found) if found.permissions().mode() & 0o002 != 0 => {
                self.add(WHAT, Verdict::Bad, format!("everybody may write into {}; chmod o-w it", data_dir.display()));
            }
            Ok(_) => self.add(WHAT, Verdict::Good, data_dir.display().to_string()),
        }
    }

    fn free_space(&mut self, data_dir: &Path) {
        const WHAT: &str = "disk space";
        let Ok(disk) = nix::sys::statvfs::statvfs(data_dir) else { return };
        let free = disk.blocks_available().saturating_mul(disk.fragment_size());
        let total = disk.blocks().saturating_mul(disk.fragment_size()).max(1);
        let text = format!("{} of {} free", format_size(free), format_size(total));
        let verdict = match (free < 256 << 20, free < total / 20) {
            (true, _) => Verdict::Bad,
            (false, true) => Verdict::Warning,
            (false, false) => Verdict::Good,
        };
        self.add(WHAT, verdict, text);
        if disk.files() > 0 && disk.files_available() == 0 {
            self.add(WHAT, Verdict::Bad, "no free inodes");
        }
    }

    fn private_files(&mut self, data_dir: &Path) {
        self.private_file("ledger key", &data_dir.join("ledger.key"));
        self.private_file("log folder", &data_dir.join("ledger"));
    }

    /// Checks a file that only its owner may read. If it does not exist there is no finding: it may not be needed here.
    fn private_file(&mut self, what: &'static str, path: &Path) {
        let Ok(found) = std::fs::metadata(path) else { return };
        if found.permissions().mode() & 0o077 == 0 {
            self.add(what, Verdict::Good, format!("{} belongs only to uid {}", path.display(), found.uid()));
        } else {
            self.add(what, Verdict::Bad, format!("others can read {}; chmod go= it", path.display()));
        }
    }

    fn secrets(&mut self, loaded: &Loaded) {
        let bus = &loaded.configuration.bus;
        for path in [&bus.password_file, &bus.credentials_file, &bus.tls_key_file].into_iter().flatten() {
            if path.exists() {
                self.private_file("NATS secret", path);
            } else {
                self.add("NATS secret", Verdict::Bad, format!("{} does not exist", path.display()));
            }
        }
    }

    /// Whether a filter-runner started by this user could run filters.
    fn filters(&mut self, loaded: &Loaded) {
        const WHAT: &str = "filters";
        match loaded.configuration.filter_runner.account_fault() {
            None if nix::unistd::Uid::effective().is_root() => {
                let account = &loaded.configuration.filter_runner.account;
                self.add(WHAT, Verdict::Good, format!("they would run as `{account}`"));
            }
            None => self.add(WHAT, Verdict::Good, "for runners of this user: they would run as this user"),
            // Only clusters with filters need it.
            Some(fault) => self.add(WHAT, Verdict::Warning, fault),
        }
    }

    fn clock(&mut self) {
        // SAFETY: all-zero is a valid timex that requests no change, and the call writes at most one.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: see above.
        let state = unsafe { libc::adjtimex(&mut timex) };
        if state == libc::TIME_ERROR {
            self.add("clock", Verdict::Warning, "the kernel does not know of a time source; is NTP running?");
        } else if state >= 0 {
            self.add("clock", Verdict::Good, "synchronised");
        }
    }

    /// The containment that an executor started by this user would use. Creates and removes groups to know what
    /// can be written.
    fn containment(&mut self, mode: ContainmentMode) {
        const WHAT: &str = "containment";
        let instance = format!("doctor-{}", std::process::id());
        let hierarchies = match Hierarchies::detect(mode, &instance) {
            Ok(hierarchies) => hierarchies,
            Err(error) => return self.add(WHAT, Verdict::Bad, format!("{mode:?} is not available: {error}")),
        };
        hierarchies.leave();
        let verdict = if hierarchies.has_groups() { Verdict::Good } else { Verdict::Warning };
        let whose = if nix::unistd::Uid::effective().is_root() { "" } else { "for executors of this user: " };
        self.add(WHAT, verdict, format!("{whose}{}", hierarchies.describe(true).replace(&instance, "NODE")));
    }

    fn nats(&mut self, bus: NatsConfig) {
        const WHAT: &str = "NATS";
        const PATIENCE: Duration = Duration::from_secs(5);
        let url = bus.url.clone();
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return self.add(WHAT, Verdict::Bad, error.to_string()),
        };
        match runtime.block_on(async { tokio::time::timeout(PATIENCE, NatsBus::connect(bus)).await }) {
            Ok(Ok(_)) => self.add(WHAT, Verdict::Good, format!("{url} answers, with JetStream, and is new enough")),
            Ok(Err(error)) => self.add(WHAT, Verdict::Bad, format!("{url}: {error}")),
            Err(_) => self.add(WHAT, Verdict::Bad, format!("{url} does not answer")),
        }
    }

    /// The stream in which several ledgers order what they decide.
    fn rounds(&mut self, bus: &NatsConfig) {
        const WHAT: &str = "order of rounds";
        const PATIENCE: Duration = Duration::from_secs(5);
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return self.add(WHAT, Verdict::Bad, error.to_string()),
        };
        let looking = async {
            let rounds = NatsRounds::connect(bus).await.map_err(|error| error.to_string())?;
            rounds.examine().await
        };
        match runtime.block_on(async { tokio::time::timeout(PATIENCE, looking).await }) {
            Ok(Ok(health)) => match health.fault {
                Some(fault) => self.add(WHAT, Verdict::Bad, fault),
                None => self.add(WHAT, Verdict::Good, format!("NATS {}; {}", health.version, health.text)),
            },
            Ok(Err(why)) => self.add(WHAT, Verdict::Bad, why),
            Err(_) => self.add(WHAT, Verdict::Bad, "no NATS server answers"),
        }
    }

    /// Whether the NATS server on this host does what its tag says. Only its monitoring port tells, and only where there is
    /// one.
    fn synced_writes(&mut self) {
        const WHAT: &str = "synced writes";
        let settings = match monitored(MONITORING) {
            Ok(settings) => settings,
            Err(error) => {
                let text = format!(
                    "not visible: {error}. Where a NATS server is on this host, set `http: \"{MONITORING}\"` in its \
                     configuration"
                );
                return self.add(WHAT, Verdict::Warning, text);
            }
        };
        let name = settings["server_name"].as_str().unwrap_or("the NATS server").to_owned();
        let is_tagged = settings["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == SYNC_TAG));
        let is_synced = settings["jetstream"]["config"]["sync_always"] == true;
        match (is_tagged, is_synced) {
            (true, true) => self.add(WHAT, Verdict::Good, format!("{name} syncs every write")),
            (true, false) => {
                let remedy = "a loss of power loses what was acknowledged; set `sync_interval: always` under `jetstream`, and \
                              restart it";
                self.add(
                    WHAT,
                    Verdict::Bad,
                    format!("{name} has the tag `{SYNC_TAG}` and does not sync every write: {remedy}"),
                );
            }
            (false, _) => {
                let text = format!("{name} keeps no rounds: it has no tag `{SYNC_TAG}`");
                self.add(WHAT, Verdict::Warning, text);
            }
        }
    }

    /// Checks the gateway. If the roles are spread over several hosts, a host need not have one.
    fn system(&mut self, connection: &ConnectionOptions, is_of_several: bool) {
        const WHAT: &str = "gateway";
        let endpoint = match connection.endpoint() {
            Ok(endpoint) => endpoint,
            Err(failure) => return self.add(WHAT, Verdict::Bad, failure.message),
        };
        match connection.client().map(|mut client| client.info(Moment::Now)) {
            Ok(Ok(info)) => {
                self.add(WHAT, Verdict::Good, format!("{endpoint} answers and takes you for {}", info.caller));
                self.ledger(&info);
                self.nodes(&info);
                self.planner(connection);
            }
            Ok(Err(error)) => {
                let running = connection.server.is_some()
                    || connection.data_dir().is_ok_and(|data_dir| data_dir.join(SOCKET).exists());
                match (running, is_of_several) {
                    (true, _) => self.add(WHAT, Verdict::Bad, error.to_string()),
                    (false, true) => self.add(WHAT, Verdict::Warning, format!("{endpoint}: none on this host")),
                    (false, false) => {
                        let hint = "start it with `muster up` or `muster serve gateway`";
                        self.add(WHAT, Verdict::Bad, format!("{error}; {hint}"));
                    }
                }
            }
            Err(failure) => self.add(WHAT, Verdict::Bad, failure.message),
        }
    }

    fn ledger(&mut self, info: &InfoView) {
        const WHAT: &str = "ledger";
        const MOST_BEHIND: u64 = 100_000;
        let Some(head) = info.head else {
            return self.add(WHAT, Verdict::Bad, "it does not answer the gateway; is `muster serve ledger` running?");
        };
        let behind = head.0.saturating_sub(info.sequence.0);
        if behind > MOST_BEHIND {
            self.add(WHAT, Verdict::Warning, format!("{head} records; the gateway is {behind} behind"));
        } else {
            self.add(WHAT, Verdict::Good, format!("cluster {}, {head} records", info.cluster));
        }
        let ahead = info.time.micros_since(Timestamp::now()) / 1_000_000;
        if ahead > 5 {
            let text = format!("the last record is {ahead} s in the future: a clock was wrong, or is");
            self.add("record times", Verdict::Bad, text);
        }
    }

    /// What the first jobs of the queue tell about the planner.
    fn planner(&mut self, connection: &ConnectionOptions) {
        const WHAT: &str = "planner";
        let query = JobQuery { states: vec![JobState::Queued], limit: Some(100), ..JobQuery::default() };
        let Ok(Ok(page)) = connection.client().map(|mut client| client.jobs_page(&query)) else { return };
        let mut reasons = page.jobs.iter().filter_map(|job| job.reason.as_ref());
        match reasons.find(|reason| reason.code == ReasonWord::PlannerFailed) {
            Some(failed) => self.add(WHAT, Verdict::Bad, format!("no job starts; {}", failed.text)),
            None => self.add(WHAT, Verdict::Good, format!("{} of the first jobs in the queue wait", page.jobs.len())),
        }
    }

    fn nodes(&mut self, info: &InfoView) {
        let count = |state| info.nodes.get(&state).copied().unwrap_or(0);
        let (up, drained) = (count(NodeStateWord::Up), count(NodeStateWord::Drained));
        let (lost, unknown) = (count(NodeStateWord::Lost), count(NodeStateWord::Unknown));
        let text = format!("{up} up, {drained} drained, {lost} lost, {unknown} never seen");
        let verdict = match (up + drained, lost + unknown) {
            (0, _) => Verdict::Bad,
            (_, 0) => Verdict::Good,
            _ => Verdict::Warning,
        };
        let hint = if verdict == Verdict::Good { "" } else { "; `muster nodes` tells which" };
        self.add("nodes", verdict, text + hint);
    }
}
