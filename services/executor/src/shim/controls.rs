//! Orders to a shim from its pipe.

use crate::protocol::{self, Control};
use muster_schemas::event::StopReason;
use std::{
    fs::File,
    io::{self, Read as _},
};

/// The most orders that wait for the first process; more are dropped, except to end.
const MOST_EARLY: usize = 1_024;

/// Takes all orders that are in the pipe.
///
/// # Errors
/// If it cannot be read.
pub fn take(control: &mut File, mut obey: impl FnMut(Control)) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match control.read(&mut buffer) {
            Ok(length) => protocol::frames(&buffer[..length]).filter_map(protocol::from_bytes).for_each(&mut obey),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The pipe of a run that has no processes yet, and what came through it.
pub struct Early {
    /// The pipe.
    pub control: File,
    /// The orders that are to be obeyed once there are processes.
    pub controls: Vec<Control>,
    stopped: Option<StopReason>,
}

impl Early {
    /// Nothing was read yet.
    pub fn new(control: File) -> Self {
        Self { control, controls: Vec::new(), stopped: None }
    }

    /// Why the run is to end, if it is.
    pub fn stopped(&mut self) -> Option<StopReason> {
        let (controls, stopped) = (&mut self.controls, &mut self.stopped);
        let keep = |control| match control {
            Control::Stop { reason, .. } => *stopped = stopped.or(Some(reason)),
            control if controls.len() < MOST_EARLY && !controls.contains(&control) => controls.push(control),
            _ => {}
        };
        // A pipe that cannot be read ends the run later, once it is supervised.
        let _ = take(&mut self.control, keep);
        self.stopped
    }
}
