//! Limits on the connections and bytes of the gateway in use at a time, for each caller and for all of them together.
//!
//! The gateway shares its process with the ledger and an executor, so nobody may take all memory or all open files.

use crate::{Config, error::ApiError};
use axum::{extract::FromRequestParts, http::request::Parts};
use nix::sys::resource::{Resource, getrlimit};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The default maximum of connections, however many files may be open.
const MAX_CONNECTIONS: u64 = 8_192;
/// The default minimum of connections, however few files may be open.
const MIN_CONNECTIONS: u64 = 16;
/// Connections reserved for root and the user of the gateway, so that they always get in.
const RESERVED_CONNECTIONS: u32 = 8;
/// The default share of one caller: all connections divided by this.
const CALLERS_PART: u32 = 8;
/// Bodies of at most this many bytes can use all bytes in flight; larger ones leave them an eighth.
pub(crate) const LARGE_BODY_BYTES: u64 = 1 << 20;
/// The most lists of a caller that are being made or wait at a time.
const LISTS_PER_CALLER: usize = 2;
/// The most parts of the past that are turned into events for a caller at a time without counting as the caller's
/// bytes.
const PAST_PARTS_PER_CALLER: usize = 2;
/// The most connections that follow events. Those of root and the user of the gateway do not count.
const FOLLOWERS: u32 = 512;
/// The same for one caller.
const FOLLOWERS_PER_CALLER: u32 = 64;
/// The most large bodies of all callers that are read at a time; each caller can have one.
const LARGE_BODIES: usize = 8;
/// Wrong tokens of an address without a penalty.
const FREE_GUESSES: u32 = 4;
/// The penalty for the next wrong token; it doubles for each further one.
const FIRST_PENALTY: Duration = Duration::from_millis(250);
const MAX_PENALTY: Duration = Duration::from_secs(8);
/// An address without wrong tokens for this long starts again.
const GUESSES_FORGOTTEN: Duration = Duration::from_secs(120);
/// The most addresses whose wrong tokens are remembered.
const MAX_GUESSERS: usize = 10_000;

/// The caller that a budget belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    /// A user, by the kernel's word or by a token.
    User(u32),
    /// An address that has not shown a token yet. For IPv6 it is the network: one host can have all its addresses.
    Address(IpAddr),
    /// The kernel does not say.
    Unknown,
    /// The agent of a node, by a hash of the node's name.
    Agent([u8; 16]),
}

impl Account {
    /// The account of callers who have not shown a token yet.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
            address => address,
        })
    }

    /// Whether the caller runs the system, and so has reserved connections.
    fn is_own(self) -> bool {
        matches!(self, Self::User(uid) if uid == 0 || uid == nix::unistd::geteuid().as_raw())
    }
}

/// The maximum amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    connections: u32,
    connections_per_caller: u32,
    bytes: u64,
    bytes_per_caller: u64,
}

impl Limits {
    fn of(config: &Config, open_files: u64) -> Self {
        let connections = config.max_connections.unwrap_or_else(|| {
            // The other half is for the log, spools and the bus.
            let allowed = (open_files / 2).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
            u32::try_from(allowed).unwrap_or(u32::MAX)
        });
        let part = || (connections / CALLERS_PART).max(1);
        Self {
            connections,
            connections_per_caller: config.max_connections_per_caller.unwrap_or_else(part),
            bytes: config.max_bytes_in_flight as u64,
            bytes_per_caller: config.max_bytes_in_flight_per_caller as u64,
        }
    }
}

/// The budgets of a gateway. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Budgets(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    used: Mutex<Used>,
    /// Taken while a large body is sent.
    large_bodies: Arc<Semaphore>,
    guesses: Mutex<HashMap<Account, Guesses>>,
}

/// The amounts in use.
#[derive(Debug, Default)]
struct Used {
    connections: u32,
    bytes: u64,
    /// Connections that follow events, except those of root and the user of the gateway.
    followers: u32,
    callers: HashMap<Account, OfCaller>,
}

/// The amounts that one caller uses.
#[derive(Debug)]
struct OfCaller {
    connections: u32,
    bytes: u64,
    /// The number of answers on their way.
    answers: u32,
    /// Connections that follow events.
    followers: u32,
    /// Taken for a large body.
    large_body: Arc<Semaphore>,
    /// Taken for a list.
    lists: Arc<Semaphore>,
    /// Taken for a part of the past.
    past_parts: Arc<Semaphore>,
}

impl Default for OfCaller {
    fn default() -> Self {
        Self {
            connections: 0,
            bytes: 0,
            answers: 0,
            followers: 0,
            large_body: Arc::new(Semaphore::new(1)),
            lists: Arc::new(Semaphore::new(LISTS_PER_CALLER)),
            past_parts: Arc::new(Semaphore::new(PAST_PARTS_PER_CALLER)),
        }
    }
}

impl OfCaller {
    fn is_idle(&self) -> bool {
        self.connections == 0 && self.bytes == 0 && self.followers == 0
    }
}

/// The wrong tokens of an address.
#[derive(Clone, Copy, Debug)]
struct Guesses {
    count: u32,
    last: Instant,
}

impl Budgets {
    /// Budgets as configured, or as the limit on open files allows.
    pub(crate) fn new(config: &Config) -> Self {
        // The kernel always tells; if it did not, no open file would count as allowed.
        let open_files = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
        Self::with(Limits::of(config, open_files))
    }

    fn with(limits: Limits) -> Self {
        Self(Arc::new(Shared {
            limits,
            used: Mutex::default(),
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)),
            guesses: Mutex::default(),
        }))
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, or reports why not. It counts until it is dropped.
    pub(crate) fn admit(&self, account: Account) -> Result<Arc<Admission>, ApiError> {
        let mut used = self.used();
        let limits = self.0.limits;
        let reserved = if account.is_own() { 0 } else { RESERVED_CONNECTIONS.min(limits.connections / 2) };
        if used.connections >= limits.connections - reserved {
            return Err(busy(format!("the gateway has {} connections, as many as it takes", used.connections)));
        }
        self.enter(&mut used, account)?;
        used.connections += 1;
        Ok(Arc::new(Admission { budgets: self.clone(), account: Mutex::new(account) }))
    }

    /// Counts a connection for a caller.
    fn enter(&self, used: &mut Used, account: Account) -> Result<(), ApiError> {
        let most = self.0.limits.connections_per_caller;
        let of_caller = used.callers.entry(account).or_default();
        if of_caller.connections >= most && !account.is_own() {
            return Err(busy(format!("you have {most} connections to the gateway, as many as one caller may have")));
        }
        of_caller.connections += 1;
        Ok(())
    }

    fn leave(used: &mut Used, account: Account) {
        if let Some(of_caller) = used.callers.get_mut(&account) {
            of_caller.connections = of_caller.connections.saturating_sub(1);
            if of_caller.is_idle() {
                used.callers.remove(&account);
            }
        }
    }

    /// The number of connections.
    #[cfg(test)]
    fn connections(&self) -> u32 {
        self.used().connections
    }

    /// The number of bytes that count.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.used().bytes
    }

    /// How long an address waits for the answer to a wrong token. This counts the token.
    pub(crate) fn guess_penalty(&self, account: Account) -> Duration {
        let mut guesses = self.0.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |guesses: &Guesses| guesses.last.elapsed() < GUESSES_FORGOTTEN;
        if guesses.len() >= MAX_GUESSERS {
            guesses.retain(|_, guesses| is_recent(guesses));
        }
        if guesses.len() >= MAX_GUESSERS && !guesses.contains_key(&account) {
            return MAX_PENALTY;
        }
        let now = Instant::now();
        let of_address = guesses.entry(account).or_insert(Guesses { count: 0, last: now });
        if !is_recent(of_address) {
            of_address.count = 0;
        }
        *of_address = Guesses { count: of_address.count.saturating_add(1), last: now };
        penalty(of_address.count)
    }
}

fn penalty(count: u32) -> Duration {
    match count.checked_sub(FREE_GUESSES + 1) {
        None => Duration::ZERO,
        Some(doublings) => FIRST_PENALTY.saturating_mul(1 << doublings.min(16)).min(MAX_PENALTY),
    }
}

/// An admitted connection.
#[derive(Debug)]
pub(crate) struct Admission {
    budgets: Budgets,
    account: Mutex<Account>,
}

impl Admission {
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns the connection to this user, whose token was shown.
    pub(crate) fn belongs_to(&self, uid: u32) -> Result<(), ApiError> {
        self.belongs_to_account(Account::User(uid))
    }

    /// Assigns the connection to the agent of this node, whose token was shown.
    pub(crate) fn belongs_to_agent(&self, node: &str) -> Result<(), ApiError> {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(node.as_bytes()).as_bytes()[..16]);
        self.belongs_to_account(Account::Agent(key))
    }

    fn belongs_to_account(&self, user: Account) -> Result<(), ApiError> {
        let mut account = self.account();
        if *account == user {
            return Ok(());
        }
        let mut used = self.budgets.used();
        self.budgets.enter(&mut used, user)?;
        Budgets::leave(&mut used, *account);
        *account = user;
        Ok(())
    }

    /// Room for this many bytes of a request, which counts until it is dropped.
    pub(crate) fn hold(&self, bytes: u64) -> Result<HeldBytes, ApiError> {
        let account = *self.account();
        let budgets = &self.budgets;
        let limits = budgets.0.limits;
        let mut used = budgets.used();
        let of_caller = used.callers.get(&account).map_or(0, |of_caller| of_caller.bytes);
        if of_caller.saturating_add(bytes) > limits.bytes_per_caller {
            let most = limits.bytes_per_caller;
            return Err(busy(format!("your requests take {of_caller} bytes at a time, and {most} are the most")));
        }
        let most = if bytes > LARGE_BODY_BYTES { limits.bytes / 8 * 7 } else { limits.bytes };
        if used.bytes.saturating_add(bytes) > most {
            return Err(busy("the requests of all callers take as many bytes as the gateway allows at a time"));
        }
        Ok(HeldBytes::take(budgets, &mut used, account, bytes, false))
    }

    /// Room for an answer. A caller who has received all earlier answers can have one of any size.
    pub(crate) fn hold_answer(&self, bytes: u64) -> Result<HeldBytes, ApiError> {
        let account = *self.account();
        let budgets = &self.budgets;
        let mut used = budgets.used();
        let (held, answers) = used.callers.get(&account).map_or((0, 0), |caller| (caller.bytes, caller.answers));
        let most = budgets.0.limits.bytes_per_caller;
        if answers > 0 && held.saturating_add(bytes) > most {
            return Err(busy(format!(
                "{answers} answers for you are not taken in yet, {held} bytes; {most} are the most"
            )));
        }
        Ok(HeldBytes::take(budgets, &mut used, account, bytes, true))
    }

    /// Waits for a turn to have a list made.
    pub(crate) async fn list(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let account = *self.account();
        let lists = self.budgets.used().callers.entry(account).or_default().lists.clone();
        lists.acquire_owned().await.map_err(|_| busy("the gateway is stopping"))
    }

    /// Lets the connection follow events, or reports why not. It counts until it is dropped.
    pub(crate) fn follow(&self) -> Result<Following, ApiError> {
        let account = *self.account();
        let mut used = self.budgets.used();
        let of_caller = used.callers.get(&account).map_or(0, |of_caller| of_caller.followers);
        if !account.is_own() {
            if of_caller >= FOLLOWERS_PER_CALLER {
                return Err(busy(format!(
                    "{of_caller} connections of yours follow events, as many as one caller may have"
                )));
            }
            if used.followers >= FOLLOWERS {
                return Err(busy(format!("{FOLLOWERS} connections follow events, as many as the gateway allows")));
            }
            used.followers += 1;
        }
        used.callers.entry(account).or_default().followers += 1;
        Ok(Following { budgets: self.budgets.clone(), account })
    }

    /// Waits for a turn to have a part of the past turned into events.
    pub(crate) async fn past_part(&self) -> Result<PastPart, ApiError> {
        let account = *self.account();
        let parts = self.budgets.used().callers.entry(account).or_default().past_parts.clone();
        parts.acquire_owned().await.map(PastPart::Turn).map_err(|_| busy("the gateway is stopping"))
    }

    /// Counts a finished part of the past and so releases its turn; if there is no room for it, the part keeps its
    /// turn.
    pub(crate) fn count_past_part(&self, turn: PastPart, bytes: u64) -> PastPart {
        self.hold(bytes).map_or(turn, PastPart::Counted)
    }

    /// Waits for a turn to send a large body.
    pub(crate) async fn large_body(&self, patience: Duration) -> Result<LargeBody, ApiError> {
        let account = *self.account();
        let own = self.budgets.used().callers.entry(account).or_default().large_body.clone();
        let shared = self.budgets.0.large_bodies.clone();
        let turn = async { (own.acquire_owned().await, shared.acquire_owned().await) };
        match tokio::time::timeout(patience, turn).await {
            Ok((Ok(own), Ok(shared))) => Ok(LargeBody { _turns: [own, shared] }),
            _ => Err(busy("too many large requests are on their way")),
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let account = *self.account();
        let mut used = self.budgets.used();
        used.connections = used.connections.saturating_sub(1);
        Budgets::leave(&mut used, account);
    }
}

/// The connection of a request.
pub(crate) struct Admitted(pub(crate) Arc<Admission>);

impl<S: Sync> FromRequestParts<S> for Admitted {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let admission = parts.extensions.get::<Arc<Admission>>().cloned();
        admission.map(Self).ok_or_else(|| ApiError::unavailable("the caller is unknown"))
    }
}

/// The part of the budget that an answer about the past holds until it has been sent.
#[derive(Debug)]
#[expect(dead_code, reason = "they are held, not looked at")]
pub(crate) enum PastPart {
    /// One of the caller's few turns.
    Turn(OwnedSemaphorePermit),
    /// Some of the caller's bytes.
    Counted(HeldBytes),
}

/// A connection that follows events.
#[derive(Debug)]
pub(crate) struct Following {
    budgets: Budgets,
    account: Account,
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut used = self.budgets.used();
        if !self.account.is_own() {
            used.followers = used.followers.saturating_sub(1);
        }
        if let Some(of_caller) = used.callers.get_mut(&self.account) {
            of_caller.followers = of_caller.followers.saturating_sub(1);
            if of_caller.is_idle() {
                used.callers.remove(&self.account);
            }
        }
    }
}

/// The turn to send a large body.
#[derive(Debug)]
pub(crate) struct LargeBody {
    _turns: [OwnedSemaphorePermit; 2],
}

/// Bytes that count in the budget of a caller.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budgets: Budgets,
    account: Account,
    bytes: u64,
    is_answer: bool,
}

impl HeldBytes {
    fn take(budgets: &Budgets, used: &mut Used, account: Account, bytes: u64, is_answer: bool) -> Self {
        used.bytes += bytes;
        let of_caller = used.callers.entry(account).or_default();
        of_caller.bytes += bytes;
        of_caller.answers += u32::from(is_answer);
        Self { budgets: budgets.clone(), account, bytes, is_answer }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut used = self.budgets.used();
        used.bytes = used.bytes.saturating_sub(self.bytes);
        if let Some(of_caller) = used.callers.get_mut(&self.account) {
            of_caller.bytes = of_caller.bytes.saturating_sub(self.bytes);
            of_caller.answers = of_caller.answers.saturating_sub(u32::from(self.is_answer));
            if of_caller.is_idle() {
                used.callers.remove(&self.account);
            }
        }
    }
}

/// The budget that a request holds until it is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holdings(Arc<Mutex<Vec<Holding>>>);

/// A part of a budget.
#[derive(Debug)]
pub(crate) enum Holding {
    /// A hold on bytes.
    Bytes { _held: HeldBytes },
    /// A turn for a large body.
    Turn { _turn: LargeBody },
}

impl Holdings {
    /// Adds a holding.
    pub(crate) fn keep(&self, holding: Holding) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(holding);
    }
}

/// Nothing was done, and the same may succeed later.
fn busy(message: impl Into<String>) -> ApiError {
    ApiError::unavailable(format!("{}; nothing was done, try again later", message.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Account = Account::User(4_000_001);
    const BOB: Account = Account::User(4_000_002);

    fn budgets(connections: u32, per_caller: u32) -> Budgets {
        let (bytes, bytes_per_caller) = (64 << 20, 16 << 20);
        Budgets::with(Limits { connections, connections_per_caller: per_caller, bytes, bytes_per_caller })
    }

    #[test]
    fn a_caller_takes_no_more_than_his_part_of_the_connections() {
        let budgets = budgets(32, 3);
        let held: Vec<_> = (0..3).map(|_| budgets.admit(ADA).unwrap()).collect();
        assert!(budgets.admit(ADA).is_err());
        assert!(budgets.admit(BOB).is_ok(), "others are not in the way");
        drop(held);
        assert!(budgets.admit(ADA).is_ok());
        assert_eq!(budgets.connections(), 0);
        assert!(budgets.used().callers.is_empty(), "nobody is remembered who uses nothing");
    }

    #[test]
    fn root_gets_in_when_all_others_have_what_there_is() {
        let budgets = budgets(32, 100);
        let held: Vec<_> = (0..24).map(|_| budgets.admit(ADA).unwrap()).collect();
        assert!(budgets.admit(BOB).is_err());
        let own: Vec<_> = (0..8).map(|_| budgets.admit(Account::User(0)).unwrap()).collect();
        assert!(budgets.admit(Account::User(0)).is_err());
        drop((held, own));
    }

    #[test]
    fn whose_token_is_shown_is_counted_as_that_user() {
        let budgets = budgets(32, 2);
        let address = Account::of_address([192, 0, 2, 1].into());
        for _ in 0..2 {
            std::mem::forget(budgets.admit(ADA).unwrap());
        }
        let connection = budgets.admit(address).unwrap();
        assert!(connection.belongs_to(4_000_001).is_err(), "the user has as many as allowed");
        connection.belongs_to(4_000_002).unwrap();
        assert_eq!(budgets.used().callers.get(&address).map(|caller| caller.connections), None);
        assert_eq!(budgets.used().callers[&BOB].connections, 1);
    }

    /// F6: the unfinished requests of one caller are limited, and leave room for those of others.
    #[test]
    fn bytes_are_bounded_for_each_caller_and_in_all() {
        let budgets = budgets(32, 8);
        let ada = budgets.admit(ADA).unwrap();
        let held = ada.hold(16 << 20).unwrap();
        assert!(ada.hold(1).is_err());
        let more: Vec<_> = (10..13).map(|uid| budgets.admit(Account::User(4_000_000 + uid)).unwrap()).collect();
        let of_others: Vec<_> = more.iter().filter_map(|caller| caller.hold(16 << 20).ok()).collect();
        assert_eq!(of_others.len(), 2, "an eighth is left to small requests");
        assert!(more[2].hold(1 << 20).is_ok());
        drop((held, of_others));
        assert_eq!(budgets.used().bytes, 0);
        assert!(ada.hold(16 << 20).is_ok());
    }

    #[test]
    fn one_answer_of_any_size_is_allowed() {
        let budgets = budgets(32, 8);
        let ada = budgets.admit(ADA).unwrap();
        let first = ada.hold_answer(1 << 30).unwrap();
        assert!(ada.hold_answer(1 << 20).is_err());
        drop(first);
        assert!(ada.hold_answer(1 << 20).is_ok());
    }

    #[test]
    fn large_bodies_of_a_caller_come_one_by_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let budgets = budgets(32, 8);
        let (ada, bob) = (budgets.admit(ADA).unwrap(), budgets.admit(BOB).unwrap());
        runtime.block_on(async {
            let first = ada.large_body(Duration::ZERO).await.unwrap();
            assert!(ada.large_body(Duration::ZERO).await.is_err());
            assert!(bob.large_body(Duration::ZERO).await.is_ok());
            drop(first);
            assert!(ada.large_body(Duration::ZERO).await.is_ok());
        });
    }

    #[test]
    fn few_follow_events_for_one_caller_and_in_all() {
        let budgets = budgets(32, 8);
        let ada = budgets.admit(ADA).unwrap();
        let following: Vec<_> = (0..FOLLOWERS_PER_CALLER).map(|_| ada.follow().unwrap()).collect();
        let refused = ada.follow().unwrap_err().0.message;
        assert!(refused.contains("64 connections of yours follow events"), "{refused}");
        let others: Vec<_> = (10..).map(|uid| budgets.admit(Account::User(4_000_000 + uid)).unwrap()).take(8).collect();
        let more: Vec<_> = others.iter().cycle().take(600).filter_map(|other| other.follow().ok()).collect();
        assert_eq!(following.len() + more.len(), 512);
        assert!(budgets.admit(Account::User(0)).unwrap().follow().is_ok(), "who runs the system gets in");
        drop((following, more));
        assert!(ada.follow().is_ok());
        drop((ada, others));
        assert_eq!(budgets.used().followers, 0);
        assert!(budgets.used().callers.is_empty());
    }

    /// A part of the past without room among its caller's bytes keeps its turn until it is sent.
    #[test]
    fn parts_of_the_past_are_counted_or_keep_their_turn() {
        use futures::FutureExt as _;
        let budgets = budgets(32, 8);
        let ada = budgets.admit(ADA).unwrap();
        let part = |bytes| ada.past_part().now_or_never().map(|turn| ada.count_past_part(turn.unwrap(), bytes));
        let counted: Vec<_> = (0..4).map(|_| part(4 << 20).unwrap()).collect();
        assert!(counted.iter().all(|part| matches!(part, PastPart::Counted(_))));
        let turns = [part(1).unwrap(), part(1).unwrap()];
        assert!(turns.iter().all(|part| matches!(part, PastPart::Turn(_))));
        assert!(part(1).is_none(), "both turns are taken");
        drop(turns);
        assert!(part(1).is_some());
        drop(counted);
        assert_eq!(budgets.used().bytes, 0);
    }

    #[test]
    fn wrong_tokens_cost_ever_more_time() {
        let budgets = budgets(32, 8);
        let address = Account::of_address("2001:db8::1".parse().unwrap());
        let neighbour = Account::of_address("2001:db8::2".parse().unwrap());
        assert_eq!(address, neighbour, "a host may have all addresses of its network");
        let penalties: Vec<u64> = (0..12).map(|_| budgets.guess_penalty(address).as_millis() as u64).collect();
        assert_eq!(penalties[..6], [0, 0, 0, 0, 250, 500]);
        assert_eq!(penalties[11], 8_000);
        assert_eq!(budgets.guess_penalty(Account::of_address([192, 0, 2, 7].into())), Duration::ZERO);
    }

    #[test]
    fn few_open_files_mean_few_connections() {
        let limits = |open_files| Limits::of(&Config::default(), open_files);
        assert_eq!((limits(64).connections, limits(64).connections_per_caller), (32, 4));
        assert_eq!((limits(1_024).connections, limits(1_024).connections_per_caller), (512, 64));
        assert_eq!(limits(1 << 20).connections, 8_192);
    }
}
