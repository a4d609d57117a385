//! Lists of jobs are made on separate threads, so that submissions wait for none of them.
//!
//! Callers who ask for the same list while it waits for its turn share it: it is made after all of them have asked, and
//! so shows what each of them must see. After a long list its thread rests, so that long lists take a fifth of each such thread's
//! time at most, and the more callers ask for a list meanwhile, the more share it.

use crate::{
    budgets::Admission,
    error::ApiError,
    packing::{Packed, ReadsGzip},
};
use axum::http::Uri;
use bytes::Bytes;
use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// The most threads that make lists.
const MAX_THREADS: usize = 4;
/// A tenth of the share of others on busy processors: on few processors submissions would otherwise wait for a list.
const NICENESS: i32 = 10;
/// After a list that took this much processor time or more its thread rests.
const LONG_LIST: Duration = Duration::from_millis(10);
/// A thread rests this many times as long as its list took.
const RESTS_PER_LIST: u32 = 4;
const MAX_REST: Duration = Duration::from_secs(2);
/// Lists that nobody waits for any more are dropped when this many are noted.
const NOTED_LISTS: usize = 64;

type Rendered = Result<Packed, ApiError>;
type Rendering = BoxFuture<'static, Rendered>;
type Work = Box<dyn FnOnce() + Send>;

/// Makes lists.
pub(crate) struct Listings {
    work: mpsc::Sender<Work>,
    waiting: Arc<Waiting>,
    /// How many were asked for.
    lists: AtomicU64,
}

/// The lists that nobody has begun to make yet, by name.
#[derive(Default)]
struct Waiting(Mutex<HashMap<String, Noted>>);

/// A list that waits. The number tells it from a later one of the same name, after everybody who waited for it has left.
struct Noted {
    number: u64,
    list: WeakShared<Rendering>,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Noted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, what: &str) -> Option<Shared<Rendering>> {
        self.lock().get(what)?.list.upgrade()
    }

    fn remove(&self, what: &str, number: u64) {
        let mut waiting = self.lock();
        if waiting.get(what).is_some_and(|noted| noted.number == number) {
            waiting.remove(what);
        }
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
        Ok(Self { work, waiting: Arc::default(), lists: AtomicU64::new(0) })
    }

    /// The list at an address, made by `make` unless somebody else makes it. A caller has few lists made at a time.
    pub(crate) async fn get(
        &self,
        admission: &Admission,
        address: &Uri,
        reads_gzip: ReadsGzip,
        make: impl FnOnce() -> Result<Bytes, ApiError> + Send + 'static,
    ) -> Rendered {
        let what = if reads_gzip.0 { format!("gzip {address}") } else { address.to_string() };
        let make = move || make().map(|list| Packed::of(list, reads_gzip));
        if let Some(shared) = self.waiting.of(&what) {
            return shared.await;
        }
        let _turn = admission.list().await?;
        let shared = self.waiting.of(&what).unwrap_or_else(|| self.begin(what, make));
        shared.await
    }

    fn begin(&self, what: String, make: impl FnOnce() -> Rendered + Send + 'static) -> Shared<Rendering> {
        let (answer, made) = oneshot::channel();
        let (waiting, name, number) = (self.waiting.clone(), what.clone(), self.lists.fetch_add(1, Ordering::Relaxed));
        let work: Work = Box::new(move || {
            // Callers who ask from here on must see what is answered from here on.
            waiting.remove(&name, number);
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
            waiting.retain(|_, noted| noted.list.upgrade().is_some());
        }
        if let Some(list) = shared.downgrade() {
            waiting.insert(what, Noted { number, list });
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
        let Ok(work) = work else { return };
        let before = processor_time();
        work();
        let rest = rest_after(processor_time().saturating_sub(before));
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
    }
}

/// How long a thread rests after a list that took this much processor time. It is not the time that passed: others who keep the
/// processors busy would make all lists late.
fn rest_after(list: Duration) -> Duration {
    if list < LONG_LIST { Duration::ZERO } else { (list * RESTS_PER_LIST).min(MAX_REST) }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config,
        budgets::{Account, Budgets},
    };
    use std::{sync::atomic::AtomicU32, time::Instant};

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
        let (address, reads_gzip) = (Uri::from_static("/v1/jobs/all"), ReadsGzip(false));
        let numbered = |number: &'static str| Ok(Packed::of(Bytes::from_static(number.as_bytes()), reads_gzip));
        let list = || {
            let made = made.clone();
            let make = move || Ok(Bytes::from(made.fetch_add(1, Ordering::SeqCst).to_string()));
            listings.get(&ada, &address, reads_gzip, make)
        };
        let mut asked = futures::future::join_all((0..10).map(|_| list()));
        assert!(futures::poll!(&mut asked).is_pending());
        std::thread::spawn(move || gate.wait()).join().unwrap();
        assert!(asked.await.iter().all(|list| *list == numbered("0")));
        assert_eq!(list().await, numbered("1"));
        assert!(listings.waiting.lock().is_empty());
    }

    /// Work that everybody has given up leaves the list that was asked for after it alone.
    #[test]
    fn a_list_that_was_given_up_does_not_take_a_later_one_of_its_name_away() {
        let waiting = Waiting::default();
        let rendering: Rendering = futures::future::pending().boxed();
        let list = rendering.shared();
        waiting.lock().insert("all".to_owned(), Noted { number: 2, list: list.downgrade().unwrap() });
        waiting.remove("all", 1);
        assert!(waiting.of("all").is_some());
        waiting.remove("all", 2);
        assert!(waiting.of("all").is_none());
    }

    #[test]
    fn a_thread_rests_after_a_long_list_and_never_for_long() {
        let rests = [9, 10, 100, 5_000].map(|list| rest_after(Duration::from_millis(list)).as_millis());
        assert_eq!(rests, [0, 40, 400, 2_000]);
    }

    /// The next list is begun after the rest.
    #[test]
    fn long_lists_take_a_fifth_of_a_threads_time_at_most() {
        let (work, queue) = mpsc::channel::<Work>();
        let (told, times) = mpsc::channel();
        for _ in 0..2 {
            let told = told.clone();
            let list = move || {
                let (begun, before) = (Instant::now(), processor_time());
                while processor_time() - before < LONG_LIST * 2 {}
                told.send((begun, Instant::now())).unwrap();
            };
            work.send(Box::new(list)).unwrap();
        }
        drop(work);
        std::thread::spawn(move || run(&Mutex::new(queue))).join().unwrap();
        let [first, second] = [times.recv().unwrap(), times.recv().unwrap()];
        assert!(second.0 - first.1 >= LONG_LIST * 2 * RESTS_PER_LIST, "{:?}", second.0 - first.1);
    }
}
