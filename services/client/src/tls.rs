//! TLS to a gateway. It is set up only for commands that need it: most talk to a socket of their host.

use crate::error::{ClientError, describe};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use std::{
    collections::BTreeMap,
    io,
    net::TcpStream,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// An encrypted connection.
pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// The configurations by authority: reading the authorities of a host takes milliseconds.
static CONFIGURATIONS: Mutex<BTreeMap<Option<PathBuf>, Arc<ClientConfig>>> = Mutex::new(BTreeMap::new());

/// Agrees on keys over a connection to `address`, a `HOST:PORT`. The certificate is checked against the authority in a
/// file, or those that this host trusts.
pub(crate) fn connect(mut socket: TcpStream, address: &str, authority: Option<&Path>) -> Result<Stream, ClientError> {
    let name = server_name(address)?;
    let configuration = configuration(authority)?;
    let mut connection = ClientConnection::new(configuration, name).map_err(|error| untrusted(address, error))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).map_err(|error| failed(address, error))?;
    }
    Ok(StreamOwned::new(connection, socket))
}

fn failed(address: &str, error: io::Error) -> ClientError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidMessage(_)) => {
            ClientError::Protocol(format!("https://{address} does not speak TLS: is it an http:// address?"))
        }
        Some(inner) => untrusted(address, inner.clone()),
        None => ClientError::Unreachable { endpoint: format!("https://{address}"), reason: describe(&error) },
    }
}

fn untrusted(address: &str, error: rustls::Error) -> ClientError {
    let why = match &error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            format!("{error}; name the site's own authority in MUSTER_CA")
        }
        // The library describes this with one word, and offers no value to match.
        rustls::Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "it shows the certificate of an authority (CA:TRUE), which vouches for others and is no server's; give it its own \
             certificate (CA:FALSE), signed by that authority"
                .to_owned()
        }
        _ => error.to_string(),
    };
    ClientError::Protocol(format!("https://{address} is not trusted: {why}"))
}

/// The host of a `HOST:PORT`, as its certificate has to name it.
fn server_name(address: &str) -> Result<ServerName<'static>, ClientError> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let error = |_| ClientError::Protocol(format!("`{host}` is no name that a certificate could have"));
    ServerName::try_from(host.to_owned()).map_err(error)
}

fn configuration(authority: Option<&Path>) -> Result<Arc<ClientConfig>, ClientError> {
    let mut known = CONFIGURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = authority.map(Path::to_path_buf);
    if let Some(known) = known.get(&key) {
        return Ok(known.clone());
    }
    let mut roots = RootCertStore::empty();
    match authority {
        Some(file) => add(&mut roots, file).map_err(|why| {
            ClientError::Protocol(format!("the authority in {} cannot be used: {why}", file.display()))
        })?,
        // An authority that cannot be read or used does not affect the others.
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| ClientError::Protocol(format!("TLS cannot be set up: {error}")))?;
    let configuration = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    known.insert(key, configuration.clone());
    Ok(configuration)
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_name_hosts_without_ports() {
        for (address, name) in [("head:7457", "head"), ("127.0.0.1:1", "127.0.0.1"), ("[::1]:443", "::1")] {
            assert_eq!(server_name(address).unwrap().to_str(), name);
        }
        assert!(server_name("a b:1").is_err());
    }

    #[test]
    fn an_authority_that_cannot_be_used_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let error = |file: &Path| configuration(Some(file)).unwrap_err().to_string();
        assert!(error(&file).contains("ca.pem cannot be used"), "{}", error(&file));
        std::fs::write(&file, "nothing").unwrap();
        assert!(error(&file).contains("no certificate"), "{}", error(&file));
    }
}
