//! Copying files of jobs, as their owners and within limits (PBS-G-01).

use muster_executor::copies::Copier;
use muster_schemas::{
    JobId, Sequence,
    copies::{CopyDirection, CopyOrder, FileCopy},
    event::Owner,
};
use std::{
    cell::Cell,
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    time::Instant,
};

/// A folder that everybody can use, and a copy command with this text in it.
fn place(command: &str) -> (tempfile::TempDir, Copier) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("it is ours");
    let program = folder.path().join("copier");
    fs::write(&program, format!("#!/bin/sh\n{command}\n")).expect("it is ours");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
    let words = vec![program.display().to_string(), "-x".to_owned()];
    (folder, Copier { node: "n1".into(), names: vec!["n1".into(), "n1.example".into()], command: words })
}

fn own_name() -> String {
    nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok().flatten().expect("this user has a name").name
}

fn file(local: &Path, host: &str, remote: &Path) -> FileCopy {
    FileCopy { local: local.display().to_string(), host: host.into(), remote: remote.display().to_string() }
}

fn order(direction: CopyDirection, files: Vec<FileCopy>) -> CopyOrder {
    CopyOrder {
        job: JobId::job(1),
        copy: Sequence(7),
        run: None,
        owner: Owner { user: own_name(), uid: 0, gid: 0 },
        direction,
        files,
        limit_seconds: 30,
        limit_bytes: 0,
    }
}

fn never() -> bool {
    false
}

/// PBS-G-01
#[test]
fn files_of_this_node_are_copied_as_they_are() {
    let (folder, copier) = place("exit 9");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("-r")).expect("it is ours");
    fs::write(at("-r/a b"), "text").expect("it is ours");
    // Words that look like options or commands are paths.
    for (host, copy) in [("", "one"), ("N1.example", "$(two)"), ("localhost", "three;x")] {
        let report =
            copier.copy(&order(CopyDirection::In, vec![file(&at(copy), host, &at("-r/a b"))]), Instant::now(), &never);
        let report = report.expect("nobody stops it");
        assert_eq!((report.failure, report.bytes), (None, Some(4)), "{host}");
        assert_eq!(fs::read_to_string(at(copy)).expect("it was copied"), "text");
    }
    let report =
        copier.copy(&order(CopyDirection::Out, vec![file(&at("-r"), "", &at("whole"))]), Instant::now(), &never);
    assert_eq!(report.expect("nobody stops it").failure, None);
    assert_eq!(fs::read_to_string(at("whole/a b")).expect("folders are copied whole"), "text");
}

/// PBS-G-01
#[test]
fn other_hosts_are_the_business_of_the_copy_command() {
    let (folder, copier) =
        place("[ \"$1\" = -x ] && shift; echo \"$*\" >> $(dirname $0)/said; cp \"${1#fs:}\" \"${2#fs:}\"");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("from"), "12345").expect("it is ours");
    let report = copier
        .copy(&order(CopyDirection::In, vec![file(&at("here"), "fs", &at("from"))]), Instant::now(), &never)
        .expect("it");
    assert_eq!((report.failure, report.bytes), (None, Some(5)));
    let report = copier
        .copy(&order(CopyDirection::Out, vec![file(&at("here"), "fs", &at("back"))]), Instant::now(), &never)
        .expect("it");
    assert_eq!((report.failure, report.bytes), (None, Some(5)));
    let [from, here, back] = ["from", "here", "back"].map(|name| at(name).display().to_string());
    let said = fs::read_to_string(at("said")).expect("it was called");
    assert_eq!(said, format!("fs:{from} {here}\n{here} fs:{back}\n"));
}

#[test]
fn the_first_failure_ends_it_and_is_told_in_the_words_of_the_program() {
    let (folder, copier) = place("echo; echo 'fs: no route to host'; exit 3");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("from"), "12345").expect("it is ours");
    let files = vec![file(&at("a"), "fs", &at("from")), file(&at("b"), "", &at("from"))];
    let report = copier.copy(&order(CopyDirection::In, files), Instant::now(), &never).expect("nobody stops it");
    let why = report.failure.expect("it failed");
    assert!(why.contains("could not be copied to") && why.ends_with("fs: no route to host (exit status: 3)"), "{why}");
    assert!(!at("b").exists(), "nothing is copied after a failure");
    let report = copier
        .copy(&order(CopyDirection::In, vec![file(&at("c"), "", &at("none"))]), Instant::now(), &never)
        .expect("it");
    assert!(report.failure.expect("there is no such file").contains("No such file or directory"));
    let unknown = Owner { user: "no-such-user-here".into(), uid: 5, gid: 5 };
    let order = CopyOrder { owner: unknown, ..order(CopyDirection::In, vec![file(&at("c"), "", &at("from"))]) };
    let why =
        copier.copy(&order, Instant::now(), &never).and_then(|report| report.failure).expect("nobody can copy it");
    assert!(why.contains("no-such-user-here"), "{why}");
}

#[test]
fn time_and_size_are_limited_and_a_stop_is_obeyed() {
    let (folder, copier) = place("head -c 100000 /dev/zero > \"$3\" || exit 9; sleep infinity");
    let at = |name: &str| folder.path().join(name);
    let from_fs = |limit_seconds, limit_bytes| CopyOrder {
        limit_seconds,
        limit_bytes,
        ..order(CopyDirection::In, vec![file(&at("big"), "fs", Path::new("/big"))])
    };
    // Who waited for the command would be ended by the test runner.
    let why = copier
        .copy(&from_fs(1, 0), Instant::now(), &never)
        .and_then(|report| report.failure)
        .expect("it takes too long");
    assert!(why.ends_with("it took longer than 1 s"), "{why}");
    // No file gets larger than the limit, whatever the command does.
    copier
        .copy(&from_fs(600, 1_000), Instant::now(), &never)
        .and_then(|report| report.failure)
        .expect("it is too large");
    assert!(fs::metadata(at("big")).expect("it was begun").len() <= 1_000);
    fs::write(at("small"), "12345").expect("it is ours");
    let files = vec![file(&at("copy"), "", &at("small")), file(&at("copy2"), "", &at("small"))];
    let order = CopyOrder { limit_bytes: 9, ..order(CopyDirection::In, files) };
    let why = copier
        .copy(&order, Instant::now(), &never)
        .and_then(|report| report.failure)
        .expect("together they are too large");
    assert_eq!(why, "the files have 10 bytes, and at most 9 may be copied");
    let asked = Cell::new(0);
    let soon = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    assert_eq!(copier.copy(&from_fs(600, 0), Instant::now(), &soon), None, "nobody wants a report");
}

/// Root copies nothing for a user.
#[test]
fn copies_are_made_by_the_owner_of_the_job() {
    if !nix::unistd::Uid::effective().is_root() {
        return muster_surroundings::skipped("only root can copy as somebody else");
    }
    let (folder, copier) = place("id -un > $(dirname $0)/who; cat \"${2#fs:}\" > \"$3\"");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("secret"), "root's").expect("it is ours");
    fs::set_permissions(at("secret"), Permissions::from_mode(0o600)).expect("it is ours");
    fs::write(at("public"), "all").expect("it is ours");
    let nobody = nix::unistd::User::from_name("nobody").ok().flatten().expect("every host has it");
    let copy = |source: &str, host: &str, to: &str| {
        let owner = Owner { user: "nobody".into(), uid: nobody.uid.as_raw(), gid: nobody.gid.as_raw() };
        let order = CopyOrder { owner, ..order(CopyDirection::In, vec![file(&at(to), host, &at(source))]) };
        copier.copy(&order, Instant::now(), &never).expect("nobody stops it").failure
    };
    assert_eq!(copy("public", "", "plain"), None);
    assert_eq!(copy("public", "fs", "far"), None);
    assert_eq!(fs::read_to_string(at("who")).expect("it was called"), "nobody\n");
    for name in ["plain", "far"] {
        assert_eq!(fs::metadata(at(name)).expect("it is there").uid(), nobody.uid.as_raw(), "{name}");
    }
    for host in ["", "fs"] {
        let why = copy("secret", host, "stolen").expect("it cannot be read");
        assert!(why.contains("Permission denied"), "{why}");
    }
}
