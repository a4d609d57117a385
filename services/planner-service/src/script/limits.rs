//! Limits and resources of the server and its queues as `qmgr` has set them, in the shape that scheduling programs are shown
//! (PBS-X-09).

use muster_pbs::qmgr::{DEFAULTS, amount, limits_of, limits_of_jobs};
use muster_pbs_plan::{
    resources::{Resources, Value},
    state_file::{Attributes, QueueState},
};
use muster_schemas::cluster::{ClusterSettings, QueueSpec};
use std::collections::BTreeMap;

/// Those of the server.
pub(super) fn of_server(settings: &ClusterSettings) -> Attributes {
    let kept = Kept::of(&settings.attributes);
    Attributes {
        max_running: kept.count("max_running"),
        max_user_run: kept.count("max_user_run"),
        max_group_run: kept.count("max_group_run"),
        resources_available: kept.resources("resources_available"),
        resources_max: kept.resources("resources_max"),
        resources_default: kept.resources(DEFAULTS),
        ..Attributes::default()
    }
}

/// Those of a queue. Limits on running jobs that hold under every policy have fields of their own, and so has what jobs may ask
/// for.
pub(super) fn of_queue(spec: &QueueSpec) -> QueueState {
    let kept = Kept::of(&spec.attributes);
    let mut resources_max = kept.resources("resources_max");
    for (resource, value) in limits_of_jobs(spec, "resources_max") {
        set(&mut resources_max, resource, &value);
    }
    if let Some(seconds) = spec.max_walltime_seconds {
        resources_max.0.entry("walltime".to_owned()).or_insert(Value::Number(seconds));
    }
    let mut resources_default = kept.resources(DEFAULTS);
    if let Some(seconds) = spec.default_walltime_seconds {
        resources_default.0.insert("walltime".to_owned(), Value::Number(seconds));
    }
    QueueState {
        max_running: spec.max_running_jobs.map(Into::into).or_else(|| kept.count("max_running")),
        max_user_run: spec.max_running_jobs_per_user.map(Into::into).or_else(|| kept.count("max_user_run")),
        max_group_run: kept.count("max_group_run"),
        resources_available: kept.resources("resources_available"),
        resources_max,
        resources_default,
        ..QueueState::default()
    }
}

/// The limits that are kept as attributes.
struct Kept<'a>(Vec<(&'a str, Option<&'a str>, &'a str)>);

impl<'a> Kept<'a> {
    fn of(attributes: &'a BTreeMap<String, String>) -> Self {
        Self(limits_of(attributes).collect())
    }

    fn count(&self, wanted: &str) -> Option<u64> {
        self.0.iter().find(|(name, resource, _)| *name == wanted && resource.is_none())?.2.parse().ok()
    }

    fn resources(&self, wanted: &str) -> Resources {
        let mut resources = Resources::default();
        for (name, resource, value) in &self.0 {
            if let Some(resource) = resource.filter(|_| *name == wanted) {
                set(&mut resources, resource, value);
            }
        }
        resources
    }
}

/// A value that is no amount is a text, such as that of `nodes`.
fn set(resources: &mut Resources, resource: &str, value: &str) {
    let value = amount(resource, value).map_or_else(|| Value::Text(value.to_owned()), Value::Number);
    resources.0.insert(resource.to_owned(), value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-X-09: programs see what `qmgr` has set, in the units of a state file, and nothing where nothing is set.
    #[test]
    fn limits_and_resources_are_those_that_were_set() {
        let attributes = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| (format!("pbs.{name}"), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let set = attributes(&[
            ("max_running", "7"),
            ("max_group_run", "3"),
            ("resources_available.ncpus", "64"),
            ("resources_available.mem", "2gb"),
            ("resources_max.cput", "1:00:00"),
            ("resources_default.mem", "1gb"),
        ]);
        let server = of_server(&ClusterSettings { attributes: set, ..ClusterSettings::default() });
        assert_eq!((server.max_running, server.max_user_run, server.max_group_run), (Some(7), None, Some(3)));
        assert_eq!(server.resources_available.number("ncpus"), Some(64));
        assert_eq!(server.resources_available.number("mem"), Some(2 << 20));
        assert_eq!(server.resources_max.number("cput"), Some(3600));
        assert_eq!(server.resources_default.number("mem"), Some(1 << 20));
        assert_eq!(of_server(&ClusterSettings::default()), Attributes::default());
        let queue = of_queue(&QueueSpec {
            max_running_jobs: Some(5),
            max_walltime_seconds: Some(600),
            default_walltime_seconds: Some(60),
            most_asked: [("memory_bytes".to_owned(), 1 << 30)].into(),
            attributes: attributes(&[("max_user_run", "2"), ("resources_available.ncpus", "8")]),
            ..QueueSpec::default()
        });
        assert_eq!((queue.max_running, queue.max_user_run, queue.max_group_run), (Some(5), Some(2), None));
        assert_eq!(queue.resources_available.number("ncpus"), Some(8));
        assert_eq!(
            (queue.resources_max.number("walltime"), queue.resources_max.number("mem")),
            (Some(600), Some(1 << 20))
        );
        assert_eq!(queue.resources_default.number("walltime"), Some(60));
    }
}
