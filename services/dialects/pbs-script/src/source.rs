//! Files with programs.

use muster_names::guarded;
use nix::unistd::Uid;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Bytes of a file.
const LONGEST: u64 = 1 << 20;

/// The text of a program.
///
/// # Errors
/// It cannot be read, for people.
pub fn read(path: &Path) -> Result<String, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let about = std::fs::metadata(path).map_err(|error| told(&error))?;
    if !about.is_file() {
        return Err(told(&"it is no regular file"));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| told(&error))?;
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| told(&error))?;
    if text.len() as u64 > LONGEST {
        return Err(told(&format!("it is larger than {LONGEST} bytes")));
    }
    Ok(text)
}

/// The same of a program that another process runs as the user of this one. Root runs nothing that somebody else can change.
///
/// # Errors
/// As [`read`], or somebody else can change it.
pub fn read_to_run(path: &Path) -> Result<String, String> {
    let text = read(path)?;
    require_guarded(path)?;
    Ok(text)
}

/// The same for a command: its folder, and whichever of its words are files there or elsewhere.
///
/// # Errors
/// Somebody else can change one of them.
pub fn require_guarded_command(folder: &Path, command: &[String]) -> Result<(), String> {
    let files = command.iter().map(|word| below(folder, Path::new(word))).filter(|path| path.is_file());
    std::iter::once(folder.to_owned()).chain(files).try_for_each(|path| require_guarded(&path))
}

fn require_guarded(path: &Path) -> Result<(), String> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let refused = |why| format!("{}: root does not run it: {why}", path.display());
    guarded(path).map(drop).map_err(refused)
}

/// The SHA-256 of a text in hexadecimal digits.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a file without its folder.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A path below the folder of the scheduler, unless it is absolute.
pub fn below(folder: &Path, path: &Path) -> PathBuf {
    folder.join(path)
}
