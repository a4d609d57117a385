//! `muster events` and `muster job events`.

use crate::{
    cli::{ConnectionOptions, EventsOptions},
    exit::{CommandResult, Failure},
    show,
    story::Story,
    table::printable,
    terminal::waiting,
};
use jiff::tz::TimeZone;
use muster_cli::stderr_line;
use muster_client::{Client, ClientError, Moment};
use muster_schemas::{JobId, Sequence, Timestamp};
use serde::Deserialize;
use std::{io::Write, time::Duration};

/// The indentation of lines below an event.
const BELOW: usize = 11;

/// The fields of a CloudEvent that are shown.
#[derive(Deserialize)]
struct Shown {
    id: String,
    time: Timestamp,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    summary: String,
}

/// Prints events.
pub fn events(connection: &ConnectionOptions, options: &EventsOptions) -> CommandResult {
    let mut client = connection.client()?;
    let first = options.from.map(Sequence).or((!options.follow).then_some(Sequence(1)));
    let kinds: Vec<String> = options.kind.iter().cloned().collect();
    let mut stream = client.events(first, options.job, &kinds)?;
    let mut printer = Printer::new(options.json);
    let (mut lost, mut any) = (false, false);
    loop {
        let event = match stream.next_until_caught_up() {
            Ok(Some(event)) => event,
            Ok(None) if options.follow => continue,
            Ok(None) => break,
            Err(error) if !options.follow || error.is_refusal() => return Err(error.into()),
            Err(error) => {
                wait_after(&error, &mut lost);
                continue;
            }
        };
        if std::mem::take(&mut lost) {
            stderr_line!("muster: connected again");
        }
        let past = options.at_seq.is_some_and(|last| event.sequence.0 > last)
            || options.at.is_some_and(|last| parse(&event.json).is_ok_and(|shown| shown.time > last));
        if past {
            break;
        }
        any = true;
        printer.print(&event.json)?;
        if options.follow {
            printer.out.flush()?;
        }
    }
    printer.out.flush()?;
    // An unknown job has no events; a forgotten one has.
    if let Some(job) = options.job.filter(|_| !any) {
        client.job(job, Moment::Now)?;
    }
    Ok(0)
}

/// With `--follow`, continue when the gateway is back.
fn wait_after(error: &ClientError, lost: &mut bool) {
    if !std::mem::replace(lost, true) {
        stderr_line!("muster: {error}; trying again");
    }
    std::thread::sleep(Duration::from_secs(1));
}

/// Prints what happened to a job.
pub fn of_job(client: &mut Client, job: JobId, json: bool) -> CommandResult {
    let events = waiting("reading the history of the job", || client.job_events(job, Moment::Now))?;
    let (mut printer, mut story) = (Printer::new(json), Story::default());
    for event in events {
        if json {
            printer.print(&event.to_string())?;
            continue;
        }
        let (sentence, below) = story.tell(&event);
        printer.line(&parse(&event.to_string())?, &sentence)?;
        for line in below {
            writeln!(printer.out, "{:>BELOW$}{line}", "")?;
        }
    }
    printer.out.flush()?;
    Ok(0)
}

fn parse(json: &str) -> Result<Shown, Failure> {
    serde_json::from_str(json)
        .map_err(|error| Failure::failed(format!("the gateway sent an event that is none: {error}")))
}

struct Printer {
    json: bool,
    zone: TimeZone,
    /// Maps the places of filters, which most events have, to their names.
    story: Story,
    out: std::io::BufWriter<std::io::Stdout>,
}

impl Printer {
    fn new(json: bool) -> Self {
        Self {
            json,
            zone: TimeZone::system(),
            story: Story::default(),
            out: std::io::BufWriter::new(std::io::stdout()),
        }
    }

    fn print(&mut self, json: &str) -> Result<(), Failure> {
        if self.json {
            writeln!(self.out, "{json}")?;
            return Ok(());
        }
        let shown = parse(json)?;
        // Few events are about filters, and all of them name their chain.
        let told = json.contains("\"chain\"").then(|| serde_json::from_str(json).ok()).flatten();
        let sentence = told.map_or_else(|| printable(&shown.summary), |event| self.story.tell(&event).0);
        self.line(&shown, &sentence)
    }

    /// The line of an event with its sentence.
    fn line(&mut self, event: &Shown, sentence: &str) -> Result<(), Failure> {
        let time = show::local_time_column(event.time, &self.zone);
        let sentence = show::with_zoned_times(sentence, &self.zone);
        writeln!(self.out, "{:>7}  {time}  {:<14}  {sentence}", event.id, printable(&event.actor))?;
        Ok(())
    }
}
