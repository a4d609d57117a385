//! Windows of dedicated time.

use crate::support::{DEDICATED_TIME, at, errors_in, policy, zurich};
use jiff::{Timestamp, tz::TimeZone};
use muster_pbs_policy::{
    dedicated::{Refusal, Windows},
    values,
};

const FILE: &str = "dedicated_time";

fn windows(text: &str) -> Windows {
    policy(&[(FILE, text)]).dedicated_time.windows(&zurich())
}

fn shown(windows: &Windows) -> Vec<String> {
    let local = |time: Timestamp| zurich().to_datetime(time).strftime("%Y-%m-%d %H:%M").to_string();
    windows.all().iter().map(|window| format!("{} to {}", local(window.from), local(window.to))).collect()
}

/// W6: PBS-T-09, PBS-T-10, PBS-T-11.
#[test]
fn jobs_start_if_they_end_before_the_border() {
    const JOBS: [(&str, Option<&str>); 7] = [
        ("batch", Some("7:15:00")),
        ("batch", Some("7:15:01")),
        ("batch", None),
        ("batch", Some("0:30:00")),
        ("ded1", Some("0:10:00")),
        ("ded1", Some("3:15:00")),
        ("ded1", Some("3:15:01")),
    ];
    let windows = windows(DEDICATED_TIME);
    for (now, expected) in [
        ("1998-05-14T22:00:00", "START X X START D D D"),
        ("1998-05-15T05:15:00", "D D D D START START X"),
        ("1998-05-15T08:20:00", "D D D D START X X"),
        ("1998-05-15T08:30:00", "START START X START D D D"),
        ("1998-06-10T23:30:00", "D D D D START X X"),
        ("1998-06-11T00:00:00", "START START START START D D D"),
    ] {
        let now = at(now, &zurich());
        let answers = JOBS.map(|(queue, walltime)| {
            let walltime = walltime.and_then(values::seconds);
            match windows.admit(now, "ded", queue, walltime) {
                Ok(()) => "START",
                Err(Refusal::CrossesDedicated) => "X",
                Err(Refusal::DedicatedTime) => "D",
            }
        });
        assert_eq!(answers.join(" "), expected, "{now}");
    }
    assert_eq!(Refusal::CrossesDedicated.code(), "CROSSES_DEDICATED");
    assert_eq!(Refusal::DedicatedTime.code(), "DEDICATED_TIME");
}

/// PBS-T-10: a queue is dedicated if its name begins with the prefix; case counts.
#[test]
fn the_prefix_decides_which_queues_are_dedicated() {
    let windows = windows(DEDICATED_TIME);
    let now = at("1998-05-15T06:00:00", &zurich());
    for (queue, is_dedicated) in [("ded", true), ("ded1", true), ("dedicated", true), ("Ded", false), ("xded", false)] {
        assert_eq!(windows.admit(now, "ded", queue, Some(60)).is_ok(), is_dedicated, "{queue}");
    }
}

/// PBS-T-11: a walltime of any size is compared exactly.
#[test]
fn the_longest_walltime_crosses_a_window() {
    let windows = windows(DEDICATED_TIME);
    let now = at("1998-05-14T22:00:00", &zurich());
    assert_eq!(windows.admit(now, "ded", "batch", Some(u64::MAX)), Err(Refusal::CrossesDedicated));
    assert_eq!(Windows::default().admit(now, "ded", "batch", None), Ok(()));
    assert_eq!(Windows::default().admit(now, "ded", "ded1", Some(1)), Err(Refusal::DedicatedTime));
}

/// PBS-T-09: years of two digits, missing zeros, and the end of a day.
#[test]
fn dates_are_read_in_every_form() {
    let text = "# FROM TO\n 4/1/98 5:05\t4/1/98 06:00 # short\n1/2/03 00:00 1/2/03 24:00\n12/31/89 1:00 12/31/89 2:00\n\
                06/01/0090 1:00 06/01/0090 2:00\n";
    assert_eq!(
        shown(&windows(text)),
        [
            "1990-06-01 01:00 to 1990-06-01 02:00",
            "1998-04-01 05:05 to 1998-04-01 06:00",
            "2003-01-02 00:00 to 2003-01-03 00:00",
            "2089-12-31 01:00 to 2089-12-31 02:00",
        ]
    );
}

/// PBS-T-09: windows are sorted, and those that overlap or touch are joined.
#[test]
fn windows_that_overlap_or_touch_are_one() {
    let text = "05/02/2026 10:00 05/02/2026 12:00\n05/01/2026 10:00 05/01/2026 12:00\n\
                05/01/2026 12:00 05/01/2026 13:00\n05/02/2026 09:00 05/02/2026 15:00\n\
                05/02/2026 10:30 05/02/2026 11:00\n05/01/2026 13:01 05/01/2026 14:00\n";
    assert_eq!(
        shown(&windows(text)),
        [
            "2026-05-01 10:00 to 2026-05-01 13:00",
            "2026-05-01 13:01 to 2026-05-01 14:00",
            "2026-05-02 09:00 to 2026-05-02 15:00",
        ]
    );
}

/// PBS-T-08, PBS-T-09: the current window, the next one, and the next border; windows that are over are ignored.
#[test]
fn the_next_border_is_known() {
    let windows = windows(DEDICATED_TIME);
    let time = |local: &str| at(local, &zurich());
    for (now, current, next, border) in [
        ("1998-04-10T15:29:59", None, Some("1998-04-10T15:30:00"), Some("1998-04-10T15:30:00")),
        ("1998-04-10T15:30:00", Some("1998-04-10T15:30:00"), Some("1998-05-15T05:15:00"), Some("1998-04-11T23:50:00")),
        ("1998-04-11T23:50:00", None, Some("1998-05-15T05:15:00"), Some("1998-05-15T05:15:00")),
        ("1998-06-10T23:50:00", None, None, None),
    ] {
        let at_now = time(now);
        assert_eq!(windows.current(at_now).map(|window| window.from), current.map(time), "{now}");
        assert_eq!(windows.next(at_now).map(|window| window.from), next.map(time), "{now}");
        assert_eq!(windows.next_change(at_now), border.map(time), "{now}");
    }
}

/// PBS-T-09.
#[test]
fn mistakes_are_errors_at_their_words() {
    for (text, expected) in [
        ("02/30/1998 10:00 03/01/1998 10:00", "there is no such date (token '02/30/1998')"),
        ("13/01/1998 10:00 03/01/1999 10:00", "there is no such date (token '13/01/1998')"),
        ("1998-02-03 10:00 03/01/1998 10:00", "expected a date MM/DD/YYYY (token '1998-02-03')"),
        ("2/3/98/4 10:00 03/01/1998 10:00", "expected a date MM/DD/YYYY (token '2/3/98/4')"),
        ("02/03/1998 25:00 03/01/1998 10:00", "expected a time HH:MM from 00:00 to 24:00 (token '25:00')"),
        ("02/03/1998 10:00 03/01/1998 24:01", "expected a time HH:MM from 00:00 to 24:00 (token '24:01')"),
        ("02/03/1998 10:00 03/01/1998", "expected MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM (token '03/01/1998')"),
        ("02/03/1998 10:00 03/01/1998 10:00 PM", "expected MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM (token 'PM')"),
        ("02/03/1998 10:00 02/03/1998 10:00", "expected an end after the begin (token '10:00')"),
        ("02/03/1998 10:00 02/02/1998 12:00", "expected an end after the begin (token '02/02/1998')"),
    ] {
        assert_eq!(errors_in(FILE, &format!("\n{text}\n")), [format!("{FILE}:2: {expected}")], "{text}");
    }
    assert_eq!(errors_in(FILE, "02/30/1998 10:00 02/31/1998 10:61").len(), 3);
}

/// PBS-T-07: the local times of windows where clocks change.
#[test]
fn clock_changes_skip_and_double_the_ends_of_windows() {
    let utc = |text: &str| text.parse::<Timestamp>().expect("a time");
    let ends = |text: &str| windows(text).all().iter().map(|window| (window.from, window.to)).collect::<Vec<_>>();
    let skipped = "03/29/2026 02:30 03/29/2026 04:00\n";
    assert_eq!(ends(skipped), [(utc("2026-03-29T01:00:00Z"), utc("2026-03-29T02:00:00Z"))]);
    let doubled = "10/25/2026 01:00 10/25/2026 02:30\n";
    assert_eq!(ends(doubled), [(utc("2026-10-24T23:00:00Z"), utc("2026-10-25T00:30:00Z"))]);
    assert_eq!(ends("03/29/2026 02:10 03/29/2026 02:50\n"), []);
    let elsewhere = policy(&[(FILE, doubled)]).dedicated_time.windows(&TimeZone::UTC);
    assert_eq!(elsewhere.all()[0].from, utc("2026-10-25T01:00:00Z"));
}

/// Nothing panics at the ends of the calendar.
#[test]
fn the_calendar_has_ends() {
    let windows = windows(
        "12/31/9999 23:00 12/31/9999 24:00\n12/31/9999 22:00 12/31/9999 23:59\n01/01/100 0:00 01/02/100 0:00\n",
    );
    for now in [Timestamp::MIN, Timestamp::MAX] {
        let _ = windows.admit(now, "ded", "batch", Some(u64::MAX));
        let _ = (windows.current(now), windows.next(now), windows.next_change(now));
    }
}
