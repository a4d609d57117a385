//! The commands that submit jobs, and what their options take.

use super::values::Kind;
use std::fmt;

/// A command that submits jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// Submits a batch script.
    Sbatch,
    /// Gets an allocation and runs a command next to it.
    Salloc,
    /// Runs a step, in its own allocation if there is none.
    Srun,
}

impl Command {
    /// Its name, which begins its messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sbatch => "sbatch",
            Self::Salloc => "salloc",
            Self::Srun => "srun",
        }
    }

    /// The prefix of the variables with defaults of its options (SL-E-11).
    pub const fn variable_prefix(self) -> &'static str {
        match self {
            Self::Sbatch => "SBATCH_",
            Self::Salloc => "SALLOC_",
            Self::Srun => "SLURM_",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether an option takes a value, and of which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// It takes none.
    Flag,
    /// It must have one.
    Required(Kind),
    /// It may have one, which must be glued to it (`--opt=v`, `-Iv`).
    Optional(Kind),
}
