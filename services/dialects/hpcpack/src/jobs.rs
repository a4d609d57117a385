//! From descriptions to what is scheduled, and back: what filters get to see of a job, the check behind the filters, and the
//! job that comes of it (HPC-J-03, HPC-F-18..20, HPC-T-03..07).

mod check;
mod demand;
mod demanded;
mod describe;
mod document;
mod limits;
mod list;
mod modify;
mod own;
mod spec;

pub use check::{readable, validate};
pub use describe::{Described, describe, described_in_both, exported, request_of};
pub use document::{MOST_STORED_BYTES, pack, unpack};
pub use limits::{ChangedJob, change_breaches};
pub use modify::change_of;
pub use spec::{hold_of, provisional, template_of};

/// The attribute of a job that was submitted with a description: how that is written. Jobs without it have none of their own.
pub const FORMAT_ATTRIBUTE: &str = "hpcpack.format";
/// The attribute that names the variables that came with the description, between spaces, so that a later check can take
/// them back.
pub(crate) const VARIABLES_ATTRIBUTE: &str = "hpcpack.variables";
