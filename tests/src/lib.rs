//! What the whole-system tests share with the load generators: the simulation with faults.

pub mod simulation;

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

/// Copies a folder with all files and folders in it. The copies are their owner's alone, as keys have to be.
///
/// # Errors
/// Something cannot be read or written.
pub fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &copy)?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// The program `muster` that was built together with the test that asks, with that of the services beside it.
///
/// # Panics
/// If it was not built.
pub fn muster_binary() -> std::path::PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let binary = test.ancestors().nth(2).expect("a test is two folders below the build's results").join("muster");
    for program in [&binary, &binary.with_file_name("muster-services")] {
        assert!(program.is_file(), "{} is missing: build the workspace first, as ops/test does", program.display());
    }
    binary
}
