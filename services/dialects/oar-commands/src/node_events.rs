//! Events about nodes, from the log.

use super::{ended::Failure, site::Site};
use muster_oar::{options::date, text::printable};
use muster_schemas::Sequence;
use serde_json::Value;

/// An event about a node.
pub struct NodeEvent {
    /// When, in seconds since the epoch.
    pub at: i64,
    /// What happened, such as `drained`.
    pub kind: String,
    /// The node.
    pub node: String,
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
        let data = json["data"].take();
        let kind = event.kind.trim_start_matches("muster.node.").trim_end_matches(".v1").to_owned();
        if kind == "load_measured" {
            continue;
        }
        if let Some(node) = data["node"].as_str().map(str::to_owned) {
            take(&NodeEvent { at: at.as_second(), kind, node, data });
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
            let name = name_of(&event.kind, &why);
            out += &format!("{}| {}| {name}: {why}\n", date::written(event.at, &zone), event.node);
        }
    })?;
    Ok(out)
}

/// The name of an event: OAR has names for nodes on which something of a job stays (OAR-X-06), and for programs that fail
/// (OAR-J-18).
fn name_of(kind: &str, why: &str) -> String {
    let own = [("cannot be removed", "CPUSET_CLEAN_ERROR"), ("cannot be contained", "CPUSET_ERROR")];
    let programs =
        [("job epilog ", "EPILOGUE_ERROR"), ("job prolog ", "PROLOGUE_ERROR"), ("suspend program ", "SUSPEND_ERROR")];
    let known = own.iter().find(|(words, _)| why.contains(words));
    let known = known.or_else(|| programs.iter().find(|(words, _)| why.starts_with(words)));
    match known {
        Some((_, name)) if kind == "drained" => (*name).to_owned(),
        _ => format!("NODE_{}", kind.to_uppercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-J-18, OAR-S-07, OAR-X-06
    #[test]
    fn nodes_that_are_unfit_have_events_with_names() {
        let stays = "processes or control groups of job 7 cannot be removed";
        assert_eq!(name_of("drained", stays), "CPUSET_CLEAN_ERROR");
        assert_eq!(name_of("drained", "the run cannot be contained: x"), "CPUSET_ERROR");
        assert_eq!(name_of("drained", "job epilog /x failed (exit status: 1)"), "EPILOGUE_ERROR");
        assert_eq!(name_of("drained", "oarnodesetting: Absent"), "NODE_DRAINED");
        assert_eq!(name_of("resumed", ""), "NODE_RESUMED");
    }
}
