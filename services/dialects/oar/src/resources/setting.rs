//! The settings of `oarnodesetting`.

use super::{
    table::Table,
    value::{Kind, Value},
};
use crate::text::{shown, suggestion};

/// Reads `-p name=value`, or `-p name!` to unset (OAR-C-11).
///
/// # Errors
/// A form that is neither, an unknown property, or a value of another type, as a sentence.
pub fn property(text: &str, table: &Table) -> Result<(String, Option<Value>), String> {
    let (name, word) = match (text.split_once('='), text.strip_suffix('!')) {
        (Some((name, word)), _) => (name, Some(word)),
        (None, Some(name)) => (name, None),
        (None, None) => return Err(format!("expected name=value or name!, found '{}'", shown(text))),
    };
    let name = name.trim().to_ascii_lowercase();
    let Some(kind) = table.fields().get(&name) else {
        let near = suggestion(&name, table.fields().keys().map(String::as_str));
        return Err(format!("no property is called '{}'{near}", shown(&name)));
    };
    let value = word.map(|word| read(*kind, &name, word)).transpose()?;
    Ok((name, value))
}

fn read(kind: Kind, name: &str, word: &str) -> Result<Value, String> {
    Value::read(kind, word).ok_or_else(|| format!("{name} is {}; '{}' is not", kind.word(), shown(word)))
}

/// Reads the value of `-m` or `-d`: `on` or `off`.
///
/// # Errors
/// Another word, as a sentence.
pub fn switch(word: &str) -> Result<bool, String> {
    match word.to_ascii_lowercase().as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("expected on or off, found '{}'", shown(word))),
    }
}
