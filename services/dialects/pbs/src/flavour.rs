//! The members of the PBS family.

use std::{fmt, str::FromStr};

/// The member of the family that output imitates where the members differ. Input is understood in the forms of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// OpenPBS and PBS Pro.
    #[default]
    PbsPro,
    /// TORQUE.
    Torque,
}

impl Flavour {
    /// The value of the setting `pbs.flavour`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::PbsPro => "pbspro",
            Self::Torque => "torque",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The text names no member of the family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither `pbspro` nor `torque`")]
pub struct FlavourError(String);

impl FromStr for Flavour {
    type Err = FlavourError;

    fn from_str(text: &str) -> Result<Self, FlavourError> {
        match text.to_ascii_lowercase().as_str() {
            "pbspro" | "openpbs" | "pbs" => Ok(Self::PbsPro),
            "torque" => Ok(Self::Torque),
            _ => Err(FlavourError(crate::refusal::shown(text))),
        }
    }
}
