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

fn main() {
    let program = match Program::check("speed.basl", PROGRAM) {
        Ok(program) => program,
        Err(faults) => return faults.iter().for_each(|fault| eprintln!("{fault}")),
    };
    let clock = Clock::new(895_226_400, TimeZone::UTC);
    let snapshot = Snapshot { jobs: (0..JOBS).map(job).collect(), ..Snapshot::default() };
    let mut machine = match Machine::new(program.into(), &clock, &mut Limits::default()) {
        Ok(machine) => machine,
        Err(fault) => return eprintln!("{fault}"),
    };
    for _ in 0..5 {
        let mut limits = Limits { statements: 50_000_000, ..Limits::default() };
        let start = Instant::now();
        let outcome = machine.cycle(&snapshot, &clock, &mut Nobody, &mut limits);
        let seconds = start.elapsed().as_secs_f64();
        let rate = outcome.statements as f64 / seconds / 1e6;
        println!("{} statements in {seconds:.3} s: {rate:.1} million a second", outcome.statements);
    }
}
