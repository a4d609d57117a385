//! Jobs and arrays, from submission until they are forgotten.

mod apply;
mod array;
pub(crate) mod decide;
pub(crate) mod gates;
pub(crate) mod invariants;
pub(crate) mod numbers;
mod pulled;
pub(crate) mod queries;
mod shape;
mod state;
pub(crate) mod validate;
mod waiting;

pub use array::ArrayState;
pub use queries::Waiting;
pub use shape::{Shape, ShapeId, Shapes};
pub use state::{Component, ComponentExtras, Finished, Job, JobExtras, Phase, ProgramKind, RunSummary};
pub use waiting::{OrderHead, WaitReasons};
