//! Checks the text of a configuration file against the list of keys.

use super::keys::{Kind, SECTIONS, Section, Shape};
use crate::{exit::Failure, values};
use std::{collections::BTreeMap, fmt::Display};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A file in which every key is known and every value has the right type and range, as text by `section.key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedFile {
    values: BTreeMap<String, String>,
}

impl CheckedFile {
    /// Reads the text. All errors are reported at once.
    pub fn check(name: &str, text: &str) -> Result<Self, Failure> {
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Failure::in_file(position(name, text, at), error.message())
        })?;
        let mut checker = Checker { text, faults: Vec::new(), values: BTreeMap::new() };
        for (key, value) in table.get_ref() {
            match outer_sections().find(|section| section.name == key.get_ref().as_ref()) {
                Some(section) => checker.section(section, value),
                None => {
                    let names = outer_sections().map(|section| section.name);
                    checker.unknown(key, names, "section", "");
                }
            }
        }
        let Some((at, first)) = checker.faults.first().cloned() else { return Ok(Self { values: checker.values }) };
        let others = checker.faults.iter().skip(1);
        let others: String = others.map(|(at, fault)| format!("\n{}: {fault}", position(name, text, *at))).collect();
        Err(Failure::in_file(position(name, text, at), first + &others))
    }

    /// Whether the file has this key.
    pub fn names(&self, section: &str, key: &str) -> bool {
        self.values.contains_key(&format!("{section}.{key}"))
    }

    /// Whether the file has a section that describes the cluster.
    pub fn describes_cluster(&self) -> bool {
        SECTIONS.iter().filter(|section| section.cluster).any(|section| {
            let prefix = format!("{}.", section.name);
            self.values.range(prefix.clone()..).next().is_some_and(|(key, _)| key.starts_with(&prefix))
        })
    }

    /// The keys outside the cluster's sections whose values differ between the files.
    pub fn process_keys_that_differ(&self, other: &Self) -> Vec<String> {
        let belongs_to_process = |key: &String| {
            let section = key.split('.').next().unwrap_or_default();
            !SECTIONS.iter().any(|known| known.cluster && known.name == section)
        };
        let keys: std::collections::BTreeSet<&String> = self.values.keys().chain(other.values.keys()).collect();
        keys.into_iter()
            .filter(|key| belongs_to_process(key) && self.values.get(*key) != other.values.get(*key))
            .cloned()
            .collect()
    }
}

struct Checker<'a> {
    text: &'a str,
    /// Byte offsets and the errors there.
    faults: Vec<(usize, String)>,
    values: BTreeMap<String, String>,
}

impl Checker<'_> {
    fn fault(&mut self, at: usize, message: impl Display) {
        self.faults.push((at, message.to_string()));
    }

    fn unknown<'k>(
        &mut self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        known: impl Iterator<Item = &'k str> + Clone,
        what: &str,
        place: &str,
    ) {
        let given = key.get_ref();
        let nearest = known
            .clone()
            .map(|name| (strsim::damerau_levenshtein(given, name), name))
            .min()
            .filter(|(distance, name)| *distance <= name.len().max(given.len()) / 2);
        let hint = match nearest {
            Some((_, name)) => format!("; nearest known {what} is `{name}`"),
            None => format!("; known are {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.fault(key.span().start, format!("unknown {what} `{}`{place}{hint}", values::shorten(given)));
    }

    fn section(&mut self, section: &Section, value: &Spanned<DeValue<'_>>) {
        let at = value.span().start;
        match (section.shape, value.get_ref()) {
            (Shape::Table, DeValue::Table(table)) => self.table(section, section.name, table),
            (Shape::Tables, DeValue::Array(array)) => {
                for (index, entry) in array.iter().enumerate() {
                    match entry.get_ref() {
                        DeValue::Table(table) => {
                            self.table(section, &format!("{}.{index}", section.name), table);
                            self.required(section, entry.span().start, table);
                        }
                        _ => self.fault(entry.span().start, format!("expected a table [[{}]]", section.name)),
                    }
                }
            }
            (Shape::Numbers, DeValue::Table(table)) => {
                for (key, value) in table {
                    let path = format!("{}.{}", section.name, key.get_ref());
                    self.value(&section.keys[0].kind, &path, value);
                }
            }
            (Shape::Tables, _) => self.fault(at, format!("expected tables, each under [[{}]]", section.name)),
            (Shape::Table | Shape::Numbers, _) => self.fault(at, format!("expected a table [{}]", section.name)),
        }
    }

    fn table(&mut self, section: &Section, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if let Some(known) = section.keys.iter().find(|known| known.name == name) {
                self.value(&known.kind, &format!("{path}.{name}"), value);
                continue;
            }
            match inner_sections(section).find(|(inner, _)| *inner == name) {
                Some((_, inner)) => self.section(inner, value),
                None => {
                    let keys = section.keys.iter().map(|known| known.name);
                    let names = keys.chain(inner_sections(section).map(|(inner, _)| inner));
                    self.unknown(key, names, "key", &format!(" in {}", section.title()));
                }
            }
        }
    }

    fn required(&mut self, section: &Section, at: usize, table: &DeTable<'_>) {
        for key in section.keys.iter().filter(|key| key.default.is_none()) {
            if !table.iter().any(|(given, _)| given.get_ref().as_ref() == key.name) {
                self.fault(at, format!("`{}` is missing in this {}", key.name, section.title()));
            }
        }
    }

    fn value(&mut self, kind: &Kind, path: &str, value: &Spanned<DeValue<'_>>) {
        let fits = match (kind, value.get_ref()) {
            (Kind::Boolean, DeValue::Boolean(_)) => Ok(()),
            (Kind::Integer { min, max }, DeValue::Integer(number)) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) if (*min..=*max).contains(&number) => Ok(()),
                    _ => Err(format!("{} is out of range: {}", number.as_str(), kind.range())),
                }
            }
            (Kind::Seconds, DeValue::Float(number)) => check_seconds(number.as_str()),
            (Kind::Seconds, DeValue::Integer(number)) => check_seconds(number.as_str()),
            (Kind::Text | Kind::Path, DeValue::String(_)) => Ok(()),
            (Kind::OneOf(words), DeValue::String(text)) if words.contains(&text.as_ref()) => Ok(()),
            (Kind::OneOf(_), DeValue::String(text)) => {
                Err(format!("`{}` is not {}", values::shorten(text), kind.range()))
            }
            (Kind::Texts, DeValue::Array(array)) if array.iter().all(|entry| entry.get_ref().is_str()) => Ok(()),
            (Kind::Nodes, DeValue::String(text)) => values::parse_hosts(text).map(drop),
            (Kind::NodeLists, DeValue::Array(array)) if array.iter().all(|entry| entry.get_ref().is_str()) => {
                let lists = array.iter().filter_map(|entry| entry.get_ref().as_str());
                lists.map(values::parse_hosts).try_for_each(|names| names.map(drop))
            }
            (Kind::Size, DeValue::String(text)) => values::parse_size(text).map(|_| ()),
            (Kind::Size, DeValue::Integer(number)) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(0..) => Ok(()),
                _ => Err(format!("{} is not a number of bytes", number.as_str())),
            },
            (Kind::Properties, DeValue::Table(table)) => {
                let fits = |value: &DeValue<'_>| value.is_bool() || value.is_integer() || value.is_str();
                match table.iter().find(|(_, value)| !fits(value.get_ref())) {
                    None => Ok(()),
                    Some((key, _)) => {
                        Err(format!("the property `{}` is not a truth value, a whole number or text", key.get_ref()))
                    }
                }
            }
            (Kind::NamedTexts, DeValue::Table(table)) => {
                match table.iter().find(|(_, value)| !value.get_ref().is_str()) {
                    None => Ok(()),
                    Some((key, _)) => Err(format!("`{}` is not text", key.get_ref())),
                }
            }
            (Kind::NamedNumbers, DeValue::Table(table)) => {
                match table.iter().find(|(_, value)| !is_count(value.get_ref())) {
                    None => Ok(()),
                    Some((key, _)) => Err(format!("`{}` is not a whole number from 0", key.get_ref())),
                }
            }
            (Kind::Route, DeValue::Table(table)) => {
                let fits = |key: &str, value: &DeValue<'_>| match key {
                    "destinations" => value.as_array().is_some_and(|all| all.iter().all(|one| one.get_ref().is_str())),
                    "held_jobs" | "waiting_jobs" => value.is_bool(),
                    "lifetime_seconds" => is_count(value),
                    _ => false,
                };
                match table.iter().find(|(key, value)| !fits(key.get_ref(), value.get_ref())) {
                    None => Ok(()),
                    Some((key, _)) => Err(format!("`{}` does not belong there, or has a wrong value", key.get_ref())),
                }
            }
            (Kind::Limits, DeValue::Table(table)) if is_limits(table) => Ok(()),
            (Kind::MakesWay, DeValue::Table(table)) => check_makes_way(table),
            (Kind::Increases, DeValue::Table(table)) => check_increases(table),
            (_, other) => Err(format!("expected {}, found {}", kind.range(), other.type_str())),
        };
        match fits {
            Ok(()) => {
                let text = self.text.get(value.span()).unwrap_or_default();
                self.values.insert(path.to_owned(), text.to_owned());
            }
            Err(reason) => {
                let key = path.rsplit('.').next().unwrap_or(path);
                self.fault(value.span().start, format!("`{key}`: {reason}"));
            }
        }
    }
}

/// Whether a value is a whole number from 0.
fn is_count(value: &DeValue<'_>) -> bool {
    let DeValue::Integer(number) = value else { return false };
    i64::from_str_radix(number.as_str(), number.radix()).is_ok_and(|number| number >= 0)
}

fn outer_sections() -> impl Iterator<Item = &'static Section> + Clone {
    SECTIONS.iter().filter(|section| !section.name.contains('.'))
}

/// The sections inside a section, by the last part of their names.
fn inner_sections(section: &Section) -> impl Iterator<Item = (&'static str, &'static Section)> + Clone {
    let prefix = section.name;
    SECTIONS.iter().filter_map(move |inner| Some((inner.name.strip_prefix(prefix)?.strip_prefix('.')?, inner)))
}

fn check_seconds(text: &str) -> Result<(), String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=31_536_000.0).contains(&seconds) => Ok(()),
        _ => Err(format!("{text} is out of range: {}", Kind::Seconds.range())),
    }
}

fn is_limits(table: &DeTable<'_>) -> bool {
    let is_amount = |name: &str| {
        table.iter().any(|(key, value)| {
            let number = value
                .get_ref()
                .as_integer()
                .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
            key.get_ref().as_ref() == name && number.is_some_and(|number| number >= 0)
        })
    };
    table.len() == 2 && is_amount("max_age_seconds") && is_amount("max_bytes")
}

fn check_makes_way(table: &DeTable<'_>) -> Result<(), String> {
    let fits = |key: &str, value: &DeValue<'_>| match key {
        "by" => value.as_str().is_some_and(|word| ["requeue", "cancel", "suspend"].contains(&word)),
        "grace_seconds" => is_count(value),
        _ => false,
    };
    match table.iter().find(|(key, value)| !fits(key.get_ref(), value.get_ref())) {
        None => Ok(()),
        Some((key, _)) => {
            let key = values::shorten(key.get_ref());
            Err(format!("`{key}` does not belong there, or has a wrong value: expected {}", Kind::MakesWay.range()))
        }
    }
}

fn check_increases(table: &DeTable<'_>) -> Result<(), String> {
    for (key, value) in table {
        let (key, value) = (key.get_ref().as_ref(), value.get_ref());
        let is_count = || {
            let number = value.as_integer();
            let number = number.and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
            number.is_some_and(|number| number >= 0)
        };
        let is_list = || value.as_array().is_some_and(|list| list.iter().all(|entry| entry.get_ref().is_str()));
        match key {
            "max_seconds" | "min_walltime_seconds" | "apply_seconds" | "step_seconds" if is_count() => {}
            "may_force" | "may_delay" if is_list() => {}
            "max_seconds" | "min_walltime_seconds" | "apply_seconds" | "step_seconds" => {
                return Err(format!("`{key}` is not a number of seconds"));
            }
            "may_force" | "may_delay" => return Err(format!("`{key}` is not a list of users")),
            _ => return Err(format!("`{}` is not known: expected {}", values::shorten(key), Kind::Increases.range())),
        }
    }
    Ok(())
}

/// The place of a value of a file, such as `energy.keep_awake[0]`; the file's name if there is no such value.
pub fn place_of(name: &str, text: &str, path: &str) -> String {
    offset_of(text, path).map_or_else(|| name.to_owned(), |at| position(name, text, at))
}

fn offset_of(text: &str, path: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut steps = path.split(['.', '[']).map(|step| step.trim_end_matches(']'));
    let mut value = entry_of(table.get_ref(), steps.next()?)?;
    for step in steps {
        value = match value.get_ref() {
            DeValue::Table(table) => entry_of(table, step)?,
            DeValue::Array(array) => array.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value.span().start)
}

fn entry_of<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
}

/// `FILE:LINE:COLUMN` of a byte offset.
pub fn position(name: &str, text: &str, at: usize) -> String {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before[before.rfind('\n').map_or(0, |end| end + 1)..].chars().count() + 1;
    format!("{name}:{line}:{column}")
}
