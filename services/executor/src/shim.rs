//! The shim: one small process for each run and step, which owns its processes from before the first until after the
//! last, and outlives the executor. It has a single thread, asks nobody for anything, and tells what happened by files.

mod launch;
mod supervise;
mod timeline;

use crate::{
    key::RunKey,
    protocol::{self, News, Notice},
    spool::{Claim, EXECUTOR_SOCKET, RunFolder, ShimRecord, SpooledOrder},
};
use muster_schemas::{
    event::{EndCause, NodeExit},
    job::Usage,
    time::Timestamp,
};
use std::{
    io,
    os::unix::net::UnixDatagram,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

/// A dead executor does not hold a shim up, and a slow one not for long: it finds the news in the spool.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

/// All that a shim has to do for a run, in the process that has been forked for it.
pub fn run(spool: &Path, key: RunKey) -> io::Result<()> {
    let folder = RunFolder::of(spool, key);
    supervise::become_shim(key)?;
    let Some(claim) = claim(&folder)? else { return Ok(()) };
    let shim = Shim { spool: spool.to_owned(), key, folder, claim };
    let exit = catch_unwind(AssertUnwindSafe(|| shim.execute())).unwrap_or_else(|_| {
        supervise::end_children();
        exit_without_start(EndCause::Lost("the shim failed; see shims.log in the spool".into()))
    });
    shim.folder.write_result(&exit)?;
    shim.tell(News::Ended);
    Ok(())
}

/// Writes the result of a run that no shim could be made for, unless one has it already.
pub fn refuse(folder: &RunFolder, cause: EndCause) -> io::Result<()> {
    match claim(folder)? {
        Some(_claim) => folder.write_result(&exit_without_start(cause)),
        None => Ok(()),
    }
}

/// The right to the run; none if somebody has it, or the run is gone.
fn claim(folder: &RunFolder) -> io::Result<Option<Claim>> {
    match folder.claim() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other,
    }
}

/// The end of a run of which no process was started.
pub fn exit_without_start(cause: EndCause) -> NodeExit {
    NodeExit { status: None, cause, usage: Usage::default(), started: None, ended: Timestamp::now() }
}

struct Shim {
    spool: PathBuf,
    key: RunKey,
    folder: RunFolder,
    claim: Claim,
}

impl Shim {
    fn execute(&self) -> NodeExit {
        match self.folder.order() {
            Ok(Some(order)) => self.start_and_supervise(&order),
            Ok(None) => exit_without_start(EndCause::Lost("its order is gone from the spool".into())),
            Err(error) => exit_without_start(EndCause::Lost(format!("its order in the spool cannot be read: {error}"))),
        }
    }

    fn start_and_supervise(&self, order: &SpooledOrder) -> NodeExit {
        let launch_failed = |why| exit_without_start(EndCause::LaunchFailed(why));
        let control = match protocol::bind(self.folder.path(), crate::spool::CONTROL) {
            Ok(control) => control,
            Err(error) => return launch_failed(format!("the control socket in the spool cannot be made: {error}")),
        };
        match launch::launch(order, &self.folder) {
            Ok(launched) => supervise::supervise(self, order, launched, &control),
            Err(why) => launch_failed(why),
        }
    }

    fn started(&self, at: Timestamp) {
        if let Err(error) = self.claim.record(ShimRecord { pid: std::process::id(), started: Some(at) }) {
            eprintln!("shim {}: its start cannot be recorded: {error}", self.key);
        }
        self.tell(News::Started);
    }

    fn tell(&self, news: News) {
        let sent = UnixDatagram::unbound().and_then(|socket| {
            socket.set_write_timeout(Some(NOTICE_TIMEOUT))?;
            protocol::send(&socket, &self.spool, EXECUTOR_SOCKET, &Notice { key: self.key, news })
        });
        // Without an executor nobody listens; the next one reads the spool.
        drop(sent);
    }
}
