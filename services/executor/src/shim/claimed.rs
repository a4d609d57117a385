//! A run that the shim has claimed, and its reports.

use crate::{
    key::RunKey,
    protocol::{self, News, Notice},
    site,
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

/// Writes a line to `shims.log`. Its disk may be full: `eprintln!` would then end the shim, and nobody would supervise
/// the run.
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
        // If this cannot be found out, there may be some.
        !self.key.is_step() && spool::run_keys(&self.spool).map_or(true, steps)
    }

    /// Runs the site's prolog before the first process of the job here, until the job is to end.
    ///
    /// # Errors
    /// Why the node cannot have the job; it is noted that nothing is to be started here.
    pub fn prolog(&self, is_stopped: impl FnMut() -> bool) -> Result<(), String> {
        let order = &self.claim.order;
        let Some(site) = order.site.as_ref().filter(|_| !self.key.is_step()) else { return Ok(()) };
        site.run_prolog(&order.order, &order.identity, is_stopped).inspect_err(|why| self.note_unfit(why))
    }

    /// Whether the site has a prolog for this run.
    pub fn has_prolog(&self) -> bool {
        !self.key.is_step() && self.claim.order.site.as_ref().is_some_and(|site| site.prolog.is_some())
    }

    /// Runs the site's epilog after the last process of the job here.
    pub fn epilog(&self) {
        let order = &self.claim.order;
        let Some(site) = order.site.as_ref().filter(|_| !self.key.is_step()) else { return };
        if let Err(why) = site.run_epilog(&order.order, &order.identity) {
            self.note_unfit(&why);
        }
    }

    fn note_unfit(&self, why: &str) {
        log(format_args!("shim {}: {why}", self.key));
        if let Err(error) = site::note_unfit(&self.spool, why) {
            log(format_args!("shim {}: that the node is unfit cannot be noted: {error}", self.key));
        }
    }

    pub fn tell(&self, news: News) {
        // Without an executor nobody listens; the next one reads the spool.
        drop(self.send(news, Some(NOTICE_TIMEOUT)));
    }

    /// Announces more output, without waiting. Returns whether to repeat it: the executor is there and busy.
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
