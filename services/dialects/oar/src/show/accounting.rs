//! The form of `oarstat --accounting`.

use crate::{
    accounting::Summary,
    options::date,
    text::{hours, printable},
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
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

/// What one user asked for and used, and the part of each project: `-u`. `None` if nothing is known.
pub fn of_user(user: &str, sum: Option<Summary>, projects: &BTreeMap<String, Summary>, zone: &TimeZone) -> String {
    let name = |text: &str| text.chars().map(printable).collect::<String>();
    let Some(sum) = sum else { return format!("No usage of user '{}' in this span.\n", name(user)) };
    let amount = |seconds: u64| format!("{seconds} ({})", hours(i64::try_from(seconds).unwrap_or(i64::MAX)));
    let mut out = format!(
        "Usage summary for user '{}':\n\
         -------------------------------------------------------------------------------\n\
         {:>30}: {}\n{:>30}: {}\n{:>30}: {}\n{:>30}: {}\nBy project consumption:\n",
        name(user),
        "Start of the first window",
        date::written(sum.first, zone),
        "End of the last window",
        date::written(sum.last, zone),
        "Asked consumption",
        amount(sum.asked),
        "Used consumption",
        amount(sum.used),
    );
    for (project, sum) in projects {
        let _ = writeln!(out, "  {}:", name(project));
        let _ = writeln!(out, "{:>12}: {}\n{:>12}: {}", "Asked", amount(sum.asked), "Used", amount(sum.used));
    }
    out
}

/// The same as a document, by user and by project.
pub fn document(users: &BTreeMap<String, Summary>, projects: &BTreeMap<String, Summary>) -> Value {
    let all = |sums: &BTreeMap<String, Summary>| {
        let one = |(name, sum): (&String, &Summary)| {
            let document = json!({ "ASKED": sum.asked, "USED": sum.used, "begin": sum.first, "end": sum.last });
            (name.clone(), document)
        };
        json!(sums.iter().map(one).collect::<BTreeMap<String, Value>>())
    };
    json!({ "users": all(users), "projects": all(projects) })
}
