//! The soft resource limits of the submitting command, which also apply to tasks (SL-E-13). They travel in Slurm's
//! variables.

use nix::sys::resource::Resource;
use std::collections::BTreeMap;

/// A limit on a process's use of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftLimit {
    /// The name of the resource: one of [`RESOURCES`].
    pub resource: &'static str,
    /// The limit in the resource's own unit; `None` if there is none.
    pub most: Option<u64>,
}

/// The resources whose limits are passed on, with the names of `--propagate`.
pub const RESOURCES: [&str; 10] = ["CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS"];

/// The prefix of the variables of limits.
pub const LIMIT_VARIABLE: &str = "SLURM_RLIMIT_";

impl SoftLimit {
    /// Its variable; no limit is -1, as in Slurm.
    pub fn variable(self) -> (String, String) {
        let value = self.most.map_or_else(|| "-1".to_owned(), |most| most.to_string());
        (format!("{LIMIT_VARIABLE}{}", self.resource), value)
    }
}

/// The resource of this name; `None` if the system has none.
pub fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "CPU" => Resource::RLIMIT_CPU,
        "FSIZE" => Resource::RLIMIT_FSIZE,
        "DATA" => Resource::RLIMIT_DATA,
        "STACK" => Resource::RLIMIT_STACK,
        "CORE" => Resource::RLIMIT_CORE,
        "RSS" => Resource::RLIMIT_RSS,
        "NPROC" => Resource::RLIMIT_NPROC,
        "NOFILE" => Resource::RLIMIT_NOFILE,
        "MEMLOCK" => Resource::RLIMIT_MEMLOCK,
        "AS" => Resource::RLIMIT_AS,
        _ => return None,
    })
}

/// The limits in the variables of a job or step. Anything but a number is ignored.
pub fn soft_limits(environment: &BTreeMap<String, String>) -> Vec<SoftLimit> {
    let of = |resource: &'static str| {
        let most = match environment.get(&format!("{LIMIT_VARIABLE}{resource}"))?.as_str() {
            "-1" => None,
            text => Some(text.parse().ok()?),
        };
        Some(SoftLimit { resource, most })
    };
    RESOURCES.into_iter().filter_map(of).collect()
}

/// Keeps only the limits in an environment that `--propagate` names: all of them unless it is `NONE` or a list.
pub fn propagate(environment: &mut BTreeMap<String, String>, wanted: Option<&str>) {
    let names: Vec<&str> =
        wanted.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    if names.is_empty() || has("ALL") {
        return;
    }
    environment.retain(|name, _| name.strip_prefix(LIMIT_VARIABLE).is_none_or(&has));
}
