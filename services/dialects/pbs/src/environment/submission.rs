//! The part of a job's environment that is known when it is submitted.

use crate::{
    chunks,
    flavour::Flavour,
    submit::{Caller, Rules},
    variables::Variable,
};
use std::collections::BTreeMap;

/// The variable of a job that gets the environment of a login on its node.
pub const LOADS_LOGIN: &str = "MUSTER_PBS_LOGIN";
/// The variable of a job with the limits of its processes, such as `fsize=1024,cpu=60`.
pub const LIMITS: &str = "MUSTER_PBS_LIMITS";
/// The variable of a job with the member of the family that it was submitted to, unless that is PBS Pro.
pub const FLAVOUR: &str = "MUSTER_PBS_FLAVOUR";

/// Variables about the submitter, with the names that a job sees.
const OF_SUBMITTER: [(&str, &str); 7] = [
    ("HOME", "PBS_O_HOME"),
    ("LANG", "PBS_O_LANG"),
    ("LOGNAME", "PBS_O_LOGNAME"),
    ("PATH", "PBS_O_PATH"),
    ("MAIL", "PBS_O_MAIL"),
    ("SHELL", "PBS_O_SHELL"),
    ("TZ", "PBS_O_TZ"),
];

/// Variables that every job gets from its submitter's environment.
const BASE: [&str; 4] = ["HOME", "LOGNAME", "SHELL", "USER"];

/// What the environment of a new job depends on.
#[derive(Clone, Debug)]
pub struct Submitted<'a> {
    /// The submitter.
    pub caller: &'a Caller,
    /// The site's rules.
    pub rules: &'a Rules,
    /// `-v`.
    pub variables: &'a [Variable],
    /// `-V`.
    pub all_variables: bool,
    /// `-I`.
    pub is_interactive: bool,
    /// `-q`.
    pub queue: Option<&'a str>,
    /// `-A`, if the job has a project beside it, which is its account here.
    pub account: Option<&'a str>,
    /// The text of the job's [`ChunkPlan`](chunks::ChunkPlan).
    pub chunks: String,
    /// The limits of its processes, as [`LIMITS`] has them.
    pub limits: Option<String>,
}

/// Variables of a job that submits another one, which are not those of the other.
fn is_of_outer_job(name: &str) -> bool {
    name.starts_with("PBS_") || name.starts_with("MUSTER_PBS_")
}

/// The environment of a new job. A variable of `-v` that is not set gets a warning.
pub fn of_submission(submitted: &Submitted<'_>, warnings: &mut Vec<String>) -> BTreeMap<String, String> {
    let Submitted { caller, rules, .. } = submitted;
    let is_chosen = |name: &str| (submitted.all_variables || BASE.contains(&name)) && !is_of_outer_job(name);
    let from_caller = caller.environment.iter().filter(|(name, _)| is_chosen(name)).cloned();
    let mut environment: BTreeMap<String, String> = from_caller.collect();
    for variable in submitted.variables {
        match variable.value.as_deref().or_else(|| caller.variable(&variable.name)) {
            Some(value) => drop(environment.insert(variable.name.clone(), value.to_owned())),
            None => warnings.push(format!("warning: -v {}: this variable is not set", variable.name)),
        }
    }
    let mut set = |name: &str, value: &str| {
        environment.insert(name.to_owned(), value.to_owned());
    };
    for (name, shown) in OF_SUBMITTER {
        if let Some(value) = caller.variable(name) {
            set(shown, value);
        }
    }
    set("PBS_O_WORKDIR", &caller.directory);
    set("PBS_O_HOST", &caller.host);
    set("PBS_O_SYSTEM", "Linux");
    set("PBS_O_SERVER", &rules.server);
    set("PBS_SERVER", &rules.server);
    if let Some(queue) = submitted.queue {
        set("PBS_O_QUEUE", queue);
    }
    if let Some(account) = submitted.account {
        set("PBS_ACCOUNT", account);
    }
    set("PBS_ENVIRONMENT", if submitted.is_interactive { "PBS_INTERACTIVE" } else { "PBS_BATCH" });
    set(chunks::VARIABLE, &submitted.chunks);
    if let Some(limits) = &submitted.limits {
        set(LIMITS, limits);
    }
    // A job that does not take its submitter's whole environment has that of a login.
    if !submitted.all_variables {
        set(LOADS_LOGIN, "1");
    }
    if rules.flavour == Flavour::Torque {
        set(FLAVOUR, rules.flavour.word());
    }
    environment
}
