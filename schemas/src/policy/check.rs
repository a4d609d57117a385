//! Faults of a policy, whatever its source.

mod routes;

use super::{
    Backfill, BackfillMode, CandidateOrder, ComponentStart, Components, Limit, LimitPer, OrderKey, Period, Policy,
    PolicySource, Turns, UseShare,
    formula::{Formula, FormulaError},
    words::shorten,
};
use std::{collections::BTreeSet, fmt};

/// Maximum length of the name of a policy, and of a user, group, account or queue in it, in bytes.
pub const MOST_NAME_BYTES: usize = 1024;
/// Maximum length of a formula, in bytes.
pub const MOST_FORMULA_BYTES: usize = 4096;
/// Maximum number of keys of an order.
pub const MOST_ORDER_KEYS: usize = 32;
/// Maximum number of limits of a policy.
pub const MOST_LIMITS: usize = 1000;
/// Maximum number of starts in a cycle that a policy may ask for.
pub const MOST_STARTS: u32 = 100_000;
/// Maximum number of queues that planning by turns names.
const MOST_TURN_QUEUES: usize = 10_000;
/// Maximum number of groups and users in a table of shares.
const MOST_SHARES: usize = 100_000;
/// Maximum number of nodes that are chosen by their load.
const MOST_LOADED_NODES: usize = 100_000;
/// Maximum number of levels of such a table: parts are exact fractions, which grow with each.
const MOST_SHARE_LEVELS: u32 = 32;
/// Maximum length of the reason why nothing starts, in bytes.
const MOST_WHY_BYTES: usize = 200;
/// Maximum number of files that a policy is made of.
const MOST_SOURCES: usize = 64;
/// Maximum number of periods of planning by turns.
const MOST_PERIODS: usize = 20_000;
/// The longest interval of backfill passes, in seconds.
const MOST_INTERVAL_SECONDS: u32 = 86_400;
/// The longest window of use, in seconds: 100 years.
const MOST_WINDOW_SECONDS: u64 = 3_155_760_000;
/// The shortest and longest slices of it.
const LEAST_SLICE_SECONDS: u64 = 3600;
const MOST_SLICE_SECONDS: u64 = 31_557_600;
/// The greatest coefficient, in percent.
const MOST_PERCENT: u64 = 1_000_000;
/// The highest number that the file format can express.
const MOST_AMOUNT: u64 = i64::MAX as u64;

/// Something that makes no sense in a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// Where, as in the file: `backfill.look_ahead`, `limit.0.max_nodes`, `queue.long.order.1`; entries count from 0.
    pub place: String,
    /// The fault, for people.
    pub message: String,
    /// For a formula that cannot be read: the error with its position, which `message` does not give.
    pub formula: Option<FormulaError>,
}

impl fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.formula {
            None => write!(f, "`{}`: {}", self.place, self.message),
            Some(error) => write!(f, "`{}`, character {}: {}", self.place, error.column, self.message),
        }
    }
}

impl Policy {
    /// All its faults; none in a policy that can be put in force.
    pub fn faults(&self) -> Vec<PolicyFault> {
        let mut faults = Faults(Vec::new());
        faults.text("name", &self.name, "the name of the policy");
        faults.order("order", &self.order);
        faults.backfill("backfill", &self.backfill);
        faults.components("backfill.components", self);
        faults.limits(&self.limits);
        for (name, queue) in &self.queues {
            let place = queue_place(name);
            faults.text(&place, name, "the name of a queue");
            if queue.order.is_none() && queue.backfill.is_none() {
                faults.add(&place, "expected an `order` or a `backfill`: a queue with neither needs no section".into());
            }
            if let Some(order) = &queue.order {
                faults.order(&format!("{place}.order"), order);
            }
            if let Some(backfill) = &queue.backfill {
                faults.backfill(&format!("{place}.backfill"), backfill);
                faults.components_of_queue(&format!("{place}.backfill"), backfill, self.backfill.components);
            }
        }
        if let Some(turns) = &self.turns {
            faults.turns("turns", turns);
        }
        if let Some(why) = &self.starts_nothing {
            faults.text("starts_nothing", why, "why nothing starts");
            if why.len() > MOST_WHY_BYTES {
                faults
                    .add("starts_nothing", format!("expected at most {MOST_WHY_BYTES} bytes: each waiting job has it"));
            }
        }
        faults.sources(&self.sources);
        if let Some(rule) = &self.use_share {
            faults.use_share(rule);
        }
        if !(1..=MOST_STARTS).contains(&self.max_starts) {
            faults.add("max_starts", format!("expected 1 to {MOST_STARTS}, found {}", self.max_starts));
        }
        faults.0
    }
}

/// The place of a queue's own policy; an invalid name is shown as far as possible.
pub fn queue_place(name: &str) -> String {
    format!("queue.{}", shorten(name))
}

struct Faults(Vec<PolicyFault>);

impl Faults {
    fn add(&mut self, place: &str, message: String) {
        self.0.push(PolicyFault { place: place.into(), message, formula: None });
    }

    fn text(&mut self, place: &str, text: &str, what: &str) {
        if text.is_empty() || text.len() > MOST_NAME_BYTES || text.contains(char::is_control) {
            self.add(place, format!("expected {what}, 1 to {MOST_NAME_BYTES} bytes without control characters"));
        }
    }

    fn sources(&mut self, sources: &[PolicySource]) {
        if sources.len() > MOST_SOURCES {
            self.add("sources", format!("expected at most {MOST_SOURCES} files, found {}", sources.len()));
        }
        for (index, source) in sources.iter().take(MOST_SOURCES).enumerate() {
            self.text(&format!("sources.{index}.name"), &source.name, "the name of a file");
            if source.sha256.len() != 64 || !source.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                self.add(&format!("sources.{index}.sha256"), "expected 64 hexadecimal digits".into());
            }
        }
    }

    fn use_share(&mut self, rule: &UseShare) {
        let ranges = [
            ("window_seconds", rule.window_seconds, 1, MOST_WINDOW_SECONDS),
            ("slice_seconds", rule.slice_seconds, LEAST_SLICE_SECONDS, MOST_SLICE_SECONDS),
            ("account_percent", rule.account_percent.into(), 0, MOST_PERCENT),
            ("user_percent", rule.user_percent.into(), 0, MOST_PERCENT),
            ("asked_percent", rule.asked_percent.into(), 0, MOST_PERCENT),
        ];
        for (key, found, least, most) in ranges {
            if !(least..=most).contains(&found) {
                self.add(&format!("use_share.{key}"), format!("expected {least} to {most}, found {found}"));
            }
        }
        for (key, targets) in [("account_targets", &rule.account_targets), ("user_targets", &rule.user_targets)] {
            if targets.len() > MOST_SHARES {
                self.add(
                    &format!("use_share.{key}"),
                    format!("expected at most {MOST_SHARES}, found {}", targets.len()),
                );
            }
            for (name, target) in targets.iter().take(MOST_SHARES) {
                self.text(&format!("use_share.{key}"), name, "a name");
                if *target > 100 {
                    let place = format!("use_share.{key}.{}", shorten(name));
                    self.add(&place, format!("expected 0 to 100 percent, found {target}"));
                }
            }
        }
    }

    fn order(&mut self, place: &str, order: &[OrderKey]) {
        if order.len() > MOST_ORDER_KEYS {
            self.add(place, format!("expected at most {MOST_ORDER_KEYS} keys, found {}", order.len()));
        }
        let mut seen = BTreeSet::new();
        for (index, key) in order.iter().enumerate() {
            let place = format!("{place}.{index}");
            if !seen.insert(key) {
                self.add(&place, "expected another key: this one was named before and decides nothing here".into());
            }
            if let OrderKey::Formula { text, .. } = key {
                self.formula(&place, text);
            }
        }
    }

    fn formula(&mut self, place: &str, text: &str) {
        if text.len() > MOST_FORMULA_BYTES {
            return self.add(place, format!("expected a formula of at most {MOST_FORMULA_BYTES} bytes"));
        }
        if let Err(error) = Formula::parse(text) {
            self.0.push(PolicyFault { place: place.into(), message: error.message(), formula: Some(error) });
        }
    }

    fn backfill(&mut self, place: &str, backfill: &Backfill) {
        let Backfill { mode, reservations, candidates, look_ahead, require_walltime, components: _ } = *backfill;
        if mode == BackfillMode::None {
            let set = [
                ("reservations", reservations.is_some()),
                ("candidates", candidates != CandidateOrder::default()),
                ("look_ahead", look_ahead.is_some()),
                ("require_walltime", require_walltime),
            ];
            for (key, _) in set.iter().filter(|(_, is_set)| *is_set) {
                let message = "has no effect without backfilling: expected `mode` \"easy\" or \"conservative\"";
                self.add(&format!("{place}.{key}"), message.into());
            }
        }
        if mode == BackfillMode::Conservative && reservations == Some(0) {
            let message =
                "expected 1 or more: `conservative` promises a start to every job, or to this many first jobs";
            self.add(&format!("{place}.reservations"), message.into());
        }
        if look_ahead == Some(0) {
            let message = "expected 1 or more; for no backfilling say `mode = \"none\"`";
            self.add(&format!("{place}.look_ahead"), message.into());
        }
    }

    fn components(&mut self, place: &str, policy: &Policy) {
        let Backfill { mode, components, .. } = policy.backfill;
        let Components { start, interval_seconds, window_seconds, .. } = components;
        let default = Components::default();
        if start == ComponentStart::AnyPass {
            let set = [
                ("interval_seconds", interval_seconds != default.interval_seconds),
                ("window_seconds", window_seconds.is_some()),
            ];
            for (key, _) in set.iter().filter(|(_, is_set)| *is_set) {
                let message = "has no effect while jobs start in any pass: expected `start` \"backfill_pass\"";
                self.add(&format!("{place}.{key}"), message.into());
            }
        }
        if !(1..=MOST_INTERVAL_SECONDS).contains(&interval_seconds) {
            let message = format!("expected 1 to {MOST_INTERVAL_SECONDS}, found {interval_seconds}");
            self.add(&format!("{place}.interval_seconds"), message);
        }
        if window_seconds == Some(0) {
            self.add(&format!("{place}.window_seconds"), "expected 1 or more".into());
        }
        self.keeps_no_promises(&format!("{place}.start"), mode, start);
    }

    fn components_of_queue(&mut self, place: &str, backfill: &Backfill, of_policy: Components) {
        if backfill.components != Components::default() {
            let message =
                "expected none in a queue: jobs can have components in several, so [backfill] says it for all";
            self.add(&format!("{place}.components"), message.into());
        }
        self.keeps_no_promises(&format!("{place}.mode"), backfill.mode, of_policy.start);
    }

    fn keeps_no_promises(&mut self, place: &str, mode: BackfillMode, start: ComponentStart) {
        if mode == BackfillMode::Conservative && start == ComponentStart::BackfillPass {
            let message = "backfill passes renew their reservations, which `conservative` never does: expected \
                           `start` \"any_pass\", or `mode` \"easy\" with as many `reservations` as are wanted";
            self.add(place, message.into());
        }
    }

    fn turns(&mut self, place: &str, turns: &Turns) {
        let lists = [
            ("ignored_queues", turns.ignored_queues.len(), MOST_TURN_QUEUES),
            ("queues", turns.queues.len(), MOST_TURN_QUEUES),
            ("loads", turns.loads.as_ref().map_or(0, |loads| loads.nodes.len()), MOST_LOADED_NODES),
            ("shares", turns.shares.as_ref().map_or(0, |shares| shares.members.len()), MOST_SHARES),
            ("other_hours", turns.other_hours.as_ref().map_or(0, |other| other.periods.len()), MOST_PERIODS),
            ("windows", turns.windows.as_ref().map_or(0, |windows| windows.periods.len()), MOST_PERIODS),
        ];
        for (key, len, most) in lists.iter().filter(|(_, len, most)| len > most) {
            self.add(&format!("{place}.{key}"), format!("expected at most {most} entries, found {len}"));
        }
        for name in turns.ignored_queues.iter().chain(&turns.queues) {
            self.text(&format!("{place}.queues"), name, "the name of a queue");
        }
        let others = turns.other_hours.iter().map(|other| &other.rules);
        for starving in others.chain([&turns.rules]).filter_map(|rules| rules.starving) {
            if starving.after_seconds > MOST_AMOUNT {
                self.add(&format!("{place}.rules.starving.after_seconds"), format!("expected at most {MOST_AMOUNT}"));
            }
        }
        if let Some(other) = &turns.other_hours {
            self.order(&format!("{place}.other_hours.order"), &other.order);
            self.periods(&format!("{place}.other_hours.periods"), &other.periods);
        }
        for (index, node) in turns.loads.iter().flat_map(|loads| &loads.nodes).enumerate().take(MOST_LOADED_NODES) {
            self.text(&format!("{place}.loads.nodes[{index}].name"), &node.name, "the name of a node");
            if node.ideal_millionths > node.max_millionths {
                let message = "expected an ideal load that is not above the maximum";
                self.add(&format!("{place}.loads.nodes[{index}].ideal_millionths"), message.into());
            }
        }
        if let Some(routes) = &turns.routes {
            self.routes(&format!("{place}.routes"), routes);
        }
        if let Some(windows) = &turns.windows {
            self.text(&format!("{place}.windows.queue_prefix"), &windows.queue_prefix, "the beginning of a name");
            self.periods(&format!("{place}.windows.periods"), &windows.periods);
        }
        // The levels of the whole machine and of the group of unknown users, then of the members.
        let mut levels = vec![0, 1];
        for (index, share) in turns.shares.iter().flat_map(|shares| &shares.members).enumerate() {
            let place = format!("{place}.shares.members.{index}");
            let level = levels.get(share.parent as usize).map_or(1, |level| level + 1);
            levels.push(level);
            if level > MOST_SHARE_LEVELS {
                self.add(&place, format!("expected at most {MOST_SHARE_LEVELS} levels"));
            }
            self.text(&place, &share.name, "the name of a group or user");
            if share.parent as usize >= index + 2 {
                self.add(&place, "expected a parent that stands before it".into());
            }
        }
    }

    fn periods(&mut self, place: &str, periods: &[Period]) {
        let is_empty = |period: &Period| period.from >= period.until;
        if periods.iter().any(is_empty) || periods.windows(2).any(|two| two[0].until >= two[1].from) {
            self.add(place, "expected periods in their order that neither overlap nor touch".into());
        }
    }

    fn limits(&mut self, limits: &[Limit]) {
        if limits.len() > MOST_LIMITS {
            self.add("limit", format!("expected at most {MOST_LIMITS} limits, found {}", limits.len()));
        }
        let mut seen = BTreeSet::new();
        for (index, limit) in limits.iter().enumerate() {
            let place = format!("limit.{index}");
            self.limit(&place, limit);
            if !seen.insert((limit.per, &limit.name, &limit.queue)) {
                let message = "expected other jobs: an earlier limit counts the same ones; put the maxima into one";
                self.add(&place, message.into());
            }
        }
    }

    fn limit(&mut self, place: &str, limit: &Limit) {
        let Limit { per, name, queue, max_running_jobs, max_nodes, max_cores, max_gpus, .. } = limit;
        let Limit { max_attributes, max_attributes_of_job, .. } = limit;
        let maxima = [
            ("max_running_jobs", max_running_jobs),
            ("max_nodes", max_nodes),
            ("max_cores", max_cores),
            ("max_gpus", max_gpus),
        ];
        let attributes = || max_attributes.iter().chain(max_attributes_of_job);
        for (name, most) in attributes() {
            self.text(&format!("{place}.max_attributes"), name, "the name of an attribute");
            if *most > MOST_AMOUNT {
                self.add(&format!("{place}.max_attributes"), format!("expected at most {MOST_AMOUNT}"));
            }
        }
        if maxima.iter().all(|(_, most)| most.is_none()) && attributes().next().is_none() {
            let keys = maxima.map(|(key, _)| format!("`{key}`")).join(", ") + ", `max_attributes`";
            self.add(place, format!("expected at least one of {keys}: this limits nothing"));
        }
        for (key, most) in maxima {
            if most.is_some_and(|most| most > MOST_AMOUNT) {
                self.add(&format!("{place}.{key}"), format!("expected at most {MOST_AMOUNT}"));
            }
        }
        if let Some(name) = name {
            let place = format!("{place}.name");
            self.text(&place, name, "the name of a user, group, account or queue");
            if *per == LimitPer::All {
                let message = "expected `per` \"user\", \"group\", \"account\" or \"queue\": all jobs have no name";
                self.add(&place, message.into());
            }
            // Groups are identified by number: the same number may have other names on other hosts.
            if *per == LimitPer::Group && name.parse::<u32>().map(|number| number.to_string()).as_ref() != Ok(name) {
                self.add(&place, "expected the number of a group, as `id -g` prints it".into());
            }
        }
        if let Some(queue) = queue {
            let place = format!("{place}.queue");
            self.text(&place, queue, "the name of a queue");
            if *per == LimitPer::Queue {
                self.add(&place, "expected `name` instead, which names the queue where `per` is \"queue\"".into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{BUILT_IN_POLICIES, QueuePolicy};

    fn faults(change: impl FnOnce(&mut Policy)) -> Vec<String> {
        let mut policy = Policy::default();
        change(&mut policy);
        policy.faults().iter().map(PolicyFault::to_string).collect()
    }

    #[test]
    fn built_in_policies_make_sense() {
        for name in BUILT_IN_POLICIES {
            assert_eq!(Policy::built_in(name).unwrap().faults(), []);
        }
    }

    #[test]
    fn a_limit_that_limits_nothing_or_the_same_twice_is_a_fault() {
        let limit = Limit { per: LimitPer::User, ..Limit::default() };
        assert!(
            faults(|policy| policy.limits = vec![limit.clone()])[0].starts_with("`limit.0`: expected at least one")
        );
        let limit = Limit { max_nodes: Some(0), ..limit };
        assert_eq!(faults(|policy| policy.limits = vec![limit.clone()]), [""; 0]);
        assert!(
            faults(|policy| policy.limits = vec![limit.clone(), limit])[0].starts_with("`limit.1`: expected other")
        );
    }

    #[test]
    fn settings_of_backfilling_without_backfilling_are_faults() {
        let backfill =
            Backfill { reservations: Some(2), look_ahead: Some(0), require_walltime: true, ..Backfill::default() };
        assert_eq!(faults(|policy| policy.backfill = backfill).len(), 4);
        let backfill = Backfill { mode: BackfillMode::Easy, reservations: Some(0), ..Backfill::default() };
        assert_eq!(faults(|policy| policy.backfill = backfill).len(), 0);
        let backfill = Backfill { mode: BackfillMode::Conservative, ..backfill };
        assert_eq!(faults(|policy| policy.backfill = backfill).len(), 1);
    }

    #[test]
    fn a_fault_in_a_formula_names_its_place_and_character() {
        let key = OrderKey::Formula { text: "wait / waltime".into(), descending: true };
        let queue = QueuePolicy { order: Some(vec![OrderKey::Spt, key.clone(), key]), backfill: None };
        let faults = faults(|policy| drop(policy.queues.insert("long".into(), queue)));
        assert_eq!(
            faults[0],
            "`queue.long.order.1`, character 8: expected a variable or a function, found `waltime`; nearest known name \
             is `walltime`"
        );
        assert_eq!(faults.len(), 3, "the second is named twice and wrong: {faults:?}");
    }
}
