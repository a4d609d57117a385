//! Whom rules count, and which rule applies.

use muster_schemas::quota::{ALL_TOGETHER, EACH, NO_ACCOUNT, QuotaRule};
use std::sync::Arc;

/// What quotas know of a component of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// Its queue.
    pub queue: Arc<str>,
    /// The account that is charged; `None` counts as `default`.
    pub account: Option<Arc<str>>,
    /// The owner.
    pub user: Arc<str>,
    /// What sets it apart; `None` for most jobs.
    pub marks: Option<Arc<Marks>>,
}

/// What sets a job apart from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Marks {
    /// Its kinds, in the order in which rules for them are tried.
    pub kinds: Vec<String>,
    /// No rule holds it back, but it is counted (OAR-Q-09).
    pub is_unlimited: bool,
    /// It is neither held back nor counted: other jobs run in it, and those are (OAR-Q-06).
    pub is_uncounted: bool,
    /// It makes way for others: only jobs that do so too count it (OAR-Q-06).
    pub is_apart: bool,
}

/// A component of a job that holds, or would hold, something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whom it counts for.
    pub subject: Subject,
    /// How many jobs it counts as: 1, or 0 for more resources of a run.
    pub jobs: u64,
    /// Its cores.
    pub cores: u64,
    /// Its whole walltime; [`u64::MAX`] without one.
    pub walltime_seconds: u64,
}

impl Subject {
    pub(super) fn is(&self, mark: impl Fn(&Marks) -> bool) -> bool {
        self.marks.as_deref().is_some_and(mark)
    }

    fn kinds(&self) -> &[String] {
        self.marks.as_ref().map_or(&[], |marks| &marks.kinds)
    }

    /// Queue, account and user, in the order of the fields of rules.
    fn values(&self) -> [&Arc<str>; 3] {
        static NONE: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| NO_ACCOUNT.into());
        [&self.queue, self.account.as_ref().unwrap_or(&NONE), &self.user]
    }

    /// The number of the rule that applies (OAR-Q-04): queue, account, kind and user are decided in that order, each by its own
    /// name, else `/`, else `*`. A decision stays, even if no rule matches behind it.
    pub(super) fn rule_of(&self, rules: &[QuotaRule], counted_kinds: &[String]) -> Option<usize> {
        let [queue, account, user] = self.values();
        let kinds = || self.kinds().iter().filter(|kind| counted_kinds.contains(kind)).map(String::as_str);
        let mut left: Vec<usize> = (0..rules.len()).collect();
        decide(&mut left, rules, |rule| &rule.queue, std::iter::once(&**queue));
        decide(&mut left, rules, |rule| &rule.account, std::iter::once(&**account));
        decide(&mut left, rules, |rule| &rule.kind, kinds());
        decide(&mut left, rules, |rule| &rule.user, std::iter::once(&**user));
        left.first().copied()
    }

    /// The values that tell the counters of a rule apart, if the rule counts this at all (OAR-Q-03).
    pub(super) fn counted_by(&self, rule: &QuotaRule, counted_kinds: &[String]) -> Option<Box<[Arc<str>]>> {
        let is_of_kind =
            rule.kind == ALL_TOGETHER || counted_kinds.contains(&rule.kind) && self.kinds().contains(&rule.kind);
        let fields = [&rule.queue, &rule.account, &rule.user];
        let mut own = Vec::new();
        for (field, value) in fields.into_iter().zip(self.values()) {
            match field.as_str() {
                ALL_TOGETHER => {}
                EACH => own.push(value.clone()),
                name if *name == **value => {}
                _ => return None,
            }
        }
        is_of_kind.then(|| own.into())
    }
}

/// Keeps the rules with the first of the values that one of them has, else those with `/`, else those with `*`.
fn decide<'v>(
    left: &mut Vec<usize>,
    rules: &[QuotaRule],
    field: impl Fn(&QuotaRule) -> &String,
    values: impl Iterator<Item = &'v str>,
) {
    let chosen = values.chain([EACH, ALL_TOGETHER]).find(|value| left.iter().any(|at| field(&rules[*at]) == value));
    left.retain(|at| chosen.is_some_and(|chosen| field(&rules[*at]) == chosen));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<QuotaRule> {
        let rule = |text: &&str| {
            let fields: Vec<String> = text.split(',').map(str::to_owned).collect();
            let [queue, account, kind, user] = fields.try_into().unwrap();
            QuotaRule { queue, account, kind, user, ..QuotaRule::default() }
        };
        texts.iter().map(rule).collect()
    }

    fn job(queue: &str, account: &str, user: &str, kinds: &[&str]) -> Subject {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let marks = Some(Arc::new(Marks { kinds, ..Marks::default() }));
        let account = (!account.is_empty()).then(|| account.into());
        Subject { queue: queue.into(), account, user: user.into(), marks }
    }

    /// OAR-Q-04
    #[test]
    fn one_rule_applies_the_most_specific_first() {
        let all = ["*,*,*,/", "*,bio,*,*", "*,*,*,ann", "fast,*,*,*", "*,*,night,*", "*,*,deploy,*"];
        let rules = rules(&all);
        let kinds = ["night".to_owned(), "deploy".to_owned()];
        let of = |job: &Subject| job.rule_of(&rules, &kinds).map(|at| all[at]);
        assert_eq!(of(&job("default", "", "ann", &[])), Some("*,*,*,ann"));
        assert_eq!(of(&job("default", "", "bob", &[])), Some("*,*,*,/"));
        assert_eq!(of(&job("default", "bio", "ann", &[])), Some("*,bio,*,*"), "the account goes before the user");
        assert_eq!(of(&job("fast", "bio", "ann", &[])), Some("fast,*,*,*"), "the queue goes before all");
        assert_eq!(of(&job("default", "", "ann", &["deploy", "night"])), Some("*,*,deploy,*"), "the first kind given");
        assert_eq!(of(&job("default", "", "ann", &["other"])), Some("*,*,*,ann"), "a kind that is not counted");
    }

    /// OAR-Q-04: what is decided stays, even if nothing matches behind it.
    #[test]
    fn no_rule_is_no_limit() {
        let rules = rules(&["fast,bio,*,*", "*,*,*,*"]);
        assert_eq!(job("fast", "chem", "ann", &[]).rule_of(&rules, &[]), None);
        assert_eq!(job("slow", "chem", "ann", &[]).rule_of(&rules, &[]), Some(1));
    }

    /// OAR-Q-03
    #[test]
    fn a_slash_has_a_counter_for_each_value() {
        let all = rules(&["*,*,*,/", "/,*,*,ann", "*,default,night,*"]);
        let kinds = ["night".to_owned()];
        let counter = |job: &Subject, at: usize| job.counted_by(&all[at], &kinds);
        let (ann, bob) = (job("default", "", "ann", &["night"]), job("default", "bio", "bob", &["night"]));
        assert_eq!(counter(&ann, 0), Some(["ann".into()].into()));
        assert_ne!(counter(&ann, 0), counter(&bob, 0));
        assert_eq!(counter(&ann, 1), Some(["default".into()].into()));
        assert_eq!(counter(&bob, 1), None);
        assert_eq!(counter(&ann, 2), Some([].into()), "no account counts as default");
        assert_eq!(counter(&bob, 2), None);
        assert_eq!(ann.counted_by(&all[2], &[]), None, "only kinds of the table are counted");
    }
}
