//! A run that the shim has claimed, and its reports.

use super::fork::as_user;
use crate::{
    cleaning, environment,
    key::RunKey,
    protocol::{self, News, Notice},
    site::{self, SitePrograms, Suspension},
    spool::{self, Claim, EXECUTOR_SOCKET, PROCESS_FILE, RunFolder, SITE_NODE_FILE, Sent, give, overwrite},
};
use muster_dialect::Dialect;
use muster_schemas::{time::Timestamp, unfit::UnfitCause};
use std::{
    fmt,
    io::{self, Write as _},
    os::unix::net::UnixDatagram,
    path::PathBuf,
    time::{Duration, SystemTime},
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
        let ran = self
            .give_node_file(site)
            .and_then(|file| site.run_prologs(&order.order, &order.identity, &file, is_stopped));
        ran.inspect_err(|why| self.note_unfit(why))
    }

    /// Writes the node file for the site's programs, if they get one here. It is in the form of the job's dialect.
    fn give_node_file(&self, site: &SitePrograms) -> Result<PathBuf, String> {
        let order = &self.claim.order.order;
        let file = self.folder.file(SITE_NODE_FILE);
        if site.reads_node_file(order) {
            let of_dialect = self.dialect.and_then(|dialect| dialect.node_file(order)).map(|(_, text)| text);
            let text = of_dialect.unwrap_or_else(|| environment::node_file(order));
            let written = overwrite(&file, 0o600, text.as_bytes()).and_then(|()| give(&file, &site.account));
            written.map_err(|error| format!("{} cannot be written: {error}", UnfitCause::NodeFile.words()))?;
        }
        Ok(file)
    }

    /// Suspends the processes of the run, or lets them continue, by the program of the site. `None` if there is none.
    pub fn suspend_by_site(&self, what: Suspension, processes: &[i32]) -> Option<Result<(), String>> {
        let order = &self.claim.order;
        let site = order.site.as_ref().filter(|_| !self.key.is_step())?;
        let program = site.suspend_program.as_ref()?;
        let file = self.folder.file(PROCESS_FILE);
        let text: String = processes.iter().map(|process| format!("{process}\n")).collect();
        let written = overwrite(&file, 0o600, text.as_bytes()).and_then(|()| give(&file, &site.account));
        let failed =
            |error| UnfitCause::SuspendProgram.because(format!("its list of processes cannot be written: {error}"));
        let written = written.map_err(failed);
        Some(written.and_then(|()| site.run_suspension(program, what, &order.order, &order.identity, &file)))
    }

    /// Runs the program of the site right after the processes of the run were suspended, if there is one here. If it fails, the
    /// executor has the run continue (OAR-S-04).
    pub fn after_suspension(&self) {
        let Err(why) = self.beside_suspension(Suspension::Suspend) else { return };
        log(format_args!("shim {}: {why}", self.key));
        match self.folder.note_unwanted_suspension(self.key, &why) {
            Ok(()) => self.tell(News::SuspensionUnwanted),
            Err(error) => log(format_args!("shim {}: that it is to continue cannot be noted: {error}", self.key)),
        }
    }

    /// On the first node of the job: notes that its processes were sent a signal, for the ledger.
    pub fn signalled(&self, sent: Sent) {
        if self.key.is_step() || !site::is_first_node(&self.claim.order.order) {
            return;
        }
        match self.folder.note_signal(self.key, sent) {
            Ok(()) => self.tell(News::Signalled),
            Err(error) => log(format_args!("shim {}: a signal cannot be noted: {error}", self.key)),
        }
    }

    /// Runs the program of the site right before suspended processes of the run continue, if there is one here.
    ///
    /// # Errors
    /// Why they must not continue, for people (OAR-S-04).
    pub fn before_resumption(&self) -> Result<(), String> {
        self.beside_suspension(Suspension::Resume).inspect_err(|why| log(format_args!("shim {}: {why}", self.key)))
    }

    fn beside_suspension(&self, what: Suspension) -> Result<(), String> {
        let order = &self.claim.order;
        let Some(site) = order.site.as_ref().filter(|_| !self.key.is_step()) else { return Ok(()) };
        site.run_beside_suspension(what, &order.order, &order.identity)
    }

    /// Removes the group that the site has made for the run. If that fails, the node is unfit (OAR-X-05, OAR-X-06).
    pub fn remove_group(&self) {
        let order = &self.claim.order;
        let Some(site) = order.site.as_ref().filter(|_| !self.key.is_step()) else { return };
        if let Err(why) = site.remove_group(&order.order, &order.identity) {
            self.note_unfit(&format!("{}: {why}", cleaning::cannot_be_ended(Some(order.order.job))));
        }
    }

    /// Whether the site has a prolog for this run.
    pub fn has_prolog(&self) -> bool {
        !self.key.is_step()
            && self.claim.order.site.as_ref().is_some_and(|site| site.prolog.is_some() || site.job_prolog.is_some())
    }

    /// Runs the site's epilog after the last process of the job here.
    pub fn epilog(&self) {
        let order = &self.claim.order;
        let Some(site) = order.site.as_ref().filter(|_| !self.key.is_step()) else { return };
        if let Err(why) = site.run_epilogs(&order.order, &order.identity, &self.folder.file(SITE_NODE_FILE)) {
            self.note_unfit(&why);
        }
    }

    /// Removes what the owner of the job has left on the node, if no other job of the owner is there (OAR-X-08). The files of
    /// root are not those of a job.
    pub fn clean_up(&self) {
        let order = &self.claim.order;
        let (folders, uid) = (&order.cleaning.folders, order.identity.uid);
        let before = SystemTime::now();
        if self.key.is_step() || folders.is_empty() || uid == 0 || self.has_other_jobs_of(uid) {
            return;
        }
        let not_removed = |why| log(format_args!("shim {}: a file of its user cannot be removed: {why}", self.key));
        let owner = &order.identity;
        match as_user(owner, || Ok(cleaning::leftovers(folders, uid, before))) {
            Ok(found) => cleaning::remove_leftovers(
                &found,
                |act| as_user(owner, || act().map_err(|error| error.to_string())),
                || self.has_other_jobs_of(uid),
            )
            .into_iter()
            .for_each(not_removed),
            Err(why) => not_removed(why),
        }
    }

    /// Whether another job of a user has not ended here.
    fn has_other_jobs_of(&self, uid: u32) -> bool {
        let is_there = |key: &RunKey| {
            let log = RunFolder::of(&self.spool, *key).log().ok().flatten();
            log.is_some_and(|log| log.end.is_none() && log.order.is_some_and(|order| order.identity.uid == uid))
        };
        // If it cannot be found out, there may be some.
        let mut others = match spool::run_keys(&self.spool) {
            Ok(keys) => keys.into_iter().filter(|key| !key.is_step() && *key != self.key),
            Err(_) => return true,
        };
        others.any(|key| is_there(&key))
    }

    /// Notes that nothing is to be started here any more.
    pub fn note_unfit(&self, why: &str) {
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
