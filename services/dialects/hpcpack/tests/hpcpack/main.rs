//! The HPC Pack dialect against its specification. The ids above the tests are those of its requirements.

mod changed;
mod changes;
mod described;
mod description;
mod jobs;
mod launches;
mod options;
mod properties;
mod settings;
mod shown;
mod support;
mod templates;
mod verdicts;
