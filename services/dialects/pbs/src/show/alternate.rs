//! The lists of `-a`, `-i`, `-r`, `-u`, `-n` and `-s`.

use super::{
    cells::{cut, first, printable, word},
    status::Status,
};
use crate::{flavour::Flavour, resources::NodesSpec};
use jiff::{Zoned, tz::TimeZone};
use muster_schemas::time::Timestamp;
use std::{borrow::Cow, fmt::Write};

/// The unit of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// As they are.
    #[default]
    AsGiven,
    /// Gigabytes (`-G`).
    Gigabytes,
    /// Megawords of 8 bytes (`-M`).
    Megawords,
}

/// How the list is laid out.
#[derive(Clone, Debug)]
pub struct Alternate<'a> {
    /// The member of the family.
    pub flavour: Flavour,
    /// The server's name, above the list.
    pub server: &'a str,
    /// The server's comment, beside its name.
    pub comment: Option<&'a str>,
    /// The nodes of each job (`-n`).
    pub nodes: bool,
    /// The comment of each job (`-s`).
    pub comments: bool,
    /// Nodes and comments in the line of the job (`-1`).
    pub one_line: bool,
    /// Wider columns (`-w` of PBS Pro).
    pub wide: bool,
    /// The expected start in place of the time used (`-T` of PBS Pro).
    pub estimates: bool,
    /// The unit of sizes.
    pub units: Units,
    /// The current time and the reader's zone, for expected starts.
    pub now: &'a Zoned,
}

/// The mark for a missing value.
const BLANK: &str = " -- ";
/// The longest comment in a line, and in a wide one, with what follows a cut.
const COMMENT: [usize; 2] = [71, 111];

/// The list. Nothing is printed if there are no jobs, as in the originals.
pub fn alternate(jobs: &[Status], layout: &Alternate<'_>) -> String {
    let mut out = String::new();
    if jobs.is_empty() {
        return out;
    }
    let _ = write!(out, "\n{}: {}", layout.server, printable(layout.comment.unwrap_or_default()));
    header(layout, &mut out);
    for job in jobs {
        let cells = Cells::of(job, layout);
        match (layout.flavour, layout.wide) {
            (Flavour::PbsPro, false) => cells.pbs_pro(&mut out),
            (Flavour::PbsPro, true) => cells.pbs_pro_wide(&mut out),
            (Flavour::Torque, _) => cells.torque(&mut out),
        }
        behind(job, layout, &mut out);
    }
    out
}

fn header(layout: &Alternate<'_>, out: &mut String) {
    if layout.flavour == Flavour::Torque {
        let (gap, title) = (" ".repeat(82), "Req'd       Req'd       Elap");
        let _ = write!(out, "\n{gap}{title}");
        out.push_str(concat!(
            "\nJob ID                  Username    Queue    Jobname          SessID  NDS   TSK   Memory      Time    S   Time",
            "\n----------------------- ----------- -------- ---------------- ------ ----- ------ --------- --------- - ---------\n",
        ));
        return;
    }
    let last = if layout.estimates { "Start" } else { "Elap" };
    if layout.wide {
        let gap = " ".repeat(30 + 1 + 15 + 1 + 15 + 1 + 15 + 1 + 8 + 1 + 4 + 1 + 5 + 1);
        out.push('\n');
        if layout.estimates {
            let _ = writeln!(out, "{gap}               Est");
        }
        let _ = writeln!(out, "{gap}Req'd  Req'd   {last}");
        let _ = writeln!(
            out,
            "{:<30} {:<15} {:<15} {:<15} {:<8} {:<4} {:<5} Memory Time  S Time",
            "Job ID", "Username", "Queue", "Jobname", "SessID", "NDS", "TSK"
        );
        let dashes = [30, 15, 15, 15, 8, 4, 5].map(|width| "-".repeat(width)).join(" ");
        let _ = writeln!(out, "{dashes} ------ ----- - -----");
        return;
    }
    if layout.estimates {
        let _ = write!(out, "\n{:75}Est", " ");
    }
    let _ = writeln!(out, "\n{:60}{:<7}{:<8}{last}", " ", "Req'd", "Req'd");
    out.push_str(concat!(
        "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time\n",
        "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----\n",
    ));
}

/// The cells of a job, not cut.
struct Cells {
    id: String,
    user: String,
    queue: String,
    name: String,
    session: String,
    nodes: String,
    tasks: String,
    memory: String,
    requested: String,
    state: String,
    elapsed: String,
}

impl Cells {
    fn of(job: &Status, layout: &Alternate<'_>) -> Self {
        let requested = |name: &str| job.resource("Resource_List", name);
        let text = |text: Option<&str>| text.unwrap_or(BLANK).to_owned();
        let of_cpu = requested("cput").is_some();
        let time = if of_cpu { "cput" } else { "walltime" };
        let tasks = match layout.flavour {
            Flavour::PbsPro => requested("ncpus").filter(|count| *count != "0").map(str::to_owned),
            Flavour::Torque => requested("nodes")
                .and_then(|nodes| NodesSpec::parse(nodes).ok())
                .map(|nodes| nodes.processors().to_string())
                .or_else(|| requested("procs").or(requested("ncpus")).map(str::to_owned)),
        };
        let memory = ["mem", "pmem", "vmem", "pvmem"].into_iter().find_map(|name| {
            let is_shown = name == "mem" || layout.flavour == Flavour::Torque;
            requested(name).filter(|_| is_shown)
        });
        let elapsed = match (layout.estimates, layout.flavour) {
            (true, _) => estimate(job, layout),
            (false, Flavour::PbsPro) => text(job.resource("resources_used", time)),
            (false, Flavour::Torque) if of_cpu => text(job.resource("resources_used", time)),
            (false, Flavour::Torque) => {
                let is_shown = !matches!(job.get("job_state"), Some("Q" | "C" | "H" | "W"));
                text(job.resource("resources_used", "walltime").filter(|_| is_shown))
            }
        };
        Self {
            id: job.name.clone(),
            user: word(job.get("Job_Owner").unwrap_or_default().split('@').next().unwrap_or_default()).into_owned(),
            queue: word(job.get("queue").unwrap_or_default()).into_owned(),
            name: word(job.get("Job_Name").unwrap_or_default()).into_owned(),
            session: text(job.get("session_id")),
            nodes: text(requested("nodect")),
            tasks: text(tasks.as_deref()),
            memory: memory.map_or_else(|| BLANK.to_owned(), |memory| size(memory, layout)),
            requested: text(requested(time)),
            state: text(job.get("job_state")),
            elapsed,
        }
    }

    fn pbs_pro(&self, out: &mut String) {
        let Self { id, user, queue, name, session, nodes, tasks, .. } = self;
        let _ = write!(
            out,
            "{:<15} {:<8} {:<8} {:<10} {:>6} {:>3} {:>3} {:>6} {:>5} {:>1} {:>5}",
            cut(id, 15),
            cut(user, 8),
            cut(queue, 8),
            cut(name, 10),
            short(session, 6),
            short(nodes, 3),
            short(tasks, 3),
            first(&self.memory, 6),
            first(&self.requested, 5),
            first(&self.state, 1),
            first(&self.elapsed, 5),
        );
    }

    fn pbs_pro_wide(&self, out: &mut String) {
        let Self { id, user, queue, name, session, nodes, tasks, .. } = self;
        let _ = write!(
            out,
            "{:<30} {:<15} {:<15} {:<15} {:>8} {:>4} {:>5} {:>6} {:>5} {:>1} {:>5}",
            cut(id, 30),
            cut(user, 15),
            cut(queue, 15),
            cut(name, 15),
            short(session, 8),
            short(nodes, 4),
            short(tasks, 5),
            first(&self.memory, 6),
            first(&self.requested, 5),
            self.state,
            first(&self.elapsed, 5),
        );
    }

    fn torque(&self, out: &mut String) {
        let Self { id, user, queue, name, session, nodes, tasks, .. } = self;
        let _ = write!(
            out,
            "{:<23} {:<11} {:<8} {:<16} {:>6} {:>5} {:>6} {:>9} {:>9} {:>1} {:>9}",
            first(id, 22),
            first(user, 11),
            first(queue, 8),
            first(name, 16),
            first(session, 6),
            first(nodes, 5),
            first(tasks, 6),
            first(&self.memory, 9),
            first(&self.requested, 9),
            first(&self.state, 1),
            first(&self.elapsed, 9),
        );
    }
}

/// A number in a column: cut with a star, or the mark for nothing as far as it fits.
fn short(text: &str, width: usize) -> Cow<'_, str> {
    if text == BLANK { Cow::Borrowed(first(text, width)) } else { cut(text, width) }
}

/// Nodes and comment of a job, in its line or below it.
fn behind(job: &Status, layout: &Alternate<'_>, out: &mut String) {
    let is_pro = layout.flavour == Flavour::PbsPro;
    let hosts = job.get("exec_host").unwrap_or(BLANK);
    match (layout.one_line, is_pro) {
        (true, true) => out.push(' '),
        // TORQUE leaves the line open for the nodes.
        (true, false) if layout.nodes => {}
        _ => out.push('\n'),
    }
    if layout.nodes {
        let lines = node_lines(hosts, if layout.one_line { usize::MAX } else { 77 }, is_pro);
        for line in &lines {
            let _ = if layout.one_line && is_pro { writeln!(out, "{line}") } else { writeln!(out, "   {line}") };
        }
        if lines.is_empty() && layout.one_line {
            out.push('\n');
        }
    }
    if layout.comments {
        let comment = printable(job.get("comment").unwrap_or(BLANK));
        let most = COMMENT[usize::from(layout.wide)];
        let comment = match comment.chars().count() > most + 3 && is_pro {
            true => format!("{}...", first(&comment, most)),
            false => comment,
        };
        let _ = writeln!(out, "   {comment}");
    } else if layout.one_line && !layout.nodes {
        out.push('\n');
    }
}

/// The nodes without their domains, in lines that break between nodes.
fn node_lines(hosts: &str, width: usize, keeps_slots: bool) -> Vec<String> {
    let short = |host: &str| {
        let (name, slot) = host.split_once('/').map_or((host, None), |(name, slot)| (name, Some(slot)));
        let name = name.split('.').next().unwrap_or_default();
        slot.filter(|_| keeps_slots || !host.contains('.'))
            .map_or_else(|| name.to_owned(), |slot| format!("{name}/{slot}"))
    };
    let mut lines: Vec<String> = Vec::new();
    for host in hosts.split('+').map(short) {
        match lines.last_mut() {
            Some(line) if line.len() + host.len() + 1 < width => {
                line.push('+');
                line.push_str(&host);
            }
            Some(line) => {
                line.push('+');
                lines.push(host);
            }
            None => lines.push(host),
        }
    }
    lines
}

/// The powers of 1024 of the letters of sizes.
const LETTERS: [&str; 6] = ["", "k", "m", "g", "t", "p"];

/// A size as its column has it: in PBS Pro at most four digits, with the unit that this takes.
fn size(text: &str, layout: &Alternate<'_>) -> String {
    let Some(bytes) = crate::value::Size::parse(text).map(crate::value::Size::bytes) else { return text.to_owned() };
    let given = text.trim_start_matches(|c: char| c.is_ascii_digit()).to_ascii_lowercase();
    let power = LETTERS.iter().rposition(|letter| given.starts_with(letter)).unwrap_or(0);
    let (mut power, words) = match layout.units {
        Units::AsGiven if layout.flavour == Flavour::Torque => return text.to_owned(),
        Units::AsGiven => (power, given.ends_with('w')),
        Units::Gigabytes => (3, false),
        Units::Megawords => (2, true),
    };
    let unit = |power: usize| 1u64 << (10 * power.min(5));
    let mut number = bytes.div_ceil(unit(power)).div_ceil(if words { 8 } else { 1 });
    while number > 9_999 && layout.flavour == Flavour::PbsPro {
        number = number.div_ceil(1024);
        power += 1;
    }
    let letter = LETTERS.get(power).copied().unwrap_or("?");
    format!("{number}{letter}{}", if words { 'w' } else { 'b' })
}

/// The expected start of a waiting job: the time today, the day in the next week, the month, the year.
fn estimate(job: &Status, layout: &Alternate<'_>) -> String {
    let is_waiting = matches!(job.get("job_state"), Some("Q" | "S" | "B"));
    let at: Option<Timestamp> = job.time("estimated").filter(|_| is_waiting);
    let zone: &TimeZone = layout.now.time_zone();
    let Some(at) = at.map(|at| at.to_jiff().to_zoned(zone.clone())).filter(|at| at >= layout.now) else {
        return "--".to_owned();
    };
    let until = at.timestamp().as_second() - layout.now.timestamp().as_second();
    match at {
        at if at.date() == layout.now.date() => at.strftime("%H:%M").to_string(),
        at if until < 7 * 86_400 => format!("{} {:02}", first(&at.strftime("%a").to_string(), 2), at.hour()),
        at if at.year() == layout.now.year() => at.strftime("%b").to_string(),
        at if at.year() - layout.now.year() < 5 => at.year().to_string(),
        _ => ">5yrs".to_owned(),
    }
}
