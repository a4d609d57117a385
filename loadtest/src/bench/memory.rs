//! How much memory a system needs.

use super::{
    Bench,
    figure::{Figure, Target},
};
use crate::api;
use anyhow::{Context as _, Result};
use std::{collections::BTreeMap, fs, time::Duration};

/// Jobs that wait.
const JOBS: usize = 200_000;
/// Jobs in a request.
const BULK: usize = 1_000;
/// A system without work for this long is idle.
const SETTLE: Duration = Duration::from_secs(8);

/// An idle system of four nodes, and what each waiting job adds to it: the sum over its processes of their proportional
/// share of pages (PSS).
pub async fn memory(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(4, 8)?;
    let pid = running.system.pid();
    tokio::time::sleep(SETTLE).await;
    let idle = bytes_of_tree(pid)?;

    let mut connection = running.system.connect().await?;
    api::drain_all_nodes(&mut connection, 4).await?;
    let jobs: Vec<_> = (0..BULK).map(|number| api::command_job(&format!("wait-{number}"), &["/bin/true"])).collect();
    let body = api::submission(jobs)?;
    let requests = bench.count(JOBS / BULK);
    for _ in 0..requests {
        api::submit_body(&mut connection, body.clone()).await?;
    }
    tokio::time::sleep(SETTLE).await;
    let loaded = bytes_of_tree(pid)?;
    running.system.stop()?;
    let waiting = requests * BULK;
    Ok(vec![
        Figure {
            measure: "memory of an idle `muster up --nodes 4`, all its processes".to_owned(),
            value: idle as f64 / 1e6,
            unit: "MB",
            target: Target::AtMost(60.0),
        },
        Figure {
            measure: format!("memory for each waiting job, of {waiting}"),
            value: loaded.saturating_sub(idle) as f64 / waiting as f64,
            unit: "bytes",
            target: Target::AtMost(1024.0),
        },
    ])
}

/// The proportional set size of a process and all its descendants.
fn bytes_of_tree(root: u32) -> Result<u64> {
    let parents = parents()?;
    let in_tree = |mut pid: u32| loop {
        if pid == root {
            return true;
        }
        match parents.get(&pid) {
            Some(&parent) if parent != 0 => pid = parent,
            _ => return false,
        }
    };
    parents.keys().filter(|&&pid| in_tree(pid)).map(|&pid| proportional_bytes(pid)).sum()
}

/// The parent of every process.
fn parents() -> Result<BTreeMap<u32, u32>> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Skip a process that has gone meanwhile. State and parent follow the name, which may contain anything.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.insert(pid, parent.with_context(|| format!("/proc/{pid}/stat: no parent"))?);
    }
    Ok(parents)
}

fn proportional_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).with_context(|| format!("{path}: no Pss"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_its_parent_has_more() {
        let own = bytes_of_tree(std::process::id()).unwrap();
        assert!(own > 100_000, "{own}");
        assert_eq!(parents().unwrap()[&std::process::id()], std::os::unix::process::parent_id());
    }
}
