//! Which GPUs the node has, and whether each can be used. A driver that hangs must hold up nothing else, so a thread of
//! its own asks.

use super::{
    GpuDevice, GpuKind, amd,
    nvml::{LIBRARY, Nvml},
};
use muster_schemas::node::GpuReport;
use std::{collections::BTreeMap, path::Path, sync::mpsc, thread, time::Duration};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// The GPUs of the configuration, or else those that this host has.
pub fn devices(configured: Option<&[GpuDevice]>) -> Vec<GpuDevice> {
    if let Some(configured) = configured {
        return configured.to_vec();
    }
    let nvidia = Nvml::load(LIBRARY).map(|nvml| nvml.devices()).unwrap_or_default();
    nvidia.into_iter().chain(amd::devices(Path::new("/sys"))).collect()
}

/// Reports of the thread, and the end of it.
pub struct Watch {
    reports: UnboundedReceiver<GpuReport>,
    /// Dropped, it ends the thread.
    _stop: mpsc::Sender<()>,
}

impl Watch {
    /// Begins to look at the GPUs, now and each time that this period is over.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn begin(devices: Vec<GpuDevice>, period: Duration) -> std::io::Result<Self> {
        let (sender, reports) = tokio::sync::mpsc::unbounded_channel();
        let (stop, stopped) = mpsc::channel();
        thread::Builder::new().name("gpus".into()).spawn(move || look(&devices, period, &stopped, &sender))?;
        Ok(Self { reports, _stop: stop })
    }

    /// The next report that differs from the one before; the first comes at once.
    pub async fn next(&mut self) -> GpuReport {
        match self.reports.recv().await {
            Some(report) => report,
            // The thread has failed, which was logged: what it said last stays.
            None => std::future::pending().await,
        }
    }
}

fn look(devices: &[GpuDevice], period: Duration, stopped: &mpsc::Receiver<()>, reports: &UnboundedSender<GpuReport>) {
    let nvml = devices.iter().any(|device| device.uuid.is_some()).then(|| Nvml::load(LIBRARY)).flatten();
    let mut before = None;
    loop {
        let report = Some(report(devices, nvml.as_ref()));
        if before != report {
            before.clone_from(&report);
            // Nobody listens once the executor stops.
            let _ = report.map(|report| reports.send(report));
        }
        if stopped.recv_timeout(period) != Err(mpsc::RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn report(devices: &[GpuDevice], nvml: Option<&Nvml>) -> GpuReport {
    let faults = (0..).zip(devices).filter_map(|(gpu, device)| Some((gpu, fault(device, nvml)?)));
    GpuReport { found: u32::try_from(devices.len()).unwrap_or(u32::MAX), faults: faults.collect::<BTreeMap<_, _>>() }
}

/// Why a GPU cannot be used.
fn fault(device: &GpuDevice, nvml: Option<&Nvml>) -> Option<String> {
    if let Some(missing) = device.files.iter().find(|file| !file.exists()) {
        return Some(format!("{} does not exist", missing.display()));
    }
    let uuid = device.uuid.as_ref().filter(|_| device.kind == GpuKind::Nvidia)?;
    nvml?.fault(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn a_file_that_goes_and_comes_back_is_told_once_each() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = ["gpu0", "gpu1"].map(|name| folder.path().join(name));
        files.iter().for_each(|file| fs::write(file, "").expect("written"));
        let devices = files.iter().map(|file| format!("nvidia:{}", file.display()).parse().expect("a GPU")).collect();
        let mut watch = Watch::begin(devices, Duration::from_millis(5)).expect("a thread");
        let well = GpuReport { found: 2, faults: BTreeMap::new() };
        assert_eq!(watch.next().await, well);
        fs::remove_file(&files[1]).expect("removed");
        let fault = (1, format!("{} does not exist", files[1].display()));
        assert_eq!(watch.next().await, GpuReport { found: 2, faults: BTreeMap::from([fault]) });
        fs::write(&files[1], "").expect("written");
        assert_eq!(watch.next().await, well);
    }
}
