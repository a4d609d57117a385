//! Limits on quotas.

use crate::validate::{count, invalid, label, name, number, optional, shown};
use muster_schemas::{
    command::Refusal,
    job::JobSpec,
    quota::{ALL_TOGETHER, EACH, QuotaPeriod, QuotaRule, QuotaTable, WEEK_SECONDS},
};

const MOST_SETS: usize = 100;
const MOST_RULES: usize = 10_000;
const MOST_SPANS: usize = 1_000;
const MOST_OFFSETS: usize = 1_000;
const MOST_KINDS: usize = 100;
/// The greatest difference of local time, in seconds.
const MOST_OFFSET_SECONDS: i32 = 26 * 3600;

/// A table of quotas.
pub(crate) fn table(table: &QuotaTable) -> Result<(), Refusal> {
    if let Some(source) = &table.source {
        label("quotas.source.name", &source.name)?;
        label("quotas.source.sha256", &source.sha256)?;
    }
    kinds("quotas.kinds", &table.kinds)?;
    count("quotas.sets", table.sets.len(), MOST_SETS)?;
    count("quotas: rules", table.sets.iter().map(|set| set.rules.len()).sum(), MOST_RULES)?;
    for set in &table.sets {
        optional("quotas.sets: a name", Some(&set.name).filter(|name| !name.is_empty()), name)?;
        set.rules.iter().try_for_each(rule)?;
        let mut known: Vec<[&str; 4]> = set.rules.iter().map(QuotaRule::fields).collect();
        known.sort_unstable();
        if let Some(pair) = known.windows(2).find(|pair| pair[0] == pair[1]) {
            return invalid(format!("quotas: two rules are `{}`", shown(&pair[0].join(","))));
        }
    }
    let sets = table.sets.len();
    week(&table.week, sets)?;
    count("quotas.spans", table.spans.len(), MOST_SPANS)?;
    for span in &table.spans {
        set("quotas.spans", span.set, sets)?;
        if span.end <= span.begin {
            return invalid("quotas.spans: the end of a span is after its begin".into());
        }
    }
    count("quotas.zone", table.zone.len(), MOST_OFFSETS)?;
    if table.zone.windows(2).any(|pair| pair[1].from <= pair[0].from) {
        return invalid("quotas.zone: the offsets are in the order of their times".into());
    }
    match table.zone.iter().find(|offset| offset.seconds.abs() > MOST_OFFSET_SECONDS) {
        Some(offset) => invalid(format!("quotas.zone: no clock is {} seconds ahead", offset.seconds)),
        None => Ok(()),
    }
}

fn rule(rule: &QuotaRule) -> Result<(), Refusal> {
    for (field, value) in ["queue", "account", "kind", "user"].into_iter().zip(rule.fields()) {
        name(&format!("quotas: the {field} of a rule"), value)?;
    }
    match rule.kind == EACH {
        true => invalid("quotas: `/` is not allowed for the kind, because a job has several".into()),
        false => Ok(()),
    }
}

/// The week has no gap, so that no moment is without rules by mistake.
fn week(week: &[QuotaPeriod], sets: usize) -> Result<(), Refusal> {
    let mut at = 0;
    for period in week {
        set("quotas.week", period.set, sets)?;
        if period.begin != at || period.end <= period.begin || period.end > WEEK_SECONDS {
            return invalid(format!(
                "quotas.week: a period from {} to {}, expected one from {at} to at most {WEEK_SECONDS}",
                period.begin, period.end
            ));
        }
        at = period.end;
    }
    match at {
        0 | WEEK_SECONDS => Ok(()),
        at => invalid(format!("quotas.week: ends at {at}, expected {WEEK_SECONDS}")),
    }
}

fn set(field: &str, set: u32, sets: usize) -> Result<(), Refusal> {
    match sets.checked_sub(1) {
        None => invalid(format!("{field}: there are no rules")),
        Some(last) => number(&format!("{field}: the number of rules"), set.into(), 0, last as u64),
    }
}

/// The kinds of a job.
pub(crate) fn of_job(spec: &JobSpec) -> Result<(), Refusal> {
    kinds("kinds", &spec.kinds)
}

fn kinds(field: &str, kinds: &[String]) -> Result<(), Refusal> {
    count(field, kinds.len(), MOST_KINDS)?;
    kinds.iter().try_for_each(|kind| match kind.as_str() {
        ALL_TOGETHER | EACH => invalid(format!("{field}: `{kind}` is no kind, but stands for all of them in rules")),
        kind => name(field, kind),
    })
}
