//! Resource requests: the words of `-l`.

mod list;
mod nodes;
mod place;
mod select;

pub use list::{MOST_BYTES, Resource, parse};
pub use nodes::{Entry, Head, NodesSpec};
pub use place::{Arrangement, Exclusion, Place};
pub use select::{Chunk, Select};
