//! `oarnodes`.

use super::{
    cluster::Cluster,
    ended::{Ended, Failure, print},
    node_events,
    site::Site,
    words::{self, Known, Takes},
};
use muster_cli::{connection::ConnectionOptions, stderr_line};
use muster_client::Moment;
use muster_oar::{
    options::date,
    predicate,
    resources::table::Resource,
    show::{
        document::{Form, written},
        nodes::{Jobs, document, full, list, states},
    },
    text::{decimal, shown},
};
use muster_schemas::{JobId, views::NodeView};
use std::collections::BTreeSet;

const OPTIONS: [Known; 12] = [
    ('r', "resource", Takes::Value),
    ('s', "state", Takes::Nothing),
    ('j', "jobs", Takes::Nothing),
    ('l', "list", Takes::Nothing),
    ('e', "events", Takes::Maybe),
    ('\0', "sql", Takes::Value),
    ('X', "xml", Takes::Nothing),
    ('Y', "yaml", Takes::Nothing),
    ('J', "json", Takes::Nothing),
    ('D', "dumper", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oarnodes [-s | -l | -J | -Y | -X | -D] [NODE ...]\n       oarnodes -e [SINCE] [NODE ...]\n       oarnodes [-J | -Y | -X | -D] \
                     -r RESOURCE | --sql FILTER\n";

/// Runs a command line of `oarnodes`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> Ended {
    let words = words::read(words, &OPTIONS)?;
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    if words.has("jobs") {
        return Err(Failure::new("--jobs is not supported; `oarstat -f` shows it"));
    }
    if let Some(since) = words.value("events") {
        let mut site = Site::open(connection)?;
        let since = match since {
            "" => i64::MIN,
            text => date::seconds(text, site.now(), &site.zone).map_err(Failure::new)?,
        };
        print(&node_events::listed(&mut site, &words.operands, since)?);
        return Ok(0);
    }
    let forms = [("json", Form::Json), ("yaml", Form::Yaml), ("xml", Form::Xml), ("dumper", Form::Dumper)];
    let form = forms.into_iter().find(|(name, _)| words.has(name)).map(|(_, form)| form);
    let numbers = words.values("resource").map(|word| {
        let wrong = || Failure::new(format_args!("expected the number of a resource, found '{}'", shown(word)));
        decimal::<u32>(word).ok_or_else(wrong)
    });
    let numbers = numbers.collect::<Result<BTreeSet<u32>, _>>()?;
    let is_by_resource = words.has("resource") || words.has("sql");
    if is_by_resource && !words.operands.is_empty() {
        return Err(Failure::new("-r and --sql do not go together with names of nodes"));
    }
    let mut site = Site::open(connection)?;
    let views = site.client.nodes(Moment::Now)?.nodes;
    let cluster = Cluster::of(&views);
    let now = site.now();
    // The form without names of old scripts: `oarnodes --sql "state = 'Suspected'"` (OAR-C-14).
    let filter = words.value("sql").map(|text| predicate::read(text, cluster.table.fields())).transpose();
    let filter = filter.map_err(|mistake| Failure::new(format_args!("--sql, {mistake}")))?;
    let mut status = 0;
    let unknown = words.operands.iter().filter(|name| !cluster.nodes.iter().any(|node| node.name == **name));
    for name in unknown {
        stderr_line!("oarnodes: no node is called '{}'", shown(name));
        status = 1;
    }
    let is_meant = |resource: &&Resource| {
        let by_number = numbers.contains(&resource.id());
        let by_filter = filter.as_ref().is_some_and(|filter| filter.matches(resource.values()));
        let by_name = words.operands.is_empty() || words.operands.iter().any(|name| name == resource.node());
        if is_by_resource { by_number || by_filter } else { by_name }
    };
    let resources: Vec<&Resource> = cluster.table.resources().filter(is_meant).collect();
    let text = match form {
        None if words.has("list") => list(&cluster.table),
        None if words.has("state") && is_by_resource => resources.iter().fold(String::new(), |out, one| {
            out + &format!("{}: {}\n", one.id(), one.state().shown(one.available_upto(), now))
        }),
        None if words.has("state") && status == 0 => states(&cluster.table, &words.operands, now),
        None if words.has("state") => String::new(),
        form => {
            let jobs = jobs(&mut site, &views, &cluster)?;
            match form {
                None => full(&resources, &jobs, now),
                Some(form) => written(&document(&resources, &jobs, now), form),
            }
        }
    };
    print(&text);
    Ok(status)
}

/// The jobs on each resource.
fn jobs(site: &mut Site, views: &[NodeView], cluster: &Cluster) -> Result<Jobs, Failure> {
    let ids: BTreeSet<JobId> = views.iter().flat_map(|view| view.jobs.iter().copied()).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let details = if ids.is_empty() { Vec::new() } else { site.client.job_details(&ids, false)?.jobs };
    let mut jobs = Jobs::new();
    for detail in &details {
        let Some(run) = detail.runs.iter().rev().find(|run| run.ended.is_none()) else { continue };
        for resource in run.nodes.iter().flat_map(|part| cluster.ids(&part.node, &part.cores)) {
            jobs.entry(resource).or_default().push(detail.job.own_number());
        }
    }
    Ok(jobs)
}
