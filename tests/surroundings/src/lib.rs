//! Tests that need something of the machine they run on: a test that does not have it says so, where it is seen.

use std::{fs::OpenOptions, io::Write as _};

/// Names the file that `ops/test` shows at its end.
const FILE: &str = "MUSTER_SKIPPED_TESTS";

/// Says that the test that calls this cannot check what it is there for, and why. The test returns then.
///
/// # Panics
/// If the file that is to tell of it cannot be written: a test that is passed over unseen would be worse.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    println!("SKIPPED {name}: {why}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    // One write of a short line: tests that run at the same time do not mix their lines.
    if let Err(error) = file.and_then(|mut file| file.write_all(format!("{name}\t{why}\n").as_bytes())) {
        panic!("cannot write {}: {error}", path.display());
    }
}
