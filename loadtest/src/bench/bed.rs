//! What the benchmarks share: the environment they run in.

use super::figure::Figure;
use crate::system::{Options, System};
use anyhow::{Context as _, Result};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::runtime::{Builder, Handle};

/// What the benchmarks share.
pub(super) struct Bench {
    pub muster: PathBuf,
    pub scratch: PathBuf,
    pub traces: Option<PathBuf>,
    pub scale: f64,
}

/// A running system and its folder, which is removed with it.
pub(super) struct Running {
    pub system: System,
    pub _folder: tempfile::TempDir,
}

impl Bench {
    pub fn folder(&self) -> Result<tempfile::TempDir> {
        tempfile::tempdir_in(&self.scratch).with_context(|| format!("no folder in {}", self.scratch.display()))
    }

    /// A fresh system.
    pub fn start(&self, nodes: u32, cpus: u32) -> Result<Running> {
        let folder = self.folder()?;
        let system = self.start_on(folder.path(), nodes, cpus, None)?;
        Ok(Running { system, _folder: folder })
    }

    /// A fresh system with its own settings.
    pub fn start_with(&self, nodes: u32, cpus: u32, config: &str) -> Result<Running> {
        let folder = self.folder()?;
        let file = folder.path().join("muster.toml");
        fs::write(&file, config)?;
        let system = self.start_on(folder.path(), nodes, cpus, Some(file))?;
        Ok(Running { system, _folder: folder })
    }

    pub fn start_on(&self, data: &Path, nodes: u32, cpus: u32, config: Option<PathBuf>) -> Result<System> {
        System::start(&Options { muster: self.muster.clone(), nodes, cpus, config }, data)
    }

    /// A scaled count of things to do, at least one.
    pub fn count(&self, usual: usize) -> usize {
        ((usual as f64 * self.scale) as usize).max(1)
    }

    /// Measures pure computation, on a blocking thread so that this program still notices interruptions.
    pub async fn compute(self: &Arc<Self>, measure: fn(&Self) -> Result<Vec<Figure>>) -> Result<Vec<Figure>> {
        let bench = self.clone();
        tokio::task::spawn_blocking(move || measure(&bench)).await?
    }
}

/// A thread for clients that would be on other machines. Here they share the processors with the measured system, and
/// must not take one from it whenever they have work. It lives as long as this program, as a runtime cannot be dropped
/// inside another one.
pub(super) fn elsewhere() -> Result<&'static Handle> {
    let give_way = || {
        let usual = libc::sched_param { sched_priority: 0 };
        // SAFETY: the call only reads `usual`; 0 is this thread. If it is refused, the figures are just worse.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const usual) };
    };
    let runtime = Builder::new_multi_thread().worker_threads(1).on_thread_start(give_way).enable_all().build()?;
    Ok(Box::leak(Box::new(runtime)).handle())
}
