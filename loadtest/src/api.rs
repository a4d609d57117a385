//! The few gateway calls that the load needs.

use crate::http::Connection;
use anyhow::Result;
use bytes::Bytes;
use muster_schemas::{
    JobId, Sequence, Timestamp,
    cluster::ClusterConfig,
    job::{Component, JobSpec, Launch, Program},
    resources::{Alternative, Request},
    usage::{UsageAnswer, UsageRow},
    views::{CommandAnswer, DrainRequest, InfoView, SubmitRequest},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The body of a submission.
///
/// # Errors
/// A job specification cannot cause any.
pub fn submission(jobs: Vec<JobSpec>) -> Result<Bytes> {
    Ok(serde_json::to_vec(&SubmitRequest { jobs })?.into())
}

/// Submits jobs and returns their numbers once they are durable.
///
/// # Errors
/// If the submission is refused or its answer lost.
pub async fn submit(connection: &mut Connection, jobs: Vec<JobSpec>) -> Result<Vec<JobId>> {
    submit_body(connection, submission(jobs)?).await
}

/// Like [`submit`], with a body made before.
///
/// # Errors
/// As [`submit`].
pub async fn submit_body(connection: &mut Connection, body: Bytes) -> Result<Vec<JobId>> {
    let answer = connection.post("/v1/jobs", body).await?;
    Ok(serde_json::from_slice::<CommandAnswer>(&answer)?.jobs)
}

/// The last record that the gateway knows.
///
/// # Errors
/// If the system cannot be asked.
pub async fn head(connection: &mut Connection) -> Result<Sequence> {
    Ok(connection.get::<InfoView>("/v1/info").await?.sequence)
}

/// The path of a stream of future events of these kinds, separated by commas.
///
/// # Errors
/// If the system cannot be asked.
pub async fn events_from_now(connection: &mut Connection, kinds: &str) -> Result<String> {
    Ok(format!("/v1/events?from={}&kind={kinds}", head(connection).await?.next()))
}

/// The used core-microseconds that accounting has counted, by account.
///
/// # Errors
/// If accounting cannot be asked.
pub async fn used_core_micros_by_account(connection: &mut Connection) -> Result<BTreeMap<String, u128>> {
    let answer: UsageAnswer = connection.get("/v1/usage?by=account").await?;
    let row = |row: UsageRow| (row.account.unwrap_or_default(), row.amounts.used_core_micros);
    Ok(answer.rows.into_iter().map(row).collect())
}

/// Takes the nodes `node1` to `nodeN` out of service, so that jobs wait.
///
/// # Errors
/// If it is refused.
pub async fn drain_all_nodes(connection: &mut Connection, nodes: u32) -> Result<()> {
    let nodes = (1..=nodes).map(|number| format!("node{number}")).collect();
    let request = DrainRequest { nodes, reason: "load test".to_owned(), is_down: false };
    connection.post("/v1/nodes/actions/drain", serde_json::to_vec(&request)?.into()).await?;
    Ok(())
}

/// Distributes `cores` over the existing nodes as evenly as possible.
///
/// # Errors
/// If the configuration cannot be read or changed.
pub async fn deal_out_cores(connection: &mut Connection, cores: u64) -> Result<()> {
    let mut config: ClusterConfig = connection.get("/v1/config").await?;
    let nodes = config.nodes.len().max(1) as u64;
    for (place, node) in config.nodes.iter_mut().enumerate() {
        let share = cores / nodes + u64::from((place as u64) < cores % nodes);
        node.cores = u32::try_from(share)?;
        node.sockets = 1;
    }
    connection.put("/v1/config", serde_json::to_vec(&config)?.into()).await?;
    Ok(())
}

/// A job that runs a command once on one core, without output.
pub fn command_job(name: &str, argv: &[&str]) -> JobSpec {
    let program = Program::Tasks { argv: argv.iter().map(|&word| word.to_owned()).collect() };
    job(name, program, Request::default())
}

/// All the variables of jobs.
pub fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())])
}

/// A job of one component with one request.
pub fn job(name: &str, program: Program, request: Request) -> JobSpec {
    let launch = Launch { program, stdout: Some("/dev/null".to_owned()), ..Launch::default() };
    let alternatives = vec![Alternative { requests: vec![request], ..Alternative::default() }];
    JobSpec {
        name: name.to_owned(),
        components: vec![Component { launch, alternatives, ..Component::default() }],
        working_directory: "/".to_owned(),
        environment: environment(),
        ..JobSpec::default()
    }
}

/// The part of a public event that the load reads.
#[derive(Clone, Debug, Deserialize)]
pub struct PublicEvent {
    /// Such as `muster.job.started.v1`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of the job, node or queue that it is about.
    #[serde(default)]
    pub subject: String,
    /// When the ledger wrote it.
    pub time: Timestamp,
    /// Its contents.
    #[serde(default)]
    pub data: serde_json::Value,
}

impl PublicEvent {
    /// Kind and verb, such as `job.started`.
    pub fn kind_verb(&self) -> &str {
        let name = self.kind.strip_prefix("muster.").unwrap_or(&self.kind);
        name.rsplit_once(".v").map_or(name, |(name, _)| name)
    }

    /// The job that it is about.
    pub fn job(&self) -> Option<JobId> {
        self.subject.parse().ok()
    }
}
