//! Given texts, as they appear in messages.

/// The text itself if it is short, else its beginning: it can be megabytes long.
pub fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        None => text.escape_debug().to_string(),
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
    }
}
