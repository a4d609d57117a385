//! The heart of the OAR dialect against its specification. The ids above the tests are those of its requirements, and W
//! with a number is one of its worked examples.

mod filters;
mod launches;
mod life;
mod matches;
mod options;
mod prints;
mod quotas;
mod requests;
mod resources;
mod shows;
mod site;
mod support;
