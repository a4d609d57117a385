//! The presets, and the kinds of values in their file (PBS-P-02).

use crate::{local_time, values};
use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};
use std::fmt;

/// A policy that comes with PBS in addition to fifo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preset {
    /// `sgi_origin`.
    SgiOrigin,
    /// `cray_t3e`.
    CrayT3e,
    /// `ibm_sp`.
    IbmSp,
    /// `multitask`.
    Multitask,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 4] = [Self::SgiOrigin, Self::CrayT3e, Self::IbmSp, Self::Multitask];

    /// Its name in the server attribute `scheduler_policy`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SgiOrigin => "sgi_origin",
            Self::CrayT3e => "cray_t3e",
            Self::IbmSp => "ibm_sp",
            Self::Multitask => "multitask",
        }
    }

    /// The preset with a name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name().eq_ignore_ascii_case(name))
    }

    /// Whether no sources of the preset are public, so that its options are a reconstruction (PBS-P-23).
    pub const fn is_reconstruction(self) -> bool {
        matches!(self, Self::IbmSp | Self::Multitask)
    }
}

/// A queue, and the host whose queue it is if it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// The name of the queue.
    pub queue: String,
    /// The host, in lower case.
    pub host: Option<String>,
}

impl QueueName {
    /// Reads `queue` or `queue@host`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (queue, host) = match text.split_once('@') {
            Some((queue, host)) => (queue, Some(host)),
            None => (text, None),
        };
        let is_wrong = |name: &str| name.is_empty() || name.contains(['@', ',', char::REPLACEMENT_CHARACTER]);
        if is_wrong(queue) || host.is_some_and(is_wrong) {
            return None;
        }
        Some(Self { queue: queue.to_owned(), host: host.map(str::to_lowercase) })
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.queue)?;
        self.host.iter().try_for_each(|host| write!(f, "@{host}"))
    }
}

/// Whether a rule is enforced, or from when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// It is not.
    Never,
    /// It is.
    Always,
    /// It is from this local time.
    From(DateTime),
}

impl Enforced {
    /// Reads a boolean or `MM/DD/YYYY@HH:MM:SS`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        match boolean(text) {
            Some(true) => Some(Self::Always),
            Some(false) => Some(Self::Never),
            None => moment(text).map(Self::From),
        }
    }

    /// Whether it is enforced at a time.
    pub fn holds(self, now: Timestamp, zone: &TimeZone) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::From(start) => local_time::instant(start, zone).is_some_and(|start| start <= now),
        }
    }
}

impl fmt::Display for Enforced {
    /// As [`Enforced::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("false"),
            Self::Always => f.write_str("true"),
            Self::From(start) => write!(f, "{}", start.strftime("%m/%d/%Y@%H:%M:%S")),
        }
    }
}

/// How far the load may be from its target, in percent of the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variance {
    /// Below.
    pub minus: u32,
    /// Above.
    pub plus: u32,
}

impl Variance {
    /// Reads `-m%,+n%`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (minus, plus) = text.split_once(',')?;
        Some(Self { minus: integer(minus.strip_prefix('-')?)?, plus: integer(plus.strip_prefix('+')?)? })
    }
}

impl fmt::Display for Variance {
    /// As [`Variance::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-{}%,+{}%", self.minus, self.plus)
    }
}

/// What happens to jobs that are found queued in a batch queue at the first cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartAction {
    /// Nothing.
    None,
    /// They return to the queue from which they came.
    Resubmit,
    /// They start.
    Rerun,
}

impl RestartAction {
    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Resubmit => "RESUBMIT",
            Self::Rerun => "RERUN",
        }
    }
}

/// How a reservation for a large job is kept (PBS-P-16, PBS-P-17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillMode {
    /// There are no reservations.
    None,
    /// Holder and time are kept from cycle to cycle.
    Static,
    /// It is computed in each cycle.
    Dynamic,
}

impl BackfillMode {
    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// The words for true, then those for false.
const BOOLEANS: [[&str; 6]; 2] =
    [["true", "yes", "y", "on", "enable", "enabled"], ["false", "no", "n", "off", "disable", "disabled"]];

/// Reads a boolean of these files, in any case; `None` for anything else.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ => {
            let place = BOOLEANS.iter().position(|words| words.iter().any(|word| word.eq_ignore_ascii_case(text)))?;
            Some(place == 0)
        }
    }
}

/// The words for true and false.
pub fn booleans() -> impl Iterator<Item = &'static str> {
    BOOLEANS.into_iter().flatten()
}

/// Reads digits behind which a `%` may stand; `None` for anything else.
pub fn integer(text: &str) -> Option<u32> {
    values::decimal(text.strip_suffix('%').unwrap_or(text)).and_then(|number| u32::try_from(number).ok())
}

/// Reads `MM/DD/YYYY@HH:MM:SS`; `None` for anything else.
fn moment(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_once('@')?;
    let [month, day, year] = numbers(date, '/')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let small = |number: i16| i8::try_from(number).ok();
    let date = Date::new(year, small(month)?, small(day)?).ok()?;
    Some(date.to_datetime(Time::new(small(hour)?, small(minute)?, small(second)?, 0).ok()?))
}

fn numbers(text: &str, between: char) -> Option<[i16; 3]> {
    let number = |part: &str| values::decimal(part).and_then(|number| i16::try_from(number).ok());
    let numbers: Vec<i16> = text.splitn(4, between).map(number).collect::<Option<_>>()?;
    numbers.try_into().ok()
}
