//! The options in force for a job: those of the command line win over those of the script, which win over defaults.

use super::{equals, letters};
use crate::{
    array,
    attributes::names,
    depend,
    flavour::Flavour,
    getopt::Given,
    refusal::Refusal,
    resources::{self, Resource},
    script,
    staging::{self, StagedFile},
    text::{decimal, split, unquoted},
    value::parse_date_time,
    variables::{self, Variable},
};
use jiff::Zoned;
use muster_schemas::{
    job::{ArraySpec, Dependencies},
    time::Timestamp,
};
use std::collections::BTreeMap;

/// What the values of options are read with.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The time of submission, in the submitter's zone.
    pub now: &'a Zoned,
    /// The member of the family, where it decides what an option means.
    pub flavour: Flavour,
    /// Indices of arrays are below it.
    pub array_limit: u32,
}

/// Which output streams go to one file (`-j`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// Each has its own.
    #[default]
    Neither,
    /// Both go to that of standard output: `oe`.
    ToOutput,
    /// Both go to that of standard error: `eo`.
    ToError,
}

/// Which output files stay where the job runs (`-k`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Standard output, in the home folder.
    pub output: bool,
    /// Standard error, in the home folder.
    pub error: bool,
    /// PBS Pro's `d`: both are written where they belong, not copied there.
    pub direct: bool,
}

/// When mail is sent (`-m`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailPoints {
    /// `a`: the job is aborted. TORQUE's `f`, a failure, counts as this too.
    pub abort: bool,
    /// `b`: it begins.
    pub begin: bool,
    /// `e`: it ends.
    pub end: bool,
    /// `j`: for each task of an array.
    pub each_task: bool,
}

/// The options in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `-a`.
    pub begin: Option<Timestamp>,
    /// `-A`.
    pub account: Option<String>,
    /// `-P` of PBS Pro.
    pub project: Option<String>,
    /// `-e`.
    pub error: Option<String>,
    /// `-o`.
    pub output: Option<String>,
    /// `-j`.
    pub join: Join,
    /// `-k`.
    pub keep: Keep,
    /// `-h`.
    pub hold: bool,
    /// `-I`.
    pub interactive: bool,
    /// `-m`; `None` if not given.
    pub mail: Option<MailPoints>,
    /// `-M`.
    pub mail_to: Vec<String>,
    /// `-N`.
    pub name: Option<String>,
    /// `-p`.
    pub priority: Option<i64>,
    /// `-q`, its queue.
    pub queue: Option<String>,
    /// `-q`, its server.
    pub server: Option<String>,
    /// `-r`.
    pub rerunnable: Option<bool>,
    /// `-S`.
    pub shell: Option<String>,
    /// `-u`.
    pub user: Option<String>,
    /// `-W group_list`.
    pub group: Option<String>,
    /// `-v`.
    pub variables: Vec<Variable>,
    /// `-V`.
    pub all_variables: bool,
    /// `-z`.
    pub silent: bool,
    /// `-J` or `-t`.
    pub array: Option<ArraySpec>,
    /// `-W max_run_subjobs`: the most tasks of the array that run at a time.
    pub max_running: Option<u32>,
    /// `-l`, each resource once.
    pub resources: Vec<Resource>,
    /// `-W depend`.
    pub dependencies: Dependencies,
    /// `-W stagein`.
    pub stagein: Vec<StagedFile>,
    /// `-W stageout`.
    pub stageout: Vec<StagedFile>,
    /// `-W block`.
    pub block: bool,
    /// `-W umask`.
    pub umask: Option<u32>,
    /// `-d` or `-w` of TORQUE: where the job's processes start.
    pub directory: Option<String>,
    /// `-n` of TORQUE: other jobs do not use its nodes.
    pub whole_nodes: bool,
    /// `-K` of TORQUE: seconds from SIGTERM to SIGKILL.
    pub kill_delay_seconds: Option<u32>,
    /// `-F` of TORQUE: arguments of the script.
    pub arguments: Vec<String>,
    /// What was given, as written, by the attribute's name.
    pub given: BTreeMap<&'static str, String>,
    /// A sentence for each request that is kept and shown but has no effect.
    pub warnings: Vec<String>,
}

/// Names by which `-W` sets what has a letter.
const LONG_NAMES: [(&str, char); 14] = [
    ("Account_Name", 'A'),
    ("Checkpoint", 'c'),
    ("Error_Path", 'e'),
    ("Join_Path", 'j'),
    ("Keep_Files", 'k'),
    ("Mail_Points", 'm'),
    ("Mail_Users", 'M'),
    ("Job_Name", 'N'),
    ("Output_Path", 'o'),
    ("Priority", 'p'),
    ("project", 'P'),
    ("Rerunable", 'r'),
    ("Shell_Path_List", 'S'),
    ("User_List", 'u'),
];

/// Requests of `-l` that say how large a job is, of which only one kind can be in force.
const SIZES: [&str; 4] = ["select", "nodes", "ncpus", "procs"];

/// Requests that servers compute from the size of a job.
const COMPUTED: [&str; 2] = ["nodect", "procct"];

/// Requests for the whole job that say what belongs into the chunks of a `select`.
const BESIDE_SELECT: [&str; 9] = ["mem", "host", "vnode", "arch", "mpiprocs", "ompthreads", "ngpus", "gpus", "feature"];

/// The longest name of a job.
const MOST_NAME_BYTES: usize = 236;

impl Settings {
    /// The options of a submission: `defaults` of the site and of variables, then those of the script, then those of the
    /// command line. `prefix` is [`script::prefix`].
    ///
    /// # Errors
    /// A value that cannot be read or is not supported, or options that exclude each other.
    pub fn read(
        defaults: &[Given],
        script: Option<&str>,
        prefix: Option<&str>,
        line: &[Given],
        reading: &Reading<'_>,
    ) -> Result<Self, Refusal> {
        let directives = script.map(|text| letters::directives(text, prefix)).transpose()?.unwrap_or_default();
        let mut settings = Self::default();
        for source in [defaults, &directives, line] {
            settings.take_all(source, reading)?;
        }
        settings.check()?;
        Ok(settings)
    }

    /// With requests of the site beneath those of the submission, each list beneath the next one: those of the server, then those of
    /// the queue (PBS-Q-08). Of several sizes in one list the first kind of `select`, `nodes`, `ncpus` and `procs` counts.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn over(mut self, defaults: Vec<Vec<Resource>>) -> Result<Self, Refusal> {
        let own = std::mem::take(&mut self.resources);
        for mut requests in defaults {
            let size = SIZES.iter().find(|size| requests.iter().any(|request| request.name == **size));
            requests.retain(|request| {
                !SIZES.contains(&request.name.as_str()) || size.is_some_and(|size| request.name == *size)
            });
            // They follow from the size.
            requests.retain(|request| !COMPUTED.contains(&request.name.as_str()));
            self.take_requests(requests)?;
        }
        self.take_requests(own)?;
        self.check()?;
        Ok(self)
    }

    fn take_all(&mut self, source: &[Given], reading: &Reading<'_>) -> Result<(), Refusal> {
        let mut requests: Vec<Resource> = Vec::new();
        for given in source {
            if given.letter == 'l' {
                for request in resources::parse(&given.value)? {
                    requests.retain(|earlier| earlier.name != request.name);
                    requests.push(request);
                }
                continue;
            }
            self.take(given.letter, &given.value, reading)?;
        }
        self.take_requests(requests)
    }

    /// The account of the job: its project, else its account. Limits of projects count it (PBS-Q-02).
    pub(super) fn charged_account(&self) -> Option<&String> {
        self.project.as_ref().or(self.account.as_ref())
    }

    /// Requests of a later source replace those of the same name, and its size replaces another kind of size.
    pub(super) fn take_requests(&mut self, requests: Vec<Resource>) -> Result<(), Refusal> {
        let is_size = |request: &&Resource| SIZES.contains(&request.name.as_str());
        let sizes: Vec<&str> = requests.iter().filter(is_size).map(|request| request.name.as_str()).collect();
        if sizes.len() > 1 {
            return Err(Refusal::Conflict(format!("-l {} cannot be given together", sizes.join(" and -l "))));
        }
        let replaced: &[&str] = match sizes.first() {
            Some(&"select") => &BESIDE_SELECT,
            Some(&"nodes") => &["place"],
            _ => &[],
        };
        if !sizes.is_empty() {
            self.resources.retain(|earlier| !is_size(&earlier) && !replaced.contains(&earlier.name.as_str()));
        }
        self.resources.retain(|earlier| requests.iter().all(|request| request.name != earlier.name));
        self.resources.extend(requests);
        Ok(())
    }

    fn keep(&mut self, name: &'static str, text: &str) {
        self.given.insert(name, text.to_owned());
    }

    fn warn(&mut self, what: &str, why: &str) {
        let warning = format!("warning: {what} has no effect here: {why}");
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn take(&mut self, letter: char, value: &str, reading: &Reading<'_>) -> Result<(), Refusal> {
        let option = format!("-{letter}");
        let wrong = |why: &str| Err(Refusal::value(&option, value, why));
        let text = value.trim();
        match letter {
            'a' => {
                let begin = parse_date_time(text, reading.now);
                let expected = "expected [[[[CC]YY]MM]DD]hhmm[.SS]";
                self.begin = Some(begin.ok_or_else(|| Refusal::value(&option, value, expected))?);
            }
            'A' => {
                self.account = Some(text.to_owned());
                self.keep(names::ACCOUNT, text);
            }
            'c' => self.take_checkpoint(text)?,
            // Read before the script is.
            'C' => {}
            'd' | 'w' => self.directory = Some(text.to_owned()).filter(|path| !path.is_empty()),
            'e' => {
                self.error = Some(path(&option, value)?);
                self.keep(names::ERROR_PATH, text);
            }
            'o' => {
                self.output = Some(path(&option, value)?);
                self.keep(names::OUTPUT_PATH, text);
            }
            'f' if reading.flavour == Flavour::Torque => {
                self.warn("-f", "a job always survives the loss of a node as -r says");
            }
            'f' => {}
            'b' => self.warn("-b", "how long the command waits for the system is part of its own configuration"),
            'F' => self.arguments = script::words(value, 0)?,
            'h' => self.hold = true,
            'I' => self.take_interactive(),
            'j' => {
                self.join = join(text).ok_or_else(|| Refusal::value(&option, value, "expected oe, eo or n"))?;
                self.keep(names::JOIN_PATH, text);
            }
            'J' | 't' => {
                self.array = Some(array::parse(&option, text, reading.array_limit)?);
                self.keep(names::ARRAY_INDICES, text);
            }
            'k' => {
                self.keep =
                    keep(text).ok_or_else(|| Refusal::value(&option, value, "expected n, or letters of oed"))?;
                self.keep(names::KEEP_FILES, text);
            }
            'K' => match decimal(text) {
                Some(seconds) => self.kill_delay_seconds = Some(seconds),
                None => return wrong("expected a number of seconds"),
            },
            'm' => {
                let points = mail_points(text);
                self.mail =
                    Some(points.ok_or_else(|| Refusal::value(&option, value, "expected n, or letters of abejf"))?);
                self.keep(names::MAIL_POINTS, text);
            }
            'M' => {
                self.mail_to = addresses(&option, text)?;
                self.keep(names::MAIL_USERS, text);
            }
            'n' => self.whole_nodes = true,
            'N' => self.name = Some(name(&option, value)?),
            'p' => match text.strip_prefix('+').unwrap_or(text).parse::<i64>() {
                Ok(priority) if (-1024..=1023).contains(&priority) => {
                    self.priority = Some(priority);
                    self.keep(names::PRIORITY, &priority.to_string());
                }
                _ => return wrong("expected a number from -1024 to 1023"),
            },
            'P' if reading.flavour == Flavour::Torque => {
                return Err(Refusal::unsupported("-P", "jobs are submitted for their submitter only"));
            }
            'P' => {
                self.project = Some(text.to_owned());
                self.keep(names::PROJECT, text);
            }
            'q' => (self.queue, self.server) = destination(&option, text)?,
            'r' => match text {
                "y" | "Y" | "True" | "true" => self.take_rerunnable(true),
                "n" | "N" | "False" | "false" => self.take_rerunnable(false),
                _ => return wrong("expected y or n"),
            },
            'R' => {
                self.keep(names::REMOVE_FILES, text);
                self.warn("-R", "output files are not removed");
            }
            'S' => {
                self.shell = Some(shell(&option, text)?);
                self.keep(names::SHELL, text);
            }
            'u' => {
                self.user = of_any_host(text);
                self.keep(names::USER_LIST, text);
            }
            'v' => self.variables = variables::parse(value)?,
            'V' => self.all_variables = true,
            'W' => {
                for (keyword, value) in equals::parse(text)? {
                    self.take_attribute(keyword, &value, reading)?;
                }
            }
            'z' => self.silent = true,
            letter => return Err(unsupported(letter)),
        }
        Ok(())
    }

    fn take_interactive(&mut self) {
        self.interactive = true;
        self.keep(names::INTERACTIVE, "True");
    }

    fn take_rerunnable(&mut self, rerunnable: bool) {
        self.rerunnable = Some(rerunnable);
        self.keep(names::RERUNABLE, if rerunnable { "True" } else { "False" });
    }

    fn take_checkpoint(&mut self, text: &str) -> Result<(), Refusal> {
        let is_known = |word: &str| {
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            match name {
                "n" | "s" | "none" | "enabled" | "shutdown" | "periodic" => value.is_none(),
                "c" | "w" => value.is_none_or(|minutes| decimal::<u32>(minutes).is_some()),
                "interval" | "depth" => value.is_some_and(|number| decimal::<u32>(number).is_some()),
                "dir" => value.is_some_and(|path| !path.is_empty()),
                _ => false,
            }
        };
        if !text.split(',').all(is_known) {
            let expected = "expected n, s, c, c=minutes, w, w=minutes, or TORQUE's words";
            return Err(Refusal::value("-c", text, expected));
        }
        self.keep(names::CHECKPOINT, text);
        if !matches!(text, "n" | "none") {
            self.warn("-c", "no checkpoints are made");
        }
        Ok(())
    }

    fn take_attribute(&mut self, keyword: &str, value: &str, reading: &Reading<'_>) -> Result<(), Refusal> {
        let option = format!("-W {keyword}");
        let plain = unquoted(value);
        let wrong = |why: &str| Err(Refusal::value(&option, value, why));
        if let Some((_, letter)) = LONG_NAMES.iter().find(|(name, _)| *name == keyword) {
            return self.take(*letter, &plain, reading).map_err(|wrong| wrong.of_option(&option));
        }
        match keyword {
            "depend" => {
                self.dependencies = depend::parse(&plain)?;
                self.keep(names::DEPEND, &plain);
            }
            "stagein" => {
                self.stagein = staging::parse(&option, value)?;
                self.keep(names::STAGEIN, value);
            }
            "stageout" => {
                self.stageout = staging::parse(&option, value)?;
                self.keep(names::STAGEOUT, value);
            }
            "block" => match boolean(&plain) {
                Some(block) => {
                    self.block = block;
                    self.keep(names::BLOCK, if block { "True" } else { "False" });
                }
                None => return wrong("expected true or false"),
            },
            "interactive" => match boolean(&plain) {
                Some(true) => self.take_interactive(),
                Some(false) => {}
                None => return wrong("expected true or false"),
            },
            "umask" => {
                match u32::from_str_radix(&plain, 8).ok().filter(|mask| *mask <= 0o777 && !plain.contains('+')) {
                    Some(umask) => {
                        self.umask = Some(umask);
                        self.keep(names::UMASK, &plain);
                    }
                    None => return wrong("expected an octal number up to 777"),
                }
            }
            "group_list" => {
                self.group = of_any_host(&plain);
                self.keep(names::GROUP_LIST, &plain);
            }
            "run_count" => match decimal::<u32>(&plain) {
                Some(_) => {
                    self.keep(names::RUN_COUNT, &plain);
                    self.warn(&option, "runs are counted from the first");
                }
                None => return wrong("expected a number"),
            },
            "sandbox" => match plain.to_ascii_uppercase().as_str() {
                "HOME" => self.keep(names::SANDBOX, "HOME"),
                "O_WORKDIR" => self.keep(names::SANDBOX, "O_WORKDIR"),
                "PRIVATE" => return Err(Refusal::unsupported("-W sandbox=PRIVATE", "jobs start in the home folder")),
                _ => return wrong("expected HOME, O_WORKDIR or PRIVATE"),
            },
            "max_run_subjobs" => match decimal::<u32>(&plain).filter(|most| *most > 0) {
                Some(most) => self.max_running = Some(most),
                None => return wrong("expected a number from 1"),
            },
            "x" => {
                self.keep(names::EXTENSION, value);
                self.warn("-W x", "extensions are those of another scheduler");
            }
            "Hold_Types" => match plain.as_str() {
                "u" => self.hold = true,
                "n" => self.hold = false,
                _ => return wrong("expected u or n; operators set other holds with qhold"),
            },
            _ => return Err(Refusal::unsupported(&option, "no attribute of this name is known")),
        }
        Ok(())
    }

    /// What cannot be combined.
    pub(super) fn check(&mut self) -> Result<(), Refusal> {
        if self.interactive && self.array.is_some() {
            return Err(Refusal::Conflict("an interactive job cannot be an array".to_owned()));
        }
        if self.array.is_some() && self.rerunnable == Some(false) {
            return Err(Refusal::Conflict("the tasks of an array are rerunnable: -r n cannot be given".to_owned()));
        }
        if let (Some(most), Some(array)) = (self.max_running, &mut self.array) {
            array.max_running = Some(most);
        }
        if self.interactive && self.block {
            self.block = false;
            self.warn("-W block=true", "an interactive job is waited for anyway");
        }
        let is_select = |name: &str| self.resources.iter().any(|request| request.name == name);
        if is_select("nodes") && is_select("place") {
            return Err(Refusal::Conflict("-l place goes with -l select, not with -l nodes".to_owned()));
        }
        Ok(())
    }
}

/// An option that this system does not do.
fn unsupported(letter: char) -> Refusal {
    let why = match letter {
        'D' => "jobs are not put into a root folder of their own; containers are",
        'L' => "tasks, places and cores are requested with -l select or -l nodes",
        'T' => "the site configures what runs before and after jobs",
        'X' => "X11 is not forwarded; ssh -X into a node of the job is possible where the site allows it",
        'x' => "an interactive job starts a shell; the script's directives count, the script is not run",
        _ => "no such option is known",
    };
    Refusal::unsupported(&format!("-{letter}"), why)
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "y" | "1" => Some(true),
        "false" | "f" | "n" | "0" => Some(false),
        _ => None,
    }
}

pub(super) fn join(text: &str) -> Option<Join> {
    match text {
        "oe" => Some(Join::ToOutput),
        "eo" => Some(Join::ToError),
        "n" => Some(Join::Neither),
        _ => None,
    }
}

pub(super) fn keep(text: &str) -> Option<Keep> {
    if text == "n" {
        return Some(Keep::default());
    }
    let is_known = !text.is_empty() && text.len() <= 3 && text.chars().all(|letter| "oed".contains(letter));
    is_known.then(|| Keep { output: text.contains('o'), error: text.contains('e'), direct: text.contains('d') })
}

pub(super) fn mail_points(text: &str) -> Option<MailPoints> {
    if matches!(text, "n" | "p") {
        return Some(MailPoints::default());
    }
    let is_known = !text.is_empty() && text.len() <= 5 && text.chars().all(|letter| "abejf".contains(letter));
    is_known.then(|| MailPoints {
        abort: text.contains(['a', 'f']),
        begin: text.contains('b'),
        end: text.contains('e'),
        each_task: text.contains('j'),
    })
}

/// The addresses of `-M`.
pub(super) fn addresses(option: &str, text: &str) -> Result<Vec<String>, Refusal> {
    let mut addresses = Vec::new();
    for address in text.split(',').map(str::trim).filter(|address| !address.is_empty()) {
        if address.starts_with('-') || address.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Refusal::value(option, address, "this is not an address"));
        }
        addresses.push(address.to_owned());
    }
    Ok(addresses)
}

/// A job's name. A leading equals sign is that of scripts that write `-N=name`.
fn name(option: &str, value: &str) -> Result<String, Refusal> {
    let name = unquoted(value.strip_prefix('=').unwrap_or(value).trim());
    let is_bad = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > MOST_NAME_BYTES || name.contains(is_bad) || name.starts_with('-') {
        let expected = format!("expected 1 to {MOST_NAME_BYTES} printable characters without blanks");
        return Err(Refusal::value(option, value, expected));
    }
    Ok(name)
}

/// A path for output, perhaps with a host.
fn path(option: &str, value: &str) -> Result<String, Refusal> {
    let path = unquoted(value.trim());
    if path.is_empty() || path.len() > 4_096 || path.contains(char::is_control) {
        return Err(Refusal::value(option, value, "expected [host:]path, at most 4096 bytes"));
    }
    Ok(path)
}

/// `queue`, `@server` or `queue@server`.
fn destination(option: &str, text: &str) -> Result<(Option<String>, Option<String>), Refusal> {
    let (queue, server) = text.split_once('@').map_or((text, None), |(queue, server)| (queue, Some(server)));
    let is_bad = |name: &str| name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@');
    if is_bad(queue) || server.is_some_and(|server| server.is_empty() || is_bad(server)) || text.is_empty() {
        return Err(Refusal::value(option, text, "expected queue, @server or queue@server"));
    }
    Ok((Some(queue.to_owned()).filter(|queue| !queue.is_empty()), server.map(str::to_owned)))
}

/// The shell of `path[@host],...` for any host.
fn shell(option: &str, text: &str) -> Result<String, Refusal> {
    let path = of_any_host(text).unwrap_or_default();
    if !path.starts_with('/') || path.contains(char::is_whitespace) {
        return Err(Refusal::value(option, text, "expected the absolute path of a shell without a host"));
    }
    Ok(path)
}

/// The entry of a list `name[@host],...` that has no host, else the first.
fn of_any_host(text: &str) -> Option<String> {
    let entries = split(text, ',');
    let plain = entries.iter().find(|entry| !entry.contains('@')).or(entries.first())?;
    let name = plain.split('@').next().unwrap_or_default().trim();
    Some(name.to_owned()).filter(|name| !name.is_empty())
}
