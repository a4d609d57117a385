//! What the planner decides, with every plan checked by the rules that the ledger will check it by.

mod accounts;
mod forecast;
mod ordering;
mod placement;
mod properties;
#[path = "../common/requests.rs"]
mod requests;
mod suspended;
mod world;
