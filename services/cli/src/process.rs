//! How the process of a command begins and ends.

/// A caller may have closed standard input, output or error. What is opened first would take their numbers then, and the words
/// of a step could go to the gateway as if they were this command's. The runtime's own care comes later than what runs early.
pub fn occupy_standard_streams() {
    for stream in 0..=2 {
        // SAFETY: neither call has an effect on memory; a new file takes the lowest number that is free, which is this one.
        unsafe {
            if libc::fcntl(stream, libc::F_GETFD) == -1 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            }
        }
    }
}

/// Ends the process without taking apart what the C++ libraries built at its start: a third of the life of a short
/// command.
pub fn leave_at_once(status: u8) -> ! {
    use std::io::Write as _;
    // Who printed something has flushed it or found out that nobody reads; standard error is not buffered.
    let _ = std::io::stdout().flush();
    // SAFETY: the process ends here; no destructor has anything to save.
    unsafe { libc::_exit(i32::from(status)) }
}
