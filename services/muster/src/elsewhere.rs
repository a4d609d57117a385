//! Commands that this program does not run.

use crate::exit::Failure;

/// The failure for such a command.
pub fn only_muster() -> Failure {
    Failure::usage("this program has the services and the commands that need them; call `muster` instead")
}
