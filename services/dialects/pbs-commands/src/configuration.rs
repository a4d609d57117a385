//! The cluster's configuration, where queues, nodes and the settings of the server are.

use super::{ended::Failure, site::Site};
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId,
    cluster::{ClusterChange, ClusterConfig},
    views::ErrorCode,
};

/// The status of a command that changes the configuration and is refused.
pub const REFUSED: u8 = 2;

/// The configuration in force.
pub fn config(site: &mut Site) -> Result<ClusterConfig, Failure> {
    Ok(site.client.config(Moment::Now)?)
}

/// Puts a change in force. Whatever it does not name stays as it is.
pub fn configure(site: &mut Site, change: &ClusterChange) -> Result<(), Failure> {
    let done = site.client.configure(CommandId::new_now(), change, true);
    done.map(drop).map_err(|error| refused(&error))
}

/// Why the configuration stays as it is, in the words of PBS.
pub fn refused(error: &ClientError) -> Failure {
    let text = match error.code() {
        Some(ErrorCode::PermissionDenied) => format!("Unauthorized Request: {error}"),
        Some(_) => format!("{error}; nothing was changed"),
        None => error.to_string(),
    };
    Failure { text, status: REFUSED }
}
