//! Numbers.

/// A whole number, 1 or more.
pub fn count(text: &str) -> Option<u32> {
    number(text).filter(|number| *number > 0)
}

/// A whole number, 0 or more, in decimal digits.
pub fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
