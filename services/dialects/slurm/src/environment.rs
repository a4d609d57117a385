//! The environment: option defaults that come from it, the part of it that a job gets, and the variables that jobs,
//! allocation commands and tasks see (SL-E).

mod facts;
mod limits;
mod output;
mod said;

use crate::options::{Argument, Command, Given, OPTIONS, site};
pub use facts::of_run;
pub use limits::{LIMIT_VARIABLE, RESOURCES, SoftLimit, propagate, resource, soft_limits};
pub use output::{
    StepFacts, StepPart, is_asked_for, mask, of_allocation, of_batch_script, of_gpus, of_task, with_pack_names,
};
pub use said::{ArrayFacts, BINDING_OPTIONS, ComponentFacts, GPU_OPTIONS, JobFacts};
use std::collections::BTreeMap;

/// The defaults of a command's options from the environment (SL-E-11). The presence of its variable sets a flag.
///
/// With a component, for a step in a heterogeneous job: a variable with the suffix `_HET_GROUP_n` takes precedence,
/// and a plain variable about sizes is ignored, because it is that of the first component.
pub fn defaults(command: Command, component: Option<u32>, lookup: impl Fn(&str) -> Option<String>) -> Vec<Given> {
    let of_command = OPTIONS.iter().filter(|option| option.commands.contains(command));
    let mut given = Vec::new();
    for option in of_command {
        let with_suffix = |name: &String| component.and_then(|offset| lookup(&format!("{name}_HET_GROUP_{offset}")));
        let plain = |name: &String| lookup(name).filter(|_| component.is_none() || !is_sizing(option.name));
        let Some(value) = option.variables_of(command).find_map(|name| with_suffix(&name).or_else(|| plain(&name)))
        else {
            continue;
        };
        match option.argument {
            Argument::Flag => given.push(Given { option, value: None }),
            Argument::Optional(_) => given.push(Given { option, value: Some(value).filter(|value| !value.is_empty()) }),
            Argument::Required(_) if value.is_empty() => {}
            Argument::Required(_) => given.push(Given { option, value: Some(value) }),
        }
    }
    given
}

/// Options with a variable for each component in a heterogeneous job (SL-E-03).
fn is_sizing(name: &str) -> bool {
    matches!(name, "ntasks" | "nodes" | "cpus-per-task" | "ntasks-per-node" | "mem" | "mem-per-cpu")
}

/// The number of `-v` in the environment: the value of `SBATCH_DEBUG`, `SALLOC_DEBUG` or `SLURM_DEBUG`.
pub fn verbosity(command: Command, lookup: impl Fn(&str) -> Option<String>) -> usize {
    let value = lookup(&format!("{}DEBUG", command.variable_prefix()));
    value.map_or(0, |value| value.trim().parse().unwrap_or(0)).min(9)
}

/// The part of the submitting command's environment that a job or step gets (SL-E-13): with `ALL` (the default)
/// everything, with `NONE` and `NIL` nothing, with names those, with `NAME=VALUE` that. Variables of Slurm and of the site's options always pass.
pub fn of_job(export: Option<&str>, environment: &[(String, String)]) -> BTreeMap<String, String> {
    let entries = export.map_or_else(|| vec!["ALL".to_owned()], split_entries);
    let is = |word: &str| entries.iter().any(|entry| entry.eq_ignore_ascii_case(word));
    let everything = is("ALL");
    let is_own = |name: &str| name.starts_with("SLURM_") || name.starts_with("SPANK_") || site::is_variable(name);
    let mut chosen: BTreeMap<String, String> =
        environment.iter().filter(|(name, _)| everything || is_own(name)).cloned().collect();
    if is("NONE") || is("NIL") {
        return chosen;
    }
    for entry in entries.iter().filter(|entry| !entry.eq_ignore_ascii_case("ALL")) {
        match entry.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                chosen.insert(name.to_owned(), value.to_owned());
            }
            Some(_) => {}
            None => chosen.extend(environment.iter().filter(|(name, _)| name == entry).cloned()),
        }
    }
    chosen
}

/// The variable of a batch script that makes its node load its user's login environment.
pub const LOADS_LOGIN: &str = "SLURM_GET_USER_ENV";

/// With the value `1`, what runs in the job also gets the old names of the variables of heterogeneous jobs (SL-E-14).
pub const PACK_NAMES: &str = "MUSTER_SLURM_PACK_NAMES";

/// Whether a batch script gets its user's login environment: it replaces what `--export` leaves out of the submitter's
/// environment, but not with `NIL`.
pub fn loads_login(export: Option<&str>) -> bool {
    let is = |entry: &String, word: &str| entry.eq_ignore_ascii_case(word);
    export.map(split_entries).is_some_and(|entries| !entries.iter().any(|entry| is(entry, "ALL") || is(entry, "NIL")))
}

/// The variables in a file of `--export-file`, each as `NAME=VALUE`: followed by a NUL, so that values can have several
/// lines, or else one per line.
pub fn of_file(text: &str) -> Vec<(String, String)> {
    let end = if text.contains('\0') { '\0' } else { '\n' };
    let named = text.split(end).filter_map(|entry| entry.split_once('='));
    named.filter(|(name, _)| !name.is_empty()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The entries between commas outside quotes, without the quotes.
fn split_entries(text: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, ',') => entries.push(String::new()),
            (_, c) => entries.last_mut().into_iter().for_each(|entry| entry.push(c)),
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}
