//! How often jobs were looked at, so that tests can show what a rule costs without a clock. Only builds with debug
//! assertions count.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Notes that a job is looked at.
pub(crate) fn note() {
    if cfg!(debug_assertions) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

/// The result of `work`, and how many looks at jobs it took in this thread.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = LOOKS.get();
    let result = work();
    (result, LOOKS.get() - before)
}
