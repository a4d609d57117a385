//! The dialects that this program knows.

use muster_dialect::Dialects;
use muster_hpcpack::HpcPack;
use muster_slurm::Slurm;

/// What jobs of no dialect ask for, filters and staging programs are told in the words of Slurm, as the book says.
pub const DIALECTS: Dialects = Dialects::new(&[&HpcPack, &Slurm], Some(&Slurm));
