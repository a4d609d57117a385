//! The rules that a site has by default before a job is stored (OAR-C-07).

use super::{submission::Submission, types::Kind};
use crate::{
    predicate::{Comparison, Operand, Predicate},
    refusal::{Code, Refusal},
    resources::{
        property::{BESTEFFORT, DEPLOY, DESKTOP_COMPUTING, DRAIN, ID, NODE},
        value::Value,
    },
    text::{shown, suggestion},
};

/// The rules that [`apply`] follows, in their order, as administrators are shown them.
pub const DEFAULT_RULES: [&str; 14] = [
    "A job without queue goes to the default queue; a queue that does not exist is refused",
    "Accounts of the system submit no jobs",
    "Resources that drain take no new jobs",
    "The queue of administrators is for their group",
    "System properties are no levels of requests",
    "Best-effort jobs and the queue for them belong together, and take resources with besteffort='YES'",
    "An inner job is a reservation only in a container that is one",
    "Deploy jobs take whole nodes with deploy='YES'",
    "Jobs for agents take resources with desktop_computing='YES', others never do",
    "A user has a limited number of reservations that wait",
    "Interactive jobs have a longest walltime",
    "A job without walltime gets the default one",
    "Types of jobs that nobody knows are refused",
    "A group without a word about the type asks for resources of type default",
];

/// What a site decides about submissions.
#[derive(Clone, Debug)]
pub struct SiteRules {
    /// The names of all queues.
    pub queues: Vec<String>,
    /// The queue of a job without one.
    pub default_queue: String,
    /// The queue of best-effort jobs.
    pub besteffort_queue: String,
    /// The queue of administrators.
    pub admin_queue: String,
    /// The group whose members may use it.
    pub admin_group: String,
    /// Accounts that submit no jobs.
    pub system_users: Vec<String>,
    /// The longest walltime of an interactive job, in seconds.
    pub interactive_walltime: i64,
    /// How many reservations of a user may wait.
    pub waiting_reservations: usize,
    /// Users without that limit.
    pub many_reservations: Vec<String>,
    /// Levels below nodes, which a deploy job cannot ask for.
    pub parts_of_nodes: Vec<String>,
}

impl Default for SiteRules {
    fn default() -> Self {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            queues: list(&["default", "besteffort", "admin"]),
            default_queue: "default".to_owned(),
            besteffort_queue: "besteffort".to_owned(),
            admin_queue: "admin".to_owned(),
            admin_group: "admin".to_owned(),
            system_users: list(&["root", "oar"]),
            interactive_walltime: 43_200,
            waiting_reservations: 2,
            many_reservations: Vec::new(),
            parts_of_nodes: list(&["cpu", "core", "thread", ID]),
        }
    }
}

/// The user who submits.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The user.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// How many of the user's reservations wait.
    pub waiting_reservations: usize,
}

/// A container that an inner job names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container {
    /// Whether it is a reservation.
    pub is_reservation: bool,
    /// Whether it has ended.
    pub is_over: bool,
}

/// Applies the rules to a submission: they may change it and refuse it. Returns the filter of the site for its
/// resources. `container` knows the containers by id and name.
///
/// # Errors
/// The text of the rule that refuses it (-2, -8).
pub fn apply(
    submission: &mut Submission,
    caller: &Caller,
    rules: &SiteRules,
    container: &dyn Fn(&str) -> Option<Container>,
) -> Result<Predicate, Refusal> {
    if rules.system_users.contains(&caller.user) {
        return refused(format!("the account {} submits no jobs", caller.user));
    }
    let queue = queue(submission, rules)?;
    if queue == rules.admin_queue && !caller.groups.contains(&rules.admin_group) {
        return refused(format!("the queue {queue} is for the group {}", rules.admin_group));
    }
    drop_no_quotas(submission, queue == rules.admin_queue);
    check_reservation(submission, caller, rules)?;
    check_inner(submission, container)?;
    check_deploy(submission, rules)?;
    cap_interactive(submission, rules);
    submission.queue = Some(queue);
    Ok(filter(submission))
}

fn refused<T>(message: String) -> Result<T, Refusal> {
    Err(Refusal::new(Code::Rule, message))
}

/// The queue of a job (OAR-T-20): best-effort jobs have their own, and jobs there are best effort.
fn queue(submission: &mut Submission, rules: &SiteRules) -> Result<String, Refusal> {
    let is_besteffort = submission.is(|kind| *kind == Kind::BestEffort);
    let given = submission.queue.clone();
    if let Some(queue) = given.as_ref().filter(|queue| !rules.queues.contains(queue)) {
        let near = suggestion(queue, rules.queues.iter().map(String::as_str));
        return Err(Refusal::option(Code::Queue, "-q", format!("no queue is called '{}'{near}", shown(queue))));
    }
    if is_besteffort {
        if given.as_ref().is_some_and(|queue| *queue != rules.besteffort_queue) {
            submission.warnings.push(format!("a best-effort job goes to the queue {}", rules.besteffort_queue));
        }
        return Ok(rules.besteffort_queue.clone());
    }
    if given.as_ref() == Some(&rules.besteffort_queue) {
        let name = "besteffort".to_owned();
        submission.types.push(super::types::Type { kind: Kind::BestEffort, text: name.clone(), name });
    }
    Ok(given.unwrap_or_else(|| rules.default_queue.clone()))
}

/// A user who lifts quotas is not obeyed (OAR-Q-09).
fn drop_no_quotas(submission: &mut Submission, is_admin: bool) {
    if !is_admin && submission.is(|kind| *kind == Kind::NoQuotas) {
        submission.types.retain(|one| one.kind != Kind::NoQuotas);
        submission.warnings.push("the type no_quotas is left out: only administrators lift quotas".to_owned());
    }
}

fn check_reservation(submission: &Submission, caller: &Caller, rules: &SiteRules) -> Result<(), Refusal> {
    if submission.reservation.is_none() {
        return Ok(());
    }
    if submission.is(|kind| *kind == Kind::BestEffort) {
        return refused("a best-effort job cannot be a reservation".to_owned());
    }
    let is_exempt = rules.many_reservations.contains(&caller.user);
    if !is_exempt && caller.waiting_reservations >= rules.waiting_reservations {
        let most = rules.waiting_reservations;
        return refused(format!("at most {most} reservations of a user may wait, and {most} do"));
    }
    Ok(())
}

/// Inner jobs need a container that lives (OAR-T-15), and a fixed start only fits inside another one (OAR-T-13).
fn check_inner(submission: &Submission, container: &dyn Fn(&str) -> Option<Container>) -> Result<(), Refusal> {
    for one in &submission.types {
        let Kind::Inner(name) = &one.kind else { continue };
        match container(name) {
            None => return refused(format!("no container has the id or name {name}")),
            Some(found) if found.is_over => return refused(format!("the container {name} has ended")),
            Some(found) if submission.reservation.is_some() && !found.is_reservation => {
                return refused(format!("an inner job of {name} cannot be a reservation: its container is none"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A node is deployed as a whole (OAR-T-61).
fn check_deploy(submission: &Submission, rules: &SiteRules) -> Result<(), Refusal> {
    if !submission.is(|kind| matches!(kind, Kind::Deploy(_))) {
        return Ok(());
    }
    let steps = submission.alternatives.iter().flat_map(|shape| &shape.groups).flat_map(|group| &group.path);
    for step in steps {
        if rules.parts_of_nodes.contains(&step.level) {
            let level = &step.level;
            return refused(format!(
                "nodes are deployed as a whole: the level {level} cannot be asked for, {NODE} can"
            ));
        }
    }
    Ok(())
}

fn cap_interactive(submission: &mut Submission, rules: &SiteRules) {
    if !submission.is_interactive {
        return;
    }
    for shape in submission.alternatives.iter_mut().filter(|shape| shape.walltime > rules.interactive_walltime) {
        shape.walltime = rules.interactive_walltime;
        submission
            .warnings
            .push(format!("the walltime is cut to {} s, the most of an interactive job", shape.walltime));
    }
}

/// The resources that a job of these types may have.
fn filter(submission: &Submission) -> Predicate {
    let says = |property: &str, word: &str| {
        let (property, value) = (Operand::Property(property.to_owned()), Operand::Literal(Value::text(word)));
        Predicate::Compare(property, Comparison::Equal, value)
    };
    let is_pulled = submission.is(|kind| *kind == Kind::DesktopComputing);
    let mut filter = says(DRAIN, "NO").and(says(DESKTOP_COMPUTING, if is_pulled { "YES" } else { "NO" }));
    if submission.is(|kind| *kind == Kind::BestEffort) {
        filter = filter.and(says(BESTEFFORT, "YES"));
    }
    if submission.is(|kind| matches!(kind, Kind::Deploy(_))) {
        filter = filter.and(says(DEPLOY, "YES"));
    }
    filter
}
