//! Bad state files.

use crate::support::{config, queue};
use muster_pbs_plan::{plan, state_file::StateFile};
use proptest::prelude::*;

fn error(text: &str) -> String {
    let planned = StateFile::read(text.as_bytes()).and_then(|state| plan(&config(""), &state));
    planned.map_or_else(|error| error.to_string(), |dry| panic!("{dry:?}"))
}

/// PBS-C-15, PBS-C-16.
#[test]
fn unreadable_files_are_told_with_the_position() {
    for (text, expected) in [
        ("{", "line 1, column 1: EOF while parsing an object"),
        ("{\n \"now\": 5,\n \"kues\": []}", "line 3, column 7: unknown field `kues`"),
        ("{\"now\": \"soon\"}", "line 1, column 14: invalid value: string \"soon\", expected seconds since 1970"),
        (
            "{\"now\": 5, \"server\": {\n\"resources_max\": {\"mem\": \"much\"}}}",
            "line 2, column 32: resource mem: expected a size such as 400mb, found `much`",
        ),
        ("{\"now\": 5, \"jobs\": [{\"id\": \"1\", \"state\": \"X\"}]}", "line 1, column 44: unknown variant `X`"),
    ] {
        let found = error(text);
        assert!(found.starts_with(expected), "{text}\n{found}");
    }
}

/// PBS-C-15, PBS-C-16.
#[test]
fn senseless_states_are_told_with_their_places() {
    let job = |more: &str| format!(r#"{{"id": "1", "queue": "work", "user": "ann", "state": "Q"{more}}}"#);
    let state = |queues: &str, jobs: &str| format!(r#"{{"now": 5, "queues": [{queues}], "jobs": [{jobs}]}}"#);
    let work = queue("work", "");
    for (text, expected) in [
        (state("", &job("")), "jobs[0].queue: there is no queue work"),
        (state(&work, &format!("{},{}", job(""), job(""))), "jobs[1].id: 1 stands twice"),
        (state(&format!("{work},{work}"), ""), "queues[1].name: work stands twice"),
        (state(r#"{"name": "q", "type": "other"}"#, ""), "queues[0].type: expected execution or route, found other"),
        (state(&work, &job(r#", "request": {"nodes": "2:"}"#)), "jobs[0].request: nodes: expected a property"),
        (state(&work, &job(r#", "request": {"nodes": "0"}"#)), "jobs[0].request: nodes: expected 1 to 100000 nodes"),
        (r#"{"now": 5, "tz": "Mars/Base"}"#.to_owned(), "tz: there is no time zone Mars/Base"),
    ] {
        let found = error(&text);
        assert!(found.starts_with(expected), "{text}\n{found}");
    }
}

proptest! {
    /// Whatever the bytes are, they are read or refused.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = StateFile::read(&bytes);
    }

    /// The same files give the same lines (PBS-C-12), and each waiting job has one line.
    #[test]
    fn plans_are_the_same_for_the_same_files(
        jobs in prop::collection::vec((0_usize..3, 0_usize..3, 0_u32..6, prop::option::of(0_u64..1000), 0_i64..500), 0..30),
        switches in prop::collection::vec(any::<bool>(), 5),
        sort in prop::sample::select(vec!["no_sort", "shortest_job_first", "high_priority_first", "fair_share"]),
    ) {
        let names = ["by_queue", "round_robin", "strict_fifo", "help_starving_jobs", "fair_share"];
        let mut text = format!("sort_by: {sort}\nmax_starve: 100\n");
        for (name, is_on) in names.iter().zip(&switches) {
            text.push_str(&format!("{name}: {is_on}\n"));
        }
        let queues: Vec<String> = ["A", "B", "ded"].iter().map(|name| queue(name, "")).collect();
        let job = |(number, (queue, user, cpus, cput, age)): (usize, &(usize, usize, u32, Option<u64>, i64))| {
            let cput = cput.map_or_else(String::new, |cput| format!(r#", "cput": {cput}"#));
            format!(
                r#"{{"id": {number}, "queue": "{}", "user": "{}", "state": "Q", "qtime": {}, "request": {{"ncpus": {cpus}{cput}}}}}"#,
                ["A", "B", "ded"][*queue], ["ann", "bob", "cat"][*user], 1000 - age,
            )
        };
        let listed: Vec<String> = jobs.iter().enumerate().map(job).collect();
        let state = format!(
            r#"{{"now": 1000, "server": {{"max_user_run": 4, "resources_available": {{"ncpus": 12}}}}, "queues": [{}], "jobs": [{}]}}"#,
            queues.join(","), listed.join(","),
        );
        let state = StateFile::read(state.as_bytes()).expect("a good state");
        let tables = config(&text);
        let first = plan(&tables, &state).expect("it makes sense");
        prop_assert_eq!(&plan(&tables, &state).expect("it makes sense"), &first);
        let mut told: Vec<&str> = first.lines.iter().filter_map(|line| line.split(' ').nth(2)).collect();
        told.sort_unstable();
        told.dedup();
        prop_assert_eq!((told.len(), first.lines.len()), (jobs.len(), jobs.len()));
    }
}
