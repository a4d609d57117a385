//! The PBS dialect against its specification. The ids above the tests are those of its requirements.

mod arrays;
mod dependencies;
mod job_ids;
mod launches;
mod lowering;
mod options;
mod outputs;
mod resources;
mod scripts;
mod sizing;
mod support;
mod values;
