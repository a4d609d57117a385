//! Lists of jobs are made on separate threads, so that submissions wait for none of them.
//!
//! Callers who ask for the same list while it waits for its turn share it: it is made after all of them have asked, and
//! so shows what each of them must see. A list that was just made rests in proportion to the time that it took. So however
//! many callers ask for a long list, making it takes a bounded share of one processor, and one who asks alone waits for
//! nothing.

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
use tokio::{sync::oneshot, time::Instant};

/// The most threads that make lists.
const MAX_THREADS: usize = 4;
/// A tenth of the share of others on busy processors: on few processors submissions would otherwise wait for a list.
const NICENESS: i32 = 10;
/// A list rests this many times as long as it took to make.
const RESTS_PER_LIST: u32 = 2;
/// Lists that nobody waits for any more, and rests that are over, are dropped when this many are noted.
const NOTED_LISTS: usize = 64;

type Rendered = Result<Bytes, ApiError>;
type Rendering = BoxFuture<'static, Rendered>;
type Work = Box<dyn FnOnce() + Send>;

/// Makes lists.
pub(crate) struct Listings {
    work: mpsc::Sender<Work>,
    waiting: Arc<Waiting>,
    resting: Arc<Resting>,
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

/// Until when lists rest, by name.
#[derive(Default)]
struct Resting(Mutex<HashMap<String, Instant>>);

impl Resting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self, what: &str) -> Option<Instant> {
        self.lock().get(what).copied()
    }

    /// A list was begun at `begun` and is made now.
    fn made(&self, what: String, begun: Instant) {
        let now = Instant::now();
        let mut resting = self.lock();
        if resting.len() >= NOTED_LISTS {
            resting.retain(|_, until| *until > now);
        }
        resting.insert(what, now + (now - begun) * RESTS_PER_LIST);
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
        Ok(Self { work, waiting: Arc::default(), resting: Arc::default() })
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
        let (waiting, resting, name) = (self.waiting.clone(), self.resting.clone(), what.clone());
        let work: Work = Box::new(move || {
            // Callers who ask from here on must see what is answered from here on.
            waiting.lock().remove(&name);
            if !answer.is_closed() {
                // If it cannot be sent, nobody waits for it any more.
                let begun = Instant::now();
                let _ = answer.send(make());
                resting.made(name, begun);
            }
        });
        let stopping = || ApiError::unavailable("the gateway is stopping");
        let (threads, rests_until) = (self.work.clone(), self.resting.until(&what));
        let rendering = async move {
            if let Some(until) = rests_until {
                tokio::time::sleep_until(until).await;
            }
            // If there are no threads any more, the answer reports that.
            let _ = threads.send(work);
            made.await.unwrap_or_else(|_| Err(stopping()))
        };
        let rendering: Rendering = rendering.boxed();
        let shared = rendering.shared();
        let mut waiting = self.waiting.lock();
        if waiting.len() >= NOTED_LISTS {
            waiting.retain(|_, shared| shared.upgrade().is_some());
        }
        if let Some(weak) = shared.downgrade() {
            waiting.insert(what, weak);
        }
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

    /// However many ask for a list that was just made, one is made for all of them, after a rest.
    #[tokio::test]
    async fn a_list_that_took_long_rests_before_it_is_made_again() {
        let listings = Listings::start().unwrap();
        let budgets = Budgets::new(&Config::default());
        let ada = budgets.admit(Account::User(4_000_001)).unwrap();
        let took = std::time::Duration::from_millis(100);
        let made = Arc::new(Mutex::new(Vec::new()));
        let list = || {
            let made = made.clone();
            let make = move || {
                let begun = Instant::now();
                std::thread::sleep(took);
                let mut made = made.lock().unwrap();
                made.push((begun, Instant::now()));
                Ok(Bytes::from(made.len().to_string()))
            };
            listings.get(&ada, "/v1/jobs/all".to_owned(), make)
        };
        assert_eq!(list().await, Ok(Bytes::from_static(b"1")));
        let asked = futures::future::join_all((0..10).map(|_| list())).await;
        assert!(asked.iter().all(|list| *list == Ok(Bytes::from_static(b"2"))), "{asked:?}");
        let made = made.lock().unwrap();
        assert!(made[1].0 - made[0].1 >= took * RESTS_PER_LIST, "{made:?}");
    }
}
