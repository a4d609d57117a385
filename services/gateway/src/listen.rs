//! Where the gateway listens.

use crate::{Config, caller::Peer};
use anyhow::{Context as _, bail};
use axum::{Router, serve::Listener};
use std::{io, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, path::PathBuf, time::Duration};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

/// When the gateway stops, requests have so long to end.
const LAST_REQUESTS: Duration = Duration::from_secs(3);

/// The sockets of a gateway.
pub(crate) struct Listeners {
    unix: Option<(UnixListener, SocketFile)>,
    tcp: Option<Tcp>,
}

/// A TCP socket whose connections send at once: answers are small, and waiting to fill a packet costs more than it saves.
pub(crate) struct Tcp(TcpListener);

impl Listener for Tcp {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let (socket, address) = Listener::accept(&mut self.0).await;
        // It fails only for a connection that is gone already.
        let _ = socket.set_nodelay(true);
        (socket, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A socket's file, which goes when the gateway does.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It is gone if somebody removed the folder; then there is nothing to do.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Takes the addresses.
pub(crate) async fn bind(config: &Config) -> anyhow::Result<Listeners> {
    let unix = match &config.socket {
        Some(path) => Some(bind_unix(path).await?),
        None => None,
    };
    let tcp = match config.listen {
        Some(address) => {
            let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
            tracing::info!(address = %listener.local_addr()?, "the gateway listens on TCP");
            Some(Tcp(listener))
        }
        None => None,
    };
    Ok(Listeners { unix, tcp })
}

/// A socket that a gateway left behind when it was killed is taken over; one that is in use is not.
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
    /// Serves until `shutdown`, and then for as long as the last requests take, within reason.
    pub(crate) async fn serve(self, router: Router, shutdown: CancellationToken) -> io::Result<()> {
        let (unix, _socket_file) = self.unix.unzip();
        let over_unix = async {
            let Some(listener) = unix else { return Ok(()) };
            let service = router.clone().into_make_service_with_connect_info::<Peer>();
            axum::serve(listener, service).with_graceful_shutdown(shutdown.clone().cancelled_owned()).await
        };
        let over_tcp = async {
            let Some(listener) = self.tcp else { return Ok(()) };
            let service = router.clone().into_make_service_with_connect_info::<Peer>();
            axum::serve(listener, service).with_graceful_shutdown(shutdown.clone().cancelled_owned()).await
        };
        let patience = async {
            shutdown.cancelled().await;
            tokio::time::sleep(LAST_REQUESTS).await;
        };
        tokio::select! {
            served = async { tokio::try_join!(over_unix, over_tcp) } => served.map(|_| ()),
            () = patience => Ok(()),
        }
    }
}
