//! `oarprint`: the properties of a job's resources, sorted and grouped.

use super::{
    ended::{Ended, Failure, print},
    jobs, select,
    site::Site,
    words::{self, Known, Takes},
};
use muster_cli::connection::ConnectionOptions;
use muster_oar::{
    life::launch::property_file,
    show::printed::{Form, LONGEST_FILE, Resource, lines, read},
    text::{decimal, shown},
};
use std::io::Read as _;

const OPTIONS: [Known; 9] = [
    ('f', "file", Takes::Value),
    ('j', "job", Takes::Value),
    ('P', "properties", Takes::Value),
    ('F', "format", Takes::Value),
    ('T', "token", Takes::Value),
    ('C', "comma", Takes::Value),
    ('l', "list", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oarprint [-f FILE | -j JOB] [-P PROPERTIES] [-F FORMAT] [-T TOKEN] [-C SEPARATOR] PROPERTY\n       \
                     oarprint [-f FILE | -j JOB] -l\n";
/// The variable with the path of the job's file.
const FILE: &str = "OAR_RESOURCE_PROPERTIES_FILE";

/// Runs a command line of `oarprint`.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let own_file = || variable(FILE).filter(|path| std::path::Path::new(path).exists());
    let job = words.value("job").map(str::to_owned);
    let resources = match (words.value("file"), job) {
        (Some(path), None) => of_file(path)?,
        (None, Some(job)) => of_job(connection, &job)?,
        (Some(_), Some(_)) => return Err(Failure::new("-f and -j do not go together")),
        (None, None) => match (own_file(), variable("OAR_JOB_ID")) {
            (Some(path), _) => of_file(&path)?,
            (None, Some(job)) => of_job(connection, &job)?,
            (None, None) => return Err(Failure::new("no input data available: call it in a job, or name one with -j")),
        },
    };
    if words.has("list") {
        let names = resources.first().map(|one| one.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        print(&format!("List of properties:\n{}\n", names.join(", ")));
        return Ok(0);
    }
    let [key] = &words.operands[..] else { return Err(Failure::new(USAGE.trim_end())) };
    let mut form = Form { key: key.clone(), ..Form::default() };
    let properties = words.value("properties").map(|text| text.split(',').map(|name| name.trim().to_owned()));
    form.properties = properties.map(Iterator::collect).unwrap_or_default();
    form.format = words.value("format").map(str::to_owned);
    form.token = words.value("token").map_or(form.token, str::to_owned);
    form.separator = words.value("comma").map_or(form.separator, str::to_owned);
    let lines = lines(&resources, &form).map_err(Failure::new)?;
    print(&lines.iter().fold(String::new(), |text, line| text + line + "\n"));
    Ok(0)
}

fn of_file(path: &str) -> Result<Vec<Resource>, Failure> {
    let most = LONGEST_FILE as u64 + 1;
    let mut text = String::new();
    let done = match path {
        "-" => std::io::stdin().take(most).read_to_string(&mut text),
        path => std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text)),
    };
    done.map_err(|error| Failure::new(format_args!("{}: {error}", shown(path))))?;
    if text.len() > LONGEST_FILE {
        return Err(Failure::new(format_args!("{}: is longer than {LONGEST_FILE} bytes", shown(path))));
    }
    read(&text).map_err(|why| Failure::new(format_args!("{}, {why}", shown(path))))
}

fn of_job(connection: &ConnectionOptions, word: &str) -> Result<Vec<Resource>, Failure> {
    let wrong = || Failure::new(format_args!("expected the id of a job, found '{}'", shown(word)));
    let id = decimal::<u64>(word).filter(|id| *id > 0).ok_or_else(wrong)?;
    let mut site = Site::open(connection)?;
    let detail = select::by_ids(&mut site, &[id])?.pop();
    let detail = detail.ok_or_else(|| Failure::new(format_args!("job {id} does not exist")))?;
    let cluster = site.cluster()?;
    let job = jobs::detailed(&detail, &cluster, Vec::new());
    let text = property_file(&cluster.table, &job.resources.into_iter().collect());
    read(&text.join("\n")).map_err(Failure::new)
}
