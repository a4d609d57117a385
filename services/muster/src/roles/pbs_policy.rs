//! The policy files of PBS in force, kept by the process with the gateway (PBS-C-14).

use crate::config::makes_way_in_vain;
use muster_client::{Client, ClientError, Endpoint, Moment};
use muster_pbs_commands::policy_folder::{LoadError, Loaded, PolicyFolder, Preset};
use std::{
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

/// How soon a new month, or what no event tells of, makes another policy.
const RENEW_EVERY: Duration = Duration::from_secs(60);
/// The events after which the policy is made again at once: it has the limits of server and queues, and facts about nodes.
const RENEWED_BY: [&str; 8] = [
    "config.changed",
    "cluster.settings_changed",
    "queue.set",
    "queue.removed",
    "licence.set",
    "node.added",
    "node.changed",
    "node.removed",
];
/// The pause before events are asked for again that did not come.
const LISTEN_AGAIN: Duration = Duration::from_secs(2);
/// The pause before a folder is tried again whose loading failed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The thread that follows a folder. It ends when this is dropped.
pub struct Follower {
    asks: Sender<Ask>,
}

/// A reason to look at the folder or the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// The files are to be read again.
    Reload,
    /// The configuration has changed.
    Renew,
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
        let (asks, requests) = channel();
        let client = || Client::new(Endpoint::Unix(socket.to_owned()));
        let folder = PolicyFolder::new(client(), folder).with_preset(preset).with_program_account(program_account);
        let (listener, mut client, told) = (client(), client(), asks.clone());
        std::thread::Builder::new().name("muster-pbs-events".into()).spawn(move || listen(listener, &told))?;
        let follow = move || follow(folder, &mut client, &requests);
        std::thread::Builder::new().name("muster-pbs-policy".into()).spawn(follow)?;
        Ok(Self { asks })
    }

    /// Reads the files again.
    pub fn reload(&self) {
        // The thread ends with the process only.
        let _ = self.asks.send(Ask::Reload);
    }
}

/// Asks for another policy whenever the configuration changes. Ends when nobody takes that any more.
fn listen(mut client: Client, told: &Sender<Ask>) {
    let kinds = RENEWED_BY.map(str::to_owned);
    loop {
        let Err(error) = heard(&mut client, &kinds, told) else { return };
        tracing::debug!(%error, "the events of the configuration are asked for again");
        std::thread::sleep(LISTEN_AGAIN);
    }
}

/// Passes on what is heard until nobody takes it.
fn heard(client: &mut Client, kinds: &[String], told: &Sender<Ask>) -> Result<(), ClientError> {
    let mut events = client.events(None, None, kinds)?;
    // It may have changed before the stream began.
    let mut is_taken = told.send(Ask::Renew).is_ok();
    while is_taken {
        events.next()?;
        is_taken = told.send(Ask::Renew).is_ok();
    }
    Ok(())
}

/// All that has been asked for by now is done at once: many changes make one policy.
fn gathered(first: Ask, requests: &Receiver<Ask>) -> Ask {
    requests.try_iter().fold(first, |all, ask| if all == Ask::Reload { all } else { ask })
}

fn follow(mut folder: PolicyFolder, client: &mut Client, requests: &Receiver<Ask>) {
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
        let asked = requests.recv_timeout(if is_loaded { RENEW_EVERY } else { RETRY_AFTER });
        match asked.map(|ask| gathered(ask, requests)) {
            Ok(Ask::Reload) => is_loaded = load(&mut folder, client),
            Ok(Ask::Renew) | Err(RecvTimeoutError::Timeout) if !is_loaded => is_loaded = load(&mut folder, client),
            Ok(Ask::Renew) | Err(RecvTimeoutError::Timeout) => match folder.renew() {
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

#[cfg(test)]
mod tests {
    use super::{Ask, RENEWED_BY, gathered};
    use std::sync::mpsc::channel;

    /// Many changes make one policy, and the files are read again if that was asked for among them.
    #[test]
    fn many_changes_make_one_policy() {
        let (asks, requests) = channel();
        [Ask::Renew, Ask::Renew].into_iter().for_each(|ask| asks.send(ask).unwrap());
        assert_eq!(gathered(Ask::Renew, &requests), Ask::Renew);
        [Ask::Reload, Ask::Renew].into_iter().for_each(|ask| asks.send(ask).unwrap());
        assert_eq!(gathered(Ask::Renew, &requests), Ask::Reload);
        assert!(requests.try_recv().is_err(), "all of them were taken");
    }

    /// Each event that makes another policy exists: the gateway refuses to send others.
    #[test]
    fn the_events_exist() {
        let all = muster_schemas::public::catalogue();
        for wanted in RENEWED_BY {
            assert!(all.iter().any(|event| format!("{}.{}", event.kind, event.verb) == wanted), "{wanted}");
        }
    }
}
