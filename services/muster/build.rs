//! How the programs are linked. A command such as `sbatch` lives for about two milliseconds, and much of that is the dynamic
//! loader's work, so it is given little of it:
//!
//! - No program is position independent: no pointer of its tables has to be corrected at each start.
//! - `muster`: the initialisers of RocksDB's many files stand side by side, so that running them touches few pages of the
//!   program. The C++ and unwinding runtimes are linked in, where the compiler has them as archives: no library but the C
//!   library's own has to be found, mapped and bound.
//! - `muster-slurm`: the C library too is linked in, where it is there as an archive. What would load modules into it, such as
//!   to look up users, is not called (`muster_client::names`).

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// What the linker asks for when it links any of the programs, and the archive that it shall get.
const RUNTIMES: [(&str, &str); 2] = [("libstdc++.a", "libstdc++.a"), ("libgcc_s.a", "libgcc_eh.a")];
/// The same for `muster-slurm` alone.
const C_LIBRARY: [(&str, &str); 6] = [
    ("libc.a", "libc.a"),
    ("libm.a", "libm.a"),
    ("libpthread.a", "libpthread.a"),
    ("libdl.a", "libdl.a"),
    ("librt.a", "librt.a"),
    ("libutil.a", "libutil.a"),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=-no-pie");
    println!("cargo:rustc-link-arg-bin=muster=-Wl,-z,keep-text-section-prefix");
    if let Some(folder) = folder_of("runtimes", &RUNTIMES) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        if is_for_this_host()
            && let Some(folder) = folder_of("c-library", &C_LIBRARY)
        {
            println!("cargo:rustc-link-arg-bin=muster-slurm=-static");
            println!("cargo:rustc-link-arg-bin=muster-slurm=-L{}", folder.display());
        }
    }
}

/// Whether the programs are for a host as this one, with the GNU C library: `gcc` tells where this host's archives are.
fn is_for_this_host() -> bool {
    let variable = |name| std::env::var(name).unwrap_or_default();
    variable("HOST") == variable("TARGET") && variable("CARGO_CFG_TARGET_ENV") == "gnu"
}

/// A new folder for the linker to search first, with these archives and nothing else; `None` if the compiler has not all of
/// them. One alone would not do: the C++ runtime must unwind with the same library as everything else.
fn folder_of(name: &str, wanted: &[(&str, &str)]) -> Option<PathBuf> {
    let archives: Vec<PathBuf> = wanted.iter().map(|(_, archive)| find_archive(archive)).collect::<Option<_>>()?;
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("the output folder can be written");
    for ((asked, _), archive) in wanted.iter().zip(archives) {
        println!("cargo:rerun-if-changed={}", archive.display());
        symlink(archive, folder.join(asked)).expect("the output folder can be written");
    }
    Some(folder)
}

/// Where the C compiler has an archive; it answers with the bare name if it has none.
fn find_archive(name: &str) -> Option<PathBuf> {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    (path != Path::new(name) && path.exists()).then_some(path)
}
