//! The configuration file: its keys, its values, and the errors in it.
//!
//! [`keys`] is the one list of all keys with their meaning, default and range. The file is checked against it (so that
//! every error has a line, a column and, for a wrong key, the nearest right one), and the reference in `docs/` is
//! printed from it. A test keeps it in step with the types that the services take.

mod check;
mod cluster;
mod difference;
pub mod keys;
mod reference;

pub use check::CheckedFile;
pub use cluster::{ClusterFile, makes_way_in_vain};
pub use difference::{differences, emptied, outcome};
pub use reference::reference;

use crate::exit::Failure;
use muster_bus::NatsConfig;
use muster_pbs_commands::policy_folder::Preset;
use muster_schemas::cluster::ClusterSettings;
use muster_slurm::options::SiteOptions;
use muster_telemetry::TelemetryConfig;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The configuration file if none is named.
pub const DEFAULT_PATH: &str = "/etc/muster/muster.toml";

/// The contents of a configuration file, with defaults for everything else.
///
/// Unknown keys are accepted here: the file is checked before.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Configuration {
    /// `[bus]`
    pub bus: NatsConfig,
    /// `[telemetry]`
    pub telemetry: TelemetryConfig,
    /// `[ledger]`
    pub ledger: muster_ledger::Config,
    /// `[planner]`
    pub planner: muster_planner_service::Config,
    /// `[executor]`
    pub executor: muster_executor::Config,
    /// `[notifier]`
    pub notifier: muster_notifier::Config,
    /// `[filter_runner]`
    pub filter_runner: muster_filter_runner::RunnerConfig,
    /// `[accounting]`
    pub accounting: muster_accounting::Config,
    /// `[gateway]`
    pub gateway: muster_gateway::Config,
    /// `[pbs]`
    pub pbs: PbsConfig,
    /// `[slurm]`
    pub slurm: SlurmConfig,
    /// `[quotas]`
    pub quotas: QuotasConfig,
    /// `[cluster]`, `[[queues]]`, `[[nodes]]`, `[licences]` and `[accounts]`
    #[serde(skip)]
    pub cluster: ClusterFile,
}

/// `[quotas]`: the file with quotas in force.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct QuotasConfig {
    /// The file; `None` if quotas are set by hand, or there are none.
    pub file: Option<PathBuf>,
}

/// `[pbs]`: what PBS's commands ask the gateway for.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct PbsConfig {
    /// The member of the family that output imitates where they differ.
    pub flavour: PbsFlavour,
    /// The server's name in job identifiers; empty for the cluster's name.
    pub server: String,
    /// Whether `nodes=N` without `ppn` asks for whole nodes.
    pub nodes_are_whole: bool,
    /// Resources that are only kept and shown.
    pub kept_resources: Vec<String>,
    /// The folder with the policy files in force; `None` if other policies are.
    pub policy_folder: Option<PathBuf>,
    /// The preset that the files are for; `None` for PBS's fifo.
    pub preset: Option<PbsPreset>,
}

impl Default for PbsConfig {
    fn default() -> Self {
        Self {
            flavour: PbsFlavour::default(),
            server: String::new(),
            nodes_are_whole: true,
            kept_resources: Vec::new(),
            policy_folder: None,
            preset: None,
        }
    }
}

/// The presets of PBS's schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PbsPreset {
    /// SGI Origin.
    SgiOrigin,
    /// Cray T3E.
    CrayT3e,
    /// IBM SP.
    IbmSp,
    /// A timeshared host.
    Multitask,
}

impl PbsPreset {
    /// The preset as the policy files know it.
    pub const fn preset(self) -> Preset {
        match self {
            Self::SgiOrigin => Preset::SgiOrigin,
            Self::CrayT3e => Preset::CrayT3e,
            Self::IbmSp => Preset::IbmSp,
            Self::Multitask => Preset::Multitask,
        }
    }
}

/// The members of the PBS family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PbsFlavour {
    /// OpenPBS and PBS Pro.
    #[default]
    PbsPro,
    /// TORQUE.
    Torque,
}

impl PbsFlavour {
    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::PbsPro => "pbspro",
            Self::Torque => "torque",
        }
    }
}

/// `[slurm]`: what Slurm's commands ask the gateway for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlurmConfig {
    /// As `SchedulerParameters` in `slurm.conf` (SL-M-05, SL-R-11).
    pub scheduler_parameters: String,
    /// The words that begin staging directives; if empty, directives are comments (SL-B-01, SL-B-07).
    pub burst_buffer_directives: Vec<String>,
    /// How directives are read (SL-B-02).
    pub burst_buffer_type: BurstBufferType,
    /// Other clusters, each `NAME=ADDRESS`, for `--clusters` (SL-S-19).
    pub clusters: Vec<String>,
    /// The kind of MPI support of steps that name none; empty means that of Slurm's commands (SL-W-03).
    pub mpi_default: String,
    /// The `AccountingStorageType` that commands show; empty for muster's own.
    pub accounting_storage_type: String,
    /// Options that the site adds to `sbatch`, `salloc` and `srun`, each `NAME[=VALUE] HELP` (SL-S-22).
    pub site_options: Vec<String>,
    /// The version of Slurm that commands show; empty for the one whose commands these are.
    pub version: String,
}

/// How staging directives are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BurstBufferType {
    /// As in DataWarp: they may create, name and remove persistent buffers.
    #[default]
    Datawarp,
    /// Lines that only the site's staging program understands.
    Script,
}

impl BurstBufferType {
    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Datawarp => "datawarp",
            Self::Script => "script",
        }
    }
}

/// A configuration and the file that it came from.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The configuration in force.
    pub configuration: Configuration,
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// The contents of the file, key by key.
    pub file: CheckedFile,
}

/// Reads the named file, or the default one if it exists, otherwise returns the defaults.
pub fn load(path: Option<&Path>) -> Result<Loaded, Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None if Path::new(DEFAULT_PATH).exists() => PathBuf::from(DEFAULT_PATH),
        None => return Ok(Loaded::default()),
    };
    let name = path.display().to_string();
    let bytes = std::fs::read(&path).map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    let (configuration, file) = parse(&name, bytes)?;
    Ok(Loaded { configuration, path: Some(path), file })
}

/// Reads a configuration from the bytes of a file.
pub fn parse(name: &str, bytes: Vec<u8>) -> Result<(Configuration, CheckedFile), Failure> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]);
        Failure::in_file(check::position(name, &before, before.len()), "this byte is not UTF-8 text")
    })?;
    let file = CheckedFile::check(name, &text)?;
    let cluster: ClusterFile = read(name, &text)?;
    cluster.check(|path| check::place_of(name, &text, path))?;
    let configuration = Configuration { cluster, ..read(name, &text)? };
    leave_time_for_launch(&configuration).map_err(|message| {
        Failure::in_file(check::place_of(name, &text, "executor.site_program_timeout_seconds"), message)
    })?;
    SiteOptions::check(&configuration.slurm.site_options).map_err(|why| {
        let place = check::place_of(name, &text, "slurm.site_options");
        Failure::in_file(place, format!("`site_options` in [slurm]: {why}"))
    })?;
    Ok((configuration, file))
}

/// Prologs are part of the launch: if they may take as long as a launch, the launch fails first. A file that names no cluster is one
/// for a node, and does not know how long launches may take.
fn leave_time_for_launch(configuration: &Configuration) -> Result<(), String> {
    let (cluster, executor) = (&configuration.cluster, &configuration.executor);
    let count = u32::from(executor.prolog.is_some()) + u32::from(executor.job_prolog.is_some());
    let of_default = || cluster.name().map(|_| ClusterSettings::default().launch_timeout_seconds);
    let Some(launch) = cluster.launch_timeout_seconds().or_else(of_default) else { return Ok(()) };
    let seconds = executor.site_program_timeout_seconds;
    if seconds.saturating_mul(count) < launch {
        return Ok(());
    }
    let prologs = if count > 1 { "the two prologs are, one after the other," } else { "a prolog is" };
    Err(format!(
        "`site_program_timeout_seconds` is {seconds}, and {prologs} part of the launch, which may take {launch} s by \
         `launch_timeout_seconds` of `[cluster]`: make the first smaller, or the second larger"
    ))
}

fn read<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, Failure> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Failure::in_file(check::position(name, text, at), error.message())
    })
}

#[cfg(test)]
mod tests;
