//! Where memory comes from.

use mimalloc::MiMalloc;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, Ordering},
};

/// mimalloc, as a fold of the log is mostly allocation: jobs come and go. Commands that need little take it from the C library
/// instead: mimalloc maps a region for each size that is asked for, which would be a third of the life of `sbatch`.
#[derive(Default)]
pub struct Allocator {
    is_brief: AtomicBool,
}

impl Allocator {
    /// mimalloc, until it is told otherwise.
    pub const fn new() -> Self {
        Self { is_brief: AtomicBool::new(false) }
    }

    /// Says that this process needs little memory.
    ///
    /// # Safety
    ///
    /// Nothing has been allocated yet, and there is one thread: what one allocator gave must not go back to the other.
    pub unsafe fn be_brief(&self) {
        self.is_brief.store(true, Ordering::Relaxed);
    }
}

// SAFETY: each call goes to one of two allocators, to the same in the whole life of the process.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises that both allocators ask for.
        unsafe { if self.is_brief.load(Ordering::Relaxed) { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let is_brief = self.is_brief.load(Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { if is_brief { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) } }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let is_brief = self.is_brief.load(Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { if is_brief { System.dealloc(memory, layout) } else { MiMalloc.dealloc(memory, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let is_brief = self.is_brief.load(Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { if is_brief { System.realloc(memory, layout, size) } else { MiMalloc.realloc(memory, layout, size) } }
    }
}
