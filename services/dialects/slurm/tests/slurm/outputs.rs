//! Names of output files.

use muster_slurm::output::{
    Facts, StepInput, StepOutput, batch_pattern, default_pattern, expand, is_by_node, model_pattern,
};
use proptest::prelude::*;

fn facts() -> Facts {
    Facts {
        job: 43,
        array: 40,
        index: Some(13),
        step: "2".into(),
        node: "nid00001".into(),
        node_rank: 1,
        task: 5,
        restarts: 2,
        user: "ann".into(),
        name: "a/b".into(),
    }
}

/// SL-C-14.
#[test]
fn every_pattern_is_filled_in() {
    for (pattern, expected) in [
        ("%A_%a.%b", "40_13.3"),
        ("%J %j", "43.2 43"),
        ("%N.%n.%t", "nid00001.1.5"),
        ("%r%s%u%x%%", "22anna_b%"),
        ("%5j", "00043"),
        ("%99j", "0000000043"),
        ("%q%", "%q%"),
        ("a\\%j", "a%j"),
        ("none", "/dev/null"),
    ] {
        assert_eq!(expand(pattern, &facts()), expected, "{pattern}");
    }
    assert_eq!(expand("%J", &Facts { step: "batch".into(), ..facts() }), "43");
}

/// SL-C-14: in a batch script node rank and task rank are 0 and the step is `batch`.
#[test]
fn a_batch_scripts_pattern_is_put_in_the_models_terms() {
    assert_eq!(batch_pattern("%j-%n-%t-%s-%N-%x-%J"), "%J-0-0-batch-%N-%x-%J");
    assert_eq!(batch_pattern("%3t"), "000");
    assert_eq!(batch_pattern("x\\%j"), "x%%j");
    assert_eq!(batch_pattern("NONE"), "/dev/null");
    assert_eq!((default_pattern(false), default_pattern(true)), ("slurm-%j.out", "slurm-%A_%a.out"));
}

/// SL-R-25.
#[test]
fn a_steps_output_goes_where_it_is_sent() {
    let parse = |text| StepOutput::parse(text, 4);
    assert_eq!(parse(None), StepOutput::Srun);
    assert_eq!(parse(Some("all")), StepOutput::Srun);
    assert_eq!(parse(Some("none")), StepOutput::Nowhere);
    assert_eq!(parse(Some("3")), StepOutput::OneTask(3));
    assert_eq!(parse(Some("4")), StepOutput::Files("4".into()));
    assert!(["out.%t", "o%2t", "%N", "%n"].into_iter().all(is_by_node));
    assert!(!["out.%j", "\\%t", "%%t"].into_iter().any(is_by_node));
    assert_eq!(model_pattern("%j"), "%J");
    assert_eq!(model_pattern("%J_%s.%t"), "%J.%s_%s.%t");
}

/// SL-R-21: `--input`.
#[test]
fn input_goes_to_the_tasks_it_is_for() {
    assert_eq!(StepInput::parse(None, 2), StepInput::All);
    assert_eq!(StepInput::parse(Some("none"), 2), StepInput::Nobody);
    assert_eq!(StepInput::parse(Some("1"), 2), StepInput::OneTask(1));
    assert_eq!(StepInput::parse(Some("2"), 2), StepInput::Files("2".into()));
}

proptest! {
    #[test]
    fn any_pattern_is_filled_in(pattern in "[%a-zA-Z0-9\\\\/é]{0,20}|\\PC{0,20}") {
        let path = expand(&pattern, &facts());
        if !pattern.contains(['%', '\\']) && !pattern.eq_ignore_ascii_case("none") {
            prop_assert_eq!(&path, &pattern);
        }
        let _ = batch_pattern(&pattern);
    }
}
