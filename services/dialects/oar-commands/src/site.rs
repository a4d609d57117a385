//! The system and its caller.

use super::{cluster::Cluster, ended::Failure};
use jiff::tz::TimeZone;
use muster_cli::{connection::ConnectionOptions, zone};
use muster_client::{Client, Moment};
use muster_names::User;
use muster_schemas::Timestamp;
use nix::unistd::Uid;

/// The exit status of commands when the system cannot be reached.
const UNREACHABLE: u8 = 3;

/// The system and its caller.
pub struct Site {
    /// The gateway's client.
    pub client: Client,
    /// The caller's zone.
    pub zone: TimeZone,
}

impl Site {
    /// The system at the other end of a connection.
    pub fn open(connection: &ConnectionOptions) -> Result<Self, Failure> {
        let unreachable = |text: String| Failure { text, status: UNREACHABLE };
        let client = connection.patient_client().map_err(|failure| unreachable(failure.to_string()))?;
        Ok(Self { client, zone: zone::of_process() })
    }

    /// The nodes as resources.
    pub fn cluster(&mut self) -> Result<Cluster, Failure> {
        let page = self.client.nodes(Moment::Now).map_err(|error| {
            let status = if error.is_refusal() { 1 } else { UNREACHABLE };
            Failure { text: error.to_string(), status }
        })?;
        Ok(Cluster::of(&page.nodes))
    }

    /// The time, in seconds since the epoch.
    pub fn now(&self) -> i64 {
        seconds(Timestamp::now())
    }
}

/// A time in seconds since the epoch.
pub fn seconds(time: Timestamp) -> i64 {
    time.to_jiff().as_second()
}

/// The login name of the caller.
pub fn user_name() -> String {
    let uid = Uid::effective().as_raw();
    User::numbered(uid).map_or_else(|| uid.to_string(), |user| user.name)
}
