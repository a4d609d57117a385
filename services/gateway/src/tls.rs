//! TLS for callers over TCP.

use crate::Config;
use anyhow::{Context as _, bail};
use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

/// How often the files are checked for changes: certificates are renewed while the gateway runs.
const LIFETIME: Duration = Duration::from_secs(1);

/// The gateway's certificate and key. They are read again when their files change.
pub(crate) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    read: Mutex<Read>,
}

struct Read {
    looked: Instant,
    modified: Modified,
    acceptor: TlsAcceptor,
}

/// The modification times of the two files.
type Modified = [Option<SystemTime>; 2];

impl Certificate {
    /// The files of the configuration; `None` without TLS.
    ///
    /// # Errors
    /// The files cannot be read, do not belong together, or everybody may read the key.
    pub(crate) fn open(config: &Config) -> anyhow::Result<Option<Self>> {
        let (Some(chain), Some(key)) = (&config.tls_certificate, &config.tls_key) else { return Ok(None) };
        let modified = modified(chain, key);
        let read = Read { looked: Instant::now(), modified, acceptor: acceptor(chain, key)? };
        Ok(Some(Self { chain: chain.clone(), key: key.clone(), read: Mutex::new(read) }))
    }

    /// The acceptor that agrees on keys with callers.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.looked.elapsed() >= LIFETIME {
            read.looked = Instant::now();
            let now = modified(&self.chain, &self.key);
            if now != read.modified {
                // During a renewal the two files may not belong together; the next change is checked again.
                read.modified = now;
                match acceptor(&self.chain, &self.key) {
                    Ok(acceptor) => read.acceptor = acceptor,
                    Err(error) => tracing::error!(
                        error = format!("{error:#}"),
                        "the gateway's new certificate cannot be used; the previous one stays"
                    ),
                }
            }
        }
        read.acceptor.clone()
    }
}

fn modified(chain: &Path, key: &Path) -> Modified {
    [chain, key].map(|file| std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok())
}

fn acceptor(chain: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let named = |what: &str, file: &Path| format!("{what} {}", file.display());
    let mode = std::fs::metadata(key).with_context(|| named("tls_key", key))?.permissions().mode();
    if mode & 0o007 != 0 {
        bail!("tls_key {} can be read by everybody: its mode must be 0600 or 0640", key.display());
    }
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect)
        .with_context(|| named("tls_certificate", chain))?;
    if certificates.is_empty() {
        bail!("tls_certificate {} has no certificate in PEM", chain.display());
    }
    let private = PrivateKeyDer::from_pem_file(key).with_context(|| named("tls_key", key))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().context("TLS cannot be set up")?;
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .with_context(|| format!("{} and {} cannot be used together", chain.display(), key.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
