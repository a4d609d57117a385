//! How many statements a second the interpreter runs: a loop over jobs with getters, as scheduling programs have them.
//!
//! `cargo run --release -p muster-basl --example speed`

use jiff::tz::TimeZone;
use muster_basl::{Action, Actions, Amount, Answer, Clock, Job, Limits, Machine, Program, Snapshot};
use std::time::Instant;

const JOBS: usize = 1000;

const PROGRAM: &str = r#"
Int runningOf(Set Job js, String who) {
  Job k; Int n;
  foreach(k in js) {
    if( JobStateGet(k) EQ RUNNING AND JobEffectiveUserNameGet(k) EQ who ) { n++; }
  }
  return(n);
}
sched_main() {
  Set Job js; Job j; Int running; Int queued; Int wall; Int longest; Size mem; Size total; String who;
  js = ServerJobsGet(AllServersLocalHostGet());
  while( 1 ) {
    foreach(j in js) {
      if( JobStateGet(j) NEQ QUEUED ) { running++; continue; }
      queued++;
      wall = JobIntResReqGet(j, "walltime");
      if( wall GT longest ) { longest = wall; }
      mem = JobSizeResReqGet(j, "mem");
      if( mem GT 0b AND JobPriorityGet(j) GE 0 ) { total = mem; }
      who = JobEffectiveUserNameGet(j);
    }
    running = runningOf(js, who);
  }
}
"#;

struct Nobody;

impl Actions for Nobody {
    fn act(&mut self, _: usize, _: Action, _: &str) -> Answer {
        Answer::Refused
    }
}

fn job(number: usize) -> Job {
    let amounts = [("mem", format!("{}mb", number % 50 + 1)), ("ncpus", "4".into()), ("walltime", "1:00:00".into())];
    Job {
        id: number.to_string(),
        state: if number.is_multiple_of(4) { "R" } else { "Q" }.into(),
        user: Some(format!("user{}", number % 20)),
        request: amounts.into_iter().map(|(name, amount)| (name.to_owned(), Amount::Text(amount))).collect(),
        ..Job::default()
    }
}

fn machine(text: &str, clock: &Clock) -> Result<Machine, String> {
    let program = Program::check("speed.basl", text).map_err(|faults| format!("{faults:#?}"))?;
    Machine::new(program.into(), clock, &mut Limits::default()).map_err(|fault| fault.to_string())
}

fn snapshot(jobs: usize) -> Snapshot {
    Snapshot { jobs: (0..jobs).map(job).collect(), ..Snapshot::default() }
}

fn main() -> Result<(), String> {
    let clock = Clock::new(895_226_400, TimeZone::UTC);
    let mut busy = machine(PROGRAM, &clock)?;
    let jobs = snapshot(JOBS);
    for _ in 0..5 {
        let mut limits = Limits { statements: 50_000_000, ..Limits::default() };
        let start = Instant::now();
        let outcome = busy.cycle(&jobs, &clock, &mut Nobody, &mut limits);
        let seconds = start.elapsed().as_secs_f64();
        let rate = outcome.statements as f64 / seconds / 1e6;
        println!("{} statements in {seconds:.3} s: {rate:.1} million a second", outcome.statements);
    }
    let mut idle = machine("sched_main() { }", &clock)?;
    let jobs = snapshot(100 * JOBS);
    for _ in 0..3 {
        let start = Instant::now();
        idle.cycle(&jobs, &clock, &mut Nobody, &mut Limits::default());
        println!(
            "a cycle without statements over {} jobs: {:.0} ms",
            jobs.jobs.len(),
            start.elapsed().as_secs_f64() * 1e3
        );
    }
    let by_memory = "Size memOf(Job j) { return(JobSizeResReqGet(j, \"mem\")); }
        sched_main() { Sort(ServerJobsGet(AllServersLocalHostGet()), memOf, DESC); }";
    let mut sorting = machine(by_memory, &clock)?;
    let start = Instant::now();
    sorting.cycle(&jobs, &clock, &mut Nobody, &mut Limits::default());
    println!("with a sort by a key function: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
