//! The rules of muster, by their public face: commands in, events and answers out.

mod accounts;
mod altered;
mod arrays;
mod cluster;
mod components;
mod dependencies;
mod digest;
mod elastic;
mod filters;
mod jobs;
mod launched;
mod lists;
mod notifications;
mod numbers;
mod orders;
mod planning;
mod plans;
mod properties;
mod requests;
mod runs;
mod shared_nodes;
mod staging;
mod support;
mod task_properties;
mod tasks;
mod validation;
