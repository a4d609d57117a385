//! Scheduling programs of all kinds, run against states.

mod basl;
mod bounds;
mod cycles;
mod external;
mod header;
mod sites;
mod support;
mod tcl;
mod words;
