//! What filters cost: verdicts per second, and how long other jobs wait while filters hang.
//!
//! The jobs of counted verdicts are held: they pass their filters and then wait, so that nothing else is measured.

use super::{
    Bench,
    figure::{Figure, Target, quantile},
    running::{TRIVIAL, bare_rate},
};
use crate::{
    api::{self, PublicEvent},
    http::{Connection, EventStream},
    system::{self, System},
};
use anyhow::{Context as _, Result};
use muster_bus::testing::NatsServer;
use muster_schemas::{
    JobId, Timestamp,
    event::Intake,
    filter::{ActivationOrdering, FilterForm, FilterSettings, FilterSpec, TemplateSpec},
    job::JobSpec,
};
use std::{
    collections::HashMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Jobs in a request.
const BULK: usize = 500;
/// Simultaneous programs of each runner in the comparison: few, so that a machine with few cores can run four runners.
const SLOTS: usize = 4;
/// Filters that hang at the same time.
const HUNG: usize = 100;
/// Jobs without a filter that arrive meanwhile, and their number per second.
const OTHERS: usize = 10_000;
const OTHERS_PER_SECOND: u32 = 250;
/// How many of them go to one system before it is the other's turn.
const OTHERS_AT_A_TIME: usize = 500;
/// The template whose jobs have a filter that hangs.
const TEMPLATE: &str = "Hung";
/// Nothing that is waited for takes this long.
const WITHIN: Duration = Duration::from_secs(600);

/// A filter that answers one line with another.
const PERSISTENT: &str = "#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call['type'] == 'unload':
        break
    print(json.dumps({'id': call['id'], 'code': 0}), flush=True)
";

/// A program started for each submission, compared with the bare start of the same program in the same run.
pub async fn program(bench: &Bench) -> Result<Vec<Figure>> {
    let jobs = bench.count(10_000).next_multiple_of(BULK);
    let bare = tokio::task::spawn_blocking(move || bare_rate(jobs)).await??;
    let site = Site::new(bench, 64)?;
    let system = site.whole(1, 8)?;
    let rate = verdicts(&system, &submission(TRIVIAL, FilterForm::Exec), jobs).await?;
    system.stop()?;
    let measure = format!("one no-op program as submission filter, one runner, {jobs} jobs");
    let share = format!("{measure}: as a part of bare fork, exec and wait ({bare:.0}/s in the same run)");
    Ok(vec![
        Figure { measure, value: rate, unit: "verdicts/s", target: Target::AtLeast(bare * 0.8) },
        Figure { measure: share, value: rate / bare * 100.0, unit: "%", target: Target::AtLeast(80.0) },
    ])
}

/// A persistent filter.
pub async fn persistent(bench: &Bench) -> Result<Vec<Figure>> {
    let jobs = bench.count(50_000).next_multiple_of(BULK);
    let site = Site::new(bench, 16)?;
    let system = site.whole(1, 8)?;
    let program = site.program("persistent", PERSISTENT)?;
    let rate = verdicts(&system, &submission(&program, FilterForm::Persistent), jobs).await?;
    system.stop()?;
    let measure = format!("one persistent submission filter of one process, one runner, {jobs} jobs");
    Ok(vec![Figure { measure, value: rate, unit: "verdicts/s", target: Target::AtLeast(5_000.0) }])
}

/// Four runners against one, each a separate process, with a filter that only waits.
pub async fn scaling(bench: &Bench) -> Result<Vec<Figure>> {
    let jobs = bench.count(2_000).next_multiple_of(BULK);
    let mut rates = Vec::new();
    for runners in [1, 4] {
        let server = NatsServer::start();
        let site = Site::new(bench, SLOTS)?.on(&server)?;
        let system = site.roles(&["ledger", "gateway", "planner"], "system")?;
        let mut started = Vec::new();
        for number in 0..runners {
            started.push(site.roles(&["filter-runner"], &format!("runner{number}"))?);
        }
        let program = site.program("waits", "#!/bin/sh\nexec sleep 0.05\n")?;
        rates.push(verdicts(&system, &submission(&program, FilterForm::Exec), jobs).await?);
        for runner in started {
            runner.stop()?;
        }
        system.stop()?;
    }
    let [one, four] = rates[..] else { anyhow::bail!("two rates were to be measured") };
    let measure = format!(
        "four runners of {SLOTS} slots against one, on NATS, filter of 50 ms, {jobs} jobs ({one:.0}/s and {four:.0}/s)"
    );
    Ok(vec![Figure { measure, value: four / one, unit: "times", target: Target::AtLeast(3.8) }])
}

/// How long jobs without filters wait for their start while activation filters of other jobs hang: two systems take
/// turns, so that both find the machine in the same state. The result for each is the median of the p99s of its turns,
/// as one stall of the machine would decide the p99 of all turns together.
pub async fn hung(bench: &Bench) -> Result<Vec<Figure>> {
    let others = bench.count(OTHERS).next_multiple_of(OTHERS_AT_A_TIME);
    let (site, other_site) = (Site::new(bench, HUNG)?, Site::new(bench, HUNG)?);
    let systems = [site.whole(4, 64)?, other_site.whole(4, 64)?];
    for system in &systems {
        let settings = FilterSettings { ordering: ActivationOrdering::Relaxed, ..FilterSettings::default() };
        put(&mut system.connect().await?, "/v1/filters", &settings).await?;
    }
    hang(&other_site, &systems[1], HUNG).await.context("filters that hang")?;
    let mut p99s = [Vec::new(), Vec::new()];
    let other = api::command_job("other", &[TRIVIAL]);
    for _ in 0..others / OTHERS_AT_A_TIME {
        for (system, p99s) in systems.iter().zip(&mut p99s) {
            p99s.push(quantile(&mut starts(system, &other, OTHERS_AT_A_TIME, OTHERS_PER_SECOND).await?, 0.99));
        }
    }
    let [without, with] = p99s.each_mut().map(|p99s| quantile(p99s, 0.5));
    for system in systems {
        system.stop()?;
    }
    let measure = format!(
        "submit to start of {others} jobs without filters while {HUNG} filters hang, p99, as a part of that without them \
         ({:.1} ms and {:.1} ms)",
        without.as_secs_f64() * 1e3,
        with.as_secs_f64() * 1e3
    );
    let value = with.as_secs_f64() / without.as_secs_f64() * 100.0;
    Ok(vec![Figure { measure, value, unit: "%", target: Target::AtMost(105.0) }])
}

/// Submits this many jobs with a hanging activation filter, and waits until all filters are called.
async fn hang(site: &Site, system: &System, jobs: usize) -> Result<()> {
    let mut connection = system.connect().await?;
    let program = site.program("hangs", "#!/bin/sh\nexec sleep 1000\n")?;
    let hangs = filter(&program, FilterForm::Verbs);
    let template = TemplateSpec { name: TEMPLATE.into(), activation_filters: vec![hangs], ..TemplateSpec::default() };
    put(&mut connection, &format!("/v1/templates/{TEMPLATE}"), &template).await?;
    let path = api::events_from_now(&mut connection, "filter.invoked").await?;
    let mut invoked = system.connect().await?.events(&path).await?;
    for _ in 0..jobs {
        let intake = Intake { template: Some(TEMPLATE.into()), ..Intake::default() };
        let body = serde_json::json!({ "spec": api::command_job("hung", &[TRIVIAL]), "intake": intake });
        connection.post("/v1/jobs/described", serde_json::to_vec(&body)?.into()).await?;
    }
    for _ in 0..jobs {
        next(&mut invoked).await?;
    }
    Ok(())
}

/// The times from submission to start of jobs that come one by one.
pub(super) async fn starts(system: &System, job: &JobSpec, jobs: usize, per_second: u32) -> Result<Vec<Duration>> {
    let mut connection = system.connect().await?;
    let path = api::events_from_now(&mut connection, "job.submitted,job.started").await?;
    let events = system.connect().await?.events(&path).await?;
    let follower = tokio::spawn(waits(events, jobs));
    let body = api::submission(vec![job.clone()])?;
    let mut due = tokio::time::interval(Duration::from_secs(1) / per_second);
    for _ in 0..jobs {
        due.tick().await;
        api::submit_body(&mut connection, body.clone()).await?;
    }
    follower.await?
}

/// The times from submission to start.
async fn waits(mut events: EventStream, jobs: usize) -> Result<Vec<Duration>> {
    let mut submitted: HashMap<JobId, Timestamp> = HashMap::new();
    let mut waits = Vec::with_capacity(jobs);
    while waits.len() < jobs {
        let event = next(&mut events).await?;
        let Some(job) = event.job() else { continue };
        match submitted.get(&job) {
            None => drop(submitted.insert(job, event.time)),
            Some(begin) => waits.push(Duration::from_micros(event.time.micros_since(*begin).unsigned_abs())),
        }
    }
    Ok(waits)
}

async fn next(events: &mut EventStream) -> Result<PublicEvent> {
    let data = tokio::time::timeout(WITHIN, events.next()).await.context("nothing happens any more")??;
    Ok(serde_json::from_slice(&data.context("the stream of events has ended")?)?)
}

/// Verdicts per second, from the first submission to the last verdict.
async fn verdicts(system: &System, settings: &FilterSettings, jobs: usize) -> Result<f64> {
    let mut connection = system.connect().await?;
    put(&mut connection, "/v1/filters", settings).await?;
    let path = api::events_from_now(&mut connection, "filter.verdict").await?;
    let mut verdicts = system.connect().await?.events(&path).await?;
    let follower = tokio::spawn(async move {
        for _ in 0..jobs {
            next(&mut verdicts).await?;
        }
        anyhow::Ok(Instant::now())
    });
    let body = api::submission((0..BULK).map(|_| held_job()).collect())?;
    let begin = Instant::now();
    for _ in 0..jobs / BULK {
        api::submit_body(&mut connection, body.clone()).await?;
    }
    let end = follower.await??;
    Ok(jobs as f64 / end.duration_since(begin).as_secs_f64())
}

async fn put<T: serde::Serialize>(connection: &mut Connection, path: &str, body: &T) -> Result<()> {
    connection.put(path, serde_json::to_vec(body)?.into()).await.map(drop)
}

fn held_job() -> JobSpec {
    let mut job = api::command_job("filtered", &[TRIVIAL]);
    for component in &mut job.components {
        component.holds.user = true;
    }
    job
}

fn submission(program: &str, form: FilterForm) -> FilterSettings {
    FilterSettings { submission: Some(filter(program, form)), ..FilterSettings::default() }
}

fn filter(program: &str, form: FilterForm) -> FilterSpec {
    FilterSpec { name: "bench".into(), path: program.to_owned(), form, revert_on_unknown: false }
}

/// A folder with programs and configuration files.
struct Site {
    folder: tempfile::TempDir,
    /// The folder for the runners' call folders.
    scratch: tempfile::TempDir,
    muster: PathBuf,
    slots: usize,
    bus: String,
}

impl Site {
    fn new(bench: &Bench, slots: usize) -> Result<Self> {
        let (folder, scratch) = (bench.folder()?, tempfile::tempdir_in("/dev/shm")?);
        for folder in [&folder, &scratch] {
            fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        }
        Ok(Self { folder, scratch, muster: bench.muster.clone(), slots, bus: String::new() })
    }

    fn on(mut self, server: &NatsServer) -> Result<Self> {
        self.bus =
            format!("[bus]\nurl = {:?}\n[[nodes]]\nname = \"node1\"\ncores = 8\nmemory = \"16G\"\n", server.url());
        Ok(self)
    }

    /// A program that a runner trusts.
    fn program(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.path().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(path.display().to_string())
    }

    /// A whole system in one process.
    fn whole(&self, nodes: u32, cpus: u32) -> Result<System> {
        let config = self.config("system")?;
        let options = system::Options { muster: self.muster.clone(), nodes, cpus, config: Some(config) };
        System::start(&options, &self.data("system"))
    }

    /// Roles in one process.
    fn roles(&self, roles: &[&str], name: &str) -> Result<System> {
        System::serve(&self.muster, roles, &self.config(name)?, &self.data(name))
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}-data"))
    }

    fn config(&self, name: &str) -> Result<PathBuf> {
        let path: &Path = &self.folder.path().join(format!("{name}.toml"));
        // In memory, like the default folder on a system with a `/run` in memory.
        let scratch = self.scratch.path().join(name);
        let runner = format!(
            "[filter_runner]\naccount = \"nobody\"\nslots = {}\nscratch = {:?}\n",
            self.slots,
            scratch.display().to_string()
        );
        fs::write(path, format!("{}{runner}", self.bus))?;
        Ok(path.to_owned())
    }
}
