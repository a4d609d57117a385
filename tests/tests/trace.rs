//! One job is one trace: every service runs in this process, and the spans of a job are collected from all of them.

use muster_bus::{LocalBus, Published, SharedBus, Subscription};
use muster_client::{Client, Endpoint, Moment};
use muster_dialect::Dialects;
use muster_ledger::limits::NoLimits;
use muster_schemas::{
    CommandId, JobId,
    cluster::{ClusterConfig, QueueSpec},
    event::TraceContext,
    job::{ArraySpec, Component, JobSpec, Launch, Notification, Occasion, Program, Sink},
    resources::NodeSpec,
    subjects,
    views::{CommandAnswer, SubmitRequest},
};
use muster_telemetry::{
    testing::{CollectedSpan, SpanCollector},
    trace,
};
use muster_tests::muster_binary;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{Arc, LazyLock},
    thread,
    time::{Duration, Instant},
};
use tokio::{runtime::Runtime, sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

const NODE: &str = "node1";
/// The maximum time to wait for anything.
const DEADLINE: Duration = Duration::from_secs(60);

/// One per process.
static COLLECTOR: LazyLock<SpanCollector> = LazyLock::new(SpanCollector::install);

struct Service {
    task: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
}

/// All services on the bus of this process.
struct System {
    runtime: Runtime,
    bus: SharedBus,
    /// In the order in which they were started.
    services: Vec<Service>,
    folder: tempfile::TempDir,
}

impl System {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut system = Self { runtime, bus: LocalBus::new(), services: Vec::new(), folder };
        let ledger = muster_ledger::Config {
            data_dir: system.path("data"),
            cluster: Some(cluster().into()),
            ..muster_ledger::Config::default()
        };
        system.add(|bus, ready, stop| muster_ledger::serve(bus, ledger, Arc::new(NoLimits), ready, stop));
        system.add(|bus, ready, stop| {
            muster_planner_service::serve(bus, Default::default(), Default::default(), ready, stop)
        });
        let notifier = muster_notifier::Config {
            supervisor: muster_binary().with_file_name("muster-services"),
            ..Default::default()
        };
        system.add(|bus, ready, stop| muster_notifier::serve(bus, notifier, Dialects::NONE, ready, stop));
        system.add(|bus, ready, stop| muster_accounting::serve(bus, Default::default(), ready, stop));
        let executor = muster_executor::Config {
            node: NODE.into(),
            spool_dir: system.path("spool"),
            bind_cpus: false,
            shim_program: Some(muster_binary()),
            ..muster_executor::Config::default()
        };
        system.add(|bus, ready, stop| muster_executor::serve(bus, executor, ready, stop));
        let gateway = muster_gateway::Config { socket: Some(system.path("socket")), ..Default::default() };
        system.add(|bus, ready, stop| muster_gateway::serve(bus, gateway, ready, stop));
        system
    }

    /// Starts a service and waits until it is ready.
    fn add<F>(&mut self, serve: impl FnOnce(SharedBus, oneshot::Sender<()>, CancellationToken) -> F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let (stop, (ready, is_ready)) = (CancellationToken::new(), oneshot::channel());
        let task = self.runtime.spawn(serve(self.bus.clone(), ready, stop.clone()));
        if self.runtime.block_on(is_ready).is_err() {
            panic!("a service does not start: {:?}", self.runtime.block_on(task));
        }
        self.services.push(Service { task, stop });
    }

    fn stop(mut self) {
        while let Some(Service { task, stop }) = self.services.pop() {
            stop.cancel();
            self.runtime.block_on(task).expect("no service panics").expect("every service stops cleanly");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn client(&self) -> Client {
        Client::new(Endpoint::Unix(self.path("socket")))
    }

    /// A job that records its trace, and a notification that leaves a mark.
    fn job(&self) -> JobSpec {
        let text = format!("#!/bin/sh\nprintenv TRACEPARENT >{}\n", self.path("traceparent").display());
        let launch = Launch {
            program: Program::Script { text, args: vec![] },
            stdout: Some("/dev/null".into()),
            ..Launch::default()
        };
        let sink = Sink::Exec(format!("touch {}", self.path("notified").display()));
        JobSpec {
            components: vec![Component { launch, ..Component::default() }],
            working_directory: "/".into(),
            notifications: vec![Notification { on: vec![Occasion::Ended], sink, spares_cancelled: false }],
            ..JobSpec::default()
        }
    }

    /// Submits in the caller's trace, whose context the request carries as from any HTTP client.
    fn submit_in_trace(&self, job: JobSpec, traceparent: &str) -> JobId {
        let body = serde_json::to_string(&SubmitRequest { jobs: vec![job] }).unwrap();
        let length = body.len();
        let mut socket = UnixStream::connect(self.path("socket")).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let head = format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\ntraceparent: {traceparent}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let answered: CommandAnswer = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        answered.jobs[0]
    }
}

fn cluster() -> ClusterConfig {
    let node = NodeSpec {
        name: NODE.into(),
        cores: 2,
        sockets: 1,
        memory_bytes: 1 << 30,
        gpus: vec![],
        properties: Default::default(),
    };
    let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
    ClusterConfig { nodes: vec![node], queues: vec![queue], ..ClusterConfig::default() }
}

/// The public events of one job, until the one of this type.
async fn events_until(last: &str, job: JobId, events: &mut Subscription) -> Vec<(Value, TraceContext)> {
    let mut of_job = Vec::new();
    while let Some(Published { message, .. }) = events.next().await {
        let event: Value = serde_json::from_slice(&message.payload).expect("a CloudEvent is JSON");
        if event["subject"] != job.to_string() {
            continue;
        }
        let is_last = event["type"] == last;
        of_job.push((event, message.trace));
        if is_last {
            return of_job;
        }
    }
    panic!("the bus was closed before {last}");
}

/// The services that a job passes through.
fn all_services() -> BTreeSet<&'static str> {
    [
        "muster_accounting",
        "muster_executor",
        "muster_gateway",
        "muster_ledger",
        "muster_notifier",
        "muster_planner_service",
    ]
    .into()
}

/// A trace whose spans have all ended: each but the first has its parent in the trace.
struct Trace(BTreeMap<[u8; 8], CollectedSpan>);

impl Trace {
    /// Waits until the spans of all services, and the spans that contain them, have ended.
    fn whole(trace_id: [u8; 16], root_parent: [u8; 8]) -> Self {
        let begun = Instant::now();
        loop {
            let spans = COLLECTOR.spans_of(trace_id);
            let trace = Self(spans.into_iter().map(|span| (span.context.span_id, span)).collect());
            let services: BTreeSet<&str> = trace.0.values().map(|span| span.service.as_str()).collect();
            let is_joined =
                |span: &CollectedSpan| span.parent_span_id == root_parent || trace.0.contains_key(&span.parent_span_id);
            if services == all_services() && trace.0.values().all(is_joined) {
                return trace;
            }
            assert!(begun.elapsed() < DEADLINE, "the trace is not whole:\n{}", trace.text());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// For a failed test: the spans with their services and parents.
    fn text(&self) -> String {
        let mut text = String::new();
        for span in self.0.values() {
            let parent = self.0.get(&span.parent_span_id).map_or("(not in the trace)", |parent| &parent.name);
            let job = span.job.as_deref().unwrap_or("no job");
            let _ = writeln!(text, "{} {} of {job}, part of {parent}", span.service, span.name);
        }
        text
    }

    /// Checks that each span names the job, and that its parents lead back to the start of the trace: one span
    /// of the gateway.
    fn assert_is_of(&self, job: JobId, root_parent: [u8; 8]) {
        let roots: Vec<_> = self.0.values().filter(|span| span.parent_span_id == root_parent).collect();
        assert_eq!(roots.len(), 1, "a trace begins once:\n{}", self.text());
        assert_eq!(roots[0].service, "muster_gateway", "{}", self.text());
        for span in self.0.values() {
            let named: Option<JobId> = span.job.as_deref().and_then(|job| job.parse().ok());
            assert_eq!(named.map(JobId::whole), Some(job), "{span:?} names another job:\n{}", self.text());
            let mut above = span;
            for _ in 0..=self.0.len() {
                above = self.0.get(&above.parent_span_id).unwrap_or(above);
            }
            assert_eq!(above.context, roots[0].context, "{span:?} is not part of the root:\n{}", self.text());
        }
    }

    /// Which service's spans follow from which other service's.
    fn links(&self) -> BTreeSet<(&str, &str)> {
        let parent = |span: &CollectedSpan| self.0.get(&span.parent_span_id);
        self.0.values().filter_map(|span| Some((parent(span)?.service.as_str(), span.service.as_str()))).collect()
    }
}

/// One job is one trace across all services (M-SYS-5).
#[test]
fn one_job_is_one_trace_across_all_services() {
    LazyLock::force(&COLLECTOR);
    let system = System::start();
    let mut events = system.runtime.block_on(system.bus.subscribe(subjects::EVENTS_SUBJECTS)).unwrap();

    let job = system.client().submit(CommandId::new_now(), &[system.job()]).unwrap().jobs[0];
    let notified = events_until("muster.job.notified.v1", job, &mut events);
    let notified = system.runtime.block_on(async { tokio::time::timeout(DEADLINE, notified).await });
    let events = notified.expect("the end of the job is told");

    let trace_id = events[0].1.trace_id;
    assert_ne!(trace_id, [0; 16], "a job that comes without a trace begins one");
    assert_eq!(events[0].0["type"], "muster.job.submitted.v1");
    for (event, header) in &events {
        let of_event = TraceContext::from_traceparent(event["traceparent"].as_str().unwrap_or_default());
        assert_eq!(of_event.map(|context| context.trace_id), Some(trace_id), "{event}");
        assert_eq!(of_event.as_ref(), Some(header), "the header says the same as {event}");
    }
    assert!(system.path("notified").exists(), "the notification's command ran");
    let of_process = fs::read_to_string(system.path("traceparent")).expect("the job wrote it");
    let of_process = TraceContext::from_traceparent(of_process.trim()).map(|context| context.trace_id);
    assert_eq!(of_process, Some(trace_id), "the job's processes find themselves in the trace");

    let trace = Trace::whole(trace_id, [0; 8]);
    trace.assert_is_of(job, [0; 8]);
    let expected = [
        ("muster_gateway", "muster_ledger"),
        ("muster_ledger", "muster_planner_service"),
        ("muster_ledger", "muster_executor"),
        ("muster_executor", "muster_ledger"),
        ("muster_ledger", "muster_accounting"),
        ("muster_ledger", "muster_notifier"),
        ("muster_notifier", "muster_ledger"),
    ];
    let links = trace.links();
    for link in expected {
        assert!(links.contains(&link), "nothing leads from {} to {}:\n{}", link.0, link.1, trace.text());
    }
    system.stop();
}

#[test]
fn the_task_of_an_array_belongs_to_the_trace_of_who_submitted_it() {
    LazyLock::force(&COLLECTOR);
    let system = System::start();
    let array = ArraySpec { indices: "1".parse().unwrap(), max_running: None };
    let caller = trace::new_trace();

    let spec = JobSpec { array: Some(array), ..system.job() };
    let job = system.submit_in_trace(spec, &caller.to_traceparent().unwrap());
    system.client().wait_for_job(job).unwrap();
    for event in system.client().job_events(job, Moment::Now).unwrap() {
        let of_event = event["traceparent"].as_str().and_then(TraceContext::from_traceparent);
        assert_eq!(of_event.map(|context| context.trace_id), Some(caller.trace_id), "{event}");
    }

    let trace = Trace::whole(caller.trace_id, caller.span_id);
    trace.assert_is_of(job, caller.span_id);
    system.stop();
}
