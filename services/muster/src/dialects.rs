//! The dialects that this program knows.

use muster_dialect::Dialects;
use muster_hpcpack::HpcPack;
use muster_oar::Oar;
use muster_pbs::Pbs;
use muster_slurm::Slurm;

/// For jobs of no dialect, filters and staging programs get the requests in the words of Slurm, as documented.
pub const DIALECTS: Dialects = Dialects::new(&[&HpcPack, &Oar, &Pbs, &Slurm], Some(&Slurm));
