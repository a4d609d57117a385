//! Suspended jobs lend their cores to others, and continue once they have them again (SL-C-37).

use crate::{
    lists::{list, sweep},
    support::*,
};
use muster_domain::{
    notify,
    orders::{OrderSeed, follow_up, reconcile},
};
use muster_schemas::{
    JobId, PartId, RunId,
    accounts::{AccountChange, ClassSpec},
    cluster::ClusterConfig,
    command::{Command, RefusalCode, Reply, Start},
    event::{Actor, EndCause, Event, NodeExit, StopReason},
    job::{ExitStatus, JobSpec, JobState, Notification, Occasion, Outcome, Sink, Usage},
    plan::{ProposedPlan, ProposedPreemption},
    resources::{IndexSet, Placement},
};

fn suspend(cluster: &mut Cluster, jobs: &[JobId]) -> Vec<Event> {
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(jobs) })
}

fn resume(cluster: &mut Cluster, jobs: &[JobId]) -> Vec<Event> {
    cluster.ok(&user("oper"), Command::Resume { jobs: ids(jobs) })
}

fn verbs(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind_verb().1).collect()
}

fn standing(cluster: &Cluster, job: JobId) -> JobState {
    cluster.state.job_state(cluster.state.job(job).expect("it is known"))
}

fn free(cluster: &Cluster, node: &str) -> String {
    cluster.state.node_by_name(node).expect("it is there").free_cores.to_string()
}

/// A running job with these cores of node1.
#[track_caller]
fn running(cluster: &mut Cluster, cores: &str) -> (JobId, RunId) {
    let cores: IndexSet = cores.parse().expect("cores");
    let id = cluster.submit("ada", job(1, u32::try_from(cores.len()).expect("few")));
    let run = cluster.state.next_run();
    match start_on(cluster, id, &cores, false) {
        refused if refused.is_empty() => {}
        refused => panic!("start of job {id}: {refused:?}"),
    }
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    (id, run)
}

/// The objections to a start on these cores of node1.
fn start_on(cluster: &mut Cluster, job: JobId, cores: &IndexSet, exclusive: bool) -> Vec<String> {
    let mut placement = cluster.placement(&["node1"], 0);
    placement.components[0].shares[0].cores = cores.clone();
    placement.components[0].shares[0].exclusive = exclusive;
    place(cluster, job, placement)
}

fn place(cluster: &mut Cluster, job: JobId, placement: Placement) -> Vec<String> {
    match cluster.run(&Actor::Planner, commit(vec![Start { job, placement }])) {
        Ok((_, Reply::Planned(refused))) => refused.into_iter().map(|start| start.reason).collect(),
        other => panic!("start of job {job}: {other:?}"),
    }
}

fn end(cluster: &mut Cluster, run: RunId) {
    cluster.end(run, "node1", ExitStatus::Code(0));
}

#[test]
fn the_cores_of_a_suspended_job_are_for_others_and_it_waits_for_them() {
    let mut cluster = Cluster::new();
    let (long, run) = running(&mut cluster, "0-3");
    assert_eq!(verbs(&suspend(&mut cluster, &[long])), ["suspended"]);
    assert_eq!((standing(&cluster, long), free(&cluster, "node1")), (JobState::Suspended, "0-3".into()));
    let (_, urgent) = running(&mut cluster, "1-2");
    assert_eq!(free(&cluster, "node1"), "0,3");

    assert_eq!(verbs(&resume(&mut cluster, &[long])), ["resuming"]);
    assert_eq!((standing(&cluster, long), free(&cluster, "node1")), (JobState::Suspended, "".into()));
    assert_eq!(verbs(&resume(&mut cluster, &[long])), [""; 0], "it is to go on already");
    assert!(cluster.tick().is_empty(), "others have its cores");
    let late = cluster.submit("bob", job(1, 1));
    for core in ["0", "1"] {
        let cores = core.parse().expect("a core");
        assert_eq!(start_on(&mut cluster, late, &cores, false), ["node node1 does not have these cores free"]);
    }
    end(&mut cluster, urgent);
    assert_eq!(free(&cluster, "node1"), "", "nobody jumps in");
    assert_eq!(cluster.state.next_timer(), Some(cluster.now), "it goes on at once");
    assert_eq!(cluster.tick(), [Event::JobResumed { job: long, run }]);
    assert_eq!((standing(&cluster, long), free(&cluster, "node1")), (JobState::Running, "".into()));
    assert!(cluster.tick().is_empty());
    end(&mut cluster, run);
    assert_eq!(free(&cluster, "node1"), "0-3");
    cluster.assert_replays();
}

/// OAR-N-04, W8: a continuation is told when it is asked for, once, whether the job has its cores at that time or waits for them.
#[test]
fn a_continuation_is_told_when_it_is_asked_for() {
    let told = |cluster: &mut Cluster, happen: &mut dyn FnMut(&mut Cluster)| {
        let known = cluster.log.len();
        let mut state = cluster.state.clone();
        happen(cluster);
        let mut words = Vec::new();
        for record in &cluster.log[known..] {
            state.apply(record).expect("a good record");
            words.extend(notify::items(&state, record).into_iter().map(|item| item.event));
        }
        words
    };
    let mut cluster = Cluster::new();
    let wish = Notification {
        on: vec![Occasion::Suspended],
        sink: Sink::Mail("ada@example.org".into()),
        spares_cancelled: false,
    };
    let spec = JobSpec { notifications: vec![wish], ..job(1, 2) };
    let id = cluster.submit("ada", spec);
    assert!(start_on(&mut cluster, id, &"0-1".parse().expect("cores"), false).is_empty());
    let run = cluster.state.job(id).and_then(|job| job.run()).expect("it has started");
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    let suspends = &mut |cluster: &mut Cluster| drop(suspend(cluster, &[id]));
    let resumes = &mut |cluster: &mut Cluster| drop(resume(cluster, &[id]));
    assert_eq!(told(&mut cluster, suspends), ["suspended"]);
    assert_eq!(told(&mut cluster, resumes), ["resumed"], "at once");
    assert_eq!(told(&mut cluster, suspends), ["suspended"]);
    let (_, urgent) = running(&mut cluster, "1-2");
    assert_eq!(told(&mut cluster, resumes), ["resuming"], "although it waits");
    end(&mut cluster, urgent);
    let continues = &mut |cluster: &mut Cluster| assert_eq!(verbs(&cluster.tick()), ["resumed"]);
    assert_eq!(told(&mut cluster, continues), [""; 0], "that is known");
}

#[test]
fn a_job_whose_cores_are_free_goes_on_at_once() {
    let mut cluster = Cluster::new();
    let (id, _) = running(&mut cluster, "0-1");
    suspend(&mut cluster, &[id]);
    let _other = running(&mut cluster, "2-3");
    assert_eq!(verbs(&resume(&mut cluster, &[id])), ["resumed"]);
    assert_eq!(free(&cluster, "node1"), "");
    assert_eq!(verbs(&suspend(&mut cluster, &[id])), ["suspended"], "as often as anybody likes");
    cluster.assert_replays();
}

/// Each core belongs to one running job at a time, the first to be resumed comes first, and ends of other jobs do not
/// matter.
#[test]
fn several_that_wait_for_a_core_go_on_one_after_the_other() {
    let mut cluster = Cluster::new();
    let (first, first_run) = running(&mut cluster, "0-1");
    suspend(&mut cluster, &[first]);
    let (second, second_run) = running(&mut cluster, "1-2");
    suspend(&mut cluster, &[second]);
    let (_, third_run) = running(&mut cluster, "2");
    assert_eq!(verbs(&resume(&mut cluster, &[second])), ["resuming"], "it was asked first");
    assert_eq!(verbs(&resume(&mut cluster, &[first])), ["resuming"], "the other one is to have core 1");
    assert_eq!(free(&cluster, "node1"), "3");
    end(&mut cluster, third_run);
    assert_eq!(cluster.tick(), [Event::JobResumed { job: second, run: second_run }]);
    assert!(cluster.tick().is_empty());
    suspend(&mut cluster, &[second]);
    assert_eq!(cluster.tick(), [Event::JobResumed { job: first, run: first_run }], "a suspension gives way too");
    cluster.assert_replays();
}

#[test]
fn of_two_that_are_resumed_by_one_command_one_waits() {
    let mut cluster = Cluster::new();
    let (first, _) = running(&mut cluster, "0-1");
    suspend(&mut cluster, &[first]);
    let (second, _) = running(&mut cluster, "1-2");
    suspend(&mut cluster, &[second]);
    assert_eq!(verbs(&resume(&mut cluster, &[first, second])), ["resumed", "resuming"]);
    assert!(cluster.tick().is_empty());
}

#[test]
fn a_job_that_is_to_go_on_can_be_suspended_again() {
    let mut cluster = Cluster::new();
    let (id, run) = running(&mut cluster, "0-1");
    suspend(&mut cluster, &[id]);
    let (_, other) = running(&mut cluster, "1");
    resume(&mut cluster, &[id]);
    assert_eq!(free(&cluster, "node1"), "2-3");
    assert_eq!(
        suspend(&mut cluster, &[id]),
        [Event::JobSuspended { job: id, run, lends_cores: true, was_resuming: true, makes_way_for: None }]
    );
    assert_eq!(free(&cluster, "node1"), "0,2-3");
    assert!(suspend(&mut cluster, &[id]).is_empty());
    end(&mut cluster, other);
    assert!(cluster.tick().is_empty(), "nobody asks for it any more");
    assert_eq!(verbs(&resume(&mut cluster, &[id])), ["resumed"]);
}

/// A run that ends while it is suspended, or is being resumed, gives back what it still has and no core of others.
#[test]
fn a_suspended_run_that_ends_gives_back_what_it_has() {
    for is_resuming in [false, true] {
        for by in ["cancelled", "requeued", "node lost"] {
            let mut cluster = Cluster::new();
            let mut spec = job(1, 4);
            spec.requeue.max_runs = 1;
            let id = cluster.submit("ada", spec);
            let mut placement = cluster.placement(&["node1"], 4);
            placement.components[0].shares[0].memory_bytes = GIB;
            let run = cluster.state.next_run();
            assert_eq!(place(&mut cluster, id, placement), [""; 0]);
            cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
            suspend(&mut cluster, &[id]);
            let memory =
                |cluster: &Cluster| cluster.state.node_by_name("node1").expect("it is there").free_memory_bytes;
            assert_eq!(memory(&cluster), 7 * GIB, "memory is not lent");
            let (other, other_run) = running(&mut cluster, "1-2");
            if is_resuming {
                resume(&mut cluster, &[id]);
            }
            match by {
                "cancelled" => drop(cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) })),
                "requeued" => {
                    drop(cluster.ok(&root(), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 }))
                }
                _ => {
                    let lost = EndCause::Lost("gone".into());
                    let now = cluster.now;
                    let exit =
                        NodeExit { status: None, cause: lost, usage: Usage::default(), started: None, ended: now };
                    cluster.ok(&executor("node1"), Command::NodeEnded { part: PartId::new(run, 0), exit });
                }
            }
            if cluster.state.run(run).is_some() {
                assert!(cluster.tick().is_empty(), "what is being stopped does not go on");
                cluster.end(run, "node1", ExitStatus::Signal(15));
            }
            assert_eq!((free(&cluster, "node1").as_str(), memory(&cluster)), ("0,3", 8 * GIB), "{by}");
            assert_eq!(standing(&cluster, other), JobState::Running);
            end(&mut cluster, other_run);
            assert_eq!(free(&cluster, "node1"), "0-3");
            cluster.assert_replays();
        }
    }
}

/// A lost node takes all of its runs with it.
#[test]
fn a_lost_node_ends_those_that_lend_and_those_that_borrow() {
    let mut cluster = Cluster::new();
    let (lends, _) = running(&mut cluster, "0-3");
    suspend(&mut cluster, &[lends]);
    let (borrows, _) = running(&mut cluster, "0-1");
    resume(&mut cluster, &[lends]);
    let node = cluster.node_id("node1");
    cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "silence".into() });
    let lost = [lends, borrows].map(|id| cluster.outcome(id));
    let expected = Some(Outcome::NodeLost("node1: silence".into()));
    assert_eq!(lost, [expected.clone(), expected]);
    assert_eq!(free(&cluster, "node1"), "0-3");
    cluster.assert_replays();
}

/// Other jobs may use its CPUs, but none may have its node exclusively. To continue it must have the node to itself
/// again.
#[test]
fn a_job_that_has_its_node_for_itself_shares_it_while_it_is_suspended() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 2));
    let run = cluster.state.next_run();
    assert_eq!(start_on(&mut cluster, id, &"0-1".parse().expect("cores"), true), [""; 0]);
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    suspend(&mut cluster, &[id]);
    let alone = cluster.submit("bob", job(1, 1));
    let core = "0".parse().expect("a core");
    let refused = start_on(&mut cluster, alone, &core, true);
    assert_eq!(refused, ["node node1 is not empty, and the job wants it for itself"]);
    let (_, beside) = running(&mut cluster, "2");
    assert_eq!(verbs(&resume(&mut cluster, &[id])), ["resuming"], "it is not alone");
    let refused = start_on(&mut cluster, alone, &"3".parse().expect("a core"), false);
    assert_eq!(refused, ["node node1 is used exclusively by another job"]);
    end(&mut cluster, beside);
    assert_eq!(cluster.tick(), [Event::JobResumed { job: id, run }]);
    assert_eq!(cluster.state.node_by_name("node1").expect("it is there").exclusive, Some(run));
    cluster.assert_replays();
}

#[test]
fn a_node_hears_of_a_suspension_once_and_goes_on_only_when_the_cores_are_there() {
    let mut cluster = Cluster::new();
    let (id, run) = running(&mut cluster, "0-1");
    let node = cluster.node_id("node1");
    let part = PartId::new(run, 0);
    let orders = |cluster: &Cluster, from: usize| -> Vec<OrderSeed> {
        cluster.log[from..].iter().flat_map(|record| follow_up(&cluster.state, record)).map(|(_, seed)| seed).collect()
    };
    let missed = |cluster: &Cluster| -> Vec<OrderSeed> {
        reconcile(&cluster.state, node, &[part, PartId::new(RunId(2), 0)])
            .into_iter()
            .filter(|seed| matches!(seed, OrderSeed::Suspend { .. } | OrderSeed::Resume { .. }))
            .collect()
    };
    let mut seen = cluster.log.len();
    suspend(&mut cluster, &[id]);
    assert_eq!(orders(&cluster, seen), [OrderSeed::Suspend { part }]);
    assert_eq!(missed(&cluster), [OrderSeed::Suspend { part }]);
    let (_, other) = running(&mut cluster, "0");
    seen = cluster.log.len();
    resume(&mut cluster, &[id]);
    suspend(&mut cluster, &[id]);
    resume(&mut cluster, &[id]);
    assert_eq!(orders(&cluster, seen), [], "it stands still all the time");
    assert_eq!(missed(&cluster), [OrderSeed::Suspend { part }]);
    end(&mut cluster, other);
    seen = cluster.log.len();
    cluster.tick();
    assert_eq!(orders(&cluster, seen), [OrderSeed::Resume { part }]);
    assert_eq!(missed(&cluster), [OrderSeed::Resume { part }]);
}

/// Steps would run on cores of other jobs.
#[test]
fn no_step_starts_in_a_job_that_has_lent_its_cores() {
    let mut cluster = Cluster::new();
    let (id, _) = running(&mut cluster, "0-1");
    let step = || plain_step(id, None, None);
    suspend(&mut cluster, &[id]);
    cluster.refused(&user("ada"), step(), RefusalCode::Busy, "is suspended");
    resume(&mut cluster, &[id]);
    cluster.ok(&user("ada"), step());
}

/// Lent cores may be wanted back, so the node must keep them.
#[test]
fn a_node_keeps_the_cores_that_are_lent() {
    let mut cluster = Cluster::new();
    let (id, _) = running(&mut cluster, "2-3");
    suspend(&mut cluster, &[id]);
    let mut smaller: ClusterConfig = config();
    smaller.nodes[0].cores = 2;
    let smaller = Command::Configure { change: Box::new(smaller.into()), keep_unnamed: false };
    cluster.refused(&root(), smaller, RefusalCode::Conflict, "cannot become smaller");
}

/// All components of a job lend and continue together, without waiting for one that has meanwhile ended alone.
#[test]
fn components_go_on_together() {
    let mut cluster = Cluster::new();
    let (id, run) = cluster.start_on_each(&["node1", "node2"], 2);
    suspend(&mut cluster, &[id]);
    assert_eq!((free(&cluster, "node1"), free(&cluster, "node2")), ("0-3".into(), "0-3".into()));
    let other = cluster.submit("bob", job(1, 2));
    cluster.start(other, &["node2"], 2);
    assert_eq!(verbs(&resume(&mut cluster, &[id])), ["resuming"]);
    assert_eq!((free(&cluster, "node1"), free(&cluster, "node2")), ("2-3".into(), "2-3".into()));
    let second = muster_schemas::command::JobSelection::Component { job: id, component: 1 };
    cluster.ok(&user("ada"), Command::Cancel { jobs: second });
    assert!(cluster.tick().is_empty());
    let events = cluster.end(run, "node2", ExitStatus::Signal(15));
    assert!(verbs(&events).contains(&"shrunk"), "{events:?}");
    assert_eq!(free(&cluster, "node2"), "2-3", "the other job has the rest");
    assert_eq!(cluster.tick(), [Event::JobResumed { job: id, run }]);
    assert_eq!(standing(&cluster, id), JobState::Running);
    cluster.assert_replays();
}

/// The book of a list of tasks assigns cores to tasks.
#[test]
fn a_list_of_tasks_keeps_its_cores() {
    let mut cluster = Cluster::new();
    let (id, _, _) = cluster.start_list(&list(2, 4, vec![sweep(5)]), &["node1"], 2);
    assert_eq!(verbs(&suspend(&mut cluster, &[id])), ["suspended"]);
    assert_eq!(free(&cluster, "node1"), "2-3");
    assert_eq!(verbs(&suspend(&mut cluster, &[id])), [""; 0]);
    assert_eq!(verbs(&resume(&mut cluster, &[id])), ["resumed"]);
    cluster.assert_replays();
}

/// The end of a job overrides its suspension.
#[test]
fn a_run_that_is_stopped_for_good_does_not_go_on() {
    let mut cluster = Cluster::new();
    let (id, run) = running(&mut cluster, "0-1");
    suspend(&mut cluster, &[id]);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    cluster.refused(&user("oper"), Command::Resume { jobs: ids(&[id]) }, RefusalCode::Conflict, "does not run");
    let node = cluster.node_id("node1");
    let stop = OrderSeed::Stop { part: PartId::new(run, 0), reason: StopReason::Cancelled, grace_seconds: 10 };
    assert_eq!(reconcile(&cluster.state, node, &[PartId::new(run, 0)]), [stop]);
}

/// A class whose running jobs are suspended to make way, and one that preempts it.
fn make_classes(cluster: &mut Cluster) {
    let low = ClassSpec { name: "low".into(), suspends_preempted: true, ..ClassSpec::default() };
    let high = ClassSpec { name: "high".into(), preempts: vec!["low".into()], ..ClassSpec::default() };
    let changes = [low, high].map(|spec| AccountChange::Class { before: None, after: Some(spec) }).into();
    cluster.ok(&user("oper"), Command::ChangeAccounts { changes });
}

fn of_class(cluster: &mut Cluster, class: &str) -> JobId {
    let mut spec = job(1, 4);
    spec.components[0].class = Some(class.into());
    cluster.submit("ada", spec)
}

/// A plan that has runs make way, or starts something, made from the present state.
fn planned(cluster: &mut Cluster, preemptions: Vec<ProposedPreemption>) -> Vec<&'static str> {
    let plan = ProposedPlan { seen: cluster.state.sequence(), preemptions, ..ProposedPlan::default() };
    verbs(&cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }))
}

/// A run of a class that says so is suspended to make way, and plans let it continue: it wants its cores back once the
/// job that it made way for has them, or no longer comes, and never before a plan could have it make way again.
#[test]
fn a_run_that_made_way_continues_with_a_plan() {
    let mut cluster = Cluster::new();
    make_classes(&mut cluster);
    let low = of_class(&mut cluster, "low");
    let run = cluster.state.next_run();
    assert!(start_on(&mut cluster, low, &"0-3".parse().expect("cores"), false).is_empty());
    let high = of_class(&mut cluster, "high");
    let of = |for_job| {
        vec![ProposedPreemption { for_job, victims: vec![low], claims: vec![Placement::default()], index: 1, count: 1 }]
    };
    assert_eq!(planned(&mut cluster, of(high)), ["made"], "what has not started is not suspended");
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(planned(&mut cluster, of(high)), ["suspended", "made"]);
    assert_eq!((standing(&cluster, low), free(&cluster, "node1")), (JobState::Suspended, "0-3".into()));
    assert!(cluster.tick().is_empty());
    let part = PartId::new(run, 0);
    assert!(reconcile(&cluster.state, cluster.node_id("node1"), &[part]).contains(&OrderSeed::Suspend { part }));

    let gains = cluster.state.next_run();
    assert!(start_on(&mut cluster, high, &"0-3".parse().expect("cores"), false).is_empty());
    assert_eq!(planned(&mut cluster, Vec::new()), ["resuming", "made"]);
    assert_eq!(planned(&mut cluster, Vec::new()), [""; 0], "the other has its cores");
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(gains, 0) });
    let again = of_class(&mut cluster, "high");
    end(&mut cluster, gains);
    assert_eq!(free(&cluster, "node1"), "", "nobody new gets them");
    assert!(cluster.tick().is_empty(), "another may need them first");
    assert_eq!(planned(&mut cluster, of(again)), ["suspended", "made"]);
    assert_eq!(free(&cluster, "node1"), "0-3");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[again]) });
    assert_eq!(planned(&mut cluster, Vec::new()), ["resuming", "made"], "it no longer comes");
    assert_eq!(planned(&mut cluster, Vec::new()), ["resumed", "made"]);
    assert_eq!((standing(&cluster, low), free(&cluster, "node1")), (JobState::Running, "".into()));
    cluster.assert_replays();
}

/// An operator may take over: a run that made way stays suspended, or continues at once.
#[test]
fn an_operator_suspends_and_resumes_what_made_way() {
    for is_resumed in [false, true] {
        let mut cluster = Cluster::new();
        make_classes(&mut cluster);
        let low = of_class(&mut cluster, "low");
        let run = cluster.state.next_run();
        assert!(start_on(&mut cluster, low, &"0-3".parse().expect("cores"), false).is_empty());
        cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
        let high = of_class(&mut cluster, "high");
        let (victims, claims) = (vec![low], vec![Placement::default()]);
        planned(&mut cluster, vec![ProposedPreemption { for_job: high, victims, claims, index: 1, count: 1 }]);
        cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[high]) });
        if is_resumed {
            assert_eq!(verbs(&resume(&mut cluster, &[low])), ["resumed"]);
        } else {
            let suspended =
                Event::JobSuspended { job: low, run, lends_cores: true, was_resuming: true, makes_way_for: None };
            assert_eq!(suspend(&mut cluster, &[low]), [suspended]);
            assert_eq!(planned(&mut cluster, Vec::new()), [""; 0]);
            assert_eq!(standing(&cluster, low), JobState::Suspended);
        }
        cluster.assert_replays();
    }
}

/// OAR-S-04: what the site does after a suspension has failed on a node of the job: the job says so and continues. Others have no
/// say in it, and a run that is not suspended stays as it is.
#[test]
fn a_suspension_that_the_site_does_not_want_ends() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.start(id, &["node1"], 1);
    let unwanted =
        || Command::SuspensionUnwanted { part: PartId::new(run, 0), why: format!("no\nserver{}", "x".repeat(300)) };
    assert_eq!(cluster.ok(&executor("node1"), unwanted()), []);
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(&[id]) });
    assert_eq!(cluster.ok(&executor("node2"), unwanted()), [], "it has no part of it");
    cluster.refused(&user("ada"), unwanted(), RefusalCode::PermissionDenied, "only executors");
    let events = cluster.ok(&executor("node1"), unwanted());
    let [Event::JobMessage { text, .. }, Event::JobResumed { .. }] = &events[..] else { panic!("{events:?}") };
    assert!(text.starts_with("no server") && text.chars().count() == 200, "{text}");
    assert!(!cluster.state.run(run).unwrap().is_suspended());
    cluster.assert_replays();
}
