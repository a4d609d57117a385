//! Persistent filters.

use crate::site::{PARAMETERS, Site, activation, runs, submission, until, with_form};
use bytes::Bytes;
use muster_filter_runner::{Answer, Call, FileAfter};
use muster_schemas::{
    JobId,
    filter::{FilterAction, FilterExit, FilterForm},
};
use std::{fs, path::PathBuf};

/// Writes its input to `log` and does what the job's description says.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, signal, sys, time
log = open("LOG", "a")
for line in sys.stdin:
    call = json.loads(line)
    log.write("%d %s\n" % (os.getpid(), line.strip()))
    log.flush()
    answer = {"id": call["id"], "code": 0}
    if call["type"] == "unload":
        sys.exit(0)
    if call["type"] == "call":
        order = open(call["job_xml"]).read()
        if order.startswith("answer "):
            answer.update(json.loads(order[7:]))
        elif order.startswith("write "):
            open(call["job_xml"], "w").write(order[6:])
            answer["code"] = 1
        elif order.startswith("print "):
            print(order[6:], flush=True)
            continue
        elif order.startswith("exit "):
            print("last words", file=sys.stderr)
            sys.exit(int(order[5:]))
        elif order == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif order == "hang":
            time.sleep(600)
        elif order == "close":
            os.close(1)
            time.sleep(600)
        elif order == "say":
            print("said", file=sys.stderr, flush=True)
    print(json.dumps(answer), flush=True)
"#;

struct Filter {
    site: Site,
    path: PathBuf,
}

impl Filter {
    fn new() -> Self {
        let site = Site::new();
        let mut filter = Self { site, path: PathBuf::new() };
        filter.install(PROGRAM);
        filter
    }

    fn install(&mut self, text: &str) {
        self.path = self.site.program("persistent", &text.replace("LOG", self.log().to_str().unwrap()), 0o755);
    }

    fn log(&self) -> PathBuf {
        self.site.state("log")
    }

    /// The input of the program: which process got it, and its lines.
    fn told(&self) -> Vec<(i32, serde_json::Value)> {
        let log = fs::read_to_string(self.log()).unwrap();
        let entry = |line: &str| {
            let (process, line) = line.split_once(' ').unwrap();
            (process.parse().unwrap(), serde_json::from_str(line).unwrap())
        };
        log.lines().map(entry).collect()
    }

    /// The types of its input lines.
    fn types(&self) -> Vec<String> {
        self.told().iter().map(|(_, line)| line["type"].as_str().unwrap().to_owned()).collect()
    }

    fn call(&self, order: &str) -> Call {
        let call = with_form(submission(&self.path), FilterForm::Persistent);
        Call { document: Bytes::copy_from_slice(order.as_bytes()), ..call }
    }

    async fn ask(&self, order: &str) -> Answer {
        self.site.run(&self.call(order)).await
    }
}

/// HPC-F-67
#[tokio::test]
async fn one_process_is_loaded_first_and_then_answers_call_after_call() {
    let filter = Filter::new();
    for _ in 0..3 {
        let answer = filter.ask("pass").await;
        assert_eq!((answer.result, answer.document), (FilterExit::Code(0), FileAfter::Unchanged));
    }
    assert_eq!(filter.types(), ["load", "call", "call", "call"]);
    let told = filter.told();
    assert!(told.iter().all(|(process, _)| *process == told[0].0));
}

/// HPC-F-67, HPC-F-61, HPC-F-62
#[tokio::test]
async fn a_call_has_the_fields_that_other_filters_get_as_arguments_and_environment() {
    let filter = Filter::new();
    let call = with_form(activation(&filter.path), FilterForm::Persistent);
    let call =
        Call { action: FilterAction::Revert, attempt: 3, document_json: Some(Bytes::from_static(b"{}")), ..call };
    assert_eq!(filter.site.run(&call).await.result, FilterExit::Code(0));
    let mut line = filter.told()[1].1.clone();
    let fields = line.as_object_mut().unwrap();
    let paths = ["job_xml", "job_json"].map(|key| fields.remove(key).unwrap().as_str().unwrap().to_owned());
    assert!(paths[0].ends_with("/job.xml") && paths[1].ends_with("/job.json"));
    let expected = serde_json::json!({
        "type": "call", "id": "0192-call", "attempt": 3, "kind": "activation", "action": "revert",
        "filter_name": "check", "job_id": 42, "time_limit_seconds": 15, "pass": PARAMETERS.pass,
        "index": PARAMETERS.index, "backfill": true, "count": 16, "backfill_enabled": false, "planner_epoch": 2,
        "current_resources": 4,
    });
    assert_eq!(line, expected);
}

/// HPC-F-67, HPC-F-66
#[tokio::test]
async fn an_answer_may_have_a_message_and_a_hold_and_may_have_changed_the_document() {
    let filter = Filter::new();
    let answer = filter.ask(r#"answer {"code": 3, "hold_until": "+60", "message": "later"}"#).await;
    assert_eq!(answer.result, FilterExit::Code(3));
    assert_eq!(answer.result_lines.text(), "hold-until=+60\nmessage=later\n");
    let answer = filter.ask("write <Job/>").await;
    assert_eq!(answer.result, FilterExit::Code(1));
    assert_eq!(answer.document, FileAfter::Changed(Bytes::from_static(b"<Job/>")));
    assert_eq!(filter.ask("say").await.stderr.text(), "said\n");
}

/// HPC-F-67
#[tokio::test]
async fn a_crash_counts_as_an_undefined_exit_code_and_the_program_is_restarted() {
    let filter = Filter::new();
    // Codes 0 and 1 of a program that ends are no verdicts.
    for (order, code) in [("exit 0", 255), ("crash", 139), ("exit 1", 255), ("close", 255)] {
        let answer = filter.ask(order).await;
        assert_eq!(answer.result.code(), Some(code), "{order}: {:?}", answer.result);
        assert_eq!(filter.ask("pass").await.result, FilterExit::Code(0), "after {order}");
    }
    assert_eq!(filter.ask("exit 2").await.stderr.text(), "last words\n");
    let processes: std::collections::BTreeSet<i32> = filter.told().into_iter().map(|(process, _)| process).collect();
    assert_eq!(processes.len(), 5);
    assert!(processes.into_iter().all(|process| !runs(process)));
}

/// HPC-F-86, HPC-F-67: further output for an answered call is no answer to the next one.
#[tokio::test]
async fn a_second_answer_is_not_taken_for_the_answer_to_the_next_call() {
    let mut filter = Filter::new();
    filter.install(&PROGRAM.replace(
        "    print(json.dumps(answer), flush=True)\n",
        "    print(json.dumps(answer), flush=True)\n    print(json.dumps({\"id\": call[\"id\"], \"code\": 7}), flush=True)\n",
    ));
    let mut surplus = Vec::new();
    for number in 0..5 {
        let call = Call { invocation_id: format!("call-{number}"), ..filter.call("pass") };
        let answer = filter.site.run(&call).await;
        assert_eq!(answer.result, FilterExit::Code(0), "{number}");
        surplus.extend(answer.surplus);
    }
    assert!(surplus.iter().all(|answer| answer.code == 7), "{surplus:?}");
    let calls: Vec<&str> = surplus.iter().map(|answer| &*answer.id).filter(|id| *id != "load").collect();
    assert_eq!(calls, ["call-0", "call-1", "call-2", "call-3"], "each is told");
    assert_eq!(filter.types().iter().filter(|kind| *kind == "load").count(), 1, "the program is not restarted");
}

/// HPC-F-67
#[tokio::test]
async fn a_bad_line_counts_as_an_undefined_exit_code_and_the_program_is_restarted() {
    let filter = Filter::new();
    let long = "x".repeat(100_000);
    for line in ["ready", "{}", r#"{"id": "other", "code": 0}"#, r#"{"id": "0192-call", "code": 256}"#, &long] {
        let answer = filter.ask(&format!("print {line}")).await;
        assert!(matches!(answer.result, FilterExit::BadAnswer(_)), "{line}: {:?}", answer.result);
        assert_eq!(answer.result.code(), Some(255));
        assert_eq!(filter.ask("pass").await.result, FilterExit::Code(0), "after {line}");
    }
    assert_eq!(filter.types().iter().filter(|kind| *kind == "load").count(), 6);
}

/// HPC-F-67, HPC-F-05, HPC-F-06
#[tokio::test]
async fn a_call_over_its_limit_has_timed_out_and_the_program_is_restarted() {
    let filter = Filter::new();
    let answer = filter.site.run(&Call { time_limit_seconds: 1, ..filter.call("hang") }).await;
    assert_eq!(answer.result, FilterExit::TimedOut);
    assert!(!runs(filter.told()[0].0));
    assert_eq!(filter.ask("pass").await.result, FilterExit::Code(0));
    assert_eq!(filter.types(), ["load", "call", "load", "call"]);
}

/// HPC-F-67
#[tokio::test]
async fn a_program_that_was_changed_is_told_to_unload_and_started_anew() {
    let mut filter = Filter::new();
    filter.ask("pass").await;
    filter.install(&PROGRAM.replace(r#""code": 0}"#, r#""code": 0, "message": "new"}"#));
    assert_eq!(filter.ask("pass").await.result_lines.text(), "message=new\n");
    assert_eq!(filter.types(), ["load", "call", "unload", "load", "call"]);
    // Another path under the same name is another definition.
    let other = filter.site.programs().join("other");
    fs::copy(&filter.path, &other).unwrap();
    filter.path = other;
    filter.ask("pass").await;
    assert_eq!(filter.types()[5..], ["unload", "load", "call"]);
}

/// HPC-F-67
#[tokio::test]
async fn a_filter_that_is_removed_is_told_to_unload_and_ends() {
    let filter = Filter::new();
    filter.ask("pass").await;
    filter.site.runner.retire("check");
    until("unload", || filter.types().contains(&"unload".into()).then_some(())).await;
    let process = filter.told()[0].0;
    until("the program's end", || (!runs(process)).then_some(())).await;
    until("the end of its folder", || filter.site.leftovers().is_empty().then_some(())).await;
}

/// HPC-F-67
#[tokio::test]
async fn several_calls_may_be_queued_but_one_is_outstanding() {
    let filter = Filter::new();
    let calls: Vec<Call> = (0..20)
        .map(|job_id| Call { job: JobId::job(job_id), invocation_id: format!("call-{job_id}"), ..filter.call("pass") })
        .collect();
    let (first, second) = calls.split_at(10);
    let run_all = async |calls: &[Call]| {
        for call in calls {
            assert_eq!(filter.site.run(call).await.result, FilterExit::Code(0));
        }
    };
    tokio::join!(run_all(first), run_all(second));
    let told = filter.told();
    assert_eq!(told.len(), 21);
    assert!(told.iter().all(|(process, _)| *process == told[0].0));
}

/// HPC-F-67
#[tokio::test]
async fn a_program_that_cannot_load_gives_no_verdict_and_its_words_are_kept() {
    let mut filter = Filter::new();
    filter.install("#!/bin/sh\nread line\necho broken >&2\necho '{\"id\": \"load\", \"code\": 4}'\n");
    let answer = filter.ask("pass").await;
    assert_eq!(answer.result, FilterExit::BadAnswer("it refused to load with code 4".into()));
    assert_eq!(answer.stderr.text(), "broken\n");
    let none = filter.site.programs().join("none");
    let missing = with_form(submission(&none), FilterForm::Persistent);
    assert_eq!(filter.site.run(&missing).await.result, FilterExit::NotFound(none.display().to_string()));
}

/// HPC-F-67, HPC-F-70, HPC-F-62
#[tokio::test]
async fn a_persistent_program_runs_under_the_account_with_the_common_environment_alone() {
    let mut filter = Filter::new();
    let environment = filter.site.state("environment");
    let text =
        "#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/environ > FILE\necho \"arguments=$*\" >> FILE\nid -u >> FILE\nexit 0\n";
    filter.install(&text.replace("FILE", environment.to_str().unwrap()));
    filter.ask("pass").await;
    let text = fs::read_to_string(environment).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let user = crate::site::account().to_string();
    let expected = [
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "LANG=C.UTF-8",
        "TZ=UTC",
        "CCP_SCHEDULER=head:6820",
        "MUSTER_FILTER_NAME=check",
        "arguments=serve",
        &user,
    ];
    assert_eq!(lines, expected);
}

/// HPC-F-23
#[tokio::test]
async fn who_drops_a_call_ends_the_program_and_the_next_call_starts_it_anew() {
    let filter = Filter::new();
    filter.ask("pass").await;
    let process = filter.told()[0].0;
    // The limit is much longer than this test waits.
    let hanging = Call { time_limit_seconds: 120, ..filter.call("hang") };
    tokio::select! {
        answer = filter.site.run(&hanging) => panic!("{answer:?}"),
        () = until("the call", || (filter.types().len() == 3).then_some(())) => {}
    }
    until("the program's end", || (!runs(process)).then_some(())).await;
    assert_eq!(filter.ask("pass").await.result, FilterExit::Code(0));
}

/// HPC-F-67
#[tokio::test]
async fn one_that_was_killed_between_calls_is_started_anew_without_blame() {
    let filter = Filter::new();
    filter.ask("pass").await;
    let process = filter.told()[0].0;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), nix::sys::signal::Signal::SIGKILL).unwrap();
    until("its end", || (!std::path::Path::new(&format!("/proc/{process}")).exists()).then_some(())).await;
    let answer = filter.ask("pass").await;
    assert_eq!((answer.result, answer.document), (FilterExit::Code(0), FileAfter::Unchanged));
}
