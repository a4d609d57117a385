//! Room that a process needs before it gives its log to RocksDB (F19).
//!
//! RocksDB is C++: if it gets no thread or no memory while it opens a database, it throws an exception that no Rust code can
//! catch, and ends the process or waits for a lock that it holds itself. So the room is tried first.

use nix::sys::{
    mman::{MapFlags, ProtFlags, mmap_anonymous, munmap},
    resource::{Resource, getrlimit},
};
use std::{io, num::NonZeroUsize};

/// Address space of the threads of a database, its caches and what it reads at its start: `muster up` becomes ready with 2.2 GB
/// in all and not with 1.8 GB, and has some 0.4 GB before it opens its log.
const ADDRESS_SPACE: NonZeroUsize = NonZeroUsize::new(3 << 29).unwrap();
/// Threads of a database.
const THREADS: usize = 4;

/// Whether a database can be opened.
///
/// # Errors
/// Which limit leaves too little, for people.
pub(crate) fn for_database() -> Result<(), String> {
    address_space().map_err(|error| {
        let limit =
            getrlimit(Resource::RLIMIT_AS).map_or_else(|_| "unknown".to_owned(), |(soft, _)| (soft >> 20).to_string());
        let missing = ADDRESS_SPACE.get() >> 20;
        format!("{missing} MiB more of address space are needed ({error}), and the limit (`ulimit -v`) is {limit} MiB")
    })?;
    threads(THREADS)
}

/// Whether a process can start this many threads more.
///
/// # Errors
/// Which limit is in the way, for people.
pub fn threads(count: usize) -> Result<(), String> {
    let (mut started, mut refused) = (Vec::with_capacity(count), None);
    for thread in (0..count).map(|_| std::thread::Builder::new().spawn(std::thread::park)) {
        match thread {
            Ok(thread) => started.push(thread),
            Err(error) => refused = Some(error),
        }
    }
    for thread in started {
        thread.thread().unpark();
        let _ = thread.join();
    }
    let told = |error| format!("no thread can be started ({error}); look at the limit of processes (`ulimit -u`)");
    refused.map_or(Ok(()), |error| Err(told(error)))
}

/// A reservation counts for the limit of address space, and takes no memory.
fn address_space() -> io::Result<()> {
    // SAFETY: a new mapping at an address that the kernel chooses touches no other memory; nothing reads or writes it.
    let reserved = unsafe {
        mmap_anonymous(None, ADDRESS_SPACE, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE)
    }?;
    // SAFETY: nobody else knows this mapping.
    unsafe { munmap(reserved, ADDRESS_SPACE.get()) }?;
    Ok(())
}
