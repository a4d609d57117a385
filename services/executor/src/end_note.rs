//! What a dialect says at the end of the output of a script that did not end by itself.

use muster_schemas::{event::StopReason, node::LaunchOrder, time::Timestamp};
use std::{io::Write, sync::OnceLock};

/// Why a script was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its walltime was over.
    Walltime,
    /// It was ordered, for this reason.
    Ordered(StopReason),
}

/// The line that a dialect has for it, with its end; `None` if it has none.
pub type EndNote = fn(&LaunchOrder, Ending, Timestamp) -> Option<String>;

static NOTE: OnceLock<EndNote> = OnceLock::new();

/// Lets a dialect say something at the end of scripts. The first call counts; it is for the beginning of a program, before
/// shims are served.
pub fn set_end_note(note: EndNote) {
    // A program says this once, where it is put together; what a second caller wants does not count.
    let _ = NOTE.set(note);
}

/// Says it. What cannot be written is left out: the end of the job does not depend on it.
pub(crate) fn write(order: &LaunchOrder, ending: Ending, output: &mut impl Write) {
    let note = NOTE.get().and_then(|note| note(order, ending, Timestamp::now()));
    if let Some(note) = note {
        let _ = output.write_all(note.as_bytes());
    }
}
