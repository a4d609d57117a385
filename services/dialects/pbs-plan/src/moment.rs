//! Times in a state file.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A time: seconds since 1970, an instant such as `1998-05-14T22:00:00Z`, or a local time such as
/// `1998-05-14T22:00:00`, which is read in the zone of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// An instant.
    Instant(Timestamp),
    /// A local time.
    Local(DateTime),
}

impl Moment {
    /// The instant in a zone; `None` at the ends of the calendar.
    pub fn instant(self, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Instant(instant) => Some(instant),
            Self::Local(local) => zone.to_ambiguous_timestamp(local).compatible().ok(),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Instant(instant) => serializer.serialize_i64(instant.as_second()),
            Self::Local(local) => serializer.collect_str(local),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = Moment;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("seconds since 1970, or a time such as \"1998-05-14T22:00:00\"")
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Moment, E> {
        let instant = Timestamp::from_second(seconds);
        instant.map(Moment::Instant).map_err(|_| E::invalid_value(de::Unexpected::Signed(seconds), &self))
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Moment, E> {
        match i64::try_from(seconds) {
            Ok(seconds) => self.visit_i64(seconds),
            Err(_) => Err(E::invalid_value(de::Unexpected::Unsigned(seconds), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Moment, E> {
        let instant = text.parse().map(Moment::Instant);
        let moment = instant.or_else(|_| text.parse().map(Moment::Local));
        moment.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}
