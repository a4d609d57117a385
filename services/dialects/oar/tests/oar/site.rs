//! Queues, containers that end, failures, targets, agents and settings.

use crate::support::{busy, ids, nodes, s, wish};
use jiff::tz::TimeZone;
use muster_oar::{
    accounting::{Books, Ended, Kind, counted},
    agent::{self, Admission, Answer, Believed, Host, Quit, Told},
    life::{
        connect::{self, Candidate},
        failure::{Failure, Suspected, consequence},
        launch, report, resubmission,
        state::State,
        target::Target,
    },
    options::{
        getopt,
        submission::{self, Array},
        types::{self, Reading},
    },
    order::Order,
    planning::{
        container::{self, AtEnd},
        dependency::Policy,
        domain::Domain,
        gantt::{Gantt, Placement},
        pass::Pass,
        queues::{Queue, Queues},
        reason::Reason,
        start::{self, Readiness},
        walltime,
    },
    power::{KeptOrders, Pending},
    request::site::Site,
    resources::{property::TYPE, setting, value::Value},
    show::{accounting, query, submitted},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// OAR-G-06: a job starts when its time has come and its resources are alive and released.
#[test]
fn a_job_starts_when_its_resources_are_there() {
    let planned = busy(1, "1-3", 100, 200);
    let readiness = |there: &'static [u32], now| start::readiness(&planned, &|id| there.contains(&id), now);
    assert_eq!(readiness(&[1, 2, 3], 99), Readiness::Early);
    assert_eq!(readiness(&[1, 2, 3], 100), Readiness::Ready);
    assert_eq!(readiness(&[2], 100), Readiness::Missing(BTreeSet::from([1, 3])));
}

/// OAR-G-09: a pass that has no time left says which jobs it left out.
#[test]
fn a_pass_without_time_leaves_jobs_out() {
    let table = nodes(4);
    let wishes = [1, 2, 3].map(|job| wish(&table, job, &["nodes=1"]));
    let mut left = 2;
    let mut pass = Pass { now: 0, table: &table, gantt: Gantt::default(), limits: &|_, _| Ok(()), limit_changes: &[] };
    let outcomes = pass.run_while(&wishes, &mut || {
        left -= 1;
        left >= 0
    });
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(outcomes[2], Err(Reason::OutOfTime));
    assert_eq!(pass.gantt.placements.len(), 2);
}

/// OAR-G-18: the placements that touch a span.
#[test]
fn placements_of_a_span() {
    let all = [busy(3, "1", 50, 60), busy(1, "1", 0, 10), busy(2, "2", 5, 20), busy(4, "1", 20, 30)];
    let jobs = |from, to| start::between(&all, from, to).iter().map(|one| one.job).collect::<Vec<_>>();
    assert_eq!(jobs(10, 50), [2, 4]);
    assert_eq!(jobs(9, 51), [1, 2, 4, 3]);
    assert_eq!(jobs(30, 50), Vec::<u64>::new());
}

/// OAR-T-15, OAR-T-16: when a container ends, waiting inner jobs are in Error, running ones go on or end.
#[test]
fn the_end_of_a_container() {
    let inside = |key: &str, placement| Placement { domain: Domain::Inside(key.to_owned()), ..placement };
    let running = [inside("42", busy(1, "1", 0, 9)), inside("43", busy(2, "1", 0, 9)), busy(3, "2", 0, 9)];
    let waiting = [inside("42", busy(4, "", 0, 0)), busy(5, "", 0, 0)];
    let left = container::at_end("42", &running, &waiting, AtEnd::default());
    assert_eq!((left.ended, left.in_error), (vec![], vec![4]));
    let ended = container::at_end("42", &running, &waiting, AtEnd::End);
    assert_eq!((ended.ended, ended.in_error), (vec![1], vec![4]));
}

/// OAR-Q-13: queues are added, removed, enabled and disabled; a disabled one plans nothing; OAR-J-19: all are disabled
/// after a failed script of the server; OAR-D-03: queues with quotas let dependents start at any end.
#[test]
fn queues_of_a_site() {
    let queue = |priority| Queue { priority, is_enabled: true, has_quotas: false, dependencies: None };
    let mut queues = Queues::default();
    for (name, priority) in [("default", 3), ("admin", 10), ("night", 3)] {
        assert_eq!(queues.add(name, queue(priority)), Ok(()));
    }
    assert_eq!(queues.add("default", queue(1)), Err("the queue default exists".to_owned()));
    assert!(queues.add("a b", queue(1)).is_err());
    assert_eq!(queues.planned(), ["admin", "default", "night"]);
    queues.enable("admin", false).expect("known");
    assert_eq!(queues.planned(), ["default", "night"]);
    assert!(queues.get("admin").is_ok());
    assert_eq!(queues.enable("x", true), Err("no queue is called 'x'".to_owned()));
    assert_eq!(queues.remove("night", true), Err("the queue night has jobs".to_owned()));
    assert_eq!(queues.remove("night", false), Ok(()));
    queues.disable_all();
    assert_eq!(queues.planned(), Vec::<&str>::new());
    assert_eq!(queue(1).dependency_policy(), Policy::Strict);
    let quotas = Queue { has_quotas: true, ..queue(1) };
    assert_eq!(quotas.dependency_policy(), Policy::Always);
    assert_eq!(Queue { dependencies: Some(Policy::ErrorPasses), ..quotas }.dependency_policy(), Policy::ErrorPasses);
}

/// OAR-J-17, OAR-J-18, OAR-J-19, OAR-J-20, OAR-S-04, OAR-S-07, OAR-X-06, OAR-T-61: what follows from each failure.
#[test]
fn what_follows_from_failures() {
    let told = |failure, is_on_front_host| {
        let one = consequence(failure, is_on_front_host);
        (one.state, one.suspected, one.may_be_made_anew, one.stops_queues)
    };
    let (error, terminated, resuming) = (Some(State::Error), Some(State::Terminated), Some(State::Resuming));
    for (failure, expected) in [
        (Failure::WorkingDirectory, (error, Suspected::None, false, false)),
        (Failure::OutputFiles, (error, Suspected::None, false, false)),
        (Failure::Prologue, (error, Suspected::First, true, false)),
        (Failure::Epilogue, (terminated, Suspected::First, false, false)),
        (Failure::ServerPrologue, (error, Suspected::None, false, true)),
        (Failure::ServerEpilogue, (error, Suspected::None, false, true)),
        (Failure::Preparation, (error, Suspected::AtFault, true, false)),
        (Failure::Cleanup, (terminated, Suspected::AtFault, false, false)),
        (Failure::AfterSuspend, (resuming, Suspected::None, false, false)),
        (Failure::BeforeResume, (error, Suspected::None, false, false)),
        (Failure::SuspendOnNode, (error, Suspected::AtFault, false, false)),
    ] {
        assert_eq!(told(failure, false), expected, "{failure:?}");
        assert_eq!(told(failure, true), (expected.0, Suspected::None, false, expected.3), "{failure:?}");
    }
}

/// OAR-T-50, OAR-T-60, OAR-T-70, OAR-R-19: where commands run, and what is done on nodes.
#[test]
fn where_commands_run() {
    let zone = TimeZone::UTC;
    let target = |words: &[&str]| {
        Target::of(&types::read(words, Reading { now: 0, zone: &zone, site_types: &[] }).expect("types"))
    };
    for (words, expected, touches, is_front, ends) in [
        (&["besteffort"][..], Target::FirstNode, true, false, true),
        (&["cosystem"], Target::CosystemHost, false, true, false),
        (&["deploy=standby"], Target::DeployHost, false, true, true),
        (&["noop", "deploy"], Target::Nowhere, false, false, false),
    ] {
        let found = target(words);
        assert_eq!(
            (found, found.touches_nodes(), found.is_front_host(), found.ends_with_its_nodes()),
            (expected, touches, is_front, ends)
        );
    }
}

/// OAR-J-12: which job a shell is opened in.
#[test]
fn a_shell_is_opened_in_a_running_job() {
    let job = |job, state| Candidate { job, state, has_right: true, is_own: true, is_noop: false };
    let chosen = |named, jobs: &[Candidate]| connect::choose(named, jobs).map_err(|(status, _)| status);
    let one = [job(1, State::Running), job(2, State::Waiting)];
    assert_eq!(chosen(None, &one), Ok(1));
    assert_eq!(chosen(Some(1), &one), Ok(1));
    assert_eq!(chosen(Some(2), &one), Err(20));
    assert_eq!(chosen(Some(3), &one), Err(20));
    assert_eq!(chosen(None, &one[1..]), Err(20));
    assert_eq!(chosen(None, &[job(1, State::Running), job(3, State::Running)]), Err(20));
    let foreign = Candidate { has_right: false, is_own: false, ..job(1, State::Running) };
    assert_eq!((chosen(Some(1), &[foreign]), chosen(None, &[foreign])), (Err(20), Err(20)));
    let noop = Candidate { is_noop: true, ..job(1, State::Running) };
    assert_eq!((chosen(Some(1), &[noop]), chosen(None, &[noop, job(2, State::Running)])), (Err(17), Ok(2)));
    let administrated = Candidate { is_own: false, ..job(1, State::Running) };
    assert_eq!((chosen(Some(1), &[administrated]), chosen(None, &[administrated])), (Ok(1), Err(20)));
}

/// OAR-J-06: the pauses between tries to report; OAR-S-24: when a job that does not finish may be closed.
#[test]
fn reports_are_tried_again() {
    let pauses: Vec<i64> = (1..60).map_while(report::pause).collect();
    assert_eq!(pauses[..7], [30, 60, 120, 240, 480, 900, 900]);
    assert_eq!((pauses.len(), report::pause(0), report::pause(49)), (48, None, None));
    assert_eq!((report::may_close(100, 400, 120, 60), report::may_close(100, 401, 120, 60)), (false, true));
}

/// OAR-J-21: the job that takes the place of another has the same request.
#[test]
fn a_replacement_has_the_same_request() {
    let zone = TimeZone::UTC;
    let line = "-l nodes=2 -l nodes=4 -p core>1 -t idempotent -n run --project bio --notify mail:a@b --checkpoint 30 -d /tmp -O out -E err --hold -a 9 --array 3 prog";
    let words: Vec<&str> = line.split(' ').collect();
    let reading = Reading { now: 0, zone: &zone, site_types: &[] };
    let old = submission::read(&getopt::read(&words).expect("words"), &Site::of(&s()), reading).expect("a job");
    let new = resubmission::request(&old);
    assert_eq!((new.is_held, new.array.clone(), new.dependencies.len()), (false, Array::Single, 0));
    let same = submission::Submission {
        is_held: old.is_held,
        array: old.array.clone(),
        dependencies: old.dependencies.clone(),
        ..new
    };
    assert_eq!(same, old);
}

/// OAR-C-03: what a submission prints.
#[test]
fn ids_are_printed_on_lines_of_their_own() {
    assert_eq!(submitted::lines(&[42], false), "OAR_JOB_ID=42\n");
    assert_eq!(submitted::lines(&[42, 43], true), "OAR_JOB_ID=42\nOAR_JOB_ID=43\nOAR_ARRAY_ID=42\n");
    assert_eq!(submitted::lines(&[42], true), "OAR_JOB_ID=42\nOAR_ARRAY_ID=42\n");
}

/// OAR-C-11: the settings of `oarnodesetting`.
#[test]
fn settings_of_nodes() {
    let table = s();
    let read = |text: &str| setting::property(text, &table);
    assert_eq!(read("core=7"), Ok(("core".to_owned(), Some(Value::Integer(7)))));
    assert_eq!(read("Switch = s=9"), Ok(("switch".to_owned(), Some(Value::text(" s=9")))));
    assert_eq!(read("cpu!"), Ok(("cpu".to_owned(), None)));
    for (text, expected) in [
        ("core=x", "core is an integer; 'x' is not"),
        ("cores=1", "no property is called 'cores'; is 'core' meant?"),
        ("core", "expected name=value or name!, found 'core'"),
        ("", "expected name=value or name!, found ''"),
    ] {
        assert_eq!(read(text), Err(expected.to_owned()), "{text}");
    }
    assert_eq!(
        (setting::switch("on"), setting::switch("OFF"), setting::switch("yes").is_err()),
        (Ok(true), Ok(false), true)
    );
}

/// OAR-A-07: only resources of type default count; OAR-A-08: windows of another size need a recomputation.
#[test]
fn resources_of_nodes_are_accounted() {
    let mut table = s();
    table.add(&[(TYPE, Value::text("licence"))]).expect("a licence");
    assert_eq!(counted(&table, &ids("1-4, 17, 99").into_iter().collect()), 4);
    let job = Ended {
        job: 1,
        user: "ann".to_owned(),
        project: String::new(),
        queue: "default".to_owned(),
        resources: 1,
        start: Some(0),
        stop: 100,
        walltime: 100,
    };
    let starts = |size| {
        let books = Books::recomputed(size, [&job]);
        books.rows().filter(|(key, ..)| key.kind == Kind::Used).map(|(key, ..)| key.window_start).collect::<Vec<_>>()
    };
    assert_eq!((starts(50), starts(100)), (vec![0, 50], vec![0]));
}

/// OAR-E-09: a node that is being woken is put to sleep when that is settled.
#[test]
fn a_sleep_order_waits_for_the_wake_up() {
    let pending = BTreeMap::from([("n1".to_owned(), Pending { ordered_at: 0, timeout: 900 })]);
    let mut kept = KeptOrders::default();
    assert_eq!((kept.ask("n2", &pending), kept.ask("n1", &pending)), (true, false));
    assert_eq!((kept.settle("n2"), kept.settle("n1"), kept.settle("n1")), (false, true, false));
}

/// OAR-K-03, OAR-K-04: how long a node is trusted, and which hosts get work.
#[test]
fn hosts_of_agents_are_admitted() {
    assert_eq!(agent::expiry(1000, agent::PERIOD), 1090);
    let known = |is_pulled| Host::Known { is_pulled };
    assert_eq!(agent::admit(known(true), false), Ok(Admission::Admitted));
    assert!(agent::admit(known(false), true).is_err());
    assert_eq!(agent::admit(Host::Unknown, true), Ok(Admission::Created));
    assert!(agent::admit(Host::Unknown, false).is_err());
}

/// OAR-K-02, OAR-K-06, OAR-K-09: what the question of an agent changes, and its answer.
#[test]
fn questions_of_agents_are_answered() {
    let believed = BTreeMap::from([
        (1, Believed::ToLaunch),
        (2, Believed::Running),
        (3, Believed::Running),
        (4, Believed::Running),
        (5, Believed::Running),
        (6, Believed::ToKill),
        (7, Believed::ToKill),
        (8, Believed::ToKill),
    ]);
    let told = BTreeMap::from([
        (2, Told::Running),
        (3, Told::Exited(3)),
        (4, Told::Signalled(9)),
        (6, Told::Running),
        (8, Told::Exited(0)),
        (99, Told::Running),
        (98, Told::Exited(1)),
    ]);
    let ended = BTreeMap::from([
        (3, (State::Terminated, Some(3))),
        (4, (State::Error, None)),
        (5, (State::Error, None)),
        (7, (State::Error, None)),
        (8, (State::Terminated, Some(0))),
    ]);
    assert_eq!(agent::answer(&believed, &told, false), Answer { launch: vec![1], kill: vec![6, 99], ended });
}

/// OAR-K-10: an agent that leaves gets no new job; its first signal lets jobs finish, the second ends them.
#[test]
fn an_agent_that_leaves_gets_no_new_job() {
    let believed = BTreeMap::from([(1, Believed::ToLaunch), (2, Believed::Running)]);
    let told = BTreeMap::from([(2, Told::Running)]);
    assert_eq!(agent::answer(&believed, &told, true), Answer::default());
    assert_eq!([0, 1, 2, 3].map(agent::quit), [None, Some(Quit::Finish), Some(Quit::End), Some(Quit::End)]);
}

/// OAR-K-08: archives are kept while they are used or needed.
#[test]
fn archives_are_kept_while_they_are_needed() {
    let used = BTreeMap::from([("a".to_owned(), 0), ("b".to_owned(), 0), ("c".to_owned(), 101)]);
    let needed = BTreeSet::from(["b".to_owned()]);
    assert_eq!(agent::removable(&used, &needed, 300, 300), Vec::<String>::new());
    assert_eq!(agent::removable(&used, &needed, 301, 300), ["a"]);
}

proptest! {
    /// OAR-R-12, OAR-C-11, OAR-C-14, OAR-G-16, OAR-A-06, OAR-X-02: any small text is read or refused.
    #[test]
    fn any_small_text_is_read_or_refused(text in prop_oneof![".{0,20}", "[a-z_]{0,8}[ =!,<>+-]{0,3}[0-9:a-zA-Z ,-]{0,12}"]) {
        let table = s();
        if let Err(mistake) = Order::read(&text, table.fields()) {
            prop_assert!(mistake.column <= text.chars().count() + 1);
        }
        let _ = setting::property(&text, &table);
        let _ = walltime::change(&text, 7200);
        let _ = accounting::span(&text, &TimeZone::UTC);
        let _ = launch::processors(&text);
        let _ = query::read(&text);
        let _ = Queues::default().add(&text, Queue { priority: 0, is_enabled: true, has_quotas: false, dependencies: None });
    }

    /// OAR-K-11: no entry of an archive leads out of the directory of the job.
    #[test]
    fn no_entry_leads_out_of_the_directory(path in "[a./\\\\]{0,12}|.{0,12}") {
        if let Some(parts) = agent::inside(&path) {
            prop_assert!(!parts.is_empty());
            prop_assert!(parts.iter().all(|part| !["", ".", ".."].contains(part) && !part.contains(['/', '\0', '\\'])));
        }
    }

    /// OAR-K-06: every job that is believed to run, and is not told of, is over; nobody is launched and killed at once.
    #[test]
    fn answers_are_consistent(believed in proptest::collection::btree_map(0..8_u64, 0..3_u8, 0..8), told in proptest::collection::btree_map(0..8_u64, 0..3_u8, 0..8), is_leaving: bool) {
        let believed: BTreeMap<u64, Believed> = believed.into_iter()
            .map(|(job, belief)| (job, [Believed::ToLaunch, Believed::Running, Believed::ToKill][usize::from(belief)])).collect();
        let told: BTreeMap<u64, Told> = told.into_iter()
            .map(|(job, state)| (job, [Told::Running, Told::Exited(1), Told::Signalled(9)][usize::from(state)])).collect();
        let answer = agent::answer(&believed, &told, is_leaving);
        for (job, belief) in &believed {
            prop_assert_eq!(answer.ended.contains_key(job), matches!((belief, told.get(job)),
                (_, Some(Told::Exited(_) | Told::Signalled(_))) | (Believed::Running | Believed::ToKill, None)));
        }
        prop_assert!(answer.launch.iter().all(|job| !answer.kill.contains(job) && !told.contains_key(job) && !is_leaving));
        prop_assert!(answer.kill.iter().all(|job| told.get(job) == Some(&Told::Running)));
    }
}

#[test]
fn entries_of_archives() {
    assert_eq!(agent::inside("a/./b//c"), Some(vec!["a", "b", "c"]));
    for path in ["", "/etc/passwd", "..", "a/../../b", "a/..", ".", "a\\..\\b", "a\0"] {
        assert_eq!(agent::inside(path), None, "{path}");
    }
}
