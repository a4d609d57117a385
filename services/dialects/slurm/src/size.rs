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

/// The letters of units, by their power of 1024 bytes.
const UNITS: [&str; 6] = ["", "K", "M", "G", "T", "P"];

/// The unit in which sizes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// The largest one that gives a whole number.
    #[default]
    Largest,
    /// The one in which they are measured (`--noconvert`).
    Measured,
    /// A certain one (`--units`), as a power of 1024 bytes.
    Power(u8),
}

impl Units {
    /// The unit with a letter, in any case; `None` for an unknown one.
    pub fn parse(text: &str) -> Option<Self> {
        let place = UNITS.iter().position(|unit| !unit.is_empty() && unit.eq_ignore_ascii_case(text))?;
        Some(Self::Power(u8::try_from(place).ok()?))
    }

    /// A size that is measured in a unit, given as a power of 1024 bytes, with its letter; two decimals if it is not
    /// whole.
    pub fn show(self, size: u64, measured: u8) -> String {
        let (mut size, mut power) = (size, measured);
        match self {
            Self::Measured => {}
            Self::Largest => {
                while size > 0 && size.is_multiple_of(1024) && usize::from(power) + 1 < UNITS.len() {
                    (size, power) = (size / 1024, power + 1);
                }
            }
            Self::Power(wanted) => {
                while power > wanted {
                    (size, power) = (size.saturating_mul(1024), power - 1);
                }
                let divisor = 1024u64.saturating_pow(u32::from(wanted - power));
                if !size.is_multiple_of(divisor) {
                    return format!("{:.2}{}", size as f64 / divisor as f64, UNITS[usize::from(wanted)]);
                }
                (size, power) = (size / divisor, wanted);
            }
        }
        format!("{size}{}", UNITS.get(usize::from(power)).copied().unwrap_or_default())
    }

    /// A number of megabytes in this unit.
    pub fn show_megabytes(self, megabytes: u64) -> String {
        self.show(megabytes, 2)
    }
}

/// Bytes in whole megabytes, rounded up.
pub const fn megabytes_of(bytes: u64) -> u64 {
    bytes.div_ceil(MEGABYTE)
}
