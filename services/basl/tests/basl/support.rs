//! Programs, snapshots and servers for the tests.

use jiff::tz::TimeZone;
use muster_basl::{
    Action, Actions, Amount, Answer, Clock, Job, Limits, Machine, Node, Outcome, Program, Queue, Snapshot,
};
use std::sync::Arc;

/// 1998-05-15 10:00:00 UTC.
pub const TEN: i64 = 895_226_400;

/// A server that does what it is told, unless the job is among those that it refuses.
#[derive(Default)]
pub struct Server {
    /// Action, job and parameter, in order.
    pub done: Vec<(Action, usize, String)>,
    pub refused: Vec<usize>,
    /// The nodes on which it starts jobs that come without hosts.
    pub places: Vec<usize>,
    /// Reservations and releases.
    pub reservations: Vec<String>,
}

impl Actions for Server {
    fn act(&mut self, job: usize, action: Action, parameter: &str) -> Answer {
        if self.refused.contains(&job) {
            return Answer::Refused;
        }
        self.done.push((action, job, parameter.to_owned()));
        if action.is_start() && parameter.is_empty() && !self.places.is_empty() {
            return Answer::StartedOn(self.places.clone());
        }
        Answer::Done
    }

    fn reserve(&mut self, specification: &str, number: i64) -> Option<i64> {
        self.reservations.push(format!("{specification} {number}"));
        Some(7)
    }

    fn release(&mut self, number: i64) -> bool {
        number == 7
    }
}

pub fn clock() -> Clock {
    Clock::new(TEN, TimeZone::UTC)
}

/// The messages of a program with mistakes.
pub fn mistakes(text: &str) -> Vec<String> {
    match Program::check("p.basl", text) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

pub fn program(text: &str) -> Arc<Program> {
    match Program::check("p.basl", text) {
        Ok(program) => program.into(),
        Err(faults) => panic!("{faults:#?} in:\n{text}"),
    }
}

pub fn machine(text: &str) -> Machine {
    Machine::new(program(text), &clock(), &mut Limits::default()).expect("the assignments to globals have values")
}

pub fn cycle(machine: &mut Machine, snapshot: &Snapshot, server: &mut Server) -> Outcome {
    machine.cycle(snapshot, &clock(), server, &mut Limits::default())
}

/// Runs one cycle of a program.
pub fn run(text: &str, snapshot: &Snapshot, server: &mut Server) -> Outcome {
    cycle(&mut machine(text), snapshot, server)
}

/// What a program without faults prints, line by line.
pub fn printed_on(text: &str, snapshot: &Snapshot) -> Vec<String> {
    let outcome = run(text, snapshot, &mut Server::default());
    assert_eq!(outcome.fault, None, "{text}");
    outcome.printed.lines().map(str::to_owned).collect()
}

/// What a body of `sched_main` prints.
pub fn printed(body: &str) -> Vec<String> {
    printed_on(&format!("sched_main() {{\n{body}\n}}"), &Snapshot::default())
}

/// The fault of a body of `sched_main`, which has one. Its first line is line 2.
pub fn fault(body: &str) -> String {
    let outcome = run(&format!("sched_main() {{\n{body}\n}}"), &Snapshot::default(), &mut Server::default());
    outcome.fault.unwrap_or_else(|| panic!("no fault; printed {}", outcome.printed)).to_string()
}

pub fn job(id: &str, state: &str) -> Job {
    Job { id: id.to_owned(), state: state.to_owned(), ..Job::default() }
}

pub fn owned(id: &str, user: &str, state: &str, request: &[(&str, &str)]) -> Job {
    let request = request.iter().map(|(name, amount)| ((*name).to_owned(), Amount::from(*amount))).collect();
    Job { user: Some(user.to_owned()), request, ..job(id, state) }
}

pub fn in_queue(queue: &str, job: Job) -> Job {
    Job { queue: Some(queue.to_owned()), ..job }
}

pub fn queue(name: &str) -> Queue {
    Queue { name: name.to_owned(), queue_type: Some("execution".into()), started: Some(true), ..Queue::default() }
}

pub fn node(name: &str, state: &str, loadave: Option<f64>) -> Node {
    Node { name: name.to_owned(), state: Some(state.to_owned()), loadave, ..Node::default() }
}

/// The ids of the jobs that an action was done to.
pub fn ids(server: &Server, snapshot: &Snapshot, action: Action) -> Vec<String> {
    let of_action = server.done.iter().filter(|(done, ..)| *done == action);
    of_action.map(|(_, job, _)| snapshot.jobs[*job].id.clone()).collect()
}
