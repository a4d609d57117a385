//! Turns options into changes of a job's description, or into the task of a command.

use super::{OptionError, table::Meaning};
use crate::{
    codes::{Code, Refusal},
    description::{
        JobDescription, TaskDescription,
        attributes::{Attribute, TaskAttribute, check_variable},
        values::{Names, TaskType, UnitType, Value as _},
    },
    size,
    sweep::Sweep,
};

/// One change of a job's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets an attribute from the text; `None` makes it "not specified".
    Set(Attribute, Option<String>),
    /// Sets a custom property.
    Property(String, String),
    /// Sets a variable of the job.
    Variable(String, String),
    /// Excludes these nodes as well.
    Exclude(Vec<String>),
    /// No longer excludes these nodes.
    Include(Vec<String>),
}

impl Edit {
    /// Applies the change.
    ///
    /// # Errors
    /// A value that the description cannot have; nothing is changed then.
    pub fn apply(&self, job: &mut JobDescription) -> Result<(), Refusal> {
        match self {
            Self::Set(attribute, text) => job.attributes.set(*attribute, text.as_deref())?,
            Self::Property(name, value) => job.custom_properties.set(name, value)?,
            Self::Variable(name, value) => {
                check_variable(name, value)?;
                job.environment.insert(name.clone(), value.clone());
            }
            Self::Exclude(nodes) => {
                let excluded = &mut job.attributes.excluded_nodes.get_or_insert_default().0;
                let new = nodes.iter().filter(|node| !excluded.contains(*node)).cloned().collect::<Vec<_>>();
                excluded.extend(new);
            }
            Self::Include(nodes) => {
                if let Some(excluded) = &mut job.attributes.excluded_nodes {
                    excluded.0.retain(|node| !nodes.contains(node));
                }
            }
        }
        Ok(())
    }
}

fn not_valid(text: String) -> Refusal {
    Refusal::new(Code::JobXmlNotValid, text)
}

/// The checked changes of the job that an option makes; `None` if it is about the task.
pub(super) fn job_edits(meaning: Meaning, value: &str) -> Result<Option<Vec<Edit>>, Refusal> {
    let edits = match meaning {
        // An empty value resets the attribute to "not specified".
        Meaning::Job(attribute) => vec![Edit::Set(attribute, Some(value.to_owned()).filter(|value| !value.is_empty()))],
        Meaning::JobSize(unit) => size_edits(unit, value)?,
        Meaning::JobRange(min, max) => {
            let (least, most) = value.split_once('-').map_or((value, None), |(least, most)| (least, Some(most)));
            vec![Edit::Set(min, Some(least.to_owned())), Edit::Set(max, most.map(str::to_owned))]
        }
        Meaning::JobVariables => pairs(value)?.into_iter().map(|(name, value)| Edit::Variable(name, value)).collect(),
        Meaning::Properties => pairs(value)?.into_iter().map(|(name, value)| Edit::Property(name, value)).collect(),
        Meaning::Exclude => vec![Edit::Exclude(Names::read(value)?.0)],
        Meaning::Include => vec![Edit::Include(Names::read(value)?.0)],
        Meaning::ExcludeNone => vec![Edit::Set(Attribute::ExcludedNodes, None)],
        Meaning::Task(_) | Meaning::TaskSize(_) | Meaning::Sweep | Meaning::TaskVariables | Meaning::Other => {
            return Ok(None);
        }
    };
    let mut scratch = JobDescription::default();
    edits.iter().try_for_each(|edit| edit.apply(&mut scratch))?;
    Ok(Some(edits))
}

/// A bound of a size: a number, or `*` for a computed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Number(i32),
    Computed,
}

/// `<min>[-<max>]`; one number is both, and `*` is computed (HPC-C-05).
fn size_of(text: &str) -> Result<(Bound, Bound), Refusal> {
    let bound = |text: &str| match text {
        "*" => Some(Bound::Computed),
        digits => digits.parse().ok().filter(|number| *number > 0).map(Bound::Number),
    };
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    match (bound(min), bound(max)) {
        (Some(Bound::Number(min)), Some(Bound::Number(max))) if min > max => {
            Err(Refusal::new(Code::SizeNotValid, format!("`{text}`: the minimum is more than the maximum")))
        }
        (Some(min), Some(max)) => Ok((min, max)),
        _ => Err(Refusal::new(Code::SizeNotValid, format!("`{text}`: expected MIN, MIN-MAX or *, each 1 or more"))),
    }
}

fn size_edits(unit: UnitType, text: &str) -> Result<Vec<Edit>, Refusal> {
    let (min, max) = size_of(text)?;
    let (min_name, max_name) = size::attributes_of(unit);
    let set = |attribute: Attribute, bound: Bound| match bound {
        Bound::Number(number) => Edit::Set(attribute, Some(number.to_string())),
        Bound::Computed => Edit::Set(attribute, None),
    };
    let computed = |bound: Bound| Some((bound == Bound::Computed).to_string());
    Ok(vec![
        Edit::Set(Attribute::UnitType, Some(unit.to_string())),
        set(min_name, min),
        set(max_name, max),
        Edit::Set(Attribute::AutoCalculateMin, computed(min)),
        Edit::Set(Attribute::AutoCalculateMax, computed(max)),
    ])
}

/// `name=value;name=value`.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let pair = |item: &str| match item.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err(not_valid(format!("`{item}`: expected NAME=VALUE, separated by `;`"))),
    };
    text.split(';').filter(|item| !item.trim().is_empty()).map(pair).collect()
}

/// The task that options and a command describe.
#[derive(Debug, Default)]
pub(super) struct TaskMaker {
    task: TaskDescription,
    /// Whether an option was about the task alone.
    is_used: bool,
}

impl TaskMaker {
    /// Whether an option was about the task, so that a command must follow.
    pub(super) const fn is_used(&self) -> bool {
        self.is_used
    }

    /// Applies an option about the task.
    pub(super) fn take(&mut self, meaning: Meaning, value: &str) -> Result<(), Refusal> {
        self.is_used = true;
        match meaning {
            Meaning::Task(attribute) => self.task.attributes.set(attribute, Some(value)),
            Meaning::TaskSize(unit) => self.set_size(unit, value),
            Meaning::Sweep => self.set_sweep(value),
            Meaning::TaskVariables => pairs(value)?.into_iter().try_for_each(|(name, value)| {
                check_variable(&name, &value)?;
                self.task.environment.insert(name, value);
                Ok(())
            }),
            _ => Ok(()),
        }
    }

    /// Uses the size of the job for the task.
    pub(super) fn take_size(&mut self, meaning: Meaning, value: &str) -> Result<(), Refusal> {
        match meaning {
            Meaning::JobSize(unit) => self.set_size(unit, value),
            _ => Ok(()),
        }
    }

    fn set_size(&mut self, unit: UnitType, text: &str) -> Result<(), Refusal> {
        let (min, max) = size_of(text)?;
        let number = |bound: Bound| match bound {
            Bound::Number(number) => Some(number),
            Bound::Computed => None,
        };
        let attributes = &mut self.task.attributes;
        attributes.unit_type = Some(unit);
        match unit {
            UnitType::Core => (attributes.min_cores, attributes.max_cores) = (number(min), number(max)),
            UnitType::Socket => (attributes.min_sockets, attributes.max_sockets) = (number(min), number(max)),
            UnitType::Node => (attributes.min_nodes, attributes.max_nodes) = (number(min), number(max)),
        }
        Ok(())
    }

    /// `[<start>-]<end>[:<increment>]`.
    fn set_sweep(&mut self, text: &str) -> Result<(), Refusal> {
        let (range, increment) = text.split_once(':').unwrap_or((text, "1"));
        let (start, end) = range.split_once('-').unwrap_or(("1", range));
        let number = |text: &str| {
            let expected = format!("`{text}`: expected a sweep such as 100, 1-100 or 1-100:2");
            text.parse::<i32>().map_err(|_| not_valid(expected))
        };
        let (start, end, increment) = (number(start)?, number(end)?, number(increment)?);
        Sweep::new(start, end, increment)?;
        let attributes = &mut self.task.attributes;
        attributes.task_type = Some(TaskType::ParametricSweep);
        attributes.start_value = Some(start);
        attributes.end_value = Some(end);
        attributes.increment_value = Some(increment);
        Ok(())
    }

    /// The task with its command: one word is a command line as it stands, several are joined so that a shell would
    /// split them the same way.
    pub(super) fn finish(mut self, words: &[&str]) -> Result<TaskDescription, OptionError> {
        let command = match words {
            [] => return Err(OptionError::Usage("expected the command of the task".into())),
            [line] => (*line).to_owned(),
            words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        };
        let set = self.task.attributes.set(TaskAttribute::CommandLine, Some(&command));
        set.map_err(|refusal| OptionError::Refused { option: "command".to_owned(), refusal })?;
        Ok(self.task)
    }
}

/// A word quoted for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
