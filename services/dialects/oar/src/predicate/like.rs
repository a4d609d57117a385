//! The patterns of `LIKE`.

/// Whether a text matches a pattern: `%` stands for any characters, `_` for one, and a backslash protects the next
/// character. The time is bounded by the product of the lengths.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern = parts(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut place, mut at) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(place) {
            Some(Part::Any) => {
                last_any = Some((place, at));
                place += 1;
            }
            Some(part) if part.is(text[at]) => {
                place += 1;
                at += 1;
            }
            _ => {
                // The last `%` takes one character more.
                let Some((any, began)) = last_any else { return false };
                last_any = Some((any, began + 1));
                (place, at) = (any + 1, began + 1);
            }
        }
    }
    pattern[place..].iter().all(|part| matches!(part, Part::Any))
}

/// A part of a pattern.
enum Part {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character that stands for itself.
    Exactly(char),
}

impl Part {
    fn is(&self, character: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Exactly(expected) => *expected == character,
        }
    }
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut characters = pattern.chars();
    let mut parts = Vec::new();
    while let Some(character) = characters.next() {
        parts.push(match character {
            '%' => Part::Any,
            '_' => Part::One,
            '\\' => Part::Exactly(characters.next().unwrap_or('\\')),
            character => Part::Exactly(character),
        });
    }
    parts
}
