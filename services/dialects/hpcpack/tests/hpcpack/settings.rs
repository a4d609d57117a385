//! The settings of `cluscfg`.

use muster_hpcpack::settings::{ActivationOrdering, NAMES, PreemptionType, PriorityBias, SchedulingMode, Settings};

fn with(assignments: &[&str]) -> Result<Settings, Vec<String>> {
    let set = Settings::default().with(assignments);
    set.map_err(|bad| bad.iter().map(ToString::to_string).collect())
}

/// HPC-C-09
#[test]
fn settings_have_their_defaults_and_ranges() {
    let shown: Vec<String> =
        Settings::default().list().iter().map(|row| format!("{}={} ({})", row.name, row.default, row.range)).collect();
    assert_eq!(
        shown,
        [
            "SubmissionFilterProgram= (an absolute path, or empty)",
            "ActivationFilterProgram= (an absolute path, or empty)",
            "SubmissionFilterTimeout=15 (1..120)",
            "ActivationFilterTimeout=15 (1..120)",
            "FilterRetryInterval=10 (1..3600)",
            "ActivationOrdering=Strict (Strict, Relaxed)",
            "DefaultHoldDuration=900 (60..604800)",
            "BackfillLookAhead=1000 (a whole number; negative: the whole queue, 0: off)",
            "SchedulingMode=Queued (Queued, Balanced)",
            "PreemptionType=Graceful (None, Graceful, Immediate)",
            "PreemptionBalancedMode=Immediate (None, Graceful, Immediate)",
            "PriorityBias=MediumBias (NoBias, MediumBias, HighBias)",
            "ReBalancingInterval=10 (1..3600)",
            "NodeReleaseTaskTimeout=10 (1..3600)",
            "AutomaticGrowthEnabled=true (true, false)",
            "AutomaticShrinkEnabled=true (true, false)",
            "GrowByPreemptionEnabled=false (true, false)",
            "TaskImmediatePreemptionEnabled=false (true, false)",
        ]
    );
    assert!(Settings::default().list().iter().all(|row| row.value == row.default));
}

/// HPC-C-09
#[test]
fn bounds_are_in_the_range_and_what_is_beyond_them_is_not() {
    for (name, least, most) in [
        ("SubmissionFilterTimeout", 1, 120),
        ("ActivationFilterTimeout", 1, 120),
        ("FilterRetryInterval", 1, 3600),
        ("DefaultHoldDuration", 60, 604_800),
        ("ReBalancingInterval", 1, 3600),
        ("NodeReleaseTaskTimeout", 1, 3600),
    ] {
        for (value, is_good) in [(least, true), (most, true), (least - 1, false), (most + 1, false)] {
            assert_eq!(with(&[&format!("{name}={value}")]).is_ok(), is_good, "{name}={value}");
        }
    }
    for look_ahead in ["-1", "0", "7"] {
        assert!(with(&[&format!("BackfillLookAhead={look_ahead}")]).is_ok());
    }
}

/// HPC-C-08
#[test]
fn names_ignore_case_and_an_empty_value_takes_a_program_away() {
    let settings = with(&[
        "schedulingmode=balanced",
        "PREEMPTIONTYPE=none",
        "PriorityBias=HighBias",
        "activationOrdering=relaxed",
        "automaticGrowthEnabled=0",
        "SubmissionFilterProgram=/opt/check me",
    ])
    .expect("good settings");
    assert_eq!(settings.scheduling_mode, SchedulingMode::Balanced);
    assert_eq!(settings.preemption_type, PreemptionType::None);
    assert_eq!(settings.priority_bias, PriorityBias::HighBias);
    assert_eq!(settings.activation_ordering, ActivationOrdering::Relaxed);
    assert!(!settings.automatic_growth_enabled);
    assert_eq!(settings.submission_filter_program.as_deref(), Some("/opt/check me"));
    let row = settings.list().into_iter().find(|row| row.name == "SubmissionFilterProgram").expect("a row");
    assert_eq!((row.value.as_str(), row.default.as_str()), ("/opt/check me", ""));
    let removed = settings.with(&["submissionfilterprogram="]).expect("good");
    assert_eq!(removed.submission_filter_program, None);
}

/// HPC-C-08
#[test]
fn if_any_is_bad_each_bad_one_is_told_and_none_is_set() {
    let bad = with(&[
        "SchedulingMode=Balanced",
        "DefaultHoldDuration=59",
        "FilterRetryIntervall=5",
        "PriorityBias=Some",
        "SchedulingMode=Queued",
        "AutomaticGrowthEnabled",
        "SubmissionFilterTimeout=",
        "SubmissionFilterTimeout2=15s",
    ]);
    assert_eq!(
        bad,
        Err(vec![
            "DefaultHoldDuration=59: outside its range; allowed: 60..604800".to_owned(),
            "FilterRetryIntervall=5: no such setting; nearest known is FilterRetryInterval".to_owned(),
            "PriorityBias=Some: expected one of NoBias, MediumBias, HighBias; allowed: NoBias, MediumBias, HighBias"
                .to_owned(),
            "SchedulingMode=Queued: SchedulingMode is set twice".to_owned(),
            "AutomaticGrowthEnabled: expected Name=value".to_owned(),
            "SubmissionFilterTimeout=: expected a whole number of seconds; allowed: 1..120".to_owned(),
            "SubmissionFilterTimeout2=15s: no such setting; nearest known is SubmissionFilterTimeout".to_owned(),
        ])
    );
}

/// HPC-C-02, HPC-C-08
#[test]
fn what_sets_nothing_is_wrong_usage_and_a_value_outside_its_range_is_refused() {
    let settings = Settings::default();
    let is_usage = |assignment: &str| settings.with(&[assignment]).expect_err("it is bad")[0].is_usage;
    assert!(["Foo=1", "Foo", "PriorityBias"].iter().all(|assignment| is_usage(assignment)));
    assert!(!["DefaultHoldDuration=59", "PriorityBias=Some", "PriorityBias="].iter().any(|bad| is_usage(bad)));
    let twice = settings.with(&["PriorityBias=NoBias", "prioritybias=NoBias"]).expect_err("it is bad");
    assert!(twice[0].is_usage);
}

/// HPC-F-72
#[test]
fn programs_have_absolute_paths() {
    for path in ["filter", "./filter", "../x", "C:\\filter.exe", "/opt/", "/a\nb"] {
        assert!(with(&[&format!("ActivationFilterProgram={path}")]).is_err(), "{path}");
    }
}

/// HPC-C-08
#[test]
fn what_is_listed_can_be_set() {
    let assignments: Vec<String> =
        Settings::default().list().iter().map(|row| format!("{}={}", row.name, row.value)).collect();
    assert_eq!(assignments.len(), NAMES.len());
    assert_eq!(Settings::default().with(&assignments), Ok(Settings::default()));
}
