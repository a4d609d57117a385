//! The file with quotas in force, kept by the process with the gateway (OAR-Q-11).

use muster_client::{Client, Endpoint};
use muster_oar_commands::quota_file::{self, LoadError};
use std::{
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

/// The pause before a file is tried again because the system did not answer.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The thread that loads a file. It ends when this is dropped.
pub struct Follower {
    reload: Sender<()>,
}

impl Follower {
    /// Puts the rules of a file in force, and again whenever that is asked for. A file with a mistake changes nothing.
    pub fn start(socket: &Path, file: PathBuf) -> std::io::Result<Self> {
        let (reload, requests) = channel();
        let client = Client::new(Endpoint::Unix(socket.to_owned()));
        std::thread::Builder::new().name("muster-quotas".into()).spawn(move || follow(client, &file, &requests))?;
        Ok(Self { reload })
    }

    /// Reads the file again.
    pub fn reload(&self) {
        // The thread ends with the process only.
        let _ = self.reload.send(());
    }
}

fn follow(mut client: Client, file: &Path, requests: &Receiver<()>) {
    loop {
        let request = match load(&mut client, file) {
            true => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => requests.recv_timeout(RETRY_AFTER),
        };
        if request == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Whether the file was read, with whatever result.
fn load(client: &mut Client, file: &Path) -> bool {
    let name = file.display();
    match quota_file::load(client, file) {
        Ok(true) => tracing::info!(file = %name, "the quotas of the file are in force"),
        Ok(false) => tracing::info!(file = %name, "the quotas of the file are in force already"),
        Err(LoadError::Broken(broken)) => {
            tracing::error!(file = %name, %broken, "the file of quotas has a mistake; the rules in force stay");
        }
        Err(LoadError::Client(error)) if error.is_refusal() => {
            tracing::error!(file = %name, %error, "the quotas were refused; the rules in force stay");
        }
        Err(LoadError::Client(error)) => {
            tracing::error!(file = %name, %error, "the quotas were not put in force; it is tried again");
            return false;
        }
    }
    true
}
