//! The forms in which commands name jobs, components, array tasks and steps (SL-C-18, SL-M, SL-A).

use crate::options::values::number;
use muster_schemas::{
    ids::JobId,
    job::{Dependencies, Dependency, DependencyKind},
    resources::IndexSet,
};
use std::fmt;

/// The number of the component at an offset: components are numbered consecutively from the leader (SL-I-04).
pub const fn component_number(leader: u64, offset: u32) -> u64 {
    leader.saturating_add(offset as u64)
}

/// `het_job_id_set`: the numbers of all components of a job, `123-127` (SL-I-03).
pub fn component_set(leader: u64, components: u32) -> String {
    match components {
        0 | 1 => leader.to_string(),
        components => format!("{leader}-{}", component_number(leader, components - 1)),
    }
}

/// A job, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobPart {
    /// `J`: the job, array or component with this number.
    Number(u64),
    /// `L+n`: one component of a heterogeneous job (SL-I-05).
    Component {
        /// The number of the leader.
        leader: u64,
        /// The component's offset.
        offset: u32,
    },
    /// `A_i` or `A_[1-3,7%2]`: tasks of an array (SL-C-18).
    Tasks {
        /// The number of the array.
        array: u64,
        /// The indices.
        indices: IndexSet,
        /// The limit of simultaneous tasks, if given.
        max_running: Option<u32>,
    },
    /// `A_*`: every task of an array.
    AllTasks(u64),
}

/// A step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepName {
    /// A numbered step.
    Number(u32),
    /// The batch script.
    Batch,
    /// Work on the nodes outside the steps.
    Extern,
    /// The shell of an interactive allocation.
    Interactive,
}

/// A job, or one of its steps, as a command names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdExpression {
    /// The job or part of it.
    pub job: JobPart,
    /// The step, if one is named.
    pub step: Option<StepName>,
}

impl IdExpression {
    /// Reads `J`, `L+n`, `A_i`, `A_[1-3]`, each optionally followed by `.s`, `.batch` and so on; `None` for anything
    /// else.
    pub fn parse(text: &str) -> Option<Self> {
        let (job, step) = match text.split_once('.') {
            None => (text, None),
            Some((job, step)) => (job, Some(StepName::parse(step)?)),
        };
        Some(Self { job: JobPart::parse(job)?, step })
    }
}

impl StepName {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "batch" => Some(Self::Batch),
            "extern" => Some(Self::Extern),
            "interactive" => Some(Self::Interactive),
            text => number(text).map(Self::Number),
        }
    }
}

impl JobPart {
    /// Reads `J`, `L+n`, `A_i`, `A_[1-3%2]`, `A_*`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((leader, offset)) = text.split_once('+') {
            return Some(Self::Component { leader: job_number(leader)?, offset: number(offset)? });
        }
        let Some((array, tasks)) = text.split_once('_') else { return job_number(text).map(Self::Number) };
        let array = job_number(array)?;
        if tasks == "*" {
            return Some(Self::AllTasks(array));
        }
        let tasks = match tasks.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']')?,
            None => return Some(Self::Tasks { array, indices: single(number(tasks)?), max_running: None }),
        };
        let (indices, max_running) = match tasks.split_once('%') {
            None => (tasks, None),
            Some((indices, limit)) => (indices, Some(number(limit)?)),
        };
        let indices: IndexSet = indices.parse().ok().filter(|set: &IndexSet| !set.is_empty())?;
        Some(Self::Tasks { array, indices, max_running })
    }

    /// The model's id of a single job or task; `None` for a component or several tasks.
    pub fn single(&self) -> Option<JobId> {
        match self {
            Self::Number(number) | Self::AllTasks(number) => Some(JobId::job(*number)),
            Self::Tasks { array, indices, .. } if indices.len() == 1 => Some(JobId::task(*array, indices.first()?)),
            Self::Component { .. } | Self::Tasks { .. } => None,
        }
    }
}

fn single(index: u32) -> IndexSet {
    IndexSet::from_range(index, index)
}

fn job_number(text: &str) -> Option<u64> {
    number(text).filter(|number| *number > 0).map(u64::from)
}

/// The nodes of a job that get a copy of a file (SL-M-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastTarget {
    /// All nodes of all components.
    Job(u64),
    /// Those of one component.
    Component {
        /// The number of the leader.
        leader: u64,
        /// The component's offset.
        offset: u32,
    },
    /// Those of one step of a plain job.
    Step {
        /// The job's number.
        job: u64,
        /// The step.
        step: StepName,
    },
}

impl BroadcastTarget {
    /// The target of `sbcast --jobid`: for a heterogeneous job both `L.n` and `L+n` are component n, for a plain one
    /// `.n` is a step (D-9). `None` for tasks of arrays and for steps of components.
    pub fn of(id: &IdExpression, is_heterogeneous: bool) -> Option<Self> {
        match (&id.job, id.step) {
            (JobPart::Number(job), None) => Some(Self::Job(*job)),
            (JobPart::Number(leader), Some(StepName::Number(offset))) if is_heterogeneous => {
                Some(Self::Component { leader: *leader, offset })
            }
            (JobPart::Number(job), Some(step)) => Some(Self::Step { job: *job, step }),
            (JobPart::Component { leader, offset }, None) => Some(Self::Component { leader: *leader, offset: *offset }),
            _ => None,
        }
    }
}

/// Reads comma-separated ids; commas inside brackets belong to their id.
///
/// # Errors
/// The first part that is not an id.
pub fn list(text: &str) -> Result<Vec<IdExpression>, String> {
    let mut ids = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut inside = false;
        let end = rest.find(|c: char| {
            inside = (inside || c == '[') && c != ']';
            c == ',' && !inside
        });
        let (part, after) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
        ids.push(IdExpression::parse(part).ok_or_else(|| part.chars().take(80).collect::<String>())?);
        rest = after;
    }
    Ok(ids)
}

impl fmt::Display for JobPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Component { leader, offset } => write!(f, "{leader}+{offset}"),
            Self::AllTasks(array) => write!(f, "{array}_*"),
            Self::Tasks { array, indices, max_running } => match (indices.len(), indices.first(), max_running) {
                (1, Some(only), None) => write!(f, "{array}_{only}"),
                (_, _, None) => write!(f, "{array}_[{indices}]"),
                (_, _, Some(limit)) => write!(f, "{array}_[{indices}%{limit}]"),
            },
        }
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Batch => f.write_str("batch"),
            Self::Extern => f.write_str("extern"),
            Self::Interactive => f.write_str("interactive"),
        }
    }
}

impl fmt::Display for IdExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            None => self.job.fmt(f),
            Some(step) => write!(f, "{}.{step}", self.job),
        }
    }
}

/// The dependencies of `--dependency` (SL-C-19): `TYPE:ID[+MINUTES][:ID...]`, `singleton` or a bare id, separated by
/// `,` if all must be met or by `?` if one is enough. `None` for anything else.
pub fn dependencies(text: &str) -> Option<Dependencies> {
    let one_is_enough = text.contains('?');
    if one_is_enough && text.contains(',') {
        return None;
    }
    let conditions: Vec<Dependency> = text
        .split([',', '?'])
        .map(condition)
        .collect::<Option<Vec<Vec<Dependency>>>>()?
        .into_iter()
        .flatten()
        .collect();
    let all_of = if one_is_enough {
        vec![conditions]
    } else {
        conditions.into_iter().map(|condition| vec![condition]).collect()
    };
    Some(Dependencies { all_of })
}

/// One `TYPE:ID[:ID]`: a condition for each id.
fn condition(text: &str) -> Option<Vec<Dependency>> {
    if text.eq_ignore_ascii_case("singleton") {
        return Some(vec![Dependency { kind: DependencyKind::Singleton, job: None, delay_seconds: 0 }]);
    }
    let Some((word, ids)) = text.split_once(':') else {
        return Some(vec![on_job(DependencyKind::Ended, text)?]);
    };
    let kind = match word.to_ascii_lowercase().as_str() {
        "after" => DependencyKind::Started,
        // The model has no stage-out of its own: it has ended when the job has.
        "afterany" | "afterburstbuffer" => DependencyKind::Ended,
        "afterok" => DependencyKind::Succeeded,
        "afternotok" => DependencyKind::Failed,
        "aftercorr" => DependencyKind::SameIndexSucceeded,
        "expand" => DependencyKind::Running,
        _ => return None,
    };
    ids.split(':').map(|id| on_job(kind, id)).collect()
}

fn on_job(kind: DependencyKind, text: &str) -> Option<Dependency> {
    let (id, minutes) = match text.split_once('+') {
        None => (text, 0),
        Some((id, minutes)) if kind == DependencyKind::Started => (id, number(minutes)?),
        Some(_) => return None,
    };
    Some(Dependency { kind, job: Some(JobPart::parse(id)?.single()?), delay_seconds: minutes.checked_mul(60)? })
}
