//! The values of `available_upto` that are no dates (OAR-E-01).

/// The value of `available_upto` of a node that is never woken nor put to sleep.
pub const NEVER: i64 = 0;
/// The value of one that is never woken but may sleep.
pub const NEVER_WOKEN: i64 = 1;
/// The value of one that may be woken and is never put to sleep.
pub const NEVER_SLEEPS: i64 = 2_147_483_647;
/// The value of one that may be woken and put to sleep without end.
pub const ALWAYS: i64 = 2_147_483_646;
