//! Reports of nodes about jobs that have ended.

/// The pause before the second try, in seconds.
const FIRST_PAUSE: i64 = 30;
/// The longest pause.
const LONGEST_PAUSE: i64 = 900;
/// The number of tries after the first.
const TRIES: u32 = 48;

/// The pause before a try to reach the server, counted from 1; `None` if there is no further one (OAR-J-06).
pub fn pause(attempt: u32) -> Option<i64> {
    let doubled = FIRST_PAUSE.checked_shl(attempt.saturating_sub(1).min(16)).unwrap_or(LONGEST_PAUSE);
    (1..=TRIES).contains(&attempt).then(|| doubled.min(LONGEST_PAUSE))
}

/// Whether an operator may close a job that does not finish (OAR-S-24): after more than twice the limit of contacts and
/// that of the server's epilogue.
pub const fn may_close(finishing_since: i64, now: i64, contact_timeout: i64, epilogue_timeout: i64) -> bool {
    now - finishing_since > 2 * contact_timeout + epilogue_timeout
}
