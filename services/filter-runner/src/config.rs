//! Settings of a runner.

use serde::Deserialize;
use std::path::PathBuf;

/// How filters are run on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerConfig {
    /// The runner's name, unique in the cluster. Empty means the host's name and the process id.
    pub name: String,
    /// The unprivileged account that filters run under (HPC-F-70). Only a runner that is root can switch to it; any
    /// other runs them as itself.
    pub account: String,
    /// The folder for the private folders of calls, best on a file system in memory. It is made if it does not exist;
    /// the account must be able to reach it. Only root and the runner's user may be able to replace anything in it.
    pub scratch: PathBuf,
    /// `PATH` of filters (HPC-F-62).
    pub path: String,
    /// `LANG` of filters.
    pub lang: String,
    /// `TZ` of filters.
    pub time_zone: String,
    /// `CCP_SCHEDULER` of filters: where their commands find the system, as the address of a gateway or the data folder
    /// of an instance on this host.
    pub scheduler: String,
    /// Users in addition to root who may own filter programs and the folders on their path (HPC-F-73).
    pub administrators: Vec<String>,
    /// The number of simultaneous calls, not counting persistent filters; 1 or more (HPC-F-80).
    pub slots: usize,
    /// The number of processes for each persistent filter, each with one call at a time; 1 or more.
    pub persistent_processes: usize,
    /// The program that becomes a supervisor: this muster, or another one that first calls
    /// [`supervise_filters_if_asked`](crate::supervise_filters_if_asked).
    pub supervisor: PathBuf,
    /// Whether the service also runs if it cannot run programs here, such as root without the account. Then it makes
    /// the checks after the filters, and reports for each program why it cannot be run.
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
    /// Why the current user can run nothing under the account of this configuration, if so (HPC-F-70).
    pub fn account_fault(&self) -> Option<String> {
        crate::account::to_switch_to(&self.account).err().map(|error| error.to_string())
    }
}

/// `/run` is in memory on every current system, but only root may write to it; other users have a folder there each.
fn default_scratch() -> PathBuf {
    if nix::unistd::Uid::effective().is_root() {
        return "/run/muster/filters".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("muster-filters"),
        None => std::env::temp_dir().join(format!("muster-filters-{}", nix::unistd::Uid::effective())),
    }
}
