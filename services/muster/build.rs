//! How `muster` is linked. A command such as `sbatch` lives for about two milliseconds, and much of that would be the
//! dynamic loader's work. So this program contains the C library, if the compiler has it as an archive, and is not
//! position independent: no library has to be found, mapped and bound, and no pointer has to be relocated at each
//! start. Functions that would load modules, for instance to look up users, are not called (`muster_names`).
//!
//! `muster-services` is linked like any other program.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// The linker arguments, and the archives that replace them.
const ARCHIVES: [(&str, &str); 7] = [
    ("libgcc_s.a", "libgcc_eh.a"),
    ("libc.a", "libc.a"),
    ("libm.a", "libm.a"),
    ("libpthread.a", "libpthread.a"),
    ("libdl.a", "libdl.a"),
    ("librt.a", "librt.a"),
    ("libutil.a", "libutil.a"),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bin=muster=-no-pie");
    if is_for_this_host()
        && let Some(folder) = folder_of_archives()
    {
        println!("cargo:rustc-link-arg-bin=muster=-static");
        println!("cargo:rustc-link-arg-bin=muster=-L{}", folder.display());
    }
}

/// Whether the programs are for this kind of host, with the GNU C library: `gcc` tells where this host's archives are.
fn is_for_this_host() -> bool {
    let variable = |name| std::env::var(name).unwrap_or_default();
    variable("HOST") == variable("TARGET") && variable("CARGO_CFG_TARGET_ENV") == "gnu"
}

/// A new folder for the linker to search, with only the archives; `None` if the compiler lacks one of them.
fn folder_of_archives() -> Option<PathBuf> {
    let archives: Vec<PathBuf> = ARCHIVES.iter().map(|(_, archive)| find_archive(archive)).collect::<Option<_>>()?;
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("archives");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("the output folder can be written");
    for ((asked, _), archive) in ARCHIVES.iter().zip(archives) {
        println!("cargo:rerun-if-changed={}", archive.display());
        symlink(archive, folder.join(asked)).expect("the output folder can be written");
    }
    Some(folder)
}

/// The path of an archive of the C compiler, which answers with the bare name if it has none.
fn find_archive(name: &str) -> Option<PathBuf> {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    (path != Path::new(name) && path.exists()).then_some(path)
}
