//! Which GPUs the node has, and whether each can be used. A driver that hangs must hold up nothing else, so a thread of
//! its own asks.

use super::{
    Found, GpuDevice, GpuKind, amd,
    nvml::{self, LIBRARY, Nvml},
    rsmi::{LIBRARIES, Rsmi},
};
use muster_schemas::node::GpuReport;
use std::{collections::BTreeMap, path::Path, sync::mpsc, thread, time::Duration};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender},
        oneshot,
    },
    time::{self, Instant},
};

/// How long the drivers may take to say which GPUs there are.
const SEARCH: Duration = Duration::from_secs(10);
/// After how many periods without a word of it a driver counts as one that does not answer.
const SILENT_PERIODS: u32 = 3;
/// The shortest time for that: a driver that wakes its GPUs takes some seconds for each.
const LEAST_SILENCE: Duration = Duration::from_secs(30);

/// The GPUs of the configuration, or else those that this host has.
///
/// # Errors
/// If there can be no thread.
pub async fn find(configured: Option<Vec<GpuDevice>>) -> std::io::Result<Found> {
    if let Some(configured) = configured {
        return Ok(configured.into_iter().map(|device| (device, None)).collect());
    }
    search(
        || {
            let nvml = Nvml::load(LIBRARY);
            let nvidia = nvml::devices(nvml.as_ref(), Path::new("/proc"), Path::new("/dev"));
            nvidia.into_iter().chain(amd::devices(Path::new("/sys"))).collect()
        },
        SEARCH,
    )
    .await
}

async fn search(search: impl FnOnce() -> Found + Send + 'static, most: Duration) -> std::io::Result<Found> {
    let (sender, found) = oneshot::channel();
    thread::Builder::new().name("gpu-search".into()).spawn(move || sender.send(search()))?;
    Ok(time::timeout(most, found).await.ok().and_then(Result::ok).unwrap_or_else(Found::silent))
}

/// Reports of the thread, and the end of it.
pub struct Watch {
    reports: UnboundedReceiver<GpuReport>,
    /// Dropped, it ends the thread.
    _stop: mpsc::Sender<()>,
    /// What it says if the thread has not said anything for a while, and that while.
    if_silent: GpuReport,
    silence: Duration,
    /// When the thread has last said something; `None` once that is too long ago.
    heard: Option<Instant>,
    told: Option<GpuReport>,
}

impl Watch {
    /// Begins to look at the GPUs, now and each time that this period is over.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn begin(found: Found, period: Duration) -> std::io::Result<Self> {
        let (sender, reports) = tokio::sync::mpsc::unbounded_channel();
        let (stop, stopped) = mpsc::channel();
        let watch = Self::of(reports, stop, &found, (period * SILENT_PERIODS).max(LEAST_SILENCE));
        thread::Builder::new().name("gpus".into()).spawn(move || look(&found, period, &stopped, &sender))?;
        Ok(watch)
    }

    fn of(reports: UnboundedReceiver<GpuReport>, stop: mpsc::Sender<()>, found: &Found, silence: Duration) -> Self {
        let why = format!("the driver has not answered for {} s", silence.as_secs());
        let faults = (0..found.count()).map(|gpu| (gpu, found.faults.get(&gpu).unwrap_or(&why).clone())).collect();
        let if_silent = GpuReport { found: found.count(), faults };
        Self { reports, _stop: stop, if_silent, silence, heard: Some(Instant::now()), told: None }
    }

    /// The next report that differs from the one before; the first comes at once. A call that is given up loses none.
    pub async fn next(&mut self) -> GpuReport {
        loop {
            let report = self.news().await;
            if self.told.as_ref() != Some(&report) {
                self.told = Some(report.clone());
                return report;
            }
        }
    }

    async fn news(&mut self) -> GpuReport {
        let silent_from = self.heard.map(|heard| heard + self.silence);
        let report = async {
            match self.reports.recv().await {
                Some(report) => report,
                // The thread has failed, which was logged: it stays silent.
                None => std::future::pending().await,
            }
        };
        let report = match silent_from {
            Some(silent_from) => time::timeout_at(silent_from, report).await.ok(),
            None => Some(report.await),
        };
        self.heard = report.is_some().then(Instant::now);
        report.unwrap_or_else(|| self.if_silent.clone())
    }
}

fn look(found: &Found, period: Duration, stopped: &mpsc::Receiver<()>, reports: &UnboundedSender<GpuReport>) {
    let drivers = Drivers::of(&found.devices);
    loop {
        // Each is a sign of life. Nobody listens once the executor stops.
        let _ = reports.send(report(found, &drivers));
        if stopped.recv_timeout(period) != Err(mpsc::RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// The libraries that are asked for the GPUs of this node.
struct Drivers {
    nvml: Option<Nvml>,
    rsmi: Option<Rsmi>,
}

impl Drivers {
    fn of(devices: &[GpuDevice]) -> Self {
        let has_uuid = devices.iter().any(|device| device.uuid.is_some());
        let has_amd = devices.iter().any(|device| device.kind == GpuKind::Amd);
        Self {
            nvml: has_uuid.then(|| Nvml::load(LIBRARY)).flatten(),
            rsmi: has_amd.then(|| Rsmi::load(&LIBRARIES)).flatten(),
        }
    }

    fn fault(&self, device: &GpuDevice) -> Option<String> {
        match device.kind {
            GpuKind::Nvidia => self.nvml?.fault(device.uuid.as_ref()?),
            GpuKind::Amd => self.rsmi?.fault(device.number()?),
        }
    }
}

fn report(found: &Found, drivers: &Drivers) -> GpuReport {
    let faults = (0..).zip(&found.devices).filter_map(|(gpu, device)| Some((gpu, fault(device, drivers)?)));
    let mut faults: BTreeMap<u32, String> = faults.collect();
    faults.extend(found.faults.clone());
    GpuReport { found: found.count(), faults }
}

/// Why a GPU cannot be used.
fn fault(device: &GpuDevice, drivers: &Drivers) -> Option<String> {
    let missing = device.files.iter().find(|file| !file.exists());
    missing.map(|file| format!("{} does not exist", file.display())).or_else(|| drivers.fault(device))
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
        let devices = find(Some(devices)).await.expect("they are told");
        let mut watch = Watch::begin(devices, Duration::from_millis(5)).expect("a thread");
        let well = GpuReport { found: 2, faults: BTreeMap::new() };
        assert_eq!(watch.next().await, well);
        fs::remove_file(&files[1]).expect("removed");
        let fault = (1, format!("{} does not exist", files[1].display()));
        assert_eq!(watch.next().await, GpuReport { found: 2, faults: BTreeMap::from([fault]) });
        fs::write(&files[1], "").expect("written");
        assert_eq!(watch.next().await, well);
    }

    fn one() -> Found {
        std::iter::once(("nvidia:/dev/nvidia0".parse().expect("a GPU"), None)).collect()
    }

    #[tokio::test]
    async fn a_driver_that_falls_silent_takes_its_gpus_out_of_service_until_it_answers() {
        let (thread, reports) = tokio::sync::mpsc::unbounded_channel();
        let (stop, _stopped) = mpsc::channel();
        let mut watch = Watch::of(reports, stop, &one(), Duration::from_millis(20));
        let well = GpuReport { found: 1, faults: BTreeMap::new() };
        thread.send(well.clone()).expect("it listens");
        assert_eq!(watch.next().await, well);
        let silent = watch.next().await;
        assert_eq!(silent.faults.values().collect::<Vec<_>>(), ["the driver has not answered for 0 s"]);
        thread.send(well.clone()).expect("it listens");
        assert_eq!(watch.next().await, well);
        drop(thread);
        assert_eq!(watch.next().await, silent, "a thread that has failed");
    }

    #[tokio::test]
    async fn a_driver_that_hangs_does_not_hold_up_the_start() {
        let (answer, wait) = mpsc::channel::<()>();
        let hang = move || {
            // Ends with the test.
            let _ = wait.recv();
            one()
        };
        let found = search(hang, Duration::from_millis(20)).await.expect("a thread");
        assert!(found.is_silent(), "{found:?}");
        let mut watch = Watch::begin(found, Duration::from_millis(5)).expect("a thread");
        let report = watch.next().await;
        assert!(report.found > 0 && report.faults.len() == report.found as usize, "{report:?}");
        assert_eq!(search(one, Duration::from_secs(60)).await.expect("a thread"), one());
        drop(answer);
    }
}
