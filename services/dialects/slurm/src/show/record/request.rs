//! The request of a component, in the words of the dialect.

use super::{
    ArrayTasks, JobRecord,
    requested::{MinMemory, RequestRecord},
};
use crate::{
    attributes::{self, Attributes},
    duration, features, output, size,
};
use muster_schemas::{
    job::{Component, Dependency, DependencyKind, JobSpec, Program},
    resources::{Alternative, Count, Gpus, Level, NodeFilter, Per, PropertyValue, Relation, Request, Sharing},
    views::{DependencyWord, JobDetail},
};

/// How an option about GPUs is shown.
struct OfTres {
    key: &'static str,
    option: &'static str,
    /// The text before its value.
    prefix: &'static str,
}

impl OfTres {
    fn text(&self, value: &str) -> String {
        let value = match self.option {
            "mem-per-gpu" => size::parse_megabytes(value).map(|megabytes| megabytes.to_string()),
            _ => None,
        }
        .unwrap_or_else(|| value.to_owned());
        let parts: Vec<String> = value.split(',').map(|part| format!("{}{part}", self.prefix)).collect();
        parts.join(",")
    }
}

const fn of_tres(key: &'static str, option: &'static str, prefix: &'static str) -> OfTres {
    OfTres { key, option, prefix }
}

/// In the order of the output.
const OF_TRES: [OfTres; 8] = [
    of_tres("CpusPerTres", "cpus-per-gpu", "gres/gpu:"),
    of_tres("MemPerTres", "mem-per-gpu", "gres/gpu:"),
    of_tres("TresBind", "gpu-bind", "gpu:"),
    of_tres("TresFreq", "gpu-freq", "gpu:"),
    of_tres("TresPerJob", "gpus", "gres/gpu:"),
    of_tres("TresPerNode", "gpus-per-node", "gres/gpu:"),
    of_tres("TresPerSocket", "gpus-per-socket", "gres/gpu:"),
    of_tres("TresPerTask", "gpus-per-task", "gres/gpu:"),
];

/// A list of `--gres` in the form in which it is shown: `gres/gpu:2,gres/gpu:a100:1`.
fn of_gres(list: &str) -> String {
    let plain =
        |part: &str| part.strip_prefix("gres/").or_else(|| part.strip_prefix("gres:")).unwrap_or(part).to_owned();
    let parts: Vec<String> = list.split(',').map(|part| format!("gres/{}", plain(part))).collect();
    parts.join(",")
}

impl RequestRecord {
    /// The resources that it asks for on each node, by `--gres` and `--gpus-per-node`; `None` without any.
    pub fn tres_per_node(&self) -> Option<String> {
        let gpus = self.tres.iter().filter(|(key, _)| *key == "TresPerNode").map(|(_, text)| text.clone());
        let parts: Vec<String> = self.gres.as_deref().map(of_gres).into_iter().chain(gpus).collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }

    /// Shown if the request was not fetched.
    pub(super) const NONE: Self = Self {
        min_nodes: 1,
        max_nodes: 0,
        cpus_per_task: 1,
        min_cpus: 0,
        tasks_per_node: 0,
        memory: None,
        tmp_megabytes: 0,
        features: None,
        licences: None,
        dependency: None,
        gres: None,
        qos: None,
        container: None,
        tres: Vec::new(),
        required_nodes: Vec::new(),
        excluded_nodes: Vec::new(),
        oversubscribe: "OK",
        is_contiguous: false,
        switches: None,
        nice: 0,
        time_min_seconds: None,
        deadline: None,
        is_requeued: true,
        is_batch: true,
        command: None,
        work_dir: String::new(),
        is_reboot: false,
        has_files: true,
        stdout: String::new(),
        stderr: String::new(),
        stdin: String::new(),
        comment: None,
        admin_comment: None,
        extra: None,
        wckey: None,
        network: None,
        burst_buffer: None,
        mail_type: None,
        mail_user: None,
        submit_host: None,
        submit_session: None,
        submit_line: None,
    };

    /// Another user's job has no paths, and defaults would be wrong.
    pub(super) fn without_paths(self) -> Self {
        Self { work_dir: String::new(), stdout: String::new(), stderr: String::new(), stdin: String::new(), ..self }
    }

    /// The request of the component at an offset; `record` is its line.
    pub(super) fn of(detail: &JobDetail, offset: usize, record: &JobRecord) -> Self {
        use attributes::{component as of_component, job as of_job};
        let spec = &detail.spec;
        let Some(component) = spec.components.get(offset) else { return Self::NONE };
        let attributes = Attributes(&spec.attributes);
        let job = |name| attributes.job(name).map(str::to_owned);
        let own = |name| attributes.component(offset, name).map(str::to_owned);
        let asked = Asked::of(component);
        let alternative = component.alternatives.first();
        let request = alternative.and_then(|alternative| alternative.requests.first());
        let has_files = !matches!(attributes.job(of_job::KIND), Some(of_job::SALLOC | of_job::SRUN));
        let (stdout, stderr, stdin) = if has_files { streams(spec, component, record) } else { Default::default() };
        Self {
            min_nodes: asked.nodes,
            max_nodes: asked.max_nodes,
            cpus_per_task: request.map_or(1, |request| request.cpus_per_task),
            min_cpus: own(of_component::MINCPUS).and_then(|text| text.parse().ok()).unwrap_or(0),
            tasks_per_node: request.and_then(|request| request.tasks_per_node).unwrap_or(0),
            memory: request.and_then(min_memory),
            tmp_megabytes: own(of_component::TMP).and_then(|text| size::parse_megabytes(&text)).unwrap_or(0),
            features: own(of_component::CONSTRAINT)
                .or_else(|| request.and_then(|request| request.filter.as_ref()).and_then(constraint)),
            licences: own(of_component::LICENSES).or_else(|| alternative.and_then(licences)),
            dependency: dependencies(component, detail.dependencies.get(offset), record),
            gres: own(of_component::GRES),
            qos: component.class.clone(),
            container: component.launch.container.clone(),
            tres: OF_TRES.iter().filter_map(|tres| Some((tres.key, tres.text(&own(tres.option)?)))).collect(),
            required_nodes: request.map(|request| request.nodes.clone()).unwrap_or_default(),
            excluded_nodes: request.map(|request| request.excluded_nodes.clone()).unwrap_or_default(),
            oversubscribe: oversubscribe(request, own(of_component::OVERSUBSCRIBE).is_some()),
            is_contiguous: alternative.is_some_and(|alternative| alternative.contiguous),
            switches: alternative.and_then(|alternative| alternative.groups.clone()),
            nice: own(of_component::NICE).and_then(|text| text.parse().ok()).unwrap_or(0),
            time_min_seconds: own(of_component::TIME_MIN).and_then(|text| duration::parse_seconds(&text)),
            deadline: component.deadline,
            is_requeued: own(of_component::NO_REQUEUE).is_none(),
            // The script belongs to the whole job, although it runs on the first component.
            is_batch: matches!(spec.components.first().map(|lead| &lead.launch.program), Some(Program::Script { .. })),
            command: job(of_job::COMMAND),
            work_dir: spec.working_directory.clone(),
            is_reboot: own(of_component::REBOOT).is_some(),
            has_files,
            stdout,
            stderr,
            stdin,
            comment: own(of_component::COMMENT),
            admin_comment: own(of_component::ADMIN_COMMENT),
            extra: own(of_component::EXTRA),
            wckey: own(of_component::WCKEY),
            network: own(of_component::NETWORK),
            burst_buffer: own(of_component::BURST_BUFFER),
            mail_type: own(of_component::MAIL_TYPE),
            mail_user: own(of_component::MAIL_USER),
            submit_host: job(of_job::SUBMIT_HOST),
            submit_session: job(of_job::SUBMIT_SESSION),
            submit_line: job(of_job::SUBMIT_LINE),
        }
    }
}

/// The size that a component asks for, by its first alternative.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    pub(super) nodes: u32,
    pub(super) max_nodes: u32,
    pub(super) tasks: u32,
    pub(super) cpus: u64,
    pub(super) gpus: u64,
    pub(super) limit_seconds: Option<u64>,
}

impl Asked {
    pub(super) fn of(component: &Component) -> Self {
        let Some(alternative) = component.alternatives.first() else {
            return Self { nodes: 1, tasks: 1, cpus: 1, ..Self::default() };
        };
        let limit_seconds = duration::limit_seconds(alternative.walltime_seconds);
        let start = Self { limit_seconds, ..Self::default() };
        if alternative.requests.is_empty() {
            return Self { nodes: 1, tasks: 1, cpus: 1, ..start };
        }
        alternative.requests.iter().fold(start, |sum, request| sum.plus(request))
    }

    fn plus(self, request: &Request) -> Self {
        let (mut nodes, mut max_nodes, mut cores, mut product) = (1u32, 1u32, 0u64, 1u64);
        for part in &request.path {
            let (least, most) = match part.count {
                Count::Range { min, max } => (min, max),
                Count::All | Count::Best | Count::BestHalf => (1, 1),
            };
            product = product.saturating_mul(u64::from(least));
            match part.level {
                Level::Group(_) | Level::Node => {
                    (nodes, max_nodes) = (u32::try_from(product).unwrap_or(u32::MAX), most);
                }
                Level::Core => cores = product,
                Level::Socket | Level::Gpu => {}
            }
        }
        let tasks = request.tasks.unwrap_or(nodes);
        let cpus = cores.max(u64::from(tasks) * u64::from(request.cpus_per_task));
        let of_model = |gpus: &Gpus| {
            let units = match gpus.per {
                Per::Node => u64::from(nodes),
                Per::Task => u64::from(tasks),
                Per::Core => cpus,
                Per::Gpu | Per::Request => 1,
            };
            units.saturating_mul(gpus.count.into())
        };
        let gpus = request.all_gpus().map(of_model).fold(0, u64::saturating_add);
        Self {
            nodes: self.nodes.saturating_add(nodes),
            max_nodes: self.max_nodes.saturating_add(if max_nodes > nodes { max_nodes } else { 0 }),
            tasks: self.tasks.saturating_add(tasks),
            cpus: self.cpus.saturating_add(cpus),
            gpus: self.gpus.saturating_add(gpus),
            limit_seconds: self.limit_seconds,
        }
    }
}

pub(crate) fn min_memory(request: &Request) -> Option<MinMemory> {
    let memory = request.memory?;
    let megabytes = size::megabytes_of(memory.bytes);
    Some(match memory.per {
        Per::Core => MinMemory::PerCpu(megabytes),
        Per::Task => MinMemory::PerCpu(megabytes / u64::from(request.cpus_per_task.max(1))),
        Per::Node | Per::Gpu | Per::Request => MinMemory::PerNode(megabytes),
    })
}

fn licences(alternative: &Alternative) -> Option<String> {
    let texts: Vec<String> = alternative.licences.iter().map(|(name, count)| format!("{name}:{count}")).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

fn oversubscribe(request: Option<&Request>, is_asked: bool) -> &'static str {
    match request.map(|request| request.sharing) {
        Some(Sharing::Exclusive | Sharing::WholeNodes) => "NO",
        _ if is_asked => "YES",
        _ => "OK",
    }
}

/// A node filter as a constraint, without the part from `--mincpus`.
pub(crate) fn constraint(filter: &NodeFilter) -> Option<String> {
    features::without_other_options(filter).as_ref().map(filter_text)
}

/// A node filter in the form of features: `a&b`, `a|b`.
fn filter_text(filter: &NodeFilter) -> String {
    let join = |parts: &[NodeFilter], by: &str| parts.iter().map(filter_text).collect::<Vec<_>>().join(by);
    match filter {
        NodeFilter::Has(name) => name.clone(),
        NodeFilter::All(parts) => join(parts, "&"),
        NodeFilter::Any(parts) => join(parts, "|"),
        NodeFilter::Not(part) => format!("!{}", filter_text(part)),
        NodeFilter::Compare { property, relation, value } => {
            let relation = match relation {
                Relation::Equal => "=",
                Relation::NotEqual => "!=",
                Relation::Less => "<",
                Relation::LessOrEqual => "<=",
                Relation::Greater => ">",
                Relation::GreaterOrEqual => ">=",
            };
            let value = match value {
                PropertyValue::Flag(flag) => flag.to_string(),
                PropertyValue::Number(number) => number.to_string(),
                PropertyValue::Text(text) => text.clone(),
            };
            format!("{property}{relation}{value}")
        }
    }
}

/// Why a job waits if one of its dependencies can never be met.
const NEVER_MET: &str = "DependencyNeverSatisfied";

/// The unmet dependencies of a waiting component, and which of them can never be met (SL-C-19).
fn dependencies(
    component: &Component,
    standing: Option<&Vec<Vec<DependencyWord>>>,
    record: &JobRecord,
) -> Option<String> {
    if !record.state.is_pending() {
        return None;
    }
    let all_of = &component.dependencies.all_of;
    // If there is only one, the reason is about it.
    let is_only = record.reason_word() == NEVER_MET && all_of.iter().map(Vec::len).sum::<usize>() == 1;
    let stands = |group: usize, place: usize| standing.and_then(|groups| groups.get(group)?.get(place)).copied();
    let text = |group: usize, place: usize, one: &Dependency| {
        let is_failed = is_only || stands(group, place) == Some(DependencyWord::Never);
        dependency(one, if is_failed { "failed" } else { "unfulfilled" })
    };
    let shown = |(at, group): (usize, &Vec<Dependency>)| {
        let is_met = (0..group.len()).any(|place| stands(at, place) == Some(DependencyWord::Met));
        let all = group.iter().enumerate().filter(|_| !is_met);
        let texts: Vec<String> = all.filter_map(|(place, one)| text(at, place, one)).collect();
        (!texts.is_empty()).then(|| texts.join("?"))
    };
    let groups: Vec<String> = all_of.iter().enumerate().filter_map(shown).collect();
    (!groups.is_empty()).then(|| groups.join(","))
}

fn dependency(dependency: &Dependency, standing: &str) -> Option<String> {
    let kind = match dependency.kind {
        DependencyKind::Started => "after",
        // Slurm has no word for an end that is not the failure of a program.
        DependencyKind::Ended | DependencyKind::NotFailed => "afterany",
        DependencyKind::Succeeded => "afterok",
        DependencyKind::Failed => "afternotok",
        DependencyKind::SameIndexSucceeded => "aftercorr",
        DependencyKind::Running => "expand",
        DependencyKind::Singleton => return Some(format!("singleton({standing})")),
        DependencyKind::BeforeStarted
        | DependencyKind::BeforeEnded
        | DependencyKind::BeforeSucceeded
        | DependencyKind::BeforeFailed
        | DependencyKind::Count(_) => return None,
    };
    let job = dependency.job?;
    let delay = match dependency.delay_seconds {
        0 => String::new(),
        seconds => format!("+{}", seconds.div_ceil(60)),
    };
    Some(format!("{kind}:{job}{delay}({standing})"))
}

/// Standard output, error and input, with their patterns expanded as far as possible now. Output without a name gets
/// the core's default name for jobs of other front ends.
fn streams(spec: &JobSpec, component: &Component, record: &JobRecord) -> (String, String, String) {
    let facts = output_facts(record);
    let path = |pattern: &str| absolute(&spec.working_directory, &output::expand(pattern, &facts));
    let default = if record.array.is_some() { "muster-%A_%a.out" } else { "muster-%j.out" };
    let launch = &component.launch;
    let stdout = path(launch.stdout.as_deref().unwrap_or(default));
    let stderr = launch.stderr.as_deref().map_or_else(|| stdout.clone(), path);
    let stdin = launch.stdin.as_deref().map_or_else(|| "/dev/null".to_owned(), path);
    (stdout, stderr, stdin)
}

fn output_facts(record: &JobRecord) -> output::Facts {
    let index = match record.array.as_ref().map(|array| &array.tasks) {
        Some(ArrayTasks::One(index)) => Some(*index),
        Some(ArrayTasks::Waiting(waiting)) => waiting.first(),
        None => None,
    };
    output::Facts {
        job: record.number,
        array: record.array_number(),
        index,
        step: "batch".to_owned(),
        node: record.nodes.first().cloned().unwrap_or_else(|| "%N".to_owned()),
        node_rank: 0,
        task: 0,
        restarts: record.restarts,
        user: record.user.clone(),
        name: record.name.clone(),
    }
}

fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') || directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") }
}
