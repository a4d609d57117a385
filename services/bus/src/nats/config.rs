use crate::BusError;
use muster_schemas::subjects;
use serde::Deserialize;
use std::path::PathBuf;

/// The start of the subjects of all inboxes.
pub(super) const INBOX: &str = "_INBOX";

/// How to reach NATS, and how much to keep there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// Where the server is: `nats://HOST:PORT`, or `tls://HOST:PORT`. Several, separated by commas, form a cluster.
    pub url: String,
    /// The user to log in as.
    pub user: Option<String>,
    /// A file whose first line is that user's password.
    pub password_file: Option<PathBuf>,
    /// A credentials file (JWT and NKey seed) to log in with instead.
    pub credentials_file: Option<PathBuf>,
    /// Where answers arrive: the first token of the subjects of this client's inboxes, which starts with `_INBOX_`. By
    /// default `_INBOX_USER`, so that each user can be kept from the answers to others, or `_INBOX` without a user.
    pub inbox_prefix: Option<String>,
    /// A file of certificates (PEM) that the server's certificate is checked against, in addition to the system's.
    pub tls_ca_file: Option<PathBuf>,
    /// A file with the client's certificate (PEM); needs `tls_key_file`.
    pub tls_certificate_file: Option<PathBuf>,
    /// A file with the key of the client's certificate (PEM).
    pub tls_key_file: Option<PathBuf>,
    /// Refuse connections without TLS.
    pub tls_required: bool,
    /// How many servers of a cluster keep each stream, 1 to 5.
    pub replicas: usize,
    /// How much of the log the server keeps. The ledger has all of it; this only saves it queries.
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
    /// At most this many bytes. The server reserves them.
    pub max_bytes: u64,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".to_owned(),
            user: None,
            password_file: None,
            credentials_file: None,
            inbox_prefix: None,
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

impl NatsConfig {
    /// The first token of the subjects of this client's inboxes.
    ///
    /// # Errors
    /// The configured prefix is not a valid token.
    pub(super) fn inbox(&self) -> Result<String, BusError> {
        match (&self.inbox_prefix, &self.user) {
            (Some(prefix), _) => {
                let is_one = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_graphic() && !b".*>".contains(&byte));
                match prefix.strip_prefix(INBOX).is_some_and(is_one) {
                    true => Ok(prefix.clone()),
                    false => Err(BusError::Unusable(format!(
                        "`{prefix}` is no `inbox_prefix`: it must begin with `{INBOX}` and have no `.`, `*`, `>` or white space"
                    ))),
                }
            }
            (None, Some(user)) => Ok(format!("{INBOX}_{}", subjects::token(user))),
            (None, None) => Ok(INBOX.to_owned()),
        }
    }
}
