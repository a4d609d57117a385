//! Which instance a command uses, and how it is reached.

use crate::exit::{Failure, Status};
use clap::Args;
use muster_client::{Client, ClientError, Endpoint};
use muster_schemas::views::ErrorCode;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// The data folder of root's instance, if it exists.
const SYSTEM_DATA: &str = "/var/lib/muster";
/// The variable by which filters find the system (HPC-F-62): the address of a gateway, or a data folder.
/// It is used last.
const SCHEDULER: &str = "CCP_SCHEDULER";
/// The variable for how many seconds a command waits for a gateway that is away.
const WAIT_SECONDS: &str = "MUSTER_WAIT_SECONDS";
/// How long commands that scripts rely on wait by default.
const USUAL_WAIT: Duration = Duration::from_secs(60);
/// Nobody waits longer than a day.
const MAX_WAIT_SECONDS: u64 = 86_400;
/// The gateway's socket in a data folder.
pub const SOCKET: &str = "muster.sock";

/// How to reach the system.
#[derive(Clone, Debug, Default, Args)]
pub struct ConnectionOptions {
    /// The data folder of the instance on this host [default: /var/lib/muster for root, else $XDG_STATE_HOME/muster]
    #[arg(
        long,
        global = true,
        env = "MUSTER_DATA",
        hide_env_values = true,
        value_name = "DIR",
        help_heading = "Connection"
    )]
    pub data: Option<PathBuf>,
    /// A gateway over TCP instead, such as http://head:7457
    #[arg(
        long,
        global = true,
        env = "MUSTER_SERVER",
        hide_env_values = true,
        value_name = "URL",
        help_heading = "Connection"
    )]
    pub server: Option<String>,
    /// The token for --server; better given in MUSTER_TOKEN, where other users cannot see it
    #[arg(
        long,
        global = true,
        env = "MUSTER_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = "Connection"
    )]
    pub token: Option<String>,
    /// The certificate, in PEM, of the authority that vouches for an https:// address, if this host does not know it
    #[arg(
        long,
        global = true,
        env = "MUSTER_CA",
        hide_env_values = true,
        value_name = "FILE",
        help_heading = "Connection"
    )]
    pub ca: Option<PathBuf>,
    /// Send the token to an http:// address of another host, where everybody on the way can read it
    #[arg(
        long,
        global = true,
        env = "MUSTER_CLEAR_TOKEN",
        hide_env_values = true,
        value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = "Connection"
    )]
    pub clear_token: bool,
    /// Called for each request of a client that fails.
    #[arg(skip)]
    pub on_failure: Option<fn(&ClientError)>,
}

impl ConnectionOptions {
    /// The data folder of the instance on this host.
    pub fn data_dir(&self) -> Result<PathBuf, Failure> {
        if let Some(data) = &self.data {
            return std::path::absolute(data).map_err(|error| Failure::usage(format!("--data: {error}")));
        }
        if let Some(folder) = scheduler().filter(|address| address.starts_with('/')) {
            return Ok(folder.into());
        }
        if nix::unistd::geteuid().is_root() && Path::new(SYSTEM_DATA).is_dir() {
            return Ok(SYSTEM_DATA.into());
        }
        let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
        let missing = || Failure::usage("no data folder: give --data, or set MUSTER_DATA or HOME");
        Ok(state.ok_or_else(missing)?.join("muster"))
    }

    /// Where the gateway is.
    pub fn endpoint(&self) -> Result<Endpoint, Failure> {
        let of_filters = || scheduler().filter(|address| self.data.is_none() && address.contains("://"));
        match self.server.clone().or_else(of_filters) {
            Some(server) => {
                let endpoint: Endpoint =
                    server.parse().map_err(|error| Failure::usage(format!("--server: {error}")))?;
                let endpoint = endpoint.with_token(self.token.clone()).with_authority(self.ca.clone());
                if endpoint.sends_token_in_clear() && !self.clear_token {
                    return Err(Failure::usage(format!(
                        "{endpoint} is on another host and not encrypted, so the token is not sent there: use an https:// \
                         address, or set MUSTER_CLEAR_TOKEN=1 if nobody else can read on the way"
                    )));
                }
                Ok(endpoint)
            }
            None => Ok(Endpoint::Unix(self.data_dir()?.join(SOCKET))),
        }
    }

    /// The variables by which commands find the same instance, even inside a job.
    pub fn variables(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let Some(server) = &self.server else {
            return Ok(vec![("MUSTER_DATA", self.data_dir()?.to_string_lossy().into_owned())]);
        };
        let authority = self.ca.as_ref().map(|file| ("MUSTER_CA", file.to_string_lossy().into_owned()));
        let clear = self.clear_token.then(|| ("MUSTER_CLEAR_TOKEN", "1".to_owned()));
        Ok([("MUSTER_SERVER", server.clone())].into_iter().chain(authority).chain(clear).collect())
    }

    /// A client of the gateway, which connects with its first request. If the gateway is away it gives up at once, or
    /// after the time in `MUSTER_WAIT_SECONDS`.
    pub fn client(&self) -> Result<Client, Failure> {
        self.client_waiting(Duration::ZERO)
    }

    /// A client for a command that scripts rely on: it does not fail while the gateway is away for a short time, for
    /// instance for a restart.
    pub fn patient_client(&self) -> Result<Client, Failure> {
        self.client_waiting(USUAL_WAIT)
    }

    fn client_waiting(&self, usual: Duration) -> Result<Client, Failure> {
        let reach = wait(std::env::var(WAIT_SECONDS).ok().as_deref(), usual)?;
        let client = Client::new(self.endpoint()?).waiting(reach);
        Ok(match self.on_failure {
            Some(on_failure) => client.telling(on_failure),
            None => client,
        })
    }
}

/// How long to wait for a gateway that is away.
fn wait(given: Option<&str>, usual: Duration) -> Result<Duration, Failure> {
    let Some(given) = given.filter(|text| !text.is_empty()) else { return Ok(usual) };
    let seconds = given.parse().ok().filter(|seconds| *seconds <= MAX_WAIT_SECONDS);
    let unknown = || Failure::usage(format!("{WAIT_SECONDS} is `{given}`, and must be 0 to {MAX_WAIT_SECONDS}"));
    seconds.map(Duration::from_secs).ok_or_else(unknown)
}

fn scheduler() -> Option<String> {
    std::env::var(SCHEDULER).ok()
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let status = match &error {
            ClientError::Unreachable { .. } => Status::Unreachable,
            ClientError::AnswerLost(_) | ClientError::Protocol(_) => Status::Failed,
            ClientError::Refused(body) => match body.code {
                ErrorCode::PermissionDenied | ErrorCode::Unauthenticated => Status::NoPermission,
                ErrorCode::NotFound => Status::NotFound,
                ErrorCode::Unavailable => Status::Unreachable,
                ErrorCode::Malformed
                | ErrorCode::Conflict
                | ErrorCode::TooLarge
                | ErrorCode::Invalid
                | ErrorCode::LimitReached
                | ErrorCode::StorageFailed
                | ErrorCode::Busy => Status::Failed,
            },
        };
        Self::new(status, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_gateway_is_waited_for_is_a_number_of_seconds() {
        let of = |given: &str| wait(Some(given), USUAL_WAIT).map_err(|failure| failure.message);
        assert_eq!(wait(None, USUAL_WAIT).ok(), Some(USUAL_WAIT));
        assert_eq!(of(""), Ok(USUAL_WAIT));
        assert_eq!(of("0"), Ok(Duration::ZERO));
        assert_eq!(of("86400"), Ok(Duration::from_secs(86_400)));
        for bad in ["86401", "-1", "1.5", "a minute"] {
            assert_eq!(of(bad), Err(format!("MUSTER_WAIT_SECONDS is `{bad}`, and must be 0 to 86400")));
        }
    }
}
