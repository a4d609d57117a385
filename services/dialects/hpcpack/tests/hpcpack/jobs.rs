//! Priorities, run times, sizes and tasks.

use crate::support::{job, job_with_tasks};
use muster_hpcpack::{
    codes::Code,
    description::values::UnitType,
    priority::Priority,
    run_time::RunTime,
    size::{self, Size},
    sweep::Sweep,
    tasks,
};

/// HPC-J-06
#[test]
fn priorities_are_names_offsets_and_integers() {
    let taken = [
        ("Lowest", 0),
        ("BelowNormal", 1000),
        ("Normal", 2000),
        ("abovenormal", 3000),
        ("HIGHEST", 4000),
        ("Normal-15", 1985),
        ("highest-500", 3500),
        ("Normal+5", 2005),
        ("4", 4),
        ("0", 0),
        ("4000", 4000),
    ];
    for (text, value) in taken {
        assert_eq!(Priority::parse(text).map(Priority::value), Ok(value), "{text}");
    }
    let refused =
        ["Highest+1", "Lowest-1", "4001", "-1", "+1", "Normal + 5", " Normal", "High", "", "Normal+", "Normal+-5"];
    for text in refused {
        assert_eq!(Priority::parse(text).map_err(|refusal| refusal.code), Err(Code::PriorityNotValid), "{text}");
    }
}

/// HPC-J-07
#[test]
fn priorities_are_shown_by_band() {
    for (value, shown) in [
        (0, "Lowest"),
        (999, "BelowNormal-1"),
        (2000, "Normal"),
        (2500, "Normal+500"),
        (2501, "AboveNormal-499"),
        (3999, "Highest-1"),
        (4000, "Highest"),
    ] {
        assert_eq!(Priority::new(value).expect("in range").to_string(), shown);
    }
    for value in 0..=4000 {
        let priority = Priority::new(value).expect("in range");
        assert_eq!(Priority::parse(&priority.to_string()), Ok(priority));
    }
    assert_eq!([Priority::new(-1), Priority::new(4001)], [None, None]);
    assert_eq!(Priority::new(3999).map(Priority::band), Some("AboveNormal"));
}

/// HPC-J-08
#[test]
fn the_default_priority_is_normal() {
    assert_eq!(Priority::default().value(), 2000);
}

/// HPC-J-09
#[test]
fn two_priorities_must_denote_the_same_band() {
    assert_eq!(job("Priority='Normal' ExpandedPriority='2700'").attributes.priority, Priority::new(2700));
    assert_eq!(job("ExpandedPriority='Normal-1'").attributes.priority, Priority::new(1999));
    let conflict = crate::support::refusal("<Job Priority='Normal' ExpandedPriority='3000'/>");
    assert_eq!(conflict.code, Code::PriorityConflict);
}

/// HPC-J-10
#[test]
fn run_times_are_minutes_with_hours_and_days_before_them() {
    for (text, seconds) in [("12", 720), ("10:30", 37_800), ("0:0:30", 1800), ("1:0:0", 86_400), ("90", 5400)] {
        assert_eq!(RunTime::parse(text), Ok(RunTime::Seconds(seconds)), "{text}");
    }
    assert_eq!(
        [RunTime::parse("Infinite"), RunTime::parse("INFINITE")],
        [Ok(RunTime::Infinite), Ok(RunTime::Infinite)]
    );
    for text in ["0", "0:0", "-5", "1:2:3:4", "1.5", "", ":5", "5:", "ten", "+5", "99999999999999999999", "9999999:0:0"]
    {
        assert_eq!(RunTime::parse(text).map_err(|refusal| refusal.code), Err(Code::RunTimeNotValid), "{text}");
    }
    assert_eq!(RunTime::parse_seconds("90"), Ok(RunTime::Seconds(90)));
    for text in ["0", "-1", "1:30", ""] {
        assert_eq!(RunTime::parse_seconds(text).map_err(|refusal| refusal.code), Err(Code::RunTimeNotValid), "{text}");
    }
    assert_eq!(job("RuntimeSeconds='90'").attributes.run_time, Some(RunTime::Seconds(90)));
    assert_eq!(job("RunTime='2' RuntimeSeconds='90'").attributes.run_time, Some(RunTime::Seconds(90)));
    assert_eq!(job("").attributes.run_time, None);
    let conflict = crate::support::refusal("<Job RunTime='5' RuntimeSeconds='90'/>");
    assert_eq!(conflict.code, Code::RunTimeNotValid);
}

/// HPC-J-10
#[test]
fn run_times_are_shown_as_they_are_read() {
    for text in ["1", "59", "1:0", "23:59", "1:0:0", "24855:3:14", "Infinite"] {
        let run_time = RunTime::parse(text).expect("a run time");
        assert_eq!(run_time.to_string(), text);
    }
    assert_eq!(RunTime::Seconds(61).to_string(), "2");
    let most = RunTime::Seconds(RunTime::MOST_SECONDS);
    assert_eq!(RunTime::parse(&most.to_string()), Ok(most));
}

fn size_of(attributes: &str) -> Result<Size, Code> {
    let job = job(attributes);
    Size::of(&job.attributes, &job.tasks).map_err(|refusal| refusal.code)
}

fn size(unit: UnitType, min: u32, max: u32) -> Result<Size, Code> {
    Ok(Size { unit, min, max })
}

/// HPC-J-13
#[test]
fn the_size_is_the_pair_of_the_unit() {
    assert_eq!(size_of("MinCores='2' MaxCores='4' MinNodes='9'"), size(UnitType::Core, 2, 4));
    assert_eq!(size_of("UnitType='socket' MinSockets='1' MaxSockets='3'"), size(UnitType::Socket, 1, 3));
    assert_eq!(size_of("UnitType='Node' MinNodes='2' MaxNodes='2' MinCores='7'"), size(UnitType::Node, 2, 2));
    assert_eq!(size_of(""), size(UnitType::Core, 1, 1));
}

/// HPC-J-13
#[test]
fn old_names_are_sizes_in_cores() {
    let attributes = "MinimumNumberOfProcessors='3' MaximumNumberOfProcessors='5'";
    assert_eq!(size_of(attributes), size(UnitType::Core, 3, 5));
    assert_eq!(job(attributes).attributes.unit_type, Some(UnitType::Core));
    for contradiction in ["MinCores='2' MinimumNumberOfProcessors='3'", "UnitType='Node' MaximumNumberOfProcessors='3'"]
    {
        let refusal = crate::support::refusal(&format!("<Job {contradiction}/>"));
        assert_eq!(refusal.code, Code::JobXmlNotValid, "{contradiction}");
    }
}

/// HPC-J-14
#[test]
fn sizes_of_other_units_are_warned_of() {
    let warnings = size::unused(&job("MinCores='1' MinNodes='4' MaxSockets='2'").attributes);
    let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "[UnusedSizeAttribute] MaxSockets=2 takes no part: the job's unit is Core",
            "[UnusedSizeAttribute] MinNodes=4 takes no part: the job's unit is Core",
        ]
    );
}

/// HPC-J-15
#[test]
fn sizes_that_are_not_given_are_computed_from_the_tasks() {
    let tasks = "<Task MinCores='2' MaxCores='3'/><Task Type='ParametricSweep' StartValue='1' EndValue='10'/>
                 <Task Type='NodePrep' MinCores='50'/>";
    let of = |attributes: &str| {
        let job = job_with_tasks(attributes, tasks);
        Size::of(&job.attributes, &job.tasks).map_err(|refusal| refusal.code)
    };
    assert_eq!(of(""), size(UnitType::Core, 2, 13));
    assert_eq!(of("MinCores='5'"), size(UnitType::Core, 5, 13));
    assert_eq!(of("MaxCores='5'"), size(UnitType::Core, 2, 5));
    assert_eq!(
        of("MinCores='5' AutoCalculateMin='true' MaxCores='7' AutoCalculateMax='TRUE'"),
        size(UnitType::Core, 2, 13)
    );
    assert_eq!(of("MinCores='40'"), size(UnitType::Core, 40, 40));
    assert_eq!(of("AutoCalculateMin='false' AutoCalculateMax='false'"), size(UnitType::Core, 1, 1));
    assert_eq!(of("AutoCalculateMax='false'"), size(UnitType::Core, 2, 2));
    assert_eq!(of("MinCores='5' AutoCalculateMax='0'"), size(UnitType::Core, 5, 5));
    let service = job_with_tasks("", "<Task Type='Service'/>");
    let service = Size::of(&service.attributes, &service.tasks).expect("a size");
    assert_eq!(service.capped(64).map(|size| (size.min, size.max)), Ok((1, 64)));
}

/// HPC-J-16
#[test]
fn senseless_sizes_are_refused_and_the_maximum_is_capped() {
    for attributes in ["MinCores='0'", "MaxCores='0'", "MinCores='-3'", "MinCores='5' MaxCores='4'"] {
        assert_eq!(size_of(attributes), Err(Code::SizeNotValid), "{attributes}");
    }
    let size = Size { unit: UnitType::Core, min: 4, max: 100 };
    assert_eq!(size.capped(8), Ok(Size { max: 8, ..size }));
    assert_eq!(size.capped(4), Ok(Size { max: 4, ..size }));
    assert_eq!(size.capped(3).map_err(|refusal| refusal.code), Err(Code::ClusterTooSmall));
}

/// HPC-J-20
#[test]
fn a_job_that_runs_until_canceled_needs_both_bounds() {
    assert!(size_of("RunUntilCanceled='true' MinCores='1' MaxCores='2'").is_ok());
    for attributes in ["", "MinCores='1'", "MinCores='1' MaxCores='2' AutoCalculateMax='true'"] {
        assert_eq!(size_of(&format!("RunUntilCanceled='true' {attributes}")), Err(Code::SizeNotValid), "{attributes}");
    }
}

/// HPC-J-22
#[test]
fn sweeps_have_at_most_a_million_steps() {
    let steps = |start, end, increment| Sweep::new(start, end, increment).map(Sweep::steps);
    assert_eq!([steps(1, 10, 4), steps(3, 3, 7), steps(1, 1_000_000, 1)], [Ok(3), Ok(1), Ok(1_000_000)]);
    assert_eq!(steps(i32::MAX - 1, i32::MAX, 1), Ok(2));
    for (start, end, increment) in [(2, 1, 1), (1, 5, 0), (1, 5, -1), (0, 1_000_000, 1), (i32::MIN, i32::MAX, 1)] {
        assert!(Sweep::new(start, end, increment).is_err(), "{start}..{end} step {increment}");
    }
}

fn faults(attributes: &str, tasks: &str) -> Vec<String> {
    let job = job_with_tasks(attributes, tasks);
    let size = Size::of(&job.attributes, &job.tasks).expect("a size");
    tasks::faults(&job, size, job.attributes.run_time).iter().map(ToString::to_string).collect()
}

/// HPC-J-22
#[test]
fn a_sweep_without_an_end_or_with_a_senseless_one_is_refused() {
    assert_eq!(
        faults("", "<Task Name='s' Type='ParametricSweep'/><Task IsParametric='1' StartValue='5' EndValue='4'/>"),
        [
            "[TaskNotValid] task 1 `s`: a sweep needs an EndValue",
            "[TaskNotValid] task 2: StartValue=5 is above EndValue=4",
        ]
    );
}

/// HPC-J-23
#[test]
fn tasks_that_do_not_go_together_are_named() {
    let prep = "<Task Name='p' Type='NodePrep'/>";
    let release = "<Task Name='r' Type='NodeRelease'/>";
    assert_eq!(faults("", &format!("{prep}<Task/>{release}")), [""; 0]);
    assert_eq!(
        faults("", &format!("{prep}{release}")),
        ["[TaskNotValid] task 1 `p`: a job of NodePrep and NodeRelease tasks only has nothing to run"]
    );
    assert_eq!(
        faults("", &format!("<Task/>{prep}{prep}{release}{release}")),
        [
            "[TaskNotValid] task 3 `p`: a job has at most one NodePrep task",
            "[TaskNotValid] task 5 `r`: a job has at most one NodeRelease task",
        ]
    );
    assert_eq!(
        faults("", "<Task Name='b'/><Task Type='Service'/>"),
        ["[TaskNotValid] task 1 `b`: a Service task allows no Basic task"]
    );
}

/// HPC-J-24
#[test]
fn tasks_must_fit_their_job_and_wait_for_no_circle() {
    assert_eq!(
        faults("MaxCores='4' RunTime='10'", "<Task Name='big' MinCores='5' RunTime='11'/><Task RunTime='10'/>"),
        [
            "[TaskNotValid] task 1 `big`: its minimum of 5 is more than the job's maximum of 4",
            "[TaskNotValid] task 1 `big`: its run time of 660 s is more than the job's of 600 s",
        ]
    );
    assert_eq!(
        faults("", "<Task Name='a' DependsOn='b,x'/><Task Name='b' DependsOn='c'/><Task Name='c' DependsOn='b'/>"),
        [
            "[TaskNotValid] task 1 `a`: DependsOn names `x`, which is no task",
            "[TaskNotValid] tasks wait for each other: `b` for `c` for `b`",
        ]
    );
    assert_eq!(faults("", "<Task Name='a' DependsOn='a'/>"), ["[TaskNotValid] tasks wait for each other: `a` for `a`"]);
    assert_eq!(faults("", "<Task Name='a'/><Task Name='b' DependsOn='a'/><Task DependsOn='a,b'/>"), [""; 0]);
}

/// HPC-J-24
#[test]
fn groups_of_tasks_must_not_wait_in_a_circle() {
    let with = |dependencies: &str| {
        let xml = format!("<Job><Dependencies>{dependencies}</Dependencies><Tasks><Task GroupId='2'/></Tasks></Job>");
        let job = crate::support::read(&xml);
        let size = Size::of(&job.attributes, &job.tasks).expect("a size");
        tasks::faults(&job, size, None).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let line = "<Parent GroupId='1'><Child GroupId='2'/><Child GroupId='3'/></Parent><Parent GroupId='2'><Child GroupId='3'/></Parent>";
    assert_eq!(with(line), [""; 0]);
    assert_eq!(
        with(&format!("{line}<Parent GroupId='3'><Child GroupId='2'/></Parent>")),
        ["[TaskNotValid] groups of tasks wait for each other: 2 for 3 for 2"]
    );
}
