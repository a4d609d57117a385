//! Planning domains: jobs that are planned on what running jobs hold. Every plan is checked by the ledger's rules, and a
//! projection that is made anew makes the same plan.

mod histories;
#[path = "../common/requests.rs"]
mod requests;
mod worked_examples;
#[allow(dead_code, reason = "it is shared")]
#[path = "../plan/world.rs"]
mod world;
