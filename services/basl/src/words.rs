//! The known word that somebody may have meant.

/// A longer word is not a misspelled known one, and a comparison takes the product of the lengths.
const LONGEST: usize = 100;

/// Known words that are looked at.
const MOST: usize = 2000;

/// `; did you mean 'WORD'?` if a known word is close to the given one, otherwise nothing.
pub(crate) fn suggestion<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if given.len() > LONGEST {
        return String::new();
    }
    let maximum = (given.chars().count() / 3).clamp(1, 4);
    let lower = given.to_ascii_lowercase();
    let distance = |word: &str| strsim::damerau_levenshtein(&lower, &word.to_ascii_lowercase());
    let distances = known.into_iter().take(MOST).filter(|word| *word != given).map(|word| (distance(word), word));
    match distances.filter(|(distance, _)| *distance <= maximum).min() {
        Some((_, word)) => format!("; did you mean '{word}'?"),
        None => String::new(),
    }
}
