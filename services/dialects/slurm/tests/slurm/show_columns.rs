//! Formats of columns.

use crate::support::{clock, records, view};
use muster_slurm::show::{
    columns::{Layout, ListStyle},
    record::JobRecord,
    sacct::FIELDS as LIST_FIELDS,
    squeue::FIELDS,
};
use proptest::prelude::*;
use serde_json::json;

fn row(format: &str, record: &JobRecord) -> String {
    let layout = Layout::printf(format, FIELDS).unwrap_or_else(|error| panic!("{error}"));
    let mut out = String::new();
    layout.write_row(record, &clock(), &mut out);
    out.pop();
    out
}

fn one(name: &str) -> JobRecord {
    records([view(json!({ "name": name }))]).remove(0)
}

/// SL-C-23, SL-C-24
#[test]
fn values_are_aligned_and_cut_to_their_width() {
    let job = one("abcdefgh");
    assert_eq!(row("%.10j|%10j|%.3j|%3j|%j", &job), "  abcdefgh|abcdefgh  |abc|abc|abcdefgh");
    let layout = Layout::printf("%.4j %8T", FIELDS).unwrap();
    let mut header = String::new();
    layout.write_header(&mut header);
    assert_eq!(header, "NAME STATE   \n");
}

/// SL-C-24
#[test]
fn text_between_the_columns_is_kept() {
    let job = one("x");
    assert_eq!(row("<%i;%t>", &job), "<7;PD>");
    assert_eq!(row("job %i is called %j.", &job), "job 7 is called x.");
    assert_eq!(row("nothing", &job), "nothing");
}

/// SL-C-24
#[test]
fn every_letter_is_a_column_and_all_of_them_stand_between_bars() {
    for letter in "aABcCdDeEfFgGhijkKlLmMnNoOpPqQrRsStTuUvVwWxyYzZ".chars() {
        assert!(Layout::printf(&format!("%{letter}"), FIELDS).is_ok(), "{letter}");
    }
    let lettered = FIELDS.iter().filter(|field| field.letter.is_some()).count();
    assert_eq!(row("%all", &one("x")).split('|').count(), lettered);
    assert_eq!(Layout::printf("%+", FIELDS).err().unwrap().to_string(), "Invalid job format specification: +");
}

/// SL-C-24
#[test]
fn named_columns_are_twenty_wide_unless_told_otherwise() {
    let layout = Layout::named("JobArrayID:.6,name:5~,STATE,userid:", FIELDS).unwrap();
    let mut out = String::new();
    layout.write_header(&mut out);
    layout.write_row(&one("abcdefgh"), &clock(), &mut out);
    assert_eq!(out, " JOBIDNAME ~STATE               UID\n     7abcde~PENDING             0\n");
    let error = Layout::named("jobid,nope", FIELDS).err().unwrap();
    assert_eq!(error.to_string(), "Invalid job format specification: nope");
}

/// A name with a line break or a terminal's control sequence stays in its row.
#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    assert_eq!(row("%j|", &one("a\n\u{1b}[2Jb")), "a??[2Jb|");
}

proptest! {
    /// SL-C-23
    #[test]
    fn no_column_is_wider_or_narrower_than_asked_for(name in "\\PC{0,40}", width in 1usize..30, right in any::<bool>()) {
        let point = if right { "." } else { "" };
        let text = row(&format!("%{point}{width}j"), &one(&name));
        prop_assert_eq!(text.chars().count(), width);
    }

    /// SL-C-24
    #[test]
    fn text_around_columns_comes_out_as_it_went_in(before in "[^%]{0,20}", after in "[^%]{0,20}") {
        prop_assert_eq!(row(&format!("{before}%i{after}"), &one("x")), format!("{before}7{after}"));
    }

    /// No format makes a table panic.
    #[test]
    fn any_text_is_a_format_or_refused(format in "\\PC{0,40}|[%.#0-9a-zA-Z:,+-]{0,30}") {
        let job = one("x");
        let mut out = String::new();
        for layout in [Layout::printf(&format, FIELDS), Layout::named(&format, FIELDS)].into_iter().flatten() {
            layout.write_header(&mut out);
            layout.write_row(&job, &clock(), &mut out);
        }
        let _ = Layout::listed(&format, LIST_FIELDS, &ListStyle::Columns);
    }
}
