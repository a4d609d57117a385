//! `oarstat`.

use super::{
    ended::{Ended, Failure, print},
    events, gantt,
    jobs::{self, LIVE},
    oaraccounting, select,
    site::{Site, user_name},
    words::{self, Known, Takes, Words},
};
use muster_cli::{connection::ConnectionOptions, stderr_line};
use muster_client::Moment;
use muster_oar::{
    life::deletion,
    show::{
        document::{Form, written},
        jobs::{Job, array_table, compact_table, document, full, states, table},
    },
    text::shown,
};
use muster_schemas::views::JobDetail;

const OPTIONS: [Known; 17] = [
    ('j', "job", Takes::Value),
    ('f', "full", Takes::Nothing),
    ('s', "state", Takes::Nothing),
    ('u', "user", Takes::Maybe),
    ('\0', "array", Takes::Maybe),
    ('c', "compact", Takes::Nothing),
    ('g', "gantt", Takes::Value),
    ('e', "events", Takes::Nothing),
    ('p', "properties", Takes::Nothing),
    ('\0', "accounting", Takes::Value),
    ('\0', "sql", Takes::Value),
    ('X', "xml", Takes::Nothing),
    ('Y', "yaml", Takes::Nothing),
    ('J', "json", Takes::Nothing),
    ('D', "dumper", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oarstat [-f | -s | -e | -p | -J | -Y | -X | -D] [-j JOB] [-u [USER]] [--array [JOB]] \
                     [--sql FILTER] [-c]\n       oarstat [-J | -Y | -X | -D] --gantt \"FROM, TO\"\n       oarstat [-J | -Y | -X | -D] \
                     --accounting \"YYYY-MM-DD, YYYY-MM-DD\" [-u [USER]]\n";

/// Runs a command line of `oarstat`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    let words = words::read(words, &OPTIONS)?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    if let Some(word) = words.operands.first() {
        return Err(Failure::new(format_args!("expected an option, found '{}'; -j names a job", shown(word))));
    }
    let form = form(&words);
    if words.has("compact") && (form.is_some() || words.has("full")) {
        return Err(Failure::new("/!\\ ERROR: compact view cannot be used with exports or full view"));
    }
    let mut site = Site::open(connection)?;
    if let Some(text) = words.value("gantt") {
        return gantt::shown_for(&mut site, text, form);
    }
    if let Some(text) = words.value("accounting") {
        return oaraccounting::shown_for(&mut site, text, &words, form);
    }
    let is_short = form.is_none() && !["full", "events", "properties", "compact"].iter().any(|name| words.has(name));
    let is_any = !words.has("job") && !words.has("sql") && words.value("array").is_none();
    if is_short && is_any {
        let jobs: Vec<Job> = live(&mut site, &words)?.iter().map(jobs::listed).collect();
        print(&if words.has("state") { states(&jobs) } else { table(&jobs, &site.zone) });
        return Ok(0);
    }
    let (details, status) = meant(&mut site, &words)?;
    shown_as(&mut site, &words, form, &details)?;
    Ok(status)
}

fn form(words: &Words) -> Option<Form> {
    let forms = [("json", Form::Json), ("yaml", Form::Yaml), ("xml", Form::Xml), ("dumper", Form::Dumper)];
    forms.into_iter().find(|(name, _)| words.has(name)).map(|(_, form)| form)
}

fn live(site: &mut Site, words: &Words) -> Result<Vec<muster_schemas::views::JobView>, Failure> {
    let user = words.value("user").map(|user| if user.is_empty() { user_name() } else { user.to_owned() });
    select::listed(site, user.as_deref(), &LIVE)
}

/// The jobs with everything about them, and the status for those that do not exist.
fn meant(site: &mut Site, words: &Words) -> Result<(Vec<JobDetail>, u8), Failure> {
    let id = |word: &str| {
        deletion::id(word).map_err(|_| Failure::new(format_args!("expected the id of a job, found '{}'", shown(word))))
    };
    let ids = words.values("job").map(id).collect::<Result<Vec<u64>, _>>()?;
    let array = words.value("array").filter(|word| !word.is_empty()).map(id).transpose()?;
    match (ids.is_empty(), array) {
        (false, Some(_)) => Err(Failure::new("--array and -j cannot be used together")),
        (false, None) => {
            let found = select::by_ids(site, &ids)?;
            let missing: Vec<&u64> =
                ids.iter().filter(|id| !found.iter().any(|detail| detail.job.own_number() == **id)).collect();
            missing.iter().for_each(|id| stderr_line!("oarstat: job {id} does not exist"));
            Ok((found, u8::from(!missing.is_empty())))
        }
        (true, Some(array)) => Ok((select::of_array(site, array)?, 0)),
        (true, None) => match words.value("sql") {
            Some(filter) => {
                let cluster = site.cluster()?;
                let found = select::by_filter(site, filter, &cluster)?;
                Ok((found.into_iter().map(|(detail, _)| detail).collect(), 0))
            }
            None => {
                let ids: Vec<u64> = live(site, words)?.iter().map(|view| view.own_number()).collect();
                Ok((select::by_ids(site, &ids)?, 0))
            }
        },
    }
}

fn shown_as(site: &mut Site, words: &Words, form: Option<Form>, details: &[JobDetail]) -> Result<(), Failure> {
    let cluster = site.cluster()?;
    let with_events = words.has("events") || words.has("full") || form.is_some();
    let mut jobs = Vec::new();
    for detail in details {
        let events = match with_events && words.has("job") {
            true => {
                let signal = detail.spec.checkpoint.map(|checkpoint| checkpoint.signal);
                events::named(&site.client.job_events(detail.job.id, Moment::Now)?, signal)
            }
            false => Vec::new(),
        };
        jobs.push(jobs::detailed(detail, &cluster, events));
    }
    let text = match form {
        Some(form) => written(&document(&jobs), form),
        None if words.has("state") => states(&jobs),
        None if words.has("events") => muster_oar::show::jobs::events(&jobs, &site.zone),
        None if words.has("properties") => properties(&jobs, &cluster),
        None if words.has("full") => full(&jobs, &site.zone),
        None if words.has("compact") => compact_table(&jobs, &site.zone),
        None if words.has("array") => array_table(&jobs, &site.zone),
        None => table(&jobs, &site.zone),
    };
    print(&text);
    Ok(())
}

/// The properties of the resources of jobs, one resource in a line: `oarstat -p`.
fn properties(jobs: &[Job], cluster: &super::cluster::Cluster) -> String {
    let lines = jobs.iter().flat_map(|job| {
        muster_oar::life::launch::property_file(&cluster.table, &job.resources.iter().copied().collect())
    });
    lines.fold(String::new(), |out, line| out + &line + "\n")
}
