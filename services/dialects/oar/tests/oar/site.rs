//! Where commands run, shells, and settings.

use crate::support::s;
use jiff::tz::TimeZone;
use muster_oar::{
    life::{
        connect::{self, Candidate},
        state::State,
        target::Target,
    },
    options::types::{self, Reading},
    order::Order,
    request::walltime,
    resources::{setting, value::Value},
    show::{accounting, query, submitted},
};
use proptest::prelude::*;

/// OAR-T-50, OAR-T-60, OAR-T-70: where commands run.
#[test]
fn where_commands_run() {
    let zone = TimeZone::UTC;
    let target = |words: &[&str]| {
        Target::of(&types::read(words, Reading { now: 0, zone: &zone, site_types: &[] }).expect("types"))
    };
    for (words, expected) in [
        (&["besteffort"][..], Target::FirstNode),
        (&["cosystem"], Target::CosystemHost),
        (&["deploy=standby"], Target::DeployHost),
        (&["noop", "deploy"], Target::Nowhere),
    ] {
        assert_eq!(target(words), expected);
    }
}

/// OAR-J-12: which job a shell is opened in.
#[test]
fn a_shell_is_opened_in_a_running_job() {
    let job = |job, state| Candidate { job, state, has_right: true, is_own: true, is_noop: false };
    let chosen = |named, jobs: &[Candidate]| connect::choose(named, jobs).map_err(|(status, _)| status);
    let one = [job(1, State::Running), job(2, State::Waiting)];
    assert_eq!(chosen(None, &one), Ok(1));
    assert_eq!(chosen(Some(1), &one), Ok(1));
    assert_eq!(chosen(Some(2), &one), Err(20));
    assert_eq!(chosen(Some(3), &one), Err(20));
    assert_eq!(chosen(None, &one[1..]), Err(20));
    assert_eq!(chosen(None, &[job(1, State::Running), job(3, State::Running)]), Err(20));
    let foreign = Candidate { has_right: false, is_own: false, ..job(1, State::Running) };
    assert_eq!((chosen(Some(1), &[foreign]), chosen(None, &[foreign])), (Err(20), Err(20)));
    let noop = Candidate { is_noop: true, ..job(1, State::Running) };
    assert_eq!((chosen(Some(1), &[noop]), chosen(None, &[noop, job(2, State::Running)])), (Err(17), Ok(2)));
    let administrated = Candidate { is_own: false, ..job(1, State::Running) };
    assert_eq!((chosen(Some(1), &[administrated]), chosen(None, &[administrated])), (Ok(1), Err(20)));
}

/// OAR-G-16: what `oarwalltime` is asked for, relative to the walltime so far.
#[test]
fn changes_of_walltimes_are_read() {
    assert_eq!(walltime::change("+1:0", 7200), Ok(3600));
    assert_eq!(walltime::change("-0:30", 7200), Ok(-1800));
    assert_eq!(walltime::change("1", 7200), Ok(-3600));
    assert!(["", "+", "-x", "1:2:3:4", "ä"].iter().all(|text| walltime::change(text, 1).is_err()));
}

/// OAR-C-03: what a submission prints.
#[test]
fn ids_are_printed_on_lines_of_their_own() {
    assert_eq!(submitted::lines(&[42], false), "OAR_JOB_ID=42\n");
    assert_eq!(submitted::lines(&[42, 43], true), "OAR_JOB_ID=42\nOAR_JOB_ID=43\nOAR_ARRAY_ID=42\n");
    assert_eq!(submitted::lines(&[42], true), "OAR_JOB_ID=42\nOAR_ARRAY_ID=42\n");
}

/// OAR-C-11: the settings of `oarnodesetting`.
#[test]
fn settings_of_nodes() {
    let table = s();
    let read = |text: &str| setting::property(text, &table);
    assert_eq!(read("core=7"), Ok(("core".to_owned(), Some(Value::Integer(7)))));
    assert_eq!(read("Switch = s=9"), Ok(("switch".to_owned(), Some(Value::text(" s=9")))));
    assert_eq!(read("cpu!"), Ok(("cpu".to_owned(), None)));
    for (text, expected) in [
        ("core=x", "core is an integer; 'x' is not"),
        ("cores=1", "no property is called 'cores'; is 'core' meant?"),
        ("core", "expected name=value or name!, found 'core'"),
        ("", "expected name=value or name!, found ''"),
    ] {
        assert_eq!(read(text), Err(expected.to_owned()), "{text}");
    }
    assert_eq!(
        (setting::switch("on"), setting::switch("OFF"), setting::switch("yes").is_err()),
        (Ok(true), Ok(false), true)
    );
}

proptest! {
    /// OAR-R-12, OAR-C-11, OAR-C-14, OAR-G-16, OAR-A-06: any small text is read or refused.
    #[test]
    fn any_small_text_is_read_or_refused(text in prop_oneof![".{0,20}", "[a-z_]{0,8}[ =!,<>+-]{0,3}[0-9:a-zA-Z ,-]{0,12}"]) {
        let table = s();
        if let Err(mistake) = Order::read(&text, Some(table.fields())) {
            prop_assert!(mistake.column <= text.chars().count() + 1);
        }
        let _ = setting::property(&text, &table);
        let _ = walltime::change(&text, 7200);
        let _ = accounting::span(&text, &TimeZone::UTC);
        let _ = query::read(&text);
    }
}
