//! What services ask this dialect about its jobs.

use crate::NAME;
use muster_dialect::Dialect;

/// HPC Pack, as services see it: its jobs are launched and told of as muster's own, and what filters are told of them stands in
/// their descriptions.
#[derive(Clone, Copy, Debug)]
pub struct HpcPack;

impl Dialect for HpcPack {
    fn name(&self) -> &'static str {
        NAME
    }
}
