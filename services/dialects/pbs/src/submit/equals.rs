//! The list of one `-W`: `keyword=value,keyword=value`, where values may have commas.

use crate::{
    refusal::Refusal,
    text::{has_open_quote, split},
};

/// The longest text of one `-W`.
const MOST_BYTES: usize = 65_536;

/// Reads a list of keywords with their values. A comma separates only if an equals sign follows the next word, so that
/// `depend=afterok:1,afterany:2,block=true` has two keywords.
pub(super) fn parse(text: &str) -> Result<Vec<(&str, String)>, Refusal> {
    if text.len() > MOST_BYTES {
        return Err(Refusal::value("-W", text, format!("at most {MOST_BYTES} bytes are taken")));
    }
    if has_open_quote(text) {
        return Err(Refusal::value("-W", text, "a quote is not closed"));
    }
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for piece in split(text, ',') {
        match (piece.split_once('='), pairs.last_mut()) {
            (Some((keyword, value)), _) if is_keyword(keyword.trim()) => {
                pairs.push((keyword.trim(), value.trim().to_owned()));
            }
            (_, Some((_, value))) => {
                value.push(',');
                value.push_str(piece);
            }
            (_, None) => return Err(Refusal::value("-W", piece, "expected keyword=value")),
        }
    }
    match pairs.iter().find(|(_, value)| value.is_empty()) {
        Some((keyword, _)) => Err(Refusal::value("-W", keyword, "it has no value")),
        None => Ok(pairs),
    }
}

fn is_keyword(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
