//! Explanations of waiting jobs, the timetable, the accuracy of predictions, and decisions made again.

mod accuracy;
mod again;
mod changes;
mod table;
mod waits;
mod world;
