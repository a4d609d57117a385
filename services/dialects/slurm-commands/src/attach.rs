//! `sattach` (SL-M-14): shows the output of a running step's tasks from now on.

use super::{Ended, print, site::Site, wanted};
use muster_cli::step::output::{Form, Lines};
use muster_client::{Moment, OutputReader, StepAddress};
use muster_schemas::{
    StepId,
    resources::IndexSet,
    step_io::Content,
    views::{StepDetail, StepNodeDetail},
};
use muster_slurm::{
    job_id::{IdExpression, JobPart, StepName},
    queries::{
        Failure,
        copy::{Sattach, sattach},
    },
    steps::layout_text,
};

/// Runs a command line of `sattach`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let Some(wish) = wanted(site, sattach(words)?) else { return Ok(0) };
    let step = find(site, &wish)?;
    let component = component(site, &wish.job)?;
    let parts: Vec<&StepNodeDetail> = step.nodes.iter().filter(|part| part.component == component).collect();
    if parts.is_empty() {
        return Err(invalid(&wish));
    }
    if wish.layout {
        let nodes: Vec<_> = parts.iter().map(|part| (part.node.clone(), part.ranks.clone())).collect();
        print(&layout_text(&nodes));
        return Ok(0);
    }
    let ranks = parts.iter().fold(IndexSet::new(), |ranks, part| ranks.union(&part.ranks));
    let width = wish.label.then(|| step.total_tasks.saturating_sub(1).to_string().len());
    let [_, only_output, only_error] = wish.filters;
    let is_shown = |rank: u32, only: Option<u32>| ranks.contains(rank) && only.is_none_or(|only| only == rank);
    let mut lines = Lines::new(Form::of(width, step.total_tasks, false));
    let mut reader = OutputReader::watching(StepAddress { job: step.job, run: step.run, step: step.step });
    let write = |error: std::io::Error| Failure::error("sattach", error);
    loop {
        let has_more = reader.read(&mut site.client, |frame| {
            let only = match frame.content {
                Content::Output(_) => only_output,
                Content::Error(_) => only_error,
                Content::Ended(_) => None,
            };
            if is_shown(frame.rank, only) {
                lines.take(frame);
            }
        });
        lines.flush().map_err(write)?;
        if !has_more.map_err(|error| site.failure(&error))? {
            lines.finish().map_err(write)?;
            return Ok(lines.highest_status());
        }
    }
}

fn invalid(wish: &Sattach) -> Failure {
    let step = match wish.step {
        StepName::Number(number) => number.to_string(),
        StepName::Batch => "batch".to_owned(),
        StepName::Extern => "extern".to_owned(),
        StepName::Interactive => "interactive".to_owned(),
    };
    Failure::error(
        "sattach",
        format_args!("Could not get job step info: Invalid job id specified: {}.{step}", wish.job),
    )
}

/// The running step, which has streams.
fn find(site: &mut Site, wish: &Sattach) -> Result<StepDetail, Failure> {
    let StepName::Number(number) = wish.step else { return Err(invalid(wish)) };
    let id = IdExpression { job: wish.job.clone(), step: None };
    let job = match site.named(&[id])?.as_slice() {
        [job] => job.id,
        _ => return Err(invalid(wish)),
    };
    let steps = site.client.steps(job, Moment::Now).map_err(|error| site.failure(&error))?.steps;
    // Steps count from 1 in the core, where 0 is the batch script.
    let wanted = StepId(number.saturating_add(1));
    let running = steps.into_iter().rev().find(|step| step.step == wanted && step.ended.is_none());
    running.ok_or_else(|| invalid(wish))
}

/// The named component: `L+n` and a component's own number name one, `L` names the first.
fn component(site: &mut Site, part: &JobPart) -> Result<u32, Failure> {
    let id = IdExpression { job: part.clone(), step: None };
    let leader = site.named(&[id])?.first().map_or(0, |job| job.id.number);
    Ok(match part {
        JobPart::Component { offset, .. } => *offset,
        JobPart::Number(number) => u32::try_from(number.saturating_sub(leader)).unwrap_or(u32::MAX),
        JobPart::Tasks { .. } | JobPart::AllTasks(_) => 0,
    })
}
