//! Section 5 of the specification.

use super::common::{built_in, csv, run_trace, starts};
use muster_planner::simulate::{Simulation, Summary};
use muster_swf::{Dropped, Trace};

const EXAMPLE: &str = include_str!("../../../../tests/data/worked_example.swf");

pub fn example() -> Trace {
    Trace::read(EXAMPLE.as_bytes(), "example", None).expect("the example names its machine")
}

fn simulated(policy: &str) -> Simulation {
    run_trace(&example(), &built_in(policy))
}

/// The worked example (M-SIM-6).
#[test]
fn every_job_starts_when_the_table_says() {
    assert_eq!(starts(&simulated("fcfs")), [0, 15, 55, 95, 115, 115, 116, 116, 116, 146]);
    assert_eq!(starts(&simulated("easy")), [0, 15, 55, 95, 140, 30, 95, 40, 110, 141]);
    assert_eq!(starts(&simulated("conservative")), [0, 15, 71, 111, 55, 30, 56, 55, 111, 135]);
}

#[test]
fn the_figures_are_those_of_the_table() {
    let dropped = Dropped { runtime: 1, size: 1, ..Dropped::default() };
    let figures = |policy: &str| {
        let Summary { mean_wait, mean_bsld, makespan, utilization, jobs, procs, dropped: counted, .. } =
            simulated(policy).summary(example().dropped);
        assert_eq!((jobs, procs, counted), (10, 10, dropped));
        format!("{mean_wait:.1} {mean_bsld:.6} {makespan} {utilization:.6}")
    };
    assert_eq!(figures("fcfs"), "59.9 3.760667 196 0.647449");
    assert_eq!(figures("easy"), "43.1 3.395667 166 0.764458");
    assert_eq!(figures("conservative"), "34.9 2.403750 160 0.793125");
}

#[test]
fn waits_are_ranked_from_zero_with_integer_division() {
    // In ascending order: 0 0 0 10 40 55 60 70 86 110.
    let summary = simulated("easy").summary(Dropped::default());
    assert_eq!((summary.median_wait, summary.p95_wait, summary.max_wait), (55, 110, 110));
    assert_eq!(summary.max_bsld, 11.1);
}

#[test]
fn the_rows_under_easy_are_these_bytes() {
    let expected = "\
job_id,submit,start,end,procs,wait,bounded_slowdown
1,0,0,15,8,0,1.0000
2,5,15,55,7,10,1.2500
3,15,55,95,9,40,2.0000
4,25,95,115,4,70,4.5000
5,30,140,141,9,110,11.1000
6,30,30,55,1,0,1.0000
7,40,95,110,3,55,4.6667
8,40,40,120,1,0,1.0000
9,50,110,140,4,60,3.0000
10,55,141,166,6,86,4.4400
";
    assert_eq!(csv(&simulated("easy")), expected);
}

#[test]
fn a_job_goes_around_the_head_on_processors_that_the_head_leaves() {
    // t = 40 under easy: job 8 would end after the shadow time of job 3, but takes the one spare processor.
    assert_eq!(starts(&simulated("easy"))[7], 40);
    // Under conservative it would take a processor that was promised to job 7.
    assert_eq!(starts(&simulated("conservative"))[7], 55);
}

#[test]
fn a_job_overtakes_one_that_keeps_its_promise() {
    // t = 55 under conservative: jobs 2 and 6 end early; job 5 takes the hole before job 7. Job 3, promised 85, starts
    // at 71, no later.
    let starts = starts(&simulated("conservative"));
    assert_eq!((starts[2], starts[4], starts[6], starts[7]), (71, 55, 56, 55));
}
