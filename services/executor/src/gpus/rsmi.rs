//! AMD's management library ROCm SMI, if this host has it: whether GPUs answer.

use super::library::Library;
use std::ffi::{CStr, c_char, c_int};

/// The names under which it is installed, the newest first. The functions that are used are the same in all.
pub const LIBRARIES: [&CStr; 4] =
    [c"librocm_smi64.so.7", c"librocm_smi64.so.6", c"librocm_smi64.so.5", c"librocm_smi64.so.1"];
/// What the library answers if all is well.
const SUCCESS: c_int = 0;
/// What it answers if the GPU does not have what was asked for, which is no fault.
const NOT_SUPPORTED: c_int = 2;
/// The memory on the GPU itself.
const VRAM: c_int = 0;

/// The library, ready to be asked.
#[derive(Clone, Copy)]
pub struct Rsmi {
    count: unsafe extern "C" fn(*mut u32) -> c_int,
    minor: unsafe extern "C" fn(u32, *mut u32) -> c_int,
    memory: unsafe extern "C" fn(u32, c_int, *mut u64) -> c_int,
    describe: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
}

impl Rsmi {
    /// Loads the first of these libraries and lets it find the driver. `None` if the host has none, or no AMD driver runs.
    pub fn load(names: &[&CStr]) -> Option<Self> {
        let library = Library::open(names)?;
        // SAFETY: these are the types of the functions in the library's header.
        let (start, rsmi) = unsafe {
            let start: unsafe extern "C" fn(u64) -> c_int = library.function(c"rsmi_init")?;
            let rsmi = Self {
                count: library.function(c"rsmi_num_monitor_devices")?,
                minor: library.function(c"rsmi_dev_drm_render_minor_get")?,
                memory: library.function(c"rsmi_dev_memory_usage_get")?,
                describe: library.function(c"rsmi_status_string")?,
            };
            (start, rsmi)
        };
        // SAFETY: it may be called at any time. The library stays initialized for as long as this process lives.
        match unsafe { start(0) } {
            SUCCESS => Some(rsmi),
            answer => {
                tracing::debug!(why = rsmi.words(answer), "the library for AMD GPUs cannot be used");
                None
            }
        }
    }

    /// The fault of the GPU whose device file is `/dev/dri/renderD` and this number; `None` if it answers, or if the library does
    /// not know it.
    pub fn fault(&self, render_minor: u32) -> Option<String> {
        let (index, mut used) = (self.index(render_minor)?, 0);
        // SAFETY: the library is initialized, the index is one of its own, and the pointer is to a number of the right type.
        let answer = unsafe { (self.memory)(index, VRAM, &raw mut used) };
        (!matches!(answer, SUCCESS | NOT_SUPPORTED)).then(|| format!("the driver says: {}", self.words(answer)))
    }

    /// The number by which the library knows a GPU. It may change while GPUs come and go.
    fn index(&self, render_minor: u32) -> Option<u32> {
        let mut count = 0;
        // SAFETY: the library is initialized, and the pointer is to a number of the right type.
        let answer = unsafe { (self.count)(&raw mut count) };
        (0..count).filter(|_| answer == SUCCESS).find(|index| {
            let mut minor = 0;
            // SAFETY: as above.
            let answer = unsafe { (self.minor)(*index, &raw mut minor) };
            answer == SUCCESS && minor == render_minor
        })
    }

    fn words(&self, answer: c_int) -> String {
        let mut text = std::ptr::null();
        // SAFETY: it may be called at any time, and the pointer is to one of the right type.
        let told = unsafe { (self.describe)(answer, &raw mut text) };
        if told != SUCCESS || text.is_null() {
            return format!("error {answer}");
        }
        // SAFETY: the library has set it to a text that stays.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpus::library::testing::built;
    use std::fs;

    /// A library with two GPUs, of which `/dev/dri/renderD129` is busy once the file `lost` exists. Neither can say how much memory
    /// it uses before.
    const LIBRARY: &str = r#"
        #include <stdint.h>
        #include <unistd.h>
        static const uint32_t minors[] = { 129, 128 };
        int rsmi_init(uint64_t flags) { return flags == 0 ? 0 : 1; }
        int rsmi_num_monitor_devices(uint32_t *count) { *count = 2; return 0; }
        int rsmi_dev_drm_render_minor_get(uint32_t at, uint32_t *minor) {
            if (at > 1) return 1;
            *minor = minors[at];
            return 0;
        }
        int rsmi_dev_memory_usage_get(uint32_t at, int kind, uint64_t *used) {
            *used = 0;
            return at == 0 && kind == 0 && access(LOST, F_OK) == 0 ? 16 : 2 * (int) at;
        }
        int rsmi_status_string(int status, const char **text) {
            *text = "Device busy";
            return status == 16 ? 0 : 1;
        }
    "#;

    #[test]
    fn a_gpu_that_does_not_answer_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some((path, lost)) = built(folder.path(), LIBRARY) else { return };
        let rsmi = Rsmi::load(&[c"/nowhere/librocm_smi64.so.9", &path]).expect("it has all functions");
        assert_eq!([128, 129, 130].map(|minor| rsmi.fault(minor)), [None, None, None]);
        fs::write(&lost, "").expect("written");
        let why = Some("the driver says: Device busy".to_owned());
        assert_eq!([128, 129, 130].map(|minor| rsmi.fault(minor)), [None, why, None]);
        assert!(Rsmi::load(&[c"/nowhere/librocm_smi64.so.9"]).is_none());
    }
}
