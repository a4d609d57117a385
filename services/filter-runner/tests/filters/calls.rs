//! How filters are called: arguments, environment, folder, streams.

use crate::site::{DOCUMENT, Site, account, activation, submission, until, with_form};
use bytes::Bytes;
use muster_filter_runner::{Call, MAX_OUTPUT_BYTES, RunError};
use muster_schemas::{
    JobId,
    filter::{FilterAction, FilterExit, FilterForm, FilterKind},
    filter_order::ComponentPart,
};
use std::{fs, os::unix::fs::MetadataExt as _};

const ARGUMENTS: &str = "for argument; do echo \"[$argument]\"; done";

async fn arguments(site: &Site, call: &Call) -> Vec<String> {
    let answer = site.run(call).await;
    assert_eq!(answer.result, FilterExit::Code(0));
    answer.stdout.text().lines().map(str::to_owned).collect()
}

/// HPC-F-60
#[tokio::test]
async fn a_submission_filter_gets_the_documents_path_alone() {
    let site = Site::new();
    let given = arguments(&site, &submission(site.script(ARGUMENTS))).await;
    assert_eq!(given.len(), 1);
    assert!(given[0].starts_with("[/") && given[0].ends_with("/job.xml]"), "{given:?}");
}

/// HPC-F-60, HPC-F-61
#[tokio::test]
async fn an_activation_filter_gets_pass_index_backfill_and_count_too() {
    let site = Site::new();
    let given = arguments(&site, &activation(site.script(ARGUMENTS))).await;
    assert_eq!(given[1..], ["[7]", "[3]", "[true]", "[16]"]);
}

/// HPC-F-65
#[tokio::test]
async fn a_template_level_filter_gets_kind_and_action_first() {
    let site = Site::new();
    let path = site.script(ARGUMENTS);
    let submitted = arguments(&site, &with_form(submission(&path), FilterForm::Verbs)).await;
    assert_eq!(submitted[..2], ["[submission]", "[filter]"]);
    assert_eq!(submitted.len(), 3);
    let reverted = Call { action: FilterAction::Revert, ..with_form(activation(&path), FilterForm::Verbs) };
    let reverted = arguments(&site, &reverted).await;
    assert_eq!(reverted[..2], ["[activation]", "[revert]"]);
    assert_eq!(reverted[3..], ["[7]", "[3]", "[true]", "[16]"]);
}

/// SL-S-21: a filter that judges one of several components is told which, and nothing else differs.
#[tokio::test]
async fn a_filter_of_one_component_is_told_which_and_of_how_many() {
    let site = Site::new();
    let path =
        site.script("echo $MUSTER_COMPONENT_OFFSET of $MUSTER_COMPONENT_COUNT; env | grep -c COMPONENT; echo $#");
    let part = ComponentPart { offset: 1, count: 3 };
    let told = arguments(&site, &Call { component: Some(part), ..submission(&path) }).await;
    assert_eq!(told, ["1 of 3", "2", "1"]);
    assert_eq!(arguments(&site, &submission(&path)).await[1..], ["0", "1"]);
}

/// SL-B-01: the staging program gets its verb and the script of the component.
#[tokio::test]
async fn the_staging_program_gets_its_verb_and_the_script_of_the_component() {
    let site = Site::new();
    let path = site.script("echo \"$1 $MUSTER_COMPONENT_OFFSET $(basename $2)\"; cat $2; ls $(dirname $2)");
    let staged = |kind| Call {
        kind,
        component: Some(ComponentPart { offset: 2, count: 3 }),
        document: Bytes::from_static(b"#!/bin/sh\n#DW line\nexit 0\n"),
        document_json: Some(Bytes::from_static(b"{}")),
        ..submission(&path)
    };
    let script = ["#!/bin/sh", "#DW line", "exit 0", "job.json", "script"];
    let given = arguments(&site, &staged(FilterKind::StageIn)).await;
    assert_eq!((given[0].as_str(), &given[1..]), ("stage_in 2 script", &script.map(str::to_owned)[..]));
    assert_eq!(arguments(&site, &staged(FilterKind::StageOut)).await[0], "stage_out 2 script");
    until("the end of the folders", || site.leftovers().is_empty().then_some(())).await;
}

/// HPC-F-56
#[tokio::test]
async fn a_filter_called_in_the_microsoft_way_is_not_called_for_revert() {
    let site = Site::new();
    let path = site.script(&format!("touch {}", site.state("called").display()));
    let call = Call { action: FilterAction::Revert, ..submission(path) };
    assert!(matches!(site.runner.run(&call).await, Err(RunError::BadCall { .. })));
    assert!(!site.state("called").exists());
}

async fn environment(site: &Site, call: &Call) -> Vec<String> {
    let answer = site.run(call).await;
    let mut variables: Vec<String> = answer.stdout.text().lines().map(str::to_owned).collect();
    variables.sort();
    variables
}

/// The initial environment of a shell; variables that it sets itself do not show there.
const ENVIRONMENT: &str = "tr '\\0' '\\n' < /proc/$$/environ";

/// HPC-F-62
#[tokio::test]
async fn the_environment_is_the_table_and_nothing_else() {
    let site = Site::new();
    let path = site.script(ENVIRONMENT);
    let mut submitted = environment(&site, &Call { attempt: 2, ..submission(&path) }).await;
    let result_file = submitted.iter().position(|variable| variable.starts_with("MUSTER_RESULT_FILE=/")).unwrap();
    submitted.remove(result_file);
    let common = [
        "CCP_SCHEDULER=head:6820",
        "LANG=C.UTF-8",
        "MUSTER_ATTEMPT=2",
        "MUSTER_FILTER_ACTION=filter",
        "MUSTER_FILTER_KIND=submission",
        "MUSTER_FILTER_NAME=check",
        "MUSTER_FILTER_TIMEOUT=15",
        "MUSTER_INVOCATION_ID=0192-call",
        "MUSTER_JOB_ID=42",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "TZ=UTC",
    ];
    assert_eq!(submitted, common);
    let activated = environment(&site, &activation(&path)).await;
    let added = [
        "MUSTER_BACKFILL=true",
        "MUSTER_BACKFILL_ENABLED=false",
        "MUSTER_CURRENT_RESOURCES=4",
        "MUSTER_FILTER_KIND=activation",
        "MUSTER_JOB_INDEX=3",
        "MUSTER_PLANNER_EPOCH=2",
        "MUSTER_RESOURCE_COUNT=16",
        "MUSTER_SCHEDULER_PASS=7",
    ];
    assert!(added.iter().all(|variable| activated.contains(&(*variable).to_owned())), "{activated:?}");
    assert_eq!(activated.len(), common.len() + added.len());
}

/// HPC-F-62
#[tokio::test]
async fn path_language_and_time_zone_come_from_the_configuration() {
    let site = Site::with(|config| {
        config.path = "/usr/bin".into();
        config.lang = "C".into();
        config.time_zone = "Europe/Paris".into();
    });
    let variables = environment(&site, &submission(site.script(ENVIRONMENT))).await;
    assert!(
        ["PATH=/usr/bin", "LANG=C", "TZ=Europe/Paris"].iter().all(|want| variables.iter().any(|have| have == want))
    );
}

/// HPC-F-63
#[tokio::test]
async fn the_working_folder_is_private_fresh_and_goes_afterwards() {
    let site = Site::new();
    let path = site.script("pwd; stat -c '%a %u' .; ls; mkdir -p deep/er; chmod 0 deep; exit 0");
    let mut folders = Vec::new();
    for _ in 0..2 {
        let answer = site.judge(&path).await.stdout.text();
        let lines: Vec<&str> = answer.lines().collect();
        assert_eq!(lines[1..], [format!("700 {}", account()).as_str(), "job.xml"]);
        folders.push(lines[0].to_owned());
    }
    assert_ne!(folders[0], folders[1]);
    until("the end of the folders", || site.leftovers().is_empty().then_some(())).await;
}

/// HPC-F-63
#[tokio::test]
async fn standard_input_is_empty() {
    let site = Site::new();
    assert_eq!(site.run_script("cat; exit 3").await.result, FilterExit::Code(3));
}

/// HPC-F-63
#[tokio::test]
async fn of_each_output_64_kib_are_kept_and_the_rest_is_told_to_be_missing() {
    let site = Site::new();
    let answer = site.run_script("echo begin; head -c 1000000 /dev/zero | tr '\\0' x; echo small >&2").await;
    assert_eq!(answer.result, FilterExit::Code(0));
    assert_eq!((answer.stdout.bytes.len(), answer.stdout.truncated), (MAX_OUTPUT_BYTES, true));
    assert!(answer.stdout.bytes.starts_with(b"begin\nxxx"));
    assert_eq!((answer.stderr.text().as_str(), answer.stderr.truncated), ("small\n", false));
    let exactly = site.run_script("head -c 65536 /dev/zero").await.stdout;
    assert_eq!((exactly.bytes.len(), exactly.truncated), (MAX_OUTPUT_BYTES, false));
}

/// HPC-F-63, HPC-F-74
#[tokio::test]
async fn text_of_jobs_never_reaches_a_shell() {
    let site = Site::new();
    let touched = site.state("touched");
    let text = format!("a b\"'\n; touch {0} $(touch {0}) `touch {0}` \\ *", touched.display());
    let mut call = submission(site.script("cat \"$1\"; printf %s \"$MUSTER_FILTER_NAME\""));
    call.filter.name = text.clone();
    call.document = Bytes::from(text.clone());
    let answer = site.run(&call).await;
    assert_eq!(answer.stdout.text(), format!("{text}{text}"));
    assert!(!touched.exists());
}

/// HPC-F-74
#[tokio::test]
async fn the_files_of_a_call_are_open_to_the_filter_account_alone() {
    let site = Site::new();
    let (ready, go) = (site.state("ready"), site.state("go"));
    let path = site.script(&format!(
        "pwd > {0}.new; mv {0}.new {0}; until [ -e {1} ]; do sleep 0.01; done",
        ready.display(),
        go.display()
    ));
    let call = submission(path);
    let look = async {
        let folder = until("the call's folder", || fs::read_to_string(&ready).ok()).await;
        let folder = fs::metadata(folder.trim_end()).map(|folder| (folder.mode() & 0o777, folder.uid()));
        fs::write(&go, "").unwrap();
        folder.unwrap()
    };
    let (answer, folder) = tokio::join!(site.run(&call), look);
    assert_eq!(answer.result, FilterExit::Code(0));
    assert_eq!(folder, (0o700, account()));
}

/// HPC-F-06
#[tokio::test]
async fn a_filter_leads_a_session_and_a_group_of_its_own_and_has_no_signal_blocked_or_ignored() {
    let site = Site::new();
    let answer =
        site.run_script("cut -d ' ' -f 1,5,6 /proc/$$/stat; exec grep -E 'Sig(Blk|Ign)' /proc/self/status").await;
    let text = answer.stdout.text();
    let lines: Vec<&str> = text.lines().collect();
    let numbers: Vec<&str> = lines[0].split(' ').collect();
    assert!(numbers.len() == 3 && numbers.iter().all(|number| *number == numbers[0]), "{text}");
    for line in &lines[1..] {
        let mask = u64::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap();
        // Those above belong to the C library.
        assert_eq!(mask & 0x7fff_ffff, 0, "{text}");
    }
}

/// HPC-F-80
#[tokio::test]
async fn as_many_calls_are_made_at_once_as_there_are_slots() {
    let site = Site::with(|config| config.slots = 3);
    // Each waits for the others, so none ends unless all run at the same time.
    let state = site.state("");
    let path = site.script(&format!(
        "cd {}; touch begun-$MUSTER_JOB_ID; until [ $(ls begun-* | wc -l) -ge 3 ]; do sleep 0.01; done",
        state.display()
    ));
    let call = |job_id| Call { job: JobId::job(job_id), ..submission(&path) };
    let calls = [call(1), call(2), call(3)];
    let (a, b, c) = tokio::join!(site.run(&calls[0]), site.run(&calls[1]), site.run(&calls[2]));
    assert!([a, b, c].iter().all(|answer| answer.result == FilterExit::Code(0)));
}

/// HPC-F-69
#[tokio::test]
async fn a_trial_is_a_call_like_any_other_and_is_told_in_words() {
    let site = Site::new();
    let path = site.script(
        "id -u; sed -i 's/MinCores=\"2\"/MinCores=\"4\"/' $1; echo message=hello > $MUSTER_RESULT_FILE; exit 1",
    );
    let filter = submission(&path).filter;
    let trial = Call::trial(filter, 15, Bytes::from_static(DOCUMENT.as_bytes()), None);
    let report = site.run(&trial).await.report(DOCUMENT.as_bytes());
    let told = [
        "result: exit code 1".to_owned(),
        "  - <Job Name=\"a\" MinCores=\"2\"/>\n  + <Job Name=\"a\" MinCores=\"4\"/>".to_owned(),
        "result file:\n  message=hello".to_owned(),
        format!("standard output:\n  {}", account()),
    ];
    assert!(told.iter().all(|part| report.contains(part)), "{report}");
}
