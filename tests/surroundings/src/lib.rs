//! What tests have to do with what is around them: a test that does not have what it needs of the machine says so, where it is
//! seen; files of the repository that are made from the code are compared with it.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

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

/// Compares a file of the repository with the text that the code makes. With `MUSTER_BLESS=1` in the environment the file is
/// written instead.
///
/// # Panics
/// If the file holds another text, or cannot be written.
pub fn assert_file_is(path: &str, text: &str) {
    if std::env::var_os("MUSTER_BLESS").is_some() {
        let folder = Path::new(path).parent().expect("a file is in a folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
        return;
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(found == text, "{path} is not what the code says; MUSTER_BLESS=1 writes it again");
}
