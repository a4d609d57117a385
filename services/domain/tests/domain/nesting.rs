//! Planning domains: jobs inside the placement of others.

use crate::support::{Cluster, commit, config, executor, ids, job, root, user};
use muster_domain::invariants::assert_invariants;
use muster_schemas::{
    JobId, PartId, RunId,
    cluster::{ClusterConfig, ClusterSettings},
    command::{Command, RefusalCode, Reply, Start},
    event::{Actor, Event, StopReason},
    job::{ExitStatus, JobSpec, JobType, Outcome},
    plan::ReservationSpec,
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
};

fn of_type(kind: JobType, spec: JobSpec) -> JobSpec {
    JobSpec { types: vec![kind], ..spec }
}

fn lasting(seconds: u64, mut spec: JobSpec) -> JobSpec {
    spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
    spec
}

/// These cores of each node.
fn on(cluster: &Cluster, nodes: &[&str], cores: std::ops::RangeInclusive<u32>) -> Placement {
    let share = |name: &&str| NodeShare {
        node: cluster.node_id(name),
        cores: IndexSet::from_range(*cores.start(), *cores.end()),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
    };
    Placement { components: vec![ComponentPlacement { alternative: 0, shares: nodes.iter().map(share).collect() }] }
}

/// What the ledger says to a start: nothing if it takes it.
fn told(cluster: &mut Cluster, job: JobId, placement: Placement) -> Option<String> {
    match cluster.run(&Actor::Planner, commit(vec![Start { job, placement }])) {
        Ok((_, Reply::Planned(refused))) => refused.into_iter().next().map(|refused| refused.reason),
        other => panic!("plan: {other:?}"),
    }
}

#[track_caller]
fn refused(cluster: &mut Cluster, job: JobId, placement: Placement, words: &str) {
    let told = told(cluster, job, placement).expect("it is refused");
    assert!(told.contains(words), "`{told}` does not say `{words}`");
}

#[track_caller]
fn starts(cluster: &mut Cluster, job: JobId, placement: Placement, nodes: &[&str]) -> RunId {
    let run = cluster.state.next_run();
    assert_eq!(told(cluster, job, placement), None);
    for node in nodes {
        cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, 0) });
    }
    run
}

/// A container on two cores of node1 and node2 that runs for 1,000 seconds.
fn with_container(cluster: &mut Cluster) -> (JobId, RunId) {
    let id = cluster.submit("ada", of_type(JobType::Container, lasting(1000, job(2, 2))));
    let run = cluster.start(id, &["node1", "node2"], 2);
    (id, run)
}

fn inside(cluster: &mut Cluster, container: JobId, nodes: u32, cores: u32) -> JobId {
    cluster.submit("bob", of_type(JobType::Inner(container), lasting(500, job(nodes, cores))))
}

/// OAR-T-10, OAR-T-11, OAR-T-14, OAR-T-18, OAR-G-05: a job inside runs on what the container holds, once that runs, until
/// that ends, and never on what another job inside has.
#[test]
fn jobs_inside_start_on_what_is_held_for_them_and_nowhere_else() {
    let mut cluster = Cluster::new();
    let container = cluster.submit("ada", of_type(JobType::Container, lasting(1000, job(2, 2))));
    let first = inside(&mut cluster, container, 1, 1);
    let core = on(&cluster, &["node1"], 0..=0);
    refused(&mut cluster, first, core.clone(), "nobody holds these cores for planning domain 1");
    let run = cluster.allocate(container, &["node1", "node2"], 2);
    refused(&mut cluster, first, core.clone(), "job 1, which holds resources for planning domain 1, does not run");
    for node in ["node1", "node2"] {
        cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, 0) });
    }
    let outside = on(&cluster, &["node1"], 2..=2);
    refused(&mut cluster, first, outside, "nobody holds these cores");
    let across = on(&cluster, &["node1"], 1..=2);
    refused(&mut cluster, first, across, "nobody holds these cores");
    let inner = starts(&mut cluster, first, core.clone(), &["node1"]);
    let free = |cluster: &Cluster| cluster.state.node_by_name("node1").expect("it exists").free_cores.to_string();
    assert_eq!(free(&cluster), "2-3", "the node itself has the same free as before");
    let second = inside(&mut cluster, container, 1, 1);
    refused(&mut cluster, second, core.clone(), "does not have these cores free");
    let root_job = cluster.submit("ada", job(1, 1));
    let cores = on(&cluster, &["node1"], 1..=1);
    refused(&mut cluster, root_job, cores, "does not have these cores free");
    cluster.pass(400);
    let other = on(&cluster, &["node1"], 1..=1);
    starts(&mut cluster, second, other.clone(), &["node1"]);
    cluster.end(inner, "node1", ExitStatus::Code(0));
    assert_eq!(free(&cluster), "2-3");
    let third = inside(&mut cluster, container, 1, 1);
    cluster.pass(100);
    starts(&mut cluster, third, core, &["node1"]);
    cluster.pass(1);
    let late = inside(&mut cluster, container, 1, 1);
    let cores = on(&cluster, &["node2"], 0..=0);
    refused(&mut cluster, late, cores, "and planning domain 1 there until");
    cluster.assert_replays();
}

/// OAR-G-05: two jobs of one plan do not get the same cores of a container, nor the memory twice.
#[test]
fn a_plan_does_not_give_the_same_cores_twice_inside() {
    let mut cluster = Cluster::new();
    let (container, _) = with_container(&mut cluster);
    let (first, second) = (inside(&mut cluster, container, 1, 1), inside(&mut cluster, container, 1, 1));
    let core = on(&cluster, &["node1"], 0..=0);
    let both = [first, second].map(|job| Start { job, placement: core.clone() });
    let Ok((_, Reply::Planned(told))) = cluster.run(&Actor::Planner, commit(both.to_vec())) else { panic!("a plan") };
    assert_eq!(told.iter().map(|told| told.job).collect::<Vec<_>>(), [second]);
    let mut wanted = on(&cluster, &["node1"], 1..=1);
    wanted.components[0].shares[0].memory_bytes = 1;
    refused(&mut cluster, second, wanted, "does not have this memory free");
    let mut alone = on(&cluster, &["node2"], 0..=1);
    alone.components[0].shares[0].exclusive = true;
    refused(&mut cluster, second, alone, "does not have all of it");
}

/// OAR-T-16: what runs inside keeps its resources when the container ends, or is ended with it if the settings say so.
#[test]
fn what_runs_inside_is_left_or_ended() {
    for ends in [false, true] {
        let settings =
            ClusterSettings { ends_domain_jobs: ends, operators: vec!["oper".into()], ..ClusterSettings::default() };
        let mut cluster = Cluster::with(ClusterConfig { settings, ..config() });
        let (container, run) = with_container(&mut cluster);
        let first = inside(&mut cluster, container, 1, 1);
        let core = on(&cluster, &["node1"], 0..=0);
        let inner = starts(&mut cluster, first, core.clone(), &["node1"]);
        cluster.end(run, "node1", ExitStatus::Code(0));
        cluster.end(run, "node2", ExitStatus::Code(0));
        let free = |cluster: &Cluster| cluster.state.node_by_name("node1").expect("it exists").free_cores.to_string();
        assert_eq!(free(&cluster), "1-3");
        let root_job = cluster.submit("ada", job(1, 1));
        refused(&mut cluster, root_job, core, "does not have these cores free");
        let events = cluster.tick();
        let stops = Event::RunStopping { job: first, run: inner, reason: StopReason::Cancelled, grace_seconds: None };
        assert_eq!(events.contains(&stops), ends, "{events:?}");
        assert!(cluster.tick().is_empty());
        cluster.end(inner, "node1", ExitStatus::Code(0));
        assert_eq!(free(&cluster), "0-3");
        assert_eq!(cluster.outcome(first), Some(if ends { Outcome::Cancelled } else { Outcome::Completed }));
        cluster.assert_replays();
    }
}

/// OAR-T-15: what waits inside fails with the container, and says why.
#[test]
fn what_waits_inside_fails_when_the_container_is_over() {
    let mut cluster = Cluster::new();
    let (container, run) = with_container(&mut cluster);
    let waiting = inside(&mut cluster, container, 1, 1);
    let held = inside(&mut cluster, container, 1, 1);
    let holds = muster_schemas::job::Holds { user: true, ..Default::default() };
    cluster.ok(&user("bob"), Command::Hold { jobs: ids(&[held]), holds, reason: String::new() });
    assert!(cluster.tick().is_empty());
    cluster.end(run, "node1", ExitStatus::Code(0));
    cluster.end(run, "node2", ExitStatus::Code(0));
    assert!(cluster.state.next_timer().is_some_and(|due| due <= cluster.now), "it is due");
    cluster.tick();
    for job in [waiting, held] {
        let Some(Outcome::LaunchFailed(why)) = cluster.outcome(job) else { panic!("{:?}", cluster.outcome(job)) };
        assert_eq!(why, "planning domain 1 is over: no job opens it any more");
    }
    cluster.refused(
        &user("bob"),
        Command::Submit { jobs: vec![of_type(JobType::Inner(container), job(1, 1))] },
        RefusalCode::Conflict,
        "job 1 is over, and with it planning domain 1",
    );
    cluster.assert_replays();
}

/// A container that is put back into the queue still is one: what waits inside waits for its next run.
#[test]
fn what_waits_inside_outlasts_a_requeue_of_the_container() {
    let mut cluster = Cluster::new();
    let (container, run) = with_container(&mut cluster);
    let waiting = inside(&mut cluster, container, 1, 1);
    cluster.ok(&root(), Command::Requeue { jobs: ids(&[container]), hold: false, delay_seconds: 0 });
    cluster.end(run, "node1", ExitStatus::Code(0));
    cluster.end(run, "node2", ExitStatus::Code(0));
    assert!(cluster.tick().is_empty());
    assert_eq!(cluster.outcome(waiting), None);
    cluster.start(container, &["node2", "node3"], 2);
    cluster.pass(1);
    let cores = on(&cluster, &["node1"], 0..=0);
    refused(&mut cluster, waiting, cores, "nobody holds these cores");
}

/// OAR-T-15, OAR-T-13: domains that do not exist, names that are numbers, and what cannot be combined are refused.
#[test]
fn domains_that_cannot_be_are_refused() {
    let mut cluster = Cluster::new();
    let plain = cluster.submit("ada", job(1, 1));
    let named = JobType::OpensDomain("course".into());
    let within = JobType::InDomain("course".into());
    let submit = |types: Vec<JobType>| Command::Submit { jobs: vec![JobSpec { types, ..job(1, 1) }] };
    let unknown = JobType::Inner(JobId::job(77));
    for (types, code, words) in [
        (vec![unknown], RefusalCode::NotFound, "job 77 does not exist"),
        (vec![JobType::Inner(JobId::job(2))], RefusalCode::NotFound, "job 2 does not exist"),
        (vec![JobType::Inner(plain)], RefusalCode::Conflict, "job 1 opens no planning domain"),
        (vec![within.clone()], RefusalCode::NotFound, "planning domain `course` does not exist"),
        (vec![JobType::OpensDomain("12".into())], RefusalCode::Invalid, "is the number of a job"),
        (vec![JobType::OpensDomain("a b".into())], RefusalCode::Invalid, "has the character"),
        (vec![JobType::OpensDomain(String::new())], RefusalCode::Invalid, "is empty"),
        (vec![JobType::Container, named.clone()], RefusalCode::Invalid, "at most one"),
    ] {
        cluster.refused(&user("ada"), submit(types), code, words);
    }
    let first = cluster.submit("ada", of_type(named.clone(), job(1, 1)));
    cluster.refused(&user("ada"), submit(vec![named.clone(), within.clone()]), RefusalCode::Invalid, "which it opens");
    cluster.submit("bob", of_type(JobType::Inner(first), job(1, 1)));
    let last = cluster.log.last().map(|record| &record.event);
    let Some(Event::JobSubmitted { spec, .. }) = last else { panic!("{last:?}") };
    assert_eq!(spec.types, std::slice::from_ref(&within), "the number of a job became the name of its domain");
    let array = JobSpec { types: vec![JobType::Container], ..crate::support::array(IndexSet::from_range(1, 2), None) };
    cluster.refused(&user("ada"), Command::Submit { jobs: vec![array] }, RefusalCode::Invalid, "an array opens no");
    let reservation = ReservationSpec {
        name: "course".into(),
        start: cluster.now,
        end: cluster.now.plus_seconds(100),
        nodes: muster_schemas::plan::ReservedNodes::Named(vec!["node1".into()]),
        users: Vec::new(),
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    };
    cluster.ok(&user("oper"), Command::Reserve { reservation: Box::new(reservation) });
    let mut reserved = of_type(within, job(1, 1));
    reserved.components[0].reservation = Some("course".into());
    cluster.refused(&user("ada"), Command::Submit { jobs: vec![reserved] }, RefusalCode::Invalid, "no reservation");
}

/// OAR-T-17: a container inside a container, and what remains as they end in any order.
#[test]
fn containers_nest_and_end_in_any_order() {
    for outer_first in [true, false] {
        let mut cluster = Cluster::new();
        let (outer, outer_run) = with_container(&mut cluster);
        let types = vec![JobType::Container, JobType::Inner(outer)];
        let middle = cluster.submit("ada", JobSpec { types, ..lasting(800, job(1, 2)) });
        let cores = on(&cluster, &["node1"], 0..=1);
        let middle_run = starts(&mut cluster, middle, cores, &["node1"]);
        let core = on(&cluster, &["node1"], 1..=1);
        let inner = inside(&mut cluster, middle, 1, 1);
        let inner_run = starts(&mut cluster, inner, core.clone(), &["node1"]);
        let beside = inside(&mut cluster, outer, 1, 1);
        refused(&mut cluster, beside, core.clone(), "does not have these cores free");
        let free = |cluster: &Cluster| cluster.state.node_by_name("node1").expect("it exists").free_cores.to_string();
        if outer_first {
            cluster.end(outer_run, "node1", ExitStatus::Code(0));
            cluster.end(outer_run, "node2", ExitStatus::Code(0));
            assert_eq!(free(&cluster), "2-3", "the container inside has its cores of the node");
            cluster.end(middle_run, "node1", ExitStatus::Code(0));
            assert_eq!(free(&cluster), "0,2-3");
            cluster.end(inner_run, "node1", ExitStatus::Code(0));
        } else {
            cluster.end(middle_run, "node1", ExitStatus::Code(0));
            assert_eq!(free(&cluster), "2-3");
            refused(&mut cluster, beside, core, "does not have these cores free");
            let other = on(&cluster, &["node1"], 0..=0);
            let beside_run = starts(&mut cluster, beside, other, &["node1"]);
            cluster.end(outer_run, "node1", ExitStatus::Code(0));
            cluster.end(outer_run, "node2", ExitStatus::Code(0));
            assert_eq!(free(&cluster), "2-3");
            cluster.end(beside_run, "node1", ExitStatus::Code(0));
            cluster.end(inner_run, "node1", ExitStatus::Code(0));
        }
        assert_eq!(free(&cluster), "0-3");
        assert_invariants(&cluster.state);
        cluster.assert_replays();
    }
}

/// OAR-T-17: several jobs of one name hold resources of one domain.
#[test]
fn a_domain_has_the_resources_of_all_jobs_of_its_name() {
    let mut cluster = Cluster::new();
    let named = || of_type(JobType::OpensDomain("course".into()), lasting(1000, job(1, 2)));
    let (first, second) = (cluster.submit("ada", named()), cluster.submit("ada", named()));
    let first_run = cluster.start(first, &["node1"], 2);
    cluster.start(second, &["node2"], 2);
    let within = of_type(JobType::InDomain("course".into()), lasting(500, job(2, 1)));
    let both = cluster.submit("bob", within.clone());
    let cores = on(&cluster, &["node1", "node2"], 0..=0);
    starts(&mut cluster, both, cores, &["node1", "node2"]);
    cluster.end(first_run, "node1", ExitStatus::Code(0));
    assert!(cluster.tick().is_empty(), "the domain still has a job");
    let later = cluster.submit("bob", within);
    let cores = on(&cluster, &["node1", "node2"], 1..=1);
    refused(&mut cluster, later, cores, "nobody holds these cores");
    cluster.assert_replays();
}

/// A suspended container keeps its cores to itself, and lets nobody start inside; a job inside lends nobody its cores.
#[test]
fn containers_and_jobs_inside_lend_no_cores() {
    let mut cluster = Cluster::new();
    let (container, _) = with_container(&mut cluster);
    let first = inside(&mut cluster, container, 1, 1);
    let core = on(&cluster, &["node1"], 0..=0);
    starts(&mut cluster, first, core.clone(), &["node1"]);
    cluster.ok(&root(), Command::Suspend { jobs: ids(&[container, first]) });
    let root_job = cluster.submit("ada", job(1, 1));
    refused(&mut cluster, root_job, core.clone(), "does not have these cores free");
    let second = inside(&mut cluster, container, 1, 1);
    let cores = on(&cluster, &["node1"], 1..=1);
    refused(&mut cluster, second, cores, "does not run");
    cluster.ok(&root(), Command::Resume { jobs: ids(&[container]) });
    refused(&mut cluster, second, core, "does not have these cores free");
    let other = on(&cluster, &["node1"], 1..=1);
    starts(&mut cluster, second, other, &["node1"]);
    cluster.assert_replays();
}

/// A running container keeps all of its nodes.
#[test]
fn a_container_does_not_shrink() {
    let mut cluster = Cluster::new();
    let (container, _) = with_container(&mut cluster);
    let shrink = Command::ShrinkJob { job: container, nodes: Some(1), keep: Vec::new(), component: None };
    cluster.refused(&user("ada"), shrink, RefusalCode::Conflict, "holds its nodes for a planning domain");
}
