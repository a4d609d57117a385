//! From descriptions to scheduled jobs and back: the description for filters, the check after the filters, and the
//! resulting job (HPC-J-03, HPC-F-18..20, HPC-T-03..07).

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

/// The attribute with the format of the description that a job was submitted with. Jobs without it had no description.
pub const FORMAT_ATTRIBUTE: &str = "hpcpack.format";
/// The attribute with the names of the variables from the description, separated by spaces, so that a later check can
/// remove them.
pub(crate) const VARIABLES_ATTRIBUTE: &str = "hpcpack.variables";
