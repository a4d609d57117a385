//! The smallest program that supervisors can be started from; the tests use it in place of muster.

fn main() {
    muster_filter_runner::supervise_filters_if_asked();
    eprintln!("usage: muster-filter-supervisor {}", muster_filter_runner::ARGUMENT);
    std::process::exit(2);
}
