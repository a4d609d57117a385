//! Words of users in error messages.

/// The known word most similar to the given one, if any is similar.
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A word this long is not a misspelled known one, and a comparison takes the product of the lengths.
    if given.len() > 100 {
        return None;
    }
    let letters = given.chars().count();
    let distances = known.into_iter().map(|name| (strsim::damerau_levenshtein(given, name), name));
    // Half of the longer word: beyond that, any two words are similar.
    let (_, name) = distances.min().filter(|(distance, name)| *distance <= name.chars().count().max(letters) / 2)?;
    Some(name)
}

/// The text itself if it is short, else its beginning, with control characters made visible.
pub fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    let escape = |text: &str| -> String {
        text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
    };
    match text.char_indices().nth(MOST) {
        None => escape(text),
        Some((end, _)) => format!("{}...", escape(&text[..end])),
    }
}
