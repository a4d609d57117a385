//! Texts in TOML.

use std::fmt::Write as _;

/// A text as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            character => out.push(character),
        }
    }
    out + "\""
}
