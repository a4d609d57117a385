//! Templates, the cluster-wide filters, and how filters are called.

use super::support::*;
use crate::support::*;
use muster_schemas::{
    command::{Command, RefusalCode, Reply},
    event::{Actor, Event},
    filter::{FilterSettings, FilterSpec, TemplateSpec},
    scheduling::SchedulingSettings,
};

fn template(name: &str) -> TemplateSpec {
    TemplateSpec { name: name.into(), ..TemplateSpec::default() }
}

/// HPC-T-01, HPC-T-02, HPC-T-09
#[test]
fn templates_are_made_changed_and_removed_but_for_the_default() {
    let mut cluster = Cluster::new();
    let set = |template: TemplateSpec| Command::SetTemplate { template: Box::new(template) };
    cluster.ok(&root(), set(template("BigJob")));
    assert_eq!(cluster.state.template("bigjob").map(|template| template.revision), Some(1), "names ignore case");
    assert_eq!(cluster.ok(&root(), set(template("BigJob"))), Vec::new(), "it is so already");
    let events = cluster.ok(&root(), set(TemplateSpec { text: "x".into(), ..template("BigJob") }));
    let [Event::TemplateSet { old: Some(old), template: new }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((old.revision, new.revision), (1, 2), "HPC-F-71: old and new");
    let remove = |name: &str| Command::RemoveTemplate { name: name.into() };
    cluster.ok(&root(), remove("BIGJOB"));
    cluster.refused(&root(), remove("BigJob"), RefusalCode::NotFound, "does not exist");
    cluster.refused(&root(), remove("default"), RefusalCode::Conflict, "cannot be removed");
    cluster.ok(&root(), set(template("Default")));
    cluster.refused(&root(), remove("Default"), RefusalCode::Conflict, "cannot be removed");
    cluster.assert_replays();
}

/// HPC-F-71, HPC-F-72
#[test]
fn only_administrators_define_filters_and_only_by_absolute_paths() {
    let mut cluster = Cluster::new();
    let relative = FilterSpec { path: "bin/licences".into(), ..filter("A") };
    let settings = |spec: &FilterSpec| FilterSettings { activation: Some(spec.clone()), ..FilterSettings::default() };
    let set = |spec: &FilterSpec| Command::SetParameters { filters: Some(Box::new(settings(spec))), scheduling: None };
    let set_template = |spec: &FilterSpec| {
        let template = TemplateSpec { submission_filters: vec![spec.clone()], ..template("t") };
        Command::SetTemplate { template: Box::new(template) }
    };
    for command in [set(&filter("A")), set_template(&filter("A")), Command::RemoveTemplate { name: "t".into() }] {
        cluster.refused(&user("oper"), command, RefusalCode::PermissionDenied, "only administrators");
    }
    for command in [set(&relative), set_template(&relative)] {
        cluster.refused(&root(), command, RefusalCode::Invalid, "does not begin with `/`");
    }
    let events = cluster.ok(&root(), set(&filter("A")));
    assert!(matches!(&events[..], [Event::FilterSettingsSet { old, settings }]
        if old.activation.is_none() && settings.activation.is_some()));
    let twice = TemplateSpec { activation_filters: vec![filter("A"), filter("A")], ..template("t") };
    let command = Command::SetTemplate { template: Box::new(twice) };
    cluster.refused(&root(), command, RefusalCode::Invalid, "given twice");
}

/// HPC-F-05, HPC-F-34, HPC-C-08
#[test]
fn settings_are_taken_all_or_none_and_every_bad_value_is_named() {
    let mut cluster = Cluster::new();
    let wrong = FilterSettings {
        submission_timeout_seconds: 0,
        activation_timeout_seconds: 121,
        retry_interval_seconds: 3601,
        ..FilterSettings::default()
    };
    let command = Command::SetParameters { filters: Some(Box::new(wrong)), scheduling: None };
    for words in ["submission_timeout_seconds: 0", "activation_timeout_seconds: 121", "retry_interval_seconds: 3601"] {
        cluster.refused(&root(), command.clone(), RefusalCode::Invalid, words);
    }
    assert_eq!(**cluster.state.filter_settings(), FilterSettings::default());
}

/// HPC-C-08
#[test]
fn filters_and_scheduling_are_set_together_or_not_at_all() {
    let mut cluster = Cluster::new();
    let set = |hold, rebalance| Command::SetParameters {
        filters: Some(Box::new(FilterSettings { default_hold_seconds: hold, ..FilterSettings::default() })),
        scheduling: Some(Box::new(SchedulingSettings {
            rebalance_seconds: Some(rebalance),
            ..SchedulingSettings::default()
        })),
    };
    cluster.refused(&user("oper"), set(60, 5), RefusalCode::PermissionDenied, "only administrators");
    cluster.refused(&root(), set(60, 0), RefusalCode::Invalid, "rebalance_seconds");
    cluster.refused(&root(), set(59, 5), RefusalCode::Invalid, "default_hold_seconds: 59");
    assert_eq!(**cluster.state.filter_settings(), FilterSettings::default());
    assert_eq!(words(&cluster.ok(&root(), set(60, 5))), ["config.changed", "config.changed"]);
    assert_eq!(cluster.state.filter_settings().default_hold_seconds, 60);
    assert_eq!(cluster.state.scheduling().rebalance_seconds, Some(5));
    assert_eq!(words(&cluster.ok(&root(), set(61, 5))), ["config.changed"], "the rest is so already");
    cluster.assert_replays();
}

/// HPC-F-89
#[test]
fn each_planner_that_begins_has_a_higher_epoch() {
    let mut cluster = Cluster::new();
    for expected in 1..=3 {
        let answer = cluster.run(&Actor::Planner, Command::PlannerHello);
        assert!(matches!(answer, Ok((_, Reply::Epoch(epoch))) if epoch == expected));
    }
    assert_eq!(cluster.state.planner_epoch(), 3);
    cluster.refused(&user("ada"), Command::PlannerHello, RefusalCode::PermissionDenied, "planner");
}
