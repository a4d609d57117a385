//! Requests to the gateway.

use muster_archive::sum_of;
use muster_client::{Client, ClientError, Endpoint};
use muster_schemas::{
    PartId,
    agent::{AgentCluster, AgentOrders, AgentOutput, AgentPull, AgentReport, PIECE_BYTES},
};
use std::{
    fs::File,
    io::{self, Seek as _, Write as _},
    os::unix::fs::FileExt as _,
    time::Duration,
};

/// How long an exchange waits for a gateway that is away. Then the caller asks again.
const PATIENCE: Duration = Duration::from_secs(1);

/// A gateway.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    endpoint: Endpoint,
}

impl Server {
    pub(crate) const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    pub(crate) async fn cluster(&self) -> Result<AgentCluster, ClientError> {
        self.call(Client::agent_cluster).await
    }

    pub(crate) async fn pull(&self, pull: AgentPull) -> Result<AgentOrders, ClientError> {
        self.call(move |client| client.agent_pull(&pull)).await
    }

    pub(crate) async fn report(&self, report: AgentReport) -> Result<(), ClientError> {
        self.call(move |client| client.agent_report(&report)).await
    }

    /// Fetches the files that a job brings.
    pub(crate) async fn fetch(
        &self,
        part: PartId,
        (sum, bytes): (String, u64),
        mut into: File,
    ) -> Result<(), ClientError> {
        self.call(move |client| {
            let mut offset = 0;
            while offset < bytes {
                let piece = client.agent_stage_in(part, &sum, offset)?;
                if piece.is_empty() {
                    return Err(ClientError::Protocol(format!("the files end after {offset} of {bytes} bytes")));
                }
                into.write_all(&piece).map_err(|error| local(&error))?;
                offset += piece.len() as u64;
            }
            Ok(())
        })
        .await
    }

    /// Sends what a job has left.
    pub(crate) async fn send(&self, part: PartId, mut archive: File) -> Result<AgentOutput, ClientError> {
        self.call(move |client| {
            let (sum, bytes) = sum_of(&mut archive).map_err(|error| local(&error))?;
            archive.rewind().map_err(|error| local(&error))?;
            let mut offset = 0;
            let mut buffer = vec![0; PIECE_BYTES];
            while offset < bytes {
                let read = archive.read_at(&mut buffer, offset).map_err(|error| local(&error))?;
                if read == 0 {
                    return Err(ClientError::Protocol("the archive became shorter".to_owned()));
                }
                client.agent_output(part, offset, &buffer[..read])?;
                offset += read as u64;
            }
            Ok(AgentOutput { sum, bytes })
        })
        .await
    }

    /// Each call has a connection of its own: between two of them the gateway need not keep one for each agent.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Client) -> Result<T, ClientError> + Send + 'static,
    ) -> Result<T, ClientError> {
        let mut client = Client::new(self.endpoint.clone()).with_patience(PATIENCE);
        let done = tokio::task::spawn_blocking(move || work(&mut client)).await;
        done.unwrap_or_else(|error| Err(ClientError::Protocol(error.to_string())))
    }
}

fn local(error: &io::Error) -> ClientError {
    ClientError::Protocol(error.to_string())
}
