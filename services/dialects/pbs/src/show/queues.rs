//! Queues: `-Q`, `-Q -f` and `-q`.

use super::{
    cells::{cut, first, word},
    states::Counts,
    status::{Kind, Status},
};
use crate::{flavour::Flavour, qmgr::limits_of_jobs as limits, value::show_seconds};
use muster_schemas::views::QueueView;
use std::fmt::Write;

/// The attributes of a queue.
pub fn of_queue(view: &QueueView, flavour: Flavour) -> Status {
    let spec = &view.spec;
    let counts = Counts {
        queued: view.queued,
        held: view.held.saturating_sub(view.held_until),
        waiting: view.held_until,
        running: view.running,
        ..Counts::default()
    };
    let boolean = |is_so: bool| if is_so { "True" } else { "False" };
    let mut status = Status::new(Kind::Queue, spec.name.clone());
    status.set("queue_type", if spec.route.is_some() { "Route" } else { "Execution" });
    status.set("Priority", spec.priority.to_string());
    status.set("total_jobs", counts.total().to_string());
    status.set("state_count", counts.text(flavour));
    if let Some(most) = spec.max_jobs {
        match flavour {
            Flavour::PbsPro => status.set("max_queued", format!("[o:PBS_ALL={most}]")),
            Flavour::Torque => status.set("max_queuable", most.to_string()),
        }
    }
    if !spec.users.is_empty() {
        status.set("acl_user_enable", "True");
        status.set("acl_users", spec.users.join(","));
    }
    if let Some(seconds) = spec.max_walltime_seconds {
        status.set_resource("resources_max", "walltime", show_seconds(seconds));
    }
    for attribute in ["resources_max", "resources_min"] {
        for (resource, value) in limits(spec, attribute) {
            status.set_resource(attribute, resource, value);
        }
    }
    if let Some(seconds) = spec.default_walltime_seconds {
        status.set_resource("resources_default", "walltime", show_seconds(seconds));
    }
    if let Some(most) = spec.max_running_jobs {
        status.set("max_running", most.to_string());
    }
    if let Some(most) = spec.max_running_jobs_per_user {
        status.set("max_user_run", most.to_string());
    }
    if let Some(route) = &spec.route {
        status.set("route_destinations", route.destinations.join(","));
        status.set("route_held_jobs", boolean(route.held_jobs));
        status.set("route_waiting_jobs", boolean(route.waiting_jobs));
        if let Some(seconds) = route.lifetime_seconds {
            status.set("route_lifetime", seconds.to_string());
        }
    }
    status.set("enabled", boolean(spec.enabled));
    status.set("started", boolean(spec.started));
    status
}

/// The number behind a word in `state_count`.
pub(super) fn count<'a>(status: &'a Status, state: &str) -> &'a str {
    let counts = status.get("state_count").unwrap_or_default();
    let of = |entry: &'a str| entry.split_once(':').filter(|(word, _)| *word == state).map(|(_, count)| count);
    counts.split_whitespace().find_map(of).unwrap_or("0")
}

/// The list of `-Q`.
pub fn queues(all: &[Status], flavour: Flavour) -> String {
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    out.push_str(match flavour {
        Flavour::PbsPro => concat!(
            "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n",
            "---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n",
        ),
        Flavour::Torque => concat!(
            "Queue              Max    Tot   Ena   Str   Que   Run   Hld   Wat   Trn   Ext T   Cpt\n",
            "----------------   ---   ----    --    --   ---   ---   ---   ---   ---   --- -   ---\n",
        ),
    });
    for queue in all {
        let yes = |name: &str| if queue.get(name) == Some("True") { "yes" } else { "no" };
        let name = word(&queue.name);
        let max = queue.get("max_running").unwrap_or("0");
        let total = queue.get("total_jobs").unwrap_or("0");
        let kind = queue.get("queue_type").unwrap_or("not defined");
        let [que, run, hld, wat, trn, ext] =
            ["Queued", "Running", "Held", "Waiting", "Transit", "Exiting"].map(|state| count(queue, state));
        let (ena, str) = (yes("enabled"), yes("started"));
        let _ = match flavour {
            Flavour::PbsPro => writeln!(
                out,
                "{:<16} {:>5} {:>5} {ena:>3} {str:>3} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:<4}",
                cut(&name, 16),
                cut(max, 5),
                cut(total, 5),
                cut(que, 5),
                cut(run, 5),
                cut(hld, 5),
                cut(wat, 5),
                cut(trn, 5),
                cut(ext, 5),
                // The original cuts the type, as everything else.
                cut(kind, 4),
            ),
            Flavour::Torque => writeln!(
                out,
                "{name:<16} {:>5} {:>6} {ena:>5} {str:>5} {que:>5} {run:>5} {hld:>5} {wat:>5} {trn:>5} {ext:>5} {:<1} {:>5}",
                first(max, 5),
                first(total, 6),
                first(kind, 1),
                count(queue, "Complete"),
            ),
        };
    }
    out
}

/// The limits of queues: `-q`.
pub fn queue_limits(all: &[Status], server: &str, flavour: Flavour) -> String {
    let mut out = format!("\nserver: {server}\n\n");
    out.push_str(match flavour {
        Flavour::PbsPro => concat!(
            "Queue            Memory CPU Time Walltime Node   Run   Que   Lm  State\n",
            "---------------- ------ -------- -------- ---- ----- ----- ----  -----\n",
        ),
        Flavour::Torque => concat!(
            "Queue            Memory CPU Time Walltime Node  Run Que Lm  State\n",
            "---------------- ------ -------- -------- ----  --- --- --  -----\n",
        ),
    });
    let (mut running, mut waiting) = (0u64, 0u64);
    for queue in all {
        let number = |state: &str| count(queue, state).parse::<u64>().unwrap_or(0);
        let run = number("Running");
        let que = number("Queued") + number("Held") + number("Waiting");
        (running, waiting) = (running + run, waiting + que);
        let blank = if flavour == Flavour::PbsPro { "  --   " } else { "--   " };
        let limit = |resource: &str| queue.resource("resources_max", resource);
        let enabled = if queue.get("enabled") == Some("True") { 'E' } else { 'D' };
        let started = if queue.get("started") == Some("True") { 'R' } else { 'S' };
        let name = word(&queue.name);
        let (name, memory) = (first(&name, 16), first(limit("mem").unwrap_or("--  "), 6));
        let (cput, walltime) = (limit("cput").unwrap_or(blank), limit("walltime").unwrap_or(blank));
        let nodes = limit("nodect").unwrap_or("-- ");
        let most = queue.get("max_running").unwrap_or(blank);
        let _ = match flavour {
            Flavour::PbsPro => writeln!(
                out,
                "{name:<16} {memory:>6} {:>8} {:>8} {:>4} {run:>5} {que:>5} {:>4}   {enabled} {started}",
                first(cput, 8),
                first(walltime, 8),
                first(nodes, 4),
                first(most, 4),
            ),
            Flavour::Torque => writeln!(
                out,
                "{name:<16} {memory:>6} {:>8} {:>8} {:>5} {run:>3} {que:>3} {:>2}   {enabled} {started}",
                first(cput, 8),
                first(walltime, 8),
                first(nodes, 5),
                first(most, 2),
            ),
        };
    }
    let gap = " ".repeat(47);
    let _ = writeln!(out, "{gap}----- -----\n{gap}{running:>5} {waiting:>5}");
    out
}
