//! `sinfo`: partitions and nodes (SL-C-28, SL-C-29).

mod fields;
mod group;
mod json;
mod node;
mod overview;

pub use fields::FIELDS;
pub use group::{Group, Partition};
pub use json::{document, partition_data};
pub use node::NodeRecord;
pub use overview::{Arrangement, Overview};

use super::{
    Clock, cells,
    columns::{FormatError, Layout},
    data::Asker,
    period,
    squeue::Format,
};
use crate::duration;
use group::groups;
use muster_schemas::views::ReservationView;
use serde_json::Value;
use std::sync::Arc;

/// The least width of columns that adapt to the longest name.
const LEAST_WIDTH: usize = 9;

impl Overview {
    /// The columns of this arrangement; the first one adapts to the longest name in it (`%#P`).
    fn usual_format(&self, node_width: usize, partition_width: usize) -> String {
        let (n, p) = (node_width, partition_width);
        match (self.arrangement, self.is_long) {
            (Arrangement::Partitions, false) => format!("%{p}P %.5a %.10l %.6D %.6t %N"),
            (Arrangement::Partitions, true) => format!("%{p}P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"),
            (Arrangement::Summary, _) => format!("%{p}P %.5a %.10l %.16F %N"),
            (Arrangement::Nodes, false) => format!("%{n}N %.6D %.{p}P %6t"),
            (Arrangement::Nodes, true) => format!("%{n}N %.6D %.{p}P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E"),
            (Arrangement::Reasons, false) => "%20E %9u %19H %N".to_owned(),
            (Arrangement::Reasons, true) => "%20E %12U %19H %6t %N".to_owned(),
        }
    }

    fn takes(&self, node: &NodeRecord) -> bool {
        (self.nodes.is_empty() || self.nodes.contains(&node.name))
            && (self.states.is_empty() || self.states.iter().any(|test| test.takes(node.state)))
            && self.responding.is_none_or(|wanted| wanted != node.state.is_silent)
            && (self.arrangement != Arrangement::Reasons || node.reason.is_some())
    }
}

/// The whole overview.
///
/// # Errors
/// A column that does not exist; nothing is listed then.
pub fn list(
    partitions: &[Arc<Partition>],
    nodes: &[Arc<NodeRecord>],
    overview: &Overview,
    clock: &Clock,
) -> Result<String, FormatError> {
    let partitions: Vec<_> = partitions
        .iter()
        .filter(|partition| overview.partitions.is_empty() || overview.partitions.contains(&partition.name))
        .collect();
    let nodes: Vec<_> = nodes.iter().filter(|node| overview.takes(node)).collect();
    let node_width = nodes.iter().map(|node| node.name.len()).max().unwrap_or(0).max(LEAST_WIDTH);
    let partition_width =
        partitions.iter().map(|partition| partition.starred().len()).max().unwrap_or(0).max(LEAST_WIDTH);
    let layout = match &overview.format {
        None => Layout::printf(&overview.usual_format(node_width, partition_width), FIELDS)?,
        Some(Format::Letters(format)) => Layout::printf(&without_auto(format, node_width, partition_width), FIELDS)?,
        Some(Format::Names(format)) => Layout::named(format, FIELDS)?,
    };
    let mut out = String::new();
    if overview.is_long {
        cells::date_line(clock.now, clock, &mut out);
    }
    if !overview.no_header {
        layout.write_header(&mut out);
    }
    for group in groups(&partitions, &nodes, overview, &layout, clock) {
        layout.write_row(&group, clock, &mut out);
    }
    Ok(out)
}

/// The overview as data: an element for each line that the arrangement has by itself.
///
/// # Errors
/// None: the columns of an arrangement are known.
pub fn data(
    partitions: &[Arc<Partition>],
    nodes: &[Arc<NodeRecord>],
    overview: &Overview,
    asker: &Asker<'_>,
    clock: &Clock,
) -> Result<Value, FormatError> {
    let wanted =
        |partition: &&Arc<Partition>| overview.partitions.is_empty() || overview.partitions.contains(&partition.name);
    let partitions: Vec<_> = partitions.iter().filter(wanted).collect();
    let listed: Vec<_> = nodes.iter().filter(|node| overview.takes(node)).collect();
    let layout = Layout::printf(&overview.usual_format(LEAST_WIDTH, LEAST_WIDTH), FIELDS)?;
    let groups = groups(&partitions, &listed, overview, &layout, clock);
    let all = groups.iter().map(|group| json::group(group, nodes.iter().map(|node| &**node), asker.cluster)).collect();
    Ok(asker.document("sinfo", all, &[]))
}

/// Replaces `%#N` and `%#P` by the width of the longest name.
fn without_auto(format: &str, node_width: usize, partition_width: usize) -> String {
    format.replace("%#N", &format!("%{node_width}N")).replace("%#P", &format!("%{partition_width}P"))
}

/// `sinfo -T`: reservations.
pub fn list_reservations(reservations: &[ReservationView], no_header: bool, clock: &Clock) -> String {
    if reservations.is_empty() {
        return "No reservations in the system\n".to_owned();
    }
    let width = reservations.iter().map(|view| view.spec.name.len()).max().unwrap_or(0).max("RESV_NAME".len());
    let mut out = String::new();
    let mut row = |name: &str, state: &str, start: &str, end: &str, duration: &str, nodes: &str| {
        cells::put(
            format_args!("{name:<width$}  {state:>8}  {start:>19}  {end:>19}  {duration:>11}  {nodes}\n"),
            &mut out,
        );
    };
    if !no_header {
        row("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST");
    }
    let moment = |time| {
        let mut text = String::new();
        cells::moment(Some(time), "", clock, &mut text);
        text
    };
    for view in reservations {
        let (start, end) = period::of(&view.spec, clock.now);
        let seconds = u64::try_from(end.micros_since(start) / 1_000_000).unwrap_or(0);
        row(
            &view.spec.name,
            if view.begun { "ACTIVE" } else { "INACTIVE" },
            &moment(start),
            &moment(end),
            &duration::long(seconds),
            &crate::hostlist::compress_sorted(&view.nodes),
        );
    }
    out
}
