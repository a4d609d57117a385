//! Messages between executor and shims.

use crate::key::RunKey;
use muster_schemas::{codec, event::StopReason, steps::TerminalSize};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, Write as _},
    os::{
        fd::AsRawFd,
        unix::{
            fs::OpenOptionsExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    path::Path,
    time::{Duration, Instant},
};

/// How long to wait for a shim that has not kept up, and the pause between attempts.
const BUSY_SHIM: Duration = Duration::from_secs(1);
const BUSY_SHIM_RETRY: Duration = Duration::from_millis(5);
/// The longest message.
pub const MAX_MESSAGE_BYTES: usize = 256;

/// From the executor to the shim of a run or step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Control {
    /// Send this signal to all processes.
    Signal(u8),
    /// Stop all processes; the walltime is paused.
    Suspend,
    /// Let them continue.
    Resume,
    /// End it.
    Stop {
        /// Why.
        reason: StopReason,
        /// From SIGTERM to SIGKILL.
        grace_seconds: u32,
    },
    /// Its walltime, counted from its start; `None` means no limit.
    SetWalltime(Option<u64>),
    /// The client has all output before this offset.
    Acknowledged(u64),
    /// There is more input, or its end.
    Input,
    /// The client's terminal has this size.
    Resize(TerminalSize),
    /// Send this signal to the script itself, or to each task, but not to what these have started, nor to steps.
    SignalOwn(u8),
    /// There are more messages to the job.
    Notes,
    /// The fence that the tasks are in has an answer.
    Fence,
}

/// From a shim to the executor. A notice may be lost: the files hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The run or step.
    pub key: RunKey,
    /// The event.
    pub news: News,
}

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// All its processes have been started.
    Started,
    /// Its result is in the spool.
    Ended,
    /// There is more output in the spool.
    Output,
    /// Its tasks are in a fence.
    Fence,
    /// It was suspended and is to continue: why is in its folder.
    SuspensionUnwanted,
    /// Its processes were sent a signal, which is in its folder.
    Signalled,
}

/// The bytes of a message.
///
/// # Errors
/// Never for the messages of this module, which are small.
pub fn to_bytes<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    codec::encode(message).map_err(io::Error::other)
}

/// The message in bytes; `None` if there is none, which is ignored.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    codec::decode(bytes).ok()
}

/// A socket bound to a name in a folder, only for this user and root. An old one of that name is removed.
///
/// # Errors
/// If the folder refuses.
pub fn bind(folder: &Path, name: &str) -> io::Result<UnixDatagram> {
    match std::fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = through_folder(folder, name, UnixDatagram::bind_addr)?;
    std::fs::set_permissions(folder.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(socket)
}

/// The payloads that follow each other in bytes, without an incomplete one at the end.
pub fn frames(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = codec::HEADER_BYTES + u32::from_le_bytes(bytes.get(2..6)?.try_into().ok()?) as usize;
        let (frame, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        Some(frame)
    })
}

/// Writes a message into the pipe of a shim, whole or not at all.
///
/// # Errors
/// If no shim has it open, or the shim has not kept up.
pub fn write_to_pipe(pipe: &Path, control: &Control) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(pipe)?;
    // A pipe takes this much at once, so it is never cut.
    file.write_all(&to_bytes(control)?)
}

/// Writes a message that can be repeated into the pipe of a shim, and waits a moment for one that has not kept up. A shim
/// that is not there, or does not read, finds out later what it was to be told.
pub async fn write_to_busy_pipe(pipe: &Path, control: &Control) {
    let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    let deadline = Instant::now() + BUSY_SHIM;
    while write_to_pipe(pipe, control).is_err_and(|error| is_busy(&error)) && Instant::now() < deadline {
        tokio::time::sleep(BUSY_SHIM_RETRY).await;
    }
}

/// Sends a message to a socket of that name in a folder.
///
/// # Errors
/// If nobody listens there, or the listener has not kept up and the socket does not wait.
pub fn send<T: Serialize>(from: &UnixDatagram, folder: &Path, name: &str, message: &T) -> io::Result<()> {
    let bytes = to_bytes(message)?;
    through_folder(folder, name, |address| from.send_to_addr(&bytes, address).map(drop))
}

/// Socket addresses hold 107 bytes and paths of spools can be longer, so the folder is named by its descriptor.
fn through_folder<T>(folder: &Path, name: &str, act: impl Fn(&SocketAddr) -> io::Result<T>) -> io::Result<T> {
    let direct = folder.join(name);
    if let Ok(address) = SocketAddr::from_pathname(&direct) {
        return act(&address);
    }
    let folder = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(folder)?;
    act(&SocketAddr::from_pathname(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{PartId, RunId};

    #[test]
    fn messages_cross_folders_with_long_names() {
        let temporary = tempfile::tempdir().unwrap();
        let long = temporary.path().join("x".repeat(200));
        std::fs::create_dir(&long).unwrap();
        for folder in [temporary.path(), &long] {
            let receiver = bind(folder, "socket").unwrap();
            let receiver_again = bind(folder, "socket").unwrap();
            drop(receiver);
            let notice = Notice { key: RunKey::whole(PartId::new(RunId(3), 0)), news: News::Ended };
            send(&UnixDatagram::unbound().unwrap(), folder, "socket", &notice).unwrap();
            let mut buffer = [0; MAX_MESSAGE_BYTES];
            let length = receiver_again.recv(&mut buffer).unwrap();
            assert_eq!(from_bytes::<Notice>(&buffer[..length]), Some(notice));
        }
    }

    #[test]
    fn frames_end_where_one_is_not_whole() {
        let (one, two) = (to_bytes(&Control::Suspend).unwrap(), to_bytes(&Control::Signal(9)).unwrap());
        let mut bytes = [one.clone(), two.clone()].concat();
        assert_eq!(frames(&bytes).collect::<Vec<_>>(), [&one, &two]);
        bytes.pop();
        assert_eq!(frames(&bytes).collect::<Vec<_>>(), [&one]);
        assert_eq!(frames(&[]).count(), 0);
        assert_eq!(frames(&[255; 9]).count(), 0);
    }

    #[test]
    fn rubbish_is_no_message() {
        assert_eq!(from_bytes::<Control>(b"rubbish"), None);
    }
}
