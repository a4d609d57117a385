//! The state of a supervisor.

use super::{folder::Folder, program::Program, trust::Programs};
use nix::sys::signalfd::SignalFd;
use std::{collections::VecDeque, os::unix::net::UnixStream};

pub(super) struct Supervisor {
    /// The runner's end closes when the call, or the supervisor, must end.
    pub runner: UnixStream,
    /// Becomes readable when a child ends.
    pub children: SignalFd,
    pub programs: Programs,
    pub persistent: Option<Persistent>,
    /// The folder of the last answered call, removed later so that it delays no answer.
    pub folder: Option<Folder>,
    /// Whether something of the last call could not be killed yet; nothing else is run meanwhile.
    pub stuck: bool,
}

/// A persistent program that has been loaded.
pub struct Persistent {
    pub program: Program,
    pub path: String,
    pub hash: Option<String>,
    pub unload: String,
    /// The ids of the lines that it answered last, oldest first.
    pub answered: VecDeque<String>,
    /// Its working folder, removed together with it.
    pub _home: Folder,
}
