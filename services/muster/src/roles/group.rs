//! The roles that run in this process: started one by one, stopped with the ledger last.

use anyhow::{Context as _, anyhow, bail};
use std::{future::Future, time::Duration};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

/// Roles that take longer to stop are abandoned.
const STOP_WITHIN: Duration = Duration::from_secs(20);

/// A role that was started and may not be ready yet.
pub struct Started {
    name: String,
    ready: oneshot::Receiver<()>,
}

/// The ledger, which the others need until they have ended.
struct Ledger {
    task: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
}

/// The roles of this process.
#[derive(Default)]
pub struct Group {
    ledger: Option<Ledger>,
    workers: JoinSet<(String, anyhow::Result<()>)>,
    stop_workers: CancellationToken,
}

impl Group {
    /// Whether the ledger is one of them.
    pub fn has_ledger(&self) -> bool {
        self.ledger.is_some()
    }

    /// Starts the ledger and waits until it is ready.
    pub async fn start_ledger<F>(
        &mut self,
        serve: impl FnOnce(oneshot::Sender<()>, CancellationToken) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let (sender, ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let mut task = tokio::spawn(serve(sender, stop.clone()));
        if ready.await.is_err() {
            (&mut task).await.context("the ledger failed")??;
            bail!("the ledger ended before it was ready");
        }
        self.ledger = Some(Ledger { task, stop });
        Ok(())
    }

    /// Starts a role and waits until it is ready.
    pub async fn start<F>(
        &mut self,
        name: &str,
        serve: impl FnOnce(oneshot::Sender<()>, CancellationToken) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let started = self.spawn(name.to_owned(), serve);
        self.wait_until_ready(started).await
    }

    /// Starts a role.
    pub fn spawn<F>(&mut self, name: String, serve: impl FnOnce(oneshot::Sender<()>, CancellationToken) -> F) -> Started
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let (sender, ready) = oneshot::channel();
        let role = serve(sender, self.stop_workers.clone());
        let task_name = name.clone();
        self.workers.spawn(async move { (task_name, role.await) });
        Started { name, ready }
    }

    /// Waits until a role is ready.
    pub async fn wait_until_ready(&mut self, started: Started) -> anyhow::Result<()> {
        if started.ready.await.is_ok() {
            return Ok(());
        }
        // It ended before it was ready; its result is in the set, perhaps behind that of another role.
        Err(self.next_failure().await.unwrap_or_else(|| anyhow!("the {} ended before it was ready", started.name)))
    }

    /// Waits until a role fails or ends by itself.
    pub async fn failure(&mut self) -> anyhow::Error {
        let Some(ledger) = &mut self.ledger else {
            return match self.next_failure().await {
                Some(failure) => failure,
                None => std::future::pending().await,
            };
        };
        let workers = &mut self.workers;
        let failure = tokio::select! {
            ended = &mut ledger.task => described("ledger", ended.map_err(Into::into).flatten()),
            Some(ended) = workers.join_next() => worker_failure(ended),
        };
        if ledger.task.is_finished() {
            self.ledger = None;
        }
        failure
    }

    async fn next_failure(&mut self) -> Option<anyhow::Error> {
        Some(worker_failure(self.workers.join_next().await?))
    }

    /// Stops the roles, the ledger last: it signs what the others have done.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.stop_workers.cancel();
        let mut result = Ok(());
        let ended = tokio::time::timeout(STOP_WITHIN, async {
            while let Some(ended) = self.workers.join_next().await {
                if let (name, Err(error)) = ended? {
                    result = Err(error.context(format!("the {name} did not stop cleanly")));
                }
            }
            Ok::<(), anyhow::Error>(())
        });
        if ended.await.is_err() {
            tracing::warn!("some roles did not stop in time and were abandoned");
            self.workers.abort_all();
        }
        let Some(Ledger { task, stop }) = self.ledger.take() else { return result };
        stop.cancel();
        let stopped = tokio::time::timeout(STOP_WITHIN, task).await.context("the ledger did not stop in time")?;
        stopped.context("the ledger failed")?.context("the ledger did not stop cleanly")?;
        result
    }
}

/// Runs a role on a thread of its own, so that its computations do not delay requests on the other threads.
///
/// # Errors
/// The role fails, or no thread can be started.
pub async fn on_own_thread<F>(name: &str, role: F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let (sender, ended) = oneshot::channel();
    let run = move || {
        // Created and dropped on this thread: a runtime cannot be dropped on a thread that runs tasks.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result = runtime.map_err(anyhow::Error::new).and_then(|runtime| runtime.block_on(role));
        // Nobody listens any more once the process stops.
        let _ = sender.send(result);
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    ended.await.context("its thread ended")?
}

fn worker_failure(ended: Result<(String, anyhow::Result<()>), tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok((name, result)) => described(&name, result),
        Err(error) => anyhow::Error::new(error).context("a role failed"),
    }
}

fn described(name: &str, result: anyhow::Result<()>) -> anyhow::Error {
    match result {
        Ok(()) => anyhow!("the {name} ended unexpectedly"),
        Err(error) => error.context(format!("the {name} failed")),
    }
}
