//! What a template holds.

use super::filters::{Access, FilterDefinition};
use crate::description::attributes::{Attribute, JobAttributes};
use std::collections::BTreeMap;

/// What the value of a property may be (HPC-T-04). Everything is allowed by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The least value of a number; of a priority its value, of a run time seconds.
    pub min: Option<i64>,
    /// The greatest value. "No run time" is larger than any (HPC-T-06).
    pub max: Option<i64>,
    /// The allowed values, of a list those that its items may have; empty if all are.
    pub allowed: Vec<String>,
    /// Items that a list must have.
    pub required: Vec<String>,
}

/// A job template (HPC-T-02).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Its name; names of templates ignore case.
    pub name: String,
    /// What it is for.
    pub description: String,
    pub(super) defaults: JobAttributes,
    pub(super) limits: BTreeMap<Attribute, Limits>,
    /// Who may submit with it.
    pub access: Access,
    /// The submission filters, in the order in which they are called.
    pub submission_filters: Vec<FilterDefinition>,
    /// The activation filters, in the order in which they are called.
    pub activation_filters: Vec<FilterDefinition>,
}
