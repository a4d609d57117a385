//! The options of each component of a job, after precedence (SL-E-12) and propagation (SL-O-01 to O-07), and the job
//! that they describe.

mod geometry;
mod gpus;
mod lower;
mod sizing;
mod times;

use crate::{
    messages::Refusal,
    moment::Now,
    options::{Command, CommandLine, Given, OPTIONS, OptionSpec, Place, values::Kind},
    steps::Part,
};
pub use geometry::Geometry;
pub use gpus::{StepTasks, check as check_gpus, first_and_more as first_and_more_gpus, on_each as gpus_on_each};
pub use lower::{Caller, Interactive, Names, Program, Rules, ScriptSource, Submission, lower};
pub use sizing::{few_switches, warnings, without_effect};
use std::collections::BTreeMap;
pub use times::{limits_until_deadline, seconds_until};

/// The source of a value; a later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The script's option lines.
    Script,
    /// A variable.
    Environment,
    /// The command line.
    CommandLine,
}

/// The options in force for one component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
}

#[derive(Clone, Debug, PartialEq)]
struct Setting {
    given: Given,
    source: Source,
    /// Whether it was given for this component, not carried over from an earlier one.
    own: bool,
}

/// Options of which only one can be in force: setting one drops the others.
const RIVALS: [&[&str]; 2] = [&MEMORY, &["requeue", "no-requeue"]];
const MEMORY: [&str; 3] = ["mem", "mem-per-cpu", "mem-per-gpu"];

/// The options that exclude a given one.
fn rivals(name: &str) -> impl Iterator<Item = &str> {
    let group = RIVALS.iter().find(|group| group.contains(&name)).copied().unwrap_or_default();
    group.iter().copied().filter(move |rival| *rival != name)
}

impl Settings {
    /// Whether an option is given.
    pub fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of an option, empty if it is given without one; `None` if it is not given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|setting| setting.given.text())
    }

    /// The value of an option, read by a function; `None` if it is not given or the function does not know it.
    pub fn value<T>(&self, name: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.text(name).and_then(read)
    }

    /// Where the value of an option comes from.
    pub fn source(&self, name: &str) -> Option<Source> {
        self.values.get(name).map(|setting| setting.source)
    }

    /// The options in force, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static OptionSpec, &str)> {
        self.values.values().map(|setting| (setting.given.option, setting.given.text()))
    }

    /// Those from the command line.
    pub(crate) fn of_command_line(&self) -> Self {
        let given = self.values.iter().filter(|(_, setting)| setting.source == Source::CommandLine);
        Self { values: given.map(|(name, setting)| (*name, setting.clone())).collect() }
    }

    /// The options that carry over to the next component (SL-O-01, SL-O-02).
    fn carried(&self) -> Self {
        let carried = self.values.iter().filter(|(_, setting)| setting.given.option.carried);
        let values = carried.map(|(name, setting)| (*name, Setting { own: false, ..setting.clone() })).collect();
        Self { values }
    }

    fn take(&mut self, options: Vec<Given>, source: Source, now: &Now) -> Result<(), Refusal> {
        for given in options {
            given.check(now)?;
            let name = given.option.name;
            // A default does not replace a value from the command line for an earlier component.
            if source == Source::Environment && self.was_asked_for(name) {
                continue;
            }
            self.drop_rivals(name, source)?;
            self.values.insert(name, Setting { given, source, own: true });
        }
        Ok(())
    }

    /// Takes the options of a command-line group, which come last.
    fn take_group(&mut self, command_line: &CommandLine, place: usize, now: &Now) -> Result<(), Refusal> {
        let group = command_line.groups.get(place).map(|group| group.options.clone());
        self.take(group.unwrap_or_default(), Source::CommandLine, now)?;
        self.settle_specialised()
    }

    /// Whether this option, or one that it would drop, was carried over from the command line.
    fn was_asked_for(&self, name: &str) -> bool {
        let from_line = |setting: &Setting| !setting.own && setting.source == Source::CommandLine;
        rivals(name).chain([name]).any(|name| self.values.get(name).is_some_and(from_line))
    }

    /// Drops the options that exclude a given one (SL-O-06).
    fn drop_rivals(&mut self, name: &str, source: Source) -> Result<(), Refusal> {
        for rival in rivals(name) {
            let dropped = self.values.remove(rival);
            if MEMORY.contains(&rival) && dropped.is_some_and(|dropped| dropped.own && dropped.source == source) {
                return Err(Refusal::MemoryOptionsClash);
            }
        }
        Ok(())
    }

    /// Only one of specialised cores and threads can be requested; variables give way to other sources.
    fn settle_specialised(&mut self) -> Result<(), Refusal> {
        let by_variables = |name| self.source(name).map(|source| source == Source::Environment);
        match (by_variables("core-spec"), by_variables("thread-spec")) {
            (Some(true), Some(false)) => drop(self.values.remove("core-spec")),
            (Some(false), Some(true)) => drop(self.values.remove("thread-spec")),
            (Some(by_variables), Some(_)) => return Err(Refusal::SpecialisedCoresClash { by_variables }),
            _ => {}
        }
        Ok(())
    }
}

/// The options of each component: its section of the script, overridden by the defaults of the environment, overridden
/// by its group on the command line (SL-S-07, SL-S-08, SL-E-12). Carried options apply to later components until they
/// are given again. There are as many components as sections or groups, whichever are more.
///
/// # Errors
/// A value that its option does not take, or options that exclude each other.
pub fn components(
    script: &[Vec<Given>],
    environment: &[Given],
    command_line: &CommandLine,
    now: &Now,
) -> Result<Vec<Settings>, Refusal> {
    let count = script.len().max(command_line.groups.len()).max(1);
    let mut components: Vec<Settings> = Vec::with_capacity(count);
    for offset in 0..count {
        let mut settings = components.last().map(Settings::carried).unwrap_or_default();
        settings.take(script.get(offset).cloned().unwrap_or_default(), Source::Script, now)?;
        settings.take(environment.to_vec(), Source::Environment, now)?;
        settings.take_group(command_line, offset, now)?;
        components.push(settings);
    }
    Ok(components)
}

/// The options of each part of a step: those of its group and those carried over from earlier groups, which override
/// the environment's defaults for its component (SL-O-07, SL-R-13).
///
/// # Errors
/// See [`components`].
pub fn step_parts(
    command_line: &CommandLine,
    parts: &[Part],
    environment: impl Fn(u32) -> Vec<Given>,
    now: &Now,
) -> Result<Vec<Settings>, Refusal> {
    let alone = components(&[], &[], command_line, now)?;
    let of_part = |part: &Part| {
        let before = part.group.checked_sub(1).and_then(|before| alone.get(before));
        let mut settings = before.map(Settings::carried).unwrap_or_default();
        // The variable has the name of the job, which is not that of each of its steps.
        let defaults = environment(part.component).into_iter().filter(|given| given.option.name != "job-name");
        settings.take(defaults.collect(), Source::Environment, now)?;
        settings.take_group(command_line, part.group, now)?;
        Ok(settings)
    };
    parts.iter().map(of_part).collect()
}

/// The lines of `-v`: the options in force for a component (SL-C-08).
pub fn listing(command: Command, settings: &Settings, verbosity: usize) -> Vec<String> {
    let line = |name: &str, value: &str| format!("{command}: {name:<20}: {value}");
    let rule = format!("{command}: {0} {0}", "-".repeat(20));
    let mut lines = vec![format!("{command}: defined options"), rule.clone()];
    for option in OPTIONS.iter().filter(|option| option.commands.contains(command)) {
        // It may come from a variable that belongs to no option.
        let verbose = (option.name == "verbose").then_some("");
        let Some(text) = settings.text(option.name).or(verbose) else { continue };
        lines.push(match (option.name, option.kind()) {
            ("verbose", _) => line("verbose", &verbosity.to_string()),
            (name, None) => line(name, "set"),
            (name, Some(Kind::Time)) => {
                let limit = crate::duration::TimeLimit::parse(text);
                line(name, &limit.map_or_else(|| text.to_owned(), |limit| limit.to_string()))
            }
            (name, Some(Kind::Megabytes)) => {
                let size = crate::size::parse_megabytes(text).map(crate::size::show_megabytes);
                line(name, &size.unwrap_or_else(|| text.to_owned()))
            }
            (name, Some(_)) => line(name, if text.is_empty() { "set" } else { text }),
        });
    }
    let of_site = settings.iter().filter(|(option, _)| option.place == Place::Site);
    lines.extend(of_site.map(|(option, text)| line(option.name, if text.is_empty() { "set" } else { text })));
    lines.extend([rule, format!("{command}: end of defined options")]);
    if verbosity > 1 {
        lines.extend(settings.values.values().map(|setting| {
            let from = match setting.source {
                Source::Script => "the script",
                Source::Environment => "the environment",
                Source::CommandLine => "the command line",
            };
            format!("{command}: debug:  {} is from {from}", setting.given.option.name)
        }));
    }
    lines
}
