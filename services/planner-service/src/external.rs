//! Programs that plan in place of the built-in planner: how to reach and ask them, and how long to leave them alone
//! after a failure.

mod amounts;
mod answer;
mod program;
mod view;

pub(crate) use answer::{Proposal, is_news, one_start, propose, waits};
pub(crate) use view::{cycle, least, waiting_in_order};

use muster_bus::{BusError, Message, SharedBus};
use muster_schemas::{
    external_planner::{Cycle, ExternalPlan, FromPlanner, Hello, PROTOCOL, ToPlanner},
    subjects,
};
use muster_telemetry::metrics::{self, Counter, Gauge, Histogram};
use program::Program;
use std::{sync::LazyLock, time::Duration};
use tokio::time::{Instant, timeout};

static ANSWER_SECONDS: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    metrics::duration_seconds(
        "muster_planner_external_answer_seconds",
        "Time that the external planner took to answer.",
    )
});
static FAILURES: LazyLock<Counter<u64>> = LazyLock::new(|| {
    metrics::counter(
        "muster_planner_external_failures_total",
        "How often the external planner crashed, was silent or wrong.",
    )
});
static UP: LazyLock<Gauge<i64>> = LazyLock::new(|| {
    metrics::gauge("muster_planner_external_up", "Whether the external planner's last answer was good.")
});

/// The pause before a program that failed is asked again; it doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest answer.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The most answers to earlier questions that are skipped before the right one.
const MAX_LATE_ANSWERS: usize = 16;

/// The external planner, whether it works or not.
#[derive(Debug)]
pub(crate) struct External {
    link: Link,
    answer_timeout: Duration,
    trouble: Option<Trouble>,
}

/// The connection to it.
#[derive(Debug)]
enum Link {
    /// It is started here, and runs until it fails.
    Program { command: Vec<String>, running: Option<Box<Program>> },
    /// It serves a subject of the bus.
    Bus { bus: SharedBus, is_greeted: bool },
}

/// A failure, and when to ask again.
#[derive(Debug)]
struct Trouble {
    what: String,
    pause: Duration,
    until: Instant,
}

impl External {
    /// A program that is started when it is first asked.
    pub fn program(command: Vec<String>, answer_timeout: Duration) -> Self {
        Self { link: Link::Program { command, running: None }, answer_timeout, trouble: None }
    }

    /// A program that is connected to the bus.
    pub fn on_bus(bus: SharedBus, answer_timeout: Duration) -> Self {
        Self { link: Link::Bus { bus, is_greeted: false }, answer_timeout, trouble: None }
    }

    /// Its failure when it was last asked, if any.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.what.as_str())
    }

    /// When to ask it again, if that is not now.
    pub fn resting_until(&self) -> Option<Instant> {
        self.trouble.as_ref().map(|trouble| trouble.until).filter(|until| *until > Instant::now())
    }

    /// Asks for a plan. After a failure, which is described for people, it rests for a while.
    pub async fn plan(&mut self, cycle: &Cycle) -> Result<ExternalPlan, String> {
        let asked = Instant::now();
        let limit = self.answer_timeout;
        let answer = match timeout(limit, self.link.ask(cycle, limit)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s{}", limit.as_secs(), self.link.said())),
        };
        ANSWER_SECONDS.record(asked.elapsed().as_secs_f64(), &[]);
        UP.record(i64::from(answer.is_ok()), &[]);
        match &answer {
            Ok(_) => {
                if self.trouble.take().is_some() {
                    tracing::info!("the external planner works again");
                }
            }
            Err(what) => self.fail(what),
        }
        answer
    }

    fn fail(&mut self, what: &str) {
        FAILURES.add(1, &[]);
        self.link.cut();
        let pause = self.trouble.as_ref().map_or(FIRST_PAUSE, |trouble| (trouble.pause * 2).min(LONGEST_PAUSE));
        tracing::warn!(again_in_seconds = pause.as_secs(), "external planner: {what}");
        self.trouble = Some(Trouble { what: what.to_owned(), pause, until: Instant::now() + pause });
    }
}

impl Link {
    async fn ask(&mut self, cycle: &Cycle, limit: Duration) -> Result<ExternalPlan, String> {
        let question = json(&ToPlanner::Cycle(Box::new(cycle.clone())))?;
        self.greet(limit).await?;
        let mut answer = self.exchange(question, limit).await?;
        for _ in 0..MAX_LATE_ANSWERS {
            match read(&answer)? {
                FromPlanner::Plan(plan) if plan.seen == cycle.seen => return Ok(plan),
                FromPlanner::Plan(plan) if plan.seen < cycle.seen => {
                    tracing::debug!(seen = %plan.seen, "an answer to an earlier cycle is passed over");
                }
                FromPlanner::Plan(plan) => {
                    return Err(format!("its plan has seen record {}, which it was not shown", plan.seen));
                }
                FromPlanner::Hello(_) => return Err("it answered `hello` to a `cycle`".into()),
            }
            answer = match self {
                Self::Program { running: Some(program), .. } => program.next_line(MAX_ANSWER_BYTES).await?,
                _ => break,
            };
        }
        Err("it answered earlier cycles only".into())
    }

    /// Starts the program if it is not running, and agrees on the protocol.
    async fn greet(&mut self, limit: Duration) -> Result<(), String> {
        match self {
            Self::Program { running: Some(_), .. } | Self::Bus { is_greeted: true, .. } => return Ok(()),
            Self::Program { command, running } => *running = Some(Box::new(Program::start(command)?)),
            Self::Bus { .. } => {}
        }
        let hello = json(&ToPlanner::Hello(Hello { protocol: PROTOCOL }))?;
        match read(&self.exchange(hello, limit).await?)? {
            FromPlanner::Hello(Hello { protocol: PROTOCOL }) => {}
            FromPlanner::Hello(Hello { protocol }) => {
                return Err(format!("it speaks version {protocol} of the protocol, this is version {PROTOCOL}"));
            }
            FromPlanner::Plan(_) => return Err("it answered `plan` to `hello`".into()),
        }
        if let Self::Bus { is_greeted, .. } = self {
            *is_greeted = true;
        }
        Ok(())
    }

    async fn exchange(&mut self, question: Vec<u8>, limit: Duration) -> Result<Vec<u8>, String> {
        match self {
            Self::Program { running: Some(program), .. } => program.exchange(&question, MAX_ANSWER_BYTES).await,
            Self::Program { running: None, .. } => Err("it does not run".into()),
            Self::Bus { bus, .. } => {
                let answer = bus.request(subjects::PLANNER_EXTERNAL, Message::new(question), limit).await;
                let answer = answer.map_err(|error| bus_trouble(&error, limit))?;
                match answer.payload.len() {
                    bytes if bytes > MAX_ANSWER_BYTES => {
                        Err(format!("its answer has more than {MAX_ANSWER_BYTES} bytes"))
                    }
                    _ => Ok(answer.payload.to_vec()),
                }
            }
        }
    }

    /// Ends a running program; the next question starts again.
    fn cut(&mut self) {
        match self {
            Self::Program { running, .. } => *running = None,
            Self::Bus { is_greeted, .. } => *is_greeted = false,
        }
    }

    /// The last words of the program, after a colon.
    fn said(&self) -> String {
        match self {
            Self::Program { running: Some(program), .. } => program.said(),
            _ => String::new(),
        }
    }
}

fn bus_trouble(error: &BusError, limit: Duration) -> String {
    match error {
        BusError::NoResponder { subject } => format!("nobody answers on the bus subject `{subject}`"),
        BusError::TimedOut { .. } => format!("no answer within {} s", limit.as_secs()),
        BusError::TooLarge { bytes, limit } => {
            format!("the cycle has {bytes} bytes, the bus carries {limit}; lower `max_waiting` in [planner]")
        }
        other => format!("the bus: {other}"),
    }
}

fn json(message: &ToPlanner) -> Result<Vec<u8>, String> {
    serde_json::to_vec(message).map_err(|error| format!("the message cannot be written as JSON: {error}"))
}

fn read(answer: &[u8]) -> Result<FromPlanner, String> {
    serde_json::from_slice(answer).map_err(|error| {
        let begin = String::from_utf8_lossy(&answer[..answer.len().min(80)]);
        let begin: String = begin.chars().filter(|character| !character.is_control()).collect();
        format!("its answer is not one of the protocol: {error}, in `{begin}`")
    })
}
