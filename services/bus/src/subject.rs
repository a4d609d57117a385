//! Subjects and patterns, as in NATS: tokens separated by dots; `*` stands for one token, a final `>` for one or more.

/// Whether a subject matches a pattern.
pub(crate) fn matches(pattern: &str, subject: &str) -> bool {
    let mut subject_tokens = subject.split('.');
    for token in pattern.split('.') {
        match (token, subject_tokens.next()) {
            (">", Some(_)) => return true,
            (_, None) => return false,
            ("*", Some(_)) => {}
            (token, Some(found)) if token == found => {}
            _ => return false,
        }
    }
    subject_tokens.next().is_none()
}

/// Whether some subject can match both patterns.
pub(crate) fn overlap(left: &str, right: &str) -> bool {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        match (left.next(), right.next()) {
            (Some(">"), Some(_)) | (Some(_), Some(">")) | (None, None) => return true,
            (None, Some(_)) | (Some(_), None) => return false,
            (Some(left), Some(right)) if left == right || left == "*" || right == "*" => {}
            _ => return false,
        }
    }
}

/// Whether the pattern stands for more than one subject.
pub(crate) fn is_pattern(subject: &str) -> bool {
    subject.split('.').any(|token| token == "*" || token == ">")
}

/// The fault of a pattern, if it has one.
pub(crate) fn fault(pattern: &str) -> Option<&'static str> {
    let count = pattern.split('.').count();
    for (at, token) in pattern.split('.').enumerate() {
        if token.is_empty() {
            return Some("it has an empty token");
        }
        if token.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) {
            return Some("it has white space in it");
        }
        if token == ">" && at + 1 != count {
            return Some("`>` can only be the last token");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_nats() {
        for (pattern, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a", false),
            ("a.b", "a.b.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("*.b", "a.b", true),
            ("a.>", "a.b", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
            ("a.*.c", "a.b.c", true),
            ("a.*.c", "a.b.d", false),
        ] {
            assert_eq!(matches(pattern, subject), expected, "{pattern} {subject}");
        }
    }

    #[test]
    fn overlapping_patterns_are_found() {
        for (left, right, expected) in [
            ("a.>", "a.b", true),
            ("a.>", "a.b.>", true),
            ("a.*", "*.b", true),
            ("a.b", "a.c", false),
            ("a", "a.>", false),
            ("a.*.c", "a.b", false),
        ] {
            assert_eq!(overlap(left, right), expected, "{left} {right}");
            assert_eq!(overlap(right, left), expected, "{right} {left}");
        }
    }

    #[test]
    fn bad_patterns_are_named() {
        for bad in ["", "a..b", ".a", "a.", "a.>.b", "a b", "a\n"] {
            assert!(fault(bad).is_some(), "{bad:?}");
        }
        for good in ["a", "a.*.b", ">", "a.>"] {
            assert!(fault(good).is_none(), "{good:?}");
        }
    }
}
