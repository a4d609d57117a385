//! The shim: one small process for each run and step, which owns its processes from before the first until after the
//! last, and outlives the executor. It has a single thread, asks nobody for anything, and tells what happened by files.

mod execution;
mod feed;
mod files;
mod launch;
mod login;
mod step;
mod streams;
mod supervise;
mod task;
mod timeline;

use crate::{
    key::RunKey,
    protocol::{self, News, Notice},
    spool::{self, CONTROL, Claim, EXECUTOR_SOCKET, End, RunFolder},
};
use muster_dialect::{Dialect, Dialects};
use muster_schemas::{
    event::{EndCause, NodeExit},
    job::Usage,
    time::Timestamp,
};
use std::{
    fmt,
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::{fs::OpenOptionsExt, net::UnixDatagram},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

/// A dead executor does not hold a shim up, and a slow one not for long: it finds the news in the spool.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

/// How soon a result that could not be written is tried again.
const RESULT_RETRY: Duration = Duration::from_secs(1);

/// All that a shim has to do for a run, in the process that has been forked for it.
///
/// # Errors
/// If the spool refuses; what can be told of it is in the spool then.
pub fn run(spool: &Path, key: RunKey, dialects: Dialects) -> io::Result<()> {
    let folder = RunFolder::of(spool, key);
    supervise::become_shim()?;
    let Some(claim) = folder.claim(key)? else { return Ok(()) };
    let dialect = dialects.named(claim.order.order.dialect.as_deref());
    let shim = Shim { spool: spool.to_owned(), key, folder, claim, dialect };
    let end = catch_unwind(AssertUnwindSafe(|| shim.execute())).unwrap_or_else(|_| {
        supervise::end_children();
        exit_without_start(EndCause::Lost("the shim failed; see shims.log in the spool".into())).into()
    });
    // The disk may be full; the result waits here until there is room.
    while let Err(error) = shim.claim.ended(&end) {
        log(format_args!("shim {key}: its result cannot be written: {error}"));
        std::thread::sleep(RESULT_RETRY);
    }
    shim.tell(News::Ended);
    Ok(())
}

/// Says something in `shims.log`. Its disk may be full: `eprintln!` would end the shim then, and nothing would look after the
/// run.
pub(crate) fn log(what: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Writes the result of a run that no shim could be made for, unless a shim already runs it.
///
/// # Errors
/// If the spool refuses.
pub fn refuse(folder: &RunFolder, key: RunKey, cause: EndCause) -> io::Result<()> {
    folder.claim(key)?.map_or(Ok(()), |claim| claim.ended(&exit_without_start(cause).into()))
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
    /// The dialect of the launch, if it has one.
    dialect: Option<&'static dyn Dialect>,
}

impl Shim {
    fn execute(&self) -> End {
        let launch_failed = |why| exit_without_start(EndCause::LaunchFailed(why)).into();
        // Opened for writing too, so that it does not end each time a writer goes.
        let control =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(self.folder.file(CONTROL));
        let control = match control {
            Ok(control) => control,
            Err(error) => return launch_failed(format!("the control pipe in the spool cannot be opened: {error}")),
        };
        match launch::launch(&self.claim.order, &self.folder, self.dialect) {
            Ok(launched) => supervise::supervise(self, launched, control),
            Err(why) => launch_failed(why),
        }
    }

    fn started(&self, at: Timestamp) {
        if let Err(error) = self.claim.started(at) {
            log(format_args!("shim {}: its start cannot be recorded: {error}", self.key));
        }
        self.tell(News::Started);
    }

    /// Whether processes of this run are below other shims.
    fn has_steps(&self) -> bool {
        let steps = |keys: Vec<RunKey>| keys.iter().any(|key| key.is_step() && key.part == self.key.part);
        // If that cannot be found out there may be some.
        !self.key.is_step() && spool::run_keys(&self.spool).map_or(true, steps)
    }

    fn tell(&self, news: News) {
        // Without an executor nobody listens; the next one reads the spool.
        drop(self.send(news, Some(NOTICE_TIMEOUT)));
    }

    /// Tells that there is more output, without waiting. Whether it is to be told again: the executor is there and busy.
    fn tell_of_output(&self) -> bool {
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
