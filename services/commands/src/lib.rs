//! What commands are made of, whichever program they are in: how they find the system and end, what they take over from who
//! calls them, the terminal, what steps read and say; and the commands of Slurm, which are a program of their own
//! (`muster-slurm`), since scripts call them by the thousand.

pub mod allocator;
pub mod caller;
pub mod connection;
pub mod exit;
pub mod lease;
mod mathematics;
pub mod process;
pub mod slurm;
pub mod step;
pub mod terminal;
pub mod verdict;
