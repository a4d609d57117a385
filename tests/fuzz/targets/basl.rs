//! Programs in BaSL, and their configuration files.
#![no_main]

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use muster_basl::{Action, Actions, Answer, Clock, Limits, Machine, Program, Snapshot, config::Config};

struct Nobody;

impl Actions for Nobody {
    fn act(&mut self, _: usize, _: Action, _: &str) -> Answer {
        Answer::Refused
    }
}

fuzz_target!(|text: &str| {
    let _ = Config::parse("fuzz", text);
    let Ok(program) = Program::check("fuzz", text) else { return };
    let clock = Clock::new(895_226_400, TimeZone::UTC);
    let limits = || Limits { statements: 10_000, ..Limits::default() };
    if let Ok(mut machine) = Machine::new(program.into(), &clock, &mut limits()) {
        machine.cycle(&Snapshot::default(), &clock, &mut Nobody, &mut limits());
    }
});
