//! What the commands know of the system and of who calls them, and the jobs that they speak of.

use crate::cli::ConnectionOptions;
use jiff::{Zoned, tz::TimeZone};
use muster_client::{Client, ClientError, JobQuery, Moment};
use muster_schemas::{
    JobId, Timestamp,
    cluster::QueueSpec,
    job::JobState,
    views::{ErrorCode, JobDetail, JobView, QueuesPage},
};
use muster_slurm::{
    job_id::{IdExpression, JobPart},
    queries::{Failure, Surroundings},
    show::{
        Clock,
        record::{ArrayTasks, JobRecord, Person, Sources, of_detail, of_view},
    },
};
use nix::unistd::{Gid, Group, Uid, User};
use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

/// A component's leader is looked for among so many numbers before its own.
const MOST_COMPONENTS: u64 = 128;
/// Finished jobs are shown for so long (`MinJobAge`, SL-C-25).
const MIN_JOB_AGE_SECONDS: i64 = 300;

/// The system and who asks.
pub struct Site {
    /// The command, for messages.
    pub tool: &'static str,
    /// The gateway's client.
    pub client: Client,
    /// When it was asked, and where.
    pub clock: Clock,
    /// Login name of the caller.
    pub user: String,
    /// The queues, once they were asked for.
    pub queues: QueuesPage,
    people: RefCell<BTreeMap<String, Person>>,
}

impl Site {
    /// The system that a connection leads to.
    pub fn open(tool: &'static str, connection: &ConnectionOptions) -> Result<Self, Failure> {
        let mut client = connection.client().map_err(|failure| Failure::error(tool, failure))?;
        let queues = client.queues(Moment::Now).map_err(|error| unreachable(tool, &error))?;
        let user = User::from_uid(Uid::current()).ok().flatten();
        Ok(Self {
            tool,
            client,
            clock: Clock { now: Timestamp::now(), zone: TimeZone::system() },
            user: user.map_or_else(|| Uid::current().to_string(), |user| user.name),
            queues,
            people: RefCell::default(),
        })
    }

    /// What command lines are read with.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { variable: &variable, user: &self.user, knows_user: &knows_user, now: Zoned::now() }
    }

    /// Why a request was not done.
    pub fn failure(&self, error: &ClientError) -> Failure {
        match error.code() {
            None => unreachable(self.tool, error),
            Some(ErrorCode::PermissionDenied) => Failure::error(self.tool, "Access/permission denied"),
            Some(_) => Failure::error(self.tool, error),
        }
    }

    /// Does something with what views of jobs do not tell.
    pub fn with_sources<T>(&self, act: impl FnOnce(&Sources<'_>) -> T) -> T {
        let queue = |name: &str| self.queue(name);
        let person = |name: &str| self.person(name);
        act(&Sources { queue: &queue, person: &person })
    }

    fn queue(&self, name: &str) -> Option<&QueueSpec> {
        self.queues.queues.iter().map(|queue| &queue.spec).find(|spec| spec.name == name)
    }

    fn person(&self, name: &str) -> Person {
        self.people.borrow_mut().entry(name.to_owned()).or_insert_with(|| look_up(name)).clone()
    }

    /// The lines of jobs. Of jobs with several components all details are asked for, of others if `detailed`.
    pub fn records(&mut self, views: Vec<JobView>, detailed: bool) -> Result<Vec<JobRecord>, Failure> {
        let mut records = Vec::with_capacity(views.len());
        for view in views {
            if detailed || view.components > 1 {
                if let Some(detail) = self.detail(view.id)? {
                    records.extend(self.with_sources(|sources| of_detail(&detail, sources)));
                }
            } else {
                records.extend(self.with_sources(|sources| of_view(rest_of_array(view), sources)));
            }
        }
        records.retain(|record| !is_used_up(record));
        Ok(records)
    }

    /// All of a job; `None` if there is none.
    pub fn detail(&mut self, job: JobId) -> Result<Option<JobDetail>, Failure> {
        match self.client.job(job, Moment::Now) {
            Ok(detail) => Ok(Some(JobDetail { job: rest_of_array(detail.job), ..detail })),
            Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// The views that a query finds.
    pub fn views(&mut self, query: &JobQuery) -> Result<Vec<JobView>, Failure> {
        self.client.jobs(query).map(|page| page.jobs).map_err(|error| self.failure(&error))
    }

    /// The jobs that ids name, also by the number of a component.
    pub fn named(&mut self, ids: &[IdExpression]) -> Result<Vec<JobView>, Failure> {
        let mut found: BTreeMap<JobId, JobView> = BTreeMap::new();
        for id in ids {
            let number = number(&id.job);
            for view in self.of_number(number)? {
                found.insert(view.id, view);
            }
        }
        Ok(found.into_values().collect())
    }

    fn of_number(&mut self, number: u64) -> Result<Vec<JobView>, Failure> {
        let of = |ids: Vec<JobId>| JobQuery { ids, ..JobQuery::default() };
        let found = self.views(&of(vec![JobId::job(number)]))?;
        if !found.is_empty() || number < 2 {
            return Ok(found);
        }
        let before = (number.saturating_sub(MOST_COMPONENTS).max(1)..number).map(JobId::job).collect();
        let leader = self.views(&of(before))?.into_iter().max_by_key(|view| view.id.number);
        Ok(leader.into_iter().filter(|view| number < view.id.number + u64::from(view.components)).collect())
    }

    /// All jobs that are not over, and with `finished` those that ended a short time ago.
    pub fn current(&mut self, finished: bool) -> Result<Vec<JobView>, Failure> {
        let mut views = self.views(&JobQuery::default())?;
        if finished {
            let states = vec![JobState::Finished];
            let oldest = self.clock.now.plus_seconds(-MIN_JOB_AGE_SECONDS);
            let over = self.views(&JobQuery { states, ..JobQuery::default() })?;
            views.extend(over.into_iter().filter(|view| view.ended.is_none_or(|ended| ended >= oldest)));
            views.sort_by_key(|view| view.id);
        }
        Ok(views)
    }
}

/// The number that a job, component or array is looked for with.
pub const fn number(part: &JobPart) -> u64 {
    match part {
        JobPart::Number(number) | JobPart::AllTasks(number) => *number,
        JobPart::Component { leader, .. } => *leader,
        JobPart::Tasks { array, .. } => *array,
    }
}

/// The line of an array is about the tasks that have not started, which wait although others run (SL-C-17).
fn rest_of_array(view: JobView) -> JobView {
    let waits = view.array.as_ref().is_some_and(|array| !array.remaining.is_empty() && array.running > 0);
    match waits && view.outcome.is_none() {
        true => JobView { state: JobState::Queued, started: None, run: None, nodes: Vec::new(), ..view },
        false => view,
    }
}

/// The line of an array all of whose tasks have lines of their own.
fn is_used_up(record: &JobRecord) -> bool {
    let tasks = record.array.as_ref().map(|array| &array.tasks);
    matches!(tasks, Some(ArrayTasks::Waiting(indices)) if indices.is_empty())
}

/// A variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn knows_user(name: &str) -> bool {
    name.parse::<u32>().is_ok() || User::from_name(name).is_ok_and(|user| user.is_some())
}

fn look_up(name: &str) -> Person {
    let Some(user) = User::from_name(name).ok().flatten() else { return Person::default() };
    Person { uid: user.uid.as_raw(), gid: user.gid.as_raw(), group: Arc::from(group_name(user.gid)) }
}

/// The name of a group, or its number.
pub fn group_name(gid: Gid) -> String {
    Group::from_gid(gid).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name)
}

/// This host's name.
pub fn host() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// There is no connection, or an answer that nobody can read.
pub fn unreachable(tool: &str, error: &ClientError) -> Failure {
    let text = match error {
        ClientError::Unreachable { .. } => "Unable to contact slurm controller (connect failure)".to_owned(),
        other => other.to_string(),
    };
    Failure::error(tool, text)
}
