//! The clusters for `--clusters` (SL-S-19): those of `[slurm] clusters` of the gateway that the command asks, and the
//! gateway's own.

use super::{forecast, site::Site};
use muster_cli::{connection::ConnectionOptions, stderr_line};
use muster_client::Moment;
use muster_schemas::{Timestamp, job::JobSpec, views::InfoView};
use muster_slurm::{
    options::Command,
    queries::{Failure, clusters},
    request::Settings,
};
use std::{collections::BTreeMap, path::PathBuf};

/// The setting of `[slurm]` that gateways pass on: a line `NAME=ADDRESS` for each cluster.
pub const CLUSTERS: &str = "clusters";

/// A cluster.
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// How to reach it.
    pub connection: ConnectionOptions,
    /// Whether the command finds it without `--clusters`.
    is_own: bool,
}

/// The clusters of a list, in order.
///
/// # Errors
/// A name is unknown, or the own cluster does not answer.
pub fn named(
    connection: &ConnectionOptions,
    tool: &'static str,
    wish: &clusters::Wish,
) -> Result<Vec<Cluster>, Failure> {
    let mut site = Site::open(tool, connection)?;
    let info = site.client.info(Moment::Now).map_err(|error| site.failure(&error))?;
    let known = known(&info, connection);
    if wish.is_all() {
        return Ok(known.into_values().collect());
    }
    let cluster = |name: &str| {
        let (connection, is_own) = known.get(name).map(|cluster| (cluster.connection.clone(), cluster.is_own))?;
        Some(Cluster { name: name.to_owned(), connection, is_own })
    };
    let found: Option<Vec<Cluster>> = wish.names().map(cluster).collect();
    found.filter(|found| !found.is_empty()).ok_or_else(|| wish.unknown(tool))
}

fn known(info: &InfoView, connection: &ConnectionOptions) -> BTreeMap<String, Cluster> {
    let text = info.dialects.get("slurm").and_then(|slurm| slurm.get(CLUSTERS));
    let others = text.into_iter().flat_map(|text| text.lines()).filter_map(|line| line.split_once('='));
    let other = |(name, address): (&str, &str)| {
        let connection = reached(address, connection);
        (name.to_owned(), Cluster { name: name.to_owned(), connection, is_own: false })
    };
    let mut known: BTreeMap<String, Cluster> = others.map(other).collect();
    let own = Cluster { name: info.cluster.clone(), connection: connection.clone(), is_own: true };
    known.insert(info.cluster.clone(), own);
    known
}

/// An address names a gateway, or a data folder on this host.
fn reached(address: &str, connection: &ConnectionOptions) -> ConnectionOptions {
    match address.contains("://") {
        true => ConnectionOptions { data: None, server: Some(address.to_owned()), ..connection.clone() },
        false => ConnectionOptions {
            data: Some(PathBuf::from(address)),
            on_failure: connection.on_failure,
            ..ConnectionOptions::default()
        },
    }
}

impl Cluster {
    /// The variable by which commands inside a job find the cluster, and the one that would lead them elsewhere.
    fn variables(&self) -> Option<((&'static str, String), &'static str)> {
        let (data, server) = ("MUSTER_DATA", "MUSTER_SERVER");
        match (&self.connection.server, &self.connection.data) {
            _ if self.is_own => None,
            (Some(address), _) => Some(((server, address.clone()), data)),
            (None, Some(folder)) => Some(((data, folder.display().to_string()), server)),
            (None, None) => None,
        }
    }

    /// Has the commands inside a job find this cluster.
    pub fn lead(&self, environment: &mut BTreeMap<String, String>) {
        if let Some(((name, value), other)) = self.variables() {
            environment.remove(other);
            environment.insert(name.to_owned(), value);
        }
    }

    /// Like [`lead`](Self::lead), for commands that run next to an allocation.
    pub fn lead_beside(&self, environment: &mut Vec<(String, String)>) {
        if let Some(((name, value), other)) = self.variables() {
            environment.retain(|(known, _)| known != other && known != name);
            environment.push((name.to_owned(), value));
        }
    }
}

/// The cluster for a job whose options name some (SL-S-19); `None` if they name none.
///
/// # Errors
/// See [`named`] and [`earliest`].
pub fn of_job(
    connection: &ConnectionOptions,
    command: Command,
    settings: &[Settings],
    spec: &JobSpec,
) -> Result<Option<Cluster>, Failure> {
    // The options already include the cluster list of the environment.
    let list = settings.first().and_then(|leader| leader.text("clusters"));
    let Some(wish) = clusters::Wish::of(list, None) else { return Ok(None) };
    earliest(command, named(connection, command.name(), &wish)?, spec).map(Some)
}

/// The cluster that starts a job first. All its components start there together, so the whole job is tried. If several
/// start it at the same time, the own cluster wins, else the first of the list.
///
/// # Errors
/// No cluster would start it.
fn earliest(command: Command, clusters: Vec<Cluster>, spec: &JobSpec) -> Result<Cluster, Failure> {
    let mut found: Vec<(Timestamp, Cluster)> = Vec::new();
    let has_choice = clusters.len() > 1;
    for cluster in clusters {
        if !has_choice {
            return Ok(cluster);
        }
        let client = cluster.connection.client().map_err(|failure| Failure::error(command.name(), failure));
        let start = client.and_then(|mut client| forecast::start(command, &mut client, spec.clone()));
        let start = start.unwrap_or_else(|failure| {
            failure.lines.iter().for_each(|line| stderr_line!("{line} (cluster {})", cluster.name));
            None
        });
        found.extend(start.map(|start| (start, cluster)));
    }
    // The clusters were asked one by one: all that can start it at once count as equal.
    let now = Timestamp::now();
    let best = found.into_iter().min_by_key(|(start, cluster)| ((*start).max(now), !cluster.is_own));
    let nowhere = || Failure::error(command.name(), "Can't run on any of the specified clusters");
    best.map(|(_, cluster)| cluster).ok_or_else(nowhere)
}
