//! What agents tell of the parts of runs that they have, and the files that come and go with them.

use crate::{
    agents::{archives::Piece, identity::Agent, unpacking},
    app::App,
    error::ApiError,
};
use bytes::Bytes;
use muster_schemas::{
    CommandId, JobId, PartId,
    agent::{AgentOutput, AgentReport, ArchiveProgress},
    command::{Command, Query, QueryAnswer},
    event::{EndCause, Owner},
    job::{JobSpec, StageIn},
    views::ErrorCode,
};
use std::sync::Arc;

/// The longest reason for an end, in bytes.
const MAX_REASON_BYTES: usize = 1_024;

/// The job whose part an agent has.
struct PartJob {
    job: JobId,
    owner: Arc<Owner>,
}

/// The job of a part on the agent's node. A part on another node, or one that no run has had yet, is a lie; one that is over
/// is not found.
async fn job_of(app: &App, agent: &Agent, part: PartId) -> Result<PartJob, ApiError> {
    app.reader.catch_up(None).await?;
    let found = app.reader.projection().read(|state| {
        let node = state.node_by_name(&agent.0).filter(|node| node.spec.is_pulled())?;
        let own = state.part_named(node.id, part).and_then(|(run, _)| state.job(run.job));
        Some(match own {
            Some(job) => Ok(PartJob { job: job.id, owner: job.owner.clone() }),
            None => Err(state.run(part.run()).is_some() || part.run() >= state.next_run()),
        })
    });
    match found {
        Some(Ok(job)) => Ok(job),
        Some(Err(true)) => Err(agent.lies(app, format!("it speaks of run {part}, which is not on its node")).await),
        Some(Err(false)) => Err(ApiError::not_found(format!("run {part} is over"))),
        None => Err(agent.lies(app, format!("node `{}` is not one whose agent asks", agent.0)).await),
    }
}

/// A part has started, or has ended. The files that it left are where they belong before its end is on record (OAR-K-07).
pub(crate) async fn report(app: &App, agent: &Agent, report: AgentReport) -> Result<(), ApiError> {
    agent.require_own(app, &report.host).await?;
    let part = report.part;
    let of = job_of(app, agent, part).await?;
    let Some(exit) = report.ended else {
        let id = CommandId::derived(&[b"agent started", agent.0.as_bytes(), &part.to_number().to_le_bytes()]);
        return agent.command(app, id, Command::NodeStarted { part }).await.map(drop);
    };
    if let EndCause::LaunchFailed(why) | EndCause::Lost(why) | EndCause::Aborted(why) = &exit.cause
        && why.len() > MAX_REASON_BYTES
    {
        return Err(ApiError::invalid(format!("the reason has more than {MAX_REASON_BYTES} bytes")));
    }
    if let Some(output) = &report.output {
        take_in(app, agent, part, &of, output).await?;
    }
    let id = CommandId::derived(&[b"agent ended", agent.0.as_bytes(), &part.to_number().to_le_bytes()]);
    agent.command(app, id, Command::NodeEnded { part, exit }).await?;
    app.archives.forget_output(&agent.0, part).await;
    Ok(())
}

/// Unpacks what a job has left, as its owner, in the folder that it was submitted in.
async fn take_in(app: &App, agent: &Agent, part: PartId, of: &PartJob, output: &AgentOutput) -> Result<(), ApiError> {
    let archive = app.archives.whole_output(&agent.0, part, output).await?;
    let spec = spec_of(app, of.job.whole()).await?;
    let unpacked = unpacking::unpack(&app.config, archive, &of.owner, &spec.working_directory).await;
    let Err(why) = unpacked else { return Ok(()) };
    app.archives.forget_output(&agent.0, part).await;
    let why = format!("the files of job {} are not taken: {why}", of.job);
    tracing::warn!(node = %agent.0, why, "an archive of an agent is refused");
    agent.note(app, &why).await;
    Err(ApiError::invalid(why))
}

async fn spec_of(app: &App, job: JobId) -> Result<Box<JobSpec>, ApiError> {
    match app.ledger.query(&Query::JobSpec { job }).await? {
        QueryAnswer::JobSpec(spec) => Ok(spec),
        other => Err(crate::reader::unexpected(&other)),
    }
}

/// A piece of the archive that an agent sends before it reports the end of a part.
pub(crate) async fn output_piece(
    app: &App,
    agent: &Agent,
    part: PartId,
    offset: u64,
    bytes: Bytes,
) -> Result<ArchiveProgress, ApiError> {
    job_of(app, agent, part).await?;
    let bytes = app.archives.add_output(&agent.0, part, offset, bytes).await?;
    Ok(ArchiveProgress { bytes })
}

/// A piece of the files that a job brings. Only the agent that has the job gets it.
pub(crate) async fn stage_in_piece(
    app: &App,
    agent: &Agent,
    (part, sum): (PartId, &str),
    offset: u64,
) -> Result<Piece, ApiError> {
    let of = job_of(app, agent, part).await?;
    let spec = spec_of(app, of.job.whole()).await?;
    let is_named = |archive: &StageIn| archive.sum == sum;
    if !spec.components.iter().filter_map(|one| one.launch.stage_in.as_ref()).any(is_named) {
        let why = format!("it asks for files that job {} does not bring", of.job);
        return Err(agent.lies(app, why).await);
    }
    match app.archives.piece(of.owner.uid, sum, offset).await? {
        Some(piece) => Ok(piece),
        None => Err(ApiError::new(ErrorCode::NotFound, format!("the files of job {} are not here", of.job))),
    }
}
