//! Points in time.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;

/// A point in time: microseconds since 1970-01-01 00:00 UTC. In JSON and in print it is RFC 3339 text in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The earliest and latest points that can be written as a calendar date.
    pub const MIN: Self = Self(-62_135_596_800_000_000);
    /// See [`Timestamp::MIN`].
    pub const MAX: Self = Self(253_402_207_200_000_000 - 1);

    /// The point `seconds` after 1970, as far as it can be represented.
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Whole seconds since 1970, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This point moved by a number of seconds, as far as it can be represented.
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// This point moved by a number of microseconds, as far as it can be represented.
    pub const fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// The same time of the year in the next year, by the calendar in UTC, as far as it can be represented.
    pub fn one_year_later(self) -> Self {
        let zoned = self.to_jiff().to_zoned(jiff::tz::TimeZone::UTC);
        let later = jiff::Span::new().try_years(1).and_then(|year| zoned.checked_add(year));
        later.map_or(Self::MAX, |later| Self(later.timestamp().as_microsecond()))
    }

    /// Microseconds from `earlier` to this point; negative if it is later.
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The system's clock. Only workers and the ledger's loop may read it; rules get the time as input.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(since.map_or(0, |duration| duration.as_micros() as i64))
    }

    /// The same point in the calendar library's terms, for printing in a local time zone.
    pub fn to_jiff(self) -> jiff::Timestamp {
        let clamped = self.0.clamp(Self::MIN.0, Self::MAX.0);
        jiff::Timestamp::from_microsecond(clamped).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.to_jiff())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_i64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return i64::deserialize(deserializer).map(Self);
        }
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let parsed: jiff::Timestamp = text
            .parse()
            .map_err(|_| D::Error::custom(format!("`{text}` is not a time such as 2026-11-20T08:30:00Z")))?;
        Ok(Self(parsed.as_microsecond()))
    }
}

crate::ids::text_schema!(Timestamp, "a time in RFC 3339, such as 2026-11-20T08:30:00.000000Z");
