//! Walltimes, and changes of them, as people write them.

use crate::text::{decimal, shown};

/// The longest walltime, in seconds: 10 years of 365 days.
pub const LONGEST: i64 = 10 * 365 * 86_400;

/// The seconds of `H[:M[:S]]`. Minutes and seconds may be larger than 59.
///
/// # Errors
/// The first mistake, as a sentence.
pub fn seconds(text: &str) -> Result<i64, String> {
    let parts: Option<Vec<i64>> = text.trim().split(':').map(decimal).collect();
    let (hours, minutes, seconds) = match parts.as_deref() {
        Some([hours]) => (*hours, 0, 0),
        Some([hours, minutes]) => (*hours, *minutes, 0),
        Some([hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        _ => return Err(format!("expected a walltime as hours[:minutes[:seconds]], found '{}'", shown(text))),
    };
    let total = hours.saturating_mul(3600).saturating_add(minutes.saturating_mul(60)).saturating_add(seconds);
    match total {
        0 => Err("a walltime has at least one second".to_owned()),
        total if total > LONGEST => Err(format!("a walltime has at most {} hours", LONGEST / 3600)),
        total => Ok(total),
    }
}

/// Reads the change that `oarwalltime` asks for (OAR-G-16): `+1:0` for more, `-0:30` for less, `2:0:0` for a new
/// walltime. The result is in seconds, relative to the walltime so far.
///
/// # Errors
/// The first mistake, as a sentence.
pub fn change(text: &str, walltime: i64) -> Result<i64, String> {
    let text = text.trim();
    match text.split_at_checked(1) {
        Some(("+", more)) => seconds(more),
        Some(("-", less)) => seconds(less).map(|less| -less),
        _ => seconds(text).map(|whole| whole - walltime),
    }
}
