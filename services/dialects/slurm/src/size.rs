//! Amounts of memory and disk (SL-C-05). Slurm counts in mebibytes, written `M`.

/// One of Slurm's megabytes in bytes.
pub const MEGABYTE: u64 = 1 << 20;

const SUFFIXES: [char; 4] = ['M', 'G', 'T', 'P'];

/// Reads a size: a number with a suffix `K`, `M`, `G` or `T` in any case; without one, megabytes. The result is in
/// megabytes, rounded up; `None` for anything else.
pub fn parse_megabytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    match text[digits.len()..].to_ascii_uppercase().as_str() {
        "K" | "KB" => Some(number.div_ceil(1024)),
        "" | "M" | "MB" => Some(number),
        "G" | "GB" => number.checked_mul(1 << 10),
        "T" | "TB" => number.checked_mul(1 << 20),
        _ => None,
    }
}

/// Megabytes in the largest unit that gives a whole number: `40M`, `4000M`, `64G`.
pub fn show_megabytes(megabytes: u64) -> String {
    let mut number = megabytes;
    let mut unit = 0;
    while number > 0 && number.is_multiple_of(1024) && unit + 1 < SUFFIXES.len() {
        number /= 1024;
        unit += 1;
    }
    format!("{number}{}", SUFFIXES[unit])
}

/// Bytes in whole megabytes, rounded up.
pub const fn megabytes_of(bytes: u64) -> u64 {
    bytes.div_ceil(MEGABYTE)
}
