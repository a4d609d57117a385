//! Signs the end of the log each second, on a separate thread: the decide loop is not involved. It also checks that the
//! log's files are still in their place.

use crate::{
    fence::{Fence, FenceError},
    log::Head,
    signing::Signer,
    storage::Storage,
    witness::End,
};
use muster_schemas::{event::uuid_bytes::UuidBytes, ids::Sequence};
use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::watch;

/// How often the end is signed, if it has moved.
const SIGN_EVERY: Duration = Duration::from_secs(1);

/// Everything needed to sign the end of a log.
pub(crate) struct Notary {
    pub(crate) storage: Arc<Storage>,
    pub(crate) signer: Arc<Signer>,
    pub(crate) cluster_id: UuidBytes,
    pub(crate) head: watch::Receiver<Head>,
    pub(crate) fence: Fence,
    /// The record that the witness names.
    pub(crate) witnessed: Sequence,
}

/// A running notary.
pub(crate) struct RunningNotary {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Notary {
    /// Runs until it is told to stop.
    pub(crate) fn start(mut self) -> io::Result<RunningNotary> {
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            let mut is_failing = false;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SIGN_EVERY) {
                self.look();
                let signed = self.sign();
                match &signed {
                    Err(error) if !is_failing => {
                        tracing::error!(%error, "the end of the log cannot be signed: loss or alteration there would go unnoticed");
                    }
                    Ok(()) if is_failing => tracing::info!("the end of the log is signed again"),
                    _ => {}
                }
                is_failing = signed.is_err();
            }
            self.close()
        };
        let thread = std::thread::Builder::new().name("muster-notary".to_owned()).spawn(run)?;
        Ok(RunningNotary { stop, thread })
    }

    fn look(&self) {
        if !self.storage.is_in_place() {
            let folder = self.storage.layout().log();
            self.fence.lose(FenceError::FolderGone { folder });
        }
    }

    fn sign(&mut self) -> io::Result<()> {
        let head = *self.head.borrow();
        if head.sequence > self.witnessed {
            self.storage.bear_witness(self.cluster_id, head, End::Open, &self.signer)?;
            self.witnessed = head.sequence;
        }
        Ok(())
    }

    /// Signs that the log ends here, unless the last write failed: then the end is not known for certain. Nothing is signed if the
    /// log was taken away.
    fn close(&mut self) -> io::Result<()> {
        if !self.storage.is_in_place() {
            return Err(io::Error::other("the log or its newest file was removed"));
        }
        let head = *self.head.borrow();
        let found = self.storage.log().and_then(|log| log.head());
        match found {
            Ok(found) if found.sequence == head.sequence && found.hash == head.hash => {
                self.storage.bear_witness(self.cluster_id, head, End::Closed, &self.signer)
            }
            _ => self.sign(),
        }
    }
}

impl RunningNotary {
    /// Signs the present end of the log and stops.
    pub(crate) async fn stop(self) -> io::Result<()> {
        let Self { stop, thread } = self;
        drop(stop);
        let ended = tokio::task::spawn_blocking(move || thread.join()).await;
        ended.map_err(io::Error::other)?.unwrap_or_else(|_| Err(io::Error::other("it ended early")))
    }
}
