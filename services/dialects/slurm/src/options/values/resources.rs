//! GPUs, generic resources and licences.

use super::{count, number};
use std::collections::BTreeMap;

/// GPUs, `[TYPE:]N[,...]`: the number, and the model if there is only one.
pub fn gpus(text: &str) -> Option<(u32, Option<String>)> {
    let parts = gpus_by_model(text)?;
    let total = parts.iter().try_fold(0_u32, |sum, (count, _)| sum.checked_add(*count))?;
    match &parts[..] {
        [(_, model)] => Some((total, model.clone())),
        _ => Some((total, None)),
    }
}

/// GPUs, `[TYPE:]N[,...]`, those of each model apart, and of no model in particular.
pub fn gpus_by_model(text: &str) -> Option<Vec<(u32, Option<String>)>> {
    let mut parts: Vec<(u32, Option<String>)> = Vec::new();
    for part in text.split(',') {
        let (model, amount) = match part.rsplit_once(':') {
            Some((model, amount)) => (Some(model), number(amount)?),
            None => number(part).map_or((Some(part), 1), |amount| (None, amount)),
        };
        if model.is_some_and(|model| model.is_empty() || !model.bytes().all(is_name_byte)) {
            return None;
        }
        match parts.iter_mut().find(|(_, known)| known.as_deref() == model) {
            Some((count, _)) => *count = count.checked_add(amount)?,
            None => parts.push((amount, model.map(str::to_owned))),
        }
    }
    Some(parts)
}

/// One generic resource of `--gres`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gres {
    /// Its name, such as `gpu`.
    pub name: String,
    /// Its type.
    pub model: Option<String>,
    /// The number on each node.
    pub count: u32,
}

/// The generic resources `NAME[:TYPE][:N][,...]`, also written `gres/NAME`; `none` is the empty list.
pub fn gres(text: &str) -> Option<Vec<Gres>> {
    if text.eq_ignore_ascii_case("none") {
        return Some(Vec::new());
    }
    text.split(',').map(one_gres).collect()
}

fn one_gres(text: &str) -> Option<Gres> {
    let text = text.strip_prefix("gres/").or_else(|| text.strip_prefix("gres:")).unwrap_or(text);
    let parts: Vec<&str> = text.split([':', '=']).collect();
    let (name, model, amount) = match parts[..] {
        [name] => (name, None, 1),
        [name, second] => scaled(second).map_or((name, Some(second), 1), |amount| (name, None, amount)),
        [name, model, amount] => (name, Some(model), scaled(amount)?),
        _ => return None,
    };
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(is_name_byte);
    let names = is_name(name) && model.is_none_or(is_name);
    names.then(|| Gres { name: name.to_owned(), model: model.map(str::to_owned), count: amount })
}

/// A count, optionally with a suffix for thousands and so on.
fn scaled(text: &str) -> Option<u32> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    number(digits)?.checked_mul(factor)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./".contains(&byte)
}

/// The licences `NAME[@SERVER][:N][,...]` (SL-C-13); `None` for anything else.
pub fn licences(text: &str) -> Option<BTreeMap<String, u32>> {
    let mut licences = BTreeMap::new();
    for part in text.split([',', ';']) {
        let (name, amount) =
            part.split_once([':', '=']).map_or(Some((part, 1)), |(name, n)| Some((name, count(n)?)))?;
        if name.is_empty() || !name.bytes().all(|byte| is_name_byte(byte) || byte == b'@') {
            return None;
        }
        let sum: &mut u32 = licences.entry(name.to_owned()).or_default();
        *sum = sum.checked_add(amount)?;
    }
    Some(licences)
}
