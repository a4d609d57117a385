//! The types of attribute values: how each is read from text and written back.

use crate::{
    codes::{Code, Refusal},
    priority::Priority,
    run_time::RunTime,
};
use muster_schemas::time::Timestamp;
use std::fmt;

pub use super::words::{JobState, NodeGroupOp, SystemAttribute, TaskType, UnitType};

/// The value of an attribute.
pub trait Value: Sized {
    /// Reads the text of an attribute.
    ///
    /// # Errors
    /// The code that the specification gives, else `JobXmlNotValid`; the text says what was expected.
    fn read(text: &str) -> Result<Self, Refusal>;

    /// The text that reads as this value.
    fn write(&self) -> String;

    /// The value in the JSON form of a description: text, unless JSON has a type for it.
    fn json(&self) -> serde_json::Value {
        self.write().into()
    }
}

fn expected(expected: &str) -> Refusal {
    Refusal::new(Code::JobXmlNotValid, format!("expected {expected}"))
}

impl Value for String {
    fn read(text: &str) -> Result<Self, Refusal> {
        Ok(text.to_owned())
    }

    fn write(&self) -> String {
        self.clone()
    }
}

impl Value for bool {
    /// `true` or `false` in any case, `1`, `0` (HPC-J-42).
    fn read(text: &str) -> Result<Self, Refusal> {
        match text {
            "1" => Ok(true),
            "0" => Ok(false),
            _ if text.eq_ignore_ascii_case("true") => Ok(true),
            _ if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(expected("true, false, 1 or 0")),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> serde_json::Value {
        (*self).into()
    }
}

macro_rules! integers {
    ($($type:ty, $expected:literal;)*) => {$(
        impl Value for $type {
            fn read(text: &str) -> Result<Self, Refusal> {
                text.trim().parse().map_err(|_| expected($expected))
            }

            fn write(&self) -> String {
                self.to_string()
            }

            fn json(&self) -> serde_json::Value {
                (*self).into()
            }
        }
    )*};
}

integers! {
    u32, "a whole number from 0 to 4294967295";
    i32, "a whole number from -2147483648 to 2147483647";
    u64, "a whole number, 0 or more";
}

impl Value for Priority {
    fn read(text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for RunTime {
    fn read(text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for Timestamp {
    /// RFC 3339; without a zone, and in the forms `2026-11-20 08:30:00` and `11/20/2026 08:30:00`, it is UTC.
    fn read(text: &str) -> Result<Self, Refusal> {
        read_time(text.trim()).ok_or_else(|| expected("a time such as 2026-11-20T08:30:00Z"))
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

fn read_time(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return within(time);
    }
    let written = ["%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p"];
    let civil = text.parse::<jiff::civil::DateTime>().ok();
    let civil =
        civil.or_else(|| written.iter().find_map(|format| jiff::civil::DateTime::strptime(format, text).ok()))?;
    within(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

fn within(time: jiff::Timestamp) -> Option<Timestamp> {
    let time = Timestamp(time.as_microsecond());
    (Timestamp::MIN..=Timestamp::MAX).contains(&time).then_some(time)
}

/// Names separated by commas; blanks around them are ignored, and empty names dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl Value for Names {
    fn read(text: &str) -> Result<Self, Refusal> {
        Ok(Self(items(text).map(str::to_owned).collect()))
    }

    fn write(&self) -> String {
        self.0.join(",")
    }
}

/// The items of a comma-separated list, without blanks around them.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Reads each item of a comma-separated list.
fn list<T>(text: &str, read: impl Fn(&str) -> Option<T>, expectation: &str) -> Result<Vec<T>, Refusal> {
    items(text).map(|item| read(item).ok_or_else(|| expected(expectation))).collect()
}

/// Writes items as a comma-separated list.
fn join<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// Ids of jobs, each at least 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobIds(pub Vec<u64>);

impl Value for JobIds {
    fn read(text: &str) -> Result<Self, Refusal> {
        list(text, |item| item.parse().ok().filter(|id| *id > 0), "job ids separated by commas").map(Self)
    }

    fn write(&self) -> String {
        join(&self.0)
    }
}

/// Exit codes that mean success: numbers and ranges `a..b`, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitCodes(pub Vec<(i32, i32)>);

impl Value for ExitCodes {
    fn read(text: &str) -> Result<Self, Refusal> {
        let range = |item: &str| {
            let (first, last) = item.split_once("..").unwrap_or((item, item));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
                .filter(|(first, last): &(i32, i32)| first <= last)
        };
        list(text, range, "exit codes or ranges such as 0,10..19").map(Self)
    }

    fn write(&self) -> String {
        let ranges = self.0.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}..{last}"),
        });
        ranges.collect::<Vec<_>>().join(",")
    }
}

/// The property by which nodes are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKey {
    /// Memory.
    Memory,
    /// Cores.
    Cores,
}

/// Which nodes a job prefers: one key or two different ones, each with whether less is better (`-memory`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBy(pub Vec<(OrderKey, bool)>);

impl Value for OrderBy {
    fn read(text: &str) -> Result<Self, Refusal> {
        let key = |item: &str| {
            let (less, name) = item.strip_prefix('-').map_or((false, item), |name| (true, name));
            let keys = [("memory", OrderKey::Memory), ("cores", OrderKey::Cores)];
            keys.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, key)| (*key, less))
        };
        let expectation = "memory, -memory, cores or -cores, or two different ones of them";
        let keys = list(text, key, expectation)?;
        match keys[..] {
            [_] => Ok(Self(keys)),
            [(first, _), (second, _)] if first != second => Ok(Self(keys)),
            _ => Err(expected(expectation)),
        }
    }

    fn write(&self) -> String {
        let keys = self.0.iter().map(|(key, less)| {
            let name = if *key == OrderKey::Memory { "memory" } else { "cores" };
            format!("{}{name}", if *less { "-" } else { "" })
        });
        keys.collect::<Vec<_>>().join(",")
    }
}

/// The number of one licence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LicenceCount {
    /// This many, at least 1.
    Exactly(u32),
    /// One for each core of the job: `*`.
    PerCore,
}

/// Licences that a job needs: `feature:N` or `feature:*`, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoftwareLicense(pub Vec<(String, LicenceCount)>);

impl Value for SoftwareLicense {
    fn read(text: &str) -> Result<Self, Refusal> {
        let licence = |item: &str| {
            let (feature, count) = item.rsplit_once(':')?;
            let count = match count.trim() {
                "*" => LicenceCount::PerCore,
                digits => LicenceCount::Exactly(digits.parse().ok().filter(|count| *count > 0)?),
            };
            let feature = feature.trim();
            (!feature.is_empty()).then(|| (feature.to_owned(), count))
        };
        list(text, licence, "licences such as feature:2 or feature:*, separated by commas").map(Self)
    }

    fn write(&self) -> String {
        let licences = self.0.iter().map(|(feature, count)| match count {
            LicenceCount::Exactly(count) => format!("{feature}:{count}"),
            LicenceCount::PerCore => format!("{feature}:*"),
        });
        licences.collect::<Vec<_>>().join(",")
    }
}
