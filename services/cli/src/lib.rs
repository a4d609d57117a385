//! What command lines are made of, whichever dialect they are of: how they find the system and end, what they take over from
//! who calls them, values as people write them, tables, times and stories as people read them, the terminal, what steps read
//! and say.

pub mod caller;
pub mod connection;
pub mod exit;
pub mod lease;
pub mod process;
pub mod show;
pub mod step;
pub mod story;
pub mod table;
pub mod terminal;
pub mod values;
pub mod verdict;
