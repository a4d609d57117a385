use super::*;
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write as _;

/// The worked example of the reading rules.
const EXAMPLE: &str = include_str!("../../../tests/data/worked_example.swf");

fn read(text: &str) -> Trace {
    Trace::read(text.as_bytes(), "test", None).expect("the text names the machine's size")
}

fn job_line(submit: &str, runtime: &str, allocated: &str, requested: &str, time: &str, status: &str) -> String {
    format!("1 {submit} -1 {runtime} {allocated} -1 -1 {requested} {time} -1 {status} 7 8 9 3 4 -1 -1\n")
}

#[test]
fn the_worked_example_is_read_as_its_table_says() {
    let trace = read(EXAMPLE);
    let rows: Vec<_> = trace
        .jobs
        .iter()
        .map(|job| (job.id, job.submit_seconds, job.runtime_seconds, job.estimate_seconds, job.procs))
        .collect();
    let expected = [
        (1, 0, 15, 55, 8),
        (2, 5, 40, 70, 7),
        (3, 15, 40, 45, 9),
        (4, 25, 20, 50, 4),
        (5, 30, 1, 10, 9),
        (6, 30, 25, 35, 1),
        (7, 40, 15, 15, 3),
        (8, 40, 80, 85, 1),
        (9, 50, 30, 30, 4),
        (10, 55, 25, 30, 6),
    ];
    assert_eq!(rows, expected);
    assert_eq!(trace.machine_procs, 10);
    assert_eq!(trace.dropped, Dropped { runtime: 1, size: 1, ..Dropped::default() });
}

#[test]
fn a_line_is_dropped_under_the_first_reason_that_holds() {
    let lines = [
        ("1 2 3\n".to_owned(), Dropped { malformed: 1, ..Dropped::default() }),
        (
            format!("{} 19\n", job_line("0", "1", "1", "1", "1", "1").trim()),
            Dropped { malformed: 1, ..Dropped::default() },
        ),
        (job_line("zero", "1", "1", "1", "1", "1"), Dropped { malformed: 1, ..Dropped::default() }),
        (job_line("inf", "1", "1", "1", "1", "1"), Dropped { malformed: 1, ..Dropped::default() }),
        (job_line("NaN", "1", "1", "1", "1", "1"), Dropped { malformed: 1, ..Dropped::default() }),
        (job_line("-1", "-1", "-1", "-1", "-1", "3"), Dropped { partial: 1, ..Dropped::default() }),
        (job_line("-1", "-1", "-1", "-1", "-1", "1"), Dropped { runtime: 1, ..Dropped::default() }),
        (job_line("-1", "0", "-1", "-1", "-1", "1"), Dropped { submit: 1, ..Dropped::default() }),
        (job_line("0", "0", "0", "-1", "-1", "1"), Dropped { procs: 1, ..Dropped::default() }),
        (job_line("0", "0", "1", "11", "-1", "1"), Dropped { size: 1, ..Dropped::default() }),
    ];
    for (line, expected) in lines {
        let trace = read(&format!("; MaxProcs: 10\n{line}"));
        assert_eq!((trace.dropped, trace.jobs.len()), (expected, 0), "{line}");
        assert_eq!(trace.dropped.total(), 1, "{line}");
    }
}

#[test]
fn fractions_are_cut_off_before_anything_else() {
    // -0.9 becomes 0 and is neither a negative submit time nor a negative run time; status 2.9 is a part.
    let trace = read(&format!("; MaxProcs: 10\n{}", job_line("-0.9", "-0.9", "4.9", "0.9", "2.9", "1.9")));
    let job = trace.jobs[0];
    assert_eq!((job.submit_seconds, job.runtime_seconds, job.estimate_seconds, job.procs), (0, 1, 2, 4));
    assert_eq!((job.user, job.group, job.application, job.queue, job.partition), (7, 8, 9, 3, 4));
    assert_eq!(read(&format!("; MaxProcs: 10\n{}", job_line("0", "1", "1", "1", "1", "2.9"))).dropped.partial, 1);
}

#[test]
fn the_machine_size_comes_from_the_caller_or_the_first_header_with_digits() {
    let size = |text: &str, procs| Trace::read(text.as_bytes(), "t.swf", procs).map(|trace| trace.machine_procs);
    assert_eq!(
        size("; MaxNodes: 338 (batch partition; 512 total)\n;   MaxProcs  :  about 340 of 400\n", None).unwrap(),
        340
    );
    assert_eq!(size("; MaxNodes: 338 (batch)\n; MaxProcs: unknown\n", None).unwrap(), 338);
    assert_eq!(size("; MaxProcs: 7\n; MaxProcs: 9\n", None).unwrap(), 7);
    assert_eq!(size("; MaxProcs: 7\n", Some(64)).unwrap(), 64);
    let error = size("; Computer: none\n", None).unwrap_err().to_string();
    assert!(error.contains("t.swf") && error.contains("--procs"), "{error}");
}

#[test]
fn headers_and_comments_may_stand_anywhere() {
    let trace = read(&format!(
        "{}\n   ; Queue: 1 short\n;; no header\n; Queue: 2 long\n; MaxProcs: 4\n",
        job_line("0", "1", "1", "1", "1", "1")
    ));
    assert_eq!(trace.jobs.len(), 1);
    assert_eq!(trace.headers.all("Queue").collect::<Vec<_>>(), ["1 short", "2 long"]);
    assert_eq!(trace.headers.get("Queue"), Some("1 short"));
    assert_eq!(trace.headers.get("queue"), None);
}

#[test]
fn gzip_is_told_by_content() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(EXAMPLE.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(Trace::read(packed.as_slice(), "test", None).unwrap(), read(EXAMPLE));
    let cut = Trace::read(&packed[..packed.len() / 2], "cut.gz", None).unwrap_err();
    assert!(matches!(cut, SwfError::Unreadable { .. }), "{cut}");
}

#[test]
fn a_window_never_reaches_beyond_the_jobs() {
    let trace = read(EXAMPLE);
    assert_eq!(trace.window(2, 3).iter().map(|job| job.id).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(trace.window(8, 100).len(), 2);
    assert!(trace.window(100, 1).is_empty());
}

#[test]
fn the_window_that_the_repository_carries_is_whole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/hpc2n-window.swf");
    let trace = Trace::open(&path, None).unwrap();
    assert_eq!((trace.machine_procs, trace.jobs.len(), trace.dropped.total()), (240, 120, 0));
    assert_eq!(trace.headers.get("Acknowledge"), Some("Ake Sandgren"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Trace::read(bytes.as_slice(), "random", Some(8));
    }

    #[test]
    fn every_line_of_numbers_is_a_job_or_is_counted(fields in proptest::collection::vec(-3_i64..20, FIELDS..=FIELDS)) {
        let line = fields.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        let trace = Trace::read(line.as_bytes(), "random", Some(8)).unwrap();
        prop_assert_eq!(trace.jobs.len() as u64 + trace.dropped.total(), 1);
    }
}
