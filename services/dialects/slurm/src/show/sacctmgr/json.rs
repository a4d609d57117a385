//! `sacctmgr show --json` and `--yaml` (SL-A-11), in the shape of Slurm's `data_parser`. Limits that do not exist here have no
//! number.

use super::{Account, Association, Cluster, Qos, Tres, User, association_id, qos_id};
use crate::{
    show::data::{counted, limit, number},
    size::MEGABYTE,
};
use muster_schemas::accounts::{AssociationKey, Bounds, JobBounds};
use serde_json::{Value, json};

/// A row as data. `with` are the associations that rows are shown with.
pub trait AsData {
    /// The name of a list of these.
    const LIST: &'static str;
    /// The row.
    fn data(&self, with: &[Association]) -> Value;
}

impl AsData for Account {
    const LIST: &'static str = "accounts";

    fn data(&self, with: &[Association]) -> Value {
        let spec = &self.spec;
        let coordinators = spec.coordinators.iter().map(|name| json!({ "name": name, "direct": true }));
        json!({
            "associations": short_list(with, |key| key.account == spec.name),
            "coordinators": coordinators.collect::<Vec<_>>(),
            "description": spec.description,
            "name": spec.name,
            "organization": spec.organisation,
            "flags": [],
        })
    }
}

impl AsData for User {
    const LIST: &'static str = "users";

    fn data(&self, with: &[Association]) -> Value {
        let coordinators = self.coordinated.iter().map(|name| json!({ "name": name, "direct": true }));
        json!({
            "administrator_level": [self.admin],
            "associations": short_list(with, |key| key.user.as_deref() == Some(&self.name)),
            "coordinators": coordinators.collect::<Vec<_>>(),
            "default": { "account": self.default_account, "wckey": "" },
            "flags": ["NONE"],
            "name": self.name,
            "old_name": "",
            "wckeys": [],
        })
    }
}

impl AsData for Association {
    const LIST: &'static str = "associations";

    fn data(&self, _: &[Association]) -> Value {
        let (spec, limits) = (&self.spec, &self.spec.limits);
        json!({
            "account": spec.of.account,
            "cluster": self.cluster,
            "default": { "qos": spec.default_class.as_deref().unwrap_or_default() },
            "flags": [],
            "id": short(&self.cluster, &spec.of),
            "max": {
                "jobs": {
                    "active": limit(limits.each_user.running_jobs),
                    "accruing": number(None),
                    "total": limit(limits.each_user.jobs),
                    "per": {
                        "count": limit(limits.together.running_jobs),
                        "accruing": number(None),
                        "submitted": limit(limits.together.jobs),
                        "wall_clock": limit(minutes(limits.each_job.walltime_seconds)),
                    },
                },
                "tres": {
                    "total": amounts(&limits.together),
                    "group": {
                        "minutes": spent(limits.budget.core_seconds, limits.budget.node_seconds, limits.budget.gpu_seconds),
                        "active": spent(
                            limits.remaining.core_seconds,
                            limits.remaining.node_seconds,
                            limits.remaining.gpu_seconds,
                        ),
                    },
                    "minutes": { "total": [], "per": { "job": [] } },
                    "per": { "job": job_amounts(&limits.each_job), "node": [] },
                },
                "per": { "account": { "wall_clock": limit(minutes(limits.budget.run_seconds)) } },
            },
            "parent_account": self.parent,
            "partition": spec.of.queue.as_deref().unwrap_or_default(),
            "qos": spec.classes,
            "accounting": [],
            "comment": "",
            "is_default": self.is_default,
            "lineage": self.lineage,
            "min": { "priority_threshold": number(None) },
            "priority": number(None),
            "shares_raw": spec.shares.max(1),
            "user": spec.of.user.as_deref().unwrap_or_default(),
        })
    }
}

impl AsData for Qos {
    const LIST: &'static str = "qos";

    fn data(&self, _: &[Association]) -> Value {
        let (class, limits) = (&self.0, &self.0.limits);
        let mode = match (class.cancels_preempted, class.suspends_preempted) {
            (true, _) => "CANCEL",
            (_, true) => "SUSPEND",
            _ => "REQUEUE",
        };
        json!({
            "description": class.description,
            "flags": if class.refuses_hopeless { vec!["DENY_LIMIT"] } else { Vec::new() },
            "limits": {
                "grace_time": class.preemption_grace_seconds,
                "max": {
                    "active_jobs": { "count": limit(limits.together.running_jobs), "accruing": number(None) },
                    "accruing": { "per": { "account": number(None), "user": number(None) } },
                    "jobs": {
                        "count": limit(limits.together.jobs),
                        "active_jobs": { "per": {
                            "account": limit(limits.each_account.running_jobs),
                            "user": limit(limits.each_user.running_jobs),
                        } },
                        "per": { "account": limit(limits.each_account.jobs), "user": limit(limits.each_user.jobs) },
                    },
                    "tres": {
                        "total": amounts(&limits.together),
                        "minutes": {
                            "total": spent(
                                limits.budget.core_seconds,
                                limits.budget.node_seconds,
                                limits.budget.gpu_seconds,
                            ),
                            "per": {
                                "qos": spent(
                                    limits.remaining.core_seconds,
                                    limits.remaining.node_seconds,
                                    limits.remaining.gpu_seconds,
                                ),
                                "account": [], "job": [], "user": [],
                            },
                        },
                        "per": {
                            "node": [],
                            "account": amounts(&limits.each_account),
                            "job": job_amounts(&limits.each_job),
                            "user": amounts(&limits.each_user),
                        },
                    },
                    "wall_clock": { "per": {
                        "qos": limit(minutes(limits.budget.run_seconds)),
                        "job": limit(minutes(limits.each_job.walltime_seconds)),
                    } },
                },
                "min": { "priority_threshold": number(None), "tres": { "per": { "job": [] } } },
                "factor": number(None),
            },
            "name": class.name,
            "id": qos_id(&class.name),
            "usage_factor": { "set": true, "infinite": false, "number": 1.0 },
            "usage_threshold": number(None),
            "preempt": { "list": class.preempts, "mode": [mode], "exempt_time": number(None) },
            "priority": { "set": true, "infinite": false, "number": class.priority },
        })
    }
}

impl AsData for Cluster {
    const LIST: &'static str = "clusters";

    fn data(&self, _: &[Association]) -> Value {
        let root = AssociationKey { account: crate::accounts::ROOT.to_owned(), ..AssociationKey::default() };
        json!({
            "controller": { "host": self.host, "port": self.port },
            "flags": [],
            "name": self.name,
            "nodes": "",
            "associations": { "root": short(&self.name, &root) },
            "rpc_version": 9728,
            "tres": [],
        })
    }
}

impl AsData for Tres {
    const LIST: &'static str = "TRES";

    fn data(&self, _: &[Association]) -> Value {
        json!({ "type": self.kind, "name": self.name, "id": self.id, "count": 0 })
    }
}

/// What identifies an association.
fn short(cluster: &str, of: &AssociationKey) -> Value {
    json!({
        "account": of.account,
        "cluster": cluster,
        "partition": of.queue.as_deref().unwrap_or_default(),
        "user": of.user.as_deref().unwrap_or_default(),
        "id": association_id(of),
    })
}

fn short_list(all: &[Association], is_its: impl Fn(&AssociationKey) -> bool) -> Vec<Value> {
    all.iter().filter(|one| is_its(&one.spec.of)).map(|one| short(&one.cluster, &one.spec.of)).collect()
}

fn minutes(seconds: Option<u64>) -> Option<u64> {
    seconds.map(|seconds| seconds / 60)
}

fn amounts(bounds: &Bounds) -> Value {
    counted(bounds.cores, bounds.memory_bytes.map(|bytes| bytes / MEGABYTE), bounds.nodes, bounds.gpus)
}

fn job_amounts(bounds: &JobBounds) -> Value {
    counted(bounds.cores, bounds.memory_bytes.map(|bytes| bytes / MEGABYTE), bounds.nodes, bounds.gpus)
}

/// Amounts over time, in minutes.
fn spent(cores: Option<u64>, nodes: Option<u64>, gpus: Option<u64>) -> Value {
    counted(minutes(cores), None, minutes(nodes), minutes(gpus))
}
