//! The PBS dialect against its specification. The ids above the tests are those of its requirements.

mod arrays;
mod dependencies;
mod job_ids;
mod launches;
mod lowering;
mod mutated;
mod nodes;
mod options;
mod outputs;
mod qmgr;
mod qmgr_edits;
mod queries;
mod resources;
mod scripts;
mod show_jobs;
mod show_queues;
mod sizing;
mod support;
mod traces;
mod values;
