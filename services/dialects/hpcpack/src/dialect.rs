//! The answers of this dialect to the services' questions.

use crate::NAME;
use muster_dialect::Dialect;

/// HPC Pack as services see it: its jobs are launched and reported like muster's own, and their descriptions contain
/// all that filters get.
#[derive(Clone, Copy, Debug)]
pub struct HpcPack;

impl Dialect for HpcPack {
    fn name(&self) -> &'static str {
        NAME
    }
}
