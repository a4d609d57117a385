//! `--clusters` of the commands that list and control (SL-S-19).

use muster_slurm::queries::clusters::{Asked, Wish, asked, heading};

fn of(command: &str, text: &str, variable: Option<&str>) -> Option<Asked> {
    let words: Vec<&str> = text.split_whitespace().collect();
    asked(command, &words, &|name| variable.filter(|_| name == "SLURM_CLUSTERS").map(str::to_owned))
}

fn names(asked: Option<Asked>) -> Vec<String> {
    asked.map(|asked| asked.wish.names().map(str::to_owned).collect()).unwrap_or_default()
}

#[test]
fn clusters_are_named_by_an_option_or_a_variable() {
    assert_eq!(of("squeue", "-h", None), None);
    assert_eq!(names(of("squeue", "-Ma,b,a -h", None)), ["a", "b"]);
    assert_eq!(names(of("squeue", "", Some("b"))), ["b"]);
    assert_eq!(names(of("squeue", "--clusters=a", Some("b"))), ["a"]);
    assert!(of("sinfo", "-M all", None).is_some_and(|asked| asked.wish.is_all()));
    assert_eq!(of("sattach", "1.0", Some("b")), None, "it has no such option");
    assert_eq!(of("squeue", "--bogus -M a", None), None, "the command itself tells what is wrong");
}

#[test]
fn lists_have_headings_unless_they_have_no_headers() {
    let has = |command: &str, text: &str| of(command, text, None).map(|asked| asked.has_headings);
    assert_eq!((has("squeue", "-M a"), has("squeue", "-M a -h")), (Some(true), Some(false)));
    assert_eq!((has("sinfo", "-M a"), has("scancel", "-M a 5")), (Some(true), Some(false)));
    assert_eq!(heading("a", true) + &heading("b", false), "CLUSTER: a\n\nCLUSTER: b\n");
}

#[test]
fn an_unknown_cluster_is_told_in_slurm_s_words() {
    let told = |option, variable: Option<&str>| {
        Wish::of(option, variable.map(str::to_owned)).map(|wish| wish.unknown("squeue").lines.concat())
    };
    let text = |entry: &str| {
        Some(format!(
            "squeue: error: 'x' can't be reached now, or it is an invalid entry for {entry}.  Use 'sacctmgr list clusters' \
             to see available clusters."
        ))
    };
    assert_eq!(told(Some("x"), None), text("--cluster"));
    assert_eq!(told(None, Some("x")), text("SLURM_CLUSTERS"));
    assert_eq!(told(None, None), None);
}
