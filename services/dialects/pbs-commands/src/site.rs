//! What the commands know about the system and its caller.

use super::ended::Failure;
use jiff::{Zoned, tz::TimeZone};
use muster_cli::{connection::ConnectionOptions, zone};
use muster_client::{Client, ClientError, JobQuery, Moment};
use muster_names::User;
use muster_pbs::{
    NAME,
    attributes::names,
    depend,
    flavour::Flavour,
    job_id::{Part, PbsJobId},
    qmgr::{DEFAULTS, limits_of, schedule_iteration},
    refusal::shown,
    resources::Resource,
    show::{Counts, ServerFacts, ServerState, Sources},
    submit::{Rules, SERVER_VARIABLE, Settings},
};
use muster_schemas::{
    JobId, Timestamp,
    cluster::ClusterConfig,
    job::JobState,
    views::{ErrorCode, RequestDefault},
};
use nix::unistd::Uid;
use std::collections::{BTreeMap, BTreeSet};

/// The setting with the member of the family that output imitates (`pbs.flavour`).
pub const FLAVOUR: &str = "flavour";
/// The setting with the server's name in job identifiers (`pbs.server`); the cluster's name if it is empty.
pub const SERVER: &str = "server";
/// The setting whether `nodes=N` without `ppn` asks for whole nodes (`pbs.nodes_are_whole`): `false`, otherwise they are whole.
pub const NODES_ARE_WHOLE: &str = "nodes_are_whole";
/// The setting with the resources that are only kept and shown (`pbs.kept_resources`), with a space between two.
pub const KEPT_RESOURCES: &str = "kept_resources";

/// The beginning of the name of a policy that is none because its files have mistakes.
pub const NO_POLICY: &str = "none (";

/// The system and its caller.
pub struct Site {
    /// The gateway's client.
    pub client: Client,
    /// The member of the family.
    pub flavour: Flavour,
    /// The server's name.
    pub server: String,
    /// The caller's zone.
    pub zone: TimeZone,
    nodes_are_whole: bool,
    kept_resources: BTreeSet<String>,
    /// The requests of jobs that make none of their own, each with its queue unless it belongs to the server.
    defaults: Vec<(Option<String>, Resource)>,
    /// The queue of jobs that name none.
    default_queue: Option<String>,
}

impl Site {
    /// The system at the other end of a connection. If the caller's environment names a server, it must be that one.
    pub fn open(connection: &ConnectionOptions) -> Result<Self, Failure> {
        let mut client = connection.patient_client().map_err(|failure| Failure::new(failure.to_string()))?;
        let settings = client.dialects()?;
        let set = |name: &str| settings.dialects.get(NAME)?.get(name).filter(|value| !value.is_empty()).cloned();
        let flavour = set(FLAVOUR).map_or(Ok(Flavour::default()), |word| word.parse()).map_err(Failure::new)?;
        let server = set(SERVER).unwrap_or_else(|| settings.cluster.clone());
        let nodes_are_whole = set(NODES_ARE_WHOLE).is_none_or(|word| word != "false");
        let kept = set(KEPT_RESOURCES).unwrap_or_default();
        let kept_resources = kept.split_whitespace().map(str::to_owned).collect();
        let site = Self {
            client,
            flavour,
            server,
            zone: zone::of_process(),
            nodes_are_whole,
            kept_resources,
            defaults: settings.defaults.iter().filter_map(default_request).collect(),
            default_queue: Some(settings.default_queue).filter(|queue| !queue.is_empty()),
        };
        if let Some(named) = variable(SERVER_VARIABLE) {
            // It may have a port.
            let name = named.split(':').next().unwrap_or_default();
            site.require_server(name)
                .map_err(|failure| Failure { text: format!("{SERVER_VARIABLE}: {}", failure.text), ..failure })?;
        }
        Ok(site)
    }

    /// The site's rules for a submission, whose dependencies name only jobs of this server. Only a request for `nodes` can
    /// name nodes, so others do not ask for all of them.
    pub fn rules(&mut self, settings: &Settings) -> Result<Rules, Failure> {
        let dependencies = settings.given.get(names::DEPEND).map_or("", String::as_str);
        depend::named(dependencies).try_for_each(|id| self.require_own(&id))?;
        let node_names = match settings.resources.iter().any(|request| request.name == "nodes") {
            true => Some(self.client.nodes(Moment::Now)?.nodes.into_iter().map(|node| node.spec.name).collect()),
            false => None,
        };
        Ok(Rules {
            flavour: self.flavour,
            server: self.server.clone(),
            nodes_are_whole: self.nodes_are_whole,
            node_names,
            kept_resources: self.kept_resources.clone(),
        })
    }

    /// The requests of jobs in a queue that make none of their own: those of the server, then those of the queue (PBS-Q-08).
    pub fn default_requests(&self, queue: Option<&str>) -> Vec<Vec<Resource>> {
        let of = |wanted: Option<&str>| {
            let known = self.defaults.iter().filter(|(queue, _)| queue.as_deref() == wanted);
            known.map(|(_, request)| request.clone()).collect::<Vec<_>>()
        };
        let queue = queue.or(self.default_queue.as_deref());
        [Some(of(None)), queue.map(|queue| of(Some(queue)))].into_iter().flatten().collect()
    }

    /// The current time in the caller's zone.
    pub fn now(&self) -> Zoned {
        Timestamp::now().to_jiff().to_zoned(self.zone.clone())
    }

    /// What the attributes of jobs depend on.
    pub fn sources(&self) -> Sources<'_> {
        Sources { server: &self.server, flavour: self.flavour, now: Timestamp::now(), zone: &self.zone }
    }

    /// The facts about the server.
    pub fn server_facts<'a>(
        &'a self,
        config: &'a ClusterConfig,
        (jobs, held_until): (&BTreeMap<JobState, u64>, u64),
        host: &'a str,
        version: &'a str,
        missing_policy: Option<&'a str>,
    ) -> ServerFacts<'a> {
        ServerFacts {
            name: &self.server,
            host,
            state: if config.settings.is_idle { ServerState::Idle } else { ServerState::Active },
            counts: Counts::of_states(jobs, held_until),
            default_queue: Some(config.settings.default_queue.as_str()).filter(|name| !name.is_empty()),
            max_running: limits_of(&config.settings.attributes)
                .find(|(name, resource, _)| *name == "max_running" && resource.is_none())
                .and_then(|(_, _, most)| most.parse().ok()),
            missing_policy,
            iteration_seconds: schedule_iteration(&config.settings.attributes).map(u64::from),
            version,
        }
    }

    /// The name of the policy in force if it is that of none: the policy files have mistakes, and no others were ever in force
    /// (PBS-C-14).
    pub fn missing_policy(&mut self) -> Result<Option<String>, ClientError> {
        let policy = self.client.policy(Moment::Now)?;
        Ok(Some(policy.name).filter(|name| name.starts_with(NO_POLICY)))
    }

    /// The identifier of a job.
    pub fn id_of(&self, job: JobId, is_array: bool) -> PbsJobId {
        PbsJobId::of(job, is_array, &self.server)
    }

    /// An identifier as messages have it: with the server, which the user may have left out.
    pub fn in_full(&self, id: &PbsJobId) -> PbsJobId {
        let server = id.server.clone().or_else(|| Some(self.server.clone()).filter(|server| !server.is_empty()));
        PbsJobId { server, at: None, ..id.clone() }
    }

    /// Requires that a name is that of this server, in full or by its first part; `default` means it too.
    pub fn require_server(&self, name: &str) -> Result<(), Failure> {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        match name.eq_ignore_ascii_case("default") || short(name) == short(&self.server) {
            true => Ok(()),
            false => Err(Failure { text: format!("Unknown Host {}", shown(name)), status: 153 }),
        }
    }

    /// Requires that an identifier names a job of this server, which may be named in full or by its first part.
    pub fn require_own(&self, id: &PbsJobId) -> Result<(), Failure> {
        id.at.iter().chain(&id.server).try_for_each(|server| self.require_server(server))
    }

    /// Requires that a plain number is that of a job. Tasks of arrays and components have numbers too, which other
    /// commands take for them: here nobody has seen these numbers, and who names one means another job.
    pub fn require_whole(&mut self, id: &PbsJobId) -> Result<(), Failure> {
        if id.part != Part::Job {
            return Ok(());
        }
        let ids: Vec<JobId> = id.jobs().collect();
        let views = self.client.jobs(&JobQuery { ids: ids.clone(), ..JobQuery::default() })?.jobs;
        match views.is_empty() || views.iter().any(|view| ids.contains(&view.id)) {
            true => Ok(()),
            false => Err(unknown(&self.in_full(id))),
        }
    }
}

/// A default of a request, as the gateway tells it, with its queue unless it belongs to the server.
fn default_request(told: &RequestDefault) -> Option<(Option<String>, Resource)> {
    let name = told.attribute.strip_prefix(NAME)?.strip_prefix('.')?.strip_prefix(DEFAULTS)?.strip_prefix('.')?;
    Some((told.queue.clone(), Resource { name: name.to_owned(), value: told.value.clone() }))
}

/// No queue has this name.
pub fn unknown_queue(name: &str) -> Failure {
    Failure { text: format!("Unknown queue {}", shown(name)), status: 170 }
}

/// Requires that there is a queue of this name.
pub fn require_queue(site: &mut Site, name: &str) -> Result<(), Failure> {
    let queues = site.client.queues(Moment::Now)?.queues;
    if queues.iter().any(|queue| queue.spec.name == name) { Ok(()) } else { Err(unknown_queue(name)) }
}

/// No job has this identifier.
pub fn unknown(id: &PbsJobId) -> Failure {
    Failure { text: format!("Unknown Job Id {id}"), status: 153 }
}

/// Why a command did nothing to a job, in the words of PBS, with its exit status.
pub fn refused(id: &PbsJobId, error: &ClientError) -> (String, u8) {
    match error.code() {
        Some(ErrorCode::NotFound) => (format!("Unknown Job Id {id}"), 153),
        Some(ErrorCode::PermissionDenied) => (format!("Unauthorized Request  {id}"), 159),
        Some(ErrorCode::Conflict) => (format!("Request invalid for state of job {id}: {error}"), 168),
        _ => (format!("{error} {id}"), 1),
    }
}

/// The login name of the caller.
pub fn user_name() -> String {
    let uid = Uid::effective().as_raw();
    User::numbered(uid).map_or_else(|| uid.to_string(), |user| user.name)
}

/// This host's name.
pub fn host() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// A variable of the environment; an empty one counts as none.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The version that commands tell: that of muster.
pub fn version() -> String {
    format!("muster {}", env!("CARGO_PKG_VERSION"))
}
