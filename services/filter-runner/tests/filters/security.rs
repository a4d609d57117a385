//! The user that filters run as, and the programs that may run at all.

use crate::site::{Site, account, config, submission};
use muster_filter_runner::{Runner, SetupError};
use muster_schemas::filter::FilterExit;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::Path,
};

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// HPC-F-70
#[tokio::test]
async fn filters_run_under_the_account_with_its_groups_alone() {
    let site = Site::new();
    let answer = site.run_script("id -u; id -ru; id -G; grep -c '^CapEff:.0*$' /proc/self/status").await.stdout.text();
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines[..2], [account().to_string(), account().to_string()]);
    assert!(site.runner.account().contains(&account().to_string()));
    if is_root() {
        assert!(!lines[2].split(' ').any(|group| group == "0"), "{answer}");
        assert_eq!(lines[3], "1", "it has capabilities");
    } else {
        assert!(site.runner.account().contains("only root can switch"));
    }
}

/// F0: the process that started the runner may have left files open that no `exec` closes.
#[tokio::test]
async fn filters_have_no_files_of_the_runner_open() {
    let leaked = fs::File::open("/dev/null").unwrap();
    nix::fcntl::fcntl(&leaked, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let files = Site::new().run_script("ls /proc/self/fd").await.stdout.text();
    // The fourth is the folder that `ls` reads.
    assert_eq!(files, "0\n1\n2\n3\n");
}

/// HPC-F-70
#[test]
fn a_runner_with_an_account_of_no_use_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    if !is_root() {
        return muster_surroundings::skipped("only root can switch to another account");
    }
    for account in ["root", "no-such-account", ""] {
        let mut config = config(folder.path());
        config.account = account.into();
        assert!(matches!(Runner::new(config), Err(SetupError::Account { .. })), "{account}");
    }
}

/// HPC-F-74
#[test]
fn a_scratch_folder_that_others_can_change_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    fs::create_dir(&config.scratch).unwrap();
    for (mode, is_taken) in [(0o777, false), (0o775, false), (0o1777, true), (0o755, true)] {
        set_mode(&config.scratch, mode);
        assert_eq!(Runner::new(config.clone()).is_ok(), is_taken, "{mode:o}");
    }
    if is_root() {
        chown(&config.scratch, Some(account()), None).unwrap();
        assert!(matches!(Runner::new(config), Err(SetupError::Scratch { .. })));
    }
}

/// HPC-F-72
#[tokio::test]
async fn a_relative_path_is_not_run() {
    let site = Site::new();
    assert_refused(&site, Path::new("bin/true"), "absolute").await;
}

async fn assert_refused(site: &Site, path: &Path, why: &str) {
    let result = site.run(&submission(path)).await.result;
    let FilterExit::NotRunnable(told) = result else { panic!("{}: {result:?}", path.display()) };
    assert!(told.contains(why), "{told}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// HPC-F-73
#[tokio::test]
async fn a_program_that_others_can_write_is_not_run() {
    let site = Site::new();
    let path = site.script("exit 0");
    for mode in [0o775, 0o757] {
        set_mode(&path, mode);
        assert_refused(&site, &path, &format!("{mode:04o}")).await;
    }
    set_mode(&path, 0o755);
    assert_eq!(site.judge(&path).await.result, FilterExit::Code(0));
}

/// HPC-F-73
#[tokio::test]
async fn a_program_in_a_folder_that_others_can_write_is_not_run() {
    let site = Site::new();
    let outer = site.programs().join("outer");
    fs::create_dir_all(outer.join("inner")).unwrap();
    let path = outer.join("inner/filter");
    fs::rename(site.script("exit 0"), &path).unwrap();
    assert_eq!(site.judge(&path).await.result, FilterExit::Code(0));
    set_mode(&outer, 0o777);
    assert_refused(&site, &path, &format!("{} can be written", outer.display())).await;
    // Through a link too, wherever it is.
    let link = site.programs().join("link");
    symlink("outer/inner", &link).unwrap();
    assert_refused(&site, &link.join("filter"), "can be written").await;
    set_mode(&outer, 0o755);
    assert_eq!(site.judge(link.join("filter")).await.result, FilterExit::Code(0));
    // Others cannot replace files in a sticky folder.
    set_mode(&outer, 0o1777);
    assert_eq!(site.judge(&path).await.result, FilterExit::Code(0));
}

/// HPC-F-73
#[tokio::test]
async fn an_interpreter_that_others_can_write_is_not_run_either() {
    let site = Site::new();
    let interpreter = site.program("interpreter", "#!/bin/sh\n", 0o757);
    let path = site.program("filter", &format!("#!{}\n", interpreter.display()), 0o755);
    assert_refused(&site, &path, "can be written").await;
}

/// HPC-F-73
#[tokio::test]
async fn a_program_of_somebody_else_is_not_run_unless_he_is_an_administrator() {
    if !is_root() {
        return muster_surroundings::skipped("only root can switch to another account");
    }
    let site = Site::new();
    let administrators = Site::with(|config| config.administrators = vec!["daemon".into()]);
    let daemon = nix::unistd::User::from_name("daemon").unwrap().unwrap().uid.as_raw();
    for (uid, is_run) in [(account(), false), (daemon, true)] {
        let path = site.script("exit 0");
        chown(&path, Some(uid), None).unwrap();
        assert_refused(&site, &path, &format!("belongs to user number {uid}")).await;
        let trusted = administrators.judge(&path).await.result;
        assert_eq!(trusted == FilterExit::Code(0), is_run, "{trusted:?}");
    }
}

/// HPC-F-04
#[tokio::test]
async fn the_hash_of_the_program_follows_its_file() {
    let site = Site::new();
    let first = site.run_script("exit 0").await.program_hash;
    let text = fs::read(site.programs().join("filter")).unwrap();
    assert_eq!(first, Some(blake3::hash(&text).to_hex().to_string()));
    assert_eq!(site.judge(site.programs().join("filter")).await.program_hash, first);
    assert_ne!(site.run_script("exit 1").await.program_hash, first);
    // A program changed in place, with the same size, is another program too.
    fs::write(site.programs().join("filter"), "#!/bin/sh\nexit 2\n").unwrap();
    let third = site.judge(site.programs().join("filter")).await;
    assert_eq!(third.result, FilterExit::Code(2));
    assert_eq!(third.program_hash, Some(blake3::hash(b"#!/bin/sh\nexit 2\n").to_hex().to_string()));
}
