//! A site with filters: a folder of programs, a folder that filters may write to, and a runner.

use bytes::Bytes;
pub use muster_bus::testing::until;
use muster_filter_runner::{Answer, Call, Runner, RunnerConfig};
use muster_schemas::{
    JobId,
    filter::{ActivationParameters, FilterAction, FilterForm, FilterKind, FilterSpec},
};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The jobs of these tests.
pub const DOCUMENT: &str = "<Job Name=\"a\" MinCores=\"2\"/>\n";
/// For an activation.
pub const PARAMETERS: ActivationParameters = ActivationParameters {
    pass: 7,
    index: 3,
    backfill: true,
    count: 16,
    backfill_enabled: false,
    planner_epoch: 2,
    current: 4,
};

pub struct Site {
    pub runner: Runner,
    folder: TempDir,
}

impl Site {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut RunnerConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        fs::set_permissions(folder.path().join("state"), Permissions::from_mode(0o777)).unwrap();
        let mut config = config(folder.path());
        change(&mut config);
        Self { runner: Runner::new(config).unwrap(), folder }
    }

    /// The folder of programs; only the user of the test can write to it.
    pub fn programs(&self) -> &Path {
        self.folder.path()
    }

    /// A file that filters may write.
    pub fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join("state").join(name)
    }

    /// A program with these lines.
    pub fn script(&self, text: &str) -> PathBuf {
        self.program("filter", &format!("#!/bin/sh\n{text}\n"), 0o755)
    }

    /// Any file as a program. An existing one is replaced: it may be running.
    pub fn program(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let (path, new) = (self.programs().join(name), self.programs().join("new"));
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, Permissions::from_mode(mode)).unwrap();
        fs::rename(new, &path).unwrap();
        path
    }

    /// The answer to the submission of [`DOCUMENT`].
    pub async fn judge(&self, path: impl AsRef<Path>) -> Answer {
        self.run(&submission(path)).await
    }

    pub async fn run(&self, call: &Call) -> Answer {
        self.runner.run(call).await.unwrap()
    }

    /// The answer of a script to the submission of [`DOCUMENT`].
    pub async fn run_script(&self, text: &str) -> Answer {
        self.judge(self.script(text)).await
    }

    /// Files and folders that calls left.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let runners = fs::read_dir(self.folder.path().join("scratch")).unwrap();
        runners
            .flat_map(|runner| fs::read_dir(runner.unwrap().path()).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

pub fn config(folder: &Path) -> RunnerConfig {
    RunnerConfig {
        account: "nobody".into(),
        scratch: folder.join("scratch"),
        scheduler: "head:6820".into(),
        slots: 4,
        supervisor: supervisor(),
        ..RunnerConfig::default()
    }
}

fn supervisor() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/muster-filter-supervisor");
    assert!(program.exists(), "{} is missing: build the examples of muster-filter-runner", program.display());
    program
}

/// The user id of filters.
pub fn account() -> u32 {
    let own = nix::unistd::Uid::effective();
    if own.is_root() { nix::unistd::User::from_name("nobody").unwrap().unwrap().uid.as_raw() } else { own.as_raw() }
}

/// A submission of [`DOCUMENT`], to be judged in the Microsoft way.
pub fn submission(path: impl AsRef<Path>) -> Call {
    Call {
        invocation_id: "0192-call".into(),
        attempt: 1,
        kind: FilterKind::Submission,
        action: FilterAction::Filter,
        filter: FilterSpec {
            name: "check".into(),
            path: path.as_ref().to_str().unwrap().into(),
            form: FilterForm::Exec,
            revert_on_unknown: false,
        },
        time_limit_seconds: 15,
        job: JobId::job(42),
        document: Bytes::from_static(DOCUMENT.as_bytes()),
        document_json: None,
        parameters: None,
        component: None,
    }
}

/// The same as an activation.
pub fn activation(path: impl AsRef<Path>) -> Call {
    Call { kind: FilterKind::Activation, parameters: Some(PARAMETERS), ..submission(path) }
}

pub fn with_form(mut call: Call, form: FilterForm) -> Call {
    call.filter.form = form;
    call
}

/// Waits for a number that a filter writes to a file, with its line end.
pub async fn number_in(path: &Path) -> i32 {
    until(&format!("a number in {}", path.display()), || {
        fs::read_to_string(path).ok()?.strip_suffix('\n')?.parse().ok()
    })
    .await
}

/// Whether a process runs.
pub fn runs(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}
