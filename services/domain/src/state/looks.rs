//! Counts accesses to jobs, so that tests can show the cost of a rule without a clock. Only builds with debug
//! assertions count.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Counts an access to a job.
pub(crate) fn note() {
    if cfg!(debug_assertions) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

/// The result of `work`, and the number of accesses to jobs that it made in this thread.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = LOOKS.get();
    let result = work();
    (result, LOOKS.get() - before)
}
