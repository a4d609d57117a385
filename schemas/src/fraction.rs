//! Exact fractions: parts of the machine that a deep tree of shares makes as small as it likes.

use std::{cmp::Ordering, fmt};

/// The largest power of ten in 64 bits, and its digits: numbers are written in groups of them.
const TENS: u64 = 10_000_000_000_000_000_000;
const TENS_DIGITS: usize = 19;

/// A natural number of any size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Natural {
    /// Digits to the base 2^64, the lowest first, without zeros at the end.
    digits: Vec<u64>,
}

impl Natural {
    fn of(number: u64) -> Self {
        Self::trimmed(vec![number])
    }

    fn trimmed(mut digits: Vec<u64>) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self { digits }
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    fn times(&self, factor: u64) -> Self {
        let mut carry = 0u128;
        let mut digits: Vec<u64> = Vec::with_capacity(self.digits.len() + 1);
        for digit in &self.digits {
            let product = u128::from(*digit) * u128::from(factor) + carry;
            digits.push(low(product));
            carry = product >> 64;
        }
        digits.push(low(carry));
        Self::trimmed(digits)
    }

    fn times_natural(&self, other: &Self) -> Self {
        let mut digits = vec![0u64; self.digits.len() + other.digits.len()];
        for (place, left) in self.digits.iter().enumerate() {
            let mut carry = 0u128;
            for (offset, right) in other.digits.iter().enumerate() {
                let sum = u128::from(*left) * u128::from(*right) + u128::from(digits[place + offset]) + carry;
                digits[place + offset] = low(sum);
                carry = sum >> 64;
            }
            digits[place + other.digits.len()] = low(carry);
        }
        Self::trimmed(digits)
    }

    /// The quotient, rounded down, and the rest. The divisor is not zero.
    fn divided(&self, divisor: u64) -> (Self, u64) {
        let mut rest = 0u128;
        let mut digits = vec![0u64; self.digits.len()];
        for (quotient, digit) in digits.iter_mut().zip(&self.digits).rev() {
            let part = rest << 64 | u128::from(*digit);
            *quotient = low(part / u128::from(divisor));
            rest = part % u128::from(divisor);
        }
        (Self::trimmed(digits), low(rest))
    }

    /// The greatest common divisor with a number that is not zero.
    fn common(&self, number: u64) -> u64 {
        common(number, self.divided(number).1)
    }
}

/// The product of three numbers if it has no more than 128 bits.
fn small_product(one: &Natural, two: &Natural, three: u64) -> Option<u128> {
    let small = |number: &Natural| match number.digits[..] {
        [] => Some(0),
        [digit] => Some(u128::from(digit)),
        _ => None,
    };
    let product = small(one)? * small(two)?;
    match u64::try_from(product) {
        // Cannot overflow, and is much faster.
        Ok(product) => Some(u128::from(product) * u128::from(three)),
        Err(_) => product.checked_mul(u128::from(three)),
    }
}

/// The lower 64 bits.
fn low(number: u128) -> u64 {
    number as u64
}

/// The greatest common divisor; of zero and a number, the number.
fn common(mut left: u64, mut right: u64) -> u64 {
    while right > 0 {
        (left, right) = (right, left % right);
    }
    left
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.digits.len().cmp(&other.digits.len());
        by_length.then_with(|| self.digits.iter().rev().cmp(other.digits.iter().rev()))
    }
}

impl fmt::Display for Natural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut groups, mut rest) = (Vec::new(), self.clone());
        while !rest.is_zero() {
            let (quotient, group) = rest.divided(TENS);
            groups.push(group);
            rest = quotient;
        }
        let Some(first) = groups.pop() else { return f.write_str("0") };
        write!(f, "{first}")?;
        groups.iter().rev().try_for_each(|group| write!(f, "{group:0TENS_DIGITS$}"))
    }
}

/// A fraction from 0 in lowest terms, so equal fractions have equal terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    numerator: Natural,
    denominator: Natural,
}

impl Fraction {
    /// Zero.
    pub fn zero() -> Self {
        Self { numerator: Natural::of(0), denominator: Natural::of(1) }
    }

    /// One.
    pub fn one() -> Self {
        Self { numerator: Natural::of(1), denominator: Natural::of(1) }
    }

    /// A fraction of two numbers; zero if the second one is.
    pub fn of(numerator: u64, denominator: u64) -> Self {
        Self::one().times(numerator, denominator)
    }

    /// This fraction times another one of two numbers; zero if the second one is.
    #[must_use]
    pub fn times(&self, numerator: u64, denominator: u64) -> Self {
        if numerator == 0 || denominator == 0 || self.is_zero() {
            return Self::zero();
        }
        // Each numerator is freed of what it shares with each denominator: so the product is in lowest terms.
        let shared = common(numerator, denominator);
        let (numerator, denominator) = (numerator / shared, denominator / shared);
        let above = self.numerator.common(denominator);
        let below = self.denominator.common(numerator);
        Self {
            numerator: self.numerator.divided(above).0.times(numerator / below),
            denominator: self.denominator.divided(below).0.times(denominator / above),
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.numerator.is_zero()
    }

    /// Compares `self * factor` with `other * other_factor`, exactly.
    pub fn compare_times(&self, factor: u64, other: &Self, other_factor: u64) -> Ordering {
        // Nearly all parts are small enough for this, and users are compared for every job.
        let left = small_product(&self.numerator, &other.denominator, factor);
        let right = small_product(&other.numerator, &self.denominator, other_factor);
        if let (Some(left), Some(right)) = (left, right) {
            return left.cmp(&right);
        }
        let left = self.numerator.times_natural(&other.denominator).times(factor);
        let right = other.numerator.times_natural(&self.denominator).times(other_factor);
        left.cmp(&right)
    }
}

impl Default for Fraction {
    /// Zero.
    fn default() -> Self {
        Self::zero()
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare_times(1, other, 1)
    }
}

impl fmt::Display for Fraction {
    /// `2/11`; a whole number without its denominator.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.denominator == Natural::of(1) {
            return write!(f, "{}", self.numerator);
        }
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}
