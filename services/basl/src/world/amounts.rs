//! Amounts of resources.

use crate::{size::Size, snapshot::Amount, text::Text, values::Reference};

/// The resources of an object by their numbers; few enough to look through all of them.
pub(super) type Resources = Vec<(u32, Value)>;

/// An amount in all the forms in which programs ask for it.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// A count or seconds; -1 if it is neither.
    pub(super) int: i64,
    /// -1b if it is none.
    pub(super) size: Size,
    pub(super) text: Reference,
}

impl Value {
    pub(super) fn of(amount: &Amount) -> Self {
        match amount {
            Amount::Number(number) => Self::of_text(&number.to_string()),
            Amount::Fraction(number) => Self::of_text(&number.to_string()),
            Amount::Text(text) => Self::of_text(text.trim()),
        }
    }

    pub(super) fn of_text(written: &str) -> Self {
        let text = Reference::Text(Text::fixed(written));
        let int = written.parse().ok().or_else(|| seconds(written)).unwrap_or(-1);
        Self { int, size: Size::parse(written).unwrap_or(Size::UNSET), text }
    }

    pub(super) fn of_int(int: i64) -> Self {
        let text = Reference::Text(Text::fixed(&int.to_string()));
        Self { int, size: Size::UNSET, text }
    }

    pub(super) fn of_size(size: Size) -> Self {
        let text = Reference::Text(Text::fixed(&size.to_string()));
        Self { int: -1, size, text }
    }
}

/// `[[hours:]minutes:]seconds[.fraction]`
fn seconds(text: &str) -> Option<i64> {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    if !whole.contains(':') || whole.split(':').count() > 3 {
        return None;
    }
    whole.split(':').try_fold(0_i64, |sum, part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let part = is_number.then(|| part.parse::<i64>().ok())??;
        sum.checked_mul(60)?.checked_add(part)
    })
}

/// The amount of a resource.
pub(super) fn find(resources: &Resources, name: u32) -> Option<&Value> {
    resources.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Sets the amount of a resource.
pub(super) fn put(resources: &mut Resources, name: u32, value: Value) {
    match resources.iter_mut().find(|(known, _)| *known == name) {
        Some((_, old)) => *old = value,
        None => resources.push((name, value)),
    }
}

/// The resources that PBS sums up over running jobs, and whether they are sizes.
pub(super) const SUMMED: [(&str, bool); 7] = [
    ("nodect", false),
    ("workingset", true),
    ("mem", true),
    ("ncpus", false),
    ("sds", true),
    ("procs", false),
    ("mppe", false),
];

/// A sum with one more amount. An unset amount adds nothing, and a sum begins at nothing.
pub(super) fn grown(sum: Option<&Value>, more: &Value, is_size: bool) -> Option<Value> {
    if is_size {
        let start = sum.map(|sum| sum.size).filter(|size| !size.is_negative());
        let total = match start {
            Some(start) => start.combined(more.size, i128::checked_add)?,
            None => more.size,
        };
        return (!more.size.is_negative()).then(|| Value::of_size(total));
    }
    let start = sum.map_or(0, |sum| sum.int.max(0));
    (more.int >= 0).then(|| Value::of_int(start.saturating_add(more.int)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_seconds() {
        let cases = [("1:00:00", Some(3600)), ("02:30", Some(150)), ("0:00:01.75", Some(1)), ("1:2:3:4", None)];
        for (text, expected) in cases.into_iter().chain([("1::2", None), (":", None), ("-1:00", None), ("12", None)]) {
            assert_eq!(seconds(text), expected, "{text}");
        }
        assert_eq!(seconds("9223372036854775807:00"), None);
    }

    #[test]
    fn an_amount_has_the_forms_that_fit_it() {
        let forms = |text: &str| {
            let value = Value::of(&text.into());
            (value.int, value.size.to_string(), value.text.text().to_owned())
        };
        assert_eq!(forms("250mb"), (-1, "250mb".into(), "250mb".into()));
        assert_eq!(forms("4"), (4, "4b".into(), "4".into()));
        assert_eq!(forms("1:00:00"), (3600, "-1b".into(), "1:00:00".into()));
        assert_eq!(forms("linux"), (-1, "-1b".into(), "linux".into()));
    }
}
