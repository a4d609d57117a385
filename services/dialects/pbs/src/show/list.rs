//! The plain list of jobs.

use super::{
    cells::{cut, first, printable, word},
    status::Status,
};
use crate::{flavour::Flavour, value::parse_seconds};
use std::fmt::Write;

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

/// The list. Nothing is printed if there are no jobs, as in the originals.
pub fn list(jobs: &[Status], layout: &List<'_>) -> String {
    let mut out = String::new();
    if jobs.is_empty() {
        return out;
    }
    if let Some(comment) = layout.comment.filter(|_| layout.flavour == Flavour::PbsPro) {
        out.push_str(&printable(comment));
        out.push('\n');
    }
    out.push_str(header(layout));
    for job in jobs {
        match (layout.flavour, layout.wide) {
            (Flavour::Torque, _) => torque(job, &mut out),
            (Flavour::PbsPro, true) => pbs_pro(job, layout.percent, [30, 15, 15, 15], &mut out),
            (Flavour::PbsPro, false) => pbs_pro(job, layout.percent, [17, 16, 16, 16], &mut out),
        }
    }
    out
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

fn owner(job: &Status) -> String {
    word(job.get("Job_Owner").unwrap_or_default().split('@').next().unwrap_or_default())
}

fn pbs_pro(job: &Status, percent: bool, [id, name, user, queue]: [usize; 4], out: &mut String) {
    let job_id = cut(short_id(&job.name), id);
    // The original cuts a name that fills its column, too.
    let full = word(job.get("Job_Name").unwrap_or_default());
    let job_name = if full.chars().count() >= name { format!("{}*", first(&full, name - 1)) } else { full };
    let used = match percent {
        true => percent_done(job),
        false => cut(job.resource("resources_used", "cput").unwrap_or("0"), 8),
    };
    let (job_user, state) = (cut(&owner(job), user), job.get("job_state").unwrap_or("?"));
    let job_queue = cut(&word(job.get("queue").unwrap_or_default()), queue);
    let _ =
        writeln!(out, "{job_id:<id$} {job_name:<name$} {job_user:<user$}  {used:>8} {state:>1} {job_queue:<queue$}");
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

fn torque(job: &Status, out: &mut String) {
    let id = first(&job.name, 31);
    let full = word(job.get("Job_Name").unwrap_or_default());
    // A long name is shown by its end, after a slash if one is there.
    let count = full.chars().count();
    let name = if count > 16 {
        let tail: String = full.chars().skip(count - 13).collect();
        let after_slash = tail.find('/').map_or(tail.as_str(), |at| &tail[at..]);
        format!("...{after_slash}")
    } else {
        full
    };
    let owner = owner(job);
    let user = first(&owner, 15);
    let used = first(job.resource("resources_used", "cput").unwrap_or("0"), 8).to_owned();
    let state = job.get("job_state").unwrap_or("?");
    let queue = word(job.get("queue").unwrap_or_default());
    let _ = writeln!(out, "{id:<25} {name:<16} {user:<15} {used:>8} {state:>1} {:<15}", first(&queue, 15));
}
