//! The heart of the OAR dialect against its specification. The ids above the tests are those of its requirements, and W1
//! to W12 are its worked examples.

mod filters;
mod launches;
mod life;
mod matches;
mod options;
mod planning;
mod power;
mod prints;
mod quotas;
mod requests;
mod resources;
mod shows;
mod site;
mod support;
