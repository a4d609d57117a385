//! Staging: in before a job starts, out after its end, component by component.

use crate::{
    filters::{components::several, support::*},
    support::*,
};
use muster_domain::{State, staging::Stage, state::looks::counted};
use muster_schemas::{
    JobId, PartId, RunId,
    cluster::ClusterConfig,
    command::{CallOutcome, CallReport, Command, JobEnding, RefusalCode, Reply, Start},
    event::{Actor, Event, Intake},
    filter::{FilterExit, FilterKind, FilterReport, StagingSettings},
    filter_order::FilterWork,
    job::{ComponentStaging, DependencyKind, ExitStatus, Holds, JobSpec, Outcome, WaitReason},
    resources::Placement,
};

const SYSTEM: Holds = Holds { user: false, operator: false, system: true };

fn site() -> Cluster {
    Cluster::with(with_program(config()))
}

fn with_program(config: ClusterConfig) -> ClusterConfig {
    let staging = StagingSettings {
        program: Some("/opt/stage".into()),
        stage_in_timeout_seconds: 60,
        stage_out_timeout_seconds: 30,
        ..StagingSettings::default()
    };
    ClusterConfig { staging, ..config }
}

/// The staging of a component: one line, and the persistent buffers that it creates, uses and removes.
fn staged(component: u32, creates: &[&str], uses: &[&str], destroys: &[&str]) -> ComponentStaging {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let directives = vec![format!("#DW of {component}")];
    ComponentStaging { component, directives, creates: names(creates), uses: names(uses), destroys: names(destroys) }
}

fn with(spec: JobSpec, components: Vec<ComponentStaging>) -> JobSpec {
    JobSpec { staging: components, ..spec }
}

/// Two components, both staged.
fn two() -> JobSpec {
    with(several(2), vec![staged(0, &[], &[], &[]), staged(1, &[], &[], &[])])
}

/// The kind and component of the outstanding call.
fn call(cluster: &Cluster, job: JobId) -> Option<(FilterKind, u32)> {
    let seed = cluster.seed(job)?;
    Some((seed.call.kind, seed.component?.offset))
}

fn stage(cluster: &Cluster, job: JobId) -> Option<Stage> {
    Some(cluster.state.job(job)?.staging.as_ref()?.stage.clone())
}

fn is_open(cluster: &Cluster, job: JobId) -> bool {
    cluster.state.waiting().any(|waiting| waiting.job.id == job)
}

/// The next timer is due at once while there is something to begin.
fn begin(cluster: &mut Cluster) -> Vec<Event> {
    assert_eq!(cluster.state.next_timer(), Some(cluster.state.time()), "there is something to be staged now");
    let events = cluster.tick();
    assert!(cluster.state.next_timer().is_none_or(|time| time > cluster.state.time()), "all of it has begun");
    events
}

fn stage_in(cluster: &mut Cluster, job: JobId) {
    begin(cluster);
    while call(cluster, job).is_some() {
        cluster.answer(job, code(0));
    }
}

/// Gives each component two cores on a separate node and starts its processes.
fn start(cluster: &mut Cluster, job: JobId) -> RunId {
    let nodes = ["node1", "node2"];
    let components = nodes.iter().flat_map(|node| cluster.placement(&[node], 1).components).collect();
    let run = cluster.state.next_run();
    let start = Start { job, placement: Placement { components } };
    let planned = cluster.run(&Actor::Planner, commit(vec![start]));
    assert!(matches!(&planned, Ok((_, Reply::Planned(refused))) if refused.is_empty()), "{planned:?}");
    nodes.iter().for_each(|node| drop(cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, 0) })));
    run
}

fn finish(cluster: &mut Cluster, run: RunId) {
    ["node1", "node2"].iter().for_each(|node| drop(cluster.end(run, node, ExitStatus::Code(0))));
}

fn saying(text: &str, report: FilterReport) -> FilterReport {
    FilterReport { message: Some(text.into()), ..report }
}

/// SL-B-01, SL-B-08: one call for each component; the job waits until all are staged in, and is staged out after its
/// end.
#[test]
fn a_job_is_staged_in_component_by_component_and_out_after_its_end() {
    let mut cluster = site();
    let id = cluster.submit("ada", two());
    assert_eq!(cluster.reason(id), Some(WaitReason::StagingIn(0)));
    begin(&mut cluster);
    assert_eq!(call(&cluster, id), Some((FilterKind::StageIn, 0)));
    let Some(FilterWork::Filter { filter, limit_seconds: 60, parameters: None }) =
        cluster.seed(id).map(|seed| seed.work)
    else {
        panic!("a call of the program with the limit of the settings")
    };
    assert_eq!(filter.path, "/opt/stage");
    cluster.answer(id, code(0));
    assert_eq!(
        (call(&cluster, id), cluster.reason(id)),
        (Some((FilterKind::StageIn, 1)), Some(WaitReason::StagingIn(1)))
    );
    assert!(!is_open(&cluster, id));
    let start_now = cluster.start_command(id, &["node1"], 1);
    assert!(matches!(cluster.run(&Actor::Planner, start_now), Ok((_, Reply::Planned(refused))) if refused.len() == 1));
    cluster.answer(id, code(0));
    assert!(is_open(&cluster, id));
    let run = start(&mut cluster, id);
    assert_eq!(cluster.seed(id), None, "nothing is staged while it runs");
    finish(&mut cluster, run);
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    begin(&mut cluster);
    assert_eq!(call(&cluster, id), Some((FilterKind::StageOut, 0)));
    cluster.answer(id, code(0));
    assert_eq!(call(&cluster, id), Some((FilterKind::StageOut, 1)));
    cluster.answer(id, code(0));
    assert_eq!((stage(&cluster, id), cluster.seed(id)), (Some(Stage::Out), None));
    cluster.assert_replays();
}

/// SL-B-01: only components with directives; a job without any, and one on a cluster without a program, are not
/// affected.
#[test]
fn only_what_has_directives_is_staged() {
    let mut cluster = site();
    let plain = cluster.submit("ada", job(1, 1));
    assert!(is_open(&cluster, plain) && cluster.state.job(plain).is_some_and(|job| job.staging.is_none()));
    let second = cluster.submit("ada", with(several(2), vec![staged(1, &[], &[], &[])]));
    begin(&mut cluster);
    assert_eq!(call(&cluster, second), Some((FilterKind::StageIn, 1)));
    cluster.answer(second, code(0));
    assert!(is_open(&cluster, second));
    let mut without = Cluster::new();
    let id = without.submit("ada", two());
    assert!(is_open(&without, id));
}

/// SL-B-08: a failure holds the job and gives the reason; staging is tried again once an administrator releases the
/// job.
#[test]
fn a_failure_holds_the_job_until_it_is_released() {
    let mut cluster = site();
    let id = cluster.submit("ada", two());
    begin(&mut cluster);
    cluster.answer(id, code(0));
    let events = cluster.answer(id, saying("disk full", code(3)));
    let why = "disk full; the staging program for component 1: exit code 3";
    assert_eq!(cluster.reason(id), Some(WaitReason::StagingFailed(why.into())));
    assert!(
        !events.iter().any(|event| matches!(event, Event::JobMessage { .. })),
        "only its owner reads it: {events:?}"
    );
    let message = |cluster: &Cluster| cluster.state.job(id)?.filters.as_ref()?.message.clone();
    assert_eq!(message(&cluster).as_deref(), Some("1: disk full"));
    assert_eq!(cluster.state.job(id).map(|job| job.holds()), Some(SYSTEM));
    assert_eq!(cluster.seed(id), None);
    cluster.assert_replays();
    let release = |holds| Command::Release { jobs: ids(&[id]), holds };
    cluster.refused(&user("ada"), release(SYSTEM), RefusalCode::PermissionDenied, "");
    cluster.ok(&root(), release(SYSTEM));
    assert_eq!(cluster.reason(id), Some(WaitReason::StagingIn(0)));
    stage_in(&mut cluster, id);
    assert!(is_open(&cluster, id));
}

/// HPC-F-85: a call whose runner is silent goes to others, at most three times; then staging has failed.
#[test]
fn a_lost_runner_costs_an_attempt_and_three_fail() {
    let mut cluster = site();
    let id = cluster.submit("ada", two());
    begin(&mut cluster);
    for attempt in 1..=3 {
        assert_eq!(cluster.seed(id).map(|seed| seed.attempt), Some(attempt));
        cluster.claim("r1", id);
        cluster.pass(71);
        cluster.tick();
    }
    let why = "the staging program for component 0: got no answer from a runner";
    assert_eq!(cluster.reason(id), Some(WaitReason::StagingFailed(why.into())));
}

/// A call can take a day: once the ledger says that its runner no longer has it, it goes to others at once.
#[test]
fn a_call_that_its_runner_does_not_have_any_more_goes_to_others() {
    let mut cluster = site();
    let id = cluster.submit("ada", two());
    begin(&mut cluster);
    let lost = |cluster: &Cluster| Command::CallsLost { calls: vec![cluster.seed(id).expect("a call").call] };
    assert_eq!(cluster.ok(&Actor::Ledger, lost(&cluster)), [], "nobody has it");
    let (call, _) = cluster.claim("r1", id);
    cluster.refused(&root(), lost(&cluster), RefusalCode::PermissionDenied, "");
    let again = Event::FilterOfferedAgain { call, attempt: 2 };
    assert_eq!(cluster.ok(&Actor::Ledger, lost(&cluster)), [again]);
    assert_eq!(cluster.seed(id).map(|seed| seed.attempt), Some(2));
    cluster.claim("r2", id);
    cluster.ok(&Actor::Ledger, lost(&cluster));
    cluster.claim("r3", id);
    cluster.ok(&Actor::Ledger, lost(&cluster));
    assert!(matches!(cluster.reason(id), Some(WaitReason::StagingFailed(_))));
}

/// SL-B-02: a buffer that a component creates can be used by all that name it, including other jobs and users; a job
/// that names one that does not exist waits.
#[test]
fn persistent_buffers_outlive_their_job_and_are_there_for_all() {
    let mut cluster = site();
    let uses = |name: &str| with(job(1, 1), vec![staged(0, &[], &[name], &[])]);
    let early = cluster.submit("bob", uses("alpha"));
    assert_eq!(cluster.reason(early), Some(WaitReason::BufferMissing("alpha".into())));
    assert!(cluster.state.next_timer().is_none(), "there is nothing to be done for it");
    // The second component creates what the first uses: it comes first.
    let maker = with(several(2), vec![staged(0, &[], &["alpha"], &[]), staged(1, &["alpha"], &["alpha"], &[])]);
    let maker = cluster.submit("ada", maker);
    begin(&mut cluster);
    assert_eq!(call(&cluster, maker), Some((FilterKind::StageIn, 1)));
    assert_eq!(cluster.state.buffers().len(), 0);
    cluster.answer(maker, code(0));
    let known: Vec<(String, String, JobId)> =
        cluster.state.buffers().map(|(name, buffer)| (name.into(), buffer.owner.clone(), buffer.job)).collect();
    assert_eq!(known, [("alpha".into(), "ada".into(), maker)]);
    stage_in(&mut cluster, early);
    assert!(is_open(&cluster, early));
    cluster.assert_replays();
    let remover = cluster.submit("ada", with(job(1, 1), vec![staged(0, &[], &[], &["alpha"])]));
    stage_in(&mut cluster, remover);
    assert_eq!(cluster.state.buffers().len(), 0);
    let late = cluster.submit("bob", uses("alpha"));
    assert_eq!(cluster.reason(late), Some(WaitReason::BufferMissing("alpha".into())));
    cluster.assert_replays();
}

/// SL-B-02: however many jobs wait for buffers or for a program, the next work is found without visiting each of them.
#[test]
fn jobs_that_wait_for_buffers_cost_nothing_until_they_are_there() {
    let mut cluster = site();
    let spec = |names: &[&str]| with(job(1, 1), vec![staged(0, &[], names, &[])]);
    cluster.ok(&user("bob"), Command::Submit { jobs: vec![spec(&["alpha", "beta"]); 10_000] });
    let (timer, looks) = counted(|| cluster.state.next_timer());
    assert_eq!(timer, None);
    assert!(looks < 20, "{looks} looks at jobs, none of which can go on");
    let makes = |name: &str| with(job(1, 1), vec![staged(0, &[name], &[], &[])]);
    let alpha = cluster.submit("ada", makes("alpha"));
    stage_in(&mut cluster, alpha);
    assert_eq!(cluster.state.next_timer(), None, "the other one is still missing");
    let remover = cluster.submit("ada", with(job(1, 1), vec![staged(0, &[], &[], &["alpha"])]));
    begin(&mut cluster);
    let beta = cluster.submit("ada", makes("beta"));
    stage_in(&mut cluster, beta);
    assert_eq!(cluster.state.next_timer(), Some(cluster.state.time()));
    cluster.answer(remover, code(0));
    assert_eq!(cluster.state.next_timer(), None);
    cluster.assert_replays();
}

/// SL-B-01: jobs that wait for a program are staged as soon as there is one again.
#[test]
fn what_waits_for_a_program_is_staged_with_the_next() {
    let mut cluster = site();
    let id = cluster.submit("ada", two());
    let configure = |config: ClusterConfig| Command::Configure { change: Box::new(config.into()), keep_unnamed: false };
    cluster.ok(&root(), configure(config()));
    assert_eq!(cluster.state.next_timer(), None);
    cluster.ok(&root(), configure(with_program(config())));
    stage_in(&mut cluster, id);
    assert!(is_open(&cluster, id));
}

/// SL-B-02: a buffer exists once it has been created, and still exists if its removal failed.
#[test]
fn a_buffer_that_could_not_be_made_or_removed_is_as_it_was() {
    let mut cluster = site();
    let makes = cluster.submit("ada", with(job(1, 1), vec![staged(0, &["alpha"], &[], &[])]));
    begin(&mut cluster);
    cluster.answer(makes, code(3));
    assert_eq!(cluster.state.buffers().len(), 0);
    cluster.ok(&root(), Command::Release { jobs: ids(&[makes]), holds: SYSTEM });
    stage_in(&mut cluster, makes);
    assert_eq!(cluster.state.buffers().len(), 1);
    let removes = cluster.submit("ada", with(job(1, 1), vec![staged(0, &[], &[], &["alpha"])]));
    begin(&mut cluster);
    cluster.answer(removes, code(3));
    assert_eq!(cluster.state.buffers().len(), 1);
    cluster.assert_replays();
}

/// SL-B-02, SL-B-08: a buffer of another user is neither created again nor removed; one's own is used as it is.
#[test]
fn a_buffer_of_another_user_is_left_alone() {
    let mut cluster = site();
    let makes = || with(job(1, 1), vec![staged(0, &["alpha"], &[], &[])]);
    let first = cluster.submit("ada", makes());
    stage_in(&mut cluster, first);
    let again = cluster.submit("ada", makes());
    stage_in(&mut cluster, again);
    assert!(is_open(&cluster, again));
    assert_eq!(cluster.state.buffers().next().map(|(_, buffer)| buffer.job), Some(first));
    for spec in [makes(), with(job(1, 1), vec![staged(0, &[], &[], &["alpha"])])] {
        let id = cluster.submit("bob", spec);
        begin(&mut cluster);
        assert!(matches!(cluster.reason(id), Some(WaitReason::StagingFailed(why)) if why.contains("to another user")));
        assert_eq!(cluster.seed(id), None, "the program is not asked");
    }
    assert_eq!(cluster.state.buffers().len(), 1);
    cluster.assert_replays();
}

/// SL-B-02: buffers of users who have left are removed by a job of an administrator.
#[test]
fn an_administrator_removes_the_buffer_of_anybody() {
    let mut cluster = site();
    let first = cluster.submit("ada", with(job(1, 1), vec![staged(0, &["alpha"], &[], &[])]));
    stage_in(&mut cluster, first);
    let removes = with(job(1, 1), vec![staged(0, &[], &[], &["alpha"])]);
    let (_, reply) = cluster.run(&root(), Command::Submit { jobs: vec![removes] }).expect("root has jobs too");
    let Reply::Submitted(ids) = reply else { panic!("{reply:?}") };
    stage_in(&mut cluster, ids[0]);
    assert!(is_open(&cluster, ids[0]));
    assert_eq!(cluster.state.buffers().len(), 0);
    cluster.assert_replays();
}

/// SL-B-02, SL-B-08: if two users create a buffer of the same name at the same time, the second has not created it; a
/// job that was to remove one that did not exist does not remove the one created meanwhile by another user. This holds
/// whether one command reports both or two.
#[test]
fn a_buffer_that_another_user_made_meanwhile_is_left_alone() {
    for (theirs, is_one_command) in [(&["alpha"][..], false), (&["alpha"], true), (&[], false), (&[], true)] {
        let mut cluster = site();
        let ada = cluster.submit("ada", with(job(1, 1), vec![staged(0, &["alpha"], &[], &[])]));
        let removes: &[&str] = if theirs.is_empty() { &["alpha"] } else { &[] };
        let bob = cluster.submit("bob", with(job(1, 1), vec![staged(0, theirs, &[], removes)]));
        begin(&mut cluster);
        let claimed = [ada, bob].map(|id| cluster.claim("r1", id));
        let report = |(call, attempt)| CallReport { call, attempt, outcome: CallOutcome::Called(Box::new(code(0))) };
        let reports = claimed.map(report).to_vec();
        let commands = if is_one_command { vec![reports] } else { reports.into_iter().map(|one| vec![one]).collect() };
        for reports in commands {
            cluster.ok(&runner("r1"), Command::ReportCalls { reports, has_others: false });
        }
        let owner = cluster.state.buffers().next().map(|(_, buffer)| buffer.owner.clone());
        assert_eq!((cluster.state.buffers().len(), owner.as_deref()), (1, Some("ada")));
        assert!(is_open(&cluster, ada) && !is_open(&cluster, bob));
        let why = cluster.reason(bob);
        assert!(matches!(&why, Some(WaitReason::StagingFailed(why)) if why.contains("to another user")), "{why:?}");
        assert_eq!(cluster.seed(bob), None);
        cluster.assert_replays();
    }
}

/// SL-B-01: a job that ends at the same moment is not staged in.
#[test]
fn a_job_whose_deadline_passes_is_not_staged_in() {
    let mut cluster = site();
    let mut spec = two();
    spec.components[0].deadline = Some(cluster.now.plus_seconds(10));
    let id = cluster.submit("ada", spec);
    cluster.pass(20);
    let missed = Event::JobFinished { job: id, outcome: Outcome::DeadlineMissed };
    assert_eq!(cluster.tick(), [missed]);
    assert_eq!((cluster.seed(id), cluster.tick()), (None, Vec::new()));
}

/// SL-B-01: nothing is staged for a job that something else keeps from starting.
#[test]
fn staging_begins_when_nothing_else_keeps_the_job_from_starting() {
    let mut cluster = site();
    let first = cluster.submit("ada", job(1, 1));
    let behind = JobSpec { types: two().types[..].to_vec(), ..after(DependencyKind::Ended, first) };
    let behind = with(behind, vec![staged(0, &[], &[], &[])]);
    let id = cluster.submit("ada", behind);
    assert_eq!((cluster.reason(id), cluster.state.next_timer()), (Some(WaitReason::Dependency(first)), None));
    cluster.run_through(first, 0);
    stage_in(&mut cluster, id);
    assert!(is_open(&cluster, id));
    let mut held = two();
    held.components[0].holds.user = true;
    let id = cluster.submit("ada", held);
    cluster.tick();
    assert_eq!(cluster.seed(id), None);
}

/// HPC-F-23: a cancel ends calls that wait for a runner at once, and those that a runner has once it has answered.
/// Anything that may have been staged in is staged out.
#[test]
fn what_was_begun_is_staged_out_whatever_became_of_the_job() {
    let mut cluster = site();
    let end = |cluster: &mut Cluster, id| {
        let ending = JobEnding::default();
        cluster.ok(&user("ada"), Command::EndJobs { jobs: ids(&[id]), ending });
    };
    let never_begun = cluster.submit("ada", two());
    end(&mut cluster, never_begun);
    assert_eq!(cluster.state.next_timer(), None);
    let waits = cluster.submit("ada", two());
    begin(&mut cluster);
    cluster.answer(waits, code(0));
    end(&mut cluster, waits);
    assert_eq!(cluster.outcome(waits), Some(Outcome::Cancelled));
    begin(&mut cluster);
    assert_eq!(call(&cluster, waits), Some((FilterKind::StageOut, 0)));
    let called = cluster.submit("ada", two());
    begin(&mut cluster);
    let known = cluster.claim("r1", called);
    end(&mut cluster, called);
    assert_eq!(cluster.outcome(called), None, "its runner is ending the call");
    let outcome = CallOutcome::Called(Box::new(ended(FilterExit::Signal(15))));
    cluster.report("r1", known, outcome);
    assert_eq!(cluster.outcome(called), Some(Outcome::Cancelled));
    begin(&mut cluster);
    assert_eq!(call(&cluster, called), Some((FilterKind::StageOut, 0)));
    // It fails for one component: the other is staged out nevertheless, with a warning.
    cluster.answer(called, saying("gone", code(1)));
    assert_eq!(call(&cluster, called), Some((FilterKind::StageOut, 1)));
    cluster.answer(called, code(0));
    assert_eq!((stage(&cluster, called), cluster.seed(called)), (Some(Stage::Out), None));
    assert_eq!(cluster.warnings(called), ["StageOutFailed"]);
    cluster.assert_replays();
}

/// SL-M-10: a job that is requeued while it runs keeps what is staged in; one that was over is staged in again.
#[test]
fn a_job_that_runs_again_has_what_it_needs() {
    let mut cluster = site();
    let id = cluster.submit("ada", two());
    stage_in(&mut cluster, id);
    let run = start(&mut cluster, id);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 });
    finish(&mut cluster, run);
    assert!(is_open(&cluster, id) && stage(&cluster, id) == Some(Stage::In));
    let run = start(&mut cluster, id);
    finish(&mut cluster, run);
    begin(&mut cluster);
    let requeue = Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 };
    cluster.refused(&user("ada"), requeue.clone(), RefusalCode::Conflict, "");
    cluster.answer(id, code(0));
    cluster.answer(id, code(0));
    cluster.ok(&user("ada"), requeue);
    assert_eq!(stage(&cluster, id), Some(Stage::Wanted));
    stage_in(&mut cluster, id);
    assert!(is_open(&cluster, id));
    cluster.assert_replays();
}

fn requeue(id: JobId) -> Command {
    Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 }
}

/// SL-B-01: what was begun is staged out before the job is queued again, even if staging out has not begun yet.
#[test]
fn a_job_is_not_queued_again_before_it_is_staged_out() {
    let mut cluster = site();
    let id = cluster.submit("ada", two());
    stage_in(&mut cluster, id);
    let run = start(&mut cluster, id);
    finish(&mut cluster, run);
    cluster.refused(&user("ada"), requeue(id), RefusalCode::Conflict, "still to be staged out");
    begin(&mut cluster);
    cluster.answer(id, code(0));
    cluster.answer(id, code(0));
    cluster.ok(&user("ada"), requeue(id));
    cluster.assert_replays();
}

/// SL-B-01: the staging program stays as long as it has something to stage out.
#[test]
fn the_program_is_not_removed_while_it_is_needed() {
    let mut cluster = site();
    let never_begun = cluster.submit("ada", two());
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[never_begun]) });
    let id = cluster.submit("ada", two());
    stage_in(&mut cluster, id);
    let run = start(&mut cluster, id);
    let without = || Command::Configure { change: Box::new(config().into()), keep_unnamed: false };
    cluster.refused(&root(), without(), RefusalCode::Conflict, "job 3 still has files to stage out");
    let mut other = with_program(config());
    other.staging.program = Some("/opt/other".into());
    cluster.ok(&root(), Command::Configure { change: Box::new(other.into()), keep_unnamed: false });
    finish(&mut cluster, run);
    cluster.refused(&root(), without(), RefusalCode::Conflict, "job 3 still has files to stage out");
    begin(&mut cluster);
    cluster.answer(id, code(0));
    cluster.answer(id, code(0));
    cluster.ok(&root(), without());
}

/// SL-B-01: an array is staged as a whole, so none of its tasks is queued again once the array has been staged out.
#[test]
fn a_task_is_not_queued_again_after_its_array_was_staged_out() {
    let mut cluster = site();
    let spec = with(array(muster_schemas::resources::IndexSet::from_range(0, 1), None), vec![staged(0, &[], &[], &[])]);
    let id = cluster.submit("ada", spec);
    stage_in(&mut cluster, id);
    let tasks = [0, 1].map(|index| JobId::task(id.number, index));
    cluster.run_through(tasks[0], 1);
    // The files are still there.
    cluster.ok(&user("ada"), requeue(tasks[0]));
    tasks.iter().for_each(|task| cluster.run_through(*task, 1));
    begin(&mut cluster);
    cluster.refused(&user("ada"), requeue(tasks[1]), RefusalCode::Conflict, "have been staged out");
    cluster.answer(id, code(0));
    cluster.refused(&user("ada"), requeue(tasks[1]), RefusalCode::Conflict, "have been staged out");
    cluster.assert_replays();
}

/// HPC-C-04: a job that is respecified while being configured is staged according to its last specification.
#[test]
fn a_job_that_becomes_another_is_staged_as_that() {
    let mut cluster = site();
    let intake = || Intake { is_configuring: true, ..Intake::default() };
    let (id, _) = cluster.intake(with(job(1, 1), vec![staged(0, &[], &[], &[])]), intake());
    assert_eq!(stage(&cluster, id), Some(Stage::Wanted));
    let configure = |spec: JobSpec| {
        let (spec, intake) = (Box::new(spec), Box::new(intake()));
        Command::ConfigureJob { job: id, made_from: None, spec, intake }
    };
    cluster.ok(&user("ada"), configure(job(1, 1)));
    assert_eq!(stage(&cluster, id), None);
    cluster.ok(&user("ada"), Command::EnterJob { job: id });
    assert!(is_open(&cluster, id));
}

/// A snapshot preserves all kinds of staging.
#[test]
fn staging_is_part_of_snapshots() {
    let mut cluster = site();
    let first = cluster.submit("ada", with(job(1, 1), vec![staged(0, &["alpha"], &[], &[])]));
    stage_in(&mut cluster, first);
    let second = cluster.submit("ada", two());
    begin(&mut cluster);
    cluster.answer(second, code(0));
    let third = cluster.submit("ada", two());
    let bytes = cluster.state.to_snapshot_bytes().expect("small");
    let read = State::from_snapshot_bytes(&bytes).expect("readable");
    assert_eq!((&read, read.digest()), (&cluster.state, cluster.state.digest()));
    assert_eq!(read.next_timer(), cluster.state.next_timer());
    assert_eq!(stage(&cluster, third), Some(Stage::Wanted));
}

/// Staging names only existing components, each once.
#[test]
fn what_cannot_be_staged_is_refused() {
    let mut cluster = site();
    for (spec, words) in [
        (with(job(1, 1), vec![staged(1, &[], &[], &[])]), "component 1 is named, the job has 1"),
        (with(job(1, 1), vec![staged(0, &[], &[], &[]), staged(0, &[], &[], &[])]), "named twice"),
        (with(job(1, 1), vec![ComponentStaging::default()]), "no directives"),
        (with(job(1, 1), vec![staged(0, &["a b"], &[], &[])]), "a b"),
    ] {
        cluster.refused(&user("ada"), Command::Submit { jobs: vec![spec] }, RefusalCode::Invalid, words);
    }
    let mut relative = with_program(config());
    relative.staging.program = Some("stage".into());
    let configure = Command::Configure { change: Box::new(relative.into()), keep_unnamed: false };
    cluster.refused(&root(), configure, RefusalCode::Invalid, "stage");
    // A configuration that does not name the program leaves it unchanged.
    cluster.ok(&root(), Command::Configure { change: Box::default(), keep_unnamed: true });
    assert!(cluster.state.staging_settings().program.is_some());
    cluster.ok(&root(), Command::Configure { change: Box::new(config().into()), keep_unnamed: false });
    assert_eq!(cluster.state.staging_settings().program, None);
}
