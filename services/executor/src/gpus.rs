//! The GPUs of a node: their device files, and the numbers by which programs know them.

mod amd;
mod library;
mod numbering;
mod nvml;
mod rsmi;
mod watch;

use crate::containment::DeviceNumber;
use muster_schemas::resources::IndexSet;
pub use numbering::settled;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr};
pub use watch::{Watch, find};

/// The most GPUs that a node is taken to have if its driver does not say.
const MOST_OF_A_NODE: u32 = 64;

/// Whose GPU it is. Programs for each kind read their own variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GpuKind {
    /// NVIDIA: programs use CUDA.
    Nvidia,
    /// AMD: programs use ROCm.
    Amd,
}

impl GpuKind {
    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
        }
    }

    /// The variable with the numbers of the GPUs that a program sees.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Nvidia => "CUDA_VISIBLE_DEVICES",
            Self::Amd => "ROCR_VISIBLE_DEVICES",
        }
    }
}

/// The fault of a GPU that its driver says nothing about.
pub const NO_ANSWER: &str = "the driver does not answer";

/// A GPU of this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDevice {
    /// Whose it is.
    pub kind: GpuKind,
    /// Its device files; the first is the one that programs cannot do without.
    pub files: Vec<PathBuf>,
    /// The name of its driver for it, if it was detected: the UUID of an NVIDIA GPU.
    pub uuid: Option<String>,
    /// What the driver calls its model, if it was detected.
    pub model: Option<String>,
    /// The numbers of those of its device files that were there when it was found: a job that must not open it must not
    /// open it either once a file is back.
    pub numbers: Vec<DeviceNumber>,
}

impl GpuDevice {
    /// One that is known by its device files.
    const fn of_files(kind: GpuKind, files: Vec<PathBuf>) -> Self {
        Self { kind, files, uuid: None, model: None, numbers: Vec::new() }
    }

    /// The numbers of its device files, also of those that are away.
    pub fn device_numbers(&self) -> impl Iterator<Item = DeviceNumber> {
        let now = self.files.iter().filter_map(|file| DeviceNumber::of(file).or_else(|| DeviceNumber::usual(file)));
        self.numbers.iter().copied().chain(now)
    }

    /// Whether a number means the same GPU with both.
    fn is_same(&self, other: &Self) -> bool {
        (self.kind, self.files.first()) == (other.kind, other.files.first())
    }

    /// The number of its device file, by which programs know it as long as all GPUs of the node are open to them: 3 for
    /// `/dev/nvidia3`. `None` if the name does not end with one.
    fn number(&self) -> Option<u32> {
        let name = self.files.first()?.file_name()?.to_str()?;
        name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
    }
}

impl fmt::Display for GpuDevice {
    /// As in the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
        write!(f, "{}:{}", self.kind.name(), files.join(","))
    }
}

impl FromStr for GpuDevice {
    type Err = String;

    /// Reads `KIND:FILE[,FILE]...`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "`{text}` is not a GPU such as `nvidia:/dev/nvidia0` or `amd:/dev/dri/renderD128,/dev/dri/card0`: {why}"
            )
        };
        let (kind, files) = text.split_once(':').ok_or_else(|| wrong("it has no `:`"))?;
        let kind = [GpuKind::Nvidia, GpuKind::Amd].into_iter().find(|known| known.name() == kind);
        let kind = kind.ok_or_else(|| wrong("it begins neither with `nvidia` nor with `amd`"))?;
        let files: Vec<PathBuf> = files.split(',').map(PathBuf::from).collect();
        match files.iter().all(|file| file.is_absolute()) {
            true => Ok(Self::of_files(kind, files)),
            false => Err(wrong("a file does not begin with `/`")),
        }
    }
}

/// What was found of a node's GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// All, by number; none if the driver says nothing.
    pub devices: Vec<GpuDevice>,
    /// Those that cannot be used for as long as this executor runs, by number, and why.
    pub faults: BTreeMap<u32, String>,
}

impl Found {
    /// A driver says nothing: whatever the node is to have is out of service.
    fn silent() -> Self {
        let faults = (0..MOST_OF_A_NODE).map(|gpu| (gpu, NO_ANSWER.to_owned())).collect();
        Self { devices: Vec::new(), faults }
    }

    fn is_silent(&self) -> bool {
        self.devices.is_empty() && !self.faults.is_empty()
    }

    /// How many there are, with those that only their faults tell of.
    fn count(&self) -> u32 {
        let devices = u32::try_from(self.devices.len()).unwrap_or(u32::MAX);
        self.faults.last_key_value().map_or(devices, |(gpu, _)| devices.max(gpu.saturating_add(1)))
    }
}

impl FromIterator<(GpuDevice, Option<String>)> for Found {
    /// Each with its fault.
    fn from_iter<T: IntoIterator<Item = (GpuDevice, Option<String>)>>(each: T) -> Self {
        let mut found = Self::default();
        for (gpu, (mut device, fault)) in (0..).zip(each) {
            device.numbers = device.files.iter().filter_map(|file| DeviceNumber::of(file)).collect();
            found.devices.push(device);
            found.faults.extend(fault.map(|why| (gpu, why)));
        }
        found
    }
}

/// What tasks see of the node's GPUs.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// All GPUs of the node, by number; empty if their device files are not known.
    pub devices: &'a [GpuDevice],
    /// The GPUs of the job: the only ones that its processes can open if they are kept from others.
    pub of_job: &'a IndexSet,
    /// Whether they are kept from others.
    pub is_constrained: bool,
}

impl View<'_> {
    /// The variables for processes that have these GPUs. The numbers count from 0 the GPUs of the job if
    /// others cannot be opened; else they are those of the device files. Processes without a GPU see none, if the node
    /// or their job has any.
    pub fn variables(&self, gpus: &IndexSet) -> Vec<(String, String)> {
        let mut variables: Vec<(String, String)> = Vec::new();
        if self.devices.is_empty() {
            if !self.of_job.is_empty() || !gpus.is_empty() {
                variables.push((GpuKind::Nvidia.variable().to_owned(), joined(gpus.iter())));
            }
        } else {
            for kind in [GpuKind::Nvidia, GpuKind::Amd] {
                if self.devices.iter().any(|device| device.kind == kind) {
                    variables.push((kind.variable().to_owned(), joined(self.numbers(kind, gpus))));
                }
            }
        }
        if !gpus.is_empty() || !self.of_job.is_empty() {
            variables.push(("MUSTER_GPUS".to_owned(), joined(gpus.iter())));
        }
        variables
    }

    fn numbers(&self, kind: GpuKind, gpus: &IndexSet) -> impl Iterator<Item = u32> {
        let of_kind = move |gpu: &u32| self.devices.get(*gpu as usize).is_some_and(|device| device.kind == kind);
        let before =
            move |set: &IndexSet, gpu: u32| set.iter().take_while(|other| *other < gpu).filter(of_kind).count();
        gpus.iter().filter(of_kind).map(move |gpu| {
            let all = IndexSet::first_n(u32::try_from(self.devices.len()).unwrap_or(u32::MAX));
            let place = u32::try_from(before(if self.is_constrained { self.of_job } else { &all }, gpu)).unwrap_or(0);
            match kind {
                GpuKind::Nvidia if !self.is_constrained => self.devices[gpu as usize].number().unwrap_or(place),
                // ROCm counts the GPUs that it can open, whatever their files are called.
                _ => place,
            }
        })
    }
}

fn joined(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(texts: &[&str]) -> Vec<GpuDevice> {
        texts.iter().map(|text| text.parse().unwrap_or_else(|error| panic!("{error}"))).collect()
    }

    fn set(text: &str) -> IndexSet {
        if text.is_empty() { IndexSet::new() } else { text.parse().expect("a set") }
    }

    #[test]
    fn a_gpu_is_read_and_shown_as_in_the_configuration() {
        let text = "amd:/dev/dri/renderD128,/dev/dri/card0";
        let [gpu] = &devices(&[text])[..] else { panic!("one") };
        assert_eq!((gpu.kind, gpu.files.len(), gpu.to_string().as_str()), (GpuKind::Amd, 2, text));
        for (wrong, why) in [
            ("/dev/nvidia0", "has no `:`"),
            ("intel:/dev/x", "neither"),
            ("nvidia:", "begin with `/`"),
            ("nvidia:/dev/nvidia0,card0", "begin with `/`"),
        ] {
            let error = wrong.parse::<GpuDevice>().expect_err(wrong);
            assert!(error.contains(why) && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn programs_find_their_gpus_by_the_numbers_that_they_see() {
        let nvidia = devices(&["nvidia:/dev/nvidia0", "nvidia:/dev/nvidia2", "nvidia:/dev/nvidia5"]);
        let seen = |devices: &[GpuDevice], of_job: &str, gpus: &str, is_constrained| {
            View { devices, of_job: &set(of_job), is_constrained }.variables(&set(gpus))
        };
        let cuda = |numbers: &str, gpus: &str| {
            let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let mut variables = vec![pair("CUDA_VISIBLE_DEVICES", numbers)];
            variables.push(pair("MUSTER_GPUS", gpus));
            variables
        };
        assert_eq!(seen(&nvidia, "1-2", "1-2", true), cuda("0,1", "1,2"), "a job that can open only its own");
        assert_eq!(seen(&nvidia, "1-2", "2", true), cuda("1", "2"), "a step in it");
        assert_eq!(seen(&nvidia, "1-2", "1-2", false), cuda("2,5", "1,2"), "the numbers of the files");
        assert_eq!(seen(&nvidia, "1-2", "", false), cuda("", ""), "a step without any");
        assert_eq!(seen(&nvidia, "", "", false), cuda("", "")[..1], "a job without any on a node with some");
        assert_eq!(seen(&[], "1-3", "1,3", false), cuda("1,3", "1,3"), "files that are not known");
        assert_eq!(seen(&[], "1-3", "", false), cuda("", ""));
        assert_eq!(seen(&[], "", "", false), []);
        let mixed = devices(&["amd:/dev/dri/renderD128", "nvidia:/dev/nvidia0", "amd:/dev/dri/renderD129"]);
        let both = seen(&mixed, "1-2", "1-2", false);
        assert_eq!(both[..2].iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["0", "1"]);
        assert_eq!(both[1].0, "ROCR_VISIBLE_DEVICES");
        assert_eq!(seen(&mixed, "1-2", "2", true)[1].1, "0");
    }
}
