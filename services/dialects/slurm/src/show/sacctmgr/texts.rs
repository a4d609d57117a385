//! What `sacctmgr show` tells in other forms than a table.

use crate::show::{
    Clock,
    cells::{date_line, moment, put},
};
use muster_schemas::time::Timestamp;
use std::collections::BTreeMap;

/// The width of the names of settings.
const NAME_WIDTH: usize = 22;
/// The line around the heading of statistics.
const RULE: &str = "*******************************************************************\n";

/// `sacctmgr show configuration`: the settings below a line with the date.
pub fn configuration(values: &BTreeMap<&str, String>, clock: &Clock) -> String {
    let mut out = "Configuration data as of ".to_owned();
    moment(Some(clock.now), "Unknown", clock, &mut out);
    out.push('\n');
    for (name, value) in values {
        put(format_args!("{name:<NAME_WIDTH$} = {value}\n"), &mut out);
    }
    out.push('\n');
    out
}

/// `sacctmgr show stats`: since when the gateway that answers has been counting. There is no database with statistics.
pub fn statistics(since: Timestamp, clock: &Clock) -> String {
    let mut out = RULE.to_owned();
    for (what, time) in [("sacctmgr show stats output at ", clock.now), ("Data since                     ", since)] {
        out.push_str(what);
        date_line(time, clock, &mut out);
    }
    out.push_str("All statistics are in microseconds\n");
    out.push_str(RULE);
    out.push_str("\nAccounting is read from the scheduler's own log: there is no database with statistics.\n");
    out
}
