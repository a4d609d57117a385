//! Activation filters of queued jobs: the effect of each verdict on the job, its candidates and the queue.

use super::support::*;
use crate::support::*;
use muster_domain::jobs::Finished;
use muster_schemas::{
    JobId,
    command::Command,
    event::{Event, HoldBy, JobChange},
    filter::{ActivationOrdering, FilterExit, FilterReport, FilterSettings},
    job::{Outcome, WaitReason},
    plan::StartFacts,
};

/// The setup of X-5: four nodes with two cores each, J1 to J3 in the queue, J1 with its own filter.
struct Example {
    cluster: Cluster,
    /// J1 to J3, then J4 once it is submitted.
    jobs: Vec<JobId>,
    /// The size that J1 is offered: its maximum in queued mode, its minimum in balanced mode.
    most: u64,
    zero: muster_schemas::Timestamp,
}

const NORMAL: i64 = 2000;

impl Example {
    fn new(most: u64) -> Self {
        let mut cluster = cluster(4, 2);
        cluster.set_template("t", &[], &[filter("licences")]);
        let j1 = cluster.queue("t", cores(2, 4, NORMAL));
        let j2 = cluster.submit("ada", cores(2, 2, NORMAL));
        let j3 = cluster.submit("ada", cores(2, 2, NORMAL - 1000));
        let zero = cluster.now;
        let mut example = Self { cluster, jobs: vec![j1, j2, j3], most, zero };
        example.plan();
        example
    }

    fn at(&mut self, seconds: i64) {
        self.cluster.now = self.zero.plus_seconds(seconds);
        self.cluster.tick();
        if seconds >= 5 && self.jobs.len() == 3 {
            let j4 = self.cluster.submit("ada", cores(2, 2, NORMAL + 1000));
            self.jobs.push(j4);
        }
        self.plan();
    }

    /// The planner's proposal in queued mode without backfill and preemption: the queue in order, while jobs fit.
    fn plan(&mut self) {
        let state = &self.cluster.state;
        let mut order: Vec<JobId> = state.waiting().map(|waiting| waiting.job.id).collect();
        order.sort_by_key(|id| state.job(*id).map(|job| (-job.lead().priority, job.queued, job.id)));
        // Idle resources are reserved for the first waiting job; resources kept for a job are not idle.
        let mut is_reserved = false;
        for (at, id) in order.into_iter().enumerate() {
            let state = &self.cluster.state;
            let Some(job) = state.job(id) else { continue };
            let refusal = job.filters.as_ref().and_then(|filtering| filtering.refusal.as_ref());
            let waits = refusal.is_some_and(|refusal| self.cluster.now < refusal.ask_again);
            let held_up = state.judged_priority().is_some_and(|judged| job.lead().priority <= judged);
            if waits || held_up || state.blocked_by(job).is_some() {
                continue;
            }
            let wanted = if id == self.jobs[0] { self.most } else { 2 };
            let placement = self.cluster.free(Some(id), wanted);
            let count: u64 = placement.shares().map(|share| share.cores.len()).sum();
            if count < 2 || is_reserved && self.cluster.kept(id) == 0 {
                is_reserved = true;
                continue;
            }
            let facts = StartFacts { index: at as u64 + 1, ..facts(id, count) };
            self.cluster.offer(id, placement, facts);
        }
    }

    fn answer(&mut self, report: FilterReport) -> Vec<Event> {
        let events = self.cluster.answer(self.jobs[0], report);
        self.plan();
        events
    }

    /// The status of each job: the cores on which it runs, or why it waits.
    fn row(&self) -> Vec<String> {
        let stand = |id: &JobId| {
            let cores = self.cluster.running_on(*id);
            match self.cluster.reason(*id) {
                _ if cores > 0 => format!("runs on {cores}"),
                Some(WaitReason::ActivationFilter(_)) => format!("filter, {} kept", self.cluster.kept(*id)),
                Some(WaitReason::BlockedByJob(by)) => format!("blocked by {by}"),
                Some(WaitReason::HeldUntil { until, by: HoldBy::Filter }) => {
                    format!("held to {}", until.micros_since(self.zero) / 1_000_000)
                }
                Some(_) => "waits".into(),
                None => self.cluster.outcome(*id).map_or_else(|| "?".into(), |outcome| outcome.word().into()),
            }
        };
        self.jobs.iter().map(stand).collect()
    }

    /// The first second from `from` on at which J1's filter is asked again.
    fn asked_again(&mut self, from: i64) -> i64 {
        let asked = (from..from + 1000).find(|second| {
            self.at(*second);
            self.cluster.asked(self.jobs[0]).is_some_and(|asked| asked.contains(" filter "))
        });
        asked.expect("it is asked again")
    }
}

/// X-5, first lines (HPC-F-30, F-61, F-82)
#[test]
fn the_filter_is_offered_all_that_the_job_can_use_and_holds_up_jobs_of_its_priority_and_below() {
    let mut example = Example::new(4);
    assert_eq!(example.cluster.asked(example.jobs[0]).as_deref(), Some("licences filter 4 1 false 4"));
    assert_eq!(example.row(), ["waits", "waits", "waits"]);
    assert_eq!(example.cluster.kept(example.jobs[0]), 4, "set aside");
    let reason = example.cluster.refused_start(example.jobs[1], 2);
    assert!(reason.contains("have not answered yet"), "{reason}");
    let behind = WaitReason::BehindJob(example.jobs[0]);
    assert_eq!(example.cluster.reason(example.jobs[1]), Some(behind), "HPC-J-26: it is told whom it waits for");
    example.at(5);
    assert_eq!(example.row(), ["waits", "waits", "waits", "runs on 2"], "a higher priority starts");
}

/// X-5, verdict 0 (HPC-F-30)
#[test]
fn verdict_0_starts_the_job_on_the_candidates() {
    let mut example = Example::new(4);
    example.at(1);
    let events = example.answer(code(0));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_passed", "job.allocated"]);
    assert_eq!(example.row(), ["runs on 4", "runs on 2", "runs on 2"]);
    example.at(5);
    assert_eq!(example.row()[3], "waits");
    example.cluster.assert_replays();
}

/// X-5, verdict 1 (HPC-F-30, F-31, F-32, F-34, J-26) (HPC-F-31).
#[test]
fn verdict_1_blocks_jobs_of_equal_and_lower_priority() {
    let mut example = Example::new(4);
    let j1 = example.jobs[0];
    example.at(1);
    let events = example.answer(code(1));
    assert_eq!(words(&events)[..3], ["filter.verdict", "filter.chain_failed", "queue.blocked"]);
    let blocked = format!("blocked by {j1}");
    assert_eq!(example.row(), ["filter, 0 kept", &blocked, &blocked]);
    example.at(5);
    assert_eq!(example.row(), ["filter, 0 kept", &blocked, &blocked, "runs on 2"]);
    assert_eq!(example.asked_again(6), 11, "every 10 s");
    let events = example.answer(code(1));
    assert!(!words(&events).contains(&"queue.blocked".into()), "it is already: {events:?}");
    assert_eq!(example.asked_again(12), 21);
    let events = example.answer(code(2));
    assert!(words(&events).contains(&"queue.unblocked".into()), "{events:?}");
    assert_eq!(example.row()[..2], ["filter, 4 kept", "runs on 2"]);
    example.cluster.assert_replays();
}

/// X-5, verdict 2 (HPC-F-30, F-35, F-36)
#[test]
fn verdict_2_keeps_the_candidates_and_the_queue_goes_on() {
    let mut example = Example::new(4);
    example.at(1);
    let events = example.answer(code(2));
    assert_eq!(words(&events)[..3], ["filter.verdict", "filter.chain_failed", "resources.reserved"]);
    assert_eq!(example.row(), ["filter, 4 kept", "runs on 2", "runs on 2"]);
    example.at(5);
    assert_eq!(example.row()[3], "waits", "whatever its priority");
    assert_eq!(example.asked_again(6), 11);
    assert_eq!(example.cluster.asked(example.jobs[0]).as_deref(), Some("licences filter 4 2 false 4"));
    let events = example.answer(code(0));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_passed", "job.allocated"]);
    assert_eq!(example.row()[0], "runs on 4");
    example.cluster.assert_replays();
}

/// X-5, verdict 2 in balanced mode (HPC-F-35)
#[test]
fn verdict_2_on_the_least_size_keeps_the_least_size() {
    let mut example = Example::new(2);
    example.at(1);
    example.answer(code(2));
    example.at(5);
    assert_eq!(example.row(), ["filter, 2 kept", "runs on 2", "runs on 2", "runs on 2"]);
    assert_eq!(example.asked_again(6), 11);
}

/// X-5, verdict 3 (HPC-F-30, H-01, H-03, H-05)
#[test]
fn verdict_3_holds_the_job() {
    let mut example = Example::new(4);
    example.at(1);
    let events = example.answer(code(3));
    assert_eq!(words(&events)[..3], ["filter.verdict", "filter.chain_failed", "job.held"]);
    assert_eq!(example.row(), ["held to 901", "runs on 2", "runs on 2"]);
    assert_eq!(example.cluster.kept(example.jobs[0]), 0);
    example.at(5);
    assert_eq!(example.row()[3], "runs on 2");
    let others = example.jobs[1..].to_vec();
    for job in others {
        example.cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[job]) });
        end_all(&mut example.cluster, job);
    }
    assert_eq!(example.asked_again(890), 901);
    assert!(example.cluster.asked(example.jobs[0]).is_some_and(|asked| asked.ends_with(" 4")), "with count 4");
}

fn end_all(cluster: &mut Cluster, job: JobId) {
    let Some(run) = cluster.run_of(job) else { return };
    let nodes: Vec<String> = cluster
        .state
        .run(run)
        .into_iter()
        .flat_map(|run| run.nodes().collect::<Vec<_>>())
        .map(|node| cluster.state.node_name(node).into_owned())
        .collect();
    for node in nodes {
        cluster.end(run, &node, muster_schemas::job::ExitStatus::Signal(15));
    }
}

/// X-5, verdict 4 (HPC-F-30, E-10)
#[test]
fn verdict_4_fails_the_job() {
    let mut example = Example::new(4);
    example.at(1);
    let events = example.answer(code(4));
    assert_eq!(words(&events)[..3], ["filter.verdict", "filter.chain_failed", "job.finished"]);
    let text = "[FailedByActivationFilter] the job was failed by activation filter 'licences'";
    assert_eq!(example.cluster.outcome(example.jobs[0]), Some(Outcome::Refused(text.into())));
    example.at(5);
    assert_eq!(example.row(), ["refused", "runs on 2", "runs on 2", "runs on 2"]);
    let finished: Option<&Finished> = example.cluster.state.job(example.jobs[0]).and_then(|job| job.finished());
    assert!(finished.is_some());
}

/// X-5, verdict 5 (HPC-F-30)
#[test]
fn a_code_without_a_meaning_counts_as_2_with_a_warning() {
    for exit in [FilterExit::Code(5), FilterExit::Code(255), FilterExit::Signal(9)] {
        let mut example = Example::new(4);
        example.at(1);
        example.answer(ended(exit));
        example.at(5);
        assert_eq!(example.row(), ["filter, 4 kept", "runs on 2", "runs on 2", "waits"]);
        assert_eq!(example.cluster.warnings(example.jobs[0]), ["UndefinedFilterExitCode"]);
    }
}

/// X-5, timed out (HPC-F-30)
#[test]
fn a_time_out_counts_as_2_from_then_on() {
    let mut example = Example::new(4);
    example.at(5);
    assert_eq!(example.row(), ["waits", "waits", "waits", "runs on 2"]);
    example.at(15);
    example.answer(ended(FilterExit::TimedOut));
    assert_eq!(example.row(), ["filter, 4 kept", "runs on 2", "waits", "runs on 2"]);
    assert_eq!(example.cluster.warnings(example.jobs[0]), ["ActivationFilterTimedOut"]);
    assert_eq!(example.asked_again(16), 25);
}

/// X-5, not found (HPC-F-30)
#[test]
fn a_program_that_is_not_there_counts_as_2() {
    let mut example = Example::new(4);
    example.answer(ended(FilterExit::NotFound("/opt/filters/licences".into())));
    assert_eq!(example.row(), ["filter, 4 kept", "runs on 2", "runs on 2"]);
    assert_eq!(example.cluster.warnings(example.jobs[0]), ["ActivationFilterNotFound"]);
    example.at(5);
    assert_eq!(example.row()[3], "waits");
    assert_eq!(example.asked_again(6), 10);
}

/// HPC-F-83
#[test]
fn relaxed_ordering_holds_up_nobody() {
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("licences")]);
    cluster.set_filters(FilterSettings { ordering: ActivationOrdering::Relaxed, ..FilterSettings::default() });
    let asked = cluster.queue("t", cores(2, 4, NORMAL));
    let other = cluster.submit("ada", cores(2, 2, NORMAL));
    cluster.offer_cores(asked, 4);
    cluster.offer_cores(other, 2);
    assert_eq!(cluster.running_on(other), 2);
    let last = cluster.submit("ada", cores(2, 2, NORMAL));
    cluster.answer(asked, code(1));
    assert!(cluster.refused_start(last, 2).contains("keeps it from starting"), "from the recording on");
}

/// HPC-F-31, HPC-F-83: a job of the blocker's priority or below, whose own filters were being asked when the block
/// came, does not start if they then say yes; one above does.
#[test]
fn a_yes_that_comes_after_a_block_starts_nobody_of_its_priority_or_below() {
    for (priority, starts) in [(NORMAL + 1, true), (NORMAL, false), (NORMAL - 1, false)] {
        let mut cluster = cluster(4, 2);
        cluster.set_template("t", &[], &[filter("licences")]);
        cluster.set_filters(FilterSettings { ordering: ActivationOrdering::Relaxed, ..FilterSettings::default() });
        let blocker = cluster.queue("t", cores(2, 2, NORMAL));
        let other = cluster.queue("t", cores(2, 2, priority));
        cluster.offer_cores(blocker, 2);
        cluster.offer_cores(other, 2);
        cluster.answer(blocker, code(1));
        cluster.answer(other, code(0));
        assert_eq!(cluster.running_on(other), if starts { 2 } else { 0 }, "{priority}");
        let asked = cluster.asked(other);
        assert_eq!(asked.is_some_and(|asked| asked.starts_with("licences revert")), !starts, "{priority}");
        cluster.assert_replays();
    }
}

/// HPC-F-32
#[test]
fn a_block_ends_with_its_job_and_moves_with_its_priority() {
    let blocked = |priority: i64| {
        let mut cluster = cluster(4, 2);
        cluster.set_template("t", &[], &[filter("licences")]);
        let blocker = cluster.queue("t", cores(2, 4, NORMAL));
        let other = cluster.submit("ada", cores(2, 2, priority));
        cluster.offer_cores(blocker, 4);
        cluster.answer(blocker, code(1));
        (cluster, blocker, other)
    };
    let hold = |job| Command::Hold {
        jobs: ids(&[job]),
        holds: muster_schemas::job::Holds { user: true, ..Default::default() },
        reason: String::new(),
    };
    let ends = [
        |job| Command::Cancel { jobs: ids(&[job]) },
        hold,
        |job| Command::HoldUntil {
            jobs: ids(&[job]),
            until: Some(muster_schemas::Timestamp::from_unix_seconds(1_000_900)),
        },
    ];
    for end in ends {
        let (mut cluster, blocker, other) = blocked(NORMAL);
        assert_eq!(cluster.reason(other), Some(WaitReason::BlockedByJob(blocker)));
        let events = cluster.ok(&user("ada"), end(blocker));
        assert!(words(&events).contains(&"queue.unblocked".into()), "{events:?}");
        cluster.offer_cores(other, 2);
        cluster.assert_replays();
    }
    let (mut cluster, blocker, other) = blocked(NORMAL);
    let change = JobChange { priority: Some(NORMAL - 500), ..JobChange::default() };
    let events = cluster.ok(&root(), Command::Modify { jobs: ids(&[blocker]), change });
    assert_eq!(words(&events), ["job.modified", "queue.blocked"]);
    cluster.offer_cores(other, 2);
    assert_eq!(cluster.state.queue_block(), Some((blocker, NORMAL - 500)));
}

/// Queues a job of two to four cores whose filter keeps two for it.
fn keep_two_cores(cluster: &mut Cluster) -> JobId {
    let job = cluster.queue("t", cores(2, 4, NORMAL));
    cluster.offer_cores(job, 2);
    cluster.answer(job, code(2));
    job
}

/// HPC-F-35
#[test]
fn what_is_kept_grows_and_ends_with_a_hold_a_cancel_or_another_size() {
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("licences")]);
    let first = cluster.submit("ada", cores(6, 6, NORMAL));
    cluster.offer_cores(first, 6);
    let kept = keep_two_cores(&mut cluster);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[first]) });
    end_all(&mut cluster, first);
    let placement = cluster.free(Some(kept), 4);
    let plan = muster_schemas::plan::ProposedPlan {
        reserved: vec![muster_schemas::command::Start { job: kept, placement }],
        ..Default::default()
    };
    let events = cluster.ok(&muster_schemas::event::Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    assert_eq!(words(&events), ["resources.reserved", "plan.made"]);
    assert_eq!(cluster.kept(kept), 4);
    let change =
        JobChange { alternatives: Some(cores(2, 3, 0).components.remove(0).alternatives), ..JobChange::default() };
    let events = cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[kept]), change });
    assert_eq!(words(&events), ["resources.released", "job.modified"]);
    assert_eq!(cluster.kept(kept), 0);
    cluster.assert_replays();
}

/// HPC-F-35: what is kept is kept again when a filter refuses, so no other job may have it while the filter is asked.
#[test]
fn an_offer_includes_what_is_kept_for_the_job() {
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("licences")]);
    let kept = keep_two_cores(&mut cluster);
    assert_eq!(cluster.kept(kept), 2);
    cluster.pass(600);
    let elsewhere = cluster.free(None, 2);
    let plan = muster_schemas::plan::ProposedPlan {
        starts: vec![muster_schemas::command::Start { job: kept, placement: elsewhere }],
        ..Default::default()
    };
    match cluster.run(&muster_schemas::event::Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }) {
        Ok((_, muster_schemas::command::Reply::Planned(refused))) => {
            assert_eq!(refused[0].reason, "the placement does not include what is already kept for it");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(cluster.kept(kept), 2);
    cluster.offer_cores(kept, 3);
    cluster.answer(kept, code(2));
    assert_eq!(cluster.kept(kept), 3);
    cluster.assert_replays();
}

/// SL-C-37: a job with kept resources and a suspended run do not wait for each other.
#[test]
fn nothing_is_kept_of_what_a_run_waits_for_that_is_to_go_on() {
    let mut cluster = cluster(1, 4);
    cluster.set_template("t", &[], &[filter("licences")]);
    let long = cluster.submit("ada", cores(4, 4, NORMAL));
    cluster.offer_cores(long, 4);
    let run = cluster.run_of(long).expect("it has started");
    cluster.ok(&executor("node1"), Command::NodeStarted { part: cluster.part(run, "node1") });
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(&[long]) });
    let [kept, judged] = [2, 1].map(|least| cluster.queue("t", cores(least, 4, NORMAL)));
    cluster.offer_cores(kept, 2);
    cluster.answer(kept, code(2));
    cluster.offer_cores(judged, 1);
    assert_eq!((cluster.kept(kept), cluster.kept(judged)), (2, 1));
    cluster.ok(&user("oper"), Command::Resume { jobs: ids(&[long]) });
    assert_eq!(words(&cluster.tick()), ["resources.released"]);
    assert_eq!((cluster.kept(kept), cluster.kept(judged)), (0, 1), "who is asked about may start");
    assert!(cluster.tick().is_empty());
    cluster.answer(judged, code(2));
    assert_eq!(words(&cluster.tick()), ["resources.released"]);
    assert_eq!(cluster.tick(), [Event::JobResumed { job: long, run }]);
    assert!([kept, judged].iter().all(|id| cluster.is_waiting(*id)));
    cluster.assert_replays();
}

/// HPC-F-39
#[test]
fn a_start_that_cannot_be_made_after_verdict_0_is_taken_back_and_offered_anew() {
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("A"), filter("B")]);
    let id = cluster.queue("t", cores(2, 2, NORMAL));
    cluster.offer_cores(id, 2);
    cluster.answer(id, code(0));
    cluster.ok(&root(), Command::DrainNodes { nodes: vec!["node1".into()], reason: "fan".into(), is_down: false });
    assert_eq!(cluster.kept(id), 0, "what is offered there is of no use");
    let events = cluster.answer(id, code(0));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_failed"]);
    assert_eq!(cluster.asked(id).as_deref(), Some("B revert 4 1 false 2"));
    cluster.answer(id, code(0));
    cluster.answer(id, code(0));
    assert!(cluster.is_waiting(id));
    cluster.ok(&root(), Command::ResumeNodes { nodes: vec!["node1".into()] });
    cluster.offer_cores(id, 2);
    assert_eq!(cluster.asked(id).as_deref(), Some("A filter 4 1 false 2"), "at once, without the retry interval");
    cluster.assert_replays();
}

/// HPC-F-37, HPC-B-13, HPC-B-15
#[test]
fn in_a_backfill_attempt_1_and_2_mean_not_now_and_a_late_verdict_0_starts_nothing() {
    for (answer, expected) in [(code(1), 0), (code(2), 0), (ended(FilterExit::TimedOut), 0), (code(0), 2)] {
        let mut cluster = cluster(4, 2);
        cluster.set_template("t", &[], &[filter("A")]);
        let id = cluster.queue("t", cores(2, 2, NORMAL));
        let other = cluster.submit("ada", cores(2, 2, NORMAL));
        let latest_start = Some(cluster.now.plus_seconds(20));
        let backfill = StartFacts { backfill: true, latest_start, ..facts(id, 2) };
        let placement = cluster.free(None, 2);
        cluster.offer(id, placement, backfill);
        assert_eq!(cluster.asked(id).as_deref(), Some("A filter 4 1 true 2"));
        cluster.offer_cores(other, 2);
        let events = cluster.answer(id, answer);
        assert_eq!(cluster.running_on(id), expected, "{events:?}");
        assert_eq!((cluster.kept(id), cluster.state.queue_block()), (0, None));
        if expected > 0 {
            assert_eq!(words(&events).last().map(String::as_str), Some("job.backfilled"));
        }
    }
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("A")]);
    let id = cluster.queue("t", cores(2, 2, NORMAL));
    let backfill = StartFacts { backfill: true, latest_start: Some(cluster.now.plus_seconds(5)), ..facts(id, 2) };
    let placement = cluster.free(None, 2);
    cluster.offer(id, placement, backfill);
    cluster.pass(6);
    cluster.answer(id, code(0));
    assert_eq!(cluster.running_on(id), 0);
    assert_eq!(cluster.asked(id).as_deref(), Some("A revert 4 1 true 2"));
}

/// HPC-F-38, HPC-F-18
#[test]
fn the_filter_sees_the_job_as_checked_and_those_of_the_template_named_then() {
    let mut cluster = cluster(4, 2);
    cluster.set_template("old", &[], &[filter("O")]);
    cluster.set_template("new", &[], &[filter("N")]);
    let spec = cores(2, 2, NORMAL);
    let (id, _) = cluster.describe("old", spec.clone());
    let document = Some(muster_schemas::filter::JobDocument::xml(b"effective".as_slice()));
    let validated =
        muster_schemas::event::Validated { template: Some("new".into()), spec, document, ..Default::default() };
    cluster.pass_check_as(id, validated);
    cluster.offer_cores(id, 2);
    assert!(cluster.asked(id).is_some_and(|asked| asked.starts_with("N filter")));
    let seed = cluster.seed(id).expect("it is outstanding");
    assert!(matches!(seed.document, muster_domain::filters::calls::DocumentSeed::Validated(_)));
    assert_eq!((seed.state, seed.is_entering), (muster_schemas::job::JobState::Queued, false));
}

/// HPC-F-02: tasks of arrays are judged one by one.
#[test]
fn a_task_of_an_array_is_judged_by_itself() {
    let mut cluster = cluster(4, 2);
    cluster.set_filters(FilterSettings { activation: Some(exec("C")), ..FilterSettings::default() });
    let whole = cluster.submit("ada", array(muster_schemas::resources::IndexSet::first_n(3), Some(1)));
    let task = JobId::task(whole.number, 0);
    cluster.offer_cores(task, 1);
    assert!(cluster.refused_start(JobId::task(whole.number, 1), 1).contains("array limit"), "one at a time");
    cluster.answer(task, code(0));
    assert_eq!(cluster.running_on(task), 1);
    cluster.assert_replays();
}
