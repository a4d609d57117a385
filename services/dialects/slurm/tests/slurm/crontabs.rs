//! The tables of `scrontab`.

use crate::support::ago;
use muster_schemas::crontab::Schedule;
use muster_slurm::{
    crontab::{Entry, entries, with_disabled},
    queries::{
        Request, Surroundings,
        scrontab::{Deed, parse},
    },
};

fn read(text: &str) -> Vec<Entry> {
    entries(text, "UTC0", "/home/ann").unwrap_or_else(|bad| panic!("{bad:?}"))
}

fn times(line: &str) -> Schedule {
    read(&format!("{line} true")).remove(0).lines.schedule
}

fn shown(schedule: &Schedule) -> [String; 5] {
    let Schedule { minutes, hours, days, months, weekdays, .. } = schedule;
    [minutes, hours, days, months, weekdays].map(ToString::to_string)
}

#[test]
fn fields_are_numbers_ranges_steps_and_names() {
    let all = ["0-59", "0-23", "1-31", "1-12", "0-6"];
    assert_eq!(shown(&times("* * * * *")), all);
    assert_eq!(shown(&times("*/20 0-6/3 1,15 jan sun")), ["0,20,40", "0,3,6", "1,15", "1", "0"]);
    assert_eq!(shown(&times("0 0 */10 */5 */2"))[2..], ["1,11,21,31", "1,6,11", "0-1,3,5"], "days count from 1");
    assert_eq!(shown(&times("60 24 2-4 12 7")), ["0", "0", "2-4", "12", "0"]);
    assert_eq!(shown(&times("@hourly"))[..2], ["0", "0-23"]);
    assert_eq!(shown(&times("@Yearly")), ["0", "0", "1", "1", "0-6"]);
    assert_eq!(shown(&times("@weekly"))[4], "0");
    assert!(times("0 0 1 * 1").is_either_day, "both days are restricted");
    assert!(!times("0 0 * * 1").is_either_day && !times("0 0 1 * *").is_either_day);
}

#[test]
fn options_are_for_the_next_line_alone() {
    let text = "# a comment\n#SCRON -n2\n#SCRON -t 5 -J own\n\n  5 4 * * *  ./run one two\n@daily other\n";
    let [first, second] = &read(text)[..] else { panic!("two jobs") };
    assert_eq!((first.lines.first, first.lines.last), (1, 4));
    assert_eq!(
        first.script,
        "#!/bin/sh\n# This job was submitted through scrontab\n#SBATCH --export=NONE\n#SBATCH --chdir=\"/home/ann\"\n\
         #SBATCH --job-name=\"./run\"\n#SBATCH -n2\n#SBATCH -t 5 -J own\n# crontab time request was: '5 4 * * *'\n\
         ./run one two\n"
    );
    assert_eq!((second.lines.first, second.lines.last), (5, 5));
    assert!(!second.script.contains("-n2"), "{}", second.script);
    assert_eq!(with_disabled("a\nb\nc\n", &"0-1".parse().expect("a set")), "#DISABLED: a\n#DISABLED: b\nc\n");
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    for (text, number, why) in [
        ("* * * * *", 0, "five fields and a command are wanted"),
        ("\n61 * * * * true", 1, "`61` is no minute"),
        ("0 0 0 * * true", 0, "`0` is no day of the month"),
        ("0 0 * may-jun * true", 0, "`may-jun` is no month"),
        ("0 0 * * 8 true", 0, "`8` is no day of the week"),
        ("*/1 * * * * true", 0, "`*/1` is no minute"),
        ("5-1 * * * * true", 0, "`5-1` is no minute"),
        ("0 0 * * * true\n@reboot true", 1, "`@reboot` is not @yearly, @annually"),
    ] {
        let bad = entries(text, "UTC0", "/").expect_err(text);
        assert!(bad.number == number && bad.why.starts_with(why), "{text}: {bad:?}");
    }
}

#[test]
fn a_table_is_edited_listed_removed_or_read_from_a_file() {
    let around = Surroundings {
        variable: &|_| None,
        user: "ann",
        knows_user: &|user| user == "bob",
        is_root: false,
        now: ago(0).to_jiff().to_zoned(jiff::tz::TimeZone::UTC),
    };
    let deed = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        match parse(&words, &around) {
            Ok(Request::Run(command)) => Ok((command.deed, command.user)),
            other => Err(format!("{other:?}")),
        }
    };
    assert_eq!(deed(""), Ok((Deed::Edit, None)));
    assert_eq!(deed("-e"), Ok((Deed::Edit, None)));
    assert_eq!(deed("-l -u bob"), Ok((Deed::List, Some("bob".into()))));
    assert_eq!(deed("-r"), Ok((Deed::Remove, None)));
    assert_eq!(deed("table"), Ok((Deed::Set("table".into()), None)));
    assert_eq!(deed("-"), Ok((Deed::Set("-".into()), None)));
    for wrong in ["-l -r", "-l table", "a b", "-e table", "-u nobody -l", "-x"] {
        assert!(deed(wrong).is_err(), "{wrong}");
    }
}
