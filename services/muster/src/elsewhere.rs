//! Commands that this program is not for.

use crate::exit::Failure;

/// What is said of one.
pub fn only_muster() -> Failure {
    Failure::usage("this program has the services and the commands that need them; call `muster` instead")
}
