//! `scontrol completing`, `show daemons` and `show assoc_mgr` (SL-C-33).

use super::moment;
use crate::{
    hostlist,
    show::{Clock, record::JobRecord, sacctmgr::Association, sinfo::NodeRecord},
};
use muster_schemas::accounts::{Bounds, ClassSpec, JobBounds, UserSpec};
use std::collections::BTreeMap;

/// The line of `-v` above records: when they were read, and how many there are.
pub fn update_line(records: &str, clock: &Clock) -> String {
    let keys = ["JobId=", "NodeName=", "PartitionName=", "ReservationName="];
    let count = records.lines().filter(|line| keys.iter().any(|key| line.starts_with(key))).count();
    format!("last_update_time={}, records={count}\n", moment(Some(clock.now), "Unknown", clock))
}

/// A job whose resources are being released.
pub fn completing(job: &JobRecord, clock: &Clock) -> String {
    let end = moment(job.ended, "Unknown", clock);
    format!("JobId={} EndTime={end} Nodes(COMPLETING)={}\n", job.number, job.node_list())
}

/// The daemons of Slurm whose work is done on a host, in one line.
pub fn daemons(has_controller: bool, has_node: bool) -> String {
    let known = [("slurmctld", has_controller), ("slurmd", has_node)];
    let names: Vec<&str> = known.into_iter().filter(|(_, is_here)| *is_here).map(|(name, _)| name).collect();
    format!("{} \n", names.join(" "))
}

/// The switches and their nodes, by the nodes' property `switch` (SL-C-12).
pub fn topology<'n>(nodes: impl IntoIterator<Item = &'n NodeRecord>) -> String {
    let mut switches: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        if let Some(switch) = &node.switch {
            switches.entry(switch).or_default().push(&node.name);
        }
    }
    if switches.is_empty() {
        return "No topology information available\n".to_owned();
    }
    let line = |(name, nodes): (&str, Vec<&str>)| {
        format!("SwitchName={name} Level=0 LinkSpeed=1 Nodes={}\n", hostlist::compress_sorted(&nodes))
    };
    switches.into_iter().map(line).collect()
}

/// Users, associations and service classes, with their limits. How much of a limit is used, `muster explain` tells.
pub fn associations(users: &[UserSpec], associations: &[Association], classes: &[ClassSpec]) -> String {
    let mut out = "Current Association Manager state\n\nUser Records\n\n".to_owned();
    for user in users {
        out.push_str(&format!("UserName={} DefAccount={} DefWckey=\n", user.name, user.default_account));
    }
    out.push_str("\nAssociation Records\n\n");
    for Association { cluster, parent, spec, .. } in associations {
        let (user, partition) = (spec.of.user.as_deref(), spec.of.queue.as_deref());
        out.push_str(&format!(
            "ClusterName={cluster} Account={} UserName={} Partition={}\n    ParentAccount={parent}\n",
            spec.of.account,
            user.unwrap_or_default(),
            partition.unwrap_or_default(),
        ));
        push_group(&spec.limits.together, &mut out);
        push_each("MaxJobs", "MaxSubmitJobs", &spec.limits.each_user, &mut out);
        push_job(&spec.limits.each_job, &mut out);
    }
    out.push_str("\nQOS Records\n\n");
    for class in classes {
        out.push_str(&format!("QOS={}\n    Priority={}\n", class.name, class.priority));
        push_group(&class.limits.together, &mut out);
        push_each("MaxJobsPU", "MaxSubmitJobsPU", &class.limits.each_user, &mut out);
        push_each("MaxJobsPA", "MaxSubmitJobsPA", &class.limits.each_account, &mut out);
        push_job(&class.limits.each_job, &mut out);
    }
    out
}

fn push_group(bounds: &Bounds, out: &mut String) {
    push_each("GrpJobs", "GrpSubmitJobs", bounds, out);
    let amounts = [("cpu", bounds.cores), ("node", bounds.nodes), ("gres/gpu", bounds.gpus)];
    push_amounts("GrpTRES", &amounts, bounds.memory_bytes, out);
}

fn push_each(running: &str, all: &str, bounds: &Bounds, out: &mut String) {
    out.push_str(&format!("    {running}={} {all}={}\n", limit(bounds.running_jobs), limit(bounds.jobs)));
}

fn push_job(bounds: &JobBounds, out: &mut String) {
    let amounts = [("cpu", bounds.cores), ("node", bounds.nodes), ("gres/gpu", bounds.gpus)];
    push_amounts("MaxTRESPJ", &amounts, bounds.memory_bytes, out);
    let minutes = bounds.walltime_seconds.map(|seconds| seconds / 60);
    out.push_str(&format!("    MaxWallPJ={}\n", limit(minutes)));
}

fn push_amounts(key: &str, amounts: &[(&str, Option<u64>)], bytes: Option<u64>, out: &mut String) {
    let memory = ("mem", bytes.map(crate::size::megabytes_of));
    let known: Vec<String> =
        amounts.iter().chain([&memory]).map(|(name, amount)| format!("{name}={}", limit(*amount))).collect();
    out.push_str(&format!("    {key}={}\n", known.join(",")));
}

/// A limit; `N` without one.
fn limit(limit: Option<u64>) -> String {
    limit.map_or_else(|| "N".to_owned(), |limit| limit.to_string())
}
