//! `tracejob`: the events of a job from the log.

use super::{
    ended::{Ended, Failure, print},
    site::{Site, refused},
};
use jiff::ToSpan as _;
use muster_cli::{stderr_line, story::Story};
use muster_client::Moment;
use muster_pbs::{
    job_id::PbsJobId,
    queries::{TraceRequest, tracejob},
    show::{TraceEvent, trace},
};
use muster_schemas::Timestamp;

/// Runs a command line of `tracejob`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = tracejob(words)?;
    let since = since(site, request.days)?;
    let mut status = 0;
    for id in &request.jobs {
        match of_job(site, &request, id, since) {
            Ok(text) => print(&text),
            Err(Failure { text, status: failed }) => {
                stderr_line!("tracejob: {text}");
                status = failed;
            }
        }
    }
    Ok(status)
}

/// The beginning of the first of this many days, of which today is the last.
fn since(site: &Site, days: u32) -> Result<Timestamp, Failure> {
    let now = site.now();
    let first = now.checked_sub((i64::from(days) - 1).days()).and_then(|day| day.start_of_day());
    let first = first.map_err(|error| Failure::new(format_args!("-n {days}: {error}")))?;
    Ok(Timestamp(first.timestamp().as_microsecond()))
}

fn of_job(site: &mut Site, request: &TraceRequest, id: &PbsJobId, since: Timestamp) -> Result<String, Failure> {
    site.require_own(id)?;
    site.require_whole(id)?;
    let job = id.single().ok_or_else(|| Failure::new(format_args!("{id} names several jobs; name one")))?;
    let events = site.client.job_events(job, Moment::Now).map_err(|error| {
        let (text, status) = refused(id, &error);
        Failure { text, status }
    })?;
    let mut story = Story::default();
    let one = |event: &serde_json::Value| {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let time = text("time").parse::<jiff::Timestamp>().ok()?;
        let (sentence, _) = story.tell(event);
        Some(TraceEvent { time: Timestamp(time.as_microsecond()), actor: text("actor").to_owned(), text: sentence })
    };
    let events: Vec<TraceEvent> = events.iter().filter_map(one).collect();
    let name = site.id_of(job, matches!(id.part, muster_pbs::job_id::Part::Array)).to_string();
    trace(&name, &events, since, request, &site.zone).ok_or_else(|| {
        let days = if request.days == 1 { "day".to_owned() } else { format!("{} days", request.days) };
        Failure::new(format_args!("no event of job {id} in the past {days}; -n DAYS looks further back"))
    })
}
