//! The parts of a template.

use super::filters::{Access, FilterDefinition};
use crate::description::attributes::{Attribute, JobAttributes};
use std::collections::BTreeMap;

/// The allowed values of a property (HPC-T-04). By default every value is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The least value of a number, of a priority by its value, or of a run time in seconds.
    pub min: Option<i64>,
    /// The greatest value. "No run time" is larger than any number (HPC-T-06).
    pub max: Option<i64>,
    /// The allowed values, or the allowed items of a list; empty if all are allowed.
    pub allowed: Vec<String>,
    /// Items that a list must have.
    pub required: Vec<String>,
}

/// A job template (HPC-T-02).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Its name; names of templates ignore case.
    pub name: String,
    /// Its purpose.
    pub description: String,
    pub(super) defaults: JobAttributes,
    pub(super) limits: BTreeMap<Attribute, Limits>,
    /// The users that may submit with it.
    pub access: Access,
    /// The submission filters, in the order of their calls.
    pub submission_filters: Vec<FilterDefinition>,
    /// The activation filters, in the order of their calls.
    pub activation_filters: Vec<FilterDefinition>,
}
