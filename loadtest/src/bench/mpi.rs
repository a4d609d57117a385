//! MPI programs: how long one takes to start and to end, compared with the launcher of its library on bare processes, and
//! how long its tasks wait for each other.

use super::{
    Bench, Running,
    commands::Links,
    figure::{Figure, Target, quantile},
};
use anyhow::{Context as _, Result, ensure};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const NODES: u32 = 4;
/// The tasks of a program that is started and ended.
const STARTED: u32 = 64;
/// The tasks that meet in a fence.
const FENCED: u32 = 1_024;

/// A library: its compiler, its own launcher, and how `srun` serves it.
struct Library {
    name: &'static str,
    compiler: &'static str,
    launcher: &'static [&'static str],
    kind: &'static str,
}

const LIBRARIES: [Library; 2] = [
    Library { name: "MPICH", compiler: "mpicc.mpich", launcher: &["mpiexec.hydra"], kind: "pmi2" },
    Library {
        name: "Open MPI",
        compiler: "mpicc.openmpi",
        launcher: &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
        kind: "pmix",
    },
];

/// `srun` of a program that does nothing but begin and end, in turns with the library's launcher; fences of many tasks.
pub async fn mpi(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(NODES, FENCED / NODES)?;
    let links = Links::make(&running)?;
    let folder = running.system.data().to_owned();
    let mut figures = Vec::new();
    for library in &LIBRARIES {
        let program = built(&folder, library.compiler, "empty", include_str!("mpi/empty.c"))?;
        figures.push(started(bench, &links, library, &program).await?);
    }
    let program = built(&folder, "cc", "fence", include_str!("mpi/fence.c"))?;
    figures.extend(fenced(bench, &links, &program).await?);
    let Running { system, .. } = running;
    system.stop()?;
    Ok(figures)
}

fn built(folder: &Path, compiler: &str, name: &str, source: &str) -> Result<PathBuf> {
    let (source_file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source_file, source)?;
    let status = Command::new(compiler).arg("-O2").arg("-o").arg(&program).arg(&source_file).status();
    let status =
        status.with_context(|| format!("{compiler} cannot be run; `ops/prerequisites --tests` installs it"))?;
    ensure!(status.success(), "{compiler} failed");
    Ok(program)
}

async fn started(bench: &Bench, links: &Links, library: &Library, program: &Path) -> Result<Figure> {
    let (nodes, tasks) = (NODES.to_string(), STARTED.to_string());
    let kind = format!("--mpi={}", library.kind);
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..bench.count(10) {
        let (launcher, options) = library.launcher.split_first().context("a launcher has a name")?;
        let mut command = Command::new(launcher);
        command.args(options).args(["-n", &tasks]).arg(program);
        bare.push(timed(command).await?);
        let mut command = links.command("srun", &["-N", &nodes, "-n", &tasks, &kind]);
        command.arg(program);
        ours.push(timed(command).await?);
    }
    let (bare, ours) = (quantile(&mut bare, 0.5).as_secs_f64(), quantile(&mut ours, 0.5).as_secs_f64());
    let measure = format!(
        "`srun -n {STARTED}` of an empty {} program on {NODES} emulated nodes ({:.0} ms), relative to `{}` on this host ({:.0} ms)",
        library.name,
        ours * 1e3,
        library.launcher.first().unwrap_or(&""),
        bare * 1e3
    );
    Ok(Figure { measure, value: ours / bare, unit: "times", target: Target::AtMost(1.5) })
}

async fn timed(mut command: Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    tokio::task::spawn_blocking(move || {
        let begin = Instant::now();
        let status = command.status()?;
        ensure!(status.success(), "{command:?} failed: {status}");
        Ok(begin.elapsed())
    })
    .await?
}

async fn fenced(bench: &Bench, links: &Links, program: &Path) -> Result<Vec<Figure>> {
    let fences = bench.count(50).to_string();
    let mut command = links.command("srun", &["-N", &NODES.to_string(), "-n", &FENCED.to_string(), "--mpi=pmi2"]);
    command.arg(program).arg(&fences).current_dir("/");
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let micros = String::from_utf8_lossy(&output.stdout);
    let mut times = micros
        .lines()
        .map(|line| Ok(Duration::from_micros(line.trim().parse().with_context(|| format!("`{line}` is no time"))?)))
        .collect::<Result<Vec<Duration>>>()?;
    let measure = |which| format!("fence of {FENCED} tasks on {NODES} emulated nodes, {which}");
    let half = quantile(&mut times, 0.5);
    Ok(vec![Figure::time(measure("p50"), half, 50.0), Figure::time(measure("p99"), quantile(&mut times, 0.99), 50.0)])
}
