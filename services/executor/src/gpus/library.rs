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
