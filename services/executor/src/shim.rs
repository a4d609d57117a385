//! The shim: one small process for each run and step, which owns its processes from before the first until after the
//! last, and outlives the executor. It is single-threaded, asks nobody for anything, and reports through files.

mod binding;
mod children;
mod claimed;
mod container;
mod controls;
mod execution;
mod feed;
mod files;
mod fork;
mod launch;
mod login;
mod management;
mod programs;
mod step;
mod streams;
mod supervise;
mod task;
mod timeline;

use crate::{
    host::Host,
    key::RunKey,
    protocol::News,
    spool::{CONTROL, End, RunFolder},
};
use claimed::Shim;
pub(crate) use claimed::log;
use controls::Early;
use launch::NotLaunched;
use muster_dialect::Dialects;
use muster_schemas::{
    event::{EndCause, NodeExit, StopReason},
    job::Usage,
    time::Timestamp,
};
use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

/// The pause before a result that could not be written is written again.
const RESULT_RETRY: Duration = Duration::from_secs(1);

/// The whole work of a shim for a run, in the process forked for it. `host` is that of an emulated node.
///
/// # Errors
/// If the spool refuses; whatever could be recorded is in the spool.
pub fn run(spool: &Path, key: RunKey, dialects: Dialects, host: Option<&Host>) -> io::Result<()> {
    let folder = RunFolder::of(spool, key);
    supervise::become_shim()?;
    let Some(claim) = folder.claim(key)? else { return Ok(()) };
    let dialect = dialects.named(claim.order.order.dialect.as_deref());
    let shim = Shim { spool: spool.to_owned(), key, folder, claim, dialect };
    let end = catch_unwind(AssertUnwindSafe(|| execute(&shim, host))).unwrap_or_else(|_| {
        children::end_children();
        exit_without_start(EndCause::Lost("the shim failed; see shims.log in the spool".into())).into()
    });
    // The disk may be full; the result waits here until there is room.
    while let Err(error) = shim.claim.ended(&end) {
        log(format_args!("shim {key}: its result cannot be written: {error}"));
        std::thread::sleep(RESULT_RETRY);
    }
    if host.is_none() {
        shim.clean_up();
    }
    shim.tell(News::Ended);
    Ok(())
}

/// Writes the result of a run for which no shim could be created, unless a shim already runs it.
///
/// # Errors
/// If the spool refuses.
pub fn refuse(folder: &RunFolder, key: RunKey, cause: EndCause) -> io::Result<()> {
    folder.claim(key)?.map_or(Ok(()), |claim| claim.ended(&exit_without_start(cause).into()))
}

/// The end of a run that started no process.
pub fn exit_without_start(cause: EndCause) -> NodeExit {
    NodeExit { status: None, cause, usage: Usage::default(), started: None, ended: Timestamp::now() }
}

/// Launches the run's tasks, and supervises them.
fn execute(shim: &Shim, host: Option<&Host>) -> End {
    let launch_failed = |why| exit_without_start(EndCause::LaunchFailed(why)).into();
    // Opened for writing too, so that it does not end each time a writer closes it.
    let control =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(shim.folder.file(CONTROL));
    let control = match control {
        Ok(control) => control,
        Err(error) => return launch_failed(format!("the control pipe in the spool cannot be opened: {error}")),
    };
    let mut early = Early::new(control);
    if let Err(why) = shim.prolog(|| early.stopped().is_some()) {
        return exit_without_start(EndCause::Lost(why)).into();
    }
    let order = &shim.claim.order;
    let stopped = if shim.has_prolog() { early.stopped() } else { None };
    if let Some(reason) = stopped {
        shim.epilog();
        // As if it had held its place until now.
        let has_ended = reason == StopReason::PeerEnded && launch::holds_only(&order.order);
        return exit_without_start(if has_ended { EndCause::Itself } else { EndCause::Killed }).into();
    }
    let end = match launch::launch(order, &shim.folder, shim.dialect, host) {
        Ok(launched) => supervise::supervise(shim, launched, early),
        Err(NotLaunched::OfJob(why)) => launch_failed(why),
        Err(NotLaunched::OfNode(why)) => {
            shim.note_unfit(&why);
            exit_without_start(EndCause::Lost(why)).into()
        }
    };
    shim.epilog();
    end
}
