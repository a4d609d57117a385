//! `pbsnodes`.

use super::{
    ended::{Ended, Failure, print},
    nodes::{self, NodeWithJobs},
    site::{Site, version},
};
use muster_cli::stderr_line;
use muster_client::{ClientError, Moment};
use muster_pbs::{
    flavour::Flavour,
    queries::{NodesAction, NodesFormat, NodesRequest, is_in_state, pbsnodes},
    refusal::shown,
    show::{self, Header, NodeTable, Status},
};
use muster_schemas::{
    CommandId,
    views::{DrainRequest, ErrorCode, NodeStateWord, NodeView, ResumeNodesRequest},
};

/// Runs a command line of `pbsnodes`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    // As in the original, 1 is the status of a wrong command line.
    let request = pbsnodes(words, site.flavour).map_err(|refusal| Failure::new(refusal.to_string()))?;
    if let Some(server) = &request.server {
        site.require_server(server)?;
    }
    match request.action {
        NodesAction::Show => show_nodes(site, &request),
        NodesAction::ListMarked => list_marked(site, &request),
        NodesAction::Offline | NodesAction::Clear | NodesAction::Comment => mark(site, &request),
    }
}

/// The wanted nodes in their order, and the exit status for those that are not there.
fn wanted(site: &mut Site, request: &NodesRequest) -> Result<(Vec<NodeWithJobs>, u8), Failure> {
    let all = site.client.nodes(Moment::Now)?.nodes;
    let mut status = 0;
    for name in &request.nodes {
        if !all.iter().any(|view| view.spec.name == *name) {
            if !request.quiet {
                stderr_line!("Node: {},  Error: Unknown node", shown(name));
            }
            status = 1;
        }
    }
    let is_wanted = |view: &NodeView| request.nodes.is_empty() || request.nodes.contains(&view.spec.name);
    let views = all.into_iter().filter(is_wanted).collect();
    Ok((nodes::with_jobs(site, views)?, status))
}

fn show_nodes(site: &mut Site, request: &NodesRequest) -> Ended {
    let (found, status) = wanted(site, request)?;
    if request.summary {
        let delimiter = match &request.format {
            NodesFormat::Dsv(delimiter) => Some(delimiter.as_str()),
            _ => None,
        };
        let table = NodeTable { jobs: request.jobs, long: request.long, delimiter };
        let rows: Vec<_> = found.iter().map(|node| (&node.view, node.jobs.clone())).collect();
        print(&show::node_table(&rows, &table));
        return Ok(status);
    }
    let statuses: Vec<Status> = found.iter().map(|node| show::of_node(&node.view, &node.jobs, site.flavour)).collect();
    print(&match &request.format {
        NodesFormat::Text => show::node_text(&statuses, &site.zone),
        NodesFormat::Dsv(delimiter) => show::dsv(&statuses, &site.zone, delimiter),
        NodesFormat::Xml => show::xml(&statuses),
        NodesFormat::Json => {
            let header = Header { now: site.sources().now, version: &version(), server: &site.server };
            show::json(&statuses, &site.zone, &header)
        }
    });
    Ok(status)
}

fn list_marked(site: &mut Site, request: &NodesRequest) -> Ended {
    let (found, status) = wanted(site, request)?;
    let mut text = String::new();
    for node in &found {
        let state = show::node_state(&node.view, &node.jobs, site.flavour);
        if is_in_state(&state, request.state.as_deref()) {
            let comment = node.view.reason.as_deref().unwrap_or_default();
            let shows_comment = request.notes || site.flavour == Flavour::PbsPro;
            let comment = shows_comment.then_some(comment);
            text.push_str(&show::node_line(&node.view.spec.name, &state, comment, site.flavour));
        }
    }
    print(&text);
    Ok(status)
}

/// Changes the nodes one by one, so that one that is not there does not keep others from being changed.
fn mark(site: &mut Site, request: &NodesRequest) -> Ended {
    let mut status = 0;
    for name in &request.nodes {
        if let Err(Failure { text, .. }) = mark_one(site, request, name) {
            if !request.quiet {
                stderr_line!("Error marking node {} - {text}", shown(name));
            }
            status = 1;
        }
    }
    Ok(status)
}

fn mark_one(site: &mut Site, request: &NodesRequest, name: &str) -> Result<(), Failure> {
    let view = site.client.node(name, Moment::Now).map_err(|error| unmarked(&error))?;
    let comment = request.comment.clone();
    let done = match request.action {
        NodesAction::Clear => {
            site.client.resume_nodes(CommandId::new_now(), &ResumeNodesRequest { nodes: vec![view.spec.name] })
        }
        _ => {
            let is_out = view.state == NodeStateWord::Drained;
            if request.action == NodesAction::Comment && !is_out {
                let why = "a comment is kept only while a node is out of service (-o); nothing was changed";
                return Err(Failure::new(why));
            }
            // Without a comment the present one stays.
            let reason = comment.or_else(|| view.reason.clone().filter(|_| is_out)).unwrap_or_default();
            let is_down = is_out && view.is_down;
            site.client.drain(CommandId::new_now(), &DrainRequest { nodes: vec![view.spec.name], reason, is_down })
        }
    };
    done.map(drop).map_err(|error| unmarked(&error))
}

fn unmarked(error: &ClientError) -> Failure {
    match error.code() {
        Some(ErrorCode::NotFound) => Failure::new("Unknown node"),
        Some(ErrorCode::PermissionDenied) => Failure::new(format_args!("Unauthorized Request: {error}")),
        _ => Failure::new(error),
    }
}
