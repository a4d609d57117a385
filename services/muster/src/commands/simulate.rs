//! `muster simulate`: a job trace under one or more policies, in simulated time.

mod figures;

use crate::{
    cli::SimulateOptions,
    config,
    exit::{CommandResult, Failure},
    picture, policies,
    whole_file::WholeFile,
};
use indicatif::{ProgressBar, ProgressStyle};
use muster_oar_commands::quota_file;
use muster_planner::{
    chart::{Course, courses},
    energy::SleepPolicy,
    simulate::{Machine, SimulateError, Simulation, Summary, Workload, simulate_with_sleep},
};
use muster_schemas::policy::Policy;
use muster_swf::{Dropped, SwfError, Trace, TraceJob};
use std::{
    io::Write as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// `--out -`
const STANDARD_OUTPUT: &str = "-";
/// The progress bar moves after this many jobs.
const JOBS_PER_STEP: usize = 1000;

/// Runs the simulations that the options ask for.
pub fn simulate(options: &SimulateOptions) -> CommandResult {
    let names = options.policy.iter().chain(&options.compare);
    let policies: Vec<Arc<Policy>> = names.map(|name| policies::load(name).map(Arc::new)).collect::<Result<_, _>>()?;
    let machine = options.cluster.as_deref().map(cluster).transpose()?;
    let procs = machine.as_ref().map(Machine::procs).or(options.procs);
    let trace = Trace::open(&options.trace, procs).map_err(unreadable)?;
    let machine = machine.unwrap_or_else(|| pool(&trace));
    let outputs = Outputs::create(options)?;
    let window = trace.window(options.skip, options.limit.unwrap_or(usize::MAX));
    let sleep = sleep_policy(options, &machine)?;
    let results =
        run_all(&Input { trace: &trace, window, machine: &machine, sleep, nodes_of: options.nodes_of }, &policies)?;
    outputs.write(&options.trace, &results)?;
    tell(options, &results)
}

/// A simulation, and the jobs dropped before it.
struct Run {
    simulation: Simulation,
    dropped: Dropped,
}

impl Run {
    fn summary(&self) -> Summary {
        self.simulation.summary(self.dropped)
    }
}

fn unreadable(error: SwfError) -> Failure {
    match error {
        SwfError::Unreadable { .. } => Failure::failed(error.to_string()),
        SwfError::UnknownMachineSize { .. } => Failure::usage(error.to_string()),
    }
}

/// A pool that is too large to count is refused by the simulation.
fn pool(trace: &Trace) -> Machine {
    Machine::Pool { procs: u32::try_from(trace.machine_procs).unwrap_or(u32::MAX) }
}

fn cluster(path: &Path) -> Result<Machine, Failure> {
    let name = path.display();
    let loaded = config::load(Some(path))?;
    let mut config = loaded.configuration.cluster.to_config().map_err(|message| Failure::in_file(name, message))?;
    if let Some(file) = &loaded.configuration.quotas.file {
        let table = quota_file::read(file).map_err(|broken| Failure::in_file(file.display(), broken))?;
        config.settings.quotas = Some(Box::new(table));
    }
    if config.nodes.is_empty() {
        return Err(Failure::in_file(path.display(), "no [[nodes]]: a cluster without nodes serves no job"));
    }
    Ok(Machine::Cluster(Box::new(config)))
}

/// How nodes sleep, if they do: what they use is in the settings of their cluster.
fn sleep_policy(options: &SimulateOptions, machine: &Machine) -> Result<Option<SleepPolicy>, Failure> {
    let (Some(idle_seconds), Machine::Cluster(config)) = (options.sleep_after, machine) else { return Ok(None) };
    let energy = config.settings.energy.clone().unwrap_or_default();
    let Some(watts) = energy.watts else {
        return Err(Failure::usage(
            "--sleep-after: the configuration file does not say what nodes use: set energy.watts_busy, watts_idle and so on",
        ));
    };
    Ok(Some(SleepPolicy { idle_seconds: Some(idle_seconds), wake_up_seconds: energy.wake_up_seconds, watts }))
}

/// What all policies run on.
struct Input<'t> {
    trace: &'t Trace,
    window: &'t [TraceJob],
    machine: &'t Machine,
    sleep: Option<SleepPolicy>,
    nodes_of: Option<u32>,
}

/// Runs all policies, on as many threads as there are processors; the results are in the order of the policies.
fn run_all(input: &Input, policies: &[Arc<Policy>]) -> Result<Vec<Run>, Failure> {
    let bar = progress_bar((input.window.len() * policies.len()) as u64);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, policy)) = policies.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((at, run_one(input, policy, &bar)));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(policies.len());
    let mut results = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut results = work();
        for worker in workers {
            results.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    bar.finish_and_clear();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(at, result)| result.map_err(|error| cannot_simulate(&policies[at], &error))).collect()
}

fn cannot_simulate(policy: &Policy, error: &SimulateError) -> Failure {
    match error {
        SimulateError::Policy(error) => Failure::usage(format!("policy {}: {error}", policy.name)),
        SimulateError::PoolSize { .. } => Failure::usage(format!("{error}; name another number with --procs")),
        SimulateError::TooLate { .. } => Failure::failed(error.to_string()),
    }
}

fn run_one(input: &Input, policy: &Arc<Policy>, bar: &ProgressBar) -> Result<Run, SimulateError> {
    let Input { trace, window, machine, sleep, nodes_of } = *input;
    let workload = Workload::in_shapes(window, &trace.headers, machine, policy, nodes_of);
    let mut shown = 0;
    let simulation = simulate_with_sleep(machine, &workload, policy, sleep, &mut |progress| {
        if progress.ended >= shown + JOBS_PER_STEP {
            bar.inc((progress.ended - shown) as u64);
            shown = progress.ended;
        }
    })?;
    let size = trace.dropped.size + workload.dropped_for_size();
    Ok(Run { simulation, dropped: Dropped { size, ..trace.dropped } })
}

/// A progress bar on standard error, if that is a terminal.
fn progress_bar(jobs: u64) -> ProgressBar {
    let bar = ProgressBar::new(jobs);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} jobs, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// The output files, created before the work so that one that cannot be written is reported at once.
struct Outputs {
    csv: Option<WholeFile>,
    csv_to_standard_output: bool,
    svg: Option<WholeFile>,
    png: Option<WholeFile>,
}

impl Outputs {
    fn create(options: &SimulateOptions) -> Result<Self, Failure> {
        let to_standard_output = options.out.as_deref() == Some(Path::new(STANDARD_OUTPUT));
        let create = |path: Option<&Path>| path.map(WholeFile::create).transpose();
        Ok(Self {
            csv: create(options.out.as_deref().filter(|_| !to_standard_output))?,
            csv_to_standard_output: to_standard_output,
            svg: create(options.svg.as_deref())?,
            png: create(options.png.as_deref())?,
        })
    }

    fn write(self, trace: &Path, runs: &[Run]) -> Result<(), Failure> {
        if let Some(file) = self.csv {
            file.write(&csv(runs)?)?;
        }
        if self.csv_to_standard_output {
            let mut out = std::io::stdout().lock();
            out.write_all(&csv(runs)?)?;
            out.flush()?;
        }
        if self.svg.is_none() && self.png.is_none() {
            return Ok(());
        }
        let name = trace.file_name().map_or_else(|| trace.display().to_string(), |name| name.display().to_string());
        let svg = courses(&format!("Simulation of {name}"), &runs.iter().map(course).collect::<Vec<_>>());
        if let Some(file) = self.png {
            file.write(&picture::png(&svg)?)?;
        }
        self.svg.map_or(Ok(()), |file| file.write(svg.as_bytes()))
    }
}

/// The rows of the only simulation; several have no common CSV.
fn csv(runs: &[Run]) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    for run in runs {
        run.simulation.write_csv(&mut bytes)?;
    }
    Ok(bytes)
}

fn course(run: &Run) -> Course {
    let simulation = &run.simulation;
    Course {
        name: simulation.policy.clone(),
        waits_seconds: simulation.jobs.iter().filter_map(|job| job.wait_seconds()).collect(),
        procs_in_use: simulation.procs_in_use(),
        jobs_waiting: simulation.jobs_waiting(),
        machine_procs: simulation.machine_procs,
    }
}

/// Prints the figures.
fn tell(options: &SimulateOptions, runs: &[Run]) -> CommandResult {
    let summaries: Vec<Summary> = runs.iter().map(Run::summary).collect();
    let text = match (options.json, options.compare.is_empty(), summaries.first()) {
        (true, true, Some(summary)) => json(summary)?,
        (true, ..) => json(&summaries)?,
        (false, true, Some(summary)) => figures::text(summary),
        (false, ..) => figures::table(&summaries)?,
    };
    if options.out.as_deref() == Some(Path::new(STANDARD_OUTPUT)) {
        std::io::stderr().lock().write_all(text.as_bytes())?;
    } else {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    for run in runs {
        figures::tell_stuck(&run.simulation);
    }
    Ok(0)
}

/// JSON on one line.
fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(text + "\n")
}
