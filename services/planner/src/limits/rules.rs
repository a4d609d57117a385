//! Whom the limits of a policy and of queues count, and their texts.

use super::usage::Part;
use muster_schemas::policy::{Limit, LimitPer};
use std::sync::{Arc, LazyLock};

/// The subject that usage is counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Counter {
    /// The policy's limit with this number, for this name.
    Policy(usize, Arc<str>),
    /// Running jobs of a queue.
    Queue(Arc<str>),
    /// Running jobs of a user in a queue.
    UserInQueue(Arc<str>, Arc<str>),
}

/// The text of a limit, for people.
pub(super) fn describe(rule: &Limit, name: &str, what: &str, most: u64) -> String {
    let of = match rule.per {
        LimitPer::All => String::new(),
        LimitPer::User => format!(" of {name}"),
        LimitPer::Group => format!(" of group {name}"),
        LimitPer::Account => format!(" of account {name}"),
        LimitPer::Queue => format!(" in queue {name}"),
    };
    let queue = rule.queue.as_ref().map_or_else(String::new, |queue| format!(" in queue {queue}"));
    format!("{most} {what}{of}{queue}")
}

/// The name of all users together.
static ALL: LazyLock<Arc<str>> = LazyLock::new(|| "".into());

/// The name under which a limit counts a component; `None` if it does not count it.
pub(super) fn name(rule: &Limit, part: &Part) -> Option<Arc<str>> {
    let queue = &part.demand.queue;
    if rule.queue.as_ref().is_some_and(|wanted| **queue != **wanted) {
        return None;
    }
    let name = match rule.per {
        LimitPer::All => ALL.clone(),
        LimitPer::User => part.holder.user.clone(),
        LimitPer::Group => part.holder.group.to_string().into(),
        LimitPer::Account => part.account()?.clone(),
        LimitPer::Queue => queue.clone(),
    };
    rule.name.as_deref().is_none_or(|wanted| wanted == &*name).then_some(name)
}
