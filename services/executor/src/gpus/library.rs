//! Libraries of drivers, which a host may have or not.

use std::ffi::{CStr, c_void};

/// A library that is loaded for as long as this process lives.
#[derive(Clone, Copy)]
pub struct Library(*mut c_void);

impl Library {
    /// The first of these names that the host has.
    pub fn open(names: &[&CStr]) -> Option<Self> {
        let open = |name: &&CStr| {
            // SAFETY: the name ends with a zero byte. The library's initializers run; they are trusted as those of any library of
            // the host.
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
        };
        names.iter().map(open).find(|library| !library.is_null()).map(Self)
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is a pointer to a function of the type that has this name.
    pub unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is of `dlopen`, and the name ends with a zero byte.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: as the caller says; the sizes are equal.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }
}

#[cfg(test)]
pub mod testing {
    use std::{
        ffi::CString,
        fs,
        path::{Path, PathBuf},
        process::Command,
    };

    /// A library of a driver, built from this text in C, and the file whose presence, called `LOST` there, makes a GPU fail. `None` if
    /// this host has no compiler, which is told.
    pub fn built(folder: &Path, text: &str) -> Option<(CString, PathBuf)> {
        let (source, library, lost) = ("driver.c", "libdriver.so", folder.join("lost"));
        fs::write(folder.join(source), text).expect("written");
        let define = format!("-DLOST=\"{}\"", lost.display());
        let status =
            Command::new("cc").args(["-shared", "-fPIC", &define, "-o", library, source]).current_dir(folder).status();
        if !status.is_ok_and(|status| status.success()) {
            muster_surroundings::skipped("there is no C compiler");
            return None;
        }
        Some((CString::new(folder.join(library).display().to_string()).expect("no zero byte"), lost))
    }
}
