//! The two programs: the contents of the small one, and how it becomes the other.

use crate::system::{Output, System};
use std::{
    path::Path,
    process::{Command, Stdio},
};

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");
const SERVICES: &str = env!("CARGO_BIN_EXE_muster-services");

/// The symbols that a program defines or needs.
fn symbols(program: &str) -> Vec<String> {
    let listed = Command::new("nm").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names = listed.lines().filter_map(|line| line.split_whitespace().last());
    let names: Vec<String> = names.map(|name| name.split('@').next().unwrap_or(name).to_owned()).collect();
    assert!(names.iter().any(|name| name == "main"), "{} symbols in {program}", names.len());
    names
}

/// For each of these a statically linked program would load modules of another version of the C library. `getpwuid_r`
/// is present, for the home folder of a user without `HOME`; nothing that needs it is called then (`complete.rs`).
#[test]
fn the_program_of_the_commands_asks_the_c_library_for_no_name() {
    let symbols = symbols(MUSTER);
    for function in ["getaddrinfo", "getpwnam_r", "getgrnam_r", "getgrgid_r", "getgrouplist"] {
        assert!(!symbols.iter().any(|symbol| symbol == function), "{function}");
    }
}

/// The contents of the commands' program are loaded at each of their starts, and copied with each task.
#[test]
fn the_program_of_the_commands_is_small_and_has_no_storage_in_it() {
    let is_storage = |symbol: &String| symbol.contains("rocksdb");
    assert!(symbols(SERVICES).iter().any(is_storage));
    assert!(!symbols(MUSTER).iter().any(is_storage));
    let size = |program: &str| {
        let listed = Command::new("size").arg(program).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let row = listed.lines().nth(1).unwrap_or_default();
        row.split_whitespace().nth(3).and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or_else(|| panic!("{listed}"))
    };
    // An optimised build is a third of that.
    let most = 40 << 20;
    assert!(size(MUSTER) < most, "{} bytes of code and data", size(MUSTER));
    assert!(size(MUSTER) * 2 < size(SERVICES));
}

/// Without an archive of the C library the program is linked dynamically.
#[test]
fn the_program_of_the_commands_needs_no_library() {
    let archive = Command::new("gcc").arg("-print-file-name=libc.a").output().unwrap();
    if !Path::new(String::from_utf8(archive.stdout).unwrap().trim()).is_absolute() {
        muster_surroundings::skipped("the compiler has no archive of the C library");
        return;
    }
    let headers = Command::new("readelf").args(["-l", "-d", MUSTER]).output().unwrap();
    let headers = String::from_utf8(headers.stdout).unwrap();
    assert!(headers.contains("LOAD") && !headers.contains("INTERP") && !headers.contains("NEEDED"), "{headers}");
}

/// People see one command line: its help and its completion know what the other program does.
#[test]
fn what_needs_the_services_is_done_by_the_other_program_wherever_it_is() {
    let system = System::stopped();
    let folder = system.path("usr/bin");
    std::fs::create_dir_all(&folder).unwrap();
    let muster = folder.join("muster");
    std::fs::copy(MUSTER, &muster).unwrap();
    let run = |arguments: &[&str], named: &str| {
        let mut command = Command::new(&muster);
        let output = command.args(arguments).env("MUSTER_SERVICES", named).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Output { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    };
    for command in [&["up"][..], &["serve", "ledger", "gateway"], &["config", "reference"], &["audit", "export", "x"]] {
        let Output { status, stderr, .. } = run(command, "");
        assert_eq!(status, 1, "{command:?}: {stderr}");
        let beside = folder.join("muster-services");
        assert!(stderr.contains("muster-services, which is neither"), "{stderr}");
        assert!(stderr.contains(&beside.display().to_string()) && stderr.contains("MUSTER_SERVICES"), "{stderr}");
    }
    assert!(run(&["--help"], "").stdout.contains("Run a whole system in this process"));
    assert_eq!(run(&["config", "reference"], "/no/such/program").status, 1);
    assert!(run(&["config", "reference"], SERVICES).stdout.starts_with("# Configuration"));
    let libexec = system.path("usr/libexec/muster");
    std::fs::create_dir_all(&libexec).unwrap();
    std::os::unix::fs::symlink(SERVICES, libexec.join("muster-services")).unwrap();
    assert!(run(&["config", "reference"], "").stdout.starts_with("# Configuration"));
    // Both report a wrong command line in the same words.
    let wrong = run(&["up", "--nodse", "3"], "");
    assert!(wrong.status == 2 && wrong.stderr.contains("muster up"), "{}", wrong.stderr);
}

/// Calling the services' program by its own name tells which one to call.
#[test]
fn commands_that_need_no_services_are_not_those_of_the_other_program() {
    let output = Command::new(SERVICES).args(["jobs", "--all"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("call `muster` instead"), "{said}");
}
