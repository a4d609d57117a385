//! A run that the shim has claimed, and what it tells of it.

use crate::{
    key::RunKey,
    protocol::{self, News, Notice},
    spool::{self, Claim, EXECUTOR_SOCKET, RunFolder},
};
use muster_dialect::Dialect;
use muster_schemas::time::Timestamp;
use std::{
    fmt,
    io::{self, Write as _},
    os::unix::net::UnixDatagram,
    path::PathBuf,
    time::Duration,
};

/// A dead executor does not hold a shim up, and a slow one not for long: it finds the news in the spool.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

/// Says something in `shims.log`. Its disk may be full: `eprintln!` would end the shim then, and nothing would look after the
/// run.
pub(crate) fn log(what: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

pub(super) struct Shim {
    pub spool: PathBuf,
    pub key: RunKey,
    pub folder: RunFolder,
    pub claim: Claim,
    /// The dialect of the launch, if it has one.
    pub dialect: Option<&'static dyn Dialect>,
}

impl Shim {
    pub fn started(&self, at: Timestamp) {
        if let Err(error) = self.claim.started(at) {
            log(format_args!("shim {}: its start cannot be recorded: {error}", self.key));
        }
        self.tell(News::Started);
    }

    /// Whether processes of this run are below other shims.
    pub fn has_steps(&self) -> bool {
        let steps = |keys: Vec<RunKey>| keys.iter().any(|key| key.is_step() && key.part == self.key.part);
        // If that cannot be found out there may be some.
        !self.key.is_step() && spool::run_keys(&self.spool).map_or(true, steps)
    }

    pub fn tell(&self, news: News) {
        // Without an executor nobody listens; the next one reads the spool.
        drop(self.send(news, Some(NOTICE_TIMEOUT)));
    }

    /// Tells that there is more output, without waiting. Whether it is to be told again: the executor is there and busy.
    pub fn tell_of_output(&self) -> bool {
        self.send(News::Output, None).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn send(&self, news: News, timeout: Option<Duration>) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        match timeout {
            Some(timeout) => socket.set_write_timeout(Some(timeout))?,
            None => socket.set_nonblocking(true)?,
        }
        protocol::send(&socket, &self.spool, EXECUTOR_SOCKET, &Notice { key: self.key, news })
    }
}
