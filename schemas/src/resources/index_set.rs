//! The set operations and the text form of [`IndexSet`].

use super::IndexSet;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// The text is not a set of numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{token}` at character {column} is not a number or range such as 0-3 or 0-9:2")]
pub struct IndexSetError {
    /// The part that is wrong.
    pub token: String,
    /// Where it begins, from 1.
    pub column: usize,
}

impl IndexSet {
    /// Maximum number of ranges that a text with a step (`0-1000000:2`) may expand to; a larger one is refused.
    const MAX_RANGES: usize = 1_000_000;

    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// All numbers from `first` to `last`, both included; empty if `last` is smaller.
    pub fn from_range(first: u32, last: u32) -> Self {
        Self { ranges: if first <= last { vec![(first, last)] } else { Vec::new() } }
    }

    /// The numbers 0 to `count` - 1.
    pub fn first_n(count: u32) -> Self {
        if count == 0 { Self::new() } else { Self::from_range(0, count - 1) }
    }

    /// The ranges, ascending, first and last included.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The count of its numbers.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        self.ranges.first().map(|(first, _)| *first)
    }

    /// Whether the number is in it.
    pub fn contains(&self, number: u32) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= number);
        after > 0 && self.ranges[after - 1].1 >= number
    }

    /// The count of its numbers that are smaller than a number in it.
    pub fn position(&self, number: u32) -> Option<u64> {
        if !self.contains(number) {
            return None;
        }
        let before = self.ranges.iter().take_while(|(first, _)| *first <= number);
        Some(before.map(|(first, last)| u64::from(number.min(*last) - first) + 1).sum::<u64>() - 1)
    }

    /// The number in it with this many smaller ones.
    pub fn nth(&self, position: u64) -> Option<u32> {
        let mut left = position;
        for (first, last) in &self.ranges {
            let length = u64::from(last - first) + 1;
            if left < length {
                // Less than the length of a range of u32.
                return Some(first + left as u32);
            }
            left -= length;
        }
        None
    }

    /// Whether every number of `other` is in it.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.difference(self).is_empty()
    }

    /// Inserts the number; false if it was present.
    pub fn insert(&mut self, number: u32) -> bool {
        if self.contains(number) {
            return false;
        }
        let at = self.ranges.partition_point(|(first, _)| *first <= number);
        let joins_left = at > 0 && self.ranges[at - 1].1.checked_add(1) == Some(number);
        let joins_right = at < self.ranges.len() && number.checked_add(1) == Some(self.ranges[at].0);
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = number,
            (false, true) => self.ranges[at].0 = number,
            (false, false) => self.ranges.insert(at, (number, number)),
        }
        true
    }

    /// Removes the number; false if it was not present.
    pub fn remove(&mut self, number: u32) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= number);
        if after == 0 || self.ranges[after - 1].1 < number {
            return false;
        }
        let at = after - 1;
        let (first, last) = self.ranges[at];
        match (first == number, last == number) {
            (true, true) => {
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at].0 = number + 1,
            (false, true) => self.ranges[at].1 = number - 1,
            (false, false) => {
                self.ranges[at].1 = number - 1;
                self.ranges.insert(at + 1, (number + 1, last));
            }
        }
        true
    }

    /// The numbers that are in either.
    pub fn union(&self, other: &Self) -> Self {
        let mut ranges: Vec<(u32, u32)> = self.ranges.iter().chain(&other.ranges).copied().collect();
        ranges.sort_unstable();
        ranges.into_iter().collect_sorted()
    }

    /// The numbers that are in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        let mut result = Vec::with_capacity(self.ranges.len());
        let mut others = other.ranges.iter().copied().peekable();
        for (mut first, last) in self.ranges.iter().copied() {
            let mut left_over = true;
            while let Some((cut_first, cut_last)) = others.peek().copied() {
                if cut_last < first {
                    others.next();
                    continue;
                }
                if cut_first > last {
                    break;
                }
                if cut_first > first {
                    result.push((first, cut_first - 1));
                }
                if cut_last >= last {
                    left_over = false;
                    break;
                }
                first = cut_last + 1;
                others.next();
            }
            if left_over {
                result.push((first, last));
            }
        }
        Self { ranges: result }
    }

    /// The numbers that are in both.
    pub fn intersection(&self, other: &Self) -> Self {
        self.difference(&self.difference(other))
    }

    /// The `count` smallest numbers, or all if there are fewer.
    pub fn smallest(&self, count: u64) -> Self {
        let mut left = count;
        let mut ranges = Vec::new();
        for (first, last) in &self.ranges {
            if left == 0 {
                break;
            }
            let length = u64::from(last - first) + 1;
            let taken = length.min(left);
            // `taken` is at least 1 and at most the length of a range of u32, so it fits.
            ranges.push((*first, first + (taken - 1) as u32));
            left -= taken;
        }
        Self { ranges }
    }
}

trait CollectSorted {
    fn collect_sorted(self) -> IndexSet;
}

impl<I: Iterator<Item = (u32, u32)>> CollectSorted for I {
    /// Joins ranges that overlap or touch; the input is ascending by first number.
    fn collect_sorted(self) -> IndexSet {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (first, last) in self {
            match ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
                _ => ranges.push((first, last)),
            }
        }
        IndexSet { ranges }
    }
}

impl FromIterator<u32> for IndexSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| (number, number)).collect_sorted()
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.ranges.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

impl FromStr for IndexSet {
    type Err = IndexSetError;

    /// Numbers and ranges separated by commas; a range may have a step (`0-9:2` is 0,2,4,6,8).
    fn from_str(text: &str) -> Result<Self, IndexSetError> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut column = 1;
        for token in text.split(',') {
            let error = || IndexSetError { token: token.chars().take(40).collect(), column };
            let (first, last, step) = parse_range(token).ok_or_else(error)?;
            if step == 1 {
                ranges.push((first, last));
            } else if u64::from(last - first) / u64::from(step) >= Self::MAX_RANGES as u64 {
                return Err(error());
            } else {
                ranges.extend((first..=last).step_by(step as usize).map(|number| (number, number)));
            }
            if ranges.len() > Self::MAX_RANGES {
                return Err(error());
            }
            column += token.chars().count() + 1;
        }
        ranges.sort_unstable();
        Ok(ranges.into_iter().collect_sorted())
    }
}

fn parse_range(token: &str) -> Option<(u32, u32, u32)> {
    let number = |text: &str| -> Option<u32> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    let (range, step) = match token.split_once(':') {
        Some((range, step)) => (range, number(step)?),
        None => (token, 1),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(range)?, number(range)?),
    };
    (first <= last && step > 0).then_some((first, last, step))
}

impl Serialize for IndexSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.ranges.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for IndexSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
            return if text.is_empty() { Ok(Self::new()) } else { text.parse().map_err(D::Error::custom) };
        }
        let ranges = Vec::<(u32, u32)>::deserialize(deserializer)?;
        let ordered = ranges.iter().all(|(first, last)| first <= last)
            && ranges.windows(2).all(|pair| pair[0].1.checked_add(1).is_some_and(|next| next < pair[1].0));
        if ordered { Ok(Self { ranges }) } else { Err(D::Error::custom("the ranges of a set are not in order")) }
    }
}

crate::ids::text_schema!(IndexSet, "numbers and ranges, such as 0-3,8");
