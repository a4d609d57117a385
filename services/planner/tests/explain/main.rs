//! Explanations of waiting jobs, the timetable, the accuracy of predictions, and repeated decisions.

mod accuracy;
mod again;
mod changes;
mod followers;
mod table;
mod turns;
mod waits;
mod world;
