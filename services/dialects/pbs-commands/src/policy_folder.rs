//! The policy files of a folder in force: read together, checked together and put in force together, by one event with
//! their hashes (PBS-C-14).
//!
//! The policy of the planner has the limits of server and queues, and local hours as instants. So it is made again when the
//! configuration changes, and at the latest every month.

mod bounded;
mod facts;
mod presets;
mod restart;

use super::{
    ended::{Ended, Failure, print},
    site::NO_POLICY,
};
use facts::Facts;
use jiff::{Timestamp, ToSpan, Zoned, civil::Date, tz::TimeZone};
use muster_cli::{connection::ConnectionOptions, stderr_line, zone};
use muster_client::{Client, ClientError, Moment};
use muster_pbs::qmgr::{EACH_ONE, amount, created, limits_of, limits_of_jobs, scheduler_policy, time_zone};
pub use muster_pbs_policy::preset::Preset;
use muster_pbs_policy::{
    check::{Checked, FileDigest, Policy as Tables, check},
    engine::{self, Limits, Range},
    findings::Finding,
    folder,
    nodes::MonitorConfig,
    routes::Site,
    values::Decimal,
};
use muster_schemas::{
    CommandId,
    cluster::{ClusterConfig, QueueSpec},
    policy::{LoadedNode, Policy, PolicySource},
    resources::{NodeSpec, PropertyValue},
    views::{PolicyRefusal, PolicyWarning},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

const USAGE: &str = "usage: muster pbs load [--preset sgi_origin|cray_t3e|ibm_sp|multitask] DIR";
/// The exit status for files with errors.
const POLICY_ERRORS: u8 = 2;
/// How many days of local hours a policy has. It is made again every month.
const DAYS: i32 = 400;

/// A folder whose files are in force as long as nobody sets another policy.
pub struct PolicyFolder {
    client: Client,
    folder: PathBuf,
    preset: Option<Preset>,
    zone: TimeZone,
    /// What was put in force: the tables, and the hashes of their files.
    accepted: Option<(Tables, Vec<PolicySource>)>,
    /// The preset for which its files had mistakes when they were last read.
    refused: Option<Option<Preset>>,
    /// What presets have to know beside the files and the log.
    facts: Facts,
    /// The day of the last warning about its holidays.
    warned: Option<Date>,
}

/// What became of the files of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// They are in force, with these warnings.
    InForce(Vec<String>),
    /// They have these mistakes; the policy in force before them stays.
    Refused(Vec<String>),
}

/// Why nothing was done.
#[derive(Debug)]
pub enum LoadError {
    /// The folder cannot be read.
    Folder(folder::FolderError),
    /// Nobody can tell now which group has a name.
    Group(String),
    /// The system gave no answer, or refused.
    Client(ClientError),
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(error) => write!(f, "{error}"),
            Self::Group(why) => write!(f, "{why}"),
            Self::Client(error) => write!(f, "{error}"),
        }
    }
}

impl From<ClientError> for LoadError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl PolicyFolder {
    /// A folder, for the system at the other end of a client.
    pub fn new(client: Client, folder: PathBuf) -> Self {
        Self {
            client,
            facts: Facts::of_folder(&folder),
            folder,
            preset: None,
            zone: zone::of_process(),
            accepted: None,
            refused: None,
            warned: None,
        }
    }

    /// The same for a preset, which reads the file `config` too (PBS-P-01).
    #[must_use]
    pub fn with_preset(self, preset: Option<Preset>) -> Self {
        Self { preset, ..self }
    }

    /// The same with another account than `nobody` for the program `DEDICATED_TIME_COMMAND`. It never runs as root: if this is
    /// root's name, it runs as `nobody` nevertheless.
    #[must_use]
    pub fn with_program_account(mut self, account: String) -> Self {
        self.facts.run_as(account);
        self
    }

    /// Reads the files and puts them in force. If there is any mistake, that is put on record, and the policy in force stays.
    ///
    /// # Errors
    /// If the folder cannot be read or the system does not answer. Nothing was changed.
    pub fn load(&mut self) -> Result<Loaded, LoadError> {
        let sources = folder::read(&self.folder).map_err(LoadError::Folder)?;
        let config = self.client.config(Moment::Now)?;
        let preset = self.preset_of(&config);
        let Checked { policy, errors, warnings, digests } = check(&sources, preset);
        let hashes = hashes(&digests);
        let Some(tables) = policy else {
            return self.refuse(preset, hashes, errors.iter().map(Finding::located).collect());
        };
        let lost = tables.preset.as_ref().map(presets::lost_live).unwrap_or_default();
        let uncounted = uncounted(&tables);
        self.facts.forget();
        let wanted = self.policy(&tables, &hashes)?;
        if let Some(fault) = wanted.faults().first() {
            return self.refuse(preset, hashes, vec![format!("the planner cannot follow it: {fault}")]);
        }
        self.put(&wanted)?;
        let warnings = warnings.iter().map(Finding::located).chain(lost).chain(uncounted).collect();
        self.accepted = Some((tables, hashes));
        self.refused = None;
        Ok(Loaded::InForce(warnings))
    }

    /// The preset that the files are for: the one that was named with the folder, or that of the server.
    fn preset_of(&self, config: &ClusterConfig) -> Option<Preset> {
        self.preset.or_else(|| Preset::parse(scheduler_policy(&config.settings.attributes)?))
    }

    /// Makes the policy again for the present configuration and time, unless somebody has set another one. It reads the files only
    /// if the server has another preset since, once, and returns what became of them then.
    ///
    /// # Errors
    /// If the system does not answer, or nobody can tell which group has a name. The policy in force stays.
    pub fn renew(&mut self) -> Result<Option<Loaded>, LoadError> {
        let Some((tables, hashes)) = self.accepted.take() else { return Ok(None) };
        let renewed = self.renewed(&tables, &hashes);
        self.accepted = Some((tables, hashes));
        if renewed? { self.load().map(Some) } else { Ok(None) }
    }

    /// Whether its files are in force, or were until somebody set another policy.
    pub const fn is_in_force(&self) -> bool {
        self.accepted.is_some()
    }

    /// Once a day: that the holidays in force are those of another year. It is on record from then on (PBS-T-05).
    ///
    /// # Errors
    /// If the system does not answer. It is told again then.
    pub fn warn_of_holidays(&mut self) -> Result<Option<String>, LoadError> {
        let today = Timestamp::now().to_zoned(self.zone.clone()).date();
        let Some((tables, _)) = &self.accepted else { return Ok(None) };
        let Some(warning) = tables.holidays.stale_warning(today, self.warned) else { return Ok(None) };
        let name = name(tables.preset.as_ref().map(|preset| preset.preset));
        let told = PolicyWarning { name, warnings: vec![warning.clone()] };
        self.client.warn_of_policy(CommandId::new_now(), &told)?;
        self.warned = Some(today);
        Ok(Some(warning))
    }

    /// Whether the files have to be read again.
    fn renewed(&mut self, tables: &Tables, hashes: &[PolicySource]) -> Result<bool, LoadError> {
        if self.client.policy(Moment::Now)?.sources != hashes {
            return Ok(false);
        }
        let config = self.client.config(Moment::Now)?;
        let preset = self.preset_of(&config);
        if preset == tables.preset.as_ref().map(|preset| preset.preset) {
            self.refused = None;
        } else if self.refused != Some(preset) {
            return Ok(true);
        }
        let wanted = self.policy(tables, hashes)?;
        self.put(&wanted)?;
        Ok(false)
    }

    /// Nothing starts as long as no policy was ever put in force: the default does not stand in for a broken file.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn start_nothing_without_policy(&mut self, mistakes: usize) -> Result<(), LoadError> {
        let present = self.client.policy(Moment::Now)?;
        if present != Policy::default() && present.starts_nothing.is_none() {
            return Ok(());
        }
        let why = format!("the policy files of PBS have {mistakes} errors");
        let none =
            Policy { name: format!("{NO_POLICY}{mistakes} errors)"), starts_nothing: Some(why), ..Policy::default() };
        self.put(&none)
    }

    fn policy(&mut self, tables: &Tables, hashes: &[PolicySource]) -> Result<Policy, LoadError> {
        let config = self.client.config(Moment::Now)?;
        // The zone of the server counts more than that of this process (PBS-T-07).
        let zone = time_zone(&config.settings.attributes).unwrap_or_else(|| self.zone.clone());
        let now = muster_schemas::Timestamp::now().to_jiff().to_zoned(zone);
        let Some(preset) = &tables.preset else { return policy(tables, hashes, &config, &now) };
        let mut site = site(&config, &now)?;
        if !self.facts.know_groups() {
            let routes = self.client.policy(Moment::Now)?.turns.and_then(|turns| turns.routes);
            self.facts.begin_with(routes.map(|routes| routes.over_allocation).unwrap_or_default());
        }
        let wrong = self.facts.tell(preset, &mut site);
        if !wrong.is_empty() {
            self.client.refuse_policy(CommandId::new_now(), &refusal(Some(preset.preset), hashes.to_vec(), wrong))?;
        }
        Ok(named(presets::policy(preset, tables, &site), Some(preset.preset), hashes))
    }

    fn put(&mut self, wanted: &Policy) -> Result<(), LoadError> {
        if self.client.policy(Moment::Now)? != *wanted {
            self.client.set_policy(CommandId::new_now(), wanted)?;
        }
        Ok(())
    }

    fn refuse(
        &mut self,
        preset: Option<Preset>,
        sources: Vec<PolicySource>,
        mistakes: Vec<String>,
    ) -> Result<Loaded, LoadError> {
        self.client.refuse_policy(CommandId::new_now(), &refusal(preset, sources, mistakes.clone()))?;
        self.refused = Some(preset);
        Ok(Loaded::Refused(mistakes))
    }
}

/// The name of policies made of files.
fn name(preset: Option<Preset>) -> String {
    format!("PBS {}", preset.map_or("fifo", Preset::name))
}

fn refusal(preset: Option<Preset>, sources: Vec<PolicySource>, mistakes: Vec<String>) -> PolicyRefusal {
    PolicyRefusal { name: name(preset), sources, mistakes }
}

fn named(policy: Policy, preset: Option<Preset>, hashes: &[PolicySource]) -> Policy {
    Policy { name: name(preset), sources: hashes.to_vec(), ..policy }
}

/// The planner's policy for tables, a configuration and a time. Presets know of no outages and allocations then.
///
/// # Errors
/// Nobody can tell now which group a limit is for.
pub fn policy(
    tables: &Tables,
    hashes: &[PolicySource],
    config: &ClusterConfig,
    now: &Zoned,
) -> Result<Policy, LoadError> {
    let made = match &tables.preset {
        None => {
            let server = limits(&config.settings.attributes)?;
            engine::policy(tables, &server, &limits_of_queues(config)?, timeshared(tables, config), &range(now))
        }
        Some(preset) => presets::policy(preset, tables, &site(config, now)?),
    };
    Ok(named(made, tables.preset.as_ref().map(|preset| preset.preset), hashes))
}

fn site(config: &ClusterConfig, now: &Zoned) -> Result<Site, LoadError> {
    let (server, queues) = (limits(&config.settings.attributes)?, limits_of_queues(config)?);
    Ok(presets::site(config, server, queues, now.timestamp(), range(now)))
}

/// The limits of all queues, in the order of their creation.
fn limits_of_queues(config: &ClusterConfig) -> Result<Vec<(String, Limits)>, LoadError> {
    let mut queues: Vec<&QueueSpec> = config.queues.iter().collect();
    queues.sort_by_key(|queue| created(&queue.attributes));
    queues.into_iter().map(|queue| Ok((queue.name.clone(), limits_of_queue(queue)?))).collect()
}

/// The timeshared nodes of the file `nodes` that the cluster has (PBS-L-01). The properties `ideal_load` and `max_load` of a
/// node stand for what the config of its monitor says of loads (PBS-L-02).
fn timeshared(tables: &Tables, config: &ClusterConfig) -> Vec<LoadedNode> {
    let known: BTreeMap<&str, &NodeSpec> = config.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let load = |node: &NodeSpec, name: &str| match node.properties.get(name)? {
        PropertyValue::Number(number) => u32::try_from(*number).ok().map(Decimal::whole),
        PropertyValue::Text(text) => Decimal::parse(text),
        PropertyValue::Flag(_) => None,
    };
    let listed = tables.nodes.iter().flatten().filter(|node| node.is_timeshared);
    let found = listed.filter_map(|node| known.get(node.name.as_str()));
    let limits = |node: &&NodeSpec| {
        let monitor = MonitorConfig { ideal: load(node, "ideal_load"), max: load(node, "max_load") };
        engine::timeshared(&node.name, monitor, node.cores)
    };
    found.map(limits).collect()
}

/// The resources that are to be checked, and that no job of a cluster has (PBS-Q-04).
fn uncounted(tables: &Tables) -> Vec<String> {
    let checked = tables.sched_config.checked_resources.iter().flatten();
    let lost = checked.filter(|resource| !engine::is_counted(resource));
    lost.map(|resource| format!("sched_config: muster_check_resources: {resource} has no effect: jobs do not count it"))
        .collect()
}

/// From the first day of the month, so that the policy is the same all month.
fn range(now: &Zoned) -> Range {
    let month = now.date().first_of_month().to_zoned(now.time_zone().clone());
    let from = month.map_or(Timestamp::UNIX_EPOCH, |month| month.timestamp());
    let until = from.checked_add((24 * i64::from(DAYS)).hours()).unwrap_or(Timestamp::MAX);
    Range { from, until, zone: now.time_zone().clone() }
}

/// The limits among the attributes of the server or of a queue. What cannot be read is no limit: `qmgr` accepts none such.
///
/// # Errors
/// Nobody can tell now which group one of them is for: without it the limit would be lifted.
fn limits(attributes: &BTreeMap<String, String>) -> Result<Limits, LoadError> {
    let mut limits = Limits::default();
    for (name, resource, value) in limits_of(attributes) {
        match (name, resource) {
            ("max_running", None) => limits.max_running = value.parse().ok(),
            ("max_user_run", None) => limits.max_user_run = value.parse().ok(),
            ("max_group_run", None) => limits.max_group_run = value.parse().ok(),
            ("max_run", Some(who)) => {
                let of_user = who.strip_prefix("u:").and_then(|user| Some((user.to_owned(), value.parse().ok()?)));
                limits.max_run_of_users.extend(of_user);
                let group = who.strip_prefix("g:").map(group_number).transpose()?.flatten();
                limits.max_run_of_groups.extend(group.and_then(|group| Some((group, value.parse().ok()?))));
                match who.strip_prefix("p:") {
                    Some(EACH_ONE) => limits.max_project_run = value.parse().ok(),
                    project => {
                        let one = project.and_then(|project| Some((project.to_owned(), value.parse().ok()?)));
                        limits.max_run_of_projects.extend(one);
                    }
                }
            }
            ("resources_available", Some(resource)) => {
                limits.resources_available.extend(amount(resource, value).map(|most| (resource.to_owned(), most)));
            }
            ("resources_max", Some(resource)) => {
                limits.resources_max.extend(amount(resource, value).map(|most| (resource.to_owned(), most)));
            }
            _ => {}
        }
    }
    Ok(limits)
}

/// The number of a group. One that this host does not know has no jobs.
fn group_number(group: &str) -> Result<Option<u32>, LoadError> {
    let unknown = |error| LoadError::Group(format!("nobody can tell the number of group {group}: {error}"));
    muster_names::group_number(group).map_err(unknown)
}

/// The limits of a queue. What a job may ask for at most is its capacity, too (PBS-Q-05).
fn limits_of_queue(queue: &QueueSpec) -> Result<Limits, LoadError> {
    let mut limits = limits(&queue.attributes)?;
    let most = limits_of_jobs(queue, "resources_max").filter(|(resource, _)| *resource != "walltime");
    let most = most.filter_map(|(resource, value)| Some((resource.to_owned(), amount(resource, &value)?)));
    limits.resources_max.extend(most);
    Ok(limits)
}

fn hashes(digests: &[FileDigest]) -> Vec<PolicySource> {
    let source = |digest: &FileDigest| PolicySource { name: digest.file.clone(), sha256: digest.sha256.clone() };
    digests.iter().map(source).collect()
}

/// `muster pbs load DIR`: puts the files of a folder in force.
pub(super) fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    let usage = || Failure { text: USAGE.to_owned(), status: POLICY_ERRORS };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (preset, folder) = match words[..] {
        [folder] if !folder.starts_with('-') => (None, Path::new(folder)),
        ["--preset", name, folder] => (Some(Preset::parse(name).ok_or_else(usage)?), Path::new(folder)),
        _ => return Err(usage()),
    };
    let client = connection.patient_client().map_err(|failure| Failure::new(failure.to_string()))?;
    match PolicyFolder::new(client, folder.to_owned()).with_preset(preset).load() {
        Ok(Loaded::InForce(warnings)) => {
            warnings.iter().for_each(|warning| stderr_line!("muster pbs load: warning: {warning}"));
            print(&format!("planners follow the policy files of {}\n", folder.display()));
            Ok(0)
        }
        Ok(Loaded::Refused(mistakes)) => {
            print(&mistakes.iter().map(|mistake| format!("{mistake}\n")).collect::<String>());
            let text = format!("{} errors; the policy in force stays", mistakes.len());
            Err(Failure { text, status: POLICY_ERRORS })
        }
        Err(LoadError::Client(error)) => Err(error.into()),
        Err(error) => Err(Failure { text: error.to_string(), status: POLICY_ERRORS }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_pbs_policy::lines::Source;
    use muster_schemas::policy::LimitPer;

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    fn source(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// PBS-C-14, PBS-Q-02
    #[test]
    fn a_policy_is_the_same_all_month_and_has_the_limits_of_server_and_queues() {
        let files =
            [source("sched_config", "fair_share: true prime\nhalf_life: 12:00:00\n"), source("holidays", HOLIDAYS)];
        let checked = check(&files, None);
        let tables = checked.policy.unwrap();
        let hashes = hashes(&checked.digests);
        assert_eq!(hashes.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(), ["sched_config", "holidays"]);
        let mut config = ClusterConfig::default();
        config.settings.attributes.insert("pbs.max_user_run".into(), "3".into());
        for (name, most) in [("pbs.max_run.p:PBS_GENERIC", "7"), ("pbs.max_run.p:ice", "2")] {
            config.settings.attributes.insert(name.into(), most.into());
        }
        let queue = |name: &str, attributes: &[(&str, &str)]| QueueSpec {
            name: name.into(),
            attributes: attributes.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..QueueSpec::default()
        };
        config.queues = vec![
            queue("aged", &[("pbs.created", "2"), ("pbs.resources_max.mem", "2gb")]),
            queue("first", &[("pbs.created", "1"), ("pbs.max_group_run", "5")]),
        ];
        let made_at = |time: &str| policy(&tables, &hashes, &config, &at(time)).unwrap();
        let made = made_at("2026-11-03T10:00:00[Europe/Berlin]");
        assert_eq!(made, made_at("2026-11-30T23:59:00[Europe/Berlin]"));
        assert_ne!(made, made_at("2026-12-01T00:00:00[Europe/Berlin]"));
        assert_eq!(made.faults(), []);
        assert_eq!(made.limits.len(), 5);
        let of_projects = made.limits.iter().filter(|limit| limit.per == LimitPer::Account);
        let of_projects: Vec<_> = of_projects.map(|limit| (limit.name.as_deref(), limit.max_running_jobs)).collect();
        assert_eq!(of_projects, [(None, Some(7)), (Some("ice"), Some(2))]);
        let of_mem = made.limits.iter().find(|limit| limit.queue.as_deref() == Some("aged")).unwrap();
        assert_eq!(of_mem.max_attributes.get("memory_kib"), Some(&(2 << 20)));
        let turns = made.turns.unwrap();
        assert_eq!(turns.queues, ["first", "aged"]);
        assert_eq!(turns.usage.map(|rule| rule.half_life_seconds), Some(12 * 3600));
        let hours = turns.other_hours.unwrap();
        assert!(hours.rules.fair_share.is_none() && turns.rules.fair_share.is_some());
        // Sunday is not prime, and November began on one.
        let first = hours.periods[0];
        assert_eq!(first.from.to_jiff().to_string(), "2026-10-31T23:00:00Z");
        assert_eq!(first.until.to_jiff().to_string(), "2026-11-02T05:00:00Z");
    }

    /// PBS-Q-04: a resource that only a dry run counts is told.
    #[test]
    fn resources_that_no_job_has_are_told() {
        let files = [source("sched_config", "muster_check_resources: mem,scratch,ncpus\n")];
        let told = uncounted(&check(&files, None).policy.unwrap());
        assert_eq!(told, ["sched_config: muster_check_resources: scratch has no effect: jobs do not count it"]);
    }

    /// PBS-C-11, PBS-T-08: cycles are told the hours of a policy also where those change no option.
    #[test]
    fn hours_are_known_whatever_they_change() {
        let made = |holidays: &str| {
            let files = [source("sched_config", "sort_by: no_sort\n"), source("holidays", holidays)];
            let tables = check(&files, None).policy.unwrap();
            policy(&tables, &[], &ClusterConfig::default(), &at("2026-11-03T10:00:00[UTC]")).unwrap()
        };
        let turns = made(HOLIDAYS).turns.unwrap();
        let is_other = |time: &str| {
            let time: Timestamp = time.parse().unwrap();
            turns.is_other(muster_schemas::Timestamp(time.as_microsecond()))
        };
        assert!(is_other("2026-11-04T02:00:00Z") && !is_other("2026-11-04T12:00:00Z"));
        let always = "YEAR 2026\nweekday all none\nsaturday all none\nsunday all none\n";
        assert!(made(always).turns.unwrap().other_hours.is_none());
    }

    const HOLIDAYS: &str = "YEAR 2026\nweekday 0600 1730\nsaturday none all\nsunday none all\n";
}
