//! Lines to and from a process, with deadlines and limits.

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::{read, write},
};
use std::{
    os::fd::{AsFd as _, OwnedFd},
    time::{Duration, Instant},
};

/// Bytes of one read.
const READ: usize = 64 << 10;

/// Why there is no line, or why one could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The time is over.
    TimeOver,
    /// The process closed the stream.
    Closed,
    /// A line is longer than the limit.
    TooLong,
}

/// Two streams.
#[derive(Debug)]
pub struct Duplex {
    to: OwnedFd,
    from: OwnedFd,
    read: Vec<u8>,
    /// Bytes at the beginning of `read` that were taken.
    taken: usize,
    /// Bytes behind them that have no end of a line.
    searched: usize,
    is_closed: bool,
    most_bytes: usize,
}

impl Duplex {
    /// Streams that carry lines of at most this many bytes from the process.
    ///
    /// # Errors
    /// The streams cannot be set up.
    pub fn new(to: OwnedFd, from: OwnedFd, most_bytes: usize) -> Result<Self, Errno> {
        for stream in [&to, &from] {
            let flags = OFlag::from_bits_truncate(fcntl(stream, FcntlArg::F_GETFL)?);
            fcntl(stream, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        }
        Ok(Self { to, from, read: Vec::new(), taken: 0, searched: 0, is_closed: false, most_bytes })
    }

    /// Sends a line. Meanwhile it reads what the process writes, which may come before the process reads on.
    ///
    /// # Errors
    /// The line could not be sent as a whole.
    pub fn send(&mut self, line: &str, deadline: Instant) -> Result<(), Broken> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match write(&self.to, rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => self.wait(PollFlags::POLLOUT, deadline)?,
                Err(_) => return Err(Broken::Closed),
            }
        }
        Ok(())
    }

    /// The next line.
    ///
    /// # Errors
    /// There is none.
    pub fn line(&mut self, deadline: Instant) -> Result<String, Broken> {
        loop {
            // Lines that are there already must not make a cycle endless.
            if Instant::now() >= deadline {
                return Err(Broken::TimeOver);
            }
            if let Some(line) = self.waiting()? {
                return Ok(line);
            }
            self.wait(PollFlags::empty(), deadline)?;
        }
    }

    /// A line that is there already.
    ///
    /// # Errors
    /// The process closed the stream, or its line is too long.
    pub fn waiting(&mut self) -> Result<Option<String>, Broken> {
        if let Some(line) = self.take_line()? {
            return Ok(Some(line));
        }
        self.fill()?;
        match self.take_line()? {
            None if self.is_closed => Err(Broken::Closed),
            line => Ok(line),
        }
    }

    fn take_line(&mut self) -> Result<Option<String>, Broken> {
        let rest = self.read.get(self.taken..).unwrap_or_default();
        let end = rest.iter().skip(self.searched).position(|byte| *byte == b'\n').map(|end| end + self.searched);
        let Some(end) = end else {
            self.searched = rest.len();
            return if rest.len() > self.most_bytes { Err(Broken::TooLong) } else { Ok(None) };
        };
        let line = rest.get(..end).unwrap_or_default();
        let taken = if line.len() > self.most_bytes { Err(Broken::TooLong) } else { Ok(Some(text(line))) };
        self.taken += end + 1;
        self.searched = 0;
        taken
    }

    fn is_full(&self) -> bool {
        self.is_closed || self.read.len() - self.taken > self.most_bytes
    }

    /// Reads what is there, up to a little more than one line may have.
    fn fill(&mut self) -> Result<(), Broken> {
        if self.taken > 0 {
            self.read.drain(..self.taken);
            self.taken = 0;
        }
        let mut buffer = vec![0; READ];
        while !self.is_full() {
            match read(&self.from, &mut buffer) {
                Ok(0) => self.is_closed = true,
                Ok(count) => self.read.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(_) => self.is_closed = true,
            }
        }
        Ok(())
    }

    /// Waits until something can be read, or written if that is wanted.
    fn wait(&mut self, wanted: PollFlags, deadline: Instant) -> Result<(), Broken> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Broken::TimeOver);
        }
        // Whole milliseconds, rounded up, or the last one would be spent in a loop.
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        let mut streams = Vec::with_capacity(2);
        if !wanted.is_empty() {
            streams.push(PollFd::new(self.to.as_fd(), wanted));
        }
        if !self.is_full() {
            streams.push(PollFd::new(self.from.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut streams, timeout) {
            Ok(0) => return Err(Broken::TimeOver),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Err(Broken::Closed),
        }
        drop(streams);
        self.fill()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
