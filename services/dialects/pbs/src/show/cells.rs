//! Single cells of tables.

use jiff::tz::TimeZone;
use muster_schemas::time::Timestamp;
use std::borrow::Cow;

/// The mark of a cut value.
const CUT: char = '*';

/// A point in time as C's `ctime` writes it: `Tue Oct  4 21:23:20 2022`.
pub(super) fn date(time: Timestamp, zone: &TimeZone) -> String {
    let zoned = Timestamp::from_unix_seconds(time.unix_seconds()).to_jiff().to_zoned(zone.clone());
    zoned.strftime("%a %b %e %H:%M:%S %Y").to_string()
}

/// The text without control characters, as a terminal may get it: `^J` for a line end.
pub(crate) fn printable(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match u8::try_from(c) {
            Ok(byte) if byte < 32 => {
                shown.push('^');
                shown.push(char::from(byte + 64));
            }
            Ok(127) => shown.push_str("^?"),
            _ if c.is_control() => shown.push('?'),
            _ => shown.push(c),
        }
    }
    shown
}

/// The text in one word, so that programs can split the columns.
pub(super) fn word(text: &str) -> Cow<'_, str> {
    let splits = |c: char| c.is_whitespace() || c.is_control();
    if text.is_empty() {
        return Cow::Borrowed("-");
    }
    if !text.contains(splits) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if splits(c) { '_' } else { c }).collect())
}

/// At most this many characters.
pub(super) fn first(text: &str, width: usize) -> &str {
    text.char_indices().nth(width).map_or(text, |(end, _)| &text[..end])
}

/// At most this many characters; the last one is a star if something was cut.
pub(super) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    // Most texts have fewer bytes than that.
    if text.len() <= width || text.chars().nth(width).is_none() || width == 0 {
        return Cow::Borrowed(text);
    }
    let mut cut = first(text, width - 1).to_owned();
    cut.push(CUT);
    Cow::Owned(cut)
}
