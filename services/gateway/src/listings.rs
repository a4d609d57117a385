//! Lists of jobs are made on separate threads, so that submissions wait for none of them.
//!
//! Callers who ask for the same list while it waits for its turn share it: it is made after all of them have asked, and
//! so shows what each of them must see.

use crate::{budgets::Admission, error::ApiError};
use bytes::Bytes;
use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
};
use tokio::sync::oneshot;

/// The most threads that make lists.
const MAX_THREADS: usize = 4;
/// A tenth of the share of others on busy processors: on few processors submissions would otherwise wait for a list.
const NICENESS: i32 = 10;
/// Lists that nobody waits for any more are dropped when this many are noted.
const NOTED_LISTS: usize = 64;

type Rendered = Result<Bytes, ApiError>;
type Rendering = BoxFuture<'static, Rendered>;
type Work = Box<dyn FnOnce() + Send>;

/// Makes lists.
pub(crate) struct Listings {
    work: mpsc::Sender<Work>,
    waiting: Arc<Waiting>,
}

/// The lists that nobody has begun to make yet, by name.
#[derive(Default)]
struct Waiting(Mutex<HashMap<String, WeakShared<Rendering>>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, WeakShared<Rendering>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, what: &str) -> Option<Shared<Rendering>> {
        self.lock().get(what)?.upgrade()
    }
}

impl Listings {
    /// Half of the processors make lists.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start() -> std::io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).clamp(1, MAX_THREADS);
        let (work, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = queue.clone();
            std::thread::Builder::new().name("muster-lists".to_owned()).spawn(move || run(&queue))?;
        }
        Ok(Self { work, waiting: Arc::default() })
    }

    /// The list named `what`, made by `make` unless somebody else makes it. A caller has few lists made at a time.
    pub(crate) async fn get(
        &self,
        admission: &Admission,
        what: String,
        make: impl FnOnce() -> Rendered + Send + 'static,
    ) -> Rendered {
        if let Some(shared) = self.waiting.of(&what) {
            return shared.await;
        }
        let _turn = admission.list().await?;
        let shared = self.waiting.of(&what).unwrap_or_else(|| self.begin(what, make));
        shared.await
    }

    fn begin(&self, what: String, make: impl FnOnce() -> Rendered + Send + 'static) -> Shared<Rendering> {
        let (answer, made) = oneshot::channel();
        let (waiting, name) = (self.waiting.clone(), what.clone());
        let work: Work = Box::new(move || {
            // Callers who ask from here on must see what is answered from here on.
            waiting.lock().remove(&name);
            if !answer.is_closed() {
                // If it cannot be sent, nobody waits for it any more.
                let _ = answer.send(make());
            }
        });
        let stopping = || ApiError::unavailable("the gateway is stopping");
        let rendering: Rendering = async move { made.await.unwrap_or_else(|_| Err(stopping())) }.boxed();
        let shared = rendering.shared();
        let mut waiting = self.waiting.lock();
        if waiting.len() >= NOTED_LISTS {
            waiting.retain(|_, shared| shared.upgrade().is_some());
        }
        if let Some(weak) = shared.downgrade() {
            waiting.insert(what, weak);
        }
        // Noted before it can begin. If there are no threads any more, the answer reports that.
        let _ = self.work.send(work);
        shared
    }
}

/// Does the work that arrives, until no more can.
fn run(queue: &Mutex<mpsc::Receiver<Work>>) {
    // SAFETY: the call has no effect on memory; 0 is this thread. If it is refused, the work is only less considerate.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
    loop {
        let work = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match work {
            Ok(work) => work(),
            Err(mpsc::RecvError) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config,
        budgets::{Account, Budgets},
    };
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Callers who ask while a list waits share it; a caller who asks after it was begun gets another.
    #[tokio::test]
    async fn lists_that_have_not_begun_are_shared() {
        let listings = Arc::new(Listings::start().unwrap());
        let budgets = Budgets::new(&Config::default());
        let ada = budgets.admit(Account::User(4_000_001)).unwrap();
        let made = Arc::new(AtomicU32::new(0));
        // All threads are busy until the gate opens.
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).clamp(1, MAX_THREADS);
        let gate = Arc::new(std::sync::Barrier::new(threads + 1));
        for _ in 0..threads {
            let gate = gate.clone();
            listings
                .work
                .send(Box::new(move || {
                    gate.wait();
                }))
                .unwrap();
        }
        let list = || {
            let made = made.clone();
            let make = move || Ok(Bytes::from(made.fetch_add(1, Ordering::SeqCst).to_string()));
            listings.get(&ada, "/v1/jobs/all".to_owned(), make)
        };
        let mut asked = futures::future::join_all((0..10).map(|_| list()));
        assert!(futures::poll!(&mut asked).is_pending());
        std::thread::spawn(move || gate.wait()).join().unwrap();
        assert!(asked.await.iter().all(|list| *list == Ok(Bytes::from_static(b"0"))));
        assert_eq!(list().await, Ok(Bytes::from_static(b"1")));
        assert!(listings.waiting.lock().is_empty());
    }
}
