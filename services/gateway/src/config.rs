//! Settings of a gateway.

use anyhow::bail;
use serde::Deserialize;
use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

/// Settings of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The Unix socket to listen on; everybody on the host may connect, and the kernel identifies them.
    pub socket: Option<PathBuf>,
    /// The TCP address to listen on, such as `127.0.0.1:7457`. Callers show a token.
    pub listen: Option<SocketAddr>,
    /// The gateway's certificate in PEM, with those that lead to its authority: connections over TCP are then
    /// encrypted. It is read again when it changes.
    pub tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM. Its mode is 0600 or 0640.
    pub tls_key: Option<PathBuf>,
    /// Whether it may listen on an address that other hosts reach without TLS, so that tokens can be read on the way:
    /// for use behind a proxy that ends TLS.
    pub allow_clear_tokens: bool,
    /// The tokens that are accepted over TCP: on each line a token of at least 16 characters and the login name of
    /// its user. Its mode is 0600. It is read again when it changes.
    pub tokens_file: Option<PathBuf>,
    /// The largest request body, in bytes: 1,024 to 1,073,741,824.
    pub max_body_bytes: usize,
    /// The most connections at a time: 16 to 1,000,000. By default half as many as files may be open, and at most
    /// 8,192. The last 8 are reserved for root and the user of the gateway.
    pub max_connections: Option<u32>,
    /// The most connections of one caller at a time: 1 to 1,000,000. By default an eighth of all.
    pub max_connections_per_caller: Option<u32>,
    /// The most bytes of requests and of large answers that are on their way at a time.
    pub max_bytes_in_flight: usize,
    /// The same for one caller; at least `max_body_bytes`.
    pub max_bytes_in_flight_per_caller: usize,
    /// How long a connection may wait for a request and take for its head, in seconds: 1 to 3,600.
    pub head_seconds: u32,
    /// How long the body of a request may make no progress, in seconds: 1 to 3,600.
    pub body_seconds: u32,
    /// The tokens of agents: on each line the BLAKE3 hash of a token and the name of its node. It is read again when it
    /// changes. Without it agents are refused.
    pub agents_file: Option<PathBuf>,
    /// Where archives of jobs on their way to agents and back are kept; without it there are none.
    pub agents_folder: Option<PathBuf>,
    /// The largest archive, in bytes, as it is sent and as it is unpacked.
    pub max_archive_bytes: u64,
    /// The program that unpacks archives as the owners of jobs, with its first argument.
    #[serde(skip)]
    pub unpacker: Option<(PathBuf, String)>,
    /// Settings for the commands of dialects, by dialect and name. The gateway only passes them on.
    #[serde(skip)]
    pub dialects: BTreeMap<String, BTreeMap<String, String>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            socket: None,
            listen: None,
            tls_certificate: None,
            tls_key: None,
            allow_clear_tokens: false,
            tokens_file: None,
            max_body_bytes: 64 << 20,
            max_connections: None,
            max_connections_per_caller: None,
            max_bytes_in_flight: 512 << 20,
            max_bytes_in_flight_per_caller: 128 << 20,
            head_seconds: 30,
            body_seconds: 20,
            agents_file: None,
            agents_folder: None,
            max_archive_bytes: 1 << 30,
            unpacker: None,
            dialects: BTreeMap::new(),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.socket.is_none() && self.listen.is_none() {
            bail!("the gateway has nothing to listen on: set `socket` or `listen`");
        }
        if self.listen.is_some() && self.tokens_file.is_none() && self.agents_file.is_none() {
            bail!("the gateway listens on TCP but has no `tokens_file` or `agents_file`, so nobody could use it");
        }
        if self.tls_certificate.is_some() != self.tls_key.is_some() {
            bail!("`tls_certificate` and `tls_key` need each other");
        }
        let is_clear = self.tls_certificate.is_none() && !self.allow_clear_tokens;
        if let Some(address) = self.listen.filter(|address| is_clear && !address.ip().to_canonical().is_loopback()) {
            bail!(
                "the gateway would listen on {address} without TLS, where tokens can be read on the way: set \
                 `tls_certificate` and `tls_key`, or `allow_clear_tokens` behind a proxy that ends TLS"
            );
        }
        if !(1 << 10..=1 << 30).contains(&self.max_body_bytes) {
            bail!("`max_body_bytes` is {}, and must be 1024 to 1073741824", self.max_body_bytes);
        }
        if self.max_bytes_in_flight_per_caller < self.max_body_bytes {
            bail!(
                "`max_bytes_in_flight_per_caller` is {}, and must be at least `max_body_bytes`, which is {}",
                self.max_bytes_in_flight_per_caller,
                self.max_body_bytes
            );
        }
        // An eighth of all bytes is reserved for small requests.
        if self.max_bytes_in_flight / 8 * 7 < self.max_bytes_in_flight_per_caller {
            bail!(
                "`max_bytes_in_flight` is {}, and seven eighths of it must be at least `max_bytes_in_flight_per_caller`, \
                 which is {}",
                self.max_bytes_in_flight,
                self.max_bytes_in_flight_per_caller
            );
        }
        let in_range = |name: &str, value: Option<u32>, min: u32, max: u32| match value {
            Some(value) if !(min..=max).contains(&value) => bail!("`{name}` is {value}, and must be {min} to {max}"),
            _ => Ok(()),
        };
        in_range("max_connections", self.max_connections, 16, 1_000_000)?;
        in_range("max_connections_per_caller", self.max_connections_per_caller, 1, 1_000_000)?;
        in_range("head_seconds", Some(self.head_seconds), 1, 3_600)?;
        in_range("body_seconds", Some(self.body_seconds), 1, 3_600)
    }
}
