//! Windows of dedicated time in `dedicated_time` (PBS-T-09 to PBS-T-11).

use crate::{
    findings::Findings,
    lines::{self, Word},
    local_time, values,
};
use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

/// Two-digit years below this one belong to this century, the others to the last.
const FIRST_YEAR_OF_LAST_CENTURY: i16 = 90;

/// The windows of a file, in local time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DedicatedTime {
    /// Begin and end of each line, in the order of the file.
    pub periods: Vec<(DateTime, DateTime)>,
}

/// A window in which only dedicated queues are planned: from its begin until just before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first instant.
    pub from: Timestamp,
    /// The first instant behind it.
    pub to: Timestamp,
}

/// Windows in the order of time, neither overlapping nor touching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    windows: Vec<Window>,
}

/// Why a job may not start (PBS-T-10, PBS-T-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its queue is not planned at this time: `DEDICATED_TIME`.
    DedicatedTime,
    /// It may run past the border of a window: `CROSSES_DEDICATED`.
    CrossesDedicated,
}

impl Refusal {
    /// Its code in records and dry runs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::DedicatedTime => "DEDICATED_TIME",
            Self::CrossesDedicated => "CROSSES_DEDICATED",
        }
    }
}

impl DedicatedTime {
    /// Reads a file. Mistakes are added to the findings.
    pub fn read(bytes: &[u8], findings: &mut Findings) -> Self {
        let lines = lines::lines(bytes).filter(|line| !lines::is_comment(line));
        let periods = lines.filter_map(|line| read_period(&lines::words(&line), findings)).collect();
        Self { periods }
    }

    /// The windows in a time zone. Those that overlap or touch are joined.
    pub fn windows(&self, zone: &TimeZone) -> Windows {
        let window = |(from, to): &(DateTime, DateTime)| {
            let (from, to) = (local_time::instant(*from, zone)?, local_time::instant(*to, zone)?);
            // Both ends may lie in an hour that is skipped.
            (from < to).then_some(Window { from, to })
        };
        let mut windows: Vec<Window> = self.periods.iter().filter_map(window).collect();
        windows.sort_by_key(|window| window.from);
        let mut joined: Vec<Window> = Vec::with_capacity(windows.len());
        for window in windows {
            match joined.last_mut().filter(|last| window.from <= last.to) {
                Some(last) => last.to = last.to.max(window.to),
                None => joined.push(window),
            }
        }
        Windows { windows: joined }
    }
}

pub(crate) fn read_period(words: &[Word], findings: &mut Findings) -> Option<(DateTime, DateTime)> {
    let [from_date, from_time, to_date, to_time] = words else {
        let word = words.get(4).or(words.last())?;
        findings.error(*word, "expected MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM");
        return None;
    };
    let from = read_moment(*from_date, *from_time, findings);
    let to = read_moment(*to_date, *to_time, findings);
    let (from, to) = (from?, to?);
    if to <= from {
        let later = if from.date() == to.date() { to_time } else { to_date };
        findings.error(*later, "expected an end after the begin");
        return None;
    }
    Some((from, to))
}

fn read_moment(date: Word, time: Word, findings: &mut Findings) -> Option<DateTime> {
    let day = read_date(date, findings);
    let clock = read_time(time, findings);
    let (day, (time, is_next_day)) = (day?, clock?);
    let day = if is_next_day { day.tomorrow().ok()? } else { day };
    Some(day.to_datetime(time))
}

fn read_date(word: Word, findings: &mut Findings) -> Option<Date> {
    let Some(date) = numbers::<3>(word.text, '/') else {
        findings.error(word, "expected a date MM/DD/YYYY");
        return None;
    };
    let [month, day, year] = date;
    let date = i8::try_from(month).ok().zip(i8::try_from(day).ok());
    let date = date.and_then(|(month, day)| Date::new(whole_year(year), month, day).ok());
    if date.is_none() {
        findings.error(word, "there is no such date");
    }
    date
}

/// The year that a number means (PBS-T-09).
const fn whole_year(year: i16) -> i16 {
    match year {
        0..FIRST_YEAR_OF_LAST_CENTURY => 2000 + year,
        FIRST_YEAR_OF_LAST_CENTURY..100 => 1900 + year,
        _ => year,
    }
}

/// A time of day, and whether it is midnight at the end of the day, `24:00`.
fn read_time(word: Word, findings: &mut Findings) -> Option<(Time, bool)> {
    let time = match numbers::<2>(word.text, ':') {
        Some([24, 0]) => return Some((Time::midnight(), true)),
        Some([hour, minute]) => i8::try_from(hour).ok().zip(i8::try_from(minute).ok()),
        None => None,
    };
    let time = time.and_then(|(hour, minute)| Time::new(hour, minute, 0, 0).ok());
    if time.is_none() {
        findings.error(word, "expected a time HH:MM from 00:00 to 24:00");
    }
    Some((time?, false))
}

/// Numbers of up to four digits with a sign between them.
fn numbers<const COUNT: usize>(text: &str, between: char) -> Option<[i16; COUNT]> {
    let number = |part: &str| {
        let number = values::decimal(part).filter(|_| part.len() <= 4)?;
        i16::try_from(number).ok()
    };
    let numbers: Vec<i16> = text.splitn(COUNT + 1, between).map(number).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

impl Windows {
    /// All windows.
    pub fn all(&self) -> &[Window] {
        &self.windows
    }

    /// The window at this time.
    pub fn current(&self, now: Timestamp) -> Option<Window> {
        self.not_over(now).first().copied().filter(|window| window.from <= now)
    }

    /// The first window that begins after this time.
    pub fn next(&self, now: Timestamp) -> Option<Window> {
        self.not_over(now).iter().copied().find(|window| window.from > now)
    }

    /// The next begin or end of a window after this time (PBS-T-08).
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let window = self.not_over(now).first()?;
        Some(if window.from > now { window.from } else { window.to })
    }

    /// Windows that have ended are ignored (PBS-T-09).
    fn not_over(&self, now: Timestamp) -> &[Window] {
        let first = self.windows.partition_point(|window| window.to <= now);
        &self.windows[first..]
    }

    /// Whether a job may start at this time in a queue, as far as dedicated time is concerned. A queue is dedicated if
    /// its name begins with the prefix. The walltime includes defaults of queue and server.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn admit(
        &self,
        now: Timestamp,
        prefix: &str,
        queue: &str,
        walltime_seconds: Option<u64>,
    ) -> Result<(), Refusal> {
        let current = self.current(now);
        if queue.starts_with(prefix) != current.is_some() {
            return Err(Refusal::DedicatedTime);
        }
        let border = current.map(|window| window.to).or(self.next(now).map(|window| window.from));
        match border {
            Some(border) if !ends_by(now, walltime_seconds, border) => Err(Refusal::CrossesDedicated),
            _ => Ok(()),
        }
    }
}

/// Whether a job that starts at this time ends by the border. A job without walltime never does.
fn ends_by(now: Timestamp, walltime_seconds: Option<u64>, border: Timestamp) -> bool {
    let walltime = walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
    walltime.is_some_and(|seconds| SignedDuration::from_secs(seconds) <= border.duration_since(now))
}
