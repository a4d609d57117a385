//! `muster rsh`: starts a command on another node of the job that it runs in, as `rsh` does, for launchers of parallel
//! programs that reach nodes by name (SL-W-07). It works inside a job alone, on the nodes of that job alone, and what it
//! starts ends with the job.

use super::step;
use crate::{
    cli::{ConnectionOptions, RshOptions},
    exit::{CommandResult, Failure},
};
use muster_client::Moment;
use muster_schemas::{
    resources::IndexSet,
    steps::{StepGroup, StepInput, StepOutput, StepPlace, StepProgram, StepSpec, StepStreams},
    views::{JobDetail, RunNodeView},
};

/// Runs the command, with its input and output here, and returns its status.
pub fn rsh(connection: &ConnectionOptions, options: RshOptions) -> CommandResult {
    let job = options.job.ok_or_else(|| Failure::failed("it works inside a job, where MUSTER_JOB_ID is set"))?;
    let mut client = connection.patient_client()?;
    let detail = client.job(job, Moment::Now)?;
    if let Some(user) = options.user.filter(|user| *user != detail.job.owner) {
        return Err(Failure::failed(format!("job {job} is not a job of user `{user}`")));
    }
    let node = node_of(&detail, &options.host)?;
    let stdin = if options.no_input { StepInput::Nothing } else { StepInput::Task(0) };
    step::attended(client, job, &spec(node, &options.words, stdin))
}

fn node_of<'a>(detail: &'a JobDetail, host: &str) -> Result<&'a RunNodeView, Failure> {
    let run = detail.runs.iter().rev().find(|run| run.ended.is_none());
    let node = run.and_then(|run| run.nodes.iter().find(|node| node.node == host));
    node.ok_or_else(|| Failure::failed(format!("`{host}` is not a node of job {}", detail.job.id)))
}

/// The words are a line for a shell, as `rsh` takes them. It may use all that the job has on the node.
fn spec(node: &RunNodeView, words: &[String], stdin: StepInput) -> StepSpec {
    let first = IndexSet::first_n(1);
    let argv = ["/bin/sh".to_owned(), "-c".to_owned(), words.join(" ")].into();
    let place = StepPlace {
        node: node.node.clone(),
        ranks: first.clone(),
        cores: Some(u32::try_from(node.cores.len()).unwrap_or(u32::MAX)),
    };
    let group = StepGroup {
        component: node.component,
        places: vec![place],
        programs: vec![StepProgram { ranks: first, argv }],
        ..StepGroup::default()
    };
    StepSpec {
        name: "rsh".to_owned(),
        groups: vec![group],
        streams: StepStreams { stdin, stderr: Some(StepOutput::Client), ..StepStreams::default() },
        overlaps: true,
        ..StepSpec::default()
    }
}
