//! The plain list of jobs.

use super::{
    cells::{cut, first, printable, word},
    jobs::Sources,
    states::job_state,
    status::Status,
};
use crate::{
    flavour::Flavour,
    value::{parse_seconds, show_seconds},
};
use muster_schemas::views::JobView;
use std::{borrow::Cow, fmt::Write};

/// About as many bytes as a line has.
const ROW_BYTES: usize = 90;

/// How the list is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List<'a> {
    /// The member of the family.
    pub flavour: Flavour,
    /// Wider columns (`-w` of PBS Pro).
    pub wide: bool,
    /// The part done in per cent, in place of the processor time used (`-p` of PBS Pro).
    pub percent: bool,
    /// The comment of the server, above the list.
    pub comment: Option<&'a str>,
}

/// What the list prints of a job.
struct Row<'a> {
    id: &'a str,
    name: &'a str,
    owner: &'a str,
    /// The processor time used, or the part done.
    used: &'a str,
    state: char,
    queue: &'a str,
}

/// The list. Nothing is printed if there are no jobs, as in the originals.
pub fn list(jobs: &[Status], layout: &List<'_>) -> String {
    let mut out = String::new();
    if jobs.is_empty() {
        return out;
    }
    begin(layout, &mut out);
    for job in jobs {
        let percent = (layout.flavour == Flavour::PbsPro && layout.percent).then(|| percent_done(job));
        let row = Row {
            id: &job.name,
            name: job.get("Job_Name").unwrap_or_default(),
            owner: job.get("Job_Owner").unwrap_or_default(),
            used: percent.as_deref().or_else(|| job.resource("resources_used", "cput")).unwrap_or("0"),
            state: job.get("job_state").and_then(|state| state.chars().next()).unwrap_or('?'),
            queue: job.get("queue").unwrap_or_default(),
        };
        row.print(layout, &mut out);
    }
    out
}

/// The same list, but for the part done, from views alone: that of very many jobs is made several times as fast.
pub fn list_of_views(views: &[JobView], layout: &List<'_>, sources: &Sources<'_>) -> String {
    let mut out = String::new();
    if views.is_empty() {
        return out;
    }
    out.reserve(views.len().saturating_add(2).saturating_mul(ROW_BYTES));
    begin(layout, &mut out);
    let (mut id, no_time) = (String::new(), show_seconds(0));
    for view in views {
        id.clear();
        let _ = write!(id, "{}", view.id.number);
        let _ = match (view.id.index, view.array.is_some()) {
            (Some(index), _) => write!(id, "[{index}]"),
            (None, true) => write!(id, "[]"),
            (None, false) => Ok(()),
        };
        if !sources.server.is_empty() {
            id.push('.');
            id.push_str(sources.server);
        }
        let row = Row {
            id: &id,
            name: &view.name,
            owner: &view.owner,
            used: if view.started.is_some() { &no_time } else { "0" },
            state: job_state(view, sources.flavour),
            queue: &view.queue,
        };
        row.print(layout, &mut out);
    }
    out
}

/// The lines above the jobs.
fn begin(layout: &List<'_>, out: &mut String) {
    if let Some(comment) = layout.comment.filter(|_| layout.flavour == Flavour::PbsPro) {
        out.push_str(&printable(comment));
        out.push('\n');
    }
    out.push_str(header(layout));
}

fn header(layout: &List<'_>) -> &'static str {
    match (layout.flavour, layout.wide, layout.percent) {
        (Flavour::Torque, ..) => concat!(
            "Job ID                    Name             User            Time Use S Queue\n",
            "------------------------- ---------------- --------------- -------- - -----\n",
        ),
        (Flavour::PbsPro, true, false) => concat!(
            "Job id                         Name            User             Time Use S Queue\n",
            "-----------------------------  --------------- ---------------  -------- - ---------------\n",
        ),
        (Flavour::PbsPro, true, true) => concat!(
            "Job id                         Name            User              % done  S Queue\n",
            "-----------------------------  --------------- ---------------  -------- - ---------------\n",
        ),
        (Flavour::PbsPro, false, false) => concat!(
            "Job id            Name             User              Time Use S Queue\n",
            "----------------  ---------------- ----------------  -------- - -----\n",
        ),
        (Flavour::PbsPro, false, true) => concat!(
            "Job id            Name             User               % done  S Queue\n",
            "----------------  ---------------- ----------------  -------- - -----\n",
        ),
    }
}

/// The identifier with the first part of the server's name.
fn short_id(id: &str) -> &str {
    let mut dots = id.char_indices().filter(|(_, c)| *c == '.').map(|(at, _)| at);
    dots.nth(1).map_or(id, |second| &id[..second])
}

impl Row<'_> {
    fn print(&self, layout: &List<'_>, out: &mut String) {
        match (layout.flavour, layout.wide) {
            (Flavour::Torque, _) => self.torque(out),
            (Flavour::PbsPro, true) => self.pbs_pro([30, 15, 15, 15], out),
            (Flavour::PbsPro, false) => self.pbs_pro([17, 16, 16, 16], out),
        }
    }

    fn user(&self) -> Cow<'_, str> {
        word(self.owner.split('@').next().unwrap_or_default())
    }

    fn pbs_pro(&self, [id, name, user, queue]: [usize; 4], out: &mut String) {
        let job_id = cut(short_id(self.id), id);
        // The original cuts a name that fills its column, too.
        let full = word(self.name);
        let job_name = match full.len() >= name && full.chars().count() >= name {
            true => Cow::Owned(format!("{}*", first(&full, name - 1))),
            false => Cow::Borrowed(&*full),
        };
        let (owner, queue_name, state) = (self.user(), word(self.queue), self.state);
        let (used, job_user, job_queue) = (cut(self.used, 8), cut(&owner, user), cut(&queue_name, queue));
        let _ = writeln!(
            out,
            "{job_id:<id$} {job_name:<name$} {job_user:<user$}  {used:>8} {state:>1} {job_queue:<queue$}"
        );
    }

    fn torque(&self, out: &mut String) {
        let id = first(self.id, 31);
        let full = word(self.name);
        // A long name is shown by its end, after a slash if one is there.
        let count = full.chars().count();
        let name = if count > 16 {
            let tail: String = full.chars().skip(count - 13).collect();
            let after_slash = tail.find('/').map_or(tail.as_str(), |at| &tail[at..]);
            Cow::Owned(format!("...{after_slash}"))
        } else {
            full
        };
        let (owner, queue, state) = (self.user(), word(self.queue), self.state);
        let (user, used) = (first(&owner, 15), first(self.used, 8));
        let _ = writeln!(out, "{id:<25} {name:<16} {user:<15} {used:>8} {state:>1} {:<15}", first(&queue, 15));
    }
}

/// The part done: of an array its tasks, else the larger of processor time and walltime.
fn percent_done(job: &Status) -> String {
    match job.get("job_state") {
        Some("Q" | "T" | "W") => return "-- ".to_owned(),
        Some("X") => return "100".to_owned(),
        _ => {}
    }
    let part = |top: u64, bottom: u64| top.saturating_mul(100).checked_div(bottom);
    let done = match job.get("array_state_count") {
        Some(counts) => {
            let numbers: Vec<u64> =
                counts.split_whitespace().filter_map(|entry| entry.split_once(':')?.1.parse().ok()).collect();
            part(numbers.last().copied().unwrap_or(0), numbers.iter().sum())
        }
        None => {
            let of = |resource: &str| {
                let seconds = |name: &str| job.resource(name, resource).and_then(parse_seconds);
                part(seconds("resources_used")?, seconds("Resource_List")?)
            };
            of("cput").max(of("walltime"))
        }
    };
    done.map_or_else(|| "-- ".to_owned(), |percent| format!("{percent:3} "))
}
