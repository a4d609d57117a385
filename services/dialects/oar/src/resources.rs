//! The resources of a site: typed properties, states, and the changes of both.

pub mod history;
pub mod property;
pub mod setting;
pub mod state;
pub mod table;
pub mod value;
