use serde::Deserialize;
use std::path::PathBuf;

/// How NATS is reached and what is kept there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// Where the server is: `nats://HOST:PORT`, or `tls://HOST:PORT`. Several, separated by commas, are a cluster.
    pub url: String,
    /// The user to log in as.
    pub user: Option<String>,
    /// A file whose first line is the password of that user.
    pub password_file: Option<PathBuf>,
    /// A credentials file (JWT and NKey seed) to log in with instead.
    pub credentials_file: Option<PathBuf>,
    /// A file of certificates (PEM) that the server's certificate is checked against beside the system's.
    pub tls_ca_file: Option<PathBuf>,
    /// A file with the client's certificate (PEM); needs `tls_key_file`.
    pub tls_certificate_file: Option<PathBuf>,
    /// A file with the key of the client's certificate (PEM).
    pub tls_key_file: Option<PathBuf>,
    /// Refuse connections without TLS.
    pub tls_required: bool,
    /// How many servers of a cluster keep each stream, 1 to 5.
    pub replicas: usize,
    /// How much of the log the server keeps. The ledger has all of it; this only spares it questions.
    pub log: StreamLimits,
    /// How many of the public events the server keeps, for integrations that were away.
    pub events: StreamLimits,
}

/// How much a stream keeps; the oldest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamLimits {
    /// Nothing older than this many seconds; 0 means no limit.
    pub max_age_seconds: u64,
    /// Not more than this many bytes. The server sets them aside.
    pub max_bytes: u64,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".to_owned(),
            user: None,
            password_file: None,
            credentials_file: None,
            tls_ca_file: None,
            tls_certificate_file: None,
            tls_key_file: None,
            tls_required: false,
            replicas: 1,
            log: StreamLimits { max_age_seconds: 24 * 3600, max_bytes: 256 << 20 },
            events: StreamLimits { max_age_seconds: 7 * 24 * 3600, max_bytes: 1 << 30 },
        }
    }
}
