//! Supervisors, each a process that makes one call at a time.

use crate::{
    protocol::{self, Order, Reply},
    supervisor::ARGUMENT,
};
use muster_schemas::codec::HEADER_BYTES;
use std::{
    io,
    os::{fd::OwnedFd, unix::net},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    process::{Child, Command},
    sync::Semaphore,
};

/// Supervisors, up to a limit; they are started when needed and then kept.
#[derive(Debug)]
pub struct Pool {
    program: PathBuf,
    permits: Semaphore,
    idle: Mutex<Vec<Supervisor>>,
}

impl Pool {
    pub fn new(program: PathBuf, size: usize) -> Self {
        Self { program, permits: Semaphore::new(size.max(1)), idle: Mutex::new(Vec::new()) }
    }

    /// Has a free supervisor make a call, waiting for one if necessary. Dropping the future ends the call and all that
    /// it started.
    pub async fn make(&self, order: &Order) -> io::Result<Reply> {
        let permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let mut supervisor = match self.take_idle() {
            Some(supervisor) => supervisor,
            None => Supervisor::start(&self.program)?,
        };
        let reply = supervisor.make(order).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(supervisor);
        drop(permit);
        Ok(reply)
    }

    /// An idle supervisor. Those that were killed meanwhile are dropped.
    fn take_idle(&self) -> Option<Supervisor> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find_map(Supervisor::if_alive)
    }
}

/// The runner's side of a supervisor. Dropping it makes the supervisor kill what it runs and end.
#[derive(Debug)]
struct Supervisor {
    process: Child,
    socket: UnixStream,
}

impl Supervisor {
    fn start(program: &Path) -> io::Result<Self> {
        let (ours, theirs) = net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // Nothing here may need code between fork and exec: that would copy the page tables of the runner.
        let process = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { process, socket: UnixStream::from_std(ours)? })
    }

    /// This supervisor if it still runs and listens: one that could not kill a filter keeps running but takes no more
    /// orders.
    fn if_alive(mut self) -> Option<Self> {
        let listens = self.socket.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        (listens && matches!(self.process.try_wait(), Ok(None))).then_some(self)
    }

    async fn make(&mut self, order: &Order) -> io::Result<Reply> {
        self.socket.write_all(&protocol::to_bytes(order)?).await?;
        let mut header = [0; HEADER_BYTES];
        self.socket.read_exact(&mut header).await?;
        let mut bytes = header.to_vec();
        bytes.resize(HEADER_BYTES + protocol::body_bytes(header)?, 0);
        self.socket.read_exact(&mut bytes[HEADER_BYTES..]).await?;
        protocol::from_bytes(&bytes)
    }
}
