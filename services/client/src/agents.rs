//! Agents, and archives of the files of jobs.

use crate::{Client, ClientError, connection::accepted, parse, query::encode};
use muster_schemas::{
    PartId,
    agent::{AgentCluster, AgentOrders, AgentPull, AgentReport, ArchiveProgress, KnownArchive},
};

impl Client {
    /// The cluster of the gateway, for an agent.
    ///
    /// # Errors
    /// The request was refused or not answered, as those of all requests below.
    pub fn agent_cluster(&mut self) -> Result<AgentCluster, ClientError> {
        self.get("/v1/agent/cluster")
    }

    /// Asks for the orders of the agent's node.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn agent_pull(&mut self, pull: &AgentPull) -> Result<AgentOrders, ClientError> {
        self.once("POST", "/v1/agent/pull", &to_json(pull)?)
    }

    /// Reports the start or the end of a part of a run.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn agent_report(&mut self, report: &AgentReport) -> Result<(), ClientError> {
        self.once::<serde_json::Value>("POST", "/v1/agent/report", &to_json(report)?).map(drop)
    }

    /// A piece of the files that a job brings to an agent.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn agent_stage_in(&mut self, part: PartId, sum: &str, offset: u64) -> Result<Vec<u8>, ClientError> {
        let path = format!("/v1/agent/stage-in/{}?part={}&offset={offset}", encode(sum), part.to_number());
        self.ask("GET", &path, &[], None).and_then(accepted)
    }

    /// Sends a piece of what a job has left at an agent.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn agent_output(&mut self, part: PartId, offset: u64, bytes: &[u8]) -> Result<ArchiveProgress, ClientError> {
        let path = format!("/v1/agent/output/{}?offset={offset}", part.to_number());
        self.once("PUT", &path, bytes)
    }

    /// Whether the gateway keeps an archive of the caller, by its sum or by a name that it was given.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn archive(&mut self, name: &str) -> Result<KnownArchive, ClientError> {
        self.get(&format!("/v1/archives/{}", encode(name)))
    }

    /// Sends a piece of an archive of this size for jobs of the caller. `name` is one that it can be found by, too.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn send_archive(
        &mut self,
        (sum, total): (&str, u64),
        name: Option<&str>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<KnownArchive, ClientError> {
        let name = name.map(|name| format!("&name={}", encode(name))).unwrap_or_default();
        self.once("PUT", &format!("/v1/archives/{}?offset={offset}&total={total}{name}", encode(sum)), bytes)
    }

    /// A request that is not repeated here.
    fn once<T: serde::de::DeserializeOwned>(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<T, ClientError> {
        parse(&self.ask(method, path, body, None).and_then(accepted)?)
    }
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(value).map_err(|error| ClientError::Protocol(error.to_string()))
}
