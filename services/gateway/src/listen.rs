//! The sockets that the gateway listens on.

use crate::{
    Config,
    caller::Peer,
    connections::{Accept, Serving},
    tls::Certificate,
};
use anyhow::{Context as _, bail};
use std::{io, os::unix::fs::PermissionsExt as _, path::Path, path::PathBuf, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// How long requests have to end when the gateway stops.
const LAST_REQUESTS: Duration = Duration::from_secs(3);

/// The sockets of a gateway.
pub(crate) struct Listeners {
    unix: Option<(UnixListener, SocketFile)>,
    tcp: Option<Tcp>,
    /// The certificate for connections over TCP, if they are encrypted.
    certificate: Option<Arc<Certificate>>,
}

/// A TCP socket whose connections send at once: answers are small, and waiting to fill a packet costs more than it
/// saves.
pub(crate) struct Tcp(TcpListener);

impl Accept for Tcp {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, Peer)> {
        let (socket, address) = self.0.accept().await?;
        // It fails only for a connection that is already gone.
        let _ = socket.set_nodelay(true);
        Ok((socket, Peer::Remote { address: address.ip() }))
    }
}

impl Accept for UnixListener {
    type Io = UnixStream;

    async fn accept(&mut self) -> io::Result<(UnixStream, Peer)> {
        let (socket, _) = Self::accept(self).await?;
        let peer = match socket.peer_cred() {
            Ok(credentials) => Peer::Process { uid: credentials.uid(), gid: credentials.gid() },
            Err(_) => Peer::Unknown,
        };
        Ok((socket, peer))
    }
}

/// A socket's file, which is removed when the gateway stops.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It is gone if somebody removed the folder; then there is nothing to do.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Binds the addresses.
pub(crate) async fn bind(config: &Config) -> anyhow::Result<Listeners> {
    let certificate = Certificate::open(config)?.map(Arc::new);
    let unix = match &config.socket {
        Some(path) => Some(bind_unix(path).await?),
        None => None,
    };
    let tcp = match config.listen {
        Some(address) => {
            let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
            let (address, is_encrypted) = (listener.local_addr()?, certificate.is_some());
            tracing::info!(%address, is_encrypted, "the gateway listens on TCP");
            Some(Tcp(listener))
        }
        None => None,
    };
    Ok(Listeners { unix, tcp, certificate })
}

/// A socket left behind by a killed gateway is taken over; one in use is not.
async fn bind_unix(path: &Path) -> anyhow::Result<(UnixListener, SocketFile)> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).await.is_ok() {
                bail!("another gateway listens on {}", path.display());
            }
            std::fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?;
            UnixListener::bind(path)
        }
        bound => bound,
    };
    let listener = listener.with_context(|| format!("cannot listen on {}", path.display()))?;
    let file = SocketFile(path.to_path_buf());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))
        .with_context(|| format!("cannot open {} to users", path.display()))?;
    Ok((listener, file))
}

impl Listeners {
    /// Serves until the gateway stops, and then for as long as the last requests take, within reason.
    pub(crate) async fn serve(self, serving: Serving) {
        let (unix, _socket_file) = self.unix.unzip();
        let over_unix = async {
            if let Some(listener) = unix {
                serving.accept_all(listener, None).await;
            }
        };
        let over_tcp = async {
            if let Some(listener) = self.tcp {
                serving.accept_all(listener, self.certificate).await;
            }
        };
        tokio::join!(over_unix, over_tcp);
        serving.shutdown.cancelled().await;
        serving.tracker.close();
        let _ = tokio::time::timeout(LAST_REQUESTS, serving.tracker.wait()).await;
    }
}
