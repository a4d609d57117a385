//! Why a job has no place.

use crate::matching::Lack;
use std::fmt;

/// Why a job has no place in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No time helps: there are not enough resources.
    TooLarge(Lack),
    /// The container has too few resources (OAR-T-12).
    ContainerTooSmall {
        /// Its id or name.
        container: String,
        /// The lack.
        lack: Lack,
    },
    /// The container has enough resources, but not for that long before it ends.
    NoRoomInContainer {
        /// Its id or name.
        container: String,
    },
    /// The container has no place itself.
    NoContainer {
        /// Its id or name.
        container: String,
    },
    /// The resources cannot be had for that long.
    NotLongEnough(Lack),
    /// A limit is never met.
    Limit(String),
    /// The job would start or end too late.
    TooLate {
        /// The time that it has to keep.
        limit: i64,
    },
    /// The pass had no time left for the job.
    OutOfTime,
    /// A job that it depends on.
    Dependency(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(lack) => write!(f, "there are not enough resources: {lack}"),
            Self::ContainerTooSmall { container, lack } => {
                let (level, asked, holds) = (lack.level_for_people(), lack.asked, lack.fitting);
                write!(f, "container {container} holds {holds} {level}, {asked} asked")
            }
            Self::NoRoomInContainer { container } => write!(f, "no room before container {container} ends"),
            Self::NoContainer { container } => write!(f, "container {container} has no place"),
            Self::NotLongEnough(lack) => write!(f, "resources cannot be had for that long: {lack}"),
            Self::Limit(limit) => write!(f, "over a limit at any time: {limit}"),
            Self::TooLate { limit } => write!(f, "no place early enough to keep the time {limit}"),
            Self::OutOfTime => f.write_str("the pass had no time left for the job"),
            Self::Dependency(why) => f.write_str(why),
        }
    }
}
