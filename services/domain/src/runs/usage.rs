//! The combined usage of parts of a run.

use muster_schemas::job::Usage;

pub(crate) fn together(one: Usage, other: Usage) -> Usage {
    Usage {
        cpu_time_micros: one.cpu_time_micros.saturating_add(other.cpu_time_micros),
        peak_memory_bytes: one.peak_memory_bytes.saturating_add(other.peak_memory_bytes),
    }
}
