//! Prime and non-prime time, and values that differ between them (PBS-F-14).

use std::fmt;

/// The kind of time in which a cycle starts. It selects the value of each option for the entire cycle (PBS-F-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The hours that the site calls its best.
    Prime,
    /// All others.
    NonPrime,
}

impl Mode {
    /// Both modes.
    pub const BOTH: [Self; 2] = [Self::Prime, Self::NonPrime];
}

impl fmt::Display for Mode {
    /// `prime` or `non-prime`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prime => "prime",
            Self::NonPrime => "non-prime",
        })
    }
}

/// A value for each mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerMode<T> {
    /// The value in prime time.
    pub prime: T,
    /// The value in non-prime time.
    pub non_prime: T,
}

impl<T> PerMode<T> {
    /// The value in a mode.
    pub const fn get(&self, mode: Mode) -> &T {
        match mode {
            Mode::Prime => &self.prime,
            Mode::NonPrime => &self.non_prime,
        }
    }

    /// The value in a mode, to be changed.
    pub const fn get_mut(&mut self, mode: Mode) -> &mut T {
        match mode {
            Mode::Prime => &mut self.prime,
            Mode::NonPrime => &mut self.non_prime,
        }
    }
}

/// The modes as people read them: `prime time`, `non-prime time`, `prime and non-prime time`.
pub fn show_modes(modes: &[Mode]) -> String {
    let names: Vec<String> = modes.iter().map(Mode::to_string).collect();
    format!("{} time", names.join(" and "))
}
