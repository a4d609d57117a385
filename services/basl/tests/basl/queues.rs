//! `Sort`, `QueFilter`, `QueJobFind`.

use super::support::{Server, in_queue, job, owned, printed_on, queue, run};
use muster_basl::{Job, Snapshot};

fn snapshot() -> Snapshot {
    let with =
        |id: &str, priority: i64, mem: &str| Job { priority: Some(priority), ..owned(id, "ann", "Q", &[("mem", mem)]) };
    Snapshot {
        queues: vec![queue("a"), queue("b")],
        jobs: vec![
            in_queue("a", with("1", 5, "3mb")),
            in_queue("b", with("2", 1, "1gb")),
            in_queue("a", with("3", 5, "1kb")),
            in_queue("a", with("4", 9, "2000kb")),
            in_queue("a", with("5", 1, "10mb")),
        ],
        ..Snapshot::default()
    }
}

/// Helpers that programs of this file use.
const HELP: &str = r#"
Size memOf(Job j) { return(JobSizeResReqGet(j, "mem")); }
String ids(Set Job js) { Job j; String s; foreach(j in js) { s = s + JobIdGet(j); } return(s); }
Que named(String name) { Que q; foreach(q in ServerQueuesGet(AllServersLocalHostGet())) { if( QueNameGet(q) EQ name ) { return(q); } }
  return(NOQUE); }
"#;

fn shown(main: &str) -> Vec<String> {
    printed_on(&format!("{HELP}\n{main}"), &snapshot())
}

/// PBS-X-10: stable, in place, and kept by the getter until the cycle ends.
#[test]
fn a_sorted_set_stays_sorted_until_the_cycle_ends() {
    let main = "sched_main() { Server s; Set Job js; Set Job same; s = AllServersLocalHostGet(); js = ServerJobsGet(s);
        same = js; print(ids(ServerJobsGet(s)));
        print(Sort(js, JobPriorityGet, DESC)); print(ids(ServerJobsGet(s))); print(ids(same));
        Sort(js, JobPriorityGet, ASC); print(ids(js)); Sort(js, memOf, ASC); print(ids(js));
        Sort(js, JobIdGet, DESC); print(ids(js)); print(Sort(js, JobIdGet, 3)); print(ids(js));
        print(ids(QueJobsGet(named(\"a\")))); print(Sort(EMPTYSETJOB, JobIdGet, ASC)); }";
    let lines = ["12345", "1", "41325", "41325", "25134", "34152", "54321", "0", "54321", "1345", "1"];
    assert_eq!(shown(main), lines);
    // The next cycle has a new snapshot.
    let text = format!(
        "{HELP} sched_main() {{ Set Job js; js = ServerJobsGet(AllServersLocalHostGet()); print(ids(js)); Sort(js, JobIdGet, DESC); }}"
    );
    let mut machine = super::support::machine(&text);
    for _ in 0..2 {
        assert_eq!(super::support::cycle(&mut machine, &snapshot(), &mut Server::default()).printed, "12345\n");
    }
}

/// PBS-X-10: equal keys keep their order; floats, moments and strings are keys too.
#[test]
fn sorts_are_stable_for_every_kind_of_key() {
    let main = "Float share(Job j) { return(JobPriorityGet(j) / 2.0); }
        DateTime made(Job j) { if( JobPriorityGet(j) EQ 9 ) { return((08:00:00)); } return((09:00:00)); }
        String user(Job j) { return(JobEffectiveUserNameGet(j)); }
        sched_main() { Set Job js; js = ServerJobsGet(AllServersLocalHostGet());
        Sort(js, user, DESC); print(ids(js)); Sort(js, share, ASC); print(ids(js)); Sort(js, made, ASC); print(ids(js)); }";
    assert_eq!(shown(main), ["12345", "25134", "42513"]);
}

/// PBS-X-10: a filter gives a new queue and leaves the old one alone.
#[test]
fn a_filter_gives_a_new_queue() {
    let main = "sched_main() { Que a; Que f; Que g; a = named(\"a\"); f = QueFilter(a, JobPriorityGet, OP_GE, 5);
        print(ids(QueJobsGet(f))); print(QueNumJobsGet(f)); print(f EQ a); print(ids(QueJobsGet(a)));
        g = QueFilter(f, memOf, OP_LT, 2mb); print(ids(QueJobsGet(g))); print(QueNameGet(g));
        print(ids(QueJobsGet(QueFilter(a, JobIdGet, OP_NEQ, \"3\")))); print(QueFilter(NOQUE, JobIdGet, OP_EQ, \"3\"));
        print(QueNumJobsGet(QueFilter(a, JobPriorityGet, OP_GT, 100))); print(QueMaxRunJobsGet(f)); print(QueTypeGet(f)); }";
    assert_eq!(shown(main), ["134", "3", "0", "1345", "34", "QueFilterSize", "145", "NOQUE", "0", "0", "-1"]);
}

/// PBS-X-10: the first match, or the first of the largest or smallest, or none.
#[test]
fn a_search_gives_the_first() {
    let main = "sched_main() { Que a; Int least; a = named(\"a\"); least = OP_MIN;
        print(QueJobFind(a, JobPriorityGet, OP_EQ, 5)); print(QueJobFind(a, JobPriorityGet, OP_NEQ, 5));
        print(QueJobFind(a, JobPriorityGet, OP_LE, 1)); print(QueJobFind(a, JobPriorityGet, OP_GT, 9));
        print(QueJobFind(a, JobPriorityGet, OP_MAX)); print(QueJobFind(a, memOf, OP_MIN)); print(QueJobFind(a, memOf, OP_MAX));
        print(QueJobFind(a, JobPriorityGet, least)); print(QueJobFind(NOQUE, JobIdGet, OP_MAX));
        print(QueJobFind(a, JobIdGet, OP_GE, \"4\")); print(QueJobFind(a, JobEffectiveUserNameGet, OP_MAX)); }";
    assert_eq!(shown(main), ["1", "4", "5", "NOJOB", "4", "3", "5", "5", "NOJOB", "4", "1"]);
}

/// PBS-X-13: a comparison that is none, and a function that takes something else, are faults.
#[test]
fn keys_and_comparisons_in_the_wrong_state_are_faults() {
    let fault = |main: &str| {
        let outcome = run(&format!("{HELP}{main}"), &snapshot(), &mut Server::default());
        outcome.fault.expect("a fault").message
    };
    let wrong = "sched_main() { Int test; test = OP_MAX; QueJobFind(named(\"a\"), JobPriorityGet, test, 5); }";
    assert_eq!(fault(wrong), "6 is no comparison with a value, such as OP_EQ");
    let wrong = "sched_main() { Int test; QueJobFind(named(\"a\"), JobPriorityGet, test); }";
    assert_eq!(fault(wrong), "0 needs a value; without one it is OP_MAX or OP_MIN");
    let wrong = "Void by(Set Job js, Fun Int f) { Sort(js, f, ASC); } sched_main() { by(ServerJobsGet(AllServersLocalHostGet()), QueTypeGet); }";
    assert_eq!(fault(wrong), "a key function takes one Job");
    let wrong = "Int two(Int a, Int b) { return(a); } Int by(Fun Int f) { return(f(1)); } sched_main() { by(two); }";
    assert_eq!(fault(wrong), "'two' does not take these arguments");
    let wrong = "Int by(Fun Int f) { return(f(NOQUE)); } sched_main() { by(JobStateGet); }";
    assert_eq!(fault(wrong), "a predefined function does not take these arguments");
}

/// Functions that are parameters are called, also predefined ones.
#[test]
fn functions_are_passed_on() {
    let main =
        "Int by(Fun Int f, Job j) { return(f(j) * 2); } String text(Fun String f, Job j) { return(f(j) + \"!\"); }
        Void sorted(Set Job js, Fun Int f) { Sort(js, f, DESC); print(ids(js)); }
        sched_main() { Job j; Set Job js; js = ServerJobsGet(AllServersLocalHostGet()); sorted(js, JobPriorityGet);
        foreach(j in js) { print(by(JobPriorityGet, j)); print(text(JobIdGet, j)); break; } }";
    assert_eq!(shown(main), ["41325", "18", "4!"]);
}

/// A set can be sorted while it is walked through, and in its own key function.
#[test]
fn sets_can_be_sorted_while_they_are_in_use() {
    let main = "Set Job all; Int key(Job j) { Sort(all, JobIdGet, DESC); return(JobPriorityGet(j)); }
        sched_main() { Job j; all = ServerJobsGet(AllServersLocalHostGet());
        foreach(j in all) { Sort(all, JobIdGet, DESC); print(j); } Sort(all, key, ASC); print(ids(all)); }";
    assert_eq!(shown(main), ["1", "4", "3", "2", "1", "52314"]);
}

/// PBS-X-05: the variable of `foreach` holds the element after a `break`, and nothing after the last one.
#[test]
fn the_variable_of_foreach_can_be_a_global() {
    let main = "Job g; Void show() { print(g); } sched_main() { Job j; Set Job js; js = QueJobsGet(named(\"a\"));
        foreach(g in js) { show(); if( JobPriorityGet(g) EQ 9 ) { break; } } show(); foreach(g in js) { } show();
        foreach(j in js) { break; } print(j); foreach(j in js) { continue; } print(j); }";
    assert_eq!(shown(main), ["1", "3", "4", "4", "NOJOB", "1", "NOJOB"]);
}

#[test]
fn jobs_without_a_known_queue_are_the_server_s() {
    let mut snapshot = snapshot();
    snapshot.jobs.push(in_queue("gone", job("6", "Q")));
    let main =
        "sched_main() { print(ids(ServerJobsGet(AllServersLocalHostGet()))); print(QueNumJobsGet(named(\"a\"))); }";
    assert_eq!(printed_on(&format!("{HELP}{main}"), &snapshot), ["123456", "4"]);
}
