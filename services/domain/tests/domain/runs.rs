//! Runs: launch, start, stop, end, loss of nodes, steps.

use crate::{support::*, written::launch_order};
use muster_domain::orders::{OrderSeed, follow_up};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, StepId,
    command::{Command, JobEnding, RefusalCode, Reply},
    event::{Actor, EndCause, Event, NodeExit, StopReason},
    job::{ExitStatus, JobSpec, JobState, Outcome, RequeuePolicy, Usage, WaitReason},
};

fn ended(run: RunId, exit: NodeExit) -> Command {
    Command::NodeEnded { part: PartId::new(run, 0), exit }
}

fn task_job(nodes: u32) -> muster_schemas::job::JobSpec {
    let mut spec = job(nodes, 1);
    spec.components[0].launch = tasks();
    spec
}

/// OAR-J-03: a report about what is over changes nothing.
#[test]
fn a_run_starts_with_its_last_node_and_ends_with_its_last_node() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", task_job(2));
    let run = cluster.allocate(id, &["node1", "node2"], 1);
    let (node1, node2) = (cluster.node_id("node1"), cluster.node_id("node2"));
    let first = cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(first, [Event::RunPartStarted { job: id, run, node: node2, component: 0 }]);
    assert!(
        cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) }).is_empty(),
        "a repeated report"
    );
    let last = cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(last, [Event::RunStarted { job: id, run, node: node1, component: 0 }]);
    let one = cluster.end(run, "node1", ExitStatus::Code(5));
    assert!(matches!(one.as_slice(), [Event::RunPartEnded { .. }]), "the others go on: {one:?}");
    assert!(cluster.end(run, "node1", ExitStatus::Code(0)).is_empty(), "a repeated report");
    cluster.end(run, "node2", ExitStatus::Code(6));
    assert_eq!(cluster.outcome(id), Some(Outcome::Failed(ExitStatus::Code(5))), "the first by rank");
    let last_run = cluster.state.job(id).unwrap().last_run.clone().unwrap();
    assert_eq!(last_run.usage, Usage { cpu_time_micros: 20, peak_memory_bytes: 2000, ..Usage::default() });
    assert!(cluster.end(run, "node2", ExitStatus::Code(0)).is_empty(), "the run is over");
    cluster.assert_replays();
}

/// OAR-S-30: the first part of a run tells of the signals to its processes; nobody else can, and not of another number.
#[test]
fn the_first_part_of_a_run_tells_of_signals() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", task_job(2));
    let run = cluster.start(id, &["node1", "node2"], 1);
    let part = PartId::new(run, 0);
    let told = |signal| Command::NodeSignalled { part, signal, was_due: true, processes: 2 };
    let node = cluster.node_id("node1");
    let delivered = Event::JobSignalDelivered { job: id, run, node, signal: 12, was_due: true, processes: 2 };
    assert_eq!(cluster.ok(&executor("node1"), told(12)), [delivered]);
    assert!(cluster.ok(&executor("node2"), told(12)).is_empty(), "it is not the first");
    cluster.refused(&executor("node3"), told(12), RefusalCode::Conflict, "of which it has no part");
    cluster.refused(&executor("node1"), told(0), RefusalCode::Invalid, "signal");
    cluster.refused(&user("ada"), told(12), RefusalCode::PermissionDenied, "");
    for node in ["node1", "node2"] {
        cluster.end(run, node, ExitStatus::Code(0));
    }
    assert!(cluster.ok(&executor("node1"), told(12)).is_empty(), "the run is over");
    cluster.assert_replays();
}

/// A batch script runs once, on the first node of component 0; the others hold resources (SL-S-09).
#[test]
fn a_script_speaks_for_its_run() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 1));
    let run = cluster.start(id, &["node2", "node3"], 1);
    let events = cluster.end(run, "node2", ExitStatus::Code(0));
    assert!(
        matches!(
            events.as_slice(),
            [Event::RunPartEnded { .. }, Event::RunStopping { reason: StopReason::PeerEnded, .. }]
        ),
        "{events:?}"
    );
    let killed = exit(ExitStatus::Signal(9), EndCause::Killed, cluster.now);
    cluster.ok(&executor("node3"), ended(run, killed));
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
}

/// SL-S-09: the end of a part that only holds resources ends nothing else.
#[test]
fn a_node_that_only_holds_resources_speaks_for_nobody() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 1));
    let run = cluster.start(id, &["node2", "node3"], 1);
    let events = cluster.end(run, "node3", ExitStatus::Code(0));
    assert!(matches!(events.as_slice(), [Event::RunPartEnded { .. }]), "{events:?}");
    assert_eq!(cluster.outcome(id), None);
    cluster.end(run, "node2", ExitStatus::Code(3));
    assert_eq!(cluster.outcome(id), Some(Outcome::Failed(ExitStatus::Code(3))));
}

#[test]
fn an_end_implies_the_start() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.allocate(id, &["node1"], 1);
    let events = cluster.end(run, "node1", ExitStatus::Code(0));
    assert!(
        matches!(events.as_slice(), [Event::RunStarted { .. }, Event::RunEnded { .. }, Event::JobFinished { .. }]),
        "{events:?}"
    );
    assert!(
        cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) }).is_empty(),
        "late, and nothing new"
    );
}

#[test]
fn a_script_has_run_also_if_the_other_nodes_were_not_ready() {
    for lead_reports_its_start in [false, true] {
        let mut cluster = Cluster::new();
        let id = cluster.submit("ada", job(2, 1));
        let run = cluster.allocate(id, &["node1", "node2"], 1);
        if lead_reports_its_start {
            cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
        }
        let events = cluster.end(run, "node1", ExitStatus::Code(0));
        assert!(
            matches!(
                events.as_slice(),
                [Event::RunStarted { .. }, Event::RunPartEnded { .. }, Event::RunStopping { .. }]
            ),
            "{events:?}"
        );
        let late = cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
        assert!(matches!(late.as_slice(), [Event::RunPartStarted { .. }]), "a run starts once: {late:?}");
        cluster.ok(&executor("node2"), ended(run, exit(ExitStatus::Signal(9), EndCause::Killed, cluster.now)));
        assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
        assert!(cluster.state.job(id).unwrap().last_run.as_ref().unwrap().started.is_some());
        cluster.assert_replays();
    }
}

#[test]
fn causes_decide_the_outcome() {
    let cases = [
        (EndCause::Walltime, Outcome::TimedOut),
        (EndCause::OutOfMemory, Outcome::OutOfMemory),
        (EndCause::LaunchFailed("no such directory".into()), Outcome::LaunchFailed("no such directory".into())),
        (EndCause::Lost("shim died".into()), node_lost("node1: shim died")),
        (EndCause::Itself, Outcome::Failed(ExitStatus::Signal(9))),
    ];
    for (cause, outcome) in cases {
        let mut cluster = Cluster::new();
        let id = cluster.submit("ada", job(1, 1));
        let run = cluster.start(id, &["node1"], 1);
        let report = exit(ExitStatus::Signal(9), cause, cluster.now);
        cluster.ok(&executor("node1"), ended(run, report));
        assert_eq!(cluster.outcome(id), Some(outcome));
    }
}

/// OAR-J-17: a directory or a file that is missing is the fault of the job: its nodes take others.
#[test]
fn a_failed_launch_on_one_node_stops_the_others() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", task_job(2));
    let run = cluster.allocate(id, &["node1", "node2"], 1);
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    let cause = EndCause::LaunchFailed("no such user".into());
    let failed = NodeExit { status: None, cause, usage: Usage::default(), started: None, ended: cluster.now };
    let events = cluster.ok(&executor("node2"), ended(run, failed));
    assert!(matches!(events.as_slice(), [Event::RunPartEnded { .. }, Event::RunStopping { .. }]), "{events:?}");
    cluster.ok(&executor("node1"), ended(run, exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now)));
    assert_eq!(cluster.outcome(id), Some(Outcome::LaunchFailed("no such user".into())));
    let next = cluster.submit("ada", job(1, 1));
    cluster.start(next, &["node2"], 1);
}

/// OAR-S-21: a job that is being deleted is over when its node is given up, and the node takes no others until it answers.
#[test]
fn a_deletion_ends_with_the_loss_of_a_silent_node() {
    let mut cluster = Cluster::new();
    let (id, next) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    cluster.start(id, &["node1"], 1);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    assert_eq!(cluster.outcome(id), None, "its processes may still be there");
    let node = cluster.node_id("node1");
    cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "no heartbeat for 30 s".into() });
    assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
    cluster.refused_on(next, &["node1"], 1);
    cluster.hello("node1", "boot1", &[]);
    cluster.start(next, &["node1"], 1);
    cluster.assert_replays();
}

/// OAR-S-24: an operator closes a job that is being ended and whose node does not say so; the node takes no new jobs.
#[test]
fn a_job_that_does_not_end_is_closed_without_its_nodes() {
    let mut cluster = Cluster::new();
    let (id, next) = (cluster.submit("ada", task_job(2)), cluster.submit("ada", job(1, 1)));
    let run = cluster.start(id, &["node1", "node2"], 1);
    let close = |ending| Command::EndJobs { jobs: ids(&[id]), ending };
    let ending = JobEnding { gives_up: true, ..JobEnding::default() };
    cluster.refused(&user("ada"), close(ending.clone()), RefusalCode::PermissionDenied, "close jobs");
    cluster.refused(&root(), close(ending.clone()), RefusalCode::Conflict, "not being ended");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    let both = JobEnding { is_forced: true, ..ending.clone() };
    cluster.refused(&root(), close(both), RefusalCode::Invalid, "no other choice");
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert_eq!(cluster.outcome(id), None, "node2 has not said that it is over");
    cluster.ok(&root(), close(ending.clone()));
    assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
    cluster.refused(&root(), close(ending), RefusalCode::Conflict, "not being ended");
    cluster.refused_on(next, &["node2"], 1);
    cluster.start(next, &["node1"], 1);
    cluster.assert_replays();
}

/// Whoever ends a job can name the time from SIGTERM to SIGKILL; what is ending can only end sooner.
#[test]
fn an_end_can_name_the_time_until_the_kill() {
    let mut cluster = Cluster::new();
    let (id, waits) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    let run = cluster.start(id, &["node1"], 1);
    let end = |job, grace_seconds| Command::EndJobs {
        jobs: ids(&[job]),
        ending: JobEnding { grace_seconds, ..JobEnding::default() },
    };
    let forced = JobEnding { is_forced: true, grace_seconds: Some(5), ..JobEnding::default() };
    let forced = Command::EndJobs { jobs: ids(&[id]), ending: forced };
    cluster.refused(&user("ada"), forced, RefusalCode::Invalid, "by force");
    cluster.refused(&user("ada"), end(id, Some(86_401)), RefusalCode::Invalid, "grace_seconds");
    let stops = |grace_seconds| Event::RunStopping { job: id, run, reason: StopReason::Cancelled, grace_seconds };
    let ordered = |cluster: &Cluster| {
        let orders = follow_up(&cluster.state, cluster.log.last().expect("a record"));
        orders.into_iter().map(|(_, order)| order).next()
    };
    assert_eq!(cluster.ok(&user("ada"), end(id, Some(90))), [stops(Some(90))]);
    let part = cluster.part(run, "node1");
    let stop = |grace_seconds| Some(OrderSeed::Stop { part, reason: StopReason::Cancelled, grace_seconds });
    assert_eq!(ordered(&cluster), stop(90));
    assert_eq!(cluster.ok(&user("ada"), end(id, Some(100))), []);
    assert_eq!(cluster.ok(&user("ada"), end(id, None)), []);
    assert_eq!(cluster.ok(&user("ada"), end(id, Some(3))), [stops(Some(3))]);
    assert_eq!(ordered(&cluster), stop(3));
    cluster.ok(&user("ada"), end(waits, Some(3)));
    assert_eq!(cluster.outcome(waits), Some(Outcome::Cancelled));
    cluster.assert_replays();
}

#[test]
fn a_launch_that_nobody_confirms_times_out() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.allocate(id, &["node1"], 1);
    cluster.pass(60);
    assert_eq!(cluster.state.next_timer(), Some(cluster.now));
    assert_eq!(
        cluster.tick(),
        [Event::RunStopping { job: id, run, reason: StopReason::LaunchTimeout, grace_seconds: None }]
    );
    assert!(cluster.tick().is_empty());
    let nothing =
        NodeExit { status: None, cause: EndCause::Killed, usage: Usage::default(), started: None, ended: cluster.now };
    cluster.ok(&executor("node1"), ended(run, nothing));
    assert!(matches!(cluster.outcome(id), Some(Outcome::LaunchFailed(why)) if why.contains("60 s")));
}

#[test]
fn a_lost_node_ends_its_parts_and_stops_the_others() {
    let mut cluster = Cluster::new();
    let (single, double) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", task_job(2)));
    cluster.start(single, &["node1"], 1);
    let run = cluster.start(double, &["node1", "node2"], 1);
    let node = cluster.node_id("node1");
    let silent = Command::NodeSilent { node, reason: "no heartbeat for 30 s".into() };
    cluster.refused(&root(), silent.clone(), RefusalCode::PermissionDenied, "the ledger itself");
    cluster.ok(&Actor::Ledger, silent.clone());
    assert!(cluster.ok(&Actor::Ledger, silent).is_empty(), "it is lost already");
    let why = node_lost("node1: no heartbeat for 30 s");
    assert_eq!(cluster.outcome(single), Some(why.clone()));
    assert_eq!(cluster.state.run(run).unwrap().stopping, Some(StopReason::NodeLost));
    cluster.ok(&executor("node2"), ended(run, exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now)));
    assert_eq!(cluster.outcome(double), Some(why));
    // The node was only cut off: it comes back, and its report no longer counts.
    let events = cluster.hello("node1", "boot1", &[RunId(1), RunId(2)]);
    assert!(matches!(events.as_slice(), [Event::NodeUp { .. }]), "{events:?}");
    assert!(cluster.end(run, "node1", ExitStatus::Code(0)).is_empty());
    cluster.assert_replays();
}

#[test]
fn a_job_survives_the_loss_of_a_node_if_it_wants_to() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.requeue = RequeuePolicy { on_node_lost: true, max_runs: 2, ..RequeuePolicy::default() };
    let id = cluster.submit("ada", spec);
    for (boot, expected) in [("boot2", None), ("boot3", Some(node_lost("node1: it was booted again")))] {
        cluster.start(id, &["node1"], 1);
        let events = cluster.hello("node1", boot, &[]);
        assert!(matches!(events.first(), Some(Event::NodeLost { .. })), "{events:?}");
        assert!(matches!(events.last(), Some(Event::NodeUp { .. })), "{events:?}");
        assert_eq!(cluster.outcome(id), expected);
    }
    cluster.assert_replays();
}

#[test]
fn exit_codes_can_requeue() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.requeue = RequeuePolicy { on_exit_codes: vec![75], max_runs: 3, ..RequeuePolicy::default() };
    let id = cluster.submit("ada", spec);
    cluster.run_through(id, 75);
    assert!(cluster.is_waiting(id));
    cluster.run_through(id, 75);
    cluster.run_through(id, 75);
    assert_eq!(cluster.outcome(id), Some(Outcome::Failed(ExitStatus::Code(75))), "three runs are enough");
}

/// OAR-T-31, OAR-T-32: an exit code counts only after a run that lasted longer than the job says, to the second; a run that was
/// ended by somebody or by its walltime never does. One end, however often it is reported, puts the job back once.
#[test]
fn exit_codes_count_after_runs_that_lasted() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.requeue = RequeuePolicy { on_exit_codes: vec![99], exit_codes_after_seconds: 60, ..RequeuePolicy::default() };
    let lasting = |cluster: &mut Cluster, seconds: i64, cause: EndCause| {
        let id = cluster.submit("ada", spec.clone());
        let run = cluster.start(id, &["node1"], 1);
        let part = cluster.part(run, "node1");
        if cause == EndCause::Killed {
            cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
        }
        let started = cluster.now;
        let of = exit(ExitStatus::Code(99), cause, started.plus_seconds(seconds));
        let report = Command::NodeEnded { part, exit: NodeExit { started: Some(started), ..of } };
        let requeues =
            |events: Vec<Event>| events.iter().filter(|event| matches!(event, Event::JobRequeued { .. })).count();
        let first = requeues(cluster.ok(&executor("node1"), report.clone()));
        assert!(cluster.ok(&executor("node1"), report).is_empty(), "a repeated report");
        (first, cluster.outcome(id))
    };
    let failed = Some(Outcome::Failed(ExitStatus::Code(99)));
    assert_eq!(lasting(&mut cluster, 60, EndCause::Itself), (0, failed));
    assert_eq!(lasting(&mut cluster, 61, EndCause::Itself), (1, None));
    assert_eq!(lasting(&mut cluster, 61, EndCause::Walltime), (0, Some(Outcome::TimedOut)));
    assert_eq!(lasting(&mut cluster, 61, EndCause::Killed), (0, Some(Outcome::Cancelled)));
    cluster.assert_replays();
}

/// A started run that its node has forgotten is over, and is not started again (M-DOM-7).
#[test]
fn a_started_run_that_its_node_has_forgotten_is_over() {
    let mut cluster = Cluster::new();
    let (started, launching) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    cluster.start(started, &["node1"], 1);
    cluster.allocate(launching, &["node1"], 1);
    cluster.hello("node1", "boot1", &[]);
    let why = "node1: the node had started it but no longer knows it";
    assert_eq!(cluster.outcome(started), Some(node_lost(why)));
    let job = cluster.state.job(launching).unwrap();
    assert_eq!(cluster.state.job_state(job), JobState::Launching, "it was never started, so it can be");
}

/// A list of parts says nothing about what started after it was made: the node runs that, and its next list includes
/// it. The first list that is true for the start and lacks the part shows that it is forgotten.
#[test]
fn what_started_after_a_list_was_made_is_not_missing_from_it() {
    let mut cluster = Cluster::new();
    let (early, late) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    let early_run = cluster.start(early, &["node1"], 1);
    let late_run = cluster.allocate(late, &["node1"], 1);
    let made = cluster.state.sequence();
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(late_run, 0) });
    assert_eq!(cluster.hello_as_of("node1", "boot1", &[early_run], Some(made)), []);
    assert_eq!(cluster.hello_as_of("node1", "boot1", &[], None), [], "a list for no moment says nothing");
    assert_eq!((cluster.outcome(early), cluster.outcome(late)), (None, None));
    cluster.hello_as_of("node1", "boot1", &[], Some(made));
    assert!(cluster.outcome(early).is_some(), "the list was made after its start");
    assert_eq!(cluster.outcome(late), None);
    cluster.hello_as_of("node1", "boot1", &[], Some(made.next()));
    assert!(cluster.outcome(late).is_some());
    cluster.assert_replays();
}

/// The parts of a run on several nodes are judged one by one: each by its own start, and by the list of its own node.
#[test]
fn each_part_of_a_run_is_judged_by_its_own_start() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", task_job(2));
    let run = cluster.allocate(id, &["node1", "node2"], 1);
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    let made = cluster.state.sequence();
    cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(cluster.hello_as_of("node2", "boot1", &[], Some(made)), []);
    let events = cluster.hello_as_of("node1", "boot1", &[], Some(made));
    assert!(matches!(events.as_slice(), [Event::RunPartEnded { .. }, Event::RunStopping { .. }]), "{events:?}");
    cluster.assert_replays();
}

/// After a boot, the node may have been given something before its greeting is decided: what started since, and what
/// the node says it knows, is not lost. A late greeting from an earlier boot does not mean a new boot.
#[test]
fn a_boot_takes_what_was_there_before_it() {
    let mut cluster = Cluster::new();
    let jobs = [(); 3].map(|()| cluster.submit("ada", job(1, 1)));
    let [before, known, after] = jobs;
    cluster.start(before, &["node1"], 1);
    let known_run = cluster.start(known, &["node1"], 1);
    let made = cluster.state.sequence();
    cluster.start(after, &["node1"], 1);
    assert_eq!(cluster.hello_as_of("node1", "boot2", &[known_run], None), [], "it has not been told of a moment");
    cluster.hello_as_of("node1", "boot2", &[known_run], Some(made));
    assert_eq!(jobs.map(|id| cluster.outcome(id)), [Some(node_lost("node1: it was booted again")), None, None]);
    assert_eq!(cluster.hello_as_of("node1", "boot1", &[], Some(made)), [], "it was made before the boot was known");
    assert_eq!(cluster.outcome(after), None);
    cluster.assert_replays();
}

#[test]
fn suspend_resume_signal() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let suspend = Command::Suspend { jobs: ids(&[id]) };
    let resume = Command::Resume { jobs: ids(&[id]) };
    cluster.refused(&user("oper"), suspend.clone(), RefusalCode::Conflict, "does not run, it is queued");
    cluster.start(id, &["node1"], 1);
    cluster.refused(&user("ada"), suspend.clone(), RefusalCode::PermissionDenied, "operators");
    cluster.refused(&user("oper"), resume.clone(), RefusalCode::Conflict, "not suspended");
    cluster.ok(&user("oper"), suspend.clone());
    assert!(cluster.ok(&user("oper"), suspend).is_empty());
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Suspended);
    cluster.ok(&user("oper"), resume);
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Running);
    let signal = |signal| Command::Signal { jobs: ids(&[id]), signal };
    cluster.refused(&user("ada"), signal(65), RefusalCode::Invalid, "signal: 65");
    assert_eq!(cluster.ok(&user("ada"), signal(12)).len(), 1);
}

#[test]
fn a_requeued_job_waits_again_once_its_run_is_over() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let requeue = Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 };
    cluster.refused(&user("ada"), requeue.clone(), RefusalCode::Conflict, "waits already");
    let run = cluster.start(id, &["node1"], 1);
    cluster.ok(&user("ada"), requeue.clone());
    cluster.refused(&user("ada"), requeue, RefusalCode::Conflict, "being stopped");
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert!(cluster.is_waiting(id));
    let next = cluster.start(id, &["node1"], 1);
    assert_ne!(run, next);
    // A cancellation overrides a requeue in progress.
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 });
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    cluster.end(next, "node1", ExitStatus::Signal(15));
    assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
}

/// OAR-J-20: a job that nodes have kept from starting runs again, a limited number of times; one that has begun does not.
#[test]
fn a_job_that_nodes_keep_from_starting_runs_again() {
    let mut cluster = Cluster::new();
    let requeue = RequeuePolicy { unbegun_runs: 3, ..RequeuePolicy::default() };
    let spec = || JobSpec { requeue: requeue.clone(), ..job(1, 1) };
    let unfit = |cluster: &mut Cluster, run, started| {
        let cause = EndCause::Lost("job prolog /x failed (exit status: 1)".into());
        let exit = NodeExit { status: None, cause, usage: Usage::default(), started, ended: cluster.now };
        let part = cluster.part(run, "node1");
        cluster.ok(&executor("node1"), Command::NodeEnded { part, exit });
    };
    let id = cluster.submit("ada", spec());
    for _ in 0..3 {
        let run = cluster.allocate(id, &["node1"], 1);
        unfit(&mut cluster, run, None);
        assert!(cluster.is_waiting(id), "it runs again");
    }
    let run = cluster.allocate(id, &["node1"], 1);
    unfit(&mut cluster, run, None);
    let lost = node_lost("node1: job prolog /x failed (exit status: 1)");
    assert_eq!(cluster.outcome(id), Some(lost.clone()), "not for ever");
    let begun = cluster.submit("ada", spec());
    let run = cluster.start(begun, &["node1"], 1);
    let started = Some(cluster.now);
    unfit(&mut cluster, run, started);
    assert_eq!(cluster.outcome(begun), Some(lost), "its command may have done something");
    let plain = cluster.submit("ada", job(1, 1));
    let run = cluster.allocate(plain, &["node1"], 1);
    unfit(&mut cluster, run, None);
    assert!(cluster.outcome(plain).is_some(), "it does not ask for that");
    cluster.assert_replays();
}

#[test]
fn only_the_node_itself_reports_for_it() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.allocate(id, &["node1"], 1);
    cluster.refused(
        &executor("node2"),
        Command::NodeStarted { part: PartId::new(run, 0) },
        RefusalCode::Conflict,
        "node2",
    );
    cluster.refused(
        &user("ada"),
        Command::NodeStarted { part: PartId::new(run, 0) },
        RefusalCode::PermissionDenied,
        "executors",
    );
    cluster.refused(
        &executor("node9"),
        Command::NodeStarted { part: PartId::new(run, 0) },
        RefusalCode::NotFound,
        "node9",
    );
}

/// The number of tasks of a launched step on each node.
fn dealt(events: &[Event]) -> Vec<(NodeId, u32)> {
    let [Event::StepLaunched { shares, .. }] = events else { panic!("{events:?}") };
    shares.iter().map(|share| (share.node, share.tasks)).collect()
}

#[test]
fn steps() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 4));
    let start = |tasks, nodes| plain_step(id, tasks, nodes);
    cluster.refused(&user("ada"), start(None, None), RefusalCode::Conflict, "does not run");
    let run = cluster.start(id, &["node1", "node2"], 4);
    cluster.refused(&user("bob"), start(None, None), RefusalCode::PermissionDenied, "belongs to ada");
    cluster.refused(&user("ada"), start(Some(9), None), RefusalCode::LimitReached, "1 to 8");
    cluster.refused(&user("ada"), start(Some(2), Some(3)), RefusalCode::LimitReached, "1 to 2");
    let (node1, node2) = (cluster.node_id("node1"), cluster.node_id("node2"));
    let (events, reply) = cluster.run(&user("ada"), start(Some(3), None)).unwrap();
    assert_eq!(reply, Reply::Step { run, step: StepId(1) });
    assert_eq!(dealt(&events), [(node1, 2), (node2, 1)]);
    let (events, _) = cluster.run(&user("ada"), start(Some(3), Some(1))).unwrap();
    assert_eq!(dealt(&events), [(node1, 3)]);
    assert!(matches!(events[..], [Event::StepLaunched { step: StepId(2), .. }]), "{events:?}");
    let end = |code, now| Command::NodeStepEnded {
        part: PartId::new(run, 0),
        step: StepId(1),
        exit: exit(ExitStatus::Code(code), EndCause::Itself, now),
        statuses: Vec::new(),
    };
    let now = cluster.now;
    assert_eq!(cluster.ok(&executor("node2"), end(4, now)).len(), 1);
    assert!(cluster.ok(&executor("node2"), end(4, now)).is_empty());
    let events = cluster.ok(&executor("node1"), end(0, now));
    let status = Some(ExitStatus::Code(4));
    assert_eq!(events[1], Event::StepEnded { job: id, run, step: StepId(1), status });
    cluster.assert_replays();
    assert_eq!(id, JobId::job(1));
}

#[test]
fn a_step_waits_until_the_run_has_started_on_all_nodes() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 1));
    let start = || plain_step(id, Some(2), None);
    let run = cluster.allocate(id, &["node1", "node2"], 1);
    let part = PartId::new(run, 0);
    cluster.ok(&executor("node1"), Command::NodeStarted { part });
    cluster.refused(&user("ada"), start(), RefusalCode::Busy, "has not started on all");
    cluster.ok(&executor("node2"), Command::NodeStarted { part });
    cluster.ok(&user("ada"), start());
}

#[test]
fn a_step_has_no_success_if_some_of_its_tasks_never_ran() {
    for failing in ["node1", "node2"] {
        let mut cluster = Cluster::new();
        let id = cluster.submit("ada", job(2, 1));
        let run = cluster.start(id, &["node1", "node2"], 1);
        cluster.ok(&user("ada"), plain_step(id, Some(2), None));
        let (part, step, now) = (PartId::new(run, 0), StepId(1), cluster.now);
        let ended = |node| {
            let mut exit = exit(ExitStatus::Code(0), EndCause::Itself, now);
            if node == failing {
                (exit.status, exit.cause) = (None, EndCause::LaunchFailed("no such command".into()));
            }
            Command::NodeStepEnded { part, step, exit, statuses: Vec::new() }
        };
        cluster.ok(&executor("node1"), ended("node1"));
        let events = cluster.ok(&executor("node2"), ended("node2"));
        assert_eq!(events[1], Event::StepEnded { job: id, run, step, status: None }, "{failing} fails");
        cluster.assert_replays();
    }
}

/// SL-C-37, SL-E-08
#[test]
fn a_job_that_is_put_back_for_later_waits_for_its_time_and_knows_how_often_it_started() {
    let mut cluster = Cluster::new();
    let spec = job(1, 1);
    let id = cluster.submit("ada", spec.clone());
    let environment = |cluster: &Cluster, run| {
        let order = launch_order(&cluster.state, run, cluster.node_id("node1"), &spec).expect("it has a part there");
        order.environment
    };
    let run = cluster.start(id, &["node1"], 1);
    assert!(!environment(&cluster, PartId::new(run, 0)).contains_key("MUSTER_RESTART_COUNT"));
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 120 });
    let begin = cluster.now.plus_seconds(120);
    cluster.pass(5);
    cluster.end(run, "node1", ExitStatus::Signal(15));
    let reason = |cluster: &Cluster| cluster.state.job(id).and_then(|job| cluster.state.wait_reason(job));
    assert_eq!(reason(&cluster), Some(WaitReason::BeginTime(begin)));
    assert!(!cluster.is_waiting(id));
    cluster.pass(116);
    cluster.tick();
    assert!(cluster.is_waiting(id));
    let run = cluster.start(id, &["node1"], 1);
    assert_eq!(environment(&cluster, PartId::new(run, 0))["MUSTER_RESTART_COUNT"], "1");
    cluster.assert_replays();
}

/// SL-C-30
#[test]
fn a_signal_to_the_script_alone_goes_to_its_node_as_step_0() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 1));
    let signal = |job| Command::SignalStep { job, step: StepId(0), component: None, signal: 10 };
    cluster.refused(&user("ada"), signal(id), RefusalCode::Conflict, "does not run");
    let run = cluster.start(id, &["node2", "node3"], 1);
    cluster.ok(&user("ada"), signal(id));
    let orders = follow_up(&cluster.state, cluster.log.last().expect("a record"));
    let order = OrderSeed::SignalStep { part: PartId::new(run, 0), step: StepId(0), signal: 10 };
    assert_eq!(orders, [(cluster.node_id("node2"), order)]);
    let other = cluster.submit("ada", task_job(1));
    cluster.start(other, &["node1"], 1);
    cluster.refused(&user("ada"), signal(other), RefusalCode::Conflict, "no script that runs");
}

/// OAR-J-07: a report about a run counts from a node that has a part of it only. One from another node is refused with its name, and
/// changes nothing; a repeated one, or one about a run that is over, does no harm.
#[test]
fn only_nodes_of_a_run_report_about_it() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 2));
    let run = cluster.start(id, &["node1"], 2);
    let part = PartId::new(run, 0);
    let exit = || NodeExit {
        status: Some(ExitStatus::Code(0)),
        cause: EndCause::Itself,
        usage: Usage::default(),
        started: Some(cluster.now),
        ended: cluster.now,
    };
    let exit = exit();
    let step_ended = Command::NodeStepEnded { part, step: StepId(1), exit: exit.clone(), statuses: Vec::new() };
    for report in [Command::NodeStarted { part }, ended(run, exit.clone()), step_ended] {
        let words = format!("node node2 reports about run {run}, of which it has no part");
        cluster.refused(&executor("node2"), report, RefusalCode::Conflict, &words);
    }
    let next = PartId::new(cluster.state.next_run(), 0);
    cluster.refused(&executor("node2"), Command::NodeStarted { part: next }, RefusalCode::Conflict, "has no part");
    assert!(cluster.state.job(id).is_some_and(|job| job.run() == Some(run)), "it runs on");
    assert!(cluster.ok(&executor("node1"), Command::NodeStarted { part }).is_empty(), "a repeated report");
    cluster.ok(&executor("node1"), ended(run, exit.clone()));
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    assert!(cluster.ok(&executor("node2"), ended(run, exit)).is_empty(), "it is over");
    cluster.assert_replays();
}
