//! Settings of a runner.

use serde::Deserialize;
use std::path::PathBuf;

/// How filters are run on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerConfig {
    /// The runner's name, which no other runner of the cluster may have. Empty means the host's name and the number of the
    /// process.
    pub name: String,
    /// The unprivileged account that filters run under (HPC-F-70). Only a runner that is root can switch to it; another runs
    /// them as itself.
    pub account: String,
    /// Private folders of calls are made here, best on a file system in memory. It is made if it does not exist; the
    /// account has to be able to reach it. Nobody but root and the runner's user may be able to replace what is in it.
    pub scratch: PathBuf,
    /// `PATH` of filters (HPC-F-62).
    pub path: String,
    /// `LANG` of filters.
    pub lang: String,
    /// `TZ` of filters.
    pub time_zone: String,
    /// `CCP_SCHEDULER` of filters: where the commands that they call find the system, as the address of a gateway or the data
    /// folder of an instance on this host.
    pub scheduler: String,
    /// Users beside root who may own programs of filters and the folders on their path (HPC-F-73).
    pub administrators: Vec<String>,
    /// So many calls are made at the same time, those of persistent filters not among them; 1 or more (HPC-F-80).
    pub slots: usize,
    /// So many processes serve one persistent filter, each one call at a time; 1 or more.
    pub persistent_processes: usize,
    /// The program that supervisors are started from: this muster, or another that calls
    /// [`supervise_filters_if_asked`](crate::supervise_filters_if_asked) first.
    pub supervisor: PathBuf,
    /// Whether the service also runs if no program can be run here, such as by root without the account. Then it makes the
    /// checks behind the filters, and says of each program why it cannot be run.
    #[serde(skip)]
    pub may_lack_programs: bool,
}

impl Default for RunnerConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            account: "muster-filter".into(),
            scratch: default_scratch(),
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            lang: "C.UTF-8".into(),
            time_zone: "UTC".into(),
            scheduler: String::new(),
            administrators: Vec::new(),
            slots: 16,
            persistent_processes: 1,
            supervisor: "/proc/self/exe".into(),
            may_lack_programs: false,
        }
    }
}

impl RunnerConfig {
    /// Why nothing can be run under the account of this configuration by who asks, if that is so (HPC-F-70).
    pub fn account_fault(&self) -> Option<String> {
        crate::account::to_switch_to(&self.account).err().map(|error| error.to_string())
    }
}

/// `/run` is in memory on every system of today, but only root may write to it; other users have a folder there each.
fn default_scratch() -> PathBuf {
    if nix::unistd::Uid::effective().is_root() {
        return "/run/muster/filters".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("muster-filters"),
        None => std::env::temp_dir().join(format!("muster-filters-{}", nix::unistd::Uid::effective())),
    }
}
