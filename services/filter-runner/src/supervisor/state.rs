//! What a supervisor has.

use super::{folder::Folder, program::Program, trust::Programs};
use nix::sys::signalfd::SignalFd;
use std::{collections::VecDeque, os::unix::net::UnixStream};

pub(super) struct Supervisor {
    /// The runner's end of it closes when the call, or all, is to end.
    pub runner: UnixStream,
    /// Becomes readable when a child ends.
    pub children: SignalFd,
    pub programs: Programs,
    pub persistent: Option<Persistent>,
    /// Of the call that has been answered last: removing it delays no answer.
    pub folder: Option<Folder>,
    /// Something of the last call could not be killed yet; nothing else is run beside it.
    pub stuck: bool,
}

/// A persistent program that has been loaded.
pub struct Persistent {
    pub program: Program,
    pub path: String,
    pub hash: Option<String>,
    pub unload: String,
    /// The ids of the last lines that it answered, the last one last.
    pub answered: VecDeque<String>,
    /// Its working folder; it goes with it.
    pub _home: Folder,
}
