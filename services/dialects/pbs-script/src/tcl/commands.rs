//! The commands of Tcl programs (PBS-X-17 to PBS-X-20): words in, a value and `pbs_errno` out.

use super::{
    attributes,
    list::{join, split},
    monitors::{Monitors, UNKNOWN},
    time::{datetime, strftime},
};
use crate::{
    action::{Action, Answer, Change, Code, Gate, Refusal},
    cycle::Docket,
    site::{has_node, selected},
    specification::Specification,
};
use jiff::tz::TimeZone;

/// What commands work on.
#[derive(Debug)]
pub struct Desk<'d, 's> {
    /// The cycle; nothing while the program of INIT or of the end runs.
    docket: Option<&'d mut Docket<'s>>,
    monitors: Monitors,
    is_connected: bool,
    now: i64,
    zone: &'d TimeZone,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A value, and `pbs_errno`.
    Value {
        /// 0 for success.
        errno: u32,
        /// The value.
        value: String,
    },
    /// An error of Tcl.
    Error(String),
}

impl Reply {
    /// As a list for the interpreter.
    pub fn words(self) -> [String; 3] {
        match self {
            Self::Value { errno, value } => ["ok".into(), errno.to_string(), value],
            Self::Error(text) => ["error".into(), "0".into(), text],
        }
    }
}

fn value(value: impl Into<String>) -> Reply {
    Reply::Value { errno: 0, value: value.into() }
}

fn failure(code: Code, value: &str) -> Reply {
    Reply::Value { errno: code.number(), value: value.to_owned() }
}

/// 0 or -1.
fn status(answer: Answer) -> Reply {
    match answer {
        Ok(_) => value("0"),
        Err(refusal) => failure(refusal.code, "-1"),
    }
}

impl<'d, 's> Desk<'d, 's> {
    /// A desk for one evaluation of a script.
    pub fn new(docket: Option<&'d mut Docket<'s>>, now: i64, zone: &'d TimeZone) -> Self {
        let is_connected = docket.is_some();
        Self { docket, monitors: Monitors::default(), is_connected, now, zone }
    }

    /// Ends the evaluation: handles that are still open are taken back, with a warning.
    pub fn close(self) {
        let Some(docket) = self.docket else { return };
        for node in self.monitors.left_open() {
            docket.lines.add(&format!("warning: the handle of {node} was not closed with closerm"));
        }
    }

    /// Carries out a command.
    pub fn answer(&mut self, words: &[String]) -> Reply {
        if let Some(Err(refusal)) = self.docket.as_mut().map(|docket| docket.count()) {
            return failure(refusal.code, "-1");
        }
        let Some((command, words)) = words.split_first() else { return Reply::Error("no command".into()) };
        let plain: Vec<&str> = words.iter().map(String::as_str).collect();
        match command.as_str() {
            "datetime" => {
                datetime(words, self.now, self.zone).map_or_else(Reply::Error, |time| value(time.to_string()))
            }
            "strftime" => match plain.as_slice() {
                [format, seconds] => strftime(format, seconds, self.zone).map_or_else(Reply::Error, value),
                _ => unknown(command),
            },
            "pbsconnect" => self.connect(plain.first().copied().unwrap_or_default()),
            "pbsdisconnect" => {
                self.is_connected = false;
                value("")
            }
            _ => self
                .of_monitors(command, &plain)
                .or_else(|| self.of_server(command, &plain))
                .unwrap_or_else(|| unknown(command)),
        }
    }

    fn connect(&mut self, server: &str) -> Reply {
        let Some(docket) = &self.docket else { return failure(Code::NoConnection, "-1") };
        let own = docket.state().server.name.as_deref().unwrap_or("localhost");
        if !server.is_empty() && server != own {
            return failure(Code::UnknownNode, "-1");
        }
        self.is_connected = true;
        value("0")
    }

    fn of_monitors(&mut self, command: &str, words: &[&str]) -> Option<Reply> {
        let handle = || words.first().and_then(|word| word.parse::<u32>().ok()).unwrap_or(u32::MAX);
        let done = |is_done| if is_done { value("0") } else { failure(Code::BadRequest, "-1") };
        Some(match (command, words) {
            ("openrm", [node, ..]) => self.open(node),
            ("closerm", [_]) => match self.monitors.close(handle()) {
                true => value(""),
                false => failure(Code::BadRequest, ""),
            },
            // No scheduler ends the monitors of others, or changes how they work.
            ("downrm", [_]) => failure(Code::NotSupported, ""),
            ("configrm", [_, _]) => failure(Code::NotSupported, "-1"),
            ("addreq", [_, query]) => done(self.monitors.add(handle(), query)),
            ("allreq", [query]) => value(self.monitors.add_to_all(query).to_string()),
            ("flushreq", []) => value(""),
            ("activereq", []) => match self.monitors.active() {
                Some(handle) => value(handle.to_string()),
                None => value("-1"),
            },
            ("fullresp", [flag]) => match muster_pbs_policy::values::boolean(flag) {
                Some(flag) => {
                    self.monitors.is_full = flag;
                    value("")
                }
                None => Reply::Error(format!("expected boolean value but got \"{flag}\"")),
            },
            ("getreq", [_]) => match (self.monitors.next(handle()), &self.docket) {
                (Some((node, query)), Some(docket)) => {
                    let answer = docket.fact(&node, &query).unwrap_or_else(|| UNKNOWN.into());
                    value(if self.monitors.is_full { format!("{query}={answer}") } else { answer })
                }
                _ => failure(Code::BadRequest, ""),
            },
            _ => return None,
        })
    }

    fn open(&mut self, node: &str) -> Reply {
        let Some(docket) = &self.docket else { return failure(Code::NoConnection, "-1") };
        if !has_node(docket.state(), node) {
            return failure(Code::UnknownNode, "-1");
        }
        match self.monitors.open(node) {
            Some(handle) => value(handle.to_string()),
            None => failure(Code::TooMany, "-1"),
        }
    }

    fn of_server(&mut self, command: &str, words: &[&str]) -> Option<Reply> {
        let zone = self.zone;
        let is_question = command.starts_with("pbsstat") || command == "pbsselstat" || command == "pbsrescquery";
        let Some(docket) = self.docket.as_mut().filter(|_| self.is_connected) else {
            return command
                .starts_with("pbs")
                .then(|| failure(Code::NoConnection, if is_question { "" } else { "-1" }));
        };
        let state = docket.state();
        Some(match (command, words) {
            ("pbsstatserv", []) => value(attributes::server(state)),
            ("pbsstatque", []) => value(attributes::queues(state)),
            ("pbsstatnode", []) => value(attributes::nodes(state)),
            ("pbsstatjob", []) => value(attributes::jobs(state.jobs.iter(), zone)),
            ("pbsselstat", []) => value(attributes::jobs(selected(state), zone)),
            ("pbsrescquery", [resources]) => query(docket, resources),
            ("pbsrescreserve", [number, resources]) => match reservation(number, resources) {
                Some(action) => match docket.act(action) {
                    Ok(accepted) => value(accepted.reservation.unwrap_or_default().to_string()),
                    Err(refusal) => failure(refusal.code, "-1"),
                },
                None => failure(Code::BadRequest, "-1"),
            },
            _ => match action(command, words)? {
                Ok(action) => status(docket.act(action)),
                Err(refusal) => failure(refusal.code, "-1"),
            },
        })
    }
}

fn unknown(command: &str) -> Reply {
    Reply::Error(format!("wrong # args for \"{command}\", or no such command"))
}

/// The action of a command; `None` if it has none.
fn action(command: &str, words: &[&str]) -> Option<Result<Action, Refusal>> {
    let job = || words.first().copied().unwrap_or_default().to_owned();
    let second = || words.get(1).filter(|word| !word.is_empty()).map(|word| (*word).to_owned());
    let queue = |set| Action::Queue { queue: job(), set };
    Some(Ok(match (command, words.len()) {
        ("pbsrunjob", 1 | 2) => Action::Run { job: job(), place: second() },
        ("pbsasyrunjob", 1 | 2) => Action::AsyRun { job: job(), place: second() },
        ("pbsrerunjob", 1) => Action::Rerun { job: job() },
        ("pbsdeljob", 1) => Action::Delete { job: job(), delay: None },
        ("pbsholdjob", 1) => Action::Hold { job: job(), kinds: None },
        ("pbsmovejob", 1 | 2) => Action::Move { job: job(), to: second() },
        ("pbsqenable", 1) => queue(Gate::Enable),
        ("pbsqdisable", 1) => queue(Gate::Disable),
        ("pbsqstart", 1) => queue(Gate::Start),
        ("pbsqstop", 1) => queue(Gate::Stop),
        ("pbsrescrelease", 1) => match job().parse() {
            Ok(number) => Action::Unreserve { number },
            Err(_) => return Some(Err(Refusal::new(Code::BadRequest, "expected the number of a reservation"))),
        },
        ("pbsalterjob", 2) => match changes(words.get(1)?) {
            Some(changes) => Action::Alter { job: job(), changes },
            None => {
                let text = "expected a list of attributes, each as {name resource value}";
                return Some(Err(Refusal::new(Code::BadRequest, text)));
            }
        },
        _ => return None,
    }))
}

/// `{{name resource value}...}`; a pair is a name and a value.
fn changes(list: &str) -> Option<Vec<Change>> {
    let change = |words: String| {
        let mut words = split(&words)?.into_iter();
        let (name, second, third) = (words.next()?, words.next()?, words.next());
        let (resource, value) = match third {
            Some(value) => (Some(second).filter(|resource| !resource.is_empty()), value),
            None => (None, second),
        };
        words.next().is_none().then_some(Change { name, resource, value })
    };
    let changes: Vec<Change> = split(list)?.into_iter().map(change).collect::<Option<_>>()?;
    (!changes.is_empty()).then_some(changes)
}

fn query(docket: &Docket<'_>, resources: &str) -> Reply {
    let Some(resources) = split(resources) else { return failure(Code::BadRequest, "") };
    let mut lists = Vec::with_capacity(resources.len());
    for resource in &resources {
        let Some(specification) = Specification::parse(resource) else { return failure(Code::UnknownResource, "") };
        let counts = specification.counts(docket.state());
        let numbers = [counts.available, counts.allocated, counts.reserved, counts.down];
        lists.push(join(&numbers.map(|number| number.to_string())));
    }
    value(join(&lists))
}

fn reservation(number: &str, resources: &str) -> Option<Action> {
    Some(Action::Reserve { number: number.parse().ok()?, resources: split(resources)? })
}
