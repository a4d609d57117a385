//! muster-slurm: the commands of Slurm, as one small program that is called by their names.
//!
//! `muster` can do the same. But scripts call `sbatch` and `squeue` by the thousand, each lives for two milliseconds, and much
//! of that is the start of a program that has the services in it too.

// The runtime of Rust would first ask for the limits of the stack and make room for the handler of its overflow.
#![no_main]

use muster_cli::{
    allocator::Allocator,
    process::{leave_at_once, occupy_standard_streams},
};
use muster_slurm_commands::{TOOLS, is_brief_link, link};
use std::{ffi::CStr, io::Write as _};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::new();

#[unsafe(no_mangle)]
extern "C" fn main(count: libc::c_int, words: *const *const libc::c_char) -> libc::c_int {
    // SAFETY: the C library hands over the words of the command line, of which there are that many. Nothing has run yet that
    // could have allocated or made a thread.
    unsafe {
        if count > 0 && is_brief_link(CStr::from_ptr(*words).to_bytes()) {
            ALLOCATOR.be_brief();
        }
    }
    occupy_standard_streams();
    leave_at_once(link().unwrap_or_else(|| {
        let _ = writeln!(std::io::stderr(), "muster-slurm: call it through links named {}", TOOLS.join(", "));
        2
    }))
}
