//! The policy files of PBS in force, kept by the process with the gateway (PBS-C-14).

use crate::config::makes_way_in_vain;
use muster_client::{Client, Endpoint, Moment};
use muster_pbs_commands::policy_folder::{LoadError, Loaded, PolicyFolder, Preset};
use std::{
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

/// How soon a changed configuration, or a new month, makes another policy.
const RENEW_EVERY: Duration = Duration::from_secs(60);
/// The pause before a folder is tried again whose loading failed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The thread that follows a folder. It ends when this is dropped.
pub struct Follower {
    reload: Sender<()>,
}

impl Follower {
    /// Puts the files of a folder in force, and follows it from then on. A failure is told in the log and tried again. The program
    /// that a preset asks runs as an account.
    pub fn start(
        socket: &Path,
        folder: PathBuf,
        preset: Option<Preset>,
        program_account: String,
    ) -> std::io::Result<Self> {
        let (reload, requests) = channel();
        let client = || Client::new(Endpoint::Unix(socket.to_owned()));
        let folder = PolicyFolder::new(client(), folder).with_preset(preset).with_program_account(program_account);
        let mut client = client();
        let follow = move || follow(folder, &mut client, &requests);
        std::thread::Builder::new().name("muster-pbs-policy".into()).spawn(follow)?;
        Ok(Self { reload })
    }

    /// Reads the files again.
    pub fn reload(&self) {
        // The thread ends with the process only.
        let _ = self.reload.send(());
    }
}

fn follow(mut folder: PolicyFolder, client: &mut Client, requests: &Receiver<()>) {
    let mut is_loaded = load(&mut folder, client);
    let mut is_begun = false;
    loop {
        if folder.is_in_force() && !is_begun {
            is_begun = begin(&mut folder);
        }
        match folder.warn_of_holidays() {
            Ok(warning) => {
                warning.iter().for_each(|warning| tracing::warn!(warning, "a policy file of PBS"));
            }
            Err(error) => tracing::error!(%error, "a warning about a policy file of PBS was not recorded"),
        }
        match requests.recv_timeout(if is_loaded { RENEW_EVERY } else { RETRY_AFTER }) {
            Ok(()) => is_loaded = load(&mut folder, client),
            Err(RecvTimeoutError::Timeout) if !is_loaded => is_loaded = load(&mut folder, client),
            Err(RecvTimeoutError::Timeout) => match folder.renew() {
                Ok(loaded) => loaded.iter().for_each(told),
                Err(error) => tracing::error!(%error, "the policy of PBS was not made again; the one in force stays"),
            },
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// What becomes of jobs that wait in batch queues when a preset begins. Whether that is settled.
fn begin(folder: &mut PolicyFolder) -> bool {
    match folder.restart_stranded() {
        Ok(failed) => {
            failed.iter().for_each(|why| tracing::warn!(why, "a job in a batch queue of PBS stays there"));
            true
        }
        Err(error) => {
            tracing::error!(%error, "jobs in batch queues of PBS were not all looked at; it is tried again");
            false
        }
    }
}

/// Whether the files were read, with whatever result.
fn load(folder: &mut PolicyFolder, client: &mut Client) -> bool {
    let done = folder.load().and_then(|loaded| {
        told(&loaded);
        match loaded {
            Loaded::InForce(_) => {
                warn_of_queues(client);
                Ok(())
            }
            Loaded::Refused(mistakes) => folder.start_nothing_without_policy(mistakes.len()),
        }
    });
    match done {
        Ok(()) => true,
        Err(error) => {
            tell(&error);
            if !matches!(error, LoadError::Client(_))
                && let Err(error) = folder.start_nothing_without_policy(1)
            {
                tell(&error);
            }
            false
        }
    }
}

/// Puts into the process's log which queues have a setting that has no effect under these files.
fn warn_of_queues(client: &mut Client) {
    match client.config(Moment::Now) {
        Ok(config) => makes_way_in_vain(&config.queues).for_each(|warning| tracing::warn!(warning, "a policy of PBS")),
        Err(error) => tracing::debug!(%error, "the queues were not looked at"),
    }
}

fn tell(error: &LoadError) {
    tracing::error!(%error, "the policy files of PBS were not put in force; it is tried again");
}

/// Puts into the process's log what became of the files.
fn told(loaded: &Loaded) {
    match loaded {
        Loaded::InForce(warnings) => {
            warnings.iter().for_each(|warning| tracing::warn!(warning, "a policy file of PBS"));
            tracing::info!("the policy files of PBS are in force");
        }
        Loaded::Refused(mistakes) => {
            mistakes.iter().for_each(|mistake| tracing::error!(mistake, "a policy file of PBS has a mistake"));
        }
    }
}
