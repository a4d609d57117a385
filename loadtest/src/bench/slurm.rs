//! The commands of the Slurm dialect. Nodes are drained, so that only the commands are measured.

use super::{
    Bench,
    commands::{BULK, Links, wait},
    figure::Figure,
};
use crate::api;
use anyhow::Result;

/// Jobs that wait while `squeue` is measured.
pub(super) const WAITING: usize = 100_000;

/// `sbatch` repeatedly; `squeue` of all jobs and of one job, with many waiting.
pub async fn commands(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    api::drain_all_nodes(&mut running.system.connect().await?, 1).await?;
    let links = Links::make(&running)?;
    let sbatch = links.command("sbatch", &["--wrap", "true"]);
    let mut figures = vec![links.rate(sbatch, "`sbatch --wrap true`, one after the other", bench.count(2_000)).await?];
    let waiting = bench.count(WAITING).next_multiple_of(BULK);
    let job = wait(&running, waiting).await?.to_string();
    let own = ["-h", "-o", "%i|%j|%T|%u|%a|%Q|%r|%V"];
    for (what, options) in [("whole list", &[][..]), ("whole list in a format of one's own", &own[..])] {
        figures.push(links.list(bench, "squeue", options, what, waiting).await?);
    }
    let what = format!("`squeue -j ID` with {waiting} waiting jobs");
    figures.extend(links.single(bench, "squeue", &["-h", "-j", &job], &what).await?);
    running.system.stop()?;
    Ok(figures)
}
