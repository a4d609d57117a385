//! The input of one task.

use nix::errno::Errno;
use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    rc::Rc,
};

/// What ends the input of a terminal (Control-D).
const END_OF_TRANSMISSION: [u8; 1] = [4];

/// How far a task has read the client's input.
pub struct Feed {
    file: Rc<File>,
    position: u64,
    is_terminal: bool,
    /// Whether the terminal was told that the input has ended.
    is_ended: bool,
}

/// When there is more to do.
pub enum Next {
    /// When the task has read something.
    WhenWritable,
    /// When the client has sent input.
    WhenFed,
    /// Never.
    Done,
}

impl Feed {
    /// Feeds a pipe, which is closed at the end.
    pub fn to_pipe(file: Rc<File>) -> Self {
        Self { file, position: 0, is_terminal: false, is_ended: false }
    }

    /// Feeds a terminal, which is told the end.
    pub fn to_terminal(file: Rc<File>) -> Self {
        Self { file, position: 0, is_terminal: true, is_ended: false }
    }

    /// The file that the task reads from, or the shim's side of it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The number of bytes of input that it has got.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Gives the task as much as it takes without waiting.
    ///
    /// # Errors
    /// The task has closed its input.
    pub fn pump(&mut self, input: Option<&File>, is_whole: bool, buffer: &mut [u8]) -> io::Result<Next> {
        loop {
            let length = match input {
                Some(input) => input.read_at(buffer, self.position)?,
                None => 0,
            };
            if length == 0 {
                return self.at_end(is_whole);
            }
            match (&*self.file).write(&buffer[..length]) {
                Ok(taken) => self.position += taken as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Next::WhenWritable),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn at_end(&mut self, is_whole: bool) -> io::Result<Next> {
        if !is_whole {
            return Ok(Next::WhenFed);
        }
        if !self.is_terminal {
            return Ok(Next::Done);
        }
        if !self.is_ended {
            match (&*self.file).write(&END_OF_TRANSMISSION) {
                Err(error) if error.raw_os_error() == Some(Errno::EAGAIN as i32) => return Ok(Next::WhenWritable),
                result => result?,
            };
            self.is_ended = true;
        }
        // The terminal stays open: its size can still change.
        Ok(Next::WhenFed)
    }
}
