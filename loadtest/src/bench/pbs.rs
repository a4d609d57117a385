//! The commands of the PBS dialect. Nodes are drained, so that only the commands are measured.

use super::{
    Bench,
    commands::{BULK, Links, wait},
    figure::Figure,
};
use crate::api;
use anyhow::Result;

/// Jobs that wait while `qstat` is measured.
const WAITING: usize = 100_000;

/// `qsub` repeatedly; `qstat` of all jobs and of one job, with many waiting.
pub async fn commands(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    api::drain_all_nodes(&mut running.system.connect().await?, 1).await?;
    let links = Links::make(&running)?;
    let qsub = links.command("qsub", &["--", "/bin/true"]);
    let mut figures = vec![links.rate(qsub, "`qsub -- /bin/true`, one after the other", bench.count(2_000)).await?];
    let waiting = bench.count(WAITING).next_multiple_of(BULK);
    let job = wait(&running, waiting).await?.to_string();
    figures.push(links.list(bench, "qstat", &[], "whole list", waiting).await?);
    let what = format!("`qstat -f JOB` with {waiting} waiting jobs");
    figures.extend(links.single(bench, "qstat", &["-f", &job], &what).await?);
    running.system.stop()?;
    Ok(figures)
}
