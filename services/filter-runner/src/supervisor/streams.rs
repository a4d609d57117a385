//! The supervisor's ends of a program's standard streams: bounded and non-blocking.

use crate::call::{Captured, MAX_OUTPUT_BYTES};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
};

/// Reads what a program writes. The beginning is kept, the rest is read and dropped, so that the program does not
/// block.
#[derive(Debug)]
pub struct Intake {
    pub pipe: Option<File>,
    kept: Vec<u8>,
    truncated: bool,
}

impl Intake {
    pub fn new(pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self { pipe: Some(nonblocking(pipe)?), kept: Vec::new(), truncated: false })
    }

    /// Reads once; returns whether there may be more.
    pub fn pump(&mut self) -> bool {
        let mut chunk = [0; 16 << 10];
        let Some(pipe) = &mut self.pipe else { return false };
        match pipe.read(&mut chunk) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                let room = MAX_OUTPUT_BYTES - self.kept.len();
                self.kept.extend_from_slice(&chunk[..count.min(room)]);
                self.truncated |= count > room;
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.pipe = None,
        }
        false
    }

    /// Reads what is there, up to the size of the largest pipe: somebody may still be writing.
    pub fn drain(&mut self) {
        const LARGEST_PIPE_IN_CHUNKS: u32 = 64;
        for _ in 0..LARGEST_PIPE_IN_CHUNKS {
            if !self.pump() {
                return;
            }
        }
    }

    /// The output since the last call of this, as far as it was kept.
    pub fn take(&mut self) -> Captured {
        let truncated = std::mem::take(&mut self.truncated);
        Captured { bytes: std::mem::take(&mut self.kept).into(), truncated }
    }

    /// The next line, without its end; `None` while it is incomplete.
    pub fn line(&mut self) -> Option<Result<Vec<u8>, &'static str>> {
        if let Some(end) = self.kept.iter().position(|byte| *byte == b'\n') {
            let rest = self.kept.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.kept, rest);
            line.pop();
            return Some(Ok(line));
        }
        if self.kept.len() >= MAX_OUTPUT_BYTES {
            return Some(Err("it wrote a line that is too long"));
        }
        self.pipe.is_none().then_some(Err("it closed its standard output"))
    }

    /// Whether [`Self::line`] has something.
    pub fn has_line(&self) -> bool {
        self.pipe.is_none() || self.kept.len() >= MAX_OUTPUT_BYTES || self.kept.contains(&b'\n')
    }
}

/// Feeds a program its input, as fast as it reads.
#[derive(Debug)]
pub struct Feed {
    pipe: Option<File>,
    pending: Vec<u8>,
    last: bool,
}

impl Feed {
    /// `None` is for a program that reads nothing.
    pub fn new(pipe: Option<OwnedFd>) -> io::Result<Self> {
        Ok(Self { pipe: pipe.map(nonblocking).transpose()?, pending: Vec::new(), last: false })
    }

    pub fn push_line(&mut self, line: &str) {
        self.pending.extend_from_slice(line.as_bytes());
        self.pending.push(b'\n');
        self.pump();
    }

    /// Marks the end of the input: after what is pending, the program reads the end.
    pub fn finish(&mut self) {
        self.last = true;
        self.pump();
    }

    /// The file that must become writable before [`Self::pump`] can proceed.
    pub fn waits_for(&self) -> Option<&File> {
        self.pipe.as_ref().filter(|_| !self.pending.is_empty())
    }

    pub fn pump(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.pending) {
            Ok(count) => drop(self.pending.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The program stopped reading; that shows in the missing answer.
            Err(_) => self.pipe = None,
        }
        if self.last && self.pending.is_empty() {
            self.pipe = None;
        }
    }
}

fn nonblocking(pipe: OwnedFd) -> io::Result<File> {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(pipe.into())
}
