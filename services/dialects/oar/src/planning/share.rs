//! When two placements may hold the same resource at the same time.

/// The attributes that placements must have in common to share resources (OAR-T-40). `None` stands for `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShareKey {
    /// The user, if it counts.
    pub user: Option<String>,
    /// The name of the job, if it counts.
    pub name: Option<String>,
}

/// What a placement shares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Placements with equal keys may overlap.
    pub key: Option<ShareKey>,
    /// The label under which the resources are held (`placeholder`).
    pub holds_for: Option<String>,
    /// The label whose resources may be used (`allowed`).
    pub may_use: Option<String>,
}

impl Sharing {
    /// Whether two placements may overlap: by equal keys, or because one holds resources for the other (OAR-T-80).
    pub fn may_overlap(&self, other: &Self) -> bool {
        let by_key = self.key.is_some() && self.key == other.key;
        let holds = |one: &Self, other: &Self| one.holds_for.is_some() && one.holds_for == other.may_use;
        by_key || holds(self, other) || holds(other, self)
    }
}
