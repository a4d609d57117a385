//! The form of `oarstat --accounting`.

use crate::{accounting::Summary, options::date};
use jiff::tz::TimeZone;
use std::{collections::BTreeMap, fmt::Write};

/// Reads the span of `--accounting "YYYY-MM-DD, YYYY-MM-DD"`: two midnights.
///
/// # Errors
/// The first mistake, as a sentence.
pub fn span(text: &str, zone: &TimeZone) -> Result<(i64, i64), String> {
    let (from, to) = text.split_once(',').ok_or("expected two dates with a comma between")?;
    let midnight = |day: &str| date::seconds(&format!("{} 00:00:00", day.trim()), 0, zone);
    Ok((midnight(from)?, midnight(to)?))
}

/// The table of users.
pub fn table(sums: &BTreeMap<String, Summary>, zone: &TimeZone) -> String {
    let mut out = String::from(
        "User       First window starts  Last window ends     Asked (seconds)  Used (seconds)\n\
         ---------- -------------------- -------------------- ---------------- ----------------\n",
    );
    for (user, sum) in sums {
        let (first, last) = (date::written(sum.first, zone), date::written(sum.last, zone));
        let user: String = user.chars().take(10).collect();
        let _ = writeln!(out, "{user:<10} {first:<19}  {last:<19}  {:>16} {:>16}", sum.asked, sum.used);
    }
    out
}
