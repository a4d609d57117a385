//! What the end of a container means for the jobs inside.

use super::{domain::Domain, gantt::Placement};

/// What happens to running jobs inside a container that ends (OAR-T-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// They continue.
    #[default]
    Leave,
    /// They end too.
    End,
}

/// The jobs inside that change when the last container of a domain ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Running jobs that end.
    pub ended: Vec<u64>,
    /// Waiting jobs that go to Error (OAR-T-15).
    pub in_error: Vec<u64>,
}

/// What the end of the last container of a domain means for the jobs inside.
pub fn at_end(key: &str, running: &[Placement], waiting: &[Placement], policy: AtEnd) -> Inside {
    let inside = |placements: &[Placement]| {
        let of_key = placements.iter().filter(|one| matches!(&one.domain, Domain::Inside(name) if name == key));
        of_key.map(|one| one.job).collect::<Vec<u64>>()
    };
    let ended = match policy {
        AtEnd::Leave => Vec::new(),
        AtEnd::End => inside(running),
    };
    Inside { ended, in_error: inside(waiting) }
}
