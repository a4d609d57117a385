//! NVIDIA's management library, if the driver of this host has it: which GPUs there are, and whether they answer.

use super::{GpuDevice, GpuKind, library::Library, numbering::with_places};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    fs,
    path::Path,
    ptr,
};

/// The name under which drivers install it.
pub const LIBRARY: &CStr = c"libnvidia-ml.so.1";
/// The length of a name or UUID with its end, at most.
const TEXT_BYTES: usize = 96;
/// What the library answers if all is well.
const SUCCESS: c_int = 0;
/// What it answers if the GPU does not have what was asked for, which is no fault.
const NOT_SUPPORTED: c_int = 3;

type Device = *mut c_void;

/// The library, ready to be asked.
#[derive(Clone, Copy)]
pub struct Nvml {
    count: unsafe extern "C" fn(*mut c_uint) -> c_int,
    by_index: unsafe extern "C" fn(c_uint, *mut Device) -> c_int,
    by_uuid: unsafe extern "C" fn(*const c_char, *mut Device) -> c_int,
    name: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> c_int,
    uuid: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> c_int,
    minor: unsafe extern "C" fn(Device, *mut c_uint) -> c_int,
    memory: unsafe extern "C" fn(Device, *mut MemoryInfo) -> c_int,
    describe: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// What the library writes about the memory of a GPU: total, free and used bytes.
#[repr(C)]
#[derive(Default)]
struct MemoryInfo([u64; 3]);

impl Nvml {
    /// Loads the library and lets it find the driver. `None` if the host has none, or no NVIDIA driver runs.
    pub fn load(name: &CStr) -> Option<Self> {
        let library = Library::open(&[name])?;
        // SAFETY: these are the types of the functions in the library's header, which do not change: another type gets
        // another name, with a higher version.
        let (start, nvml) = unsafe {
            let start: unsafe extern "C" fn() -> c_int = library.function(c"nvmlInit_v2")?;
            let nvml = Self {
                count: library.function(c"nvmlDeviceGetCount_v2")?,
                by_index: library.function(c"nvmlDeviceGetHandleByIndex_v2")?,
                by_uuid: library.function(c"nvmlDeviceGetHandleByUUID")?,
                name: library.function(c"nvmlDeviceGetName")?,
                uuid: library.function(c"nvmlDeviceGetUUID")?,
                minor: library.function(c"nvmlDeviceGetMinorNumber")?,
                memory: library.function(c"nvmlDeviceGetMemoryInfo")?,
                describe: library.function(c"nvmlErrorString")?,
            };
            (start, nvml)
        };
        // SAFETY: it may be called at any time. The library stays initialized for as long as this process lives.
        match unsafe { start() } {
            SUCCESS => Some(nvml),
            answer => {
                tracing::debug!(why = nvml.words(answer), "the library for NVIDIA GPUs cannot be used");
                None
            }
        }
    }

    /// The GPUs that answer, by the numbers of their device files, and why each of the others does not.
    fn answers(&self) -> (BTreeMap<u32, GpuDevice>, Vec<String>) {
        let (mut answering, mut silent, mut count) = (BTreeMap::new(), Vec::new(), 0);
        // SAFETY: the library is initialized, and the pointer is to a number of the right type.
        if unsafe { (self.count)(&raw mut count) } == SUCCESS {
            for index in 0..count {
                match self.device(index) {
                    Ok((minor, device)) => drop(answering.insert(minor, device)),
                    Err(why) => silent.push(why),
                }
            }
        }
        (answering, silent)
    }

    fn device(&self, index: c_uint) -> Result<(c_uint, GpuDevice), String> {
        let (mut device, mut minor) = (ptr::null_mut(), 0);
        // SAFETY: the library is initialized, and the pointers are to values of the right types.
        let answer = unsafe {
            match (self.by_index)(index, &raw mut device) {
                SUCCESS => (self.minor)(device, &raw mut minor),
                failure => failure,
            }
        };
        if answer != SUCCESS {
            return Err(self.says(answer));
        }
        let (uuid, model) = (self.text(self.uuid, device), self.text(self.name, device));
        Ok((minor, GpuDevice { uuid, model, ..place(minor) }))
    }

    /// The fault of a GPU; `None` if it answers.
    pub fn fault(&self, uuid: &str) -> Option<String> {
        let uuid = std::ffi::CString::new(uuid).ok()?;
        let (mut device, mut memory) = (ptr::null_mut(), MemoryInfo::default());
        // SAFETY: the library is initialized, the text ends with a zero byte, and the pointers are to values of the
        // right types.
        let answer = unsafe {
            match (self.by_uuid)(uuid.as_ptr(), &raw mut device) {
                SUCCESS => (self.memory)(device, &raw mut memory),
                failure => failure,
            }
        };
        (!matches!(answer, SUCCESS | NOT_SUPPORTED)).then(|| self.says(answer))
    }

    fn text(&self, of: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> c_int, device: Device) -> Option<String> {
        let mut bytes = [0_u8; TEXT_BYTES];
        // SAFETY: the device comes from the library, and the buffer has the length given.
        let answer = unsafe { of(device, bytes.as_mut_ptr().cast(), TEXT_BYTES as c_uint) };
        let text = CStr::from_bytes_until_nul(&bytes).ok().filter(|_| answer == SUCCESS)?;
        Some(text.to_string_lossy().into_owned())
    }

    fn says(&self, answer: c_int) -> String {
        format!("the driver says: {}", self.words(answer))
    }

    fn words(&self, answer: c_int) -> String {
        // SAFETY: it may be called at any time, and returns a text that stays.
        let text = unsafe { (self.describe)(answer) };
        if text.is_null() {
            return format!("error {answer}");
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// The GPUs of this host in the order of their device files, each with its fault if it does not answer; `proc` and `dev`
/// are the folders of these names.
pub fn devices(nvml: Option<&Nvml>, proc: &Path, dev: &Path) -> Vec<(GpuDevice, Option<String>)> {
    let (answering, silent) = nvml.map(Nvml::answers).unwrap_or_default();
    with_places(answering, silent, &known_minors(&proc.join("driver/nvidia/gpus")), &file_minors(dev), place)
}

fn place(minor: u32) -> GpuDevice {
    GpuDevice::of_files(GpuKind::Nvidia, vec![format!("/dev/nvidia{minor}").into()])
}

/// The minor numbers of the GPUs that the driver has, also of those that the library cannot reach.
fn known_minors(gpus: &Path) -> BTreeSet<u32> {
    let minor = |gpu: fs::DirEntry| -> Option<u32> {
        let information = fs::read_to_string(gpu.path().join("information")).ok()?;
        information.lines().find_map(|line| line.strip_prefix("Device Minor:")?.trim().parse().ok())
    };
    fs::read_dir(gpus).into_iter().flatten().flatten().filter_map(minor).collect()
}

fn file_minors(dev: &Path) -> BTreeSet<u32> {
    let minor = |file: fs::DirEntry| file.file_name().to_str()?.strip_prefix("nvidia")?.parse().ok();
    fs::read_dir(dev).into_iter().flatten().flatten().filter_map(minor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpus::library::testing::built;

    /// A library with two GPUs in the wrong order, of which the one with the minor number 1 has fallen off its bus once the
    /// file `lost` exists.
    const LIBRARY: &str = r#"
        #include <stdio.h>
        #include <string.h>
        #include <unistd.h>
        struct memory { unsigned long long total, free, used; };
        static unsigned minors[] = { 1, 0 };
        int nvmlInit_v2(void) { return 0; }
        int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned at, void **device) {
            if (at > 1) return 15;
            *device = &minors[at];
            return 0;
        }
        int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
            if (strncmp(uuid, "GPU-", 4) != 0) return 6;
            *device = &minors[uuid[4] == '0'];
            return 0;
        }
        int nvmlDeviceGetName(void *device, char *name, unsigned length) {
            snprintf(name, length, "Model %u", *(unsigned *)device);
            return 0;
        }
        int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
            snprintf(uuid, length, "GPU-%u", *(unsigned *)device);
            return 0;
        }
        int nvmlDeviceGetMinorNumber(void *device, unsigned *minor) { *minor = *(unsigned *)device; return 0; }
        int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory) {
            memory->total = memory->free = 1 << 30;
            return *(unsigned *)device == 1 && access(LOST, F_OK) == 0 ? 15 : 0;
        }
        const char *nvmlErrorString(int error) { return error == 15 ? "GPU is lost" : "Not Found"; }
    "#;

    #[test]
    fn gpus_are_those_of_the_driver_and_one_that_is_lost_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some((path, lost)) = built(folder.path(), LIBRARY) else { return };
        let nvml = Nvml::load(&path).expect("it has all functions");
        let information = folder.path().join("driver/nvidia/gpus/0000:65:00.0");
        fs::create_dir_all(&information).expect("a folder");
        fs::write(information.join("information"), "Model: \t Model 7\nDevice Minor: \t 7\n").expect("written");
        let found = devices(Some(&nvml), folder.path(), folder.path());
        let shown: Vec<_> = found
            .iter()
            .map(|(gpu, fault)| (gpu.to_string(), gpu.model.as_deref(), gpu.uuid.as_deref(), fault.as_deref()))
            .collect();
        let gpu = |number: &str| format!("nvidia:/dev/nvidia{number}");
        let expected = [
            (gpu("0"), Some("Model 0"), Some("GPU-0"), None),
            (gpu("1"), Some("Model 1"), Some("GPU-1"), None),
            (gpu("7"), None, None, Some("the driver says: GPU is lost")),
        ];
        assert_eq!(shown, expected, "the third does not answer");
        assert_eq!(["GPU-0", "GPU-1"].map(|uuid| nvml.fault(uuid)), [None, None]);
        fs::write(&lost, "").expect("written");
        let why = Some("the driver says: GPU is lost".to_owned());
        assert_eq!(["GPU-0", "GPU-1"].map(|uuid| nvml.fault(uuid)), [None, why]);
        assert_eq!(nvml.fault("MIG-1"), Some("the driver says: Not Found".to_owned()));
        assert!(Nvml::load(c"/nowhere/libnvidia-ml.so.1").is_none());
    }
}
