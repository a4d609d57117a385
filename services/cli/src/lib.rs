//! Building blocks for the command lines of all dialects: how they find the system and exit, what they take from
//! the caller, values as people write them, tables, times and stories for people, the terminal, signals, option lines of other schedulers, jobs that
//! are held for a command, and the input and output of steps.

pub mod caller;
pub mod connection;
pub mod exit;
pub mod foreign;
pub mod held;
pub mod interrupts;
pub mod lease;
pub mod link;
pub mod process;
pub mod show;
pub mod step;
pub mod story;
pub mod table;
pub mod terminal;
pub mod values;
pub mod verdict;
pub mod zone;
