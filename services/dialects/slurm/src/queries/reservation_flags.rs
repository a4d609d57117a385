//! The flags of reservations (SL-C-38): those that have an effect here, and how they are kept.

use crate::duration::{self, parse_seconds};
use muster_schemas::{
    plan::{Replaced, ReservationSpec, ReservedNodes},
    time::Timestamp,
};
use std::collections::BTreeSet;

/// The attribute of a reservation that keeps its flags.
const KEPT: &str = "slurm.flags";

/// The flags that a reservation can have, in the order in which they are shown. Their effects:
/// its nodes are shown in maintenance; its jobs may begin before it, outlast it and have other nodes; its nodes may be those of others; jobs on its nodes do not keep it from being made; it begins again after an hour,
/// a day, on weekdays or weekends, or after a week; its nodes were named; any nodes do; it keeps its nodes; it has all nodes of a
/// partition; idle nodes take the place of those that jobs have or that are out of service, or of the latter; it ends when it is
/// idle; it stays ahead; jobs that it admits need not name it; its users may delete it.
const KNOWN: [&str; 19] = [
    MAINT,
    FLEX,
    OVERLAP,
    "IGNORE_JOBS",
    "HOURLY",
    "DAILY",
    WEEKDAY,
    WEEKEND,
    "WEEKLY",
    "SPEC_NODES",
    "ANY_NODES",
    STATIC_ALLOC,
    PART_NODES,
    REPLACE,
    REPLACE_DOWN,
    PURGE_COMP,
    TIME_FLOAT,
    MAGNETIC,
    USER_DELETE,
];

/// The flag of a reservation that begins again on Mondays to Fridays.
const WEEKDAY: &str = "WEEKDAY";
/// The flag of a reservation that begins again on Saturdays and Sundays.
const WEEKEND: &str = "WEEKEND";
/// The flag of a reservation that always has idle nodes, as far as there are any.
pub(super) const REPLACE: &str = "REPLACE";
/// The flag of a reservation whose nodes are replaced if they are out of service. Without [`STATIC_ALLOC`] it goes without saying.
pub(super) const REPLACE_DOWN: &str = "REPLACE_DOWN";
/// The flag of a reservation that never begins: its beginning stays ahead.
const TIME_FLOAT: &str = "TIME_FLOAT";
/// The flag of a reservation that its users may delete.
const USER_DELETE: &str = "USER_DELETE";

/// The flag of a reservation during which its nodes are maintained. It may overlap others.
const MAINT: &str = "MAINT";
/// The flag of a reservation that ends once no job has run in it for a time.
const PURGE_COMP: &str = "PURGE_COMP";
/// That time if none is given.
const PURGE_SECONDS: u64 = 300;
/// The flag of a reservation whose jobs need not stay within it.
const FLEX: &str = "FLEX";
/// The flag of a reservation that jobs need not name.
const MAGNETIC: &str = "MAGNETIC";
/// The flag of a reservation that keeps its nodes. It is shown by its first word, as in Slurm.
const STATIC_ALLOC: &str = "STATIC_ALLOC";
/// The flag of a reservation that may overlap others.
const OVERLAP: &str = "OVERLAP";

/// The flag of a reservation that has all nodes of a partition.
pub(super) const PART_NODES: &str = "PART_NODES";

/// How long after its beginning a reservation with a flag begins again.
const PERIODS: [(&str, u64); 5] =
    [("HOURLY", 3_600), (WEEKDAY, DAY_SECONDS), (WEEKEND, DAY_SECONDS), ("DAILY", DAY_SECONDS), ("WEEKLY", 604_800)];

const DAY_SECONDS: u64 = 86_400;

/// The flags of a reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    names: BTreeSet<&'static str>,
    /// How long it may be idle, with the flag for that.
    idle_seconds: u64,
}

/// Why flags are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagFault {
    /// Reservations cannot have this one.
    Unknown(String),
    /// A reservation has one period at most.
    TwoPeriods,
}

impl Flags {
    /// Those of a reservation.
    pub fn of(spec: &ReservationSpec) -> Self {
        let kept = spec.attributes.get(KEPT).map_or("", String::as_str);
        let mut flags: BTreeSet<&'static str> = kept.split(',').filter_map(known).collect();
        let is_of_days = flags.contains(WEEKDAY) || flags.contains(WEEKEND);
        let periods = PERIODS.iter().filter(|(flag, _)| ![WEEKDAY, WEEKEND].contains(flag) && !is_of_days);
        flags.extend(periods.filter(|(_, seconds)| *seconds == spec.repeats_after_seconds).map(|(flag, _)| flag));
        flags.extend((spec.replaces == Replaced::Used).then_some(REPLACE));
        flags.extend((spec.stays_ahead_seconds > 0).then_some(TIME_FLOAT));
        flags.extend(spec.users_may_remove.then_some(USER_DELETE));
        flags.extend((spec.overlaps && !flags.contains(MAINT)).then_some(OVERLAP));
        flags.extend(matches!(spec.nodes, ReservedNodes::Named(_)).then_some("SPEC_NODES"));
        flags.extend((spec.ends_after_idle_seconds > 0).then_some(PURGE_COMP));
        flags.extend(spec.attracts.then_some(MAGNETIC));
        flags.extend(spec.is_flexible.then_some(FLEX));
        Self { names: flags, idle_seconds: spec.ends_after_idle_seconds }
    }

    /// Adds the flags of a list, and removes those with a `-` before the name, or all of them if they are taken away.
    pub(super) fn change(&mut self, list: &str, are_taken: bool) -> Result<(), FlagFault> {
        for word in super::words(list) {
            let (name, is_taken) = match word.strip_prefix('-') {
                Some(name) => (name, true),
                None => (word.trim_start_matches('+'), are_taken),
            };
            let unknown = || FlagFault::Unknown(name.to_owned());
            let (plain, value) = name.split_once('=').map_or((name, None), |(plain, value)| (plain, Some(value)));
            let flag = known(plain).filter(|flag| value.is_none() || *flag == PURGE_COMP).ok_or_else(unknown)?;
            if flag == PURGE_COMP {
                let seconds = value.map_or(Some(PURGE_SECONDS), parse_seconds).filter(|seconds| *seconds > 0);
                self.idle_seconds = seconds.ok_or_else(unknown)?;
            }
            if is_taken {
                self.names.remove(flag)
            } else {
                self.names.insert(flag)
            };
        }
        let periods = PERIODS.iter().filter(|(flag, _)| self.has(flag)).count();
        if periods > 1 { Err(FlagFault::TwoPeriods) } else { Ok(()) }
    }

    /// Whether it has a flag, by its name in capitals.
    pub fn has(&self, flag: &str) -> bool {
        self.names.contains(flag)
    }

    /// Takes a flag away, by its name in capitals.
    pub(super) fn remove(&mut self, flag: &str) {
        self.names.remove(flag);
    }

    /// Gives them to a reservation that is made or changed now; `start` is its beginning if it is given.
    pub(super) fn give(&self, spec: &mut ReservationSpec, start: Option<Timestamp>, is_new: bool, now: &jiff::Zoned) {
        let period = PERIODS.iter().find(|(flag, _)| self.has(flag)).map(|(_, seconds)| *seconds);
        let had_period = PERIODS.iter().any(|(_, seconds)| *seconds == spec.repeats_after_seconds);
        // One that was made to begin again after another time keeps it.
        if period.is_some() || had_period {
            spec.repeats_after_seconds = period.unwrap_or(0);
        }
        spec.overlaps = self.has(OVERLAP) || self.has(MAINT);
        spec.attracts = self.has(MAGNETIC);
        spec.is_flexible = self.has(FLEX);
        spec.ends_after_idle_seconds = if self.has(PURGE_COMP) { self.idle_seconds } else { 0 };
        spec.users_may_remove = self.has(USER_DELETE);
        let is_by_count = matches!(spec.nodes, ReservedNodes::Count { .. });
        spec.replaces = match spec.replaces {
            _ if !is_by_count => Replaced::None,
            _ if self.has(REPLACE) => Replaced::Used,
            _ if self.has(REPLACE_DOWN) => Replaced::Lost,
            _ if self.has(STATIC_ALLOC) => Replaced::None,
            Replaced::None if !is_new => Replaced::None,
            _ => Replaced::Lost,
        };
        spec.stays_ahead_seconds = match (self.has(TIME_FLOAT), start) {
            (false, _) => 0,
            (true, None) if spec.stays_ahead_seconds > 0 => spec.stays_ahead_seconds,
            (true, _) => seconds_ahead(spec.start, now),
        };
        spec.skipped_days = if self.has(WEEKDAY) {
            skipped_days(spec.start, now, |day| day >= 5)
        } else if self.has(WEEKEND) {
            skipped_days(spec.start, now, |day| day < 5)
        } else {
            0
        };
        let is_told = |flag: &&&str| {
            ["SPEC_NODES", PURGE_COMP, MAGNETIC, FLEX, REPLACE, TIME_FLOAT, USER_DELETE].contains(*flag)
                || PERIODS.iter().any(|(known, _)| known == *flag && ![WEEKDAY, WEEKEND].contains(known))
        };
        let kept: Vec<&str> = KNOWN.iter().filter(|flag| self.has(flag) && !is_told(flag)).copied().collect();
        spec.attributes.remove(KEPT);
        spec.attributes.extend((!kept.is_empty()).then(|| (KEPT.to_owned(), kept.join(","))));
    }

    /// As they are shown: `MAINT,IGNORE_JOBS,SPEC_NODES,PURGE_COMP=00:05:00`.
    pub fn shown(&self) -> String {
        let shown = |flag: &str| match flag {
            PURGE_COMP => format!("{flag}={}", duration::long(self.idle_seconds)),
            STATIC_ALLOC => "STATIC".to_owned(),
            _ => flag.to_owned(),
        };
        let list: Vec<String> = KNOWN.into_iter().filter(|flag| self.has(flag)).map(shown).collect();
        list.join(",")
    }
}

/// How far its beginning is ahead, at least a second.
fn seconds_ahead(start: Timestamp, now: &jiff::Zoned) -> u64 {
    u64::try_from(start.unix_seconds() - now.timestamp().as_second()).unwrap_or(0).max(1)
}

/// The days from that of the beginning on, in the zone of `now`, that are left out; 0 is a Monday. It begins on its first day
/// in any case. Clocks that change between summer and winter do not move a reservation, so the days are those of its beginning.
fn skipped_days(start: Timestamp, now: &jiff::Zoned, is_left_out: impl Fn(i8) -> bool) -> u8 {
    let first = jiff::Timestamp::from_second(start.unix_seconds()).ok();
    let weekday = first.map_or(0, |first| first.to_zoned(now.time_zone().clone()).weekday().to_monday_zero_offset());
    (0..7).filter(|days| is_left_out((weekday + days) % 7)).fold(0, |mask, days| mask | 1 << days)
}

fn known(name: &str) -> Option<&'static str> {
    // A plural is usual, and so are names without the line.
    let plain = |text: &str| text.trim_end_matches(['s', 'S']).replace('_', "").to_ascii_uppercase();
    let name = match plain(name).as_str() {
        "PROMISCUOU" => MAGNETIC,
        "STATIC" => STATIC_ALLOC,
        _ => name,
    };
    KNOWN.into_iter().find(|flag| plain(flag) == plain(name))
}
