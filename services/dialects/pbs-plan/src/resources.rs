//! Lists of resources in a state file (PBS-Q-08).

use muster_pbs_policy::values;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Error as _},
};
use std::{collections::BTreeMap, fmt};

/// Resources whose values are times.
const TIMES: [&str; 3] = ["cput", "walltime", "pcput"];
/// Resources whose values are sizes.
const SIZES: [&str; 5] = ["mem", "vmem", "pmem", "pvmem", "file"];
/// The request for whole nodes, which is a text.
const NODES: &str = "nodes";

/// The value of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Seconds, kilobytes or a number.
    Number(u64),
    /// Any other text.
    Text(String),
}

/// Resources by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources(pub BTreeMap<String, Value>);

impl Resources {
    /// The number of a resource; `None` if it is unset or a text.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name)? {
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        }
    }

    /// The text of a resource; `None` if it is unset or a number.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Value::Text(text) => Some(text),
            Value::Number(_) => None,
        }
    }

    /// All numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter_map(|(name, value)| match value {
            Value::Number(number) => Some((name.as_str(), *number)),
            Value::Text(_) => None,
        })
    }

    /// All values as PBS writes them, such as `02:00:00`, `256000kb` and `4`.
    pub fn shown(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().map(|(name, value)| (name.as_str(), show(name, value)))
    }

    /// Sets a resource to what a person or a program writes.
    ///
    /// # Errors
    /// What was expected, if the text is no such value. Nothing was changed.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), &'static str> {
        self.0.insert(name.to_owned(), read(name, text)?);
        Ok(())
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The request for whole nodes.
    pub fn nodes(&self) -> Option<&str> {
        self.text(NODES)
    }

    /// These, and those of other lists that are not set here: the first list that has one decides.
    pub fn or(&self, others: [&Self; 2]) -> Self {
        let mut all = self.0.clone();
        for (name, value) in others.into_iter().flat_map(|other| &other.0) {
            all.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Self(all)
    }
}

impl Serialize for Resources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.shown())
    }
}

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> de::Visitor<'de> for Reader {
    type Value = Resources;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("resources by name")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Resources, A::Error> {
        let mut resources = Resources::default();
        while let Some(name) = map.next_key::<String>()? {
            let Words(text) = map.next_value()?;
            let value = read(&name, &text).map_err(|expected| {
                A::Error::custom(format!("resource {name}: expected {expected}, found `{text}`"))
            })?;
            if resources.0.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("resource {name} stands twice")));
            }
        }
        Ok(resources)
    }
}

fn show(name: &str, value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Number(seconds) if TIMES.contains(&name) => {
            format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
        Value::Number(kilobytes) if SIZES.contains(&name) => format!("{kilobytes}kb"),
        Value::Number(number) => number.to_string(),
    }
}

/// The value of a resource; what was expected if the text is none.
fn read(name: &str, text: &str) -> Result<Value, &'static str> {
    let number = |read: Option<u64>, expected| read.map(Value::Number).ok_or(expected);
    match name {
        NODES => Ok(Value::Text(text.to_owned())),
        _ if TIMES.contains(&name) => number(values::seconds(text), "HH:MM:SS, MM:SS or seconds"),
        _ if SIZES.contains(&name) => number(values::kilobytes(text), "a size such as 400mb"),
        "ncpus" | "nodect" => number(values::decimal(text), "a number"),
        _ => {
            let value = values::decimal(text).or_else(|| values::kilobytes(text)).or_else(|| values::seconds(text));
            Ok(value.map_or_else(|| Value::Text(text.to_owned()), Value::Number))
        }
    }
}

/// A text, or a number as a text.
pub struct Words(pub String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordReader)
    }
}

struct WordReader;

impl de::Visitor<'_> for WordReader {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a whole number from 0")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Words, E> {
        Ok(Words(number.to_string()))
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Words, E> {
        Ok(Words(flag.to_string()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words(text.to_owned()))
    }
}
