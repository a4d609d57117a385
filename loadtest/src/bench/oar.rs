//! The commands of the OAR dialect. Nodes are drained, so that only the commands are measured.

use super::{
    Bench,
    commands::{BULK, Links, wait},
    figure::{Figure, quantile},
};
use crate::api;
use anyhow::Result;

/// `oarsub` one after the other: these jobs wait too.
const SUBMITTED: usize = 2_000;
/// Jobs that wait while `oarstat` is measured.
const WAITING: usize = 10_000;
/// Jobs of an array.
const ARRAY: usize = 1_000;
/// Arrays.
const ARRAYS: usize = 20;

/// `oarsub` repeatedly; `oarstat` of all jobs and of one job, with many waiting; arrays.
pub async fn commands(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    api::drain_all_nodes(&mut running.system.connect().await?, 1).await?;
    let links = Links::make(&running)?;
    let submitted = bench.count(SUBMITTED);
    let oarsub = links.command("oarsub", &["/bin/true"]);
    let mut figures = vec![links.rate(oarsub, "`oarsub /bin/true`, one after the other", submitted).await?];
    let more = bench.count(WAITING - SUBMITTED).next_multiple_of(BULK);
    let (waiting, job) = (submitted + more, wait(&running, more).await?.to_string());
    let mut times = links.times("oarstat", &[], bench.count(20), waiting).await?;
    let measure = format!("`oarstat` with {waiting} waiting jobs, to a file, p50");
    figures.push(Figure::time(measure, quantile(&mut times, 0.5), 100.0));
    let what = format!("`oarstat -j ID` with {waiting} waiting jobs");
    figures.extend(links.single(bench, "oarstat", &["-j", &job], &what).await?);
    let size = bench.count(ARRAY);
    let array = ["--array", &size.to_string(), "/bin/true"];
    let mut times = links.times("oarsub", &array, bench.count(ARRAYS), size).await?;
    for (which, part) in [("p50", 0.5), ("p99", 0.99)] {
        let measure = format!("`oarsub --array {size}`, durable, {which}");
        figures.push(Figure::time(measure, quantile(&mut times, part), 5.0));
    }
    running.system.stop()?;
    Ok(figures)
}
