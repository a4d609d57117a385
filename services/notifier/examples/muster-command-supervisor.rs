//! The smallest program that supervisors can be started from; the tests use it in place of muster.

fn main() {
    muster_notifier::supervise_commands_if_asked();
    eprintln!("usage: muster-command-supervisor {}", muster_notifier::ARGUMENT);
    std::process::exit(2);
}
