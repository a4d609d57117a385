//! The API over a real ledger, mostly on the in-process bus. The tests play planner and executor themselves.

mod hostile;
mod planning;
mod system;
mod tls;

use muster_bus::{Bus as _, NatsBus, NatsConfig, testing::NatsServer};
use muster_client::{Client, ClientError, Endpoint, JobQuery, Moment};
use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    cluster::ClusterConfig,
    command::{CallOutcome, CallReport, Command, JobFilter, JobSelection, RefusalCode},
    copies::{CopyReport, FileCopies, FileCopy},
    event::{Actor, Event},
    filter::{CallId, FilterAction, FilterExit, FilterKind, FilterReport, JobWarning, StagingSettings},
    job::{ComponentStaging, ExitStatus, JobSpec, JobState},
    plan::{NodeClosure, ReservationSpec, ReservedNodes},
    steps::{StepGroup, StepProgram, StepSpec},
    views::{
        ClosuresRequest, DrainRequest, ErrorCode, HoldRequest, JobDetailsPage, JobView, JobsPage, NodeStateWord,
        OutcomeWord, ReasonWord, RefusalNote,
    },
};
use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};
use system::{System, TOKEN, array, cluster, ids, job, refusal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

#[test]
fn a_job_from_submission_to_its_end() {
    let system = System::start();
    let mut client = system.client();
    system.hello("node1");
    let answer = client.submit(CommandId::new_now(), &[job("first"), job("second")]).unwrap();
    let [first, second] = answer.jobs[..] else { panic!("{answer:?}") };

    // A query sees an acknowledged command at once.
    let page = client.jobs(&JobQuery::default()).unwrap();
    assert!(page.sequence >= answer.sequence);
    let names: Vec<&str> = page.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!((page.jobs[0].state, page.jobs[0].owner.as_str()), (JobState::Queued, "root"));
    assert_eq!((page.jobs[0].node_count, page.jobs[0].tasks, page.jobs[0].cores), (1, 1, 1));

    let run = system.run(first, 0);
    let running = client.job(first, Moment::Now).unwrap();
    assert_eq!((running.job.state, running.job.nodes), (JobState::Running, vec!["node1".to_owned()]));
    assert!(!running.redacted && running.spec.environment.contains_key("PASSWORD"));
    let nodes = client.nodes(Moment::Now).unwrap().nodes;
    assert_eq!((nodes[0].state, nodes[0].cores_used, nodes[0].jobs.clone()), (NodeStateWord::Up, 1, vec![first]));
    assert_eq!(nodes[1].state, NodeStateWord::Unknown);
    let queues = client.queues(Moment::Now).unwrap().queues;
    assert_eq!((queues[0].queued, queues[0].running, queues[0].default), (1, 1, true));

    system.end(run, 3);
    let ended = client.wait_for_job(first).unwrap();
    let outcome = ended.outcome.unwrap();
    assert_eq!((ended.state, outcome.outcome, outcome.shell_code()), (JobState::Finished, OutcomeWord::Failed, 3));
    let detail = client.job(first, Moment::Now).unwrap();
    assert_eq!(detail.runs.len(), 1);
    assert_eq!(detail.runs[0].usage.cpu_time_micros, 7);
    assert_eq!(detail.runs[0].nodes[0].exit.as_ref().unwrap().status, Some(ExitStatus::Code(3)));

    let types: Vec<String> = client
        .job_events(first, Moment::Now)
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap().replace("muster.", "").replace(".v1", ""))
        .collect();
    assert_eq!(types, ["job.submitted", "job.allocated", "job.started", "run.ended", "job.finished"]);

    // A list shows finished jobs only on request.
    assert_eq!(client.jobs(&JobQuery::default()).unwrap().jobs[0].id, second);
    let by_id = JobQuery { ids: vec![first], ..JobQuery::default() };
    assert_eq!(client.jobs(&by_id).unwrap().jobs[0].id, first);
}

#[test]
fn the_past_can_be_asked() {
    let system = System::start();
    let mut client = system.client();
    let empty = client.info(Moment::Now).unwrap();
    let submitted = client.submit(CommandId::new_now(), &[job("a")]).unwrap();
    let job = submitted.jobs[0];
    client.cancel(CommandId::new_now(), &ids(&[job])).unwrap();

    let before = Moment::Sequence(empty.sequence);
    assert!(client.jobs(&JobQuery { moment: before, ..JobQuery::default() }).unwrap().jobs.is_empty());
    assert_eq!(refusal(client.job(job, before)).0, ErrorCode::NotFound);
    let between = Moment::Sequence(submitted.sequence);
    assert_eq!(client.job(job, between).unwrap().job.state, JobState::Queued);
    assert_eq!(client.job_events(job, between).unwrap().len(), 1);
    assert_eq!(client.job(job, Moment::Now).unwrap().job.state, JobState::Finished);
    let at_time = client.jobs(&JobQuery { moment: Moment::Time(empty.time), ..JobQuery::default() }).unwrap();
    assert_eq!(at_time.sequence, empty.sequence);
    let future = refusal(client.jobs(&JobQuery { moment: Moment::Sequence(Sequence(1 << 40)), ..JobQuery::default() }));
    assert_eq!(future.0, ErrorCode::Invalid);
    assert!(future.1.contains("the log ends at"), "{}", future.1);
}

#[test]
fn arrays_are_one_entry_and_their_tasks_can_be_asked_for() {
    let system = System::start();
    let mut client = system.client();
    system.hello("node1");
    let whole = client.submit(CommandId::new_now(), &[array("sweep", "1-100")]).unwrap().jobs[0];
    let task = JobId::task(whole.number, 7);
    let waiting = client.job(task, Moment::Now).unwrap().job;
    assert_eq!((waiting.id, waiting.state), (task, JobState::Queued));
    let run = system.run(task, 0);
    let view = client.job(whole, Moment::Now).unwrap().job;
    let tasks = view.array.unwrap();
    assert_eq!((tasks.total, tasks.waiting, tasks.running), (100, 99, 1));
    assert!(!tasks.remaining.contains(7));
    let listed = client.jobs(&JobQuery { ids: vec![whole], ..JobQuery::default() }).unwrap().jobs;
    assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), [whole, task]);
    assert_eq!(refusal(client.job(JobId::task(whole.number, 101), Moment::Now)).0, ErrorCode::NotFound);
    system.end(run, 0);
    client.cancel(CommandId::new_now(), &ids(&[whole])).unwrap();
    let tasks = client.wait_for_job(whole).unwrap().array.unwrap();
    assert_eq!(tasks.finished, [(OutcomeWord::Completed, 1), (OutcomeWord::Cancelled, 99)].into());
    assert_eq!(tasks.never_started, [(OutcomeWord::Cancelled, "1-6,8-100".parse().unwrap())].into());
    let cancelled = client.wait_for_job(JobId::task(whole.number, 9)).unwrap();
    assert_eq!(cancelled.outcome.unwrap().outcome, OutcomeWord::Cancelled);
    assert_eq!(client.info(Moment::Now).unwrap().jobs, [(JobState::Finished, 100)].into());
}

#[test]
fn a_repeated_command_gets_the_first_answer() {
    let system = System::start();
    let id = CommandId::new_now();
    let first = system.client().submit(id, &[job("a")]).unwrap();
    let again = system.client().submit(id, &[job("a")]).unwrap();
    assert_eq!(first, again);
    // Another user's command with the same id is another command.
    let other = system.nobody(Some(TOKEN)).submit(id, &[job("b")]).unwrap();
    assert_ne!(first.jobs, other.jobs);
    assert_eq!(system.client().jobs(&JobQuery::default()).unwrap().jobs.len(), 2);
}

/// Secrets of a job are for its owner (M-GATE-4).
#[test]
fn others_see_jobs_but_not_their_secrets() {
    let system = System::start();
    let ours = system.client().submit(CommandId::new_now(), &[job("ours")]).unwrap().jobs[0];
    let mut nobody = system.nobody(Some(TOKEN));
    assert_eq!(nobody.info(Moment::Now).unwrap().caller, "nobody");
    let detail = nobody.job(ours, Moment::Now).unwrap();
    assert!(detail.redacted);
    let json = serde_json::to_string(&detail).unwrap();
    assert!(!json.contains("secret"), "{json}");
    let events = serde_json::to_string(&nobody.job_events(ours, Moment::Now).unwrap()).unwrap();
    assert!(!events.contains("secret"), "{events}");
    assert_eq!(refusal(nobody.records(Sequence(1), 1 << 20)).0, ErrorCode::PermissionDenied);
    assert_eq!(refusal(nobody.cancel(CommandId::new_now(), &ids(&[ours]))).0, ErrorCode::PermissionDenied);
    assert_eq!(refusal(nobody.configure(CommandId::new_now(), &cluster().into(), true)).0, ErrorCode::PermissionDenied);
    // They may change their own jobs.
    let own = nobody.submit(CommandId::new_now(), &[job("own")]).unwrap().jobs[0];
    assert_eq!(nobody.job(own, Moment::Now).unwrap().job.owner, "nobody");
    nobody.cancel(CommandId::new_now(), &ids(&[own])).unwrap();
}

#[test]
fn tcp_wants_a_token() {
    let system = System::start();
    for token in [None, Some("wrong-token-wrong-token")] {
        assert_eq!(refusal(system.nobody(token).info(Moment::Now)).0, ErrorCode::Unauthenticated);
        assert_eq!(refusal(system.nobody(token).text("/metrics")).0, ErrorCode::Unauthenticated);
        assert_eq!(system.nobody(token).text("/healthz").unwrap(), "ok\n");
        assert!(system.nobody(token).text("/openapi.json").unwrap().contains("\"openapi\""));
    }
    assert!(system.nobody(Some(TOKEN)).text("/metrics").is_ok());
}

/// Nodes, jobs, cores and licences are metrics, for dashboards and alerts (D8).
#[test]
fn the_cluster_is_told_in_numbers() {
    let system = System::start();
    let mut client = system.client();
    client.submit(CommandId::new_now(), &[job("a"), job("b"), job("c")]).unwrap();
    let mut teller = system.nobody(Some(TOKEN));
    let number = |text: &str, metric: &str, labels: &[&str]| {
        let mut lines = text.lines().filter(|line| line.starts_with(&format!("{metric}{{")));
        let line = lines.find(|line| labels.iter().all(|label| line.contains(label)))?;
        line.rsplit(' ').next()?.parse::<u64>().ok()
    };
    let nodes = client.nodes(Moment::Now).unwrap().nodes;
    let cores: u64 = nodes.iter().map(|node| u64::from(node.spec.cores)).sum();
    let text = teller.text("/metrics").unwrap();
    for (metric, labels, expected) in [
        ("muster_jobs", &["queue=\"default\"", "state=\"queued\""][..], 3),
        ("muster_jobs", &["queue=\"default\"", "state=\"running\""], 0),
        ("muster_nodes", &["state=\"lost\""], 0),
        ("muster_cores", &["kind=\"total\""], cores),
    ] {
        assert_eq!(number(&text, metric, labels), Some(expected), "{metric} {labels:?}\n{text}");
    }
    // The very next numbers include this gateway's answers.
    client.submit(CommandId::new_now(), &[job("d")]).unwrap();
    assert_eq!(client.jobs(&JobQuery::default()).unwrap().jobs.len(), 4);
    let text = teller.text("/metrics").unwrap();
    assert_eq!(number(&text, "muster_jobs", &["queue=\"default\"", "state=\"queued\""]), Some(4), "{text}");
}

#[test]
fn filters_and_pages() {
    let system = System::start();
    let mut client = system.client();
    let mut jobs: Vec<JobSpec> = (0..25).map(|number| job(&format!("job{}", number % 5))).collect();
    jobs[3].components[0].account = Some("physics".into());
    client.submit(CommandId::new_now(), &jobs).unwrap();
    system.nobody(Some(TOKEN)).submit(CommandId::new_now(), &[job("job0")]).unwrap();
    let count = |client: &mut Client, query: JobQuery| client.jobs(&query).unwrap().jobs.len();
    assert_eq!(count(&mut client, JobQuery { limit: Some(7), ..JobQuery::default() }), 26);
    assert_eq!(count(&mut client, JobQuery { name: Some("job0".into()), ..JobQuery::default() }), 6);
    assert_eq!(count(&mut client, JobQuery { user: Some("nobody".into()), ..JobQuery::default() }), 1);
    assert_eq!(count(&mut client, JobQuery { account: Some("physics".into()), ..JobQuery::default() }), 1);
    assert_eq!(count(&mut client, JobQuery { queue: Some("other".into()), ..JobQuery::default() }), 0);
    assert_eq!(count(&mut client, JobQuery { states: vec![JobState::Running], ..JobQuery::default() }), 0);
    let page = client.jobs_page(&JobQuery { limit: Some(7), ..JobQuery::default() }).unwrap();
    assert_eq!((page.jobs.len(), page.next), (7, Some(page.jobs[6].id)));
}

#[test]
fn whole_lists_and_several_jobs_come_in_one_answer() {
    let system = System::start();
    let mut client = system.client();
    system.hello("node1");
    let mut jobs: Vec<JobSpec> = (0..5).map(|number| job(&format!("job{number}"))).collect();
    jobs.push(array("sweep", "1-9"));
    let jobs = client.submit(CommandId::new_now(), &jobs).unwrap().jobs;
    system.nobody(Some(TOKEN)).submit(CommandId::new_now(), &[job("job0")]).unwrap();
    let run = system.run(jobs[1], 0);
    system.run(JobId::task(jobs[5].number, 3), 1);
    system.end(run, 3);
    let running = client.jobs(&JobQuery::default()).unwrap();
    assert_eq!(client.all_jobs(None, None, false).unwrap(), running);
    let states = JobState::ALL.to_vec();
    let all = client.jobs(&JobQuery { states, ..JobQuery::default() }).unwrap();
    assert_eq!((all.jobs.len(), running.jobs.len()), (8, 7));
    assert_eq!(client.all_jobs(None, None, true).unwrap(), all);
    assert_eq!(client.all_jobs(Some("nobody"), None, true).unwrap().jobs, all.jobs[7..]);
    let named = client.all_jobs(None, Some("job0"), true).unwrap().jobs;
    assert_eq!(named.iter().map(|job| job.id).collect::<Vec<_>>(), [jobs[0], all.jobs[7].id]);

    let page = client.job_details(&[jobs[1], JobId::job(99), jobs[0]], true).unwrap();
    assert_eq!(page.jobs.iter().map(|detail| detail.job.id).collect::<Vec<_>>(), jobs[..2]);
    assert_eq!(page.jobs[1].runs, client.job(jobs[1], Moment::Now).unwrap().runs);
    assert!(page.jobs[0].redacted && page.jobs[0].spec.environment.is_empty());
    let many: Vec<String> = (1..=1001).map(|number| number.to_string()).collect();
    let refused = refusal(client.get::<JobDetailsPage>(&format!("/v1/jobs/details?id={}", many.join(","))));
    assert_eq!(refused.0, ErrorCode::Invalid);
    // The encoded page is the one that was compared, not the JSON that stands in for it.
    let views = muster_schemas::codec::encode(&all).unwrap();
    assert_eq!(muster_schemas::codec::decode::<JobsPage>(&views).unwrap(), all);
}

#[test]
fn holds_give_reasons_and_matching_selects() {
    let system = System::start();
    let mut client = system.client();
    client.submit(CommandId::new_now(), &[job("a"), job("b")]).unwrap();
    let matching = JobSelection::Matching(JobFilter { name: Some("a".into()), ..JobFilter::default() });
    let request: HoldRequest =
        serde_json::from_value(serde_json::json!({ "jobs": matching, "reason": "later" })).unwrap();
    let held = client.hold(CommandId::new_now(), &request).unwrap();
    assert_eq!(held.jobs.len(), 1);
    let view = client.job(held.jobs[0], Moment::Now).unwrap().job;
    let reason = view.reason.unwrap();
    assert_eq!((view.state, reason.code, reason.text.as_str()), (JobState::Held, ReasonWord::Held, "held by user"));
}

/// Bad requests say what is wrong and change nothing (M-GATE-3).
#[test]
fn bad_requests_say_what_is_wrong_and_change_nothing() {
    let system = System::start();
    let before = system.client().info(Moment::Now).unwrap().sequence;
    let deep = format!(r#"{{"jobs":{}"#, "[".repeat(500_000));
    let cases = [
        (system.get("/v1/jobs?stat=held"), "400", "unknown parameter `stat`"),
        (system.get("/v1/jobs?state=asleep"), "400", "unknown variant `asleep`"),
        (system.get("/v1/jobs?at=yesterday"), "400", "is not a time"),
        (system.get("/v1/jobs?at_seq=1&at=2026-01-01T00:00:00Z"), "400", "cannot both"),
        (system.get("/v1/jobs?limit=0"), "422", "1 to 10000"),
        (system.get("/v1/jobs?limit=1&limit=2"), "400", "given twice"),
        (system.get("/v1/events?kind=job.started,job.strated"), "400", "no kind of event `job.strated`"),
        (system.get("/v1/jobs/abc"), "400", "is not a job id"),
        (system.get("/v1/jobs/77"), "404", "there is no job 77"),
        (system.get("/v1/jobs/77/events"), "404", "there is no job 77"),
        (system.get("/v1/jobs/77/wait"), "404", "there is no job 77"),
        (system.get("/v1/nodes/node9"), "404", "there is no node `node9`"),
        (system.get("/v2/jobs"), "404", "no such address"),
        (system.get("/v1/usage"), "503", "no accounting service"),
        (system.get("/v1/jobs?wait_seq=1000000"), "422", "there is no record 1000000 yet"),
        (system.post("/v1/nodes", "{}"), "405", "no such method"),
        (system.post("/v1/jobs", "{"), "400", "EOF"),
        (system.post("/v1/jobs", r#"{"jobs":[{"nam":1}]}"#), "400", "jobs[0].nam: unknown field `nam`"),
        (system.post("/v1/jobs", r#"{"jobs":[]}"#), "422", "job"),
        (system.post("/v1/jobs", &deep), "413", "nested deeper than"),
        (system.post("/v1/jobs", &"x".repeat((1 << 20) + 1)), "413", "larger than 1048576 bytes"),
        (system.post("/v1/jobs/actions/signal", r#"{"jobs":{"ids":["1"]},"signal":300}"#), "400", "signal"),
        (system.post("/v1/jobs/actions/cancel", r#"{"jobs":{"ids":["1"]}}"#), "404", "1"),
    ];
    for (answer, status, words) in cases {
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "wanted {status} and {words}: {answer}");
        assert!(answer.contains(words), "wanted {words}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let error: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("not JSON: {answer}"));
        assert!(error["code"].is_string() && error["message"].is_string(), "{answer}");
    }
    // A refusal by the ledger leaves a record of it, and nothing else (SL-L-10).
    let records = system.client().records(before.next(), 1 << 20).unwrap().records;
    let commands: Vec<&str> = records
        .iter()
        .map(|record| match &record.event {
            Event::CommandRefused { command, .. } => command.as_str(),
            other => panic!("something changed: {other:?}"),
        })
        .collect();
    assert_eq!(commands, ["submit", "cancel"]);
}

/// SL-L-10: a program reports its own refusal. The log has who, what and why, as for a refusal by the ledger, and
/// nothing else changes.
#[test]
fn what_a_program_refused_by_itself_is_in_the_log() {
    let system = System::start();
    let before = system.client().info(Moment::Now).unwrap().sequence;
    let mut nobody = system.nobody(Some(TOKEN));
    let note = |what: &str, why: &str| RefusalNote { what: what.into(), why: why.into() };
    let id = CommandId::new_now();
    let answer = nobody.note_refusal(id, &note("srun", "Unable to create step for job 7")).unwrap();
    assert_eq!(answer, nobody.note_refusal(id, &note("srun", "Unable to create step for job 7")).unwrap());
    for (what, why, words) in [
        ("", "why", "what: it has 0 bytes, and may have 1 to 64"),
        (" ", "why", "what: it has 0 bytes"),
        ("srun\n", "why", "control characters"),
        (&"x".repeat(65), "why", "what: it has 65 bytes"),
        ("srun", "", "why: it has 0 bytes, and may have 1 to 1024"),
        ("srun", &"é".repeat(513), "why: it has 1026 bytes"),
    ] {
        let (code, told) = refusal(nobody.note_refusal(CommandId::new_now(), &note(what, why)));
        assert!(code == ErrorCode::Invalid && told.contains(words), "{words}: {code:?} {told}");
    }
    assert!(system.post("/v1/refusals", r#"{"what":"srun"}"#).starts_with("HTTP/1.1 400 "));
    let records = system.client().records(before.next(), 1 << 20).unwrap().records;
    let [record] = &records[..] else { panic!("{records:?}") };
    assert!(matches!(&*record.actor, Actor::User(owner) if owner.user == "nobody"), "{record:?}");
    assert_eq!(
        record.event,
        Event::CommandRefused {
            command: "srun".into(),
            code: RefusalCode::Invalid,
            message: "Unable to create step for job 7".into(),
            unrecorded: 0,
        }
    );
    // Nobody can fill the log with them.
    for _ in 0..30 {
        nobody.note_refusal(CommandId::new_now(), &note("srun", "again")).unwrap();
    }
    assert_eq!(system.client().records(before.next(), 1 << 20).unwrap().records.len(), 20);
}

#[test]
fn events_are_replayed_and_go_on_live() {
    let system = System::start();
    let mut client = system.client();
    let first = client.submit(CommandId::new_now(), &[job("a")]).unwrap();
    let mut all = client.events(Some(Sequence(1)), None, &[]).unwrap();
    let mut sequences = Vec::new();
    while let Some(event) = all.next_until_caught_up().unwrap() {
        sequences.push(event.sequence.0);
    }
    let count = first.sequence.0;
    assert_eq!(sequences, (1..=count).collect::<Vec<_>>());

    let mut only_new = client.events(None, None, &["job".to_owned()]).unwrap();
    let mut of_job = client.events(Some(Sequence(1)), Some(first.jobs[0]), &[]).unwrap();
    let mut finished = client.events(None, None, &["job.finished".to_owned(), "node".to_owned()]).unwrap();
    let second = client.submit(CommandId::new_now(), &[job("b")]).unwrap();
    let cancelled = client.cancel(CommandId::new_now(), &ids(&first.jobs)).unwrap();
    assert_eq!(all.next().unwrap().sequence, Sequence(count + 1));
    let event = only_new.next().unwrap();
    assert_eq!((event.sequence, event.kind.as_str()), (second.sequence, "muster.job.submitted.v1"));
    assert_eq!(only_new.next().unwrap().kind, "muster.job.finished.v1");
    assert_eq!(of_job.next().unwrap().kind, "muster.job.submitted.v1");
    assert_eq!(of_job.next().unwrap().kind, "muster.job.finished.v1");
    let event = finished.next().unwrap();
    assert_eq!(event.sequence, cancelled.sequence);
    let cloud_event: serde_json::Value = serde_json::from_str(&event.json).unwrap();
    assert_eq!(cloud_event["data"]["outcome"], "cancelled");
    assert_eq!(cloud_event["subject"], first.jobs[0].to_string());
    assert_eq!(cloud_event["actor"], "user:root");
}

/// HPC-E-01
#[test]
fn an_event_says_what_led_to_it_live_and_from_the_log() {
    let system = System::start();
    let mut client = system.client();
    let mut live = client.events(None, None, &["job".to_owned()]).unwrap();
    let both = client.submit(CommandId::new_now(), &[job("a"), job("b")]).unwrap();
    let parsed = |json: &str| -> serde_json::Value { serde_json::from_str(json).unwrap() };
    let [first, second] = [(); 2].map(|()| parsed(&live.next().unwrap().json));
    assert_eq!(first["causedby"], serde_json::Value::Null);
    assert_eq!(second["causedby"], first["id"]);
    let from_log = client.job_events(both.jobs[1], Moment::Now).unwrap();
    assert_eq!(from_log, std::slice::from_ref(&second));
    let mut replayed = client.events(Some(both.sequence), None, &[]).unwrap();
    assert_eq!(parsed(&replayed.next_until_caught_up().unwrap().unwrap().json), second);
}

/// A removed node and a renamed cluster appear in the history as they were then, and so do runs that are forgotten.
#[test]
fn history_keeps_the_names_of_its_time() {
    let system = System::start();
    let mut client = system.client();
    let mut live = client.events(None, None, &[]).unwrap();
    let drain = DrainRequest { nodes: vec!["node2".into()], reason: "old".into(), is_down: false };
    let first = client.drain(CommandId::new_now(), &drain).unwrap().sequence;
    let mut config = client.config(Moment::Now).unwrap();
    config.nodes.retain(|node| node.name != "node2");
    config.settings.name = "another".into();
    let last = client.configure(CommandId::new_now(), &config.into(), false).unwrap().sequence;
    let told: Vec<String> = (first.0..=last.0).map(|_| live.next().unwrap().json).collect();
    let all = told.concat();
    assert!(all.contains("node2") && !all.contains("#2"), "{all}");
    assert!(told[0].contains("/muster/muster") && told.last().unwrap().contains("/muster/another"), "{all}");
    let mut again = client.events(Some(first), None, &[]).unwrap();
    for json in told {
        assert_eq!(again.next_until_caught_up().unwrap().unwrap().json, json);
    }
}

/// The bus, the live stream, the stream of the past and that of another gateway have the same bytes, after a node was
/// removed and the cluster was renamed too.
#[test]
fn an_event_is_the_same_bytes_on_the_bus_and_over_http() {
    let server = NatsServer::start();
    let config = || NatsConfig { url: server.url(), ..NatsConfig::default() };
    let mut system = System::start_on(|runtime| runtime.block_on(NatsBus::connect(config())).expect("connected"));
    let bus = system.runtime.block_on(NatsBus::connect(config())).expect("connected");
    let mut on_bus = system.runtime.block_on(bus.subscribe("muster.events.>")).expect("subscribed");
    let mut client = system.client();
    let mut live = client.events(None, None, &[]).unwrap();
    let drain = DrainRequest { nodes: vec!["node2".into()], reason: "old".into(), is_down: false };
    let first = client.drain(CommandId::new_now(), &drain).unwrap().sequence;
    let both = client.submit(CommandId::new_now(), &[job("a"), job("b")]).unwrap();
    let mut config = client.config(Moment::Now).unwrap();
    config.nodes.retain(|node| node.name != "node2");
    config.settings.name = "another".into();
    client.configure(CommandId::new_now(), &config.into(), false).unwrap();
    let last = client.cancel(CommandId::new_now(), &ids(&both.jobs)).unwrap().sequence;
    let told: Vec<String> = (first.0..=last.0).map(|_| live.next().unwrap().json).collect();
    assert!(told.concat().contains("\"causedby\""), "{told:?}");
    let ids: Vec<String> = (first.0..=last.0).map(|number| number.to_string()).collect();
    let published: Vec<String> = system.runtime.block_on(async {
        let mut published = Vec::new();
        // The events of the configuration may come as well.
        while published.len() < told.len() {
            let next = tokio::time::timeout(Duration::from_secs(60), on_bus.next()).await.expect("it is published");
            let json = String::from_utf8(next.expect("the bus is open").message.payload.to_vec()).unwrap();
            let event: serde_json::Value = serde_json::from_str(&json).unwrap();
            if ids.contains(&event["id"].as_str().unwrap_or_default().to_owned()) {
                published.push(json);
            }
        }
        published
    });
    assert_eq!(published, told);
    // Who was restarted tells them like that, and so does a gateway that has seen nothing.
    system.stop_gateway();
    system.stop_ledger();
    system.start_ledger();
    system.start_gateway();
    let (_other, mut new) = system.other_gateway();
    for client in [&mut client, &mut new] {
        let mut again = client.events(Some(first), None, &[]).unwrap();
        for json in &told {
            assert_eq!(&again.next_until_caught_up().unwrap().unwrap().json, json);
        }
    }
}

/// Event streams continue after the last event (M-GATE-2).
#[test]
fn event_streams_go_on_behind_the_last_event() {
    let mut system = System::start();
    let mut client = system.client();
    let first = client.submit(CommandId::new_now(), &[job("a")]).unwrap();
    let mut stream = client.events(Some(first.sequence), None, &[]).unwrap();
    assert_eq!(stream.next().unwrap().sequence, first.sequence);
    system.stop_gateway();
    assert!(stream.next().is_err(), "the stream ended with the gateway");
    system.start_gateway();
    let second = client.submit(CommandId::new_now(), &[job("b")]).unwrap();
    assert_eq!(stream.next().unwrap().sequence, second.sequence, "nothing twice, nothing lost");
    // Over plain HTTP, with the header that browsers send.
    let mut socket = UnixStream::connect(system.socket()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(socket, "GET /v1/events HTTP/1.1\r\nhost: x\r\nlast-event-id: {}\r\n\r\n", first.sequence).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("caught up") {
        let read = socket.read(&mut buffer).unwrap();
        assert!(read > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    assert!(text.contains(&format!("id: {}\n", second.sequence)), "{text}");
    assert!(!text.contains(&format!("id: {}\n", first.sequence)), "{text}");
}

#[test]
fn slow_subscribers_lose_nothing() {
    let system = System::start();
    let mut client = system.client();
    let mut slow = client.events(None, None, &["job".to_owned()]).unwrap();
    // More than the ring and the socket's buffers hold.
    for _ in 0..40 {
        client.submit(CommandId::new_now(), &vec![job("many"); 500]).unwrap();
    }
    let last = client.submit(CommandId::new_now(), &[job("last")]).unwrap();
    let mut events = 0;
    loop {
        let event = slow.next().unwrap();
        events += 1;
        if event.sequence == last.sequence {
            break;
        }
    }
    assert_eq!(events, 40 * 500 + 1);
}

/// A query after an answer sees what was answered (M-GATE-1).
#[test]
fn a_thousand_questions_after_answers_see_them() {
    let system = System::start();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let system = &system;
            scope.spawn(move || {
                let mut client = system.client();
                for number in 0..250 {
                    let name = format!("t{thread}n{number}");
                    let answer = client.submit(CommandId::new_now(), &[job(&name)]).unwrap();
                    // Another connection sees it too.
                    let view = system.client().job(answer.jobs[0], Moment::Now).unwrap().job;
                    assert_eq!(view.name, name);
                }
            });
        }
    });
}

#[test]
fn the_log_is_verified_with_progress() {
    let system = System::start();
    let mut client = system.client();
    client.submit(CommandId::new_now(), &vec![job("a"); 100]).unwrap();
    let mut reports = 0;
    let last = client.verify(Sequence(1), |_| reports += 1).unwrap();
    assert!(last.complete && last.fault.is_none() && reports >= 1, "{last:?}");
    assert_eq!(last.to, client.info(Moment::Now).unwrap().head.unwrap());
}

#[test]
fn without_a_ledger_queries_go_on_and_commands_are_refused_or_made_up_for() {
    let mut system = System::start();
    let mut client = system.client().with_patience(Duration::from_secs(60));
    let first = client.submit(CommandId::new_now(), &[job("a")]).unwrap().jobs[0];
    system.stop_ledger();
    let page = client.jobs(&JobQuery::default()).unwrap();
    assert_eq!(page.jobs[0].id, first);
    assert_eq!(refusal(client.text("/healthz")).0, ErrorCode::Unavailable);
    // A command waits for the ledger to come back.
    let (socket, id) = (system.socket(), CommandId::new_now());
    let submitting = std::thread::spawn(move || Client::new(Endpoint::Unix(socket)).submit(id, &[job("b")]));
    system.start_ledger();
    let answer = submitting.join().unwrap().unwrap();
    assert_eq!(client.jobs(&JobQuery::default()).unwrap().jobs.len(), 2);
    assert_eq!(client.job(answer.jobs[0], Moment::Now).unwrap().job.name, "b");
}

#[test]
fn two_gateways_on_a_socket_and_stale_sockets() {
    let mut system = System::start();
    let config = muster_gateway::Config { socket: Some(system.socket()), ..Default::default() };
    let (ready, _) = oneshot::channel();
    let second =
        system.runtime.block_on(muster_gateway::serve(system.bus.clone(), config, ready, CancellationToken::new()));
    let message = format!("{:#}", second.unwrap_err());
    assert!(message.contains("another gateway listens on"), "{message}");
    system.stop_gateway();
    assert!(!system.socket().exists());
    assert!(matches!(system.client().info(Moment::Now), Err(ClientError::Unreachable { .. })));
    // A gateway that was killed leaves its socket behind.
    drop(std::os::unix::net::UnixListener::bind(system.socket()).unwrap());
    system.start_gateway();
    assert!(system.client().info(Moment::Now).is_ok());
}

#[test]
fn clients_say_what_is_not_reachable() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::new(Endpoint::Unix(folder.path().join("muster.sock")));
    let error = client.submit(CommandId::new_now(), &[job("a")]).unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("is muster running?"), "{error}");
}

#[test]
fn reservations_and_closures_are_made_shown_and_taken_back() {
    let system = System::start();
    let mut client = system.client();
    let start = Timestamp::now().plus_seconds(3600);
    let course = ReservationSpec {
        name: "a-course-1".into(),
        start,
        end: start.plus_seconds(3600),
        nodes: ReservedNodes::Named(vec!["node1".into()]),
        users: vec!["somebody".into()],
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    };
    client.reserve(CommandId::new_now(), &course).unwrap();
    let (code, message) = refusal(client.reserve(CommandId::new_now(), &course));
    assert_eq!((code, message.contains("exists already")), (ErrorCode::Conflict, true), "{message}");
    let page = client.reservations(Moment::Now).unwrap();
    assert_eq!((page.reservations.len(), &page.reservations[0].spec), (1, &course));
    assert_eq!((&page.reservations[0].nodes, page.reservations[0].begun), (&vec!["node1".to_owned()], false));
    assert_eq!(client.node("node1", Moment::Now).unwrap().reservations, ["a-course-1"]);
    let mut inside = job("inside");
    inside.components[0].reservation = Some("a-course-1".into());
    assert_eq!(refusal(client.submit(CommandId::new_now(), &[inside])).0, ErrorCode::PermissionDenied);
    client.remove_reservation(CommandId::new_now(), "a-course-1").unwrap();
    assert_eq!(refusal(client.remove_reservation(CommandId::new_now(), "a-course-1")).0, ErrorCode::NotFound);
    assert!(client.reservations(Moment::Now).unwrap().reservations.is_empty());

    let closure = NodeClosure { from: start, until: Timestamp::MAX, reason: "fan".into() };
    let request = ClosuresRequest { nodes: vec!["node1".into()], closures: vec![closure.clone()] };
    client.set_closures(CommandId::new_now(), &request).unwrap();
    assert_eq!(client.node("node1", Moment::Now).unwrap().closures, [closure]);
}

/// The answer to a command never changes, even after a restart; a step that was refused as busy is still launched when
/// its client asks again and the cause of the refusal is over.
#[test]
fn a_step_that_was_busy_before_a_restart_is_launched_when_it_is_asked_for_again() {
    let mut system = System::start();
    let mut client = system.client();
    system.hello("node1");
    let job = client.submit(CommandId::new_now(), &[job("steps")]).unwrap().jobs[0];
    let run = system.allocate(job, 0);
    let program = StepProgram { argv: vec!["/bin/true".into()], ..StepProgram::default() };
    let group = StepGroup { programs: vec![program], tasks: Some(1), ..StepGroup::default() };
    let step = StepSpec { groups: vec![group], ..StepSpec::default() };
    let id = CommandId::new_now();
    let refused = refusal(client.launch_step(id, job, &step, 0));
    assert_eq!(refused.0, ErrorCode::Busy, "{}", refused.1);

    system.started(run);
    system.stop_gateway();
    system.stop_ledger();
    system.start_ledger();
    system.start_gateway();
    let answer = system.client().launch_step(id, job, &step, 20).unwrap();
    assert_eq!(answer.run, run);
}

/// PBS-G-03: others see that files of a job could not be copied, and not which: only the owner and operators see why.
#[test]
fn others_do_not_see_which_files_could_not_be_copied() {
    let system = System::start();
    let staging = StagingSettings { copy_failures_before_hold: 1, ..StagingSettings::default() };
    let config = ClusterConfig { staging, ..cluster() };
    system.client().configure(CommandId::new_now(), &config.into(), false).unwrap();
    system.hello("node1");
    let file = FileCopy { local: "in".into(), host: "fs".into(), remote: "/home/secret/in".into() };
    let staging = vec![ComponentStaging { directives: vec!["#DW secret".into()], ..ComponentStaging::default() }];
    let spec = JobSpec { copies: FileCopies { before: vec![file], after: Vec::new() }, staging, ..job("copied") };
    let id = system.client().submit(CommandId::new_now(), &[spec]).unwrap().jobs[0];
    system.allocate(id, 0);
    let events = system.client().job_events(id, Moment::Now).unwrap();
    let began = events.iter().find(|event| event["type"] == "muster.job.copying.v1").expect("copying began");
    let copy = Sequence(began["id"].as_str().unwrap().parse().unwrap());
    let failure = Some("scp: /home/secret/in: No such file".to_owned());
    let report = CopyReport { bytes: None, milliseconds: 3, failure: failure.clone() };
    let command = Command::NodeCopied { job: id, copy, report };
    assert!(system.command(Actor::Executor("node1".into()), command).result.is_ok());
    let mut ours = system.client();
    let seen = |view: JobView| view.copies.unwrap().last.unwrap().failure;
    assert_eq!(seen(ours.job(id, Moment::Now).unwrap().job), failure);
    let told = serde_json::to_string(&ours.job_events(id, Moment::Now).unwrap()).unwrap();
    assert!(told.contains("its files could not be copied 1 times: scp: /home/secret/in"), "the hold: {told}");
    assert!(told.contains("could not be copied to node node1") && told.contains("scp: /home/secret/in"), "{told}");
    assert_eq!(ours.job(id, Moment::Now).unwrap().spec.staging[0].directives, ["#DW secret"]);
    let mut nobody = system.nobody(Some(TOKEN));
    let detail = nobody.job(id, Moment::Now).unwrap();
    let page = nobody.jobs(&JobQuery::default()).unwrap();
    let all = nobody.all_jobs(None, None, false).unwrap();
    let events = nobody.job_events(id, Moment::Now).unwrap();
    for json in [
        serde_json::to_string(&detail).unwrap(),
        serde_json::to_string(&page).unwrap(),
        serde_json::to_string(&all).unwrap(),
        serde_json::to_string(&events).unwrap(),
    ] {
        assert!(!json.contains("secret"), "{json}");
        assert!(json.contains("could not be copied"), "the fact is there: {json}");
    }
}

/// SL-B-08: others do not see what a staging program says, which can name files: only the owner and operators do.
#[test]
fn others_do_not_see_what_a_staging_program_says() {
    let system = System::start();
    let staging = StagingSettings { program: Some("/opt/stage".into()), ..StagingSettings::default() };
    let config = ClusterConfig { staging, ..cluster() };
    system.client().configure(CommandId::new_now(), &config.into(), false).unwrap();
    let staging = vec![ComponentStaging { directives: vec!["#DW secret".into()], ..ComponentStaging::default() }];
    let id = system.client().submit(CommandId::new_now(), &[JobSpec { staging, ..job("staged") }]).unwrap().jobs[0];
    let mut ours = system.client();
    let chain = (0..1_000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        ours.job(id, Moment::Now).unwrap().job.filtering?.chain
    });
    let chain = chain.expect("it is staged in").number;
    let call = CallId { job: id, kind: FilterKind::StageIn, chain, position: 0, action: FilterAction::Filter };
    let runner = Actor::Runner("r1".into());
    system.command(runner.clone(), Command::ClaimCalls { calls: vec![(call, 1)] });
    let warnings = vec![JobWarning { code: "Odd".into(), text: "/home/secret/odd".into() }];
    let message = Some("no /home/secret/in".to_owned());
    let report = FilterReport { exit: FilterExit::Code(3), message, warnings, ..FilterReport::runner_lost() };
    let reports = vec![CallReport { call, attempt: 1, outcome: CallOutcome::Called(Box::new(report)) }];
    system.command(runner, Command::ReportCalls { reports, has_others: false });
    let filtering = ours.job(id, Moment::Now).unwrap().job.filtering.unwrap();
    assert_eq!(filtering.message.as_deref(), Some("no /home/secret/in"));
    assert_eq!(filtering.warnings[0].text, "/home/secret/odd");
    let told = serde_json::to_string(&ours.job_events(id, Moment::Now).unwrap()).unwrap();
    assert!(told.contains("staging in failed: no /home/secret/in"), "{told}");
    let mut nobody = system.nobody(Some(TOKEN));
    for json in [
        serde_json::to_string(&nobody.job(id, Moment::Now).unwrap()).unwrap(),
        serde_json::to_string(&nobody.jobs(&JobQuery::default()).unwrap()).unwrap(),
        serde_json::to_string(&nobody.job_events(id, Moment::Now).unwrap()).unwrap(),
    ] {
        assert!(!json.contains("secret"), "{json}");
    }
}

/// A job that is named is shown at once, while the thread that makes long lists rests after one. With many processors another
/// thread would show it anyway.
#[test]
fn a_job_is_shown_while_lists_rest() {
    let system = System::start();
    let mut client = system.client();
    let many = vec![job("many"); 1_000];
    let mut last = JobId::job(1);
    for _ in 0..4 {
        last = client.submit(CommandId::new_now(), &many).unwrap().jobs[999];
    }
    let (lists, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (mut other, lists, is_over) = (system.client(), &lists, &is_over);
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                let made = other.all_jobs(None, None, false).map(|page| page.jobs.len());
                lists.fetch_add(1, Ordering::SeqCst);
                assert_eq!(made.unwrap(), 4_000);
            }
        });
        while lists.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = lists.load(Ordering::SeqCst);
        let named = JobQuery { ids: vec![last], ..JobQuery::default() };
        let shown: Vec<usize> = (0..5).map(|_| client.jobs(&named).map_or(0, |page| page.jobs.len())).collect();
        let meanwhile = lists.load(Ordering::SeqCst) - before;
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(shown, [1; 5]);
        assert!(meanwhile < 3, "{meanwhile} long lists were made before");
    });
}
