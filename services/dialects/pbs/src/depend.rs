//! Dependencies: `-W depend=afterok:12:13,afterany:14[]`.

use crate::{job_id::PbsJobId, refusal::Refusal, text::decimal};
use muster_schemas::job::{Dependencies, Dependency, DependencyKind};

/// The longest text of a job's dependencies.
const MOST_BYTES: usize = 65_536;
/// The most jobs that a job depends on.
const MOST_JOBS: usize = 10_000;

/// Words for one condition on each job of a list. TORQUE has a second word for arrays.
const KINDS: [(&str, &str, DependencyKind); 8] = [
    ("after", "afterstartarray", DependencyKind::Started),
    ("afterok", "afterokarray", DependencyKind::Succeeded),
    ("afternotok", "afternotokarray", DependencyKind::Failed),
    ("afterany", "afteranyarray", DependencyKind::Ended),
    ("before", "beforestartarray", DependencyKind::BeforeStarted),
    ("beforeok", "beforeokarray", DependencyKind::BeforeSucceeded),
    ("beforenotok", "beforenotokarray", DependencyKind::BeforeFailed),
    ("beforeany", "beforeanyarray", DependencyKind::BeforeEnded),
];

/// Reads the value of `depend`. All conditions must be met.
///
/// # Errors
/// The part that is wrong or not supported.
pub fn parse(text: &str) -> Result<Dependencies, Refusal> {
    let mut all_of = Vec::new();
    if text.len() > MOST_BYTES {
        return Err(Refusal::value("-W depend", text, format!("at most {MOST_BYTES} bytes are taken")));
    }
    for clause in text.split(',').map(str::trim) {
        let (word, jobs) = clause.split_once(':').unwrap_or((clause, ""));
        all_of.extend(conditions(word, jobs)?.into_iter().map(|condition| vec![condition]));
        if all_of.len() > MOST_JOBS {
            return Err(Refusal::value("-W depend", text, format!("at most {MOST_JOBS} conditions are taken")));
        }
    }
    Ok(Dependencies { all_of })
}

/// The jobs that the value of `depend` names, each as it is written there.
pub fn named(text: &str) -> impl Iterator<Item = PbsJobId> + '_ {
    text.split(',').flat_map(|clause| clause.split(':').skip(1)).filter_map(|id| id.trim().parse().ok())
}

fn conditions(word: &str, jobs: &str) -> Result<Vec<Dependency>, Refusal> {
    if word == "on" {
        let count = decimal::<u32>(jobs).filter(|count| *count > 0);
        let count = count.ok_or_else(|| Refusal::value("-W depend", jobs, "on: takes a number from 1"))?;
        return Ok(vec![Dependency { kind: DependencyKind::Count(count), job: None, delay_seconds: 0 }]);
    }
    if matches!(word, "synccount" | "syncwith" | "runone") {
        let why = "jobs that must start or be chosen together are submitted as one job with several chunks";
        return Err(Refusal::unsupported(&format!("-W depend={word}"), why));
    }
    let kind = KINDS.iter().find(|(plain, array, _)| *plain == word || *array == word).map(|(.., kind)| *kind);
    let Some(kind) = kind else {
        let known = "expected after, afterok, afternotok, afterany, before, beforeok, beforenotok, beforeany or on";
        return Err(Refusal::value("-W depend", word, known));
    };
    if jobs.is_empty() {
        return Err(Refusal::value("-W depend", word, "the job is missing, as in afterok:123"));
    }
    let ids = jobs.split(':').map(|id| id.parse::<PbsJobId>().map_err(|wrong| wrong.of_option("-W depend")));
    let conditions = ids.map(|id| {
        let id = id?;
        let job = id.single().ok_or_else(|| {
            Refusal::value("-W depend", jobs, "a condition is on one job, array or task: repeat it for each task")
        })?;
        Ok(Dependency { kind, job: Some(job), delay_seconds: 0 })
    });
    conditions.collect()
}
