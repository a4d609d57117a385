//! The exchange between the tasks of a step and its client.
//!
//! Output arrives through pipes (or a terminal) and is appended, as frames, to the file of the step in the spool; one
//! write takes everything since the last. Once the file is [`MAX_AHEAD_BYTES`] ahead of the client's acknowledgement,
//! the pipes are not read, and tasks that write wait. Each task reads input from another file at its own pace.

use super::feed::{Feed, Next};
use crate::{
    identity::Identity,
    spool::{INPUT, INPUT_END, INPUT_TAKEN, OUTPUT, RunFolder},
};
use muster_schemas::{
    job::ExitStatus,
    step_io::{Content, Frame, MAX_CONTENT_BYTES},
    steps::TerminalSize,
};
use nix::{
    errno::Errno,
    sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    unistd::{Gid, Uid, fchown},
};
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd},
        unix::fs::{FileExt as _, OpenOptionsExt as _},
    },
    rc::Rc,
    time::Duration,
};

/// Limit of the output that waits for the client, not counting the rest in the pipes of tasks that have ended.
pub const MAX_AHEAD_BYTES: u64 = 64 << 20;
/// How much is read from pipes before it is written.
const ROUND_BYTES: usize = 1 << 20;
/// A pipe holds no more reads than this when its task ends.
const MAX_PIPE_READS: usize = 32;
/// Acknowledged output and consumed input are returned to the disk in parts of this size.
const RELEASE_BYTES: u64 = 4 << 20;
/// The pause before output that the disk did not take is written again.
const DISK_RETRY: Duration = Duration::from_secs(1);

/// The stream of a task that a pipe carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
}

/// A pipe from a task.
struct Source {
    file: File,
    rank: u32,
    stream: Stream,
}

/// The streams of the tasks of a step on this node.
pub struct Streams {
    folder: RunFolder,
    /// The owner of the pipes, if other than this process's: a task may open `/dev/stderr` by its name.
    owner: Option<(Uid, Gid)>,
    epoll: Epoll,
    sources: BTreeMap<u64, Source>,
    feeds: BTreeMap<u64, Feed>,
    next_token: u64,
    /// The shim's side of the terminal.
    terminal: Option<Rc<File>>,
    output: File,
    /// Frames that are not in the file yet.
    pending: Vec<u8>,
    /// The length of the file.
    written: u64,
    acknowledged: u64,
    released: u64,
    input: Option<File>,
    input_released: u64,
    disk_is_full: bool,
    buffer: Box<[u8]>,
}

impl Streams {
    /// No streams open yet, for tasks of a user.
    pub fn new(folder: &RunFolder, user: &Identity) -> io::Result<Self> {
        let output = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.file(OUTPUT))?;
        output.set_len(0)?;
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        let is_own = (uid, gid) == (Uid::effective(), Gid::effective());
        Ok(Self {
            folder: folder.clone(),
            owner: (Uid::effective().is_root() && !is_own).then_some((uid, gid)),
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            sources: BTreeMap::new(),
            feeds: BTreeMap::new(),
            next_token: 0,
            terminal: None,
            output,
            pending: Vec::new(),
            written: 0,
            acknowledged: 0,
            released: 0,
            input: None,
            input_released: 0,
            disk_is_full: false,
            buffer: vec![0; MAX_CONTENT_BYTES].into(),
        })
    }

    /// A pipe from a task; returns the task's side.
    pub fn source_pipe(&mut self, rank: u32, stream: Stream) -> io::Result<File> {
        let (ours, theirs) = pipe(true)?;
        self.give(&theirs)?;
        self.add_source(ours, rank, stream)?;
        Ok(theirs)
    }

    /// A pipe to a task for the client's input; returns the task's side.
    pub fn feed_pipe(&mut self) -> io::Result<File> {
        let (theirs, ours) = pipe(false)?;
        self.give(&theirs)?;
        self.add_feed(Rc::new(ours))?;
        Ok(theirs)
    }

    fn give(&self, pipe: &File) -> io::Result<()> {
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        Ok(fchown(pipe.as_fd(), Some(uid), Some(gid))?)
    }

    /// Reads from a pipe whose reads do not wait.
    fn add_source(&mut self, file: File, rank: u32, stream: Stream) -> io::Result<()> {
        let token = self.token();
        self.epoll.add(&file, EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        self.sources.insert(token, Source { file, rank, stream });
        Ok(())
    }

    /// Feeds the client's input to a task, through a pipe whose writes do not wait.
    fn add_feed(&mut self, file: Rc<File>) -> io::Result<()> {
        let token = self.token();
        let feed = Feed::to_pipe(file);
        self.epoll.add(feed.file(), EpollEvent::new(EpollFlags::empty(), token))?;
        self.feeds.insert(token, feed);
        Ok(())
    }

    /// A terminal: the client's input goes to it, and what it shows is output of the task.
    pub fn add_terminal(&mut self, file: File, rank: u32) -> io::Result<()> {
        let writing = Rc::new(file.try_clone()?);
        self.terminal = Some(writing.clone());
        let token = self.token();
        // The same terminal cannot be watched twice under one descriptor.
        self.epoll.add(&*writing, EpollEvent::new(EpollFlags::empty(), token))?;
        self.feeds.insert(token, Feed::to_terminal(writing));
        self.add_source(file, rank, Stream::Output)
    }

    fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    /// The descriptor that is ready when there is work; `None` while the client is too far behind.
    pub fn ready(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_paused()).then(|| self.epoll.0.as_fd())
    }

    /// How soon there is work in any case.
    pub fn wait(&self) -> Option<Duration> {
        self.disk_is_full.then_some(DISK_RETRY)
    }

    fn is_paused(&self) -> bool {
        self.disk_is_full || self.written.saturating_sub(self.acknowledged) >= MAX_AHEAD_BYTES
    }

    /// Whether there is output in the file.
    pub fn has_output(&self) -> bool {
        self.written > 0
    }

    /// Moves what can be moved without waiting. Returns whether the file has more output.
    pub fn serve(&mut self) -> bool {
        if self.is_paused() && !self.disk_is_full {
            // This does not affect input.
            self.feed_all();
            return false;
        }
        let mut events = [EpollEvent::empty(); 256];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..count] {
            if self.pending.len() < ROUND_BYTES {
                self.take(event.data());
            }
            if event.events().intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                // Nobody reads it any more.
                self.end_feed(event.data());
            } else {
                self.feed(event.data());
            }
        }
        self.flush()
    }

    /// Reads a pipe once. Returns whether it may have more at once.
    fn take(&mut self, token: u64) -> bool {
        let Some(source) = self.sources.get_mut(&token) else { return false };
        match source.file.read(&mut self.buffer) {
            Ok(length @ 1..) => {
                let bytes = &self.buffer[..length];
                let content = match source.stream {
                    Stream::Output => Content::Output(bytes),
                    Stream::Error => Content::Error(bytes),
                };
                Frame { rank: source.rank, content }.append_to(&mut self.pending);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            // The end of a pipe; a terminal that nobody has open gives an error.
            Ok(_) | Err(_) => {
                if let Some(source) = self.sources.remove(&token) {
                    let _ = self.epoll.delete(&source.file);
                }
                false
            }
        }
    }

    /// Adds words to the standard error of a task, which has not ended.
    pub fn say(&mut self, rank: u32, text: &str) {
        Frame { rank, content: Content::Error(text.as_bytes()) }.append_to(&mut self.pending);
    }

    /// A task has ended: its remaining output comes before that.
    pub fn ended(&mut self, rank: u32, status: ExitStatus) {
        let of_task: Vec<u64> =
            self.sources.iter().filter(|(_, source)| source.rank == rank).map(|(token, _)| *token).collect();
        for token in of_task {
            let _ = (0..MAX_PIPE_READS).all(|_| self.take(token));
        }
        Frame { rank, content: Content::Ended(status) }.append_to(&mut self.pending);
    }

    /// Writes the pending output; what the disk does not take stays for later.
    pub fn flush(&mut self) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let mut done = 0;
        while done < self.pending.len() {
            match self.output.write(&self.pending[done..]) {
                Ok(length) => done += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.pending.drain(..done);
        self.disk_is_full = !self.pending.is_empty();
        self.written += done as u64;
        done > 0
    }

    /// Writes all pending output, however long the disk takes.
    pub fn close(&mut self) {
        while let Some(token) = self.sources.keys().next().copied() {
            let has_more = (0..MAX_PIPE_READS).all(|_| self.take(token));
            if has_more || self.sources.contains_key(&token) {
                self.sources.remove(&token);
            }
        }
        self.flush();
        while self.disk_is_full {
            std::thread::sleep(DISK_RETRY);
            self.flush();
        }
    }

    /// The client has all output before this offset.
    pub fn acknowledge(&mut self, offset: u64) {
        self.acknowledged = self.acknowledged.max(offset.min(self.written));
        let is_much = self.acknowledged - self.released >= RELEASE_BYTES;
        if is_much && self.folder.set_released(self.acknowledged).is_ok() {
            release(&self.output, self.released, self.acknowledged);
            self.released = self.acknowledged;
        }
    }

    /// The client's terminal has this size.
    pub fn resize(&self, size: TerminalSize) {
        if let Some(terminal) = &self.terminal {
            set_size(terminal, size);
        }
    }

    /// There may be more input.
    pub fn feed_all(&mut self) {
        for token in self.feeds.keys().copied().collect::<Vec<_>>() {
            self.feed(token);
        }
    }

    fn feed(&mut self, token: u64) {
        if !self.feeds.contains_key(&token) {
            return;
        }
        if self.input.is_none() {
            self.input = OpenOptions::new().read(true).write(true).open(self.folder.file(INPUT)).ok();
        }
        let is_whole = self.folder.file(INPUT_END).exists();
        let Some(feed) = self.feeds.get_mut(&token) else { return };
        let interest = match feed.pump(self.input.as_ref(), is_whole, &mut self.buffer) {
            Ok(Next::WhenWritable) => EpollFlags::EPOLLOUT,
            Ok(Next::WhenFed) => EpollFlags::empty(),
            Ok(Next::Done) | Err(_) => return self.end_feed(token),
        };
        // A descriptor in the set can always be changed.
        let _ = self.epoll.modify(feed.file(), &mut EpollEvent::new(interest, token));
        self.note_taken();
    }

    fn end_feed(&mut self, token: u64) {
        if let Some(feed) = self.feeds.remove(&token) {
            let _ = self.epoll.delete(feed.file());
            self.note_taken();
        }
    }

    /// Records how far the fastest and the slowest task have read, so that the executor accepts more.
    fn note_taken(&mut self) {
        let Some(input) = &self.input else { return };
        let length = input.metadata().map_or(0, |file| file.len());
        let positions = || self.feeds.values().map(Feed::position);
        let (slowest, fastest) = (positions().min().unwrap_or(length), positions().max().unwrap_or(length));
        let text = [fastest.to_le_bytes(), slowest.to_le_bytes()].concat();
        let taken =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.folder.file(INPUT_TAKEN));
        // If it cannot be written now, the next read of input tries again.
        drop(taken.and_then(|file| file.write_all_at(&text, 0)));
        if slowest - self.input_released >= RELEASE_BYTES {
            release(input, self.input_released, slowest);
            self.input_released = slowest;
        }
    }
}

/// Returns a part of a file that nobody reads any more to the disk; offsets stay the same. If the file system cannot do
/// that, the file keeps its size.
fn release(file: &File, from: u64, to: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (Ok(from), Ok(length)) = (i64::try_from(from), i64::try_from(to - from)) else { return };
    // SAFETY: the call has no effect on memory.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, from, length) };
}

/// Makes a terminal this large.
pub fn set_size(terminal: &File, size: TerminalSize) {
    let size = libc::winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel reads a structure of this type. A terminal that is gone needs no size.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
}

/// A pipe whose shim side does not wait: the reading side, then the writing side.
fn pipe(shim_reads: bool) -> Result<(File, File), Errno> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    fcntl(if shim_reads { &read } else { &write }, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((read.into(), write.into()))
}
