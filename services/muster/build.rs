//! How the program is linked. A command such as `muster submit` lives for about two milliseconds, and much of that is
//! the dynamic loader's work, so it is given little of it:
//!
//! - The program is not position independent: no pointer of its tables has to be corrected at each start.
//! - The initialisers of RocksDB's many files stand side by side, so that running them touches few pages of the program.
//! - The C++ and unwinding runtimes are linked in, where the compiler has them as archives: no library but the C library's
//!   own has to be found, mapped and bound.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// What the linker asks for, and the archive that it shall get.
const ARCHIVES: [(&str, &str); 2] = [("libstdc++.a", "libstdc++.a"), ("libgcc_s.a", "libgcc_eh.a")];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bin=muster=-no-pie");
    println!("cargo:rustc-link-arg-bin=muster=-Wl,-z,keep-text-section-prefix");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let archives: Option<Vec<PathBuf>> = ARCHIVES.iter().map(|(_, archive)| find_archive(archive)).collect();
    // All or none: the C++ runtime must unwind with the same library as everything else.
    let Some(archives) = archives else { return };
    // A folder that is searched first and has only archives.
    for ((name, _), archive) in ARCHIVES.iter().zip(archives) {
        let link = out.join(name);
        let _ = std::fs::remove_file(&link);
        symlink(archive, link).expect("the output folder can be written");
    }
    println!("cargo:rustc-link-search=native={}", out.display());
}

/// Where the C compiler has an archive; it answers with the bare name if it has none.
fn find_archive(name: &str) -> Option<PathBuf> {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    (path != Path::new(name) && path.exists()).then_some(path)
}
