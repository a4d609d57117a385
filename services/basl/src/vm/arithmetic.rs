//! Arithmetic that says when it has no result.

use crate::{size::Size, syntax::Arithmetic};

/// Why an operation has no result.
type Wrong = &'static str;

pub(super) const INT_RANGE: Wrong = "the result is out of the range of Int";
const FLOAT_RANGE: Wrong = "the result is out of the range of Float";
const SIZE_RANGE: Wrong = "the result is out of the range of Size";
const BY_ZERO: Wrong = "division by zero";

#[inline]
pub(super) fn int(arithmetic: Arithmetic, left: i64, right: i64) -> Result<i64, Wrong> {
    let result = match arithmetic {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide | Arithmetic::Remainder if right == 0 => return Err(BY_ZERO),
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => left.checked_rem(right),
    };
    result.ok_or(INT_RANGE)
}

/// The register of the result.
pub(super) fn float(arithmetic: Arithmetic, left: f64, right: f64) -> Result<i64, Wrong> {
    finite(match arithmetic {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide | Arithmetic::Remainder if right == 0.0 => return Err(BY_ZERO),
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    })
}

/// The register of a float. All floats of programs are finite, so that their order is total.
pub(super) fn finite(value: f64) -> Result<i64, Wrong> {
    if value.is_finite() { Ok(value.to_bits().cast_signed()) } else { Err(FLOAT_RANGE) }
}

/// The register of the result.
pub(super) fn size(arithmetic: Arithmetic, left: Size, right: Size) -> Result<i64, Wrong> {
    let result = match arithmetic {
        Arithmetic::Add => left.combined(right, i128::checked_add),
        Arithmetic::Subtract => left.combined(right, i128::checked_sub),
        Arithmetic::Multiply => left.combined(right, i128::checked_mul),
        Arithmetic::Divide | Arithmetic::Remainder if right.is_zero() => return Err(BY_ZERO),
        Arithmetic::Divide => left.combined(right, i128::checked_div),
        Arithmetic::Remainder => left.combined(right, i128::checked_rem),
    };
    result.map(Size::to_word).ok_or(SIZE_RANGE)
}

/// A float without its fraction.
pub(super) fn truncated(value: f64) -> Result<i64, Wrong> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if value > -END && value < END { Ok(value as i64) } else { Err(INT_RANGE) }
}
