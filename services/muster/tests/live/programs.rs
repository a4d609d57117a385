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
    // Every dialect is in it; an optimised build is a third of that.
    let most = 60 << 20;
    assert!(size(MUSTER) < most, "{} bytes of code and data", size(MUSTER));
    // The agent's executor is in both.
    assert!(size(MUSTER) * 3 < size(SERVICES) * 2);
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

/// Programs are installed one after the other, and an upgrade can end between them.
#[test]
fn programs_of_other_versions_and_programs_that_lead_back_are_refused() {
    let system = System::stopped();
    let run = |program: &Path, variable: &str, value: &str| {
        let mut command = Command::new(program);
        let output = command.args(["config", "reference"]).env(variable, value).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, stderr) = run(Path::new(SERVICES), "MUSTER_CALLER_VERSION", "0.0.1+0.0");
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("expected muster-services 0.0.1+0.0") && stderr.contains(SERVICES), "{stderr}");
    // It would start the copy, which would start it.
    let copy = system.path("copy");
    system.write("script", &format!("#!/bin/sh\nMUSTER_SERVICES={} exec {MUSTER} \"$@\"\n", copy.display()));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(system.path("script"), executable).unwrap();
    std::fs::copy(MUSTER, &copy).unwrap();
    for services in ["copy", "script"] {
        let (status, stderr) = run(Path::new(MUSTER), "MUSTER_SERVICES", &system.path(services).display().to_string());
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains("found muster itself"), "{stderr}");
    }
}

/// Also, nothing that the services start knows of the version that `muster` told them.
#[test]
fn shims_are_started_from_the_services_where_the_program_for_them_has_another_version() {
    let mut system = System::stopped();
    system.write("other", "#!/bin/sh\necho 0.0.1+0.0 >&0\nread -r orders\n");
    let other = system.path("other");
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    system.write("site.toml", &format!("[executor]\nshim_program = \"{}\"\n", other.display()));
    let config = system.path("site.toml").display().to_string();
    system.restart(&["--nodes", "1", "--cpus", "2", "--memory", "1G", "--config", &config]);
    let job = system.submit(&["--", "sh", "-c", "tr '\\0' '\\n' </proc/$PPID/environ >above; env >inside"]);
    system.wait_for_state(&job, "finished");
    assert!(system.log().contains("found version 0.0.1+0.0"), "{}", system.log());
    for environment in ["above", "inside"] {
        let environment = system.read(environment);
        assert!(environment.contains("PATH=") && !environment.contains("CALLER_VERSION"), "{environment}");
    }
}

/// Calling the services' program by its own name tells which one to call.
#[test]
fn commands_that_need_no_services_are_not_those_of_the_other_program() {
    let output = Command::new(SERVICES).args(["jobs", "--all"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("call `muster` instead"), "{said}");
}
