//! From the first process of a run to the last.

use super::{
    Shim,
    children::{Wait, end_children_and, reap_silently, wait_for_child},
    controls::{self, Early},
    launch::Launched,
    log,
    management::{Abort, Management, Warning},
    streams::Streams,
    task::Failure,
    timeline::{Due, Timeline},
};
use crate::{
    cleaning::cannot_be_ended,
    containment::{Accounts, Containment, CpuTime, processes},
    protocol::{Control, News},
    removal,
    site::Suspension,
    spool::{End, NOTES, Sent, SpooledOrder, TEMPORARY},
};
use jiff::tz::TimeZone;
use muster_dialect::Ending;
use muster_schemas::{
    event::{EndCause, NodeExit, StopReason},
    job::{ExitStatus, Program, Usage},
    steps,
    time::Timestamp,
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
        signalfd::{SfdFlags, SignalFd},
    },
    time::{ClockId, clock_gettime},
    unistd::setsid,
};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _, Write as _},
    os::fd::AsFd,
    time::Duration,
};

/// The pause between two announcements of output to the executor. The first words of a task are announced at once;
/// those of many tasks go together, because each notice wakes everything between the task and its client.
const NOTICE_PAUSE: Duration = Duration::from_millis(10);
/// How long a task that has aborted its program has to end by itself, with its own status and words.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// From SIGTERM to SIGKILL for the other tasks of a program that was aborted: there is nothing to save.
const ABORT_GRACE: Duration = Duration::from_secs(2);
/// How often an ending run is checked, once its tasks are gone and other processes remain.
const ENDING_POLL: Duration = Duration::from_millis(50);

/// Makes a freshly forked process a shim: its own session, deaf to signals, parent of all orphans below it.
pub fn become_shim() -> io::Result<()> {
    setsid()?;
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
    // SAFETY: the default action runs no code of this program. The fork server ignores this signal.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    nix::sys::prctl::set_child_subreaper(true)?;
    nix::sys::prctl::set_name(c"muster-shim")?;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(())
}

/// Stays with the processes of a run until none is left, and reports how they ended.
pub fn supervise(shim: &Shim, launched: Launched, mut early: Early) -> End {
    let mut run = Supervised::new(shim, &shim.claim.order, launched);
    early.controls.into_iter().for_each(|control| run.obey(control));
    if let Err(error) = run.watch(&mut early.control) {
        run.failed = Some(EndCause::Lost(format!("the shim failed: {error}")));
    }
    run.finish()
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

struct Supervised<'a> {
    shim: &'a Shim,
    spooled: &'a SpooledOrder,
    containment: Containment,
    oom_kills_before: u64,
    /// Living tasks, by process.
    tasks: BTreeMap<i32, u32>,
    /// A run without tasks on this node only holds its containment.
    holds_only: bool,
    /// `None` once all tasks have become their programs.
    failures: Option<fs::File>,
    launched: Timestamp,
    reaped: Reaped,
    streams: Option<Streams>,
    management: Option<Management>,
    /// Why the parallel program is over, and when its tasks are ended, if they are not before.
    aborted: Option<(Abort, Duration)>,
    script_errors: Option<fs::File>,
    /// The standard error of the first task of a step, if it is a file.
    task_errors: Option<fs::File>,
    /// How many bytes of the messages to the job are written.
    notes_written: usize,
    /// Whether output is still to be announced to the executor, and when it may be.
    untold: bool,
    next_notice: Duration,
    timeline: Timeline,
    stopped: Option<StopReason>,
    timed_out: bool,
    killed: bool,
    failed: Option<EndCause>,
}

/// Results of the dead children of the shim.
#[derive(Default)]
struct Reaped {
    statuses: BTreeMap<u32, ExitStatus>,
    /// Ended tasks that nobody has been told about.
    news: Vec<(u32, ExitStatus)>,
    cpu: CpuTime,
    task_memory_bytes: u64,
    other_memory_bytes: u64,
}

impl<'a> Supervised<'a> {
    fn new(shim: &'a Shim, spooled: &'a SpooledOrder, mut launched: Launched) -> Self {
        if let Some(management) = &mut launched.connections.management {
            management.started(now());
        }
        Self {
            shim,
            spooled,
            containment: launched.containment,
            oom_kills_before: launched.oom_kills_before,
            holds_only: launched.tasks.is_empty(),
            tasks: launched.tasks.into_iter().collect(),
            failures: Some(launched.failures),
            launched: launched.started,
            reaped: Reaped::default(),
            untold: launched.connections.streams.as_ref().is_some_and(Streams::has_output),
            streams: launched.connections.streams,
            management: launched.connections.management,
            aborted: None,
            script_errors: launched.script_errors,
            task_errors: launched.task_errors,
            notes_written: 0,
            next_notice: Duration::ZERO,
            timeline: Timeline::new(&spooled.order, now()),
            stopped: None,
            timed_out: false,
            killed: false,
            failed: None,
        }
    }

    /// Returns when the run is over, or must be ended by force.
    fn watch(&mut self, control: &mut fs::File) -> io::Result<()> {
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        let children = SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        // Input may have arrived before there was a shim to be told.
        self.with_streams(Streams::feed_all);
        while !self.is_over() {
            let mut polled =
                vec![PollFd::new(children.as_fd(), PollFlags::POLLIN), PollFd::new(control.as_fd(), PollFlags::POLLIN)];
            polled.extend(self.failures.as_ref().map(|failures| PollFd::new(failures.as_fd(), PollFlags::POLLIN)));
            let streams = self.streams.as_ref().and_then(Streams::ready);
            polled.extend(streams.map(|ready| PollFd::new(ready, PollFlags::POLLIN)));
            let management = self.management.as_ref().map(Management::ready);
            polled.extend(management.map(|ready| PollFd::new(ready, PollFlags::POLLIN)));
            match poll(&mut polled, self.poll_timeout()) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let starts =
                self.failures.is_some() && polled.get(2).is_some_and(|failures| failures.any().unwrap_or(true));
            while children.read_signal()?.is_some() {}
            reap(&mut self.tasks, &mut self.reaped);
            if starts {
                self.take_failures()?;
            }
            self.manage();
            self.move_streams();
            controls::take(control, |control| self.obey(control))?;
            self.do_what_is_due();
        }
        Ok(())
    }

    fn poll_timeout(&self) -> PollTimeout {
        let mut wait = self.timeline.wait(now());
        if let Some(retry) = self.streams.as_ref().and_then(Streams::wait) {
            wait = Some(wait.map_or(retry, |wait| wait.min(retry)));
        }
        if let Some((_, due)) = self.aborted.as_ref().filter(|_| !self.timeline.is_ending()) {
            let until_end = due.saturating_sub(now());
            wait = Some(wait.map_or(until_end, |wait| wait.min(until_end)));
        }
        if let Some(due) = self.management.as_ref().and_then(Management::next_look) {
            let until_look = due.saturating_sub(now());
            wait = Some(wait.map_or(until_look, |wait| wait.min(until_look)));
        }
        if self.untold {
            let until_notice = self.next_notice.saturating_sub(now());
            wait = Some(wait.map_or(until_notice, |wait| wait.min(until_notice)));
        }
        if self.tasks.is_empty() && self.timeline.is_ending() {
            wait = Some(wait.map_or(ENDING_POLL, |wait| wait.min(ENDING_POLL)));
        }
        // Rounded up, so that the time has come when poll returns; a long wait is cut into pieces.
        let millis = wait.map(|wait| wait.as_micros().div_ceil(1_000).min(i32::MAX as u128) as i32);
        millis.map_or(PollTimeout::NONE, |millis| PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX))
    }

    /// Serves the tasks of a parallel program, and ends it if one of them is the reason to.
    fn manage(&mut self) {
        let Some(management) = &mut self.management else { return };
        management.serve();
        let is_ending = self.timeline.is_ending();
        let mut warning = None;
        for (rank, status) in &self.reaped.news {
            management.ended(*rank);
            // Those that are being ended have not ended well.
            if !is_ending {
                warning = warning.or_else(|| management.look_at_ended(*rank, status.is_success(), &self.tasks));
            }
        }
        let warning = warning.or_else(|| management.look(&self.tasks, now()));
        let warnings = [management.take_refusal(), warning];
        if let Some((Abort { rank: Some(rank), status: Some(status), .. }, _)) = &self.aborted {
            self.reaped.replace_signal(*rank, ExitStatus::Code(*status));
        }
        if self.tasks.is_empty() {
            management.end();
        }
        if management.take_news() {
            self.shim.tell(News::Fence);
        }
        let abort = management.take_abort();
        // Tasks that are being ended leave the program by that.
        if let Some(abort) = abort.filter(|_| self.aborted.is_none() && !self.timeline.is_ending()) {
            self.aborted = Some((abort, now() + LAST_WORDS));
        }
        warnings.iter().flatten().for_each(|warning| self.warn_task(warning));
        self.end_aborted();
    }

    /// Tells a task something on its standard error, as far as it has a client or a file for that.
    fn warn_task(&mut self, Warning { rank, text }: &Warning) {
        match (&mut self.task_errors, &mut self.streams) {
            // If it cannot be written, the step continues without it.
            (Some(file), _) => drop(file.write_all(text.as_bytes())),
            (None, Some(streams)) => streams.say(*rank, text),
            (None, None) => {}
        }
    }

    /// Ends the tasks of an aborted program once the one that is the reason has had its last words.
    fn end_aborted(&mut self) {
        let Some((abort, due)) = &self.aborted else { return };
        let is_gone = !self.tasks.values().any(|rank| Some(*rank) == abort.rank);
        if !self.timeline.is_ending() && (is_gone || *due <= now()) {
            self.timeline.stop(now(), Duration::ZERO, ABORT_GRACE);
        }
    }

    /// Moves the output of tasks, and reports those that have ended.
    fn move_streams(&mut self) {
        let news = std::mem::take(&mut self.reaped.news);
        let ends_all = self.spooled.tasks.as_ref().is_some_and(|tasks| tasks.ends_on_failure);
        if ends_all && self.stopped.is_none() && news.iter().any(|(_, status)| !status.is_success()) {
            self.stop(StopReason::PeerEnded, self.spooled.order.kill_grace_seconds);
        }
        let Some(streams) = &mut self.streams else { return };
        let mut has_more = streams.serve();
        for (rank, status) in news {
            streams.ended(rank, status);
        }
        has_more |= streams.flush();
        self.untold |= has_more;
        if self.untold && self.next_notice <= now() {
            self.untold = self.shim.tell_of_output();
            self.next_notice = now() + NOTICE_PAUSE;
        }
    }

    fn is_over(&self) -> bool {
        if self.killed || self.failed.is_some() {
            return true;
        }
        match (self.tasks.is_empty(), self.timeline.is_ending()) {
            (false, _) => false,
            (true, false) => !self.holds_only,
            // Its other processes get the grace too: a shell is gone at once and its program may still save its work.
            (true, true) => self.members().is_empty(),
        }
    }

    /// The end of the pipe means that all tasks have become their programs.
    fn take_failures(&mut self) -> io::Result<()> {
        let Some(failures) = &mut self.failures else { return Ok(()) };
        let mut report = [0; Failure::BYTES];
        match failures.read_exact(&mut report) {
            Ok(()) => {
                let failure = Failure::from_bytes(report);
                self.failed = Some(EndCause::LaunchFailed(failure.describe(self.spooled)));
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.failures = None;
                if !self.is_over() {
                    self.shim.started(self.launched);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn obey(&mut self, control: Control) {
        match control {
            Control::Signal(signal) => self.send(signal, false, Self::signal),
            // The tasks must pass it on to what they have started.
            Control::SignalOwn(signal) => self.send(signal, false, Self::signal_own),
            Control::Suspend if !self.timeline.is_ending() => self.suspend(),
            Control::Suspend => {}
            Control::Resume => self.resume_by_order(),
            Control::SetWalltime(walltime_seconds) => self.timeline.set_walltime(walltime_seconds),
            Control::Stop { reason, grace_seconds } => self.stop(reason, grace_seconds),
            Control::Acknowledged(offset) => self.with_streams(|streams| streams.acknowledge(offset)),
            Control::Input => self.with_streams(Streams::feed_all),
            Control::Resize(size) => self.with_streams(|streams| streams.resize(size)),
            Control::Fence => {
                if let Some(management) = &mut self.management {
                    management.look_for_answer();
                }
                self.manage();
            }
            Control::Notes => {
                let written = self.write_notes();
                self.log_failure("given the messages to it", written);
            }
        }
    }

    /// Messages to the job follow what its script has written to standard error so far.
    fn write_notes(&mut self) -> io::Result<()> {
        let Some(output) = &mut self.script_errors else { return Ok(()) };
        let notes = fs::read(self.shim.folder.file(NOTES))?;
        let news = notes.get(self.notes_written..).unwrap_or_default();
        self.notes_written += news.len();
        output.write_all(news)
    }

    fn with_streams(&mut self, act: impl FnOnce(&mut Streams)) {
        if let Some(streams) = &mut self.streams {
            act(streams);
        }
    }

    fn stop(&mut self, reason: StopReason, grace_seconds: u32) {
        let checkpoint = self.spooled.order.checkpoint.filter(|_| reason == StopReason::Preempted);
        let saving = checkpoint.map_or(0, |checkpoint| checkpoint.seconds_before_end);
        if self.stopped.is_none() && !self.timed_out {
            self.resume();
            if let Some(checkpoint) = checkpoint {
                self.send(checkpoint.signal, true, Self::signal);
            }
            self.stopped = Some(reason);
        }
        self.timeline.stop(now(), Duration::from_secs(saving.into()), Duration::from_secs(grace_seconds.into()));
    }

    fn do_what_is_due(&mut self) {
        while let Some(due) = self.timeline.due(now()) {
            match due {
                Due::Checkpoint(signal) => self.send(signal, true, Self::signal),
                Due::Warn(signal) => self.send(signal, true, Self::warn),
                Due::Terminate => {
                    self.timed_out |= self.stopped.is_none() && self.aborted.is_none();
                    self.resume();
                    // A stopped process would not receive it (SL-C-30).
                    self.signal(libc::SIGCONT);
                    self.signal(libc::SIGTERM);
                }
                Due::Kill => self.killed = true,
            }
        }
    }

    fn suspend(&mut self) {
        // The order is repeated, since nobody acknowledges it.
        let is_news = !self.timeline.is_suspended();
        self.timeline.suspend(now());
        match self.shim.suspend_by_site(Suspension::Suspend, &self.members()) {
            Some(done) => self.end_unless(done),
            None => self.log_failure("suspended", self.freeze()),
        }
        if is_news && self.failed.is_none() {
            self.shim.after_suspension();
        }
    }

    /// Lets the processes continue, unless the program of the site ahead of that fails: then the run ends here (OAR-S-04). A run
    /// that is to end continues without it.
    fn resume_by_order(&mut self) {
        if !self.timeline.is_suspended() {
            return;
        }
        match self.shim.before_resumption() {
            Ok(()) => self.resume(),
            Err(why) => {
                self.failed.get_or_insert(EndCause::Lost(why));
            }
        }
    }

    fn resume(&mut self) {
        if self.timeline.is_suspended() {
            self.timeline.resume(now());
            match self.shim.suspend_by_site(Suspension::Resume, &self.members()) {
                Some(done) => self.end_unless(done),
                None => self.log_failure("resumed", self.thaw()),
            }
        }
    }

    /// What the site's program could not do makes the node unfit, and ends the run here (OAR-S-07).
    fn end_unless(&mut self, done: Result<(), String>) {
        if let Err(why) = done {
            self.shim.note_unfit(&why);
            self.failed.get_or_insert(EndCause::Lost(why));
        }
    }

    fn log_failure(&self, what: &str, result: io::Result<()>) {
        if let Err(error) = result {
            log(format_args!("shim {}: it cannot be {what}: {error}", self.shim.key));
        }
    }

    /// The processes of a step are those below its shim; its run's containment includes others.
    fn members(&self) -> Vec<i32> {
        if self.shim.key.is_step() { processes::descendants_of_this() } else { self.containment.members() }
    }

    /// Sends a signal to all processes; returns how many took it.
    fn signal(&self, signal: i32) -> usize {
        processes::signal_all(&self.members(), signal)
    }

    fn signal_own(&self, signal: i32) -> usize {
        let own: Vec<i32> = self.tasks.keys().copied().collect();
        processes::signal_all(&own, signal)
    }

    /// Sends a signal in one of these ways, and has the ledger told.
    fn send(&self, signal: u8, was_due: bool, way: fn(&Self, i32) -> usize) {
        let processes = u32::try_from(way(self, signal.into())).unwrap_or(u32::MAX);
        self.shim.signalled(Sent { signal, was_due, processes });
    }

    /// A script knows what it has started, and is warned alone (SL-C-13).
    fn warn(&self, signal: i32) -> usize {
        match self.spooled.order.launch.program {
            Program::Script { .. } => self.signal_own(signal),
            _ => self.signal(signal),
        }
    }

    fn freeze(&self) -> io::Result<()> {
        if self.shim.key.is_step() {
            processes::stop_descendants();
            return Ok(());
        }
        self.containment.freeze()
    }

    fn thaw(&self) -> io::Result<()> {
        if self.shim.key.is_step() {
            self.signal(libc::SIGCONT);
            return Ok(());
        }
        self.containment.thaw()
    }

    /// Ends the remaining processes and returns the result.
    fn finish(mut self) -> End {
        // The last output of the tasks does not wait until everything that they left behind is ended.
        if self.untold {
            self.shim.tell_of_output();
        }
        let ran_out_of_memory = self.containment.oom_kills() > self.oom_kills_before;
        // The accounts of a run's groups are not those of a step in it.
        let accounts = if self.shim.key.is_step() { Accounts::default() } else { self.containment.accounts() };
        self.end_processes();
        self.close_streams();
        self.note_end();
        self.empty_temporary();
        self.log_failure("rid of its containers", self.shim.folder.remove_container());
        let launch_failed = matches!(self.failed, Some(EndCause::LaunchFailed(_)));
        let started = !launch_failed && !self.holds_only;
        let exit = NodeExit {
            status: self.reaped.status().filter(|_| started),
            cause: self.cause(ran_out_of_memory),
            usage: self.reaped.usage(accounts),
            started: started.then_some(self.launched),
            ended: Timestamp::now(),
        };
        let statuses = match self.spooled.tasks {
            Some(_) if started => steps::grouped(std::mem::take(&mut self.reaped.statuses)),
            _ => Vec::new(),
        };
        End { exit, statuses }
    }

    /// Ends all processes of the run. If some cannot be ended, the node is unfit, and the job is over nevertheless (OAR-X-06).
    fn end_processes(&mut self) {
        let deadline = self.spooled.cleaning.deadline();
        let mut is_over = true;
        if !self.shim.key.is_step() {
            is_over &= self.containment.end(deadline, || reap(&mut self.tasks, &mut self.reaped));
        }
        is_over &= end_children_and(deadline, || reap(&mut self.tasks, &mut self.reaped));
        if !self.containment.has_groups() && self.shim.has_steps() {
            is_over &= self.containment.end_marked(deadline, reap_silently);
        }
        if !is_over {
            self.shim.note_unfit(&cannot_be_ended(Some(self.spooled.order.job)));
        }
        self.shim.remove_group();
    }

    /// The last output is in the spool before the end of the step.
    fn close_streams(&mut self) {
        let news = std::mem::take(&mut self.reaped.news);
        if let Some(streams) = &mut self.streams {
            for (rank, status) in news {
                streams.ended(rank, status);
            }
            streams.close();
        }
    }

    /// The dialect writes the last line of a script that was ended.
    fn note_end(&mut self) {
        let ending = match self.stopped {
            _ if self.timed_out => Some(Ending::Walltime),
            reason => reason.map(Ending::Ordered),
        };
        let (Some(ending), Some(output)) = (ending, &mut self.script_errors) else { return };
        let at = Timestamp::now().to_jiff().to_zoned(TimeZone::system());
        let note = self.shim.dialect.and_then(|dialect| dialect.end_note(&self.spooled.order, ending, &at));
        if let Some(note) = note {
            // If the note cannot be written, it is left out: the end of the job does not depend on it.
            let _ = output.write_all(note.as_bytes());
        }
    }

    fn cause(&mut self, ran_out_of_memory: bool) -> EndCause {
        let failed_status = self.reaped.status().is_some_and(|status| status != ExitStatus::Code(0));
        match self.failed.take() {
            Some(cause) => cause,
            None if ran_out_of_memory && failed_status => EndCause::OutOfMemory,
            None if self.aborted.is_some() && self.stopped.is_none() => EndCause::Aborted(self.why_aborted()),
            None if self.timed_out => EndCause::Walltime,
            // A node that only held the place of others has ended normally.
            None if self.holds_only && self.stopped == Some(StopReason::PeerEnded) => EndCause::Itself,
            None if self.stopped.is_some() => EndCause::Killed,
            None => EndCause::Itself,
        }
    }

    fn why_aborted(&self) -> String {
        match &self.aborted {
            Some((Abort { rank: Some(rank), why, .. }, _)) => format!("task {rank}: {why}"),
            Some((Abort { rank: None, why, .. }, _)) => why.clone(),
            None => String::new(),
        }
    }

    /// The folder itself stays for the user's next run.
    fn empty_temporary(&self) {
        let emptied = removal::empty(&self.shim.folder.file(TEMPORARY));
        self.log_failure("rid of its temporary files", emptied);
    }
}

impl Reaped {
    /// A task that asked for an exit status and was ended by a signal has that status.
    fn replace_signal(&mut self, rank: u32, asked: ExitStatus) {
        let known = self.statuses.get_mut(&rank).into_iter();
        let news = self.news.iter_mut().filter(|(of, _)| *of == rank).map(|(_, status)| status);
        for status in known.chain(news).filter(|status| matches!(status, ExitStatus::Signal(_))) {
            *status = asked;
        }
    }

    /// The first status by rank that is not 0, else 0.
    fn status(&self) -> Option<ExitStatus> {
        let failed = self.statuses.values().find(|status| **status != ExitStatus::Code(0));
        failed.or(self.statuses.values().next()).copied()
    }

    /// For groups without accounts: tasks live at the same time, and of other processes only the largest counts.
    fn usage(&self, accounts: Accounts) -> Usage {
        let counted_memory_bytes = self.task_memory_bytes.max(self.other_memory_bytes);
        let cpu = accounts.cpu.unwrap_or(self.cpu);
        Usage {
            cpu_time_micros: cpu.total_micros,
            peak_memory_bytes: accounts.peak_memory_bytes.unwrap_or(counted_memory_bytes),
            system_time_micros: cpu.system_micros.min(cpu.total_micros),
        }
    }
}

/// Collects all children that are dead by now.
fn reap(tasks: &mut BTreeMap<i32, u32>, reaped: &mut Reaped) {
    while let Wait::Dead { process, status, usage } = wait_for_child() {
        reaped.cpu.total_micros += usage.cpu_time_micros;
        reaped.cpu.system_micros += usage.system_time_micros;
        match tasks.remove(&process) {
            Some(rank) => {
                reaped.statuses.insert(rank, status);
                reaped.news.push((rank, status));
                reaped.task_memory_bytes += usage.peak_memory_bytes;
            }
            None => reaped.other_memory_bytes = reaped.other_memory_bytes.max(usage.peak_memory_bytes),
        }
    }
}
