//! Filters of a running system, and `muster filter`.

use crate::system::System;
use muster_client::{Client, Endpoint, Moment};
use muster_schemas::{
    CommandId,
    filter::{FilterForm, FilterSettings, FilterSpec},
};
use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

/// A job description that a filter may dislike.
const JOB: &str = "<Job Name=\"solve\" RunTime=\"Infinite\"><Tasks><Task CommandLine=\"true\"/></Tasks></Job>\n";

/// Judges a job by its name: `code-N`, `slow`, `rename`.
const JUDGE: &str = r#"#!/bin/sh
name=$(grep -o '<Job [^>]*' "$1" | grep -o ' Name="[^"]*"' | cut -d '"' -f 2)
case $name in
  code-*) echo "message=judged ${name#code-}" >"$MUSTER_RESULT_FILE"; exit ${name#code-} ;;
  signal) kill -9 $$ ;;
  slow) exec sleep 60 ;;
  rename) sed -i 's/Name="rename"/Name="renamed"/' "$1"; exit 1 ;;
  broken) echo '<Job' >"$1"; exit 1 ;;
esac
exit 0
"#;

/// A system whose filters run as `nobody`, if it is root's.
fn system() -> System {
    let mut system = System::stopped();
    std::fs::set_permissions(system.path(""), Permissions::from_mode(0o755)).unwrap();
    system.write("filters.toml", "[filter_runner]\naccount = \"nobody\"\n");
    let config = system.path("filters.toml");
    system.restart(&["--nodes", "1", "--cpus", "4", "--memory", "4G", "--config", config.to_str().unwrap()]);
    system
}

fn program(system: &System, name: &str, text: &str) -> String {
    system.write(name, text);
    std::fs::set_permissions(system.path(name), Permissions::from_mode(0o755)).unwrap();
    system.path(name).display().to_string()
}

fn judged_by(system: &System, path: &str) {
    let filter =
        FilterSpec { name: "judge".into(), path: path.into(), form: FilterForm::Exec, revert_on_unknown: false };
    let settings =
        FilterSettings { submission: Some(filter), submission_timeout_seconds: 1, ..FilterSettings::default() };
    let mut client = Client::new(Endpoint::Unix(system.path("data/muster.sock")));
    client.set_filter_settings(CommandId::new_now(), &settings).unwrap();
    assert_eq!(client.filter_settings(Moment::Now).unwrap(), settings);
}

/// What became of a job of this name, and all that is shown of it.
fn outcome(system: &System, name: &str) -> (String, String) {
    let job = system.submit(&["--name", name, "--", "true"]);
    system.wait_for_state(&job, "finished");
    let shown = system.json(&["job", "show", &job, "--json"]);
    let outcome = shown["job"]["outcome"]["outcome"].as_str().unwrap_or_default().to_owned();
    (outcome, shown.to_string())
}

/// HPC-F-01, HPC-F-05, HPC-F-07, HPC-F-08, HPC-F-10, HPC-F-17, HPC-E-10
#[test]
fn a_submission_filter_decides_which_jobs_enter_the_queue() {
    let system = system();
    judged_by(&system, &program(&system, "judge", JUDGE));
    assert_eq!(outcome(&system, "code-0").0, "completed");
    let (renamed, shown) = outcome(&system, "rename");
    assert!(renamed == "completed" && shown.contains("\"renamed\""), "{shown}");
    for (name, told) in [
        ("code-2", "[SubmissionFilterFailed] submission filter 'judge' failed the job (exit code 2)"),
        ("signal", "[SubmissionFilterFailed] submission filter 'judge' failed the job (exit code 137)"),
        ("slow", "[SubmissionFilterTimedOut] submission filter 'judge' timed out after 1 s"),
        ("broken", "[SubmissionFilterBadOutput] submission filter 'judge' gave an invalid job description: "),
    ] {
        let (outcome, shown) = outcome(&system, name);
        assert!(outcome == "refused" && shown.contains(told), "{name}: {shown}");
    }
    let missing = system.path("nowhere").display().to_string();
    judged_by(&system, &missing);
    let told = format!("[SubmissionFilterNotFound] submission filter 'judge' was not found: {missing}");
    let (outcome, shown) = outcome(&system, "any");
    assert!(outcome == "refused" && shown.contains(&told), "{shown}");
}

/// HPC-F-69
#[test]
fn a_filter_is_tried_out_on_a_job_that_does_not_exist() {
    let system = system();
    let path = program(&system, "judge", JUDGE);
    judged_by(&system, &path);
    system.write("job.xml", JOB);
    system.write("rename.xml", &JOB.replace("solve", "rename"));
    system.write("bad.xml", &JOB.replace("solve", "code-7"));
    let test = |words: &[&str]| {
        let all: Vec<&str> = ["filter", "test", "--config", "filters.toml"].iter().chain(words).copied().collect();
        system.run(&all)
    };
    let passed = test(&[&path, "job.xml"]);
    assert_eq!(passed.status, 0, "{}{}", passed.stdout, passed.stderr);
    assert!(passed.stdout.starts_with("verdict: the job passes, unchanged\n"), "{}", passed.stdout);
    let renamed = test(&["judge", "rename.xml"]).stdout;
    assert!(
        renamed.starts_with("verdict: the job passes, with changes\nchange: Name: rename -> renamed\n"),
        "{renamed}"
    );
    let refused = test(&["judge", "bad.xml"]);
    assert_eq!(refused.status, 1);
    let told = "verdict: [SubmissionFilterFailed] submission filter 'judge' failed the job (exit code 7)\n";
    assert!(refused.stdout.starts_with(told) && refused.stdout.contains("message: judged 7\n"), "{}", refused.stdout);
    let activation =
        "#!/bin/sh\ngrep -q 'State=\"Queued\"' $1 && [ \"$2 $3 $4 $5\" = '7 3 true 16' ] && exit 2\nexit 9\n";
    let activation = program(&system, "activation", activation);
    let kept = test(&[&activation, "job.xml", "/pass:7", "/index:3", "/backfill:true", "/count:16"]).stdout;
    assert!(kept.starts_with("verdict: the job stays as it is, and the candidate resources go to others\n"), "{kept}");
    assert_eq!(test(&["no-such-filter", "job.xml"]).status, 4);
    assert_eq!(test(&[&path, "job.xml", "/what:7"]).status, 2);
    assert_eq!(system.json(&["jobs", "--all", "--json"])["jobs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn the_filters_that_are_defined_are_listed() {
    let system = system();
    judged_by(&system, "/usr/local/libexec/judge");
    let listed = system.ok(&["filter", "list"]);
    let line: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(line, ["judge", "submission", "-", "exec", "1", "s", "/usr/local/libexec/judge"]);
    assert_eq!(system.json(&["filter", "list", "--json"])[0]["name"], "judge");
}
