//! Jobs that hold the same cores and GPUs at the same time.

use crate::support::*;
use muster_schemas::{
    JobId, PartId, RunId,
    command::{Command, RefusalCode, Reply, Start},
    event::{Actor, JobChange},
    job::{ExitStatus, JobSpec, JobType},
    resources::IndexSet,
};

fn with(types: Vec<JobType>) -> JobSpec {
    JobSpec { types, ..job(1, 1) }
}

fn peer(same_user: bool, same_name: bool, name: &str) -> JobSpec {
    JobSpec { name: name.to_owned(), ..with(vec![JobType::Timesharing { same_user, same_name }]) }
}

fn host(label: &str) -> JobSpec {
    with(vec![JobType::Placeholder(label.to_owned())])
}

fn guest(label: &str) -> JobSpec {
    with(vec![JobType::Allowed(label.to_owned())])
}

fn free(cluster: &Cluster) -> String {
    cluster.state.node_by_name("node1").expect("it is there").free_cores.to_string()
}

/// A start on these cores of node1.
fn on(cluster: &Cluster, job: JobId, cores: &str, exclusive: bool) -> Start {
    let mut placement = cluster.placement(&["node1"], 0);
    placement.components[0].shares[0].cores = cores.parse::<IndexSet>().expect("cores");
    placement.components[0].shares[0].exclusive = exclusive;
    Start { job, placement }
}

/// The objections to starts that one plan proposes.
fn plan(cluster: &mut Cluster, starts: Vec<Start>) -> Vec<String> {
    match cluster.run(&Actor::Planner, commit(starts)) {
        Ok((_, Reply::Planned(refused))) => refused.into_iter().map(|start| start.reason).collect(),
        other => panic!("{other:?}"),
    }
}

/// The run of a job on these cores of node1, or the objection.
fn start(cluster: &mut Cluster, user: &str, spec: JobSpec, cores: &str) -> Result<RunId, String> {
    start_as(cluster, user, spec, cores, false)
}

fn start_as(cluster: &mut Cluster, user: &str, spec: JobSpec, cores: &str, exclusive: bool) -> Result<RunId, String> {
    let id = cluster.submit(user, spec);
    let run = cluster.state.next_run();
    let start = on(cluster, id, cores, exclusive);
    match plan(cluster, vec![start]).pop() {
        Some(why) => {
            cluster.ok(&root(), Command::Cancel { jobs: ids(&[id]) });
            Err(why)
        }
        None => {
            cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
            Ok(run)
        }
    }
}

fn end(cluster: &mut Cluster, run: RunId) {
    cluster.end(run, "node1", ExitStatus::Code(0));
}

const TAKEN: &str = "node node1 does not have these cores free";

/// OAR-T-40, OAR-G-05: the ledger lets placements overlap only if both carry the same form, with the same user and name
/// where these count.
#[test]
fn only_jobs_with_equal_keys_have_the_same_cores() {
    let forms = [(true, true), (true, false), (false, true), (false, false)];
    for (one_user, one_name) in forms {
        for (other_user, other_name) in forms {
            for (user, name) in [("ada", "a"), ("ada", "b"), ("bob", "a"), ("bob", "b")] {
                let mut cluster = Cluster::new();
                start(&mut cluster, "ada", peer(one_user, one_name, "a"), "0-1").expect("the node is idle");
                let found = start(&mut cluster, user, peer(other_user, other_name, name), "1-2");
                let is_equal = (one_user, one_name) == (other_user, other_name)
                    && (!one_user || user == "ada")
                    && (!one_name || name == "a");
                assert_eq!(
                    found.is_ok(),
                    is_equal,
                    "{one_user} {one_name} with {other_user} {other_name} {user} {name}"
                );
                assert_eq!(free(&cluster), if is_equal { "3" } else { "2-3" });
                assert_eq!(start(&mut cluster, "ada", job(1, 1), "1"), Err(TAKEN.to_owned()));
                cluster.assert_replays();
            }
        }
    }
}

/// OAR-T-40: a core is free once the last of those who share it has given it back.
#[test]
fn a_shared_core_is_free_when_the_last_job_has_ended() {
    let mut cluster = Cluster::new();
    let spec = || peer(false, false, "a");
    let first = start_as(&mut cluster, "ada", spec(), "0-2", true).expect("it shares");
    let second = start_as(&mut cluster, "bob", spec(), "1-3", true).expect("it shares");
    let exclusive = "node node1 is used exclusively by another job";
    assert_eq!(start(&mut cluster, "ada", job(1, 1), "0"), Err(exclusive.to_owned()));
    end(&mut cluster, second);
    assert_eq!(free(&cluster), "3");
    assert_eq!(start(&mut cluster, "ada", job(1, 1), "3"), Err(exclusive.to_owned()), "the first has it for itself");
    let third = start(&mut cluster, "bob", spec(), "2-3").expect("it shares");
    end(&mut cluster, first);
    assert_eq!(free(&cluster), "0-1");
    start(&mut cluster, "ada", job(1, 1), "0").expect("nobody has the node for himself");
    let lonely = start_as(&mut cluster, "ada", spec(), "3", true);
    assert_eq!(lonely, Err("node node1 is not empty, and the job wants it for itself".to_owned()));
    end(&mut cluster, third);
    assert_eq!(free(&cluster), "1-3");
    cluster.assert_replays();
}

/// OAR-T-80: only holders of its label overlap a placeholder, and nobody overlaps them.
#[test]
fn guests_overlap_hosts_of_their_label_and_nobody_else() {
    let mut cluster = Cluster::new();
    let place = start(&mut cluster, "ada", host("w"), "0-2").expect("the node is idle");
    let taken = || Err(TAKEN.to_owned());
    assert_eq!(start(&mut cluster, "ada", host("w"), "2"), taken());
    assert_eq!(start(&mut cluster, "ada", guest("x"), "2"), taken());
    assert_eq!(start(&mut cluster, "ada", peer(false, false, "w"), "2"), taken());
    let inside = start(&mut cluster, "bob", guest("w"), "2-3").expect("inside and outside");
    assert_eq!(start(&mut cluster, "bob", guest("w"), "1-2"), taken());
    assert_eq!(start(&mut cluster, "bob", host("w"), "3").map(|_| ()), Ok(()), "a host may come later");
    assert_eq!(free(&cluster), "");
    end(&mut cluster, place);
    assert_eq!(free(&cluster), "0-1");
    end(&mut cluster, inside);
    assert_eq!(free(&cluster), "0-2");
    cluster.assert_replays();
}

/// OAR-T-40, OAR-T-80: the same holds among the starts of one plan.
#[test]
fn starts_of_one_plan_share_or_exclude_each_other() {
    let mut cluster = Cluster::new();
    let submit = |cluster: &mut Cluster, spec: JobSpec| cluster.submit("ada", spec);
    let peers = [submit(&mut cluster, peer(true, false, "a")), submit(&mut cluster, peer(true, false, "b"))];
    let (place, inside, other) =
        (submit(&mut cluster, host("w")), submit(&mut cluster, guest("w")), submit(&mut cluster, guest("w")));
    let stranger = submit(&mut cluster, job(1, 1));
    let starts = vec![
        on(&cluster, peers[0], "0-1", false),
        on(&cluster, peers[1], "1", false),
        on(&cluster, place, "2-3", false),
        on(&cluster, inside, "2", false),
        on(&cluster, other, "2-3", false),
        on(&cluster, stranger, "1", false),
    ];
    assert_eq!(plan(&mut cluster, starts), [TAKEN, TAKEN]);
    assert!(cluster.is_waiting(other) && cluster.is_waiting(stranger));
    assert_eq!(free(&cluster), "");
    cluster.assert_replays();
}

/// OAR-T-40: memory is not shared, so that nobody's is promised twice.
#[test]
fn memory_is_not_shared() {
    let mut cluster = Cluster::new();
    let all = cluster.state.node_by_name("node1").expect("it is there").free_memory_bytes;
    let mut share = |bytes: u64| {
        let id = cluster.submit("ada", peer(false, false, "a"));
        let mut start = on(&cluster, id, "0", false);
        start.placement.components[0].shares[0].memory_bytes = bytes;
        plan(&mut cluster, vec![start])
    };
    assert!(share(all - 1).is_empty());
    assert_eq!(share(2), ["node node1 does not have this memory free"]);
    assert!(share(1).is_empty());
}

/// A suspended job lends its cores to strangers, too; it waits for those, and not for the jobs with which it shares.
#[test]
fn a_suspended_job_does_not_wait_for_those_it_shares_with() {
    let mut cluster = Cluster::new();
    let spec = || peer(true, false, "a");
    start(&mut cluster, "ada", spec(), "0-1").expect("the node is idle");
    let long = cluster.submit("ada", spec());
    let starts = vec![on(&cluster, long, "0-2", false)];
    let run = cluster.state.next_run();
    assert!(plan(&mut cluster, starts).is_empty());
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(&[long]) });
    assert_eq!(free(&cluster), "2-3");
    let stranger = start(&mut cluster, "bob", job(1, 1), "2").expect("it is lent");
    cluster.ok(&user("oper"), Command::Resume { jobs: ids(&[long]) });
    assert!(cluster.tick().is_empty(), "a stranger has a core of it");
    end(&mut cluster, stranger);
    assert_eq!(cluster.tick().len(), 1, "it continues beside its peer");
    assert_eq!(free(&cluster), "3");
    cluster.assert_replays();
}

/// OAR-T-40, OAR-T-80
#[test]
fn what_cannot_be_shared_is_refused() {
    let mut cluster = Cluster::new();
    let submit = |spec: JobSpec| Command::Submit { jobs: vec![spec] };
    let both = with(vec![JobType::Timesharing { same_user: true, same_name: true }, JobType::Allowed("w".into())]);
    cluster.refused(&user("ada"), submit(both), RefusalCode::Invalid, "shares its cores in 2 ways, expected one");
    cluster.refused(&user("ada"), submit(host("")), RefusalCode::Invalid, "a label is empty");
    cluster.refused(&user("ada"), submit(guest("a\nb")), RefusalCode::Invalid, "types: a label");
    let mut twice = peer(true, true, "a");
    twice.components.push(twice.components[0].clone());
    cluster.refused(&user("ada"), submit(twice), RefusalCode::Invalid, "so it has one component, not 2");
}

/// OAR-T-40: a job that shares by name keeps its name.
#[test]
fn the_name_of_a_job_that_shares_by_name_stays() {
    let mut cluster = Cluster::new();
    let by_name = cluster.submit("ada", peer(false, true, "a"));
    let by_user = cluster.submit("ada", peer(true, false, "a"));
    let rename = |job: JobId| Command::Modify {
        jobs: ids(&[job]),
        change: JobChange { name: Some("b".into()), ..JobChange::default() },
    };
    cluster.refused(&user("ada"), rename(by_name), RefusalCode::Conflict, "shares its cores with jobs of its name");
    cluster.ok(&user("ada"), rename(by_user));
}
