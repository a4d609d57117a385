//! `scontrol` (SL-C-33 to C-38, SL-M-04 to M-11).

use super::{
    Ended, partition, print, refusals, reservation, shown,
    site::{BURST_BUFFER_TYPE, SCHEDULER_PARAMETERS, Site, mpi_default, os_text},
    update, wanted,
};
use crate::holds::{holds_of, released};
use muster_client::Moment;
use muster_schemas::{
    CommandId, JobId,
    accounts::{AccountSettings, ClassSpec},
    cluster::{QueueSpec, WayOut},
    command::JobSelection,
    event::JobChange,
    job::{Holds, JobState},
    policy::{BackfillMode, Policy},
    resources::IndexSet,
    views::{
        ErrorCode, HoldRequest, JobView, JobsRequest, ModifyRequest, ReleaseRequest, RequeueRequest, ReservationView,
        TellRequest,
    },
};
use muster_slurm::{
    attributes::{SET, job::SPECIAL_EXIT, job_key},
    burst_buffer::script_of,
    job_id::{IdExpression, JobPart},
    messages::told,
    options::RELEASE,
    queries::{
        Failure,
        reservation::Deleted,
        scontrol::{Entity, Scontrol, Variant, Verb, parse},
        update::Subject,
    },
    select::{Action, Chosen, Target, choose, of_steps, shown_by_scontrol},
    show::{
        data::{self, Asker, DataFormat},
        record::JobRecord,
        sacctmgr,
        scontrol::{self, Lines, NodeExtras},
        sinfo::{self, NodeRecord, Partition},
        squeue::document,
        step::StepRecord,
    },
    words::State,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

/// The ports of Slurm's daemons, for programs that ask for them: nothing listens there.
pub(super) const CONTROLLER_PORT: u16 = 6817;
const NODE_PORT: u16 = 6818;
/// How long a requeued job waits before it can start again (SL-C-37).
const REQUEUE_DELAY_SECONDS: u32 = 120;

/// Runs a command line of `scontrol`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let Some(command) = wanted(site, parse(words)?) else { return Ok(0) };
    if let Some(user) = &command.as_user {
        acts_as_caller(site, user)?;
    }
    match &command.verb {
        Verb::Show { entity, id } => {
            if let Some(format) = command.data {
                print(&show_data(site, words, (*entity, id.as_deref()), format)?);
                return Ok(0);
            }
            let shown = show(site, &command, *entity, id.as_deref())?;
            if command.is_verbose && entity.has_records() {
                print(&scontrol::update_line(&shown, &site.clock));
            }
            print(&shown);
            Ok(0)
        }
        Verb::Ping => ping(site, words, command.data),
        Verb::Act { action, ids, names, variant, only_incomplete } => {
            let ids = with_named(site, ids, names)?;
            act(site, *action, &ids, *variant, *only_incomplete)
        }
        Verb::Completing => completing(site),
        Verb::Update(change) => {
            site.asks("slurm_update error");
            update::run(site, change)
        }
        Verb::WriteScript { id, file } => write_script(site, id, file.as_deref()),
        Verb::WaitJob(id) => wait_job(site, id),
        // The configuration is read when it is applied, so there is nothing to do, as is usual in Slurm.
        Verb::Reconfigure => Ok(0),
        Verb::Create(wish) => match &wish.subject {
            Subject::Partition(name) => {
                site.asks("slurm_create_partition error");
                partition::create(site, wish, name)
            }
            _ => reservation::create(site, wish),
        },
        Verb::Delete(Deleted::Reservation(name)) => reservation::delete(site, name),
        Verb::Delete(Deleted::Partition(name)) => {
            site.asks("slurm_delete_partition error");
            partition::delete(site, name)
        }
        Verb::Top(ids) => update::top(site, ids),
        Verb::Notify { id, message } => notify(site, id, message),
    }
}

/// `scontrol ping`: whether the system answers at this moment.
fn ping(site: &mut Site, words: &[String], data: Option<DataFormat>) -> Ended {
    let asked = Instant::now();
    let is_up = site.client.another().waiting(Duration::ZERO).info(Moment::Now).is_ok();
    let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
    let host = super::site::host();
    let list = vec![scontrol::ping_data(&host, is_up, micros)];
    let text = match data {
        None => scontrol::ping(&host, is_up),
        Some(format) if is_up => site.with_asker(words, |asker, _| format.text(&asker.document("pings", list, &[])))?,
        // A system that is away can tell neither its name nor who asks.
        Some(format) => {
            let asker = Asker { command: words, user: "", group: "", cluster: "", release: RELEASE };
            format.text(&asker.document("pings", list, &[]))
        }
    };
    print(&text);
    Ok(u8::from(!is_up))
}

/// Refuses to act for another user (`-u`): the system takes the caller's own word for nobody else.
fn acts_as_caller(site: &mut Site, user: &str) -> Result<(), Failure> {
    let caller = site.caller()?;
    let is_caller = user == caller || user.parse().is_ok_and(|uid| super::site::user_name(uid) == caller);
    let text = format!("muster acts for the user who calls it, {caller}, and not for {user}; nothing was changed");
    if is_caller { Ok(()) } else { Err(Failure::error("scontrol", text)) }
}

/// Shows something as data for programs.
fn show_data(
    site: &mut Site,
    words: &[String],
    (entity, id): (Entity, Option<&str>),
    format: DataFormat,
) -> Result<String, Failure> {
    site.asks(asking(entity));
    let (name, list) = match entity {
        Entity::Jobs => {
            let records = job_records(site, id)?;
            return site.with_asker(words, |asker, clock| format.text(&document(&records, asker, clock.now)));
        }
        Entity::Nodes => {
            let (nodes, partitions) = (named_nodes(site, id)?, shown::partitions(site)?);
            return site.with_asker(words, |asker, clock| {
                format.text(&sinfo::document(&partitions, &nodes, env!("CARGO_PKG_VERSION"), asker, clock.now))
            });
        }
        Entity::Partitions => {
            let nodes = shown::nodes(site)?;
            let data = |(partition, class): &WithClass| {
                sinfo::partition_data(partition, class.as_deref(), nodes.iter().map(|node| &**node))
            };
            ("partitions", named_partitions(site, id)?.iter().map(data).collect::<Vec<_>>())
        }
        Entity::Reservations => {
            let now = site.clock.now;
            let data = |(view, cores): &(ReservationView, u64)| scontrol::reservation_data(view, *cores, now);
            ("reservations", named_reservations(site, id)?.iter().map(data).collect())
        }
        Entity::Steps => {
            let (steps, cluster) = (named_steps(site, id)?, site.shown_cluster()?);
            ("steps", steps.iter().map(|step| scontrol::step_data(step, &cluster, &site.clock)).collect())
        }
        Entity::Licences => {
            let licences = site.queues()?.licences.clone();
            ("licenses", licences.iter().map(|licence| scontrol::licence_data(licence, &site.clock)).collect())
        }
        _ => {
            let text = "--json and --yaml are for jobs, steps, nodes, partitions, reservations, licenses and ping";
            return Err(Failure::error("scontrol", text));
        }
    };
    site.with_asker(words, |asker, clock| {
        format.text(&asker.document(name, list, &[("last_update", data::moment(Some(clock.now)))]))
    })
}

fn show(site: &mut Site, command: &Scontrol, entity: Entity, id: Option<&str>) -> Result<String, Failure> {
    site.asks(asking(entity));
    let lines = lines_of(command);
    match entity {
        Entity::Jobs => show_jobs(site, command, id),
        Entity::Nodes => show_nodes(site, id, lines),
        Entity::Partitions => show_partitions(site, id, lines),
        Entity::Steps => show_steps(site, id, lines),
        Entity::Configuration => show_configuration(site),
        Entity::Hostnames => hostlist(id, scontrol::hostnames),
        Entity::Hostlist => hostlist(id, |names| scontrol::hostlist(names, false)),
        Entity::SortedHostlist => hostlist(id, |names| scontrol::hostlist(names, true)),
        Entity::Licences => Ok(scontrol::licences(&site.queues()?.licences, lines)),
        Entity::Reservations => show_reservations(site, id, lines),
        Entity::BurstBuffers => show_buffers(site),
        Entity::Federation => Ok("No federation\n".to_owned()),
        Entity::Daemons => show_daemons(site),
        Entity::AssociationManager => show_associations(site),
        Entity::Topology => Ok(scontrol::topology(shown::nodes(site)?.iter().map(|node| &**node))),
    }
}

const fn lines_of(command: &Scontrol) -> Lines {
    if command.one_line { Lines::One } else { Lines::Several }
}

/// The words of Slurm's `scontrol` before the reason if it cannot get this.
const fn asking(entity: Entity) -> &'static str {
    match entity {
        Entity::Nodes => "slurm_load_node error",
        Entity::Partitions => "slurm_load_partitions error",
        Entity::Steps => "slurm_get_job_steps error",
        Entity::Configuration => "slurm_load_ctl_conf error",
        Entity::Licences => "slurm_load_licenses error",
        Entity::Reservations => "slurm_load_reservations error",
        Entity::BurstBuffers => "slurm_load_burst_buffer_info error",
        Entity::Daemons => "slurm_load_ctl_conf error",
        Entity::AssociationManager => "slurm_load_assoc_mgr_info error",
        Entity::Topology => "slurm_load_topo error",
        Entity::Jobs | Entity::Hostnames | Entity::Hostlist | Entity::SortedHostlist | Entity::Federation => {
            "slurm_load_jobs error"
        }
    }
}

/// Without a list, the list of the job is meant.
fn hostlist<E>(id: Option<&str>, act: impl FnOnce(&str) -> Result<String, E>) -> Result<String, Failure> {
    let own = || super::site::variable("SLURM_JOB_NODELIST");
    let list = id.map(str::to_owned).or_else(own);
    let list = list.ok_or_else(|| Failure::plain("too few arguments for keyword:show"))?;
    act(&list).map_err(|_| Failure::plain(format_args!("Invalid hostlist: {list}")))
}

fn show_jobs(site: &mut Site, command: &Scontrol, id: Option<&str>) -> Result<String, Failure> {
    let records = job_records(site, id)?;
    if records.is_empty() {
        return Ok(scontrol::nothing("jobs"));
    }
    let lines = lines_of(command);
    let text = if command.details { scontrol::job_in_detail } else { scontrol::job };
    Ok(records.iter().map(|record| text(record, lines, &site.clock)).collect())
}

fn job_records(site: &mut Site, id: Option<&str>) -> Result<Vec<JobRecord>, Failure> {
    let Some(text) = id else {
        let views = site.current(None, None, true)?;
        return site.records(views, true);
    };
    let invalid = || Failure::plain("slurm_load_jobs error: Invalid job id specified");
    let id = IdExpression::parse(text).ok_or_else(invalid)?;
    let views = site.named(std::slice::from_ref(&id))?;
    let suspended: Vec<JobId> =
        views.iter().filter(|view| view.state == JobState::Suspended).map(|view| view.id).collect();
    let mut records = site.records(views, true)?;
    for job in suspended {
        know_suspensions(site, job, &mut records)?;
    }
    shown_by_scontrol(&id, &records)
}

/// Only the events of a job tell when it was suspended.
fn know_suspensions(site: &mut Site, job: JobId, records: &mut [JobRecord]) -> Result<(), Failure> {
    let events = site.client.job_events(job, Moment::Now).map_err(|error| site.failure(&error))?;
    let is_its = |record: &&mut JobRecord| match (&record.array, &record.het) {
        (Some(array), _) => array.task_at(record.number).is_some_and(|task| task == job),
        (None, Some(het)) => JobId::job(het.leader) == job,
        (None, None) => JobId::job(record.number) == job,
    };
    records.iter_mut().filter(is_its).for_each(|record| record.learn_suspensions(&events));
    Ok(())
}

fn show_nodes(site: &mut Site, id: Option<&str>, lines: Lines) -> Result<String, Failure> {
    let nodes = named_nodes(site, id)?;
    let partitions = shown::partitions(site)?;
    let text = |node: &Arc<NodeRecord>| {
        let serves = partitions.iter().filter(|partition| partition.has(node));
        let extras = NodeExtras {
            partitions: serves.map(|partition| partition.name.clone()).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..NodeExtras::default()
        };
        scontrol::node(node, &extras, lines, &site.clock)
    };
    Ok(nodes.iter().map(text).collect())
}

/// The nodes in a list; all without one.
fn named_nodes(site: &mut Site, id: Option<&str>) -> Result<Vec<Arc<NodeRecord>>, Failure> {
    let nodes = shown::nodes(site)?;
    let Some(list) = id else { return Ok(nodes) };
    // Lists made by programs often end with a comma.
    let list = list.trim_end_matches(',');
    let names = muster_slurm::hostlist::expand(list).map_err(|_| Failure::plain(scontrol::not_found("Node", list)))?;
    let named = |name: String| {
        let node = nodes.iter().find(|node| node.name == name).cloned();
        node.ok_or_else(|| Failure::plain(scontrol::not_found("Node", &name)))
    };
    names.into_iter().map(named).collect()
}

fn show_partitions(site: &mut Site, id: Option<&str>, lines: Lines) -> Result<String, Failure> {
    let nodes = shown::nodes(site)?;
    let text = |(partition, class): &WithClass| {
        let serving = nodes.iter().filter(|node| partition.has(node)).map(|node| &**node);
        scontrol::partition(partition, class.as_deref(), serving, lines)
    };
    Ok(named_partitions(site, id)?.iter().map(text).collect())
}

/// A partition with its QOS.
type WithClass = (Arc<Partition>, Option<String>);

/// The partition of this name, or all, each with its QOS.
fn named_partitions(site: &mut Site, id: Option<&str>) -> Result<Vec<WithClass>, Failure> {
    let mut partitions = shown::partitions(site)?;
    partitions.retain(|partition| id.is_none_or(|id| partition.name == id));
    if let (true, Some(id)) = (partitions.is_empty(), id) {
        return Err(Failure::plain(scontrol::not_found("Partition", id)));
    }
    let page = site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))?;
    let classes = page.settings.queue_classes;
    let with_class = |partition: Arc<Partition>| {
        let class = classes.get(&partition.name).cloned();
        (partition, class)
    };
    Ok(partitions.into_iter().map(with_class).collect())
}

fn show_steps(site: &mut Site, id: Option<&str>, lines: Lines) -> Result<String, Failure> {
    Ok(named_steps(site, id)?.iter().map(|step| scontrol::step(step, lines, &site.clock)).collect())
}

/// The steps of this id, or all that run.
fn named_steps(site: &mut Site, id: Option<&str>) -> Result<Vec<StepRecord>, Failure> {
    let Some(text) = id else { return shown::running_steps(site) };
    let not_found = || Failure::plain(scontrol::not_found("Job step", text));
    let id = IdExpression::parse(text).ok_or_else(not_found)?;
    let mut found: Vec<StepRecord> = Vec::new();
    for view in site.named(std::slice::from_ref(&id))? {
        let job = view.id;
        let is_running = view.started.is_some() && view.outcome.is_none();
        let records = site.records(vec![view], true)?;
        let steps = site.client.steps(job, Moment::Now).map_err(|error| site.failure(&error))?.steps;
        let batch = records.first().filter(|_| is_running);
        let batch = batch.map(|record| StepRecord::of_job(record, muster_slurm::job_id::StepName::Batch, "batch"));
        found.extend(batch.into_iter().chain(shown::step_records(&steps, &records)));
    }
    let steps = of_steps(&[id], found);
    if steps.is_empty() { Err(not_found()) } else { Ok(steps) }
}

fn show_reservations(site: &mut Site, id: Option<&str>, lines: Lines) -> Result<String, Failure> {
    let wanted = named_reservations(site, id)?;
    let text: String =
        wanted.iter().map(|(view, cores)| scontrol::reservation(view, *cores, lines, &site.clock)).collect();
    Ok(if text.is_empty() { scontrol::nothing("reservations") } else { text })
}

/// The reservation of this name, or all, each with the number of its cores.
fn named_reservations(site: &mut Site, id: Option<&str>) -> Result<Vec<(ReservationView, u64)>, Failure> {
    let page = site.client.reservations(Moment::Now).map_err(|error| site.failure(&error))?;
    let nodes = shown::nodes(site)?;
    let wanted = page.reservations.into_iter().filter(|view| id.is_none_or(|id| view.spec.name == id));
    let with_cores = |view: ReservationView| {
        let kept = nodes.iter().filter(|node| view.nodes.contains(&node.name));
        let cores = kept.map(|node| u64::from(node.cpus)).sum();
        (view, cores)
    };
    let found: Vec<_> = wanted.map(with_cores).collect();
    match (found.is_empty(), id) {
        (true, Some(id)) => Err(Failure::plain(format_args!("Reservation {id} not found"))),
        _ => Ok(found),
    }
}

fn show_buffers(site: &mut Site) -> Result<String, Failure> {
    let info = site.client.info(Moment::Now).map_err(|error| site.failure(&error))?;
    let kind = info.dialects.get("slurm").and_then(|slurm| slurm.get(BURST_BUFFER_TYPE));
    let page = site.queues()?.clone();
    let kind = kind.map_or("datawarp", String::as_str);
    Ok(site.with_sources(|sources| scontrol::buffers(kind, &page.staging, &page.buffers, sources.person, &site.clock)))
}

/// The gateway stands for the controller of its host, an executor for the daemon of its node.
fn show_daemons(site: &mut Site) -> Result<String, Failure> {
    let host = super::site::host();
    let names = shown::nodes(site)?;
    let short = host.split('.').next().unwrap_or_default();
    let has_node = names.iter().any(|node| node.name == host || node.name == short);
    Ok(scontrol::daemons(site.is_local(), has_node))
}

fn show_associations(site: &mut Site) -> Result<String, Failure> {
    let page = site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))?;
    let cluster = site.shown_cluster()?;
    let classes: Vec<ClassSpec> = sacctmgr::classes(&page).into_iter().map(|class| class.0).collect();
    Ok(scontrol::associations(&page.users, &sacctmgr::associations(&page, &cluster), &classes))
}

fn show_configuration(site: &mut Site) -> Result<String, Failure> {
    let shown = site.shown()?;
    let config = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?;
    let licences: Vec<String> = config.licences.iter().map(|(name, count)| format!("{name}:{count}")).collect();
    let host = super::site::host();
    let since = site.client.statistics().map_err(|error| site.failure(&error))?.since;
    let info = site.client.info(Moment::Now).map_err(|error| site.failure(&error))?;
    let policy = site.client.policy(Moment::Now).map_err(|error| site.failure(&error))?;
    let accounts = site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))?;
    let has_switches = config.nodes.iter().any(|node| node.properties.contains_key(muster_slurm::features::SWITCH));
    let (preempt_type, preempt_mode) = preemption(&config.queues, &accounts.classes);
    let parameters = info.dialects.get("slurm").and_then(|slurm| slurm.get(SCHEDULER_PARAMETERS));
    let values: BTreeMap<&str, String> = [
        ("AccountingStorageType", shown.accounting),
        ("AccountingStorageEnforce", enforced(config.accounts.as_ref())),
        // Each gateway reports its own start.
        ("BOOT_TIME", scontrol::time(since, &site.clock)),
        ("ClusterName", config.settings.name),
        ("EnforcePartLimits", "ALL".to_owned()),
        ("FirstJobId", config.first_job_number.unwrap_or(1).to_string()),
        ("JobRequeue", "1".to_owned()),
        ("KillWait", format!("{} sec", config.settings.kill_grace_seconds)),
        ("Licenses", licences.join(",")),
        ("MaxArraySize", muster_slurm::request::Rules::default().array_size_limit.to_string()),
        ("MaxJobCount", config.settings.max_jobs.to_string()),
        ("MinJobAge", "300 sec".to_owned()),
        ("MpiDefault", mpi_default(&info)),
        ("NEXT_JOB_ID", info.next_job_number.to_string()),
        ("SchedulerParameters", parameters.filter(|text| !text.is_empty()).map_or("(null)", String::as_str).to_owned()),
        ("SchedulerType", scheduler_type(&policy).to_owned()),
        ("SelectType", "select/cons_tres".to_owned()),
        ("SlurmctldHost[0]", host),
        ("SLURM_VERSION", shown.version),
        ("SlurmctldPort", CONTROLLER_PORT.to_string()),
        ("SlurmdPort", NODE_PORT.to_string()),
        ("TopologyPlugin", if has_switches { "topology/tree" } else { "topology/flat" }.to_owned()),
        // These hold on every system. A signal for a step goes to all of its processes.
        ("AccountingStorageTRES", "cpu,mem,node,billing,gres/gpu".to_owned()),
        ("AllowSpecResourcesUsage", "No".to_owned()),
        ("DependencyParameters", "(null)".to_owned()),
        ("NodeFeaturesPlugins", "(null)".to_owned()),
        ("OverTimeLimit", "0 min".to_owned()),
        ("PreemptMode", preempt_mode.to_owned()),
        ("PreemptType", preempt_type.to_owned()),
        ("PriorityType", "priority/basic".to_owned()),
        ("PrivateData", "none".to_owned()),
        ("ProctrackType", "proctrack/linuxproc".to_owned()),
        ("SelectTypeParameters", "CR_CPU_MEMORY".to_owned()),
        ("SlurmUser", "root(0)".to_owned()),
        ("SlurmdUser", "root(0)".to_owned()),
        ("TaskPlugin", "task/affinity".to_owned()),
    ]
    .into();
    Ok(scontrol::config(&values, &site.clock))
}

/// Because of what running jobs make way for others, and how: as all partitions or QOS that make way say, and `REQUEUE` if
/// they differ.
fn preemption(queues: &[QueueSpec], classes: &[ClassSpec]) -> (&'static str, &'static str) {
    let of_queues = queues.iter().filter_map(|queue| queue.makes_way).map(|way| match way.by {
        WayOut::Requeue => "REQUEUE",
        WayOut::Cancel => "CANCEL",
        WayOut::Suspend => "GANG,SUSPEND",
    });
    let is_preempted = |class: &&ClassSpec| classes.iter().any(|other| other.preempts.contains(&class.name));
    let of_classes =
        classes.iter().filter(is_preempted).map(|class| match (class.cancels_preempted, class.suspends_preempted) {
            (true, _) => "CANCEL",
            (false, true) => "GANG,SUSPEND",
            (false, false) => "REQUEUE",
        });
    let by_queue: BTreeSet<&str> = of_queues.collect();
    let by_class: BTreeSet<&str> = of_classes.collect();
    let mode = |modes: &BTreeSet<&'static str>| if modes.len() == 1 { modes.first().copied() } else { None };
    match (by_queue.is_empty(), by_class.is_empty()) {
        (true, true) => ("preempt/none", "OFF"),
        (false, _) => ("preempt/partition_prio", mode(&by_queue).unwrap_or("REQUEUE")),
        (true, false) => ("preempt/qos", mode(&by_class).unwrap_or("REQUEUE")),
    }
}

/// Whether jobs are backfilled, in Slurm's words (SL-P-01).
fn scheduler_type(policy: &Policy) -> &'static str {
    match policy.backfill.mode {
        BackfillMode::None => "sched/builtin",
        BackfillMode::Easy | BackfillMode::Conservative => "sched/backfill",
    }
}

/// Which limits of accounts and QOS are enforced, in Slurm's words (SL-C-35).
pub(super) fn enforced(settings: Option<&AccountSettings>) -> String {
    let Some(AccountSettings { associations, limits, classes, refuses_hopeless, .. }) = settings else {
        return "none".to_owned();
    };
    let words = [("associations", associations), ("limits", limits), ("qos", classes), ("safe", refuses_hopeless)];
    let set: Vec<&str> = words.into_iter().filter(|(_, is_set)| **is_set).map(|(word, _)| word).collect();
    if set.is_empty() { "none".to_owned() } else { set.join(",") }
}

/// Acts on jobs, and continues after a failure.
fn act(site: &mut Site, action: Action, ids: &[IdExpression], variant: Variant, only_incomplete: bool) -> Ended {
    let mut status = 0;
    for id in ids {
        if let Err(failure) = act_on(site, action, &id.job, variant, only_incomplete) {
            status = refusals::tell(&failure);
        }
    }
    Ok(status)
}

fn act_on(
    site: &mut Site,
    action: Action,
    part: &JobPart,
    variant: Variant,
    only_incomplete: bool,
) -> Result<(), Failure> {
    let mut views = site.named(&[IdExpression { job: part.clone(), step: None }])?;
    if only_incomplete {
        views.retain(|view| view.outcome.is_none() && !matches!(view.state, JobState::Held | JobState::Queued));
        if views.is_empty() {
            return Ok(());
        }
    }
    let owner = views.first().map(|view| view.owner.clone());
    let is_over = !views.is_empty() && views.iter().all(|view| view.outcome.is_some());
    let waits = views.iter().all(|view| matches!(view.state, JobState::Held | JobState::Queued));
    // Whether a job may be requeued depends on what it asked for.
    let records = site.records(views.clone(), action == Action::Requeue)?;
    let Chosen::Targets(targets) = choose(action, part, &records, site.parameters()?.whole_hetjob)? else {
        return Ok(());
    };
    let set = targets.iter().fold(Holds::default(), |all, target| all.union(holds_of(&views, *target)));
    // If there are several, they are tasks of an array, which have no components.
    let jobs = match targets.as_slice() {
        [Target { job, component: Some(component) }] => JobSelection::Component { job: *job, component: *component },
        _ => JobSelection::Ids(targets.iter().map(|target| target.job).collect()),
    };
    if matches!(action, Action::Requeue | Action::Release) {
        // A job that never ran was never put back.
        let has_run = |target: &&Target| views.iter().any(|view| view.id == target.job && view.runs > 0);
        let run: Vec<Target> = targets.iter().filter(has_run).copied().collect();
        mark_special_exits(site, &run, variant)?;
    }
    let id = CommandId::new_now();
    // An operator's hold on other users' jobs is one that they cannot release.
    let is_own = variant == Variant::UserHold || owner == Some(site.caller()?);
    let client = &mut site.client;
    let done = match action {
        Action::Hold => {
            let holds = Holds { user: is_own, operator: !is_own, ..Holds::default() };
            client.hold(id, &HoldRequest { jobs, holds, reason: String::new() })
        }
        Action::Release => client.release(id, &ReleaseRequest { jobs, holds: released(set, is_own) }),
        Action::Requeue => {
            let hold = variant != Variant::Plain;
            client.requeue(id, &RequeueRequest { jobs, hold, delay_seconds: REQUEUE_DELAY_SECONDS })
        }
        Action::Suspend => client.suspend(id, &JobsRequest { jobs }),
        Action::Resume => client.resume(id, &JobsRequest { jobs }),
        // Other code handles their command lines.
        Action::Cancel | Action::Update => return Ok(()),
    };
    done.map(drop).map_err(|error| match error.code() {
        Some(ErrorCode::PermissionDenied) => Failure::plain(format_args!("Access/permission denied for job {part}")),
        Some(ErrorCode::NotFound) => Failure::plain(format_args!("Invalid job id specified for job {part}")),
        Some(ErrorCode::Conflict) if is_over => {
            Failure::plain(format_args!("Job/step already completing or completed for job {part}"))
        }
        Some(ErrorCode::Conflict) if waits && matches!(action, Action::Suspend | Action::Resume) => {
            Failure::plain(format_args!("Job is pending execution for job {part}"))
        }
        Some(ErrorCode::Conflict) if matches!(action, Action::Hold | Action::Release) => {
            Failure::plain(format_args!("Job is no longer pending execution for job {part}"))
        }
        Some(_) => Failure::plain(format_args!("{error} for job {part}")),
        None => site.failure(&error),
    })
}

/// The ids, and those of the caller's jobs with these names; root means everybody's.
fn with_named(site: &mut Site, ids: &[IdExpression], names: &[String]) -> Result<Vec<IdExpression>, Failure> {
    let mut all = ids.to_vec();
    let caller = site.caller()?;
    let user = (!site.surroundings().is_root).then_some(caller);
    for name in names {
        let views = site.current(user.as_deref(), Some(name), false)?;
        if views.is_empty() {
            return Err(Failure::plain(format_args!("Job \"{name}\" not found")));
        }
        let part = |view: &JobView| match view.id.index {
            Some(index) => {
                JobPart::Tasks { array: view.id.number, indices: IndexSet::from_range(index, index), max_running: None }
            }
            None => JobPart::Number(view.id.number),
        };
        all.extend(views.iter().map(|view| IdExpression { job: part(view), step: None }));
    }
    Ok(all)
}

/// Notes which jobs are put back as special exits, and which no longer are.
fn mark_special_exits(site: &mut Site, targets: &[Target], variant: Variant) -> Result<(), Failure> {
    let key = job_key(SPECIAL_EXIT);
    for target in targets {
        let is_special = variant == Variant::SpecialExit;
        let was_special = match site.detail(target.job)? {
            Some(detail) => detail.spec.attributes.contains_key(&key),
            None => continue,
        };
        if is_special == was_special {
            continue;
        }
        let value = if is_special { SET.to_owned() } else { String::new() };
        let change = JobChange { attributes: [(key.clone(), value)].into(), ..JobChange::default() };
        let request = ModifyRequest { jobs: JobSelection::Ids(vec![target.job]), change };
        site.client.modify(CommandId::new_now(), &request).map_err(|error| site.failure(&error))?;
    }
    Ok(())
}

/// `scontrol completing`: the jobs whose resources are being released.
fn completing(site: &mut Site) -> Ended {
    let views = site.current(None, None, false)?;
    let mut records = site.records(views, false)?;
    records.retain(|record| record.state == State::Completing);
    print(&records.iter().map(|record| scontrol::completing(record, &site.clock)).collect::<String>());
    Ok(0)
}

/// A message for a running job is appended to its script's standard error.
fn notify(site: &mut Site, id: &IdExpression, message: &str) -> Ended {
    let failed = |text: &dyn std::fmt::Display| Failure::plain(format_args!("job notify failure: {text}"));
    let view = site.named(std::slice::from_ref(id))?.into_iter().next();
    let view = view.ok_or_else(|| failed(&"Invalid job id specified"))?;
    let job = id.job.single().filter(|job| job.index.is_some()).unwrap_or(view.id);
    let request = TellRequest { jobs: JobSelection::Ids(vec![job]), text: told(message) };
    site.client.tell(CommandId::new_now(), &request).map(|_| 0).map_err(|error| match error.code() {
        Some(ErrorCode::PermissionDenied) => failed(&"Access/permission denied"),
        Some(ErrorCode::Conflict) if view.outcome.is_some() => failed(&"Job/step already completing or completed"),
        Some(ErrorCode::Conflict) => failed(&"Job is pending execution"),
        Some(_) => failed(&error),
        None => site.failure(&error),
    })
}

fn write_script(site: &mut Site, id: &IdExpression, file: Option<&str>) -> Ended {
    let unknown = || Failure::plain("job script retrieval failed: Invalid job id specified");
    let number = super::site::number(&id.job);
    let view = site.named(std::slice::from_ref(id))?.into_iter().next().ok_or_else(unknown)?;
    let detail = site.detail(view.id)?.ok_or_else(unknown)?;
    if detail.redacted {
        return Err(Failure::plain("job script retrieval failed: Access/permission denied"));
    }
    let offset = match &id.job {
        JobPart::Component { offset, .. } => *offset as usize,
        _ if view.id.index.is_some() => 0,
        _ => usize::try_from(number - view.id.number).unwrap_or(usize::MAX),
    };
    if offset >= detail.spec.components.len() {
        return Err(unknown());
    }
    let text = script_of(&detail.spec, offset);
    let text = text.ok_or_else(|| Failure::plain("job script retrieval failed: Unspecified error"))?;
    let failed =
        |error: std::io::Error| Failure::plain(format_args!("job script retrieval failed: {}", os_text(&error)));
    match file {
        Some("-") => print(&text),
        named => {
            // A component's own number: the leader's script is a different one (SL-B-06).
            let job = match view.id.index {
                None => (view.id.number + offset as u64).to_string(),
                Some(_) => view.id.to_string(),
            };
            let path = named.map_or_else(|| format!("slurm-{job}.sh"), str::to_owned);
            let mut file = std::fs::File::create(&path).map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
            print(&format!("batch script for job {job} written to {path}\n"));
        }
    }
    Ok(0)
}

fn wait_job(site: &mut Site, id: &IdExpression) -> Ended {
    let unknown = || Failure::plain(format_args!("Invalid job id specified for job {id}"));
    let deadline_pause = std::time::Duration::from_millis(100);
    loop {
        let view = site.named(std::slice::from_ref(id))?.into_iter().next().ok_or_else(unknown)?;
        if view.started.is_some() {
            return Ok(0);
        }
        if view.outcome.is_some() {
            return Err(Failure::plain(format_args!("Job {id} ended before it started")));
        }
        std::thread::sleep(deadline_pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_owner_may_not_release_is_asked_for_where_it_is_set() {
        let none = Holds::default();
        let user = Holds { user: true, ..none };
        let (operator, system) = (Holds { operator: true, ..none }, Holds { system: true, ..none });
        assert_eq!(released(user, true), user);
        assert_eq!(released(operator, true), user.union(operator));
        assert_eq!(released(none, false), user.union(operator));
        assert_eq!(released(system, true), user.union(system));
    }
}
