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

/// A system whose filters run as `nobody`, if the test runs as root.
pub fn system() -> System {
    let mut system = System::stopped();
    std::fs::set_permissions(system.path(""), Permissions::from_mode(0o755)).unwrap();
    system.write("filters.toml", "[cluster]\noperators = [\"nobody\"]\n[filter_runner]\naccount = \"nobody\"\n");
    let config = system.path("filters.toml");
    system.restart(&["--nodes", "1", "--cpus", "4", "--memory", "4G", "--config", config.to_str().unwrap()]);
    system
}

pub fn program(system: &System, name: &str, text: &str) -> String {
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

/// The outcome of a job with this name, and everything shown of it.
fn outcome(system: &System, name: &str) -> (String, String) {
    let submitted = system.run(&["submit", "--parsable", "--name", name, "--", "true"]);
    let job = submitted.stdout.trim().to_owned();
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

/// HPC-C-03, HPC-F-66
#[test]
fn who_submits_is_told_what_the_filter_has_to_say_and_need_not_wait_for_it() {
    let system = system();
    judged_by(&system, &program(&system, "judge", JUDGE));
    let refused = system.run(&["job", "submit", "/jobname:code-7", "true"]);
    let told = "[SubmissionFilterFailed] submission filter 'judge' failed the job (exit code 7)\njudged 7\n";
    assert!(refused.status == 1 && refused.stderr.ends_with(told), "{}", refused.stderr);
    let id = refused.stdout.trim().rsplit(' ').next().unwrap().trim_end_matches('.').to_owned();
    assert!(system.ok(&["job", "view", &id]).contains("judged 7"));
    let slow = system.run(&["job", "submit", "/nowait", "/jobname:slow", "true"]);
    assert_eq!(slow.status, 0, "{}", slow.stderr);
    let id = slow.stdout.trim().rsplit(' ').next().unwrap().trim_end_matches('.').to_owned();
    system.wait_until("its filter was ended", || system.ok(&["job", "view", &id]).contains("SubmissionFilterTimedOut"));
}

/// HPC-C-03: muster's own commands print it as well.
#[test]
fn muster_s_own_commands_tell_what_a_filter_has_to_say() {
    let system = system();
    judged_by(&system, &program(&system, "judge", JUDGE));
    let refused = system.run(&["submit", "--name", "code-7", "--", "true"]);
    assert_eq!(refused.status, 1, "{}", refused.stderr);
    let id = refused.stdout.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(refused.stderr.starts_with(&format!("muster: job {id} was refused: ")), "{}", refused.stderr);
    for told in [refused.stderr, system.ok(&["jobs", "-a"]), system.ok(&["job", "show", &id])] {
        assert!(told.contains("judged 7"), "{told}");
    }
    let events = system.ok(&["events", "--kind", "filter"]);
    assert!(events.contains("submission filter 'judge'") && !events.contains("submission filter 1"), "{events}");
}

/// HPC-C-07
#[test]
fn the_story_of_a_job_names_its_filters_and_shows_what_they_wrote() {
    let system = system();
    judged_by(&system, &program(&system, "judge", "#!/bin/sh\necho 'no seat left' >&2\nexit 9\n"));
    let job = system.submit(&["--no-wait", "--", "true"]);
    system.wait_for_state(&job, "finished");
    for story in [system.ok(&["job", "events", &job]), system.ok(&["job", "view", &job, "/history"])] {
        assert!(story.contains("call of submission filter 'judge' gave exit code 9\n"), "{story}");
        assert!(story.contains("  stderr | no seat left\n"), "{story}");
    }
}

/// HPC-F-63, HPC-C-07: a truncated output says so, to people and to programs.
#[test]
fn an_output_that_was_cut_is_told_to_be_cut() {
    let system = system();
    let text = "#!/bin/sh\nhead -c 70000 /dev/zero | tr '\\0' x >&2\nexit 9\n";
    judged_by(&system, &program(&system, "judge", text));
    let job = system.submit(&["--no-wait", "--", "true"]);
    system.wait_for_state(&job, "finished");
    for story in [system.ok(&["job", "events", &job]), system.ok(&["job", "view", &job, "/history"])] {
        assert!(story.contains("(it wrote more than is kept: 64 KiB of each stream)"), "{story}");
        assert!(story.lines().all(|line| line.len() < 1000), "a line of it fits on a screen");
    }
    let events = system.ok(&["job", "events", &job, "--json"]);
    let verdict = events.lines().find(|line| line.contains("muster.filter.verdict")).unwrap_or_default();
    assert!(verdict.contains("\"is_output_cut\":true") && verdict.contains(&"x".repeat(65_536)), "{events}");
    assert!(!verdict.contains(&"x".repeat(65_537)));
}

/// HPC-F-68: the filter calls a command on the job that it judges.
#[test]
fn a_filter_can_cancel_the_job_that_it_judges() {
    let system = system();
    // The filters' account has no access to the build folder.
    std::fs::copy(env!("CARGO_BIN_EXE_muster"), system.path("job")).unwrap();
    let cancel = format!("{} cancel $MUSTER_JOB_ID /message:by-filter", system.path("job").display());
    judged_by(&system, &program(&system, "judge", &format!("#!/bin/sh\n{cancel} || exit 3\nexit 0\n")));
    // Longer than the command takes to start on a busy machine.
    system.ok(&["cluscfg", "setparams", "SubmissionFilterTimeout=60"]);
    let job = system.submit(&["--no-wait", "--", "true"]);
    system.wait_for_state(&job, "finished");
    let shown = system.ok(&["job", "view", &job]);
    assert!(shown.contains("Canceled") && shown.contains("by-filter"), "{shown}");
}

/// Records its calls, and fails the second task of an array.
const NOTES: &str = r#"#!/bin/sh
echo "$MUSTER_FILTER_KIND $MUSTER_JOB_ID $MUSTER_RESOURCE_COUNT" >>CALLS
case $MUSTER_FILTER_KIND-$MUSTER_JOB_ID in
  submission-*) sed -i 's/Name="sweep"/Name="renamed"/' "$1"; exit 1 ;;
  activation-*_2) exit 4 ;;
esac
exit 0
"#;

/// HPC-F-01, HPC-F-02: the submission filter judges an array as one job, the activation filter each task of it.
#[test]
fn the_tasks_of_an_array_are_judged_one_by_one_and_the_array_once() {
    let system = system();
    system.write("calls", "");
    std::fs::set_permissions(system.path("calls"), Permissions::from_mode(0o666)).unwrap();
    let notes = program(&system, "notes", &NOTES.replace("CALLS", &system.path("calls").display().to_string()));
    let filter = FilterSpec { name: "notes".into(), path: notes, form: FilterForm::Exec, revert_on_unknown: false };
    let settings =
        FilterSettings { submission: Some(filter.clone()), activation: Some(filter), ..FilterSettings::default() };
    let mut client = Client::new(Endpoint::Unix(system.path("data/muster.sock")));
    client.set_filter_settings(CommandId::new_now(), &settings).unwrap();
    let array = system.submit(&["--name", "sweep", "--array", "1-3", "--", "true"]);
    system.wait_for_state(&array, "finished");
    let shown = |id: &str| system.json(&["job", "show", id, "--json"]);
    assert_eq!(shown(&array)["job"]["name"], "renamed");
    let outcomes = ["1", "2", "3"].map(|index| {
        let task = shown(&format!("{array}_{index}"));
        task["job"]["outcome"]["outcome"].as_str().unwrap_or_default().to_owned()
    });
    assert_eq!(outcomes, ["completed", "refused", "completed"]);
    let calls = system.read("calls");
    let mut calls: Vec<&str> = calls.lines().collect();
    calls.sort_unstable();
    let expected = [1, 2, 3].map(|index| format!("activation {array}_{index} 1"));
    assert_eq!(calls[..3], expected);
    assert_eq!(calls[3..], [format!("submission {array} ")]);
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
    assert!(kept.starts_with("verdict: the job stays unchanged, and others get the candidate resources\n"), "{kept}");
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
