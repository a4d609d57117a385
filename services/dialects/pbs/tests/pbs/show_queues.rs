//! What `qstat` prints about queues and servers.

use crate::support::golden;
use jiff::tz::TimeZone;
use muster_pbs::{
    flavour::Flavour::{self, PbsPro, Torque},
    show::{Counts, ServerFacts, ServerState, Status, of_queue, of_server, queue_limits, queues, servers, text},
};
use muster_schemas::{cluster::QueueSpec, job::JobState, views::QueueView};

fn all_queues(flavour: Flavour) -> Vec<Status> {
    let batch = QueueSpec {
        name: "batch".into(),
        max_walltime_seconds: Some(36_000),
        default_walltime_seconds: Some(3_600),
        max_running_jobs: Some(64),
        max_jobs: Some(1_000),
        ..QueueSpec::default()
    };
    let long = QueueSpec {
        name: "a-queue-with-a-long-name".into(),
        enabled: false,
        started: false,
        users: vec!["ann".into(), "bob".into()],
        ..QueueSpec::default()
    };
    let view = |spec: QueueSpec, queued, (held, held_until), running| QueueView {
        spec,
        default: true,
        queued,
        held,
        held_until,
        running,
    };
    [view(batch, 12, (5, 2), 5), view(long, 0, (0, 0), 0)].iter().map(|view| of_queue(view, flavour)).collect()
}

#[test]
fn queues_are_listed() {
    for flavour in [PbsPro, Torque] {
        golden(&format!("{flavour}-Q.txt"), &queues(&all_queues(flavour), flavour));
        golden(&format!("{flavour}-q-limits.txt"), &queue_limits(&all_queues(flavour), "pbs1", flavour));
        golden(&format!("{flavour}-Qf.txt"), &text(&all_queues(flavour), &TimeZone::UTC, false));
    }
    assert_eq!(queues(&[], PbsPro), "");
}

fn server(state: ServerState, flavour: Flavour) -> Status {
    server_with(None, state, flavour)
}

fn server_with(missing_policy: Option<&str>, state: ServerState, flavour: Flavour) -> Status {
    let states = [(JobState::Queued, 4), (JobState::Held, 4), (JobState::Running, 2), (JobState::Finished, 90)];
    let facts = ServerFacts {
        name: "pbs1",
        host: "pbs1.example.org",
        state,
        counts: Counts::of_states(&states.into(), 3),
        default_queue: Some("batch"),
        max_running: Some(500),
        missing_policy,
        iteration_seconds: Some(600),
        version: "0.1.0",
    };
    of_server(&facts, flavour)
}

/// PBS-C-04: the state of the server, the limit of running jobs, the number of jobs, and the number in each state.
#[test]
fn the_server_is_shown_with_its_state() {
    for (state, word) in [
        (ServerState::Active, "Active"),
        (ServerState::Idle, "Idle"),
        (ServerState::Scheduling, "Scheduling"),
        (ServerState::Terminating, "Terminating"),
        (ServerState::TerminatingDelay, "Terminating_Delay"),
    ] {
        assert_eq!(server(state, PbsPro).get("server_state"), Some(word));
        assert_eq!(server(state, PbsPro).get("scheduling"), Some(if word == "Idle" { "False" } else { "True" }));
    }
    for flavour in [PbsPro, Torque] {
        golden(&format!("{flavour}-B.txt"), &servers(&[server(ServerState::Active, flavour)], flavour));
        golden(&format!("{flavour}-Bf.txt"), &text(&[server(ServerState::Idle, flavour)], &TimeZone::UTC, false));
    }
    let row = servers(&[server(ServerState::Scheduling, PbsPro)], PbsPro);
    assert_eq!(
        row.lines().last().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["pbs1", "500", "10", "4", "2", "1", "3", "0", "0", "Scheduling"]
    );
}

/// PBS-C-14: as long as no policy was put in force because its files have mistakes, the line of the server says so.
#[test]
fn the_server_says_that_it_has_no_policy() {
    for flavour in [PbsPro, Torque] {
        let server = server_with(Some("none (2 errors)"), ServerState::Active, flavour);
        assert_eq!(server.get("comment"), Some("policy: none (2 errors)"));
        assert!(servers(&[server], flavour).ends_with(" Active     policy: none (2 errors)\n"));
    }
}
