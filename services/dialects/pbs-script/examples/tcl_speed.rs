//! How long a cycle of a Tcl body takes that reads the status of all jobs and starts some of them (PBS-X-14).
//!
//! `cargo run --release -p muster-pbs-script --example tcl_speed`

use muster_pbs_plan::state_file::{JobState, NodeState, QueueState, StateFile};
use muster_pbs_script::{
    cycle::End,
    cycles::Cycles,
    policy_word::ProgramWord,
    scheduler::{Hour, Scheduler, Setup},
    state_site::{StateSite, moment},
    trigger::Command,
};
use std::{error::Error, fs, time::Instant};

const JOBS: usize = 10_000;
const STARTS: usize = 100;
const CYCLES: usize = 9;
/// 1998-05-15 10:00:00 UTC.
const NOW: i64 = 895_226_400;

fn job(number: usize) -> Result<JobState, Box<dyn Error>> {
    let user = format!("user{}", number % 200);
    let mut job = JobState { id: format!("{number}.server"), queue: "batch".into(), user, ..JobState::default() };
    for (name, value) in [("ncpus", "1"), ("mem", "512mb"), ("walltime", "01:00:00"), ("cput", "00:50:00")] {
        job.request.set(name, value)?;
    }
    Ok(job)
}

fn site() -> Result<StateSite, Box<dyn Error>> {
    let queue = QueueState {
        name: "batch".into(),
        kind: Some("execution".into()),
        started: Some(true),
        ..QueueState::default()
    };
    let node = |number| NodeState {
        name: format!("node{number}"),
        state: Some("free".into()),
        ncpus: Some(16),
        ..NodeState::default()
    };
    let jobs = (1..=JOBS).map(job).collect::<Result<_, _>>()?;
    let nodes = (1..=STARTS).map(node).collect();
    Ok(StateSite::new(StateFile {
        server: Default::default(),
        queues: vec![queue],
        nodes,
        jobs,
        ..StateFile::at(moment(NOW))
    }))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let body = format!(
        "set seen 0\nset count 0\nforeach job [pbsstatjob] {{ incr seen; if {{[incr count] <= {STARTS}}} {{ pbsrunjob [lindex $job 0] }} }}\n\
         if {{$seen != {JOBS}}} {{ error \"saw $seen jobs\" }}\n"
    );
    fs::write(folder.path().join("body"), body)?;
    let word = ProgramWord::parse("tcl:body").map_err(|fault| format!("{fault:?}"))?;
    let mut times = Vec::new();
    for _ in 0..CYCLES {
        let mut site = site()?;
        let scheduler = Scheduler::new(&word, Setup::new(folder.path()), Cycles::new(true, 0), NOW);
        let mut scheduler = scheduler.map_err(|faults| format!("{faults:#?}"))?;
        scheduler.note(Command::New);
        let begin = Instant::now();
        let report = scheduler.step(Hour::prime(NOW), &mut site).ok_or("no cycle was due")?;
        times.push(begin.elapsed());
        let starts = report.decisions.iter().filter(|decision| decision.answer.is_ok()).count();
        if report.end != End::Done(None) || starts != STARTS {
            return Err(format!("{starts} starts, {:?}", report.end).into());
        }
    }
    times.sort();
    println!(
        "Tcl body: `pbsstatjob` of {JOBS} jobs and {STARTS} `pbsrunjob`, with the start of the interpreter: {:.0} ms ({:.0} to {:.0})",
        1e3 * times[CYCLES / 2].as_secs_f64(),
        1e3 * times[0].as_secs_f64(),
        1e3 * times[CYCLES - 1].as_secs_f64()
    );
    Ok(())
}
