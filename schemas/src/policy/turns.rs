//! Planning by turns: jobs are looked at one after the other, and each starts if it fits when its turn comes. Only routes
//! promise starts.

use super::{key::OrderKey, period::Period, routes::Routes};
use crate::{
    Timestamp,
    shares::{Compare, Member, Shares},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The order of turns in a cycle, and the meaning of a refusal for the others.
///
/// Under turns, backfill and the policies of queues have no effect: a job that does not fit is refused, and what comes
/// next depends on [`TurnRules::on_refusal`]. Everything is decided by the state and the time of the cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Turns {
    /// The rules at all times but those of `other_hours`. The order of jobs is that of the policy.
    pub rules: TurnRules,
    /// Times with another order and other rules.
    pub other_hours: Option<OtherHours>,
    /// Times that belong to some queues.
    pub windows: Option<Windows>,
    /// Queues that get no turn.
    pub ignored_queues: Vec<String>,
    /// The parts of the machine that belong to users and groups.
    pub shares: Option<ShareTable>,
    /// The queues in the order of their creation, as far as it matters; others follow by name.
    pub queues: Vec<String>,
    /// What users have used is counted; `None` if no rule needs it.
    pub usage: Option<UsageRule>,
    /// Jobs start in other queues than those in which they wait. How queues take turns, starving jobs, fair share and
    /// windows have no effect then.
    pub routes: Option<Box<Routes>>,
    /// The nodes that rules choose by their load; `None` if none does.
    pub loads: Option<Box<LoadTable>>,
    /// How many of the first jobs that wait only for room have their files copied ahead (PBS-G-07).
    pub staged_ahead: u32,
    /// The classes of lines about cycles that the planner leaves out of its own log, by the sum of a [`LogFilter`](super::LogFilter); `None` if it
    /// writes no such lines. The record does not depend on it (PBS-F-12).
    pub hidden_log_classes: Option<u32>,
}

/// Nodes that are chosen by their load (PBS-L-01).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoadTable {
    /// The nodes, in their order.
    pub nodes: Vec<LoadedNode>,
    /// The cores of a started job count in addition to the load of its node until a load is measured that is newer than the
    /// start by this many seconds; 0 for only the rest of the cycle (PBS-L-05).
    pub settle_seconds: u64,
}

/// A node that is chosen by its load, with its limits. A node that is not busy at all has the load 0, one with a process
/// for each of its cores as many millions as cores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoadedNode {
    /// Its name.
    pub name: String,
    /// Up to this load, in millionths, it is among the first that are chosen.
    pub ideal_millionths: u64,
    /// Up to this load, in millionths, it is chosen at all.
    pub max_millionths: u64,
}

/// What a run adds to the use of its owner, and how fast that is forgotten (PBS-FS-05, PBS-FS-08).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UsageRule {
    /// The part of a run that is charged.
    pub charge: Charge,
    /// After each such time all use is halved; 0 keeps it.
    pub half_life_seconds: u64,
    /// At most so much time passes between two records of what users have used, in seconds; 0 for none (PBS-FS-09).
    pub sync_seconds: u64,
}

/// What a run is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// The processor time of its processes, in seconds, at its end.
    #[default]
    CpuSeconds,
    /// Its cores times its time, in seconds, also while it runs.
    CoreSeconds,
}

/// The rules of a cycle; those at its start hold for all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TurnRules {
    /// How queues take turns.
    pub visit: Visit,
    /// Queues have their turns in the order of [`Turns::queues`], whatever their priorities.
    pub by_creation: bool,
    /// Jobs have their turns in the order of arrival, whatever the policy's order and the shares.
    pub by_arrival: bool,
    /// The jobs that a refused job keeps from starting.
    pub on_refusal: OnRefusal,
    /// Jobs that waited long go first.
    pub starving: Option<Starving>,
    /// Shares and usage choose the next job, in a queue or in the pool.
    pub fair_share: Option<FairShare>,
    /// How the load of nodes chooses the node of a job that names no number of nodes; `None` if it does not.
    pub by_load: Option<ByLoad>,
}

/// How the load of nodes chooses among those of [`Turns::loads`]. The load of a node counts with the cores that the job
/// asks for (PBS-L-03).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ByLoad {
    /// The least loaded of those within their ideal load, else of those within their maximum (PBS-L-04).
    #[default]
    Least,
    /// The first within its maximum, from the one behind the node that was chosen last (PBS-L-07).
    InTurn,
    /// The first within its ideal load, else within its maximum, from the one behind the node that was chosen last
    /// (PBS-L-07).
    LeastInTurn,
}

/// How queues take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visit {
    /// All jobs of a queue before those of the next one.
    #[default]
    QueueByQueue,
    /// One job of each queue in turn. A refused job uses the turn of its queue.
    QueuesInTurn,
    /// The jobs of all queues together.
    Pool,
}

/// The jobs that a refused job keeps from starting in the same cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRefusal {
    /// None.
    #[default]
    Nothing,
    /// All later ones of its queue.
    BlocksQueue,
    /// All later ones.
    BlocksAll,
}

/// When a job is starving. Starving jobs have their turns first, the one that waits longest ahead of all others. If it
/// is refused, no other job starts in this cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Starving {
    /// After more than this many seconds in the queue.
    pub after_seconds: u64,
    /// A starving job that a limit on running jobs or a window refuses is passed over, and keeps nobody from starting.
    pub only_for_resources: bool,
}

impl Starving {
    /// Whether a job that arrived then is starving at a time.
    pub fn is_starving(&self, arrival: Timestamp, now: Timestamp) -> bool {
        let after = i64::try_from(self.after_seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        now.micros_since(arrival) > after
    }
}

/// How shares and usage choose the next job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FairShare {
    /// Where users are compared.
    pub compare: Compare,
    /// The attribute of jobs that is charged; one that a job does not have is 0.
    pub charge: String,
    /// The attribute that the charge is multiplied with; one that a job does not have is 1.
    pub times: Option<String>,
}

/// Times with another order and other rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OtherHours {
    /// The times, in their order, neither overlapping nor touching. They are instants, not local hours: so a plan
    /// depends on no table of time zones.
    pub periods: Vec<Period>,
    /// The order of jobs in them.
    pub order: Vec<OrderKey>,
    /// The rules in them.
    pub rules: TurnRules,
}

/// Times that belong to some queues: then only those are served, and at no other time. A job that may run past the
/// border of a window does not start before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Windows {
    /// The beginning of the names of the queues.
    pub queue_prefix: String,
    /// The times, in their order, neither overlapping nor touching.
    pub periods: Vec<Period>,
}

/// The parts of the machine that belong to users and groups, as a tree below the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShareTable {
    /// The shares of all users together who are not in the table, beside the groups below the whole machine.
    pub unknown_shares: u32,
    /// Groups and users, each behind its parent.
    pub members: Vec<Share>,
}

/// The shares of a group or user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// The parent: 0 for the whole machine, 1 for the group of unknown users, then the members from 2.
    pub parent: u32,
    /// Its shares of what the parent has.
    pub shares: u32,
}

impl Turns {
    /// Whether the other hours' order and rules hold at a time.
    pub fn is_other(&self, now: Timestamp) -> bool {
        self.other_hours.as_ref().is_some_and(|other| period_at(&other.periods, now).is_some())
    }

    /// The rules at a time.
    pub fn rules_at(&self, now: Timestamp) -> &TurnRules {
        match &self.other_hours {
            Some(other) if self.is_other(now) => &other.rules,
            _ => &self.rules,
        }
    }

    /// When the rules change next, or a window begins or ends.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let hours = self.other_hours.iter().filter_map(|other| border_after(&other.periods, now));
        let windows = self.windows.iter().filter_map(|windows| border_after(&windows.periods, now));
        hours.chain(windows).min()
    }

    /// Whether an order or a rule uses shares.
    pub fn uses_shares(&self, order: &[OrderKey]) -> bool {
        let others = self.other_hours.iter();
        let mut orders = others.clone().flat_map(|other| &other.order).chain(order);
        let mut rules = others.map(|other| &other.rules).chain([&self.rules]);
        orders.any(|key| *key == OrderKey::Share) || rules.any(|rules| rules.fair_share.is_some())
    }
}

impl Windows {
    /// Whether a queue is one of those that the windows belong to.
    pub fn owns(&self, queue: &str) -> bool {
        queue.starts_with(&self.queue_prefix)
    }

    /// The window at a time.
    pub fn current(&self, now: Timestamp) -> Option<Period> {
        period_at(&self.periods, now)
    }

    /// The end of the window at a time, or the begin of the next one.
    pub fn border(&self, now: Timestamp) -> Option<Timestamp> {
        border_after(&self.periods, now)
    }
}

impl ShareTable {
    /// The tree with the part of each member. A member whose parent does not stand before it belongs to the root.
    pub fn tree(&self) -> Shares {
        let mut shares = Shares::new(self.unknown_shares);
        for share in &self.members {
            let parent = share.parent as usize;
            let parent = if parent < shares.members().len() { parent } else { Shares::ROOT };
            shares.add(Member::new(&share.name, None, parent, share.shares));
        }
        shares.divide();
        shares
    }

    /// The table of a tree.
    pub fn of(tree: &Shares) -> Self {
        let share = |member: &Member| Share {
            name: member.name.clone(),
            parent: u32::try_from(member.parent).unwrap_or(0),
            shares: member.shares,
        };
        Self {
            unknown_shares: tree.members()[Shares::UNKNOWN].shares,
            members: tree.members().iter().skip(2).map(share).collect(),
        }
    }
}

/// The periods that are not over, of periods in their order.
fn not_over(periods: &[Period], now: Timestamp) -> &[Period] {
    &periods[periods.partition_point(|period| period.until <= now)..]
}

fn period_at(periods: &[Period], now: Timestamp) -> Option<Period> {
    not_over(periods, now).first().copied().filter(|period| period.from <= now)
}

fn border_after(periods: &[Period], now: Timestamp) -> Option<Timestamp> {
    let period = not_over(periods, now).first()?;
    Some(if period.from > now { period.from } else { period.until })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(from: i64, until: i64) -> Period {
        Period { from: Timestamp(from), until: Timestamp(until) }
    }

    #[test]
    fn a_period_ends_just_before_its_end() {
        let periods = vec![period(10, 20), period(30, 40)];
        let windows = Windows { queue_prefix: "own".into(), periods: periods.clone() };
        let at = |now| (windows.current(Timestamp(now)).is_some(), windows.border(Timestamp(now)).map(|at| at.0));
        assert_eq!(at(9), (false, Some(10)));
        assert_eq!(at(10), (true, Some(20)));
        assert_eq!(at(19), (true, Some(20)));
        assert_eq!(at(20), (false, Some(30)));
        assert_eq!(at(40), (false, None));
        let pool = TurnRules { visit: Visit::Pool, ..TurnRules::default() };
        let other_hours = Some(OtherHours { periods, order: Vec::new(), rules: pool });
        let turns = Turns { other_hours, windows: Some(windows), ..Turns::default() };
        assert_eq!(turns.rules_at(Timestamp(10)).visit, Visit::Pool);
        assert_eq!(turns.rules_at(Timestamp(20)).visit, Visit::QueueByQueue);
        assert_eq!(turns.next_change(Timestamp(15)), Some(Timestamp(20)));
    }

    #[test]
    fn a_table_of_shares_is_a_tree_and_back() {
        let share = |name: &str, parent, shares| Share { name: name.into(), parent, shares };
        let members = vec![share("physics", 0, 30), share("ann", 2, 1), share("bob", 2, 2)];
        let table = ShareTable { unknown_shares: 10, members };
        let tree = table.tree();
        assert_eq!(tree.find("bob").map(|member| member.part.to_string()), Some("1/2".into()));
        assert_eq!(tree.members()[Shares::UNKNOWN].part.to_string(), "1/4");
        assert_eq!(ShareTable::of(&tree), table);
    }
}
