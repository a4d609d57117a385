//! The flags of reservations (SL-C-38): those that have an effect here, and how they are kept.

use crate::duration::{self, parse_seconds};
use muster_schemas::plan::{ReservationSpec, ReservedNodes};
use std::collections::BTreeSet;

/// The attribute of a reservation that keeps its flags.
const KEPT: &str = "slurm.flags";

/// The flags that a reservation can have, in the order in which they are shown. Their effects:
/// its nodes are shown in maintenance; its jobs may begin before it, outlast it and have other nodes; its nodes may be those of others; jobs on its nodes do not keep it from being made; it begins again after an hour,
/// a day or a week; its nodes were named; any nodes do; it keeps its nodes; it has all nodes of a partition; it ends when it is
/// idle; jobs that it admits need not name it.
const KNOWN: [&str; 13] = [
    MAINT,
    FLEX,
    OVERLAP,
    "IGNORE_JOBS",
    "HOURLY",
    "DAILY",
    "WEEKLY",
    "SPEC_NODES",
    "ANY_NODES",
    STATIC_ALLOC,
    PART_NODES,
    PURGE_COMP,
    MAGNETIC,
];

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
const PERIODS: [(&str, u64); 3] = [("HOURLY", 3_600), ("DAILY", 86_400), ("WEEKLY", 604_800)];

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
        flags
            .extend(PERIODS.iter().filter(|(_, seconds)| *seconds == spec.repeats_after_seconds).map(|(flag, _)| flag));
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

    /// Gives them to a reservation.
    pub(super) fn give(&self, spec: &mut ReservationSpec) {
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
        let is_told = |flag: &&&str| {
            ["SPEC_NODES", PURGE_COMP, MAGNETIC, FLEX].contains(*flag)
                || PERIODS.iter().any(|(known, _)| known == *flag)
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
