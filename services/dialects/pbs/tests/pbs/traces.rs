//! `tracejob` and `qorder`.

use crate::support::{NOW, ago, words};
use jiff::tz::TimeZone;
use muster_pbs::{
    queries::{Place, TraceRequest, exchanged, is_by_priority, tracejob},
    show::{TraceEvent, trace},
};
use muster_schemas::{JobId, policy::OrderKey};
use proptest::prelude::*;

fn request(line: &str) -> TraceRequest {
    tracejob(&words(line)).unwrap_or_else(|wrong| panic!("{line}: {wrong}"))
}

#[test]
fn tracejob_has_days_and_jobs() {
    let read = request("-n 3 -sl -c 2 -w 80 -vz 12.pbs1 7");
    assert_eq!((read.days, read.hidden.as_str(), read.repeats, read.columns), (3, "SL", Some(2), Some(80)));
    assert_eq!(read.jobs.len(), 2);
    assert_eq!(request("1").days, 1);
    for (line, text) in [
        ("", "a job identifier is missing"),
        ("-n 0 1", "illegal -n value: `0`: expected a number of days from 1 to 36600"),
        ("-n 99999999999 1", "illegal -n value: `99999999999`: expected a number of days from 1 to 36600"),
        ("-w 5 1", "illegal -w value: `5`: expected at least 40 columns"),
        ("-p /var/spool/pbs 1", "-p is not supported: the events are in the log of the system"),
        ("workq", "illegally formed job identifier: workq"),
    ] {
        assert_eq!(tracejob(&words(line)).unwrap_err().to_string(), text, "{line}");
    }
}

#[test]
fn each_event_is_a_line_with_its_time_and_origin() {
    let event = |seconds: i64, actor: &str, text: &str| TraceEvent {
        time: ago(seconds),
        actor: actor.to_owned(),
        text: text.to_owned(),
    };
    let events = [
        event(90_000, "user:ann", "long ago"),
        event(60, "user:ann", "job 7 was submitted"),
        event(30, "planner", "job 7 gets n1"),
        event(20, "node:n1", "job 7 started\u{1b}[2J"),
        event(10, "node:n1", "job 7 ended"),
        event(9, "node:n1", "job 7 ended"),
    ];
    let shown = |line: &str| trace("7.pbs1", &events, ago(3_600), &request(line), &TimeZone::UTC);
    let expected = "\nJob: 7.pbs1\n\n\
                    11/20/2026 08:19:00  S    job 7 was submitted\n\
                    11/20/2026 08:19:30  L    job 7 gets n1\n\
                    11/20/2026 08:19:40  M    job 7 started^[[2J\n\
                    11/20/2026 08:19:50  M    job 7 ended\n\
                    11/20/2026 08:19:51  M    job 7 ended\n";
    assert_eq!(shown("7").as_deref(), Some(expected));
    let few = shown("-l -m 7").unwrap();
    assert_eq!(few.lines().skip(3).count(), 1, "{few}");
    assert_eq!(shown("-c 1 7").unwrap().matches("ended").count(), 1);
    assert_eq!(trace("7.pbs1", &events, ago(-1), &request("7"), &TimeZone::UTC), None, "nothing since then");
    let narrow = trace("7", &[event(1, "ledger", "one two three four")], ago(9), &request("-w 40 7"), &TimeZone::UTC);
    let expected = format!("\nJob: 7\n\n11/20/2026 08:19:59  S    one two three\n{:26}four\n", "");
    assert_eq!(narrow.as_deref(), Some(expected.as_str()), "{NOW}");
}

/// Jobs with these priorities, in order of arrival.
fn queue(priorities: &[i64]) -> Vec<Place> {
    let place = |(number, priority): (u64, &i64)| Place {
        job: JobId::job(number),
        priority: *priority,
        class_priority: 0,
        arrival: ago(1_000 - number as i64),
    };
    (1..).zip(priorities).map(place).collect()
}

/// The jobs in the order in which they are considered.
fn order(queue: &[Place]) -> Vec<u64> {
    let mut sorted = queue.to_vec();
    sorted.sort_by_key(|place| (-(place.priority + place.class_priority), place.arrival));
    sorted.iter().map(|place| place.job.number).collect()
}

fn exchange(queue: &[Place], one: u64, other: u64) -> Option<Vec<u64>> {
    let changes = exchanged(queue, JobId::job(one), JobId::job(other))?;
    let mut after = queue.to_vec();
    for (job, priority) in changes {
        after.iter_mut().filter(|place| place.job == job).for_each(|place| place.priority = priority);
    }
    Some(order(&after))
}

#[test]
fn two_jobs_exchange_their_places_if_priorities_can_say_so() {
    assert_eq!(exchange(&queue(&[0, 0]), 1, 2), Some(vec![2, 1]), "alone in the queue");
    assert_eq!(exchange(&queue(&[5, 3, 1]), 1, 3), Some(vec![3, 2, 1]));
    assert_eq!(exchange(&queue(&[0, 5, 3]), 2, 3), Some(vec![3, 2, 1]));
    assert_eq!(exchange(&queue(&[0, 0, 0]), 1, 3), Some(vec![3, 2, 1]), "before and behind all others");
    assert_eq!(exchange(&queue(&[0, 0, 0, 0]), 2, 3), None, "others have the same priority");
    assert_eq!(exchange(&queue(&[0, 0]), 1, 9), None, "it is not in the queue");
    let classed = vec![Place { class_priority: 100, ..queue(&[0])[0] }, queue(&[0, 7])[1]];
    assert_eq!(exchange(&classed, 1, 2), Some(vec![2, 1]), "what a class adds counts");
    let highest = queue(&[i64::MAX, i64::MIN]);
    assert_eq!(exchanged(&highest, JobId::job(1), JobId::job(2)).map(|changes| changes[0].0), Some(JobId::job(1)));
    assert!(is_by_priority(&[OrderKey::QueuePriority, OrderKey::Priority, OrderKey::Fcfs]));
    for order in
        [&[][..], &[OrderKey::Spt], &[OrderKey::Priority, OrderKey::Saf], &[OrderKey::Fcfs, OrderKey::Priority]]
    {
        assert!(!is_by_priority(order), "{order:?}");
    }
}

proptest! {
    #[test]
    fn no_other_job_moves(priorities in prop::collection::vec(-2i64..3, 2..7), one in 1u64..7, other in 1u64..7) {
        let queue = queue(&priorities);
        let mut wanted = order(&queue);
        if let Some(after) = exchange(&queue, one, other) {
            let at = |number: u64| wanted.iter().position(|known| *known == number).unwrap();
            let (first, second) = (at(one), at(other));
            wanted.swap(first, second);
            prop_assert_eq!(after, wanted);
        }
    }
}
