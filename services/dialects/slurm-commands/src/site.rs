//! What the commands know about the system, the caller and the jobs.

use super::refusals;
use jiff::Zoned;
use muster_cli::{connection::ConnectionOptions, zone};
use muster_client::{Client, ClientError, JobQuery, Moment};
use muster_names::User;
use muster_schemas::{
    JobId, Timestamp,
    cluster::QueueSpec,
    job::JobState,
    steps::ProcessManagement,
    views::{EntryWord, ErrorCode, InfoView, JobDetail, JobDetailsPage, JobView, QueuesPage, ReasonWord},
};
use muster_slurm::{
    job_id::{IdExpression, JobPart},
    moment::TimeFormat,
    options::{RELEASE, SiteOptions, version},
    queries::{Failure, Surroundings},
    request::Rules,
    select::SchedulerParameters,
    show::{
        Clock,
        data::Asker,
        record::{ArrayTasks, JobRecord, Person, Sources, of_detail, of_view},
    },
    steps::{self, DEFAULT_MPI},
};
use nix::unistd::{Gid, Uid};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, UdpSocket},
    sync::Arc,
    time::Duration,
};

/// The most jobs of one page.
const MOST_JOBS: u32 = 10_000;
/// How long finished jobs are shown (`MinJobAge`, SL-C-25).
const MIN_JOB_AGE_SECONDS: i64 = 300;

/// The system and its caller.
pub struct Site {
    /// The command, for messages.
    pub tool: &'static str,
    /// The words of Slurm's command before the reason if the system cannot be reached.
    asking: &'static str,
    /// The gateway's client.
    pub client: Client,
    /// The time and zone of the request.
    pub clock: Clock,
    /// Login name of the caller.
    pub user: String,
    is_local: bool,
    queues: Option<QueuesPage>,
    info: Option<InfoView>,
    people: RefCell<BTreeMap<String, Person>>,
    groups: RefCell<BTreeMap<u32, Arc<str>>>,
}

impl Site {
    /// The system at the other end of a connection.
    pub fn open(tool: &'static str, connection: &ConnectionOptions) -> Result<Self, Failure> {
        let client = connection.patient_client().map_err(|failure| Failure::error(tool, failure))?;
        Ok(Self {
            tool,
            asking: asking_by(tool),
            client,
            clock: Clock {
                now: Timestamp::now(),
                zone: zone::of_process(),
                format: TimeFormat::from_variable(variable("SLURM_TIME_FORMAT").as_deref()),
            },
            user: user_name(Uid::current().as_raw()),
            is_local: connection.server.is_none(),
            queues: None,
            info: None,
            people: RefCell::default(),
            groups: RefCell::default(),
        })
    }

    /// Sets the words of Slurm's command for the current request.
    pub const fn asks(&mut self, asking: &'static str) {
        self.asking = asking;
    }

    /// The context for reading command lines.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            variable: &variable,
            user: &self.user,
            knows_user: &knows_user,
            is_root: Uid::current().is_root(),
            now: now(),
        }
    }

    /// The gateway's information about itself and the caller, fetched once.
    fn info(&mut self) -> Result<&InfoView, Failure> {
        let known = match self.info.take() {
            Some(known) => known,
            None => self.client.info(Moment::Now).map_err(|error| self.failure(&error))?,
        };
        Ok(self.info.insert(known))
    }

    /// Whether the gateway is on this host.
    pub const fn is_local(&self) -> bool {
        self.is_local
    }

    /// The name of the cluster.
    pub fn shown_cluster(&mut self) -> Result<String, Failure> {
        self.info().map(|info| info.cluster.clone())
    }

    /// The line of `--version`.
    pub fn version_line(&self) -> String {
        version_line(Some(self.client.another()))
    }

    /// What commands show of the system that they stand for.
    pub fn shown(&mut self) -> Result<Shown, Failure> {
        self.info().map(|info| Shown::of(Some(info)))
    }

    /// The site's settings for the commands.
    pub fn parameters(&mut self) -> Result<SchedulerParameters, Failure> {
        self.info().map(parameters)
    }

    /// The login name by which the gateway knows the caller: a token can belong to a user other than [`Self::user`].
    pub fn caller(&mut self) -> Result<String, Failure> {
        self.info().map(|info| info.caller.clone())
    }

    /// Whether the caller may manage everybody's jobs.
    pub fn is_operator(&mut self) -> Result<bool, Failure> {
        let caller = self.caller()?;
        manages_all(&mut self.client, &caller).map_err(|error| self.failure(&error))
    }

    /// The error for a failed request.
    pub fn failure(&self, error: &ClientError) -> Failure {
        match error.code() {
            None | Some(ErrorCode::Unavailable) => {
                refusals::is_known();
                Failure { lines: away_lines(self.tool, &format!("{}: {}", self.asking, away(error)), error), code: 1 }
            }
            Some(ErrorCode::PermissionDenied) => Failure::error(self.tool, "Access/permission denied"),
            Some(_) => Failure::error(self.tool, error),
        }
    }

    /// Does something that needs information beyond views of jobs.
    pub fn with_sources<T>(&self, act: impl FnOnce(&Sources<'_>) -> T) -> T {
        let queue = |name: &str| self.queue(name);
        let person = |name: &str| self.person(name);
        let group = |gid| self.group(gid);
        act(&Sources { queue: &queue, person: &person, group: &group })
    }

    /// All queues and licences, fetched once.
    pub fn queues(&mut self) -> Result<&QueuesPage, Failure> {
        let known = match self.queues.take() {
            Some(known) => known,
            None => self.client.queues(Moment::Now).map_err(|error| self.failure(&error))?,
        };
        Ok(self.queues.insert(known))
    }

    /// Fetches the queues if one of the jobs waits because of its queue: only then the state of the queue matters.
    fn know_queues_of(&mut self, views: &[JobView]) -> Result<(), Failure> {
        let is_stopped =
            |view: &JobView| view.reason.as_ref().is_some_and(|reason| reason.code == ReasonWord::QueueStopped);
        if views.iter().any(is_stopped) { self.queues().map(drop) } else { Ok(()) }
    }

    fn queue(&self, name: &str) -> Option<&QueueSpec> {
        self.queues.as_ref()?.queues.iter().map(|queue| &queue.spec).find(|spec| spec.name == name)
    }

    fn person(&self, name: &str) -> Person {
        let mut people = self.people.borrow_mut();
        // Most jobs of a list belong to a user who is known already, and a list can be long.
        if let Some(known) = people.get(name) {
            return known.clone();
        }
        people.entry(name.to_owned()).or_insert_with(|| look_up(name)).clone()
    }

    fn group(&self, gid: u32) -> Arc<str> {
        let mut groups = self.groups.borrow_mut();
        Arc::clone(groups.entry(gid).or_insert_with(|| group_name(gid).into()))
    }

    /// The lines of jobs; with `detailed`, their requests are fetched too. Components need that anyway for their names.
    pub fn records(&mut self, views: Vec<JobView>, detailed: bool) -> Result<Vec<JobRecord>, Failure> {
        self.know_queues_of(&views)?;
        // Only the details of a job that was put back and is held tell whether that was a special exit.
        let is_put_back = |view: &JobView| view.runs > 0 && view.outcome.is_none() && !view.holds.is_empty();
        let is_detailed = |view: &JobView| detailed || view.components > 1 || is_put_back(view);
        let wanted: Vec<JobId> = views.iter().filter(|view| is_detailed(view)).map(|view| view.id).collect();
        let mut details = self.details(&wanted, false)?.jobs.into_iter().peekable();
        let mut records = Vec::with_capacity(views.len());
        self.with_sources(|sources| {
            for view in views {
                // A job that is gone now was still there when it was listed.
                match details.next_if(|detail| detail.job.id == view.id) {
                    Some(detail) => records.extend(of_detail(&detail, sources)),
                    None => records.extend(of_view(rest_of_array(view), sources)),
                }
            }
        });
        records.retain(|record| !is_used_up(record));
        Ok(records)
    }

    /// The details of several jobs, in the order of their ids, without those that do not exist.
    pub fn details(&mut self, jobs: &[JobId], with_steps: bool) -> Result<JobDetailsPage, Failure> {
        if jobs.is_empty() {
            return Ok(JobDetailsPage::default());
        }
        let page = self.client.job_details(jobs, with_steps).map_err(|error| self.failure(&error))?;
        let jobs = page.jobs.into_iter().map(|detail| JobDetail { job: rest_of_array(detail.job), ..detail });
        Ok(JobDetailsPage { jobs: jobs.collect(), ..page })
    }

    /// The details of a job; `None` if it does not exist.
    pub fn detail(&mut self, job: JobId) -> Result<Option<JobDetail>, Failure> {
        match self.client.job(job, Moment::Now) {
            Ok(detail) => Ok(Some(JobDetail { job: rest_of_array(detail.job), ..detail })),
            Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Does something that needs to know who asks, with which arguments: data for programs says so.
    pub fn with_asker<T>(
        &mut self,
        arguments: &[String],
        act: impl FnOnce(&Asker<'_>, &Clock) -> T,
    ) -> Result<T, Failure> {
        let (release, cluster) = (self.shown()?.version, self.info()?.cluster.clone());
        let group = group_name(Gid::current().as_raw());
        let words = std::iter::once(self.tool).chain(arguments.iter().map(String::as_str));
        let command: Vec<String> = words.map(str::to_owned).collect();
        let asker = Asker { command: &command, user: &self.user, group: &group, cluster: &cluster, release: &release };
        Ok(act(&asker, &self.clock))
    }

    /// The views that a query finds, without jobs refused by submission filters: nobody got their numbers (SL-S-11).
    pub fn views(&mut self, query: &JobQuery) -> Result<Vec<JobView>, Failure> {
        let mut views = self.client.jobs(query).map_err(|error| self.failure(&error))?.jobs;
        views.retain(|view| !was_refused(view));
        Ok(views)
    }

    /// The jobs that the ids name, also by the number of a component or of an array task.
    pub fn named(&mut self, ids: &[IdExpression]) -> Result<Vec<JobView>, Failure> {
        let numbers: BTreeSet<u64> = ids.iter().map(|id| number(&id.job)).collect();
        let ids = numbers.into_iter().map(JobId::job).collect();
        self.views(&JobQuery { ids, limit: Some(MOST_JOBS), ..JobQuery::default() })
    }

    /// All unfinished jobs with this user and name, and with `finished` those that ended recently.
    pub fn current(&mut self, user: Option<&str>, name: Option<&str>, finished: bool) -> Result<Vec<JobView>, Failure> {
        let page = self.client.all_jobs(user, name, finished).map_err(|error| self.failure(&error))?;
        let oldest = self.clock.now.plus_seconds(-MIN_JOB_AGE_SECONDS);
        let mut views = page.jobs;
        views.retain(|view| view.ended.is_none_or(|ended| ended >= oldest) && !was_refused(view));
        Ok(views)
    }
}

/// Whether submission filters refused the job, so that it never entered the queue.
pub fn was_refused(view: &JobView) -> bool {
    view.filtering.as_ref().is_some_and(|filtering| filtering.entry == EntryWord::Refused)
}

/// The setting of `[slurm]` that gateways pass on.
pub const SCHEDULER_PARAMETERS: &str = "scheduler_parameters";

/// The words of staging directives that gateways pass on, separated by commas.
pub const BURST_BUFFER_DIRECTIVES: &str = "burst_buffer_directives";
/// How staging directives are handled.
pub const BURST_BUFFER_TYPE: &str = "burst_buffer_type";

/// The options that the site adds, which gateways pass on, one in a line.
pub const SITE_OPTIONS: &str = "site_options";

/// The options that the site adds (SL-S-22). The gateway has checked them; without those that another version of it has
/// understood, the others would be refused too.
pub fn site_options(info: &InfoView) -> SiteOptions {
    let text = info.dialects.get("slurm").and_then(|slurm| slurm.get(SITE_OPTIONS)).map_or("", String::as_str);
    SiteOptions::of(&text.lines().collect::<Vec<_>>()).unwrap_or_default()
}

/// The kind of MPI support of steps that name none.
pub const MPI_DEFAULT: &str = "mpi_default";

/// The kind of MPI support of steps that name none (SL-W-03).
pub fn mpi_default(info: &InfoView) -> String {
    let chosen = info.dialects.get("slurm").and_then(|slurm| slurm.get(MPI_DEFAULT)).filter(|kind| !kind.is_empty());
    chosen.map_or(DEFAULT_MPI, String::as_str).to_owned()
}

/// The process management of steps that ask for none, of this dialect or not.
///
/// # Errors
/// The site's setting is no kind, for people.
pub fn default_management(info: &InfoView) -> Result<Option<ProcessManagement>, String> {
    steps::process_management(&mpi_default(info))
}

/// The setting with the shown `AccountingStorageType`; absent if the site sets none.
pub const ACCOUNTING_STORAGE_TYPE: &str = "accounting_storage_type";
/// The setting with the shown version of Slurm; absent if the site sets none.
pub const VERSION: &str = "version";

/// What commands show of the system that they stand for, which a site may choose (SL-C-01, SL-C-35).
pub struct Shown {
    /// The version of Slurm.
    pub version: String,
    /// The `AccountingStorageType`.
    pub accounting: String,
}

impl Shown {
    fn of(info: Option<&InfoView>) -> Self {
        let set = |name: &str| info.and_then(|info| info.dialects.get("slurm")?.get(name).cloned());
        Self {
            version: set(VERSION).unwrap_or_else(|| RELEASE.to_owned()),
            accounting: set(ACCOUNTING_STORAGE_TYPE).unwrap_or_else(|| "accounting_storage/muster".to_owned()),
        }
    }
}

/// The line of `--version`. It never waits for a system that is away.
pub fn version_line(client: Option<Client>) -> String {
    let info = client.and_then(|client| client.waiting(Duration::ZERO).info(Moment::Now).ok());
    version(&Shown::of(info.as_ref()).version, env!("CARGO_PKG_VERSION"))
}

/// The site's rules for submissions (SL-B-01, SL-B-07).
pub fn rules(info: &InfoView) -> Rules {
    let slurm = info.dialects.get("slurm");
    let setting = |name: &str| slurm.and_then(|slurm| slurm.get(name)).map_or("", String::as_str);
    let words = setting(BURST_BUFFER_DIRECTIVES).split(',').filter(|word| !word.is_empty());
    Rules {
        directive_words: words.map(str::to_owned).collect(),
        persistent_buffers: setting(BURST_BUFFER_TYPE) != "script",
        most_switch_wait_seconds: parameters(info).most_switch_wait_seconds,
        ..Rules::default()
    }
}

/// Whether the user that the gateway takes the caller for may manage everybody's jobs.
pub fn is_operator(client: &mut Client) -> Result<bool, ClientError> {
    let caller = client.info(Moment::Now)?.caller;
    manages_all(client, &caller)
}

fn manages_all(client: &mut Client, user: &str) -> Result<bool, ClientError> {
    if user == user_name(0) {
        return Ok(true);
    }
    let settings = client.config(Moment::Now)?.settings;
    Ok([&settings.operators, &settings.administrators].into_iter().any(|names| names.iter().any(|name| name == user)))
}

/// The site's settings for the commands.
pub fn parameters(info: &InfoView) -> SchedulerParameters {
    let text = info.dialects.get("slurm").and_then(|slurm| slurm.get(SCHEDULER_PARAMETERS));
    SchedulerParameters::parse(text.map_or("", String::as_str))
}

/// The number to look up a job, component or array by.
pub const fn number(part: &JobPart) -> u64 {
    match part {
        JobPart::Number(number) | JobPart::AllTasks(number) => *number,
        JobPart::Component { leader, .. } => *leader,
        JobPart::Tasks { array, .. } => *array,
    }
}

/// The line of an array describes the tasks that have not started, which wait even if others run (SL-C-17).
fn rest_of_array(view: JobView) -> JobView {
    let waits = view.array.as_ref().is_some_and(|array| !array.remaining.is_empty() && array.running > 0);
    match waits && view.outcome.is_none() {
        true => JobView { state: JobState::Queued, started: None, run: None, nodes: Vec::new(), ..view },
        false => view,
    }
}

/// The line of an array whose tasks all have separate lines.
fn is_used_up(record: &JobRecord) -> bool {
    let tasks = record.array.as_ref().map(|array| &array.tasks);
    matches!(tasks, Some(ArrayTasks::Waiting(indices)) if indices.is_empty())
}

/// The current time in the zone of this process.
pub fn now() -> Zoned {
    Timestamp::now().to_jiff().to_zoned(zone::of_process())
}

/// The job that this process belongs to.
pub fn surrounding_job() -> Option<JobId> {
    let number: u64 = variable("SLURM_JOB_ID")?.parse().ok()?;
    // The number of an array's first task is also that of the array.
    let own = variable("MUSTER_JOB_ID").and_then(|text| text.parse::<JobId>().ok());
    Some(own.filter(|job| job.number == number).unwrap_or(JobId::job(number)))
}

/// A variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether there is a user with this name or number.
pub fn knows_user(name: &str) -> bool {
    name.parse::<u32>().is_ok() || User::named(name).is_some()
}

fn look_up(name: &str) -> Person {
    let Some(User { uid, gid, .. }) = User::named(name) else { return Person::default() };
    Person { uid, gid, group: group_name(gid).into() }
}

/// The name of a user, or its number.
pub fn user_name(uid: u32) -> String {
    User::numbered(uid).map_or_else(|| uid.to_string(), |user| user.name)
}

/// The name of a group, or its number.
pub fn group_name(gid: u32) -> String {
    muster_names::group_name(gid).unwrap_or_else(|| gid.to_string())
}

/// The system's text for an error, as Slurm's commands print it: Rust adds a number.
pub fn os_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error ").map_or(text.as_str(), |(text, _)| text).to_owned()
}

/// This host's name.
pub fn host() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// The address by which other hosts reach this one; that of the host itself if it has no other.
pub fn address() -> String {
    // Nothing is sent: the system only chooses the way that a packet to an address of no host would take. Addresses are no
    // texts here, so that the C library is not asked for names.
    let towards = |target: (Ipv4Addr, u16)| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(target)?;
        socket.local_addr()
    };
    towards((Ipv4Addr::new(192, 0, 2, 1), 9)).map_or_else(|_| "127.0.0.1".to_owned(), |own| own.ip().to_string())
}

/// The words of Slurm's commands before the reason why a request failed. They tell programs that the system is away and
/// a job only unknown for a while.
const fn asking_by(tool: &'static str) -> &'static str {
    match tool.as_bytes() {
        b"sinfo" => "slurm_load_partitions",
        b"seff" => "seff: error: Problem talking to the database",
        b"sreport" => "sreport: error: Problem talking to the database",
        b"sstat" => "sstat: error: Couldn't get steps",
        b"sprio" => "sprio: error: Couldn't get priority factors from controller",
        b"sshare" => "sshare: error: Couldn't get shares from controller",
        b"sdiag" => "slurm_get_statistics",
        b"sacct" => "sacct: error: Problem talking to the database",
        b"sacctmgr" => "sacctmgr: error: Problem talking to the database",
        b"sattach" => "sattach: error: Could not get job step info",
        b"sbcast" => "sbcast: error: slurm_job_sbcast_lookup",
        _ => "slurm_load_jobs error",
    }
}

/// Why there was no answer, in Slurm's words.
pub fn away(error: &ClientError) -> String {
    match error {
        ClientError::Unreachable { .. } => "Unable to contact slurm controller (connect failure)".to_owned(),
        ClientError::AnswerLost(_) => "Socket timed out on send/recv operation".to_owned(),
        refused if refused.is_unavailable() => "Unable to contact slurm controller (connect failure)".to_owned(),
        other => other.to_string(),
    }
}

/// This text, and the gateway's message if it answers for a service that is away.
pub fn away_lines(tool: &str, text: &str, error: &ClientError) -> Vec<String> {
    let detail = error.is_unavailable().then(|| format!("{tool}: {error}"));
    [text.to_owned()].into_iter().chain(detail).collect()
}

/// There is no connection, or an unreadable answer.
pub fn unreachable(tool: &str, error: &ClientError) -> Failure {
    refusals::is_known();
    Failure { lines: away_lines(tool, &format!("{tool}: error: {}", away(error)), error), code: 1 }
}
