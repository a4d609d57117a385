//! Events about nodes, from the log.

use super::{ended::Failure, events::is_by_node, site::Site};
use muster_oar::{options::date, text::printable};
use muster_schemas::{Sequence, unfit::UnfitCause};
use serde_json::Value;

/// An event about a node.
pub struct NodeEvent {
    /// When, in seconds since the epoch.
    pub at: i64,
    /// What happened, such as `drained`.
    pub kind: String,
    /// The node.
    pub node: String,
    /// Whether the node itself asked for it.
    pub by_node: bool,
    /// What the event says.
    pub data: Value,
}

/// Looks at all events about nodes from a record on, up to a moment.
pub fn each_event(site: &mut Site, from: Sequence, to: i64, mut take: impl FnMut(&NodeEvent)) -> Result<(), Failure> {
    let mut stream = site.client.events(Some(from), None, &["node".to_owned()])?;
    while let Some(event) = stream.next_until_caught_up()? {
        let Ok(mut json) = serde_json::from_str::<Value>(&event.json) else { continue };
        let Some(at) = json["time"].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()) else { continue };
        if at.as_second() >= to {
            break;
        }
        let by_node = is_by_node(&json);
        let data = json["data"].take();
        let kind = event.kind.trim_start_matches("muster.node.").trim_end_matches(".v1").to_owned();
        if kind == "load_measured" {
            continue;
        }
        if let Some(node) = data["node"].as_str().map(str::to_owned) {
            take(&NodeEvent { at: at.as_second(), kind, node, by_node, data });
        }
    }
    Ok(())
}

/// The events of nodes since a moment, one in a line: `oarnodes -e`.
pub fn listed(site: &mut Site, nodes: &[String], since: i64) -> Result<String, Failure> {
    let (mut out, zone) = (String::new(), site.zone.clone());
    each_event(site, Sequence(1), i64::MAX, |event| {
        if event.at >= since && (nodes.is_empty() || nodes.contains(&event.node)) {
            let why: String = event.data["reason"].as_str().unwrap_or_default().chars().map(printable).collect();
            let name = name_of(event, &why);
            out += &format!("{}| {}| {name}: {why}\n", date::written(event.at, &zone), event.node);
        }
    })?;
    Ok(out)
}

/// The name of an event: OAR has names for nodes on which something of a job stays (OAR-X-06), and for programs that fail
/// (OAR-J-18). They mean what the node's executor has found, not what operators write.
fn name_of(event: &NodeEvent, why: &str) -> String {
    let is_found = event.kind == "drained" && event.by_node;
    let name = match UnfitCause::of_reason(why).filter(|_| is_found) {
        Some(UnfitCause::Remains) => "CPUSET_CLEAN_ERROR",
        Some(UnfitCause::Containment) => "CPUSET_ERROR",
        Some(UnfitCause::JobEpilog) => "EPILOGUE_ERROR",
        Some(UnfitCause::JobProlog) => "PROLOGUE_ERROR",
        Some(UnfitCause::SuspendProgram) => "SUSPEND_ERROR",
        _ => return format!("NODE_{}", event.kind.to_uppercase()),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-J-18, OAR-S-07, OAR-X-06
    #[test]
    fn nodes_that_are_unfit_have_events_with_names() {
        let named = |kind: &str, by_node, why: &str| {
            let (kind, node) = (kind.to_owned(), "n1".to_owned());
            name_of(&NodeEvent { at: 0, kind, node, by_node, data: Value::Null }, why)
        };
        let found = |cause: UnfitCause| named("drained", true, &format!("{} /x failed", cause.words()));
        assert_eq!(found(UnfitCause::Remains), "CPUSET_CLEAN_ERROR");
        assert_eq!(found(UnfitCause::Containment), "CPUSET_ERROR");
        assert_eq!(found(UnfitCause::JobEpilog), "EPILOGUE_ERROR");
        assert_eq!(found(UnfitCause::JobProlog), "PROLOGUE_ERROR");
        assert_eq!(found(UnfitCause::SuspendProgram), "SUSPEND_ERROR");
        assert_eq!(found(UnfitCause::HealthCheck), "NODE_DRAINED");
        assert_eq!(named("drained", true, "fan cannot be removed"), "NODE_DRAINED");
        assert_eq!(named("drained", false, "job epilog /x is to be mended"), "NODE_DRAINED", "an operator wrote it");
        assert_eq!(named("drained", false, "oarnodesetting: Absent"), "NODE_DRAINED");
        assert_eq!(named("resumed", false, ""), "NODE_RESUMED");
    }
}
