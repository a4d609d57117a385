//! How fast filters are called: `rate [SECONDS]`, for each figure; in a release build, on a machine that does nothing else.
//!
//! - The rate of bare fork, exec and wait of a program that does nothing, and of calls of the same program as a filter, in
//!   turns, so that both see the same machine; one at a time on each side, then two and four.
//! - The rate of verdicts of a persistent filter in Python that answers at once.

use bytes::Bytes;
use muster_filter_runner::{Call, Runner, RunnerConfig};
use muster_schemas::filter::{FilterForm, FilterSpec};
use std::{
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Answers every line at once.
const PERSISTENT: &str = "#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call['type'] == 'unload':
        break
    print(json.dumps({'id': call['id'], 'code': 0}), flush=True)
";
const NOTHING: &str = "/bin/true";
/// Bare calls and filter calls take turns, so long each.
const TURN: Duration = Duration::from_millis(500);

fn main() -> Result<(), Error> {
    muster_filter_runner::supervise_filters_if_asked();
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(10.0), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    let account = if nix::unistd::Uid::effective().is_root() { "nobody" } else { "" };
    let config = RunnerConfig { account: account.into(), scratch: scratch(folder.path()), ..RunnerConfig::default() };
    let runner = Arc::new(Runner::new(config)?);
    println!("{}", runner.account());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let script = install(folder.path(), "script", "#!/bin/sh\nexit 0\n")?;
    // A task of its own, as every call has one in the service.
    runtime.block_on(runtime.spawn(async move {
        for program in [NOTHING.to_owned(), script] {
            for lanes in [1, 2, 4] {
                executables(&runner, &program, lanes, seconds).await?;
            }
        }
        persistent(&runner, folder.path(), seconds).await
    }))??;
    Ok(())
}

/// In memory, where there is such a place.
fn scratch(otherwise: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.join("muster-filter-rate") } else { otherwise.join("scratch") }
}

async fn executables(runner: &Arc<Runner>, program: &str, lanes: usize, seconds: f64) -> Result<(), Error> {
    let call = Arc::new(call(program, FilterForm::Exec));
    filter_calls(runner, &call, lanes).await?;
    let (mut bare, mut filter) = (Rate::default(), Rate::default());
    while bare.time.as_secs_f64() < seconds {
        let begun = Instant::now();
        bare.calls += bare_calls(program, lanes)?;
        bare.time += begun.elapsed();
        let begun = Instant::now();
        filter.calls += filter_calls(runner, &call, lanes).await?;
        filter.time += begun.elapsed();
    }
    let (bare, filter) = (bare.per_second(), filter.per_second());
    let share = 100.0 * filter / bare;
    println!("{program}, {lanes} at a time: bare {bare:.0}/s, filter {filter:.0}/s, {share:.1} % (target: 80 %)");
    Ok(())
}

/// Calls on this many threads until the turn is over; how many.
fn bare_calls(program: &str, lanes: usize) -> io::Result<u32> {
    let begun = Instant::now();
    let lane = || {
        let mut calls = 0;
        while begun.elapsed() < TURN {
            bare_call(program)?;
            calls += 1;
        }
        Ok(calls)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a lane broke")))).sum()
    })
}

/// Calls of this many tasks until the turn is over; how many.
async fn filter_calls(runner: &Arc<Runner>, call: &Arc<Call>, lanes: usize) -> Result<u32, Error> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..lanes {
        let (runner, call) = (runner.clone(), call.clone());
        tasks.spawn(async move {
            let (begun, mut calls) = (Instant::now(), 0);
            while begun.elapsed() < TURN {
                let answer = runner.run(&call).await?;
                if answer.result.code() != Some(0) {
                    return Err(Error::from(answer.result.to_string()));
                }
                calls += 1;
            }
            Ok(calls)
        });
    }
    tasks.join_all().await.into_iter().sum()
}

/// The cheapest way that there is: the standard library needs no copy of this process for it. The environment is as for
/// filters, as programs load what `LANG` says.
fn bare_call(program: &str) -> io::Result<()> {
    let environment = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TZ", "UTC")];
    let status = Command::new(program).arg("job.xml").env_clear().envs(environment).status()?;
    status.success().then_some(()).ok_or_else(|| io::Error::other(status.to_string()))
}

async fn persistent(runner: &Runner, folder: &Path, seconds: f64) -> Result<(), Error> {
    let call = call(&install(folder, "persistent", PERSISTENT)?, FilterForm::Persistent);
    runner.run(&call).await?;
    let mut rate = Rate::default();
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < seconds {
        let answer = runner.run(&call).await?;
        assert_eq!(answer.result.code(), Some(0), "{answer:?}");
        rate.calls += 1;
    }
    rate.time = begun.elapsed();
    println!("persistent filter, 1 at a time: {:.0} verdicts/s (target: 5,000)", rate.per_second());
    Ok(())
}

fn install(folder: &Path, name: &str, text: &str) -> io::Result<String> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

fn call(path: &str, form: FilterForm) -> Call {
    let document = Bytes::from_static(
        b"<Job Name=\"rate\" MinCores=\"1\" MaxCores=\"4\"><Tasks><Task CommandLine=\"true\"/></Tasks></Job>",
    );
    Call::trial(
        FilterSpec { name: "rate".into(), path: path.to_owned(), form, revert_on_unknown: false },
        15,
        document,
        None,
    )
}

#[derive(Default)]
struct Rate {
    calls: u32,
    time: Duration,
}

impl Rate {
    fn per_second(&self) -> f64 {
        f64::from(self.calls) / self.time.as_secs_f64()
    }
}
